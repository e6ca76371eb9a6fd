"""Notes, files, names and links: their rows, written and read inside one transaction."""

from __future__ import annotations

import json
from collections.abc import Collection, Sequence
from typing import Any

from co_cli.index.derivation import Row, derive, stored_json
from co_cli.index.engine import (
    MOST_FOUND_BY_LINK,
    MOST_NAMED,
    IndexedFile,
    Named,
    NoteKey,
    Scope,
    SourceCount,
    Standing,
    StoredFile,
    StoredNote,
    StoredPassage,
    SyncState,
)
from co_cli.index.names import fold_name
from co_cli.index.sqlite import words
from co_cli.index.sqlite.connection import fetch
from co_cli.index.sqlite.filters import conditions, ids_text
from co_cli.index.sqlite.vectors import VectorReader, VectorWriter
from co_cli.sources.origin import Origin

ADD_VAULT = "insert into vaults (root, kind, name, only) values (:root, :kind, :name, :only)"
OPEN_PASSAGES = """
select passages.id, docs.id, docs.vault_id, docs.ref, docs.source, docs.path, vaults.root, docs.title,
    coalesce(passages.said, docs.created), docs.tags, docs.aliases, docs.category, docs.missing, passages.heading,
    passages.first_line, passages.last_line,
    passages.body, passages.context
from json_each(:ids) as wanted cross join passages on {key} = wanted.value
join docs on docs.id = passages.doc_id join vaults on vaults.id = docs.vault_id
order by passages.id
"""
NOTE = """
select docs.id, docs.vault_id, vaults.root, docs.ref, docs.source, docs.path, docs.title, docs.created,
    docs.created <> docs.mtime, docs.tags, docs.category, docs.description, docs.hash, docs.fingerprint, docs.missing,
    docs.valid_from, docs.valid_until, docs.superseded_by, docs.frontmatter, docs.links
from docs join vaults on vaults.id = docs.vault_id where {which}
"""
AMONG = "docs.{key} in (select value from json_each(:values))"
OF_TABLE = """
docs.id in (
    select doc_id from {table} where vault_id = :vault and {column} in (select value from json_each(:values))
)
"""
FIND_BY = {
    "name": OF_TABLE.format(table="names", column="name"),
    "link": OF_TABLE.format(table="links", column="target"),
}
NAMED = """
select (select min(passages.id) from passages where passages.doc_id = names.doc_id) as first, names.doc_id, names.kind
from names cross join docs on docs.id = names.doc_id
where names.vault_id = :vault and names.name >= :name and names.name <= :last and first is not null and {filters}
group by names.doc_id limit :limit
"""
ANY_ENDING = """
select exists (select 1 from docs indexed by docs_with_an_end where vault_id = docs_vault.value
    and (valid_from is not null or valid_until is not null or superseded_by is not null))
    or exists (select 1 from supersessions where vault_id = docs_vault.value)
from json_each(:vaults) as docs_vault
"""
# a note is superseded from the moment on at which the newer one is there and valid
STANDINGS = """
select docs.id, docs.created, docs.valid_from, docs.valid_until, (
    select newer.ref from names
    cross join supersessions on supersessions.vault_id = names.vault_id and supersessions.name = names.name
    cross join docs as newer on newer.id = supersessions.doc_id
    where names.doc_id = docs.id and newer.id <> docs.id and max(newer.created, coalesce(newer.valid_from, 0)) <= :now
        and not exists (  -- of two that supersede each other, the newer one is valid
            select 1 from names as theirs
            cross join supersessions as back on back.vault_id = theirs.vault_id and back.name = theirs.name
            where theirs.doc_id = newer.id and back.doc_id = docs.id
                and (docs.created, docs.id) > (newer.created, newer.id)
        )
    order by newer.created desc limit 1
), docs.superseded_by, docs.vault_id
from docs where docs.id in (select value from json_each(:ids))
"""
SUCCESSOR = """
select max(newer.created, coalesce(newer.valid_from, 0)), newer.ref, newer.id
from names cross join docs as newer on newer.id = names.doc_id
where names.vault_id = :vault and names.name = :name limit 1
"""
COUNTS = """
select source, fields -> 'source_url' is not null as is_page, count(*),
    sum((select count(*) from passages where doc_id = docs.id)), count(missing)
from docs where vault_id = :vault group by source, is_page order by source, is_page
"""
FILES = "select path, hash, skipped, problem from knowledge_files where vault_id = :vault {which} order by path"
REPORTED = """
and (skipped is not null or problem is not null)
and path not in (select path from docs where vault_id = :vault and missing is not null)
"""

