"""Notes, files, names and links: their rows, written and read inside one transaction."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from typing import Any

from co_cli.embedding.space import Vector
from co_cli.ground.summaries import NoteLine, stored_texts
from co_cli.index.derivation import Row, derive, text_to_embed
from co_cli.index.engine import NoteKey
from co_cli.index.names import MOST_NAMED, fold_name
from co_cli.index.stored import (
    IndexedFile,
    Match,
    Named,
    ReadyVectors,
    Scope,
    SourceCount,
    StoredFile,
    StoredNote,
    StoredPassage,
    SyncState,
    Validity,
    WaitingPassage,
    text_hash,
)
from co_cli.index.tables.filters import EDGE, conditions
from co_cli.index.tables.spaces import (
    SpaceRows,
    add_waiting,
    count_lost_vectors,
    drop_vectors,
    stored_origin,
)
from co_cli.index.tables.statements import EVERY, LAST, Statements, Tables, Tokens
from co_cli.index.word_query import WordQuery
from co_cli.notes.dates import edge_for, local_day
from co_cli.sources.origin import Origin

MOST_LINKING, MOST_LIKE = 2_000, 200
"""Notes that are found by the link to one note; and names that are compared as somebody types one."""
MOST_OF_A_NOTE, DEEPER = 5, 10
"""Passages of one note, when a few long notes would fill the list; and how much longer a list they are taken from."""
ADD_ORIGIN = """
insert into vaults (root, source, name, only_file) values (%(root)s, %(source)s, %(name)s, %(only)s)
on conflict do nothing
"""
OPEN_PASSAGES = """
select passages.id, docs.id, docs.vault_id, docs.ref, docs.source, docs.path, vaults.root, docs.title,
    coalesce(passages.said, docs.created), docs.tags, docs.aliases, docs.category, docs.missing, passages.heading,
    passages.first_line, passages.last_line, passages.body, passages.context, docs.properties, passages.language
from passages join docs on docs.id = passages.doc_id join vaults on vaults.id = docs.vault_id
where {key} {among} (%(ids)s) order by passages.id
"""
NOTE = """
select docs.id, docs.vault_id, vaults.root, docs.ref, docs.source, docs.path, docs.title, docs.created,
    docs.created <> docs.mtime, docs.tags, docs.category, docs.description, docs.hash, docs.fingerprint, docs.missing,
    docs.valid_from, docs.valid_until, docs.superseded_by, docs.frontmatter, docs.links
from docs join vaults on vaults.id = docs.vault_id
"""
LIST_NOTES = f"{NOTE} where {{filters}} order by docs.created desc, docs.path limit %(limit)s"
OUTLINE = """
select docs.id, docs.vault_id, docs.source, docs.path, docs.title, docs.tags, docs.created, docs.mtime
from docs where {filters}
"""
FIND_NOTES = f"{NOTE} where {{which}} order by docs.path limit %(limit)s"
OF_NAMES = "docs.id in (select doc_id from names where vault_id = %(vault)s and name {among} (%(values)s))"
OF_LINKS = "docs.id in (select doc_id from links where vault_id = %(vault)s and target {among} (%(values)s))"
OF_ORIGIN = "docs.vault_id = %(vault)s"
CONTAINING = """
select passages.id from passages join docs on docs.id = passages.doc_id
where {filters} and {occurs} order by docs.created desc, passages.id limit %(limit)s
"""
# what is indexed of a passage, except its context, as a text to look for parts of words in
CONTAINED = " || ' ' || ".join(
    f"{table}.{column}"
    for table, columns in (
        ("docs", ("title", "aliases", "tags", "path", "properties")),
        ("passages", ("heading", "body")),
    )
    for column in columns
)
NAMED = """
select min(passages.id), names.doc_id, max(names.kind)
from names {cross_join} docs on docs.id = names.doc_id {cross_join} passages on passages.doc_id = names.doc_id
where names.vault_id = %(vault)s and {called} and {filters}
group by names.doc_id order by names.doc_id limit %(limit)s
"""
NAMES_OF = "select doc_id, name, kind from names where doc_id {among} (%(docs)s) and kind in ('title', 'alias', 'slug')"
NAMES_LIKE = """
select doc_id, name from names
where vault_id = %(vault)s and name >= %(first)s and name <= %(last)s and name like %(pattern)s and kind <> 'ref'
limit %(limit)s
"""
LANGUAGES = """
select language from passages where vault_id {among} (%(vaults)s) and language not in ('', 'en')
group by language order by count(*) desc, language
"""
CONVERSATIONS = "select id from docs where source = 'conversation' and id {among} (%(ids)s)"
ORIGINS_OF = "select distinct vault_id from docs where id {among} (%(ids)s)"
ANY_ENDING = """
select exists (select 1 from docs {hint} where vault_id {among} (%(vaults)s)
    and (valid_from is not null or valid_until is not null or superseded_by is not null))
    or exists (select 1 from supersessions where vault_id {among} (%(vaults)s))
