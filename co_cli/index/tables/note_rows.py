"""Notes, files, names and links: their rows, written and read inside one transaction."""

from __future__ import annotations

import json
from collections.abc import Collection, Sequence
from typing import Any

from co_cli.index.derivation import Row, derive
from co_cli.index.engine import (
    IndexedFile,
    Match,
    Named,
    NoteKey,
    Scope,
    SourceCount,
    StoredFile,
    StoredNote,
    StoredPassage,
    SyncState,
    Validity,
    WordQuery,
)
from co_cli.index.names import fold_name
from co_cli.index.tables.filters import EDGE, conditions
from co_cli.index.tables.spaces import SpaceReader, SpaceWriter
from co_cli.index.tables.statements import EVERY, LAST
from co_cli.notes.dates import edge_for, local_day
from co_cli.sources.origin import Origin

MOST_NAMED, MOST_LINKING = 20, 2_000
"""Notes that are found by one name, and by the link to one note."""
MOST_OF_A_NOTE, DEEPER = 5, 10
"""Passages of one note, when a few long notes would fill the list; and how much longer a list they are taken from."""
ADD_VAULT = """
insert into vaults (root, kind, name, only_file) values (:root, :kind, :name, :only) on conflict do nothing
"""
OPEN_PASSAGES = """
select passages.id, docs.id, docs.vault_id, docs.ref, docs.source, docs.path, vaults.root, docs.title,
    coalesce(passages.said, docs.created), docs.tags, docs.aliases, docs.category, docs.missing, passages.heading,
    passages.first_line, passages.last_line, passages.body, passages.context
from passages join docs on docs.id = passages.doc_id join vaults on vaults.id = docs.vault_id
where {key} among (:ids) order by passages.id
"""
NOTE = """
select docs.id, docs.vault_id, vaults.root, docs.ref, docs.source, docs.path, docs.title, docs.created,
    docs.created <> docs.mtime, docs.tags, docs.category, docs.description, docs.hash, docs.fingerprint, docs.missing,
    docs.valid_from, docs.valid_until, docs.superseded_by, docs.frontmatter, docs.links
from docs join vaults on vaults.id = docs.vault_id where {which}
"""
AMONG = "docs.{key} among (:values)"
OF_TABLE = "docs.id in (select doc_id from {table} where vault_id = :vault and {column} among (:values))"
FIND_BY = {
    "name": OF_TABLE.format(table="names", column="name"),
    "link": OF_TABLE.format(table="links", column="target"),
}
NAMED = """
select min(passages.id), names.doc_id, max(names.kind)
from names cross join docs on docs.id = names.doc_id cross join passages on passages.doc_id = names.doc_id
where names.vault_id = :vault and names.name >= :name and names.name <= :last and {filters}
group by names.doc_id order by names.doc_id limit :limit
"""
CONVERSATIONS = "select id from docs where source = 'conversation' and id among (:ids)"
VAULTS_OF = "select distinct vault_id from docs where id among (:ids)"
ANY_ENDING = """
select exists (select 1 from docs indexed by docs_with_an_end where vault_id among (:vaults)
    and (valid_from is not null or valid_until is not null or superseded_by is not null))
    or exists (select 1 from supersessions where vault_id among (:vaults))
"""
# a note is superseded from the moment on at which the newer one is there and valid
VALIDITIES = f"""
select docs.id, docs.created, docs.valid_from, docs.valid_until, (
    select newer.ref from names
    cross join supersessions on supersessions.vault_id = names.vault_id and supersessions.name = names.name
    cross join docs as newer on newer.id = supersessions.doc_id
    where names.doc_id = docs.id and newer.id <> docs.id
        and newer.created <= {EDGE.format(date="newer.created", moment="now")}
        and coalesce(newer.valid_from, 0) <= {EDGE.format(date="newer.valid_from", moment="now")}
        and not exists (  -- of two that supersede each other, the newer one is valid
            select 1 from names as theirs
            cross join supersessions as back on back.vault_id = theirs.vault_id and back.name = theirs.name
            where theirs.doc_id = newer.id and back.doc_id = docs.id
                and (docs.created, docs.id) > (newer.created, newer.id)
        )
    order by newer.created desc, newer.path limit 1
), docs.superseded_by, docs.vault_id
from docs where docs.id among (:ids)
"""
SUCCESSOR = """
select newer.created, coalesce(newer.valid_from, 0), newer.ref, newer.id
from names cross join docs as newer on newer.id = names.doc_id
where names.vault_id = :vault and names.name = :name order by newer.id limit 1
"""
COUNTS = """
select source, count(*), cast(sum((select count(*) from passages where doc_id = docs.id)) as bigint), count(missing)
from docs where vault_id = :vault group by source order by source
"""
EXISTING = """
select count(distinct docs.id), count(passages.id) from docs left join passages on passages.doc_id = docs.id
where docs.vault_id = :vault
"""
FILES = "select path, hash, skipped, problem from knowledge_files where vault_id = :vault {which} order by path"
REPORTED = """
and (skipped is not null or problem is not null)
and path not in (select path from docs where vault_id = :vault and missing is not null)
"""