LAST_IDS = "select coalesce((select max(id) from docs), 0), coalesce((select max(id) from passages), 0)"
PUT_DOC = """
insert into docs (id, vault_id, source, path, path_key, file_key, ref, title, description, hash, fingerprint, mtime,
    created, tags, aliases, category, fields, frontmatter, links, valid_from, valid_until, superseded_by)
values (:id, :vault, :source, :path, :path_key, :file_key, :ref, :title, :description, :hash, :fingerprint, :mtime,
    :created, :tags, :aliases, :category, :fields, :frontmatter, :links, :valid_from, :valid_until, :superseded_by)
"""
PUT_PASSAGE = """
insert into passages (id, doc_id, first_line, last_line, heading, body, context, said)
values (:id, :doc, :first_line, :last_line, :heading, :body, :context, :said)
"""
PUT_NAME = "insert into names (vault_id, name, doc_id, kind) values (:vault, :name, :doc, :kind) on conflict do nothing"
PUT_LINK = "insert into links (vault_id, target, doc_id) values (:vault, :target, :doc) on conflict do nothing"
PUT_SUPERSESSION = """
insert into supersessions (vault_id, name, doc_id) values (:vault, :name, :doc) on conflict do nothing
"""
PUT_FILE = """
insert into knowledge_files (vault_id, path, hash, skipped, problem) values (:vault, :path, :hash, :skipped, :problem)
on conflict (vault_id, path) do update set hash = excluded.hash, skipped = excluded.skipped, problem = excluded.problem
"""
PUT_UNLISTED = """
insert into unlisted (vault_id, path) select :vault, value from json_each(:paths) where true on conflict do nothing
"""
DROP_UNLISTED = "delete from unlisted where vault_id = :vault and path in (select value from json_each(:paths))"
COUNT_IN = "update vaults set notes = notes + :notes, passages = passages + :passages where id = :vault"
IDS_OF = "select id, path from docs where vault_id = :vault and path in (select value from json_each(:paths))"
PASSAGE_IDS = "select id from passages where doc_id in (select value from json_each(:docs))"
DROP_DOCS = (
    "delete from passages where doc_id in (select value from json_each(:docs))",
    "delete from names where doc_id in (select value from json_each(:docs))",
    "delete from links where doc_id in (select value from json_each(:docs))",
    "delete from supersessions where doc_id in (select value from json_each(:docs))",
    "delete from docs where id in (select value from json_each(:docs))",
)
DROP_FILES = "delete from knowledge_files where vault_id = :vault and path in (select value from json_each(:paths))"
SET_MISSING = """
update docs set missing = iif(:since is null, null, coalesce(missing, :since))
where vault_id = :vault and path in (select value from json_each(:paths))
"""
SET_TIME = """
update docs set mtime = :mtime, created = case when created = mtime then :mtime else created end
where vault_id = :vault and path = :path and mtime <> :mtime
"""
PUT_LISTING = """
insert into folders (vault_id, path, listing) values (:vault, :path, :listing)
on conflict (vault_id, path) do update set listing = excluded.listing where listing <> excluded.listing
"""
DROP_LISTING = "delete from folders where vault_id = :vault and path = :path"
SET_SYNCED = "update vaults set synced_at = :moment where id = :vault"
EVERY_FILE = "select path from knowledge_files where vault_id = :vault"
FORGET_VAULT = (
    "delete from folders where vault_id = :vault",
    "delete from unlisted where vault_id = :vault",
    "update vaults set synced_at = null where id = :vault",
)


