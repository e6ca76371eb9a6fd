"""Notes, files, names and links: their rows, written with COPY and read inside one transaction."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any

from co_cli.index.derivation import derive
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
from co_cli.index.postgres.conditions import conditions, copy_rows, fetch, field_text
from co_cli.index.postgres.postings import LAST, add_postings, drop_postings, token_columns
from co_cli.index.postgres.vector_tables import VectorTables, VectorTableWriter
from co_cli.sources.origin import Origin

ADD_VAULT = """
insert into vaults (root, kind, name, only_file) values (%(root)s, %(kind)s, %(name)s, %(only)s) on conflict do nothing
"""
OPEN_PASSAGES = """
select passages.id, docs.id, docs.vault_id, docs.ref, docs.source, docs.path, vaults.root, docs.title,
    coalesce(passages.said, docs.created), docs.tags, docs.aliases, docs.category, docs.missing, passages.heading,
    passages.first_line, passages.last_line,
    passages.body, passages.context
from passages join docs on docs.id = passages.doc_id join vaults on vaults.id = docs.vault_id
where {key} = any(%(ids)s) order by passages.id
"""
NOTE = """
select docs.id, docs.vault_id, vaults.root, docs.ref, docs.source, docs.path, docs.title, docs.created,
    docs.created <> docs.mtime, docs.tags, docs.category, docs.description, docs.hash, docs.fingerprint, docs.missing,
    docs.valid_from, docs.valid_until, docs.superseded_by, docs.frontmatter, docs.links
from docs join vaults on vaults.id = docs.vault_id where {which}
"""
OF_TABLE = "docs.id in (select doc_id from {table} where vault_id = %(vault)s and {column} = any(%(values)s))"
FIND_BY = {
    "name": OF_TABLE.format(table="names", column="name"),
    "link": OF_TABLE.format(table="links", column="target"),
}
NAMED = """
select distinct on (names.doc_id) first.id, names.doc_id, names.kind
from names join docs on docs.id = names.doc_id
join lateral (select min(id) as id from passages where doc_id = docs.id) as first on first.id is not null
where names.vault_id = %(vault)s and names.name >= %(name)s and names.name <= %(last)s and {filters}
order by names.doc_id, names.name limit %(limit)s
"""
ANY_ENDING = """
with vault as (select distinct vault_id as id from docs where id = any(%(ids)s))
select exists (select from docs where vault_id in (select id from vault)
    and (valid_from is not null or valid_until is not null or superseded_by is not null))
    or exists (select from supersessions where vault_id in (select id from vault))
"""
# a note is superseded from the moment on at which the newer one is there and valid
STANDINGS = """
select docs.id, docs.created, docs.valid_from, docs.valid_until, (
    select newer.ref from names
    join supersessions on supersessions.vault_id = names.vault_id and supersessions.name = names.name
    join docs as newer on newer.id = supersessions.doc_id
    where names.doc_id = docs.id and newer.id <> docs.id
        and greatest(newer.created, coalesce(newer.valid_from, 0)) <= %(now)s
        and not exists (  -- of two that supersede each other, the newer one is valid
            select from names as theirs
            join supersessions as back on back.vault_id = theirs.vault_id and back.name = theirs.name
            where theirs.doc_id = newer.id and back.doc_id = docs.id
                and (docs.created, docs.id) > (newer.created, newer.id)
        )
    order by newer.created desc limit 1
), docs.superseded_by, docs.vault_id
from docs where docs.id = any(%(ids)s)
"""
SUCCESSOR = """
select greatest(newer.created, coalesce(newer.valid_from, 0)), newer.ref, newer.id
from names join docs as newer on newer.id = names.doc_id
where names.vault_id = %(vault)s and names.name = %(name)s order by newer.id limit 1
"""
COUNTS = r"""
select source, exists (select from unnest(fields) as field where starts_with(field, E'source_url\t')) as is_page,
    count(*), sum((select count(*) from passages where doc_id = docs.id))::bigint, count(missing)