LISTINGS = "select path, listing from folders where vault_id = :vault"
UNLISTED = "select path from unlisted where vault_id = :vault"

DROP_UNLISTED = "delete from unlisted where vault_id = :vault and path among (:paths)"
COUNT_IN = "update vaults set notes = notes + :notes, passages = passages + :passages where id = :vault"
IDS_OF = "select id, path from docs where vault_id = :vault and path among (:paths)"
PASSAGE_IDS = "select id from passages where doc_id among (:docs)"
DROP_DOCS = (
    "delete from passages where doc_id among (:docs)",
    "delete from names where doc_id among (:docs)",
    "delete from links where doc_id among (:docs)",
    "delete from supersessions where doc_id among (:docs)",
    "delete from docs where id among (:docs)",
)
DROP_FILES = "delete from knowledge_files where vault_id = :vault and path among (:paths)"
SET_FOUND = "update docs set missing = null where vault_id = :vault and path among (:paths) and missing is not null"
SET_MISSING = "update docs set missing = :since where vault_id = :vault and path among (:paths) and missing is null"
SET_TIME = """
update docs set mtime = :mtime, created = case when created = mtime then :mtime else created end
where vault_id = :vault and path = :path and mtime <> :mtime
"""
DROP_LISTINGS = "delete from folders where vault_id = :vault and path among (:paths)"
SET_SYNCED = "update vaults set synced_at = :moment where id = :vault"
EVERY_FILE = "select path from knowledge_files where vault_id = :vault"
FORGET_VAULT = (
    "delete from folders where vault_id = :vault",
    "delete from unlisted where vault_id = :vault",
    "update vaults set synced_at = null where id = :vault",
)

Tokens = dict[str, list[str]]
"""Those of each indexed column."""