class NoteReader(VectorReader):
    """The part of a read transaction that knows notes."""

    def passages(self, ids: Sequence[int] = (), *, notes: Sequence[int] = ()) -> dict[int, StoredPassage]:
        found: list[Any] = []
        for key, wanted in (("passages.id", ids), ("passages.doc_id", notes)):
            if wanted:
                found += fetch(self.connection, OPEN_PASSAGES.format(key=key), {"ids": ids_text(wanted)})
        return {row[0]: StoredPassage._make((*row[:9], _texts(row[9]), *row[10:])) for row in found}

    def standings(self, notes: Sequence[int], now: float) -> dict[int, Standing]:
        vaults = fetch(
            self.connection,
            "select distinct vault_id from docs where id in (select value from json_each(:ids))",
            {"ids": ids_text(notes)},
        )
        ending = fetch(self.connection, ANY_ENDING, {"vaults": ids_text(vault for (vault,) in vaults)})
        if not any(one for (one,) in ending):
            return {}
        found: dict[int, Standing] = {}
        for row in fetch(self.connection, STANDINGS, {"ids": ids_text(notes), "now": now}):
            note, created, first, last, newer, named, vault = row
            if newer is None and named is not None:
                newer = self._successor(vault, note, named, now)
            found[note] = Standing(created, first, last, newer)
        return found

    def _successor(self, vault: int, note: int, named: str, now: float) -> str | None:
        rows = fetch(self.connection, SUCCESSOR, {"vault": vault, "name": fold_name(named)})
        # a note that is not here may still have replaced it; one that names itself means nothing
        since, ref, which = rows[0] if rows else (now, named, None)
        return ref if since <= now and which != note else None

    def named(self, scope: Scope, name: str, longer: bool = False) -> list[Named]:
        found: list[Named] = []
        for vault in scope.vaults if name else ():
            where, values = conditions(scope, vault, of_notes=True)
            last = f"{name} {words.LAST}" if longer else name
            bound = {**values, "vault": vault, "name": name, "last": last, "limit": MOST_NAMED + 1}
            found += [Named(*row) for row in fetch(self.connection, NAMED.format(filters=where), bound)]
        return found if len(found) <= MOST_NAMED else []

    def list_notes(self, scope: Scope, limit: int = -1) -> list[StoredNote]:
        found: list[StoredNote] = []
        for vault in scope.vaults:
            where, values = conditions(scope, vault, of_notes=True)
            statement = NOTE.format(which=where) + " order by docs.created desc, docs.path limit :limit"
            found += [_note(row) for row in fetch(self.connection, statement, {**values, "limit": limit})]
        found.sort(key=lambda note: (-note.created, note.path))
        return found if limit < 0 else found[:limit]

    def find_notes(self, vault: int | None, key: NoteKey, values: Collection[object]) -> list[StoredNote]:
        which = FIND_BY.get(key, AMONG.format(key=key)) + (" and docs.vault_id = :vault" if vault is not None else "")
        limit = MOST_FOUND_BY_LINK if key == "link" else -1
        bound = {"vault": vault, "values": stored_json(list(values)), "limit": limit}
        statement = f"{NOTE.format(which=which)} order by docs.path limit :limit"
        return [_note(row) for row in fetch(self.connection, statement, bound)]

    def files(self, vault: int, paths: Collection[str] | None = None, reported: bool = False) -> dict[str, StoredFile]:
        which = REPORTED if reported else ""
        if paths is not None:
            which = "and path in (select value from json_each(:paths))"
        bound = {"vault": vault, "paths": stored_json(list(paths or ()))}
        return {path: StoredFile(*rest) for path, *rest in fetch(self.connection, FILES.format(which=which), bound)}

    def counts(self, vault: int) -> list[SourceCount]:
        found = fetch(self.connection, COUNTS, {"vault": vault})
        return [SourceCount(source, bool(is_page), *counted) for source, is_page, *counted in found]

    def listings(self, vault: int) -> tuple[dict[str, bytes], list[str]]:
        stored = dict(
            fetch(self.connection, "select path, listing from folders where vault_id = :vault", {"vault": vault})
        )
        loose = fetch(self.connection, "select path from unlisted where vault_id = :vault", {"vault": vault})
        return stored, [path for (path,) in loose]


