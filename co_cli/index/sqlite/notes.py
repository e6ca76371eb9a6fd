"""Notes, files, names and links: their rows, written and read inside one transaction."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from co_cli.index.engine import (
    Counts,
    IndexedFile,
    Linking,
    Named,
    NoteFacts,
    Scope,
    Standing,
    StoredFile,
    StoredNote,
    StoredPassage,
)
from co_cli.index.names import fold_name, names_of
from co_cli.index.sqlite import words
from co_cli.index.sqlite.connection import fetch
from co_cli.index.sqlite.filters import conditions, ids_text
from co_cli.index.sqlite.vectors import VectorReader, VectorWriter
from co_cli.index.tokens import fold, tokens
from co_cli.notes.refs import FOLDERS, without_ending
from co_cli.notes.similarity import fingerprint
from co_cli.notes.wikilinks import link_key
from co_cli.sources.origin import Origin
from co_cli.values import Passage

if TYPE_CHECKING:
    from co_cli.notes.note import Note

MOST_NAMED = 20
"""A name that more notes have, such as `Meeting`, tells none of them apart."""
MOST_LINKING = 2_000
OWN_COLUMN = frozenset(
    """
    title tags tag aliases alias description context kind created updated modified date provenance valid_from
    valid_until superseded_by loading
    """.split()
)
"""Frontmatter that is searched elsewhere, or says nothing that people search for."""
KEYS = ("ref", "path", "path_key", "fingerprint")

FIND_VAULT = "select id from vaults where root = :root and kind = :kind and name = :name and only = :only"
ADD_VAULT = "insert into vaults (root, kind, name, only) values (:root, :kind, :name, :only)"
ORIGINS = "select id, kind, root, name, only from vaults order by id"
COUNTS = """
select max(synced_at), coalesce(sum(notes), 0), coalesce(sum(passages), 0) from vaults
where id in (select value from json_each(:vaults))
"""
COUNT_SOURCES = """
select source, count(distinct docs.id), count(passages.id) from docs left join passages on passages.doc_id = docs.id
where vault_id = :vault group by source order by source
"""
OPEN_PASSAGES = """
select passages.id, docs.id, docs.vault_id, docs.ref, docs.source, docs.path, vaults.root, docs.title, docs.created,
    docs.tags, docs.aliases, docs.category, docs.missing, passages.heading, passages.first_line, passages.last_line,
    passages.body, passages.context
from passages join docs on docs.id = passages.doc_id join vaults on vaults.id = docs.vault_id
where {which} order by passages.id
"""
NOTE = """
select docs.id, docs.vault_id, vaults.root, docs.ref, docs.source, docs.path, docs.title, docs.created, docs.tags,
    docs.category, docs.description, docs.hash, docs.fingerprint, docs.missing, docs.valid_until, docs.superseded_by
from docs join vaults on vaults.id = docs.vault_id where {which}
"""
FACTS = """
select docs.id, docs.vault_id, vaults.root, docs.path, docs.ref, docs.fingerprint, docs.created,
    docs.created <> docs.mtime, docs.tags, docs.valid_from, docs.valid_until, docs.frontmatter
from docs join vaults on vaults.id = docs.vault_id where docs.id in (select value from json_each(:ids))
"""
COUNT_TAGS = """
select tag.value, count(*) as notes from docs, json_each(docs.tags) as tag where {which} group by tag.value
"""
NAMED = """
select (select min(passages.id) from passages where passages.doc_id = names.doc_id) as first, names.doc_id, names.kind
from names cross join docs on docs.id = names.doc_id
where names.vault_id = :vault and names.name = :name and first is not null and {filters} limit :limit
"""
NAMESAKES = """
select distinct docs.id, docs.path, docs.ref
from json_each(:names) as wanted cross join names on names.vault_id = :vault and names.name = wanted.value
cross join docs on docs.id = names.doc_id
"""
LINKING = """
select docs.id, docs.path, docs.ref, docs.title, link.value
from json_each(:keys) as wanted cross join links on links.vault_id = :vault and links.target = wanted.value
cross join docs on docs.id = links.doc_id, json_each(docs.links) as link
order by docs.path limit :most
"""
LINKS = """
select docs.id, link.value from docs, json_each(docs.links) as link
where docs.id in (select value from json_each(:ids))
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
FILES = "select path, hash, skipped, problem from knowledge_files where vault_id = :vault {which} order by path"