"""
# a note is superseded from the moment on at which the newer one is there and valid
VALIDITIES = f"""
select docs.id, docs.created, docs.valid_from, docs.valid_until, (
    select newer.ref from names
    {{cross_join}} supersessions on supersessions.vault_id = names.vault_id and supersessions.name = names.name
    {{cross_join}} docs as newer on newer.id = supersessions.doc_id
    where names.doc_id = docs.id and newer.id <> docs.id
        and newer.created <= {EDGE.format(date="newer.created", moment="now")}
        and coalesce(newer.valid_from, 0) <= {EDGE.format(date="newer.valid_from", moment="now")}
        and not exists (  -- of two that supersede each other, the newer one is valid
            select 1 from names as theirs
            {{cross_join}} supersessions as back on back.vault_id = theirs.vault_id and back.name = theirs.name
            where theirs.doc_id = newer.id and back.doc_id = docs.id
                and (docs.created, docs.id) > (newer.created, newer.id)
        )
    order by newer.created desc, newer.path limit 1
), docs.superseded_by, docs.vault_id
from docs where docs.id {{among}} (%(ids)s)
"""
SUCCESSORS = """
select names.name, newer.created, coalesce(newer.valid_from, 0), newer.ref, newer.id
from names {cross_join} docs as newer on newer.id = names.doc_id
where names.vault_id = %(vault)s and names.name {among} (%(names)s) order by newer.id desc
"""
COUNTS = """
select source, count(*), cast(sum((select count(*) from passages where doc_id = docs.id)) as bigint), count(missing)
from docs where vault_id = %(vault)s group by source order by source
"""
EXISTING = """
select count(distinct docs.id), count(passages.id) from docs left join passages on passages.doc_id = docs.id
where docs.vault_id = %(vault)s
"""
FILES = "select path, hash, skipped, problem from knowledge_files where vault_id = %(vault)s {which} order by path"
REPORTED = """
and (skipped is not null or problem is not null)
and path not in (select path from docs where vault_id = %(vault)s and missing is not null)
"""

LISTINGS = "select path, listing from folders where vault_id = %(vault)s"
UNLISTED = "select path from unlisted where vault_id = %(vault)s"

DROP_UNLISTED = "delete from unlisted where vault_id = %(vault)s and path {among} (%(paths)s)"
COUNT_IN = "update vaults set notes = notes + %(notes)s, passages = passages + %(passages)s where id = %(vault)s"
IDS_OF = "select id, path from docs where vault_id = %(vault)s and path {among} (%(paths)s)"
BEGINNINGS = """
select doc_id, body from passages where id in (
    select id from (
        select id, row_number() over (partition by doc_id order by id) as place
        from passages where doc_id {among} (%(notes)s)
    ) as numbered where place <= %(limit)s
) order by id
"""
PASSAGE_IDS = "select id from passages where doc_id {among} (%(docs)s)"
DROP_DOCS = (
    "delete from passages where doc_id {among} (%(docs)s)",
    "delete from names where doc_id {among} (%(docs)s)",
    "delete from links where doc_id {among} (%(docs)s)",
    "delete from supersessions where doc_id {among} (%(docs)s)",
    "delete from docs where id {among} (%(docs)s)",
)
DROP_FILES = "delete from knowledge_files where vault_id = %(vault)s and path {among} (%(paths)s)"
SET_FOUND = (
    "update docs set missing = null where vault_id = %(vault)s and path {among} (%(paths)s) and missing is not null"
)
SET_MISSING = (
    "update docs set missing = %(since)s where vault_id = %(vault)s and path {among} (%(paths)s) and missing is null"
)
SET_TIME = """
update docs set mtime = %(mtime)s, created = case when created = mtime then %(mtime)s else created end
where vault_id = %(vault)s and path = %(path)s and mtime <> %(mtime)s
"""
DROP_LISTINGS = "delete from folders where vault_id = %(vault)s and path {among} (%(paths)s)"
SET_SYNCED = "update vaults set synced_at = %(moment)s where id = %(vault)s"
EVERY_FILE = "select path from knowledge_files where vault_id = %(vault)s"
FORGET_ORIGIN = (
    "delete from folders where vault_id = %(vault)s",
    "delete from unlisted where vault_id = %(vault)s",
    "update vaults set synced_at = null where id = %(vault)s",
)


class NoteRows(SpaceRows):
    """The storage contract on the tables that every engine has."""

    def passages(self, ids: Sequence[int] = (), *, notes: Sequence[int] = ()) -> dict[int, StoredPassage]:
        found: list[Any] = []
        for key, wanted in (("passages.id", ids), ("passages.doc_id", notes)):
            if wanted:
                found += self.fetch(OPEN_PASSAGES, {"ids": list(wanted)}, key=key)
        made = [(*row[:6], self.local_root(row[6]), *row[7:9], stored_texts(row[9]), *row[10:]) for row in found]
        return {passage.id: passage for passage in map(StoredPassage._make, made)}

    def words(self, scope: Scope, query: WordQuery, limit: int) -> list[Match]:
        found: list[Match] = []
        for origin_id in scope.origins if not query.empty else ():
            found += _spread(self, scope, origin_id, query, limit)
        return sorted(found, key=lambda match: (-match.score, match.passage))[:limit]

    def languages(self, origin_ids: Iterable[int]) -> list[str]:
        return [language for (language,) in self.fetch(LANGUAGES, {"vaults": list(origin_ids)})]

    def conversations(self, notes: Sequence[int]) -> set[int]:
        return {note for (note,) in self.fetch(CONVERSATIONS, {"ids": list(notes)})}

    def validities(
        self, notes: Sequence[int], now: float, origin_ids: Collection[int] | None = None
    ) -> dict[int, Validity]:
        bound = {"ids": list(notes), "now": now, "now_day": local_day(now)}
        if origin_ids is None:
            origin_ids = [origin_id for (origin_id,) in self.fetch(ORIGINS_OF, bound)]
        if not self.fetch(ANY_ENDING, {"vaults": list(origin_ids)}, hint=self.dialect.indexed_by("docs_with_an_end"))[
            0
        ][0]:
            return {}
        rows = self.fetch(VALIDITIES, bound)
        unresolved = [
            (origin_id, note, named)
            for note, *_, newer, named, origin_id in rows
            if newer is None and named is not None
        ]
        named = _named_successors(self, unresolved, now) if unresolved else {}
        return {
            note: Validity(created, first, last, newer or named.get(note))
            for note, created, first, last, newer, *_ in rows
        }

    def named(self, scope: Scope, name: str, longer: bool = False) -> list[Named]:
        found: list[Named] = []
        for origin_id in scope.origins if name else ():
            where, values = conditions(self.dialect, scope, origin_id, of_notes=True)
            bound = {**values, "vault": origin_id, "name": name, "last": f"{name} {LAST}", "limit": MOST_NAMED + 1}
            called = "names.name >= %(name)s and names.name <= %(last)s" if longer else "names.name = %(name)s"
            found += [Named(*row) for row in self.fetch(NAMED, bound, called=called, filters=where)]
        return found if len(found) <= MOST_NAMED else []

    def names_of(self, notes: Sequence[int]) -> list[tuple[int, str, str]]:
        return [(note, name, kind) for note, name, kind in self.fetch(NAMES_OF, {"docs": list(notes)})]

    def names_like(self, origin_ids: Iterable[int], text: str, limit: int) -> list[int]:
        found: dict[int, tuple[int, int, str]] = {}
        anywhere, spread = f"%{text}%", f"%{'%'.join(text)}%"
        for first, last, pattern in ((text, text + LAST, f"{text}%"), ("", LAST, anywhere), ("", LAST, spread)):
            for origin_id in origin_ids:
                bound = {"vault": origin_id, "first": first, "last": last, "pattern": pattern, "limit": MOST_LIKE}
                for note, name in self.fetch(NAMES_LIKE, bound):
                    ways = (name.startswith(text), f" {text}" in name, text in name, True)
                    rank = (ways.index(True), len(name), name)
                    found[note] = min(rank, found.get(note, rank))
            if len(found) >= limit or (found and pattern == anywhere):
                break
        return sorted(found, key=lambda note: (found[note], note))[:limit]

    def containing(self, scope: Scope, texts: Sequence[str], limit: int) -> list[int]:
        wanted, bound = list[str](), dict[str, Any]({"limit": limit})
        for text in texts:
            names = {f"text_{len(bound) + number}": spelled for number, spelled in enumerate(_spellings(text))}
            occurs = (f"{self.dialect.position}(lower({CONTAINED}), %({name})s) > 0" for name in names)
            wanted.append(f"({' or '.join(occurs)})")
            bound |= names
        found: list[int] = []
        for origin_id in scope.origins if texts else ():
            where, values = conditions(self.dialect, scope, origin_id)
            rows = self.fetch(CONTAINING, {**values, **bound}, filters=where, occurs=" and ".join(wanted))
            found += [passage for (passage,) in rows]
        return found[:limit]

    def list_notes(self, scope: Scope, limit: int = -1) -> list[StoredNote]:
        most, found = EVERY if limit < 0 else limit, list[StoredNote]()
        for origin_id in scope.origins:
            where, values = conditions(self.dialect, scope, origin_id, of_notes=True)
            found += [_note(self, row) for row in self.fetch(LIST_NOTES, {**values, "limit": most}, filters=where)]
        return sorted(found, key=lambda note: (-note.created, note.path))[:most]

    def outline(self, scope: Scope) -> list[NoteLine]:
        found: list[NoteLine] = []
        for origin_id in scope.origins:
            where, values = conditions(self.dialect, scope, origin_id, of_notes=True)
            found += map(NoteLine._make, self.fetch(OUTLINE, values, filters=where))
        return found

    def beginnings(self, notes: Sequence[int], limit: int) -> dict[int, list[str]]:
        found: dict[int, list[str]] = {}
        for note, body in self.fetch(BEGINNINGS, {"notes": list(notes), "limit": limit}):
            found.setdefault(note, []).append(body)
        return found

    def find_notes(self, origin_id: int | None, key: NoteKey, values: Collection[object]) -> list[StoredNote]:
        which = {"name": OF_NAMES, "link": OF_LINKS}.get(key, f"docs.{key} {{among}} (%(values)s)")
        which = self.dialect.compose(which if origin_id is None else f"{which} and {OF_ORIGIN}", {})
        bound = {"vault": origin_id, "values": list(values), "limit": MOST_LINKING if key == "link" else EVERY}
        return [_note(self, row) for row in self.fetch(FIND_NOTES, bound, which=which)]

    def files(
        self, origin_id: int, paths: Collection[str] | None = None, reported: bool = False
    ) -> dict[str, StoredFile]:
        which = REPORTED if reported else ""
        if paths is not None:
            which = f"and path {self.dialect.among} (%(paths)s)"
        bound = {"vault": origin_id, "paths": list(paths or ())}
        return {path: StoredFile(*rest) for path, *rest in self.fetch(FILES, bound, which=which)}

    def counts(self, origin_id: int) -> list[SourceCount]:
        return [SourceCount(*row) for row in self.fetch(COUNTS, {"vault": origin_id})]

    def listings(self, origin_id: int) -> tuple[dict[str, bytes], list[str]]:
        here = {"vault": origin_id}
        return dict(self.fetch(LISTINGS, here)), [path for (path,) in self.fetch(UNLISTED, here)]

    def add_origin(self, origin: Origin) -> int:
        found = self.origin(origin)
        if found is None:
            self.fetch(ADD_ORIGIN, stored_origin(self, origin))  # waits for another who adds it
            found = self.origin(origin)
            assert found
            self.make_words(found.id)
        self.lock(found.id)
        return found.id

    def put_files(self, origin_id: int, files: Sequence[IndexedFile], ready: Sequence[ReadyVectors] = ()) -> int:
        self.lock(origin_id)
        paths = [file.path for file in files]
        _drop_notes(self, origin_id, paths)
        self.run(DROP_FILES, {"vault": origin_id, "paths": paths})
        _put_unlisted(self, origin_id, paths)
        self.add_rows("knowledge_files", [_file_row(origin_id, file) for file in files])
        made = [derive(file, file.note) for file in files if file.note is not None]
        docs = self.take_ids("docs", len(made))
        numbers = iter(self.take_ids("passages", sum(len(note.passages) for note in made)))
        notes, names, links, supersessions = list[Row](), list[Row](), list[Row](), list[Row]()
        passages, embedded = list[tuple[Row, Tokens]](), dict[str, list[tuple[WaitingPassage, Vector | None]]]()
        for doc, note in zip(docs, made, strict=True):
            here = {"vault_id": origin_id, "doc_id": doc}
            notes.append({**note.columns, "id": doc, "vault_id": origin_id})
            names += [{**here, "name": name, "kind": kind} for name, kind in note.names.items()]
            links += [{**here, "target": target} for target in note.links]
            supersessions += [{**here, "name": name} for name in note.supersedes]
            own = [({**row, **here, "id": next(numbers)}, tokens) for row, tokens in note.passages]
            for made_ahead in ready:
                embedded.setdefault(made_ahead.space.key, []).extend(_embedded(made_ahead, note.columns, own))
            passages += own
        self.add_rows("docs", notes)
        self.add_rows("names", names)
        self.add_rows("links", links)
        self.add_rows("supersessions", supersessions)
        self.add_rows("passages", [row for row, _ in passages])
        self.put_words(origin_id, passages)
        waits = add_waiting(self, origin_id, [row["id"] for row, _ in passages], embedded)
        _count_in(self, origin_id, len(docs), len(passages))
        return waits

    def drop_files(self, origin_id: int, paths: Collection[str] | None) -> list[str]:
        self.lock(origin_id)
        here = {"vault": origin_id}
        chosen = [path for (path,) in self.fetch(EVERY_FILE, here)] if paths is None else list(paths)
        dropped = _drop_notes(self, origin_id, chosen)
        self.run(DROP_FILES, {**here, "paths": chosen})
        for statement in FORGET_ORIGIN if paths is None else ():
            self.run(statement, here)
        self.known.clear()
        return dropped

    def finish_sync(self, origin_id: int, state: SyncState) -> list[str]:
        self.lock(origin_id)
        here = {"vault": origin_id}
        self.run_many(SET_TIME, [{**here, "path": path, "mtime": mtime} for path, mtime in state.times.items()])
        if state.times:
            self.run(SET_FOUND, {**here, "paths": list(state.times)})
        kept: list[str] = []
        if state.missing:
            missing = {**here, "paths": list(state.missing), "since": state.at}
            self.run(SET_MISSING, missing)
            kept = [path for _, path in self.fetch(IDS_OF, missing)]
            self.run(DROP_FILES, {**here, "paths": [*{*state.missing}.difference(kept)]})
        self.run(DROP_LISTINGS, {**here, "paths": list(state.listings)})
        listed = [(path, listing) for path, listing in state.listings.items() if listing is not None]
        self.add_rows(
            "folders", [{"vault_id": origin_id, "path": path, "listing": listing} for path, listing in listed]
        )
        if state.unlisted:
            self.run(DROP_UNLISTED, {**here, "paths": list(state.unlisted)})
        self.add_rows(
            "unlisted", [{"vault_id": origin_id, "path": path} for path, add in state.unlisted.items() if add]
        )
        self.run(SET_SYNCED, {**here, "moment": state.at})
        self.known.clear()
        return kept


def _spread(tx: NoteRows, scope: Scope, origin_id: int, query: WordQuery, limit: int) -> list[Match]:
    """Passages of one vault, best first. When a few long notes fill the list, only some of each are in it.

    Each turn of a conversation stands for itself.
    """
    found = tx.find_words(scope, origin_id, query, limit)
    notes = {match.note for match in found}
    if len(found) < limit or len(notes) * MOST_OF_A_NOTE >= limit:
        return found
    talks = tx.conversations([*notes])
    if len({(match.note, match.passage if match.note in talks else 0) for match in found}) * MOST_OF_A_NOTE >= limit:
        return found
    kept: dict[int, list[Match]] = {}
    for match in tx.find_words(scope, origin_id, query, limit * DEEPER):
        kept.setdefault(match.note, []).append(match)
    return [match for of_note in kept.values() for match in of_note[:MOST_OF_A_NOTE]]


def find_miscounts(tx: NoteRows) -> str | None:
    """How the counts, the word index or the vectors differ from the notes and passages that exist."""
    for stored in tx.origins():
        ((notes, passages),) = tx.fetch(EXISTING, {"vault": stored.id})
        words = tx.count_words(stored.id)
        if (stored.notes, stored.passages, words) != (notes, passages, passages):
            found = f"{notes:,} notes and {passages:,} passages exist"
            return f"{found}, {stored.notes:,} and {stored.passages:,} are counted, {words:,} have words"
        if lost := count_lost_vectors(tx, stored.id):
            return f"{lost:,} of {passages:,} passages have no vector"
    return None


def _named_successors(tx: Statements, unresolved: Sequence[tuple[int, int, str]], now: float) -> dict[int, str]:
    """The notes that are named as replacing others, each given with its vault, if they had by then."""
    called: dict[tuple[int, str], tuple[float, float, str, int]] = {}
    for origin_id in {origin_id for origin_id, *_ in unresolved}:
        names = {fold_name(named) for where, _, named in unresolved if where == origin_id}
        for name, *newer in tx.fetch(SUCCESSORS, {"vault": origin_id, "names": sorted(names)}):
            called[origin_id, name] = tuple(newer)  # the first of a name comes last
    found: dict[int, str] = {}
    for origin_id, note, named in unresolved:
        # a note that is not here may still have replaced it; one that names itself means nothing
        created, since, ref, which = called.get((origin_id, fold_name(named)), (now, now, named, None))
        if which != note and all(moment <= edge_for(moment, now) for moment in (created, since)):
            found[note] = ref
    return found


def _spellings(text: str) -> list[str]:
    """How a text may be in SQL's `lower`, which may know only ASCII."""
    written = (text.lower(), text.upper(), text.title())
    return sorted({"".join(sign.lower() if sign.isascii() else sign for sign in spelled) for spelled in written})