class NoteWriter(NoteReader, VectorWriter):
    """The part of a write transaction that changes notes."""

    def add_vault(self, origin: Origin) -> int:
        found = self.vault(origin)
        if found is not None:
            return found.id
        self.connection.execute(ADD_VAULT, origin._asdict())
        vault = self.connection.last_insert_rowid()
        self.connection.execute(words.CREATE.format(table=words.words_table(vault)))
        return vault

    def put_files(self, vault: int, files: Sequence[IndexedFile]) -> None:
        paths = [file.path for file in files]
        self._drop_notes(vault, paths)
        self.connection.execute(PUT_UNLISTED, {"vault": vault, "paths": stored_json(paths)})
        self.connection.executemany(PUT_FILE, [_file_row(vault, file) for file in files])
        docs, names, links, supersessions = list[Row](), list[Row](), list[Row](), list[Row]()
        passages, indexed = list[Row](), list[Row]()
        ((doc, passage),) = fetch(self.connection, LAST_IDS)
        for file in files:
            if file.note is None:
                continue
            doc += 1
            made, here = derive(file, file.note), {"vault": vault, "doc": doc}
            docs.append({**made.columns, "id": doc, "vault": vault, "fields": stored_json(made.fields)})
            names += [{**here, "name": name, "kind": kind} for name, kind in made.names.items()]
            links += [{**here, "target": target} for target in made.links]
            supersessions += [{**here, "name": name} for name in made.supersedes]
            for row, columns in made.passages:
                passage += 1
                passages.append({**row, "id": passage, "doc": doc})
                indexed.append({**{name: " ".join(tokens) for name, tokens in columns.items()}, "id": passage})
        self.connection.executemany(PUT_DOC, docs)
        self.connection.executemany(PUT_NAME, names)
        self.connection.executemany(PUT_LINK, links)
        self.connection.executemany(PUT_SUPERSESSION, supersessions)
        self.connection.executemany(PUT_PASSAGE, passages)
        self.connection.executemany(words.PUT.format(table=words.words_table(vault)), indexed)
        self.add_waiting(vault, [row["id"] for row in passages])
        self.connection.execute(COUNT_IN, {"vault": vault, "notes": len(docs), "passages": len(passages)})

    def drop_files(self, vault: int, paths: Collection[str] | None) -> list[str]:
        known = fetch(self.connection, EVERY_FILE, {"vault": vault}) if paths is None else []
        chosen = [path for (path,) in known] if paths is None else list(paths)
        dropped = self._drop_notes(vault, chosen)
        self.connection.execute(DROP_FILES, {"vault": vault, "paths": stored_json(chosen)})
        for statement in FORGET_VAULT if paths is None else ():
            self.connection.execute(statement, {"vault": vault})
        return dropped

    def finish_sync(self, vault: int, state: SyncState) -> list[str]:
        here = {"vault": vault}
        times = [{**here, "path": path, "mtime": mtime} for path, mtime in state.times.items()]
        self.connection.executemany(SET_TIME, times)
        self.connection.execute(SET_MISSING, {**here, "paths": stored_json(list(state.times)), "since": None})
        missing = {**here, "paths": stored_json(list(state.missing)), "since": state.at}
        self.connection.execute(SET_MISSING, missing)
        kept = [path for _, path in fetch(self.connection, IDS_OF, missing)]
        never_notes = [path for path in state.missing if path not in kept]
        self.connection.execute(DROP_FILES, {**here, "paths": stored_json(never_notes)})
        for path, listing in state.listings.items():
            statement = DROP_LISTING if listing is None else PUT_LISTING
            self.connection.execute(statement, {**here, "path": path, "listing": listing})
        for statement, wanted in ((PUT_UNLISTED, True), (DROP_UNLISTED, False)):
            paths = [path for path, add in state.unlisted.items() if add is wanted]
            self.connection.execute(statement, {**here, "paths": stored_json(paths)})
        self.connection.execute(SET_SYNCED, {**here, "moment": state.at})
        return kept

    def _drop_notes(self, vault: int, paths: Collection[str]) -> list[str]:
        found = fetch(self.connection, IDS_OF, {"vault": vault, "paths": stored_json(list(paths))})
        if not found:
            return []
        docs = ids_text(doc for doc, _ in found)
        passages = [passage for (passage,) in fetch(self.connection, PASSAGE_IDS, {"docs": docs})]
        self.drop_vectors(vault, passages)
        drop_words = words.DROP.format(table=words.words_table(vault))
        self.connection.execute(drop_words, {"ids": ids_text(passages)})
        for statement in DROP_DOCS:
            self.connection.execute(statement, {"docs": docs})
        self.connection.execute(COUNT_IN, {"vault": vault, "notes": -len(found), "passages": -len(passages)})
        return [path for _, path in found]


def _note(row: Any) -> StoredNote:
    return StoredNote._make((*row[:8], bool(row[8]), _texts(row[9]), *row[10:]))


def _texts(listed: str) -> tuple[str, ...]:
    return tuple(json.loads(listed)) if listed != "[]" else ()


def _file_row(vault: int, file: IndexedFile) -> Row:
    problem = file.note.problem if file.note else None
    return {"vault": vault, "path": file.path, "hash": file.hash, "skipped": file.skipped, "problem": problem}