class NoteReader(SpaceReader):
    """The part of a read transaction that knows notes."""

    def passages(self, ids: Sequence[int] = (), *, notes: Sequence[int] = ()) -> dict[int, StoredPassage]:
        found: list[Any] = []
        for key, wanted in (("passages.id", ids), ("passages.doc_id", notes)):
            if wanted:
                found += self.fetch(OPEN_PASSAGES.format(key=key), {"ids": list(wanted)})
        made = [(*row[:6], self.local_root(row[6]), *row[7:9], _texts(row[9]), *row[10:]) for row in found]
        return {passage.id: passage for passage in map(StoredPassage._make, made)}

    def words(self, scope: Scope, query: WordQuery, limit: int) -> list[Match]:
        found: list[Match] = []
        for vault in scope.vaults if not query.empty else ():
            found += self._spread(scope, vault, query, limit)
        return sorted(found, key=lambda one: (-one.score, one.passage))[:limit]

    def _spread(self, scope: Scope, vault: int, query: WordQuery, limit: int) -> list[Match]:
        """Passages of one vault, best first. When a few long notes fill the list, only some of each are in it.

        Each turn of a conversation stands for itself.
        """
        found = self.find_words(scope, vault, query, limit)
        notes = {one.note for one in found}
        if len(found) < limit or len(notes) * MOST_OF_A_NOTE >= limit:
            return found
        talks = self.conversations([*notes])
        if len({(one.note, one.passage if one.note in talks else 0) for one in found}) * MOST_OF_A_NOTE >= limit:
            return found
        kept: dict[int, list[Match]] = {}
        for one in self.find_words(scope, vault, query, limit * DEEPER):
            kept.setdefault(one.note, []).append(one)
        return [one for of_note in kept.values() for one in of_note[:MOST_OF_A_NOTE]]

    def find_words(self, scope: Scope, vault: int, query: WordQuery, limit: int) -> list[Match]:
        """The best passages of one vault."""
        raise NotImplementedError

    def count_words(self, vault: int) -> int:
        """How many passages are in the word index."""
        raise NotImplementedError

    def miscounted(self) -> str | None:
        """How the counts, the word index or the vectors differ from the notes and passages that exist."""
        for vault in self.vaults():
            ((notes, passages),) = self.fetch(EXISTING, {"vault": vault.id})
            words = self.count_words(vault.id)
            if (vault.notes, vault.passages, words) != (notes, passages, passages):
                found = f"{notes:,} notes and {passages:,} passages exist"
                return f"{found}, {vault.notes:,} and {vault.passages:,} are counted, {words:,} have words"
            if lost := self.lost_vectors(vault.id):
                return f"{lost:,} of {passages:,} passages have no vector"
        return None

    def conversations(self, notes: Sequence[int]) -> set[int]:
        return {note for (note,) in self.fetch(CONVERSATIONS, {"ids": list(notes)})}

    def validities(self, notes: Sequence[int], now: float) -> dict[int, Validity]:
        bound = {"ids": list(notes), "now": now, "now_day": local_day(now)}
        vaults = [vault for (vault,) in self.fetch(VAULTS_OF, bound)]
        if not self.fetch(ANY_ENDING, {"vaults": vaults})[0][0]:
            return {}
        found: dict[int, Validity] = {}
        for note, created, first, last, newer, named, vault in self.fetch(VALIDITIES, bound):
            if newer is None and named is not None:
                newer = self._successor(vault, note, named, now)
            found[note] = Validity(created, first, last, newer)
        return found

    def _successor(self, vault: int, note: int, named: str, now: float) -> str | None:
        rows = self.fetch(SUCCESSOR, {"vault": vault, "name": fold_name(named)})
        # a note that is not here may still have replaced it; one that names itself means nothing
        created, since, ref, which = rows[0] if rows else (now, now, named, None)
        begun = all(moment <= edge_for(moment, now) for moment in (created, since))
        return ref if begun and which != note else None

    def named(self, scope: Scope, name: str, longer: bool = False) -> list[Named]:
        found: list[Named] = []
        for vault in scope.vaults if name else ():
            where, values = conditions(scope, vault, of_notes=True)
            last = f"{name} {LAST}" if longer else name
            bound = {**values, "vault": vault, "name": name, "last": last, "limit": MOST_NAMED + 1}
            found += [Named(*row) for row in self.fetch(NAMED.format(filters=where), bound)]
        return found if len(found) <= MOST_NAMED else []

    def list_notes(self, scope: Scope, limit: int = -1) -> list[StoredNote]:
        most, found = EVERY if limit < 0 else limit, list[StoredNote]()
        for vault in scope.vaults:
            where, values = conditions(scope, vault, of_notes=True)
            statement = NOTE.format(which=where) + " order by docs.created desc, docs.path limit :limit"
            found += [self._note(row) for row in self.fetch(statement, {**values, "limit": most})]
        return sorted(found, key=lambda note: (-note.created, note.path))[:most]

    def find_notes(self, vault: int | None, key: NoteKey, values: Collection[object]) -> list[StoredNote]:
        which = FIND_BY.get(key, AMONG.format(key=key)) + (" and docs.vault_id = :vault" if vault is not None else "")
        limit = MOST_LINKING if key == "link" else EVERY
        statement = f"{NOTE.format(which=which)} order by docs.path limit :limit"
        bound = {"vault": vault, "values": list(values), "limit": limit}
        return [self._note(row) for row in self.fetch(statement, bound)]

    def files(self, vault: int, paths: Collection[str] | None = None, reported: bool = False) -> dict[str, StoredFile]:
        which = REPORTED if reported else ""
        if paths is not None:
            which = "and path among (:paths)"
        bound = {"vault": vault, "paths": list(paths or ())}
        return {path: StoredFile(*rest) for path, *rest in self.fetch(FILES.format(which=which), bound)}

    def counts(self, vault: int) -> list[SourceCount]:
        return [SourceCount(*row) for row in self.fetch(COUNTS, {"vault": vault})]

    def listings(self, vault: int) -> tuple[dict[str, bytes], list[str]]:
        here = {"vault": vault}
        return dict(self.fetch(LISTINGS, here)), [path for (path,) in self.fetch(UNLISTED, here)]

    def _note(self, row: Any) -> StoredNote:
        note = (*row[:2], self.local_root(row[2]), *row[3:8], bool(row[8]), _texts(row[9]), *row[10:])
        return StoredNote._make(note)