def _note(tx: Statements, row: Any) -> StoredNote:
    note = (*row[:2], tx.local_root(row[2]), *row[3:8], bool(row[8]), stored_texts(row[9]), *row[10:])
    return StoredNote._make(note)


def _embedded(
    ready: ReadyVectors, note: Row, passages: Sequence[tuple[Row, Tokens]]
) -> list[tuple[WaitingPassage, Vector | None]]:
    """Those of a note's passages whose vectors are ready."""
    found: list[tuple[WaitingPassage, Vector | None]] = []
    for row, _ in passages:
        text = text_to_embed(note, row)
        if (key := text_hash(text)) in ready.vectors:
            state = note["path"], note["hash"], row["first_line"]
            passage = WaitingPassage(row["id"], note["source"], text, state, row["language"], row["doc_id"])
            found.append((passage, ready.vectors[key]))
    return found


def _put_unlisted(tx: Statements, origin_id: int, paths: Sequence[str]) -> None:
    tx.run(DROP_UNLISTED, {"vault": origin_id, "paths": list(paths)})
    tx.add_rows("unlisted", [{"vault_id": origin_id, "path": path} for path in paths])


def _drop_notes(tx: Tables, origin_id: int, paths: Collection[str]) -> list[str]:
    found = tx.fetch(IDS_OF, {"vault": origin_id, "paths": list(paths)})
    if not found:
        return []
    docs = {"docs": [doc for doc, _ in found]}
    passages = [passage for (passage,) in tx.fetch(PASSAGE_IDS, docs)]
    drop_vectors(tx, origin_id, passages)
    tx.drop_words(origin_id, passages)
    for statement in DROP_DOCS:
        tx.run(statement, docs)
    _count_in(tx, origin_id, -len(found), -len(passages))
    return [path for _, path in found]


def _count_in(tx: Statements, origin_id: int, notes: int, passages: int) -> None:
    tx.run(COUNT_IN, {"vault": origin_id, "notes": notes, "passages": passages})
    tx.known.clear()


def _file_row(origin_id: int, file: IndexedFile) -> Row:
    problem = file.note.problem if file.note else None
    return {"vault_id": origin_id, "path": file.path, "hash": file.hash, "skipped": file.skipped, "problem": problem}