LAST_IDS = "select coalesce((select max(id) from docs), 0), coalesce((select max(id) from passages), 0)"
PUT_DOC = """
insert into docs (id, vault_id, source, path, path_key, file_key, ref, title, description, hash, fingerprint, mtime,
    created, tags, aliases, category, fields, frontmatter, links, valid_from, valid_until, superseded_by)
values (:id, :vault, :source, :path, :path_key, :file_key, :ref, :title, :description, :hash, :fingerprint, :mtime,
    :created, :tags, :aliases, :category, :fields, :frontmatter, :links, :valid_from, :valid_until, :superseded_by)
"""
PUT_PASSAGE = """
insert into passages (id, doc_id, first_line, last_line, heading, body, context)
values (:id, :doc, :first_line, :last_line, :heading, :body, :context)
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

Row = dict[str, Any]
ENCODER = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"), default=str)


class NoteReader(VectorReader):
    """The part of a read transaction that knows notes."""

    def vault(self, origin: Origin) -> int | None:
        return self.connection.execute(FIND_VAULT, origin._asdict()).get

    def origins(self) -> dict[int, Origin]:
        return {number: Origin(*rest) for number, *rest in fetch(self.connection, ORIGINS)}

    def counts(self, vaults: Iterable[int]) -> Counts:
        return Counts(*fetch(self.connection, COUNTS, {"vaults": ids_text(vaults)})[0])

    def count_sources(self, vault: int) -> dict[str, Counts]:
        rows = fetch(self.connection, COUNT_SOURCES, {"vault": vault})
        return {source: Counts(None, notes, passages) for source, notes, passages in rows}

    def passages(self, ids: Sequence[int]) -> dict[int, StoredPassage]:
        which = "passages.id in (select value from json_each(:ids))"
        rows = fetch(self.connection, OPEN_PASSAGES.format(which=which), {"ids": ids_text(ids)})
        return {row[0]: _passage(row) for row in rows}

    def passages_of(self, vault: int, ref: str | None = None) -> Iterator[StoredPassage]:
        which = "docs.vault_id = :vault" + (" and docs.ref = :ref" if ref is not None else "")
        for row in self.connection.execute(OPEN_PASSAGES.format(which=which), {"vault": vault, "ref": ref}):
            yield _passage(row)

    def facts(self, notes: Sequence[int]) -> dict[int, NoteFacts]:
        rows = fetch(self.connection, FACTS, {"ids": ids_text(notes)})
        return {
            row[0]: NoteFacts._make((*row[1:7], bool(row[7]), _texts(row[8]), *row[9:11], json.loads(row[11])))
            for row in rows
        }

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

    def named(self, scope: Scope, name: str) -> list[Named]:
        found: list[Named] = []
        for vault in scope.vaults if name else ():
            where, values = conditions(scope, vault)
            bound = {**values, "vault": vault, "name": name, "limit": MOST_NAMED + 1}
            found += [Named(*row) for row in fetch(self.connection, NAMED.format(filters=where), bound)]
        return found if len(found) <= MOST_NAMED else []

    def list_notes(self, scope: Scope, limit: int = -1) -> list[StoredNote]:
        found: list[StoredNote] = []
        for vault in scope.vaults:
            where, values = conditions(scope, vault)
            statement = NOTE.format(which=where) + " order by docs.created desc, docs.path limit :limit"
            found += [_note(row) for row in fetch(self.connection, statement, {**values, "limit": limit})]
        found.sort(key=lambda note: (-note.created, note.path))
        return found if limit < 0 else found[:limit]

    def find_notes(self, vault: int, key: str, values: Collection[str]) -> list[StoredNote]:
        if key not in KEYS:
            raise ValueError(f"notes are found by {', '.join(KEYS)}, not {key!r}")
        which = f"docs.vault_id = :vault and docs.{key} in (select value from json_each(:values))"
        bound = {"vault": vault, "values": _json(list(values))}
        return [_note(row) for row in fetch(self.connection, NOTE.format(which=which), bound)]

    def frontmatter(self, vault: int) -> dict[str, dict[str, object]]:
        rows = fetch(self.connection, "select path, frontmatter from docs where vault_id = :vault", {"vault": vault})
        return {path: json.loads(text) for path, text in rows}

    def tags(self, scope: Scope) -> dict[str, int]:
        counts: dict[str, int] = {}
        for vault in scope.vaults:
            where, values = conditions(scope, vault)
            for tag, notes in fetch(self.connection, COUNT_TAGS.format(which=where), values):
                counts[tag] = counts.get(tag, 0) + notes
        return dict(sorted(counts.items(), key=lambda pair: (-pair[1], pair[0])))

    def link_targets(self, notes: Sequence[int]) -> dict[int, list[str]]:
        found: dict[int, list[str]] = {}
        for note, target in fetch(self.connection, LINKS, {"ids": ids_text(notes)}):
            found.setdefault(note, []).append(str(target))
        return found

    def linking(self, vault: int, keys: Collection[str]) -> list[Linking]:
        bound = {"vault": vault, "keys": _json(sorted(keys)), "most": MOST_LINKING}
        found = [Linking._make((*row[:4], str(row[4]))) for row in fetch(self.connection, LINKING, bound)]
        return [link for link in found if link_key(link.target) in keys]

    def namesakes(self, vault: int, names: Collection[str]) -> list[tuple[int, str, str]]:
        return fetch(self.connection, NAMESAKES, {"vault": vault, "names": _json(sorted(names))})

    def files(self, vault: int, paths: Collection[str] | None = None, reported: bool = False) -> dict[str, StoredFile]:
        which = "and (skipped is not null or problem is not null)" if reported else ""
        if paths is not None:
            which = "and path in (select value from json_each(:paths))"
        bound = {"vault": vault, "paths": _json(list(paths or ()))}
        return {path: StoredFile(*rest) for path, *rest in fetch(self.connection, FILES.format(which=which), bound)}

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
        if found is None:
            self.connection.execute(ADD_VAULT, origin._asdict())
            found = self.connection.last_insert_rowid()
            self.connection.execute(words.CREATE.format(table=words.words_table(found)))
        return found

    def put_files(self, vault: int, files: Sequence[IndexedFile]) -> None:
        paths = [file.path for file in files]
        self._drop_notes(vault, paths)
        self.connection.execute(PUT_UNLISTED, {"vault": vault, "paths": _json(paths)})
        self.connection.executemany(PUT_FILE, [_file_row(vault, file) for file in files])
        docs, names, links, supersessions = list[Row](), list[Row](), list[Row](), list[Row]()
        passages, indexed = list[Row](), list[Row]()
        ((doc, passage),) = fetch(self.connection, LAST_IDS)
        for file in files:
            if file.note is None:
                continue
            doc += 1
            note = file.note
            docs.append(_doc_row(vault, doc, file, note))
            names += [{"vault": vault, "name": name, "doc": doc, "kind": kind} for name, kind in names_of(note).items()]
            targets = {key for target in note.links if (key := link_key(storable(target)))}
            links += [{"vault": vault, "target": target, "doc": doc} for target in targets]
            older = {name for target in note.supersedes if (name := fold_name(storable(target)))}
            supersessions += [{"vault": vault, "name": name, "doc": doc} for name in older]
            for row, fields in _passage_rows(note, file.passages):
                passage += 1
                passages.append({**row, "id": passage, "doc": doc})
                indexed.append({**fields, "id": passage})
        self.connection.executemany(PUT_DOC, docs)
        self.connection.executemany(PUT_NAME, names)
        self.connection.executemany(PUT_LINK, links)
        self.connection.executemany(PUT_SUPERSESSION, supersessions)
        self.connection.executemany(PUT_PASSAGE, passages)
        self.connection.executemany(words.PUT.format(table=words.words_table(vault)), indexed)
        self.add_waiting(vault, [row["id"] for row in passages])
        self.connection.execute(COUNT_IN, {"vault": vault, "notes": len(docs), "passages": len(passages)})

    def drop_files(self, vault: int, paths: Collection[str]) -> list[str]:
        dropped = self._drop_notes(vault, paths)
        self.connection.execute(DROP_FILES, {"vault": vault, "paths": _json(list(paths))})
        return dropped

    def set_missing(self, vault: int, paths: Collection[str], since: float | None) -> list[str]:
        bound = {"vault": vault, "paths": _json(list(paths)), "since": since}
        self.connection.execute(SET_MISSING, bound)
        known = [path for _, path in fetch(self.connection, IDS_OF, bound)]
        if since is not None:  # what was never a note leaves no trace
            unknown = [path for path in paths if path not in known]
            self.connection.execute(DROP_FILES, {"vault": vault, "paths": _json(unknown)})
        return known

    def set_times(self, vault: int, times: Mapping[str, float]) -> None:
        rows = [{"vault": vault, "path": path, "mtime": mtime} for path, mtime in times.items()]
        self.connection.executemany(SET_TIME, rows)

    def set_listings(self, vault: int, listings: Mapping[str, bytes | None], unlisted: Mapping[str, bool]) -> None:
        for path, listing in listings.items():
            statement = DROP_LISTING if listing is None else PUT_LISTING
            self.connection.execute(statement, {"vault": vault, "path": path, "listing": listing})
        for statement, wanted in ((PUT_UNLISTED, True), (DROP_UNLISTED, False)):
            paths = [path for path, add in unlisted.items() if add is wanted]
            if paths:
                self.connection.execute(statement, {"vault": vault, "paths": _json(paths)})

    def set_synced(self, vault: int, moment: float | None) -> None:
        self.connection.execute(SET_SYNCED, {"vault": vault, "moment": moment})

    def drop_vault(self, vault: int) -> int:
        paths = [path for (path,) in fetch(self.connection, EVERY_FILE, {"vault": vault})]
        dropped = self.drop_files(vault, paths)
        for statement in FORGET_VAULT:
            self.connection.execute(statement, {"vault": vault})
        return len(dropped)

    def _drop_notes(self, vault: int, paths: Collection[str]) -> list[str]:
        found = fetch(self.connection, IDS_OF, {"vault": vault, "paths": _json(list(paths))})
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


def storable(text: str) -> str:
    """Without lone surrogates, which YAML's escapes can make and SQLite cannot hold."""
    return text if text.isascii() else text.encode("utf-8", "replace").decode()