from docs where vault_id = %(vault)s group by source, is_page order by source, is_page
"""
FILES = "select path, hash, skipped, problem from knowledge_files where vault_id = %(vault)s {which} order by path"
REPORTED = """
and (skipped is not null or problem is not null)
and path not in (select path from docs where vault_id = %(vault)s and missing is not null)
"""
LISTINGS = "select path, listing from folders where vault_id = %(vault)s"
UNLISTED = "select path from unlisted where vault_id = %(vault)s"

DOC = """
id vault_id source path path_key file_key ref title description hash fingerprint mtime created tags aliases category
fields speaker frontmatter links valid_from valid_until superseded_by
""".split()
PASSAGE = "id doc_id vault_id first_line last_line heading body context said tokens context_tokens length".split()
TAKE_IDS = "select nextval('{sequence}') from generate_series(1, %(count)s)"
COUNT_IN = """
update vaults set notes = notes + %(notes)s, passages = passages + %(passages)s where id = %(vault)s
"""
IDS_OF = "select id, path from docs where vault_id = %(vault)s and path = any(%(paths)s)"
PASSAGE_IDS = "select id from passages where doc_id = any(%(docs)s)"
DROP_DOCS = (
    "delete from passages where doc_id = any(%(docs)s)",
    "delete from names where doc_id = any(%(docs)s)",
    "delete from links where doc_id = any(%(docs)s)",
    "delete from supersessions where doc_id = any(%(docs)s)",
    "delete from docs where id = any(%(docs)s)",
)
DROP_FILES = "delete from knowledge_files where vault_id = %(vault)s and path = any(%(paths)s)"
DROP_UNLISTED = "delete from unlisted where vault_id = %(vault)s and path = any(%(paths)s)"
DROP_LISTINGS = "delete from folders where vault_id = %(vault)s and path = any(%(paths)s)"
SET_MISSING = """
update docs set missing = case when %(since)s::float8 is null then null else coalesce(missing, %(since)s) end
where vault_id = %(vault)s and path = any(%(paths)s)
    and (missing is null) <> (%(since)s::float8 is null)
