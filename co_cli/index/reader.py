"""What a search reads of search.db: candidates and rows of a vault, and of the origins that stand beside it.

Nothing here decides what a good answer is, and nothing is written. A server engine would stand beside it with the same
verbs.
"""

from __future__ import annotations

from co_cli.index.connection import Database, fetch
from co_cli.index.filters import UNKNOWN, Reach, conditions, reach_of
from co_cli.index.match import WordQuery, read_query
from co_cli.index.vault_database import Inside, VaultDatabase, VaultSnapshot, find_vault
from co_cli.index.vectors import (
    Neighbour,
    SpaceState,
    StoredSpace,
    cosines,
    ids_text,
    nearest,
    prefer_resident,
    space_state,
    vectors_at,
)
from co_cli.index.words import (
    SharedWords,
    WordMatch,
    coverage,
    find_words,
    lacks_words,
    mark_words,
    rarest_words,
    shared_words,
)
from co_cli.record import Record
from co_cli.sources.origin import origin_of
from co_cli.typed import whole
from co_cli.values import Filters

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from apsw import Connection

    from co_cli.embedding.space import Vector
    from co_cli.index.lexicon import PassageWords, Word, WordFacts
    from co_cli.index.names import Called
    from co_cli.index.note_facts import NoteFacts
    from co_cli.index.resident import ResidentVectors
    from co_cli.index.standing import Standing
    from co_cli.sources.origin import Origin

COUNTS = "select synced_at, notes, passages from vaults where id = :vault"

COUNTS_WITHIN = """
select coalesce(sum(notes), 0), coalesce(sum(passages), 0)
from vaults where id in (select value from json_each(:vaults))
"""

SPACE_OF = "select space_id from vaults where id = :vault"

TAGS = "(select group_concat(tag.value, char(10)) from json_each(docs.tags) as tag)"
"""As lines: a cold search does not import json."""

OPEN_PASSAGES = f"""
select passages.id, docs.ref, docs.source, docs.path, docs.title, docs.created, {TAGS}, passages.heading,
    passages.first_line, passages.last_line, passages.body, vaults.root, docs.missing
from passages join docs on docs.id = passages.doc_id join vaults on vaults.id = docs.vault_id
where passages.id in (select value from json_each(:ids))
"""

PASSAGE_COUNTS = "select id, passages from docs where id in (select value from json_each(:ids))"

DATED = "select id, created from docs where id in (select value from json_each(:ids)) and created <> mtime"

PASSAGES_OF = """
select passages.id from docs join passages on passages.doc_id = docs.id
where {vaults} and docs.ref = :ref order by passages.id
"""

DOCS_OF = "select id, doc_id from passages where id in (select value from json_each(:ids))"

TIERS_OF = """
select docs.id, vaults.root, docs.ref, docs.fingerprint from docs join vaults on vaults.id = docs.vault_id
where docs.id in (select value from json_each(:ids)) and vaults.kind = 'vault'
"""

ANY_ENDING = """
select exists (
    select 1 from docs indexed by docs_with_an_end where vault_id in ({vaults})
    and (valid_from is not null or valid_until is not null or superseded_by is not null)
) or exists (select 1 from supersessions where vault_id in ({vaults}))
"""

LIST_DOCS = f"""
select docs.ref, docs.source, docs.path, docs.title, docs.created, {TAGS}, docs.category, docs.description,
    vaults.root, docs.missing
from docs join vaults on vaults.id = docs.vault_id where {{filters}} order by docs.created desc, docs.path limit :limit
"""

COUNT_TAGS = """
select tag.value, count(*) as notes from docs, json_each(docs.tags) as tag
where {filters} group by tag.value order by notes desc, tag.value
"""

DOC_OF = "select docs.id from docs where {vaults} and docs.ref = :ref"


class StoredPassage(Record):
    """A passage as search.db has it, with what its note says."""

    id: int
    ref: str
    source: str
    path: str
    title: str
    created: float
    tags: tuple[str, ...]
    heading: str
    first_line: int
    last_line: int
    body: str
    root: str
    """The folder that the path is inside of."""
    missing: float | None
    """Since when its file is gone."""


class Tiers(Record):
    """Several people's vaults in one search: whose is this one, and how much each counts, 0 to 1."""

    own: str
    values: dict[str, float]


class TierRow(Record):
    """Whose vault a note is of (empty: this one's), and by what the same note is known in another."""

    tier: str
    ref: str
    fingerprint: str


class DocRow(Record):
    """A note as search.db lists it."""

    ref: str
    source: str
    path: str
    title: str
    created: float
    tags: tuple[str, ...]
    category: str | None
    description: str
    root: str
    missing: float | None