def _passage(row: Any) -> StoredPassage:
    return StoredPassage._make((*row[:9], _texts(row[9]), *row[10:]))


def _note(row: Any) -> StoredNote:
    return StoredNote._make((*row[:8], _texts(row[8]), *row[9:]))


def _texts(listed: str) -> tuple[str, ...]:
    return tuple(json.loads(listed)) if listed != "[]" else ()


def _file_row(vault: int, file: IndexedFile) -> Row:
    problem = file.note.problem if file.note else None
    return {"vault": vault, "path": file.path, "hash": file.hash, "skipped": file.skipped, "problem": problem}


def _doc_row(vault: int, doc: int, file: IndexedFile, note: Note) -> Row:
    valid_from, valid_until = note.valid
    path_key = fold(note.path)
    return {
        "id": doc,
        "vault": vault,
        "source": note.source,
        "path": note.path,
        "path_key": path_key,
        "file_key": path_key.rpartition("/")[2],
        "ref": note.ref,
        "title": storable(note.title),
        "description": storable(note.description),
        "hash": file.hash,
        "fingerprint": fingerprint(note.body),
        "mtime": file.mtime,
        "created": note.created if note.created is not None else file.mtime,
        "tags": _json(note.tags),
        "aliases": storable(note.also_known_as),
        "category": note.category and storable(note.category),
        "fields": _json(_folded(note.metadata)),
        "frontmatter": _json(note.metadata),
        "links": _json(note.links),
        "valid_from": valid_from,
        "valid_until": valid_until,
        "superseded_by": note.superseded_by and storable(note.superseded_by),
    }