"""
SET_TIMES = """
update docs set mtime = seen.mtime, created = case when created = docs.mtime then seen.mtime else created end
from unnest(%(paths)s::text[], %(times)s::float8[]) as seen (path, mtime)
where vault_id = %(vault)s and docs.path = seen.path and docs.mtime <> seen.mtime
"""
SET_SYNCED = "update vaults set synced_at = %(moment)s where id = %(vault)s"
NOTE_PATHS = "select path from docs where vault_id = %(vault)s"
OF_VAULT = "docs passages names links supersessions postings knowledge_files folders unlisted".split()
FORGET = "delete from {table} where vault_id = %(vault)s"
FORGET_COUNTS = """
update vaults set synced_at = null, notes = 0, passages = 0, tokens = 0, postings = 0 where id = %(vault)s
"""


class NoteTables(VectorTables):
    """The part of a read transaction that knows notes."""

    def passages(self, ids: Sequence[int] = (), *, notes: Sequence[int] = ()) -> dict[int, StoredPassage]:
        found: list[Any] = []
        for key, wanted in (("passages.id", ids), ("passages.doc_id", notes)):
            if wanted:
                found += fetch(self.connection, OPEN_PASSAGES.format(key=key), {"ids": list(wanted)})
        return {
            row[0]: StoredPassage._make((*row[:6], self.local_root(row[6]), *row[7:9], tuple(row[9]), *row[10:]))
            for row in found
        }

    def standings(self, notes: Sequence[int], now: float) -> dict[int, Standing]:
        bound = {"ids": list(notes), "now": now}
        if not fetch(self.connection, ANY_ENDING, bound)[0][0]:
            return {}
        found: dict[int, Standing] = {}
        for note, created, first, last, newer, named, vault in fetch(self.connection, STANDINGS, bound):
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
            last = f"{name} {LAST}" if longer else name
            bound = {**values, "vault": vault, "name": name, "last": last, "limit": MOST_NAMED + 1}
            found += [Named(*row) for row in fetch(self.connection, NAMED.format(filters=where), bound)]
        return found if len(found) <= MOST_NAMED else []

    def list_notes(self, scope: Scope, limit: int = -1) -> list[StoredNote]:
        found: list[StoredNote] = []
        for vault in scope.vaults:
            where, values = conditions(scope, vault, of_notes=True)
            statement = NOTE.format(which=where) + " order by docs.created desc, docs.path limit %(limit)s"
            bound = {**values, "limit": None if limit < 0 else limit}
            found += [self._note(row) for row in fetch(self.connection, statement, bound)]
        found.sort(key=lambda note: (-note.created, note.path))
        return found if limit < 0 else found[:limit]

    def find_notes(self, vault: int | None, key: NoteKey, values: Collection[object]) -> list[StoredNote]:
        which = FIND_BY.get(key, f"docs.{key} = any(%(values)s)")
        which += " and docs.vault_id = %(vault)s" if vault is not None else ""
        limit = MOST_FOUND_BY_LINK if key == "link" else None
        bound = {"vault": vault, "values": list(values), "limit": limit}
        statement = f"{NOTE.format(which=which)} order by docs.path limit %(limit)s"
        return [self._note(row) for row in fetch(self.connection, statement, bound)]

    def files(self, vault: int, paths: Collection[str] | None = None, reported: bool = False) -> dict[str, StoredFile]:
        which = REPORTED if reported else ""
        if paths is not None:
            which = "and path = any(%(paths)s)"
        bound = {"vault": vault, "paths": list(paths or ())}
        return {path: StoredFile(*rest) for path, *rest in fetch(self.connection, FILES.format(which=which), bound)}

    def counts(self, vault: int) -> list[SourceCount]:
        return [SourceCount(*row) for row in fetch(self.connection, COUNTS, {"vault": vault})]

    def listings(self, vault: int) -> tuple[dict[str, bytes], list[str]]:
        stored = dict(fetch(self.connection, LISTINGS, {"vault": vault}, binary=True))
        return stored, [path for (path,) in fetch(self.connection, UNLISTED, {"vault": vault})]

    def _note(self, row: Any) -> StoredNote:
        return StoredNote._make((*row[:2], self.local_root(row[2]), *row[3:9], tuple(row[9]), *row[10:]))


class NoteTableWriter(NoteTables, VectorTableWriter):
    """The part of a write transaction that changes notes."""

    def add_vault(self, origin: Origin) -> int:
        found = self.vault(origin)
        if found is None:
            fetch(self.connection, ADD_VAULT, self.stored_origin(origin))  # waits for another who adds it
            found = self.vault(origin)
        assert found
        self.lock(found.id)
        return found.id

    def put_files(self, vault: int, files: Sequence[IndexedFile]) -> None:
        self.lock(vault)
        paths = [file.path for file in files]
        self._drop_notes(vault, paths)
        here = {"vault": vault, "paths": paths}
        fetch(self.connection, DROP_FILES, here)
        self._put_unlisted(vault, paths)
        rows = [(vault, file.path, file.hash, file.skipped, file.note and file.note.problem) for file in files]
        copy_rows(self.connection, "knowledge_files", ("vault_id", "path", "hash", "skipped", "problem"), rows)
        made = [derive(file, file.note) for file in files if file.note is not None]
        docs = self._ids("doc_ids", len(made))
        numbers = iter(self._ids("passage_ids", sum(len(note.passages) for note in made)))
        notes, names, links, supersessions = list[Any](), list[Any](), list[Any](), list[Any]()
        passages = list[dict[str, Any]]()
        for doc, note in zip(docs, made, strict=True):
            fields = [field_text(key, value) for key, values in note.fields.items() for value in values]
            speaker = next(iter(note.fields.get("provenance", ())), "user")
            extra = {"id": doc, "vault_id": vault, "fields": fields, "speaker": speaker, "tags": list(note.tags)}
            columns = {**note.columns, **extra}
            notes.append([columns[name] for name in DOC])
            names += [(vault, name, doc, kind) for name, kind in note.names.items()]
            links += [(vault, target, doc) for target in note.links]
            supersessions += [(vault, name, doc) for name in note.supersedes]
            for row, tokens in note.passages:
                own, context, length = token_columns(tokens)
                ids = {"id": next(numbers), "doc_id": doc, "vault_id": vault}
                passages.append({**row, **ids, "tokens": own, "context_tokens": context, "length": length})
        copy_rows(self.connection, "docs", DOC, notes)
        copy_rows(self.connection, "names", ("vault_id", "name", "doc_id", "kind"), names)
        copy_rows(self.connection, "links", ("vault_id", "target", "doc_id"), links)
        copy_rows(self.connection, "supersessions", ("vault_id", "name", "doc_id"), supersessions)
        copy_rows(self.connection, "passages", PASSAGE, ([row[name] for name in PASSAGE] for row in passages))
        add_postings(
            self.connection,
            vault,
            [(row["id"], row["tokens"], row["context_tokens"], row["length"]) for row in passages],
        )
        self.add_waiting(vault, [row["id"] for row in passages])
        fetch(self.connection, COUNT_IN, {"vault": vault, "notes": len(docs), "passages": len(passages)})

    def drop_files(self, vault: int, paths: Collection[str] | None) -> list[str]:
        self.lock(vault)
        if paths is not None:
            dropped = self._drop_notes(vault, paths)
            fetch(self.connection, DROP_FILES, {"vault": vault, "paths": list(paths)})
            return dropped
        here = {"vault": vault}
        dropped = [path for (path,) in fetch(self.connection, NOTE_PATHS, here)]
        for space in self.spaces_of(vault):
            self.forget_vectors(vault, space)
        for table in OF_VAULT:
            fetch(self.connection, FORGET.format(table=table), here)
        fetch(self.connection, FORGET_COUNTS, here)
        return dropped

    def finish_sync(self, vault: int, state: SyncState) -> list[str]:
        self.lock(vault)
        here = {"vault": vault}
        times = {**here, "paths": list(state.times), "times": list(state.times.values()), "since": None}
        fetch(self.connection, SET_TIMES, times)
        fetch(self.connection, SET_MISSING, times)
        missing = {**here, "paths": list(state.missing), "since": state.at}
        fetch(self.connection, SET_MISSING, missing)
        kept = {path for _, path in fetch(self.connection, IDS_OF, missing)}
        fetch(self.connection, DROP_FILES, {**here, "paths": [path for path in state.missing if path not in kept]})
        fetch(self.connection, DROP_LISTINGS, {**here, "paths": list(state.listings)})
        rows = [(vault, path, listing) for path, listing in state.listings.items() if listing is not None]
        copy_rows(self.connection, "folders", ("vault_id", "path", "listing"), rows)
        fetch(self.connection, DROP_UNLISTED, {**here, "paths": list(state.unlisted)})
        self._put_unlisted(vault, [path for path, add in state.unlisted.items() if add])
        fetch(self.connection, SET_SYNCED, {**here, "moment": state.at})
        return [path for path in state.missing if path in kept]

    def _put_unlisted(self, vault: int, paths: Sequence[str]) -> None:
        fetch(self.connection, DROP_UNLISTED, {"vault": vault, "paths": list(paths)})
        copy_rows(self.connection, "unlisted", ("vault_id", "path"), [(vault, path) for path in paths])

    def _ids(self, sequence: str, count: int) -> list[int]:
        return [one for (one,) in fetch(self.connection, TAKE_IDS.format(sequence=sequence), {"count": count})]

    def _drop_notes(self, vault: int, paths: Collection[str]) -> list[str]:
        found = fetch(self.connection, IDS_OF, {"vault": vault, "paths": list(paths)})
        if not found:
            return []
        docs = [doc for doc, _ in found]
        passages = [passage for (passage,) in fetch(self.connection, PASSAGE_IDS, {"docs": docs})]
        self.drop_vectors(vault, passages)
        drop_postings(self.connection, vault, passages)
        for statement in DROP_DOCS:
            fetch(self.connection, statement, {"docs": docs})
        fetch(self.connection, COUNT_IN, {"vault": vault, "notes": -len(docs), "passages": -len(passages)})
        return [path for _, path in found]