class Counts(Record):
    """How much is indexed, and as of when."""

    synced_at: float | None
    notes: int
    passages: int


class IndexReader:
    """One vault, or another origin, in search.db; what it finds may come from those beside it too."""

    def __init__(self, database: Database, root: str | Origin) -> None:
        self.origin = origin_of(root)
        self.root = self.origin.root
        self.beside: Sequence[Origin] = ()
        """Origins whose passages are found with the vault's own. Each is synced by an index of its own."""
        self.tiers: Tiers | None = None
        """None: this vault is the only one."""
        self.rows = VaultDatabase(database, self.origin)
        self._resident: ResidentVectors | None = None
        self._searches = 0

    def search(
        self, query: str | WordQuery, filters: Filters | None = None, limit: int = 100, relaxed: bool = False
    ) -> list[WordMatch]:
        """Passages that have the words, best first: all of the words, or with `relaxed` any of them."""
        text = query if isinstance(query, str) else ""
        parsed = read_query(query) if isinstance(query, str) else query
        with self.rows.reading() as (connection, vault):
            reach = self._reach(connection, vault, filters)
            return find_words(connection, reach, parsed, text, filters or Filters(), limit, relaxed)

    def called(self, query: str, filters: Filters | None = None) -> list[Called]:
        """Notes whose title, alias, slug or ref is what was typed."""
        from co_cli.index.names import find_called  # not every profile asks

        with self.rows.reading() as (connection, vault):
            return find_called(connection, self._reach(connection, vault, filters), whole(query), filters or Filters())

    def nearest(
        self,
        space: StoredSpace,
        query: Vector,
        filters: Filters | None = None,
        limit: int = 100,
        at_least: float = -1.0,
    ) -> list[Neighbour]:
        """Passages nearest to a query's vector, best first.

        `at_least` is a cosine that `limit` of them are known to reach: it changes nothing but the time.
        """
        self._searches += 1
        if self._resident is None and prefer_resident(self._searches):
            from co_cli.index.resident import ResidentVectors

            self._resident = ResidentVectors()
        with self.rows.reading() as (connection, vault):
            reach = self._reach(connection, vault, filters, space)
            return nearest(connection, space, reach, query, filters or Filters(), limit, self._resident, at_least)

    def coverage(self, query: WordQuery, matches: list[WordMatch], own: bool = False) -> tuple[float, int]:
        """How much of what was asked for the best of these matches have, 0 to 1, and how many words of it one has.

        `own`: in their own words alone.
        """
        with self.rows.reading() as (connection, _):
            return coverage(connection, query, matches, own)

    def lacks_words(self) -> bool:
        """Has the word index lost passages of whichever vault, or has it some that nobody wrote?"""
        with self.rows.reading() as (connection, _):
            return lacks_words(connection)

    def lost_vectors(self, space: StoredSpace, passage_ids: Sequence[int]) -> bool:
        """Should one of these passages have a vector in this space that it has not?"""
        from co_cli.index.integrity import any_lost  # most passages have theirs

        with self.rows.reading() as (connection, _):
            return any_lost(connection, space.id, passage_ids)

    def cosines(self, space: StoredSpace, query: Vector, passage_ids: Sequence[int]) -> dict[int, float]:
        """The cosine of each of these passages that has a vector."""
        with self.rows.reading() as (connection, _):
            return cosines(connection, space, query, passage_ids)

    def vectors(self, space: StoredSpace, passage_ids: Sequence[int]) -> dict[int, list[float]]:
        """The vector of each of these passages that has one, as numbers."""
        with self.rows.reading() as (connection, _):
            return {passage: [*vector] for passage, vector in vectors_at(connection, space, passage_ids).items()}

    def spread(self, space: StoredSpace, filters: Filters, candidates: Sequence[int]) -> list[Sequence[float]]:
        """The vectors of some passages that this search may find, spread over all of them."""
        from co_cli.index.spread import spread_vectors  # not where words tell

        with self.rows.reading() as (connection, vault):
            reach = self._reach(connection, vault, filters, space)
            return spread_vectors(connection, space, reach, filters, candidates)

    def facts(self, words: Sequence[str]) -> dict[str, WordFacts]:
        """What is known of the words of a question: stem, rarity, and their code in the embedded model."""
        from co_cli.index.lexicon import facts_of  # grep and a search by words alone do without

        with self.rows.reading() as (connection, _):
            return facts_of(connection, words)

    def words_of(self, passage_ids: Sequence[int]) -> tuple[dict[int, PassageWords], dict[str, Word]]:
        """These passages word by word, and what is known of each word in them."""
        from co_cli.index.lexicon import words_of_passages

        with self.rows.reading() as (connection, _):
            return words_of_passages(connection, ids_text(passage_ids))

    def spaces(self) -> SpaceState:
        """Which space answers, and which one is being built."""
        with self.rows.reading() as (connection, vault):
            return space_state(connection, vault)

    def snapshot(self) -> VaultSnapshot | Inside:
        """Whatever this thread reads until the end is of one moment: no rebuild and no sync comes between."""
        return self.rows.snapshot()

    def passages(self, ids: Sequence[int]) -> list[StoredPassage]:
        """These passages, in the order asked for; one that vanished meanwhile is left out."""
        with self.rows.reading() as (connection, _):
            rows = fetch(connection, OPEN_PASSAGES, {"ids": ids_text(ids)})
        found = {row[0]: StoredPassage._make((*row[:6], _tags(row[6]), *row[7:])) for row in rows}
        tiers = self._tiers()
        if tiers:
            found = {number: one._replace(ref=tiers.get(one.root, "") + one.ref) for number, one in found.items()}
        return [found[number] for number in ids if number in found]

    def marked(self, query: WordQuery, ids: Sequence[int]) -> dict[int, str]:
        """Snippets of these passages, the matched words between the characters 2 and 3."""
        with self.rows.reading() as (connection, _):
            return mark_words(connection, query, list(ids))

    def docs_of(self, passage_ids: Sequence[int]) -> dict[int, int]:
        """Which note each of these passages is of."""
        with self.rows.reading() as (connection, _):
            return dict(fetch(connection, DOCS_OF, {"ids": ids_text(passage_ids)}))

    def passage_counts(self, doc_ids: Sequence[int]) -> dict[int, int]:
        """How many passages each of these notes is cut into."""
        with self.rows.reading() as (connection, _):
            return dict(fetch(connection, PASSAGE_COUNTS, {"ids": ids_text(doc_ids)}))

    def dated(self, doc_ids: Sequence[int]) -> dict[int, float]:
        """When these notes came to be, those that say it themselves."""
        with self.rows.reading() as (connection, _):
            return dict(fetch(connection, DATED, {"ids": ids_text(doc_ids)}))

    def note_facts(self, doc_ids: Sequence[int]) -> dict[int, NoteFacts]:
        """What signals look at: dates, tags and some fields of these notes."""
        from co_cli.index.note_facts import facts_of_notes  # only for who weighs more than words and meaning

        with self.rows.reading() as (connection, _):
            return facts_of_notes(connection, ids_text(doc_ids))

    def links_around(self, doc_ids: Sequence[int]) -> list[tuple[int, int]]:
        """Links of which one end is among these notes, as pairs of notes."""
        from co_cli.index.neighbours import links_around

        with self.rows.reading() as (connection, _):
            return links_around(connection, ids_text(doc_ids))

    def standings(self, doc_ids: Sequence[int], filters: Filters, now: float) -> dict[int, Standing]:
        """When these notes hold; empty if no note within reach ever stops to hold."""
        with self.rows.reading() as (connection, vault):
            if not connection.execute(ANY_ENDING.format(vaults=self._reach(connection, vault, filters).ids)).get:
                return {}
            from co_cli.index.standing import standings  # mostly there is none

            tiers = {number: f"{one.tier}:" for number, one in self._origins(connection, vault) if one.tier}
            return standings(connection, doc_ids, now, tiers)

    def successor(self, ref: str, named: str | None, now: float) -> str | None:
        """The note that had taken the place of one by then; `named` is the one that its file says."""
        with self.rows.reading() as (connection, _):
            docs = self._ids_of(DOC_OF, ref)
            if not docs:
                return named
            standing = self.standings(docs, Filters(), now).get(docs[0])
            if named is None or (standing and standing.superseded_by):
                return standing and standing.superseded_by
            from co_cli.index.standing import named_successor

            return named_successor(connection, docs[0], named, now)

    def passages_of(self, ref: str) -> list[int]:
        """The passages of a note."""
        return self._ids_of(PASSAGES_OF, ref)

    def _ids_of(self, statement: str, ref: str) -> list[int]:
        if whole(ref) != ref:
            return []  # a name that is not UTF-8 never got in
        tier, _, rest = ref.partition(":")
        wanted = Filters((tier,)) if any(origin.tier == tier for origin in self.beside) else None
        with self.rows.reading() as (connection, vault):
            vaults = self._reach(connection, vault, wanted) if wanted else self._reach_of_refs(connection, vault)
            rows = fetch(connection, statement.format(vaults=vaults.condition), {"ref": rest if wanted else ref})
        return [int(number) for (number,) in rows]

    def shared_words(self, query: WordQuery, passage_ids: Sequence[int]) -> SharedWords:
        """What these passages have of a query, and what they lack."""
        with self.rows.reading() as (connection, _):
            return shared_words(connection, query, ids_text(passage_ids))

    def counts(self) -> Counts:
        """Of the vault alone."""
        with self.rows.reading() as (connection, vault):
            rows = fetch(connection, COUNTS, {"vault": vault})
        return Counts(*rows[0]) if rows else Counts(None, 0, 0)

    def counts_within(self, filters: Filters | None = None) -> Counts:
        """Of the vault and those beside it, as far as these filters reach."""
        if not self.beside:
            return self.counts()
        with self.rows.reading() as (connection, vault):
            vaults = ids_text(self._reach(connection, vault, filters).vaults)
            return Counts(self.counts().synced_at, *fetch(connection, COUNTS_WITHIN, {"vaults": vaults})[0])

    def unready(self, space: StoredSpace, filters: Filters | None = None) -> list[str]:
        """Origins within reach whose passages have no vectors in this space."""
        with self.rows.reading() as (connection, vault):
            missing = set(self._reach(connection, vault, filters).vaults)
            missing -= set(self._reach(connection, vault, filters, space).vaults)
            return [origin.label for number, origin in self._origins(connection, vault) if number in missing]

    def docs(self, filters: Filters | None = None, limit: int = -1) -> list[DocRow]:
        """Notes, newest first."""
        with self.rows.reading() as (connection, vault):
            where, values = conditions(filters or Filters(), self._reach(connection, vault, filters))
            rows = fetch(connection, LIST_DOCS.format(filters=where), {**values, "limit": limit})
        found = [DocRow._make((*row[:5], _tags(row[5]), *row[6:])) for row in rows]
        tiers = self._tiers()
        return [row._replace(ref=tiers.get(row.root, "") + row.ref) for row in found] if tiers else found

    def tags(self, filters: Filters | None = None) -> dict[str, int]:
        """Every tag and how many notes have it, the most used first."""
        with self.rows.reading() as (connection, vault):
            where, values = conditions(filters or Filters(), self._reach(connection, vault, filters))
            return dict(fetch(connection, COUNT_TAGS.format(filters=where), values))

    def tiers_of(self, doc_ids: Sequence[int]) -> dict[int, TierRow]:
        """Whose vault these notes are of, those that are of a vault at all."""
        tiers = {origin.root: origin.tier for origin in self.beside if origin.tier}
        with self.rows.reading() as (connection, _):
            rows = fetch(connection, TIERS_OF, {"ids": ids_text(doc_ids)})
        return {doc: TierRow(tiers.get(root, ""), ref, fingerprint) for doc, root, ref, fingerprint in rows}

    def rarest(self, text: str, limit: int) -> list[str]:
        """Those words of a text that the fewest passages have: enough to find a near twin among 100,000 notes."""
        with self.rows.reading() as (connection, _):
            return rarest_words(connection, text, limit)

    def _tiers(self) -> dict[str, str]:
        """What stands before the refs of other people's vaults, by their folders."""
        return {origin.root: f"{origin.tier}:" for origin in self.beside if origin.tier}

    def _origins(self, connection: Connection, vault: int) -> list[tuple[int, Origin]]:
        """This one and those beside it that were ever synced, with their ids."""
        others = [(find_vault(connection, origin), origin) for origin in self.beside]
        return [(vault, self.origin), *((number, origin) for number, origin in others if number != UNKNOWN)]

    def _reach_of_refs(self, connection: Connection, vault: int) -> Reach:
        """Where a ref that names no tier is looked for."""
        return reach_of([one for one in self._origins(connection, vault) if not one[1].tier])

    def _reach(
        self, connection: Connection, vault: int, filters: Filters | None = None, space: StoredSpace | None = None
    ) -> Reach:
        """What these filters reach; with a space, only of those whose vectors are in it."""
        origins = self._origins(connection, vault)
        if filters and filters.roots:
            origins = [one for one in origins if one[1].root in filters.roots]
        if space is not None and len(origins) > 1:
            origins = [one for one in origins if connection.execute(SPACE_OF, {"vault": one[0]}).get == space.id]
        return reach_of(origins, filters.sources if filters else ())

    def _select(self, statement: str, **values: str) -> list[tuple[str, ...]]:
        with self.rows.reading() as (connection, vault):
            return fetch(connection, statement, {"vault": vault, **values})


def _tags(lines: str | None) -> tuple[str, ...]:
    return tuple(lines.split("\n")) if lines else ()