def _passage_rows(note: Note, passages: Sequence[Passage]) -> Iterator[tuple[Row, dict[str, str]]]:
    """Each passage as it is stored, and its tokens as they are indexed."""
    title = tokens(note.title)
    around = storable(note.context)
    of_note = {
        "title": " ".join(title),
        "tags": _joined(" ".join(note.tags)),
        "aliases": _joined(note.also_known_as),
        "path": " ".join(token for token in tokens(_spoken_path(note)) if token not in title),
        "fields": _joined(" ".join(_strings(note.metadata))),
    }
    for passage in passages:
        context = "\n".join(part for part in (storable(passage.context), around) if part)
        heading, body = storable(passage.heading), storable(passage.text)
        row: Row = {"heading": heading, "body": body, "context": context}
        row |= {"first_line": passage.first_line, "last_line": passage.last_line}
        yield row, {**of_note, "heading": _joined(heading), "body": _joined(body), "context": _joined(context)}


def _joined(text: str) -> str:
    return " ".join(tokens(text)) if text else ""


def _spoken_path(note: Note) -> str:
    """The words of folders and file name; a vault's own folders say nothing."""
    path = without_ending(note.path)
    return path.partition("/")[2] if path.startswith(tuple(f"{folder}/" for folder in FOLDERS.values())) else path


def _strings(metadata: Mapping[str, object]) -> Iterator[str]:
    for key, value in metadata.items():
        if key not in OWN_COLUMN:
            yield from (one for one in (value if isinstance(value, list) else [value]) if isinstance(one, str))  # pyright: ignore[reportUnknownVariableType]


def _folded(metadata: Mapping[str, object]) -> dict[str, list[str]]:
    """Each field with its values as filters compare them."""
    found: dict[str, list[str]] = {}
    for key, value in metadata.items():
        members: list[object] = value if isinstance(value, list) else [value]  # pyright: ignore[reportUnknownVariableType]
        texts = [_field_text(one) for one in members if one is not None and not isinstance(one, list | dict)]
        if texts:
            found[key] = texts
    return found


def _field_text(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else fold(str(value))


def _json(value: object) -> str:
    return storable(ENCODER.encode(value)) if value else "{}" if value == {} else "[]"