class NoteWriter(NoteReader, SpaceWriter):
    """The part of a write transaction that changes notes."""

    def make_words(self, vault: int) -> None:
        """Make what a new vault needs to be searched by words."""

    def put_words(self, vault: int, passages: Sequence[tuple[Row, Tokens]]) -> None:
        """Index new passages: their rows, and the tokens of each column."""
        raise NotImplementedError

    def drop_words(self, vault: int, passages: Sequence[int]) -> None:
        raise NotImplementedError

    def add_vault(self, origin: Origin) -> int:
        found = self.vault(origin)
        if found is None:
            self.fetch(ADD_VAULT, self.stored_origin(origin))  # waits for another who adds it
            found = self.vault(origin)
            assert found
            self.make_words(found.id)
        self.lock(found.id)
        return found.id

    def put_files(self, vault: int, files: Sequence[IndexedFile]) -> None:
        self.lock(vault)
        paths = [file.path for file in files]
        self._drop_notes(vault, paths)
        self.fetch(DROP_FILES, {"vault": vault, "paths": paths})
        self._put_unlisted(vault, paths)
        self.add_rows("knowledge_files", [_file_row(vault, file) for file in files])
        made = [derive(file, file.note) for file in files if file.note is not None]
        docs = self.take_ids("docs", len(made))
        numbers = iter(self.take_ids("passages", sum(len(note.passages) for note in made)))
        notes, names, links, supersessions = list[Row](), list[Row](), list[Row](), list[Row]()
        passages = list[tuple[Row, Tokens]]()
        for doc, note in zip(docs, made, strict=True):
            here = {"vault_id": vault, "doc_id": doc}
            notes.append({**note.columns, "id": doc, "vault_id": vault})
            names += [{**here, "name": name, "kind": kind} for name, kind in note.names.items()]
            links += [{**here, "target": target} for target in note.links]
            supersessions += [{**here, "name": name} for name in note.supersedes]
            passages += [({**row, **here, "id": next(numbers)}, tokens) for row, tokens in note.passages]
        self.add_rows("docs", notes)
        self.add_rows("names", names)
        self.add_rows("links", links)
        self.add_rows("supersessions", supersessions)
        self.add_rows("passages", [row for row, _ in passages])
        self.put_words(vault, passages)
        self.add_waiting(vault, [row["id"] for row, _ in passages])
        self.fetch(COUNT_IN, {"vault": vault, "notes": len(docs), "passages": len(passages)})

    def drop_files(self, vault: int, paths: Collection[str] | None) -> list[str]:
        self.lock(vault)
        here = {"vault": vault}
        chosen = [path for (path,) in self.fetch(EVERY_FILE, here)] if paths is None else list(paths)
        dropped = self._drop_notes(vault, chosen)
        self.fetch(DROP_FILES, {**here, "paths": chosen})
        for statement in FORGET_VAULT if paths is None else ():
            self.fetch(statement, here)
        return dropped

    def finish_sync(self, vault: int, state: SyncState) -> list[str]:
        self.lock(vault)
        here = {"vault": vault}
        self.run_many(SET_TIME, [{**here, "path": path, "mtime": mtime} for path, mtime in state.times.items()])
        self.fetch(SET_FOUND, {**here, "paths": list(state.times)})
        missing = {**here, "paths": list(state.missing), "since": state.at}
        self.fetch(SET_MISSING, missing)
        kept = [path for _, path in self.fetch(IDS_OF, missing)]
        self.fetch(DROP_FILES, {**here, "paths": [*{*state.missing}.difference(kept)]})
        self.fetch(DROP_LISTINGS, {**here, "paths": list(state.listings)})
        listed = [(path, listing) for path, listing in state.listings.items() if listing is not None]
        self.add_rows("folders", [{"vault_id": vault, "path": path, "listing": listing} for path, listing in listed])
        self.fetch(DROP_UNLISTED, {**here, "paths": list(state.unlisted)})
        self._put_unlisted(vault, [path for path, add in state.unlisted.items() if add])
        self.fetch(SET_SYNCED, {**here, "moment": state.at})
        return kept

    def _put_unlisted(self, vault: int, paths: Sequence[str]) -> None:
        self.fetch(DROP_UNLISTED, {"vault": vault, "paths": list(paths)})
        self.add_rows("unlisted", [{"vault_id": vault, "path": path} for path in paths])

    def _drop_notes(self, vault: int, paths: Collection[str]) -> list[str]:
        found = self.fetch(IDS_OF, {"vault": vault, "paths": list(paths)})
        if not found:
            return []
        docs = {"docs": [doc for doc, _ in found]}
        passages = [passage for (passage,) in self.fetch(PASSAGE_IDS, docs)]
        self.drop_vectors(vault, passages)
        self.drop_words(vault, passages)
        for statement in DROP_DOCS:
            self.fetch(statement, docs)
        self.fetch(COUNT_IN, {"vault": vault, "notes": -len(found), "passages": -len(passages)})
        return [path for _, path in found]


def _texts(listed: str) -> tuple[str, ...]:
    return tuple(json.loads(listed)) if listed != "[]" else ()


def _file_row(vault: int, file: IndexedFile) -> Row:
    problem = file.note.problem if file.note else None
    return {"vault_id": vault, "path": file.path, "hash": file.hash, "skipped": file.skipped, "problem": problem}
