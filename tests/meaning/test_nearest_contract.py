"""Three ways to find the nearest vectors, one answer: vec0, a plain table, and numpy over what is kept in memory."""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

from benchmarks.corpus import write_corpus
from co_cli.embedding.embedders import Embedders
from co_cli.embedding.static import StaticEmbedder
from co_cli.index.connection import Database, vector_extension
from co_cli.index.filters import reach_of
from co_cli.index.knowledge_index import KnowledgeIndex
from co_cli.index.meaning import embedding_text
from co_cli.index.resident import ResidentVectors
from co_cli.index.vectors import cosines, is_vec0, nearest
from co_cli.values import Filters
from tests.vault import Vault

MODEL = StaticEmbedder()
QUERY = "who approved the late refund of the customer"
EVERYTHING = 1_000
STEPS = 6e-3
"""How far a cosine of vectors that are stored a byte a number may be from that of the vectors."""

ROWS = """
select docs.path, passages.first_line, docs.source, docs.tags, docs.created,
    passages.title, passages.heading, passages.body, passages.tags, passages.aliases, passages.context
from passages join docs on docs.id = passages.doc_id where docs.vault_id = :vault
"""
PLACES = "select passages.id, docs.path, first_line from passages join docs on docs.id = passages.doc_id"


class Row(NamedTuple):
    """A passage as it should be found."""

    source: str
    tags: str
    created: float
    cosine: float


class Ways:
    """One search.db, asked in one of the three ways."""

    def __init__(self, folder: Path, way: str) -> None:
        self.database = Database(str(folder / "search.db"), None if way == "plain" else vector_extension())
        self.way = way
        self._resident = ResidentVectors() if way == "numpy" else None
        self._embedders = Embedders("static")

    def index(self, root: Path) -> KnowledgeIndex:
        return KnowledgeIndex(self.database, str(root), embedders=self._embedders)

    def nearest(
        self,
        index: KnowledgeIndex,
        query: str = QUERY,
        filters: Filters | None = None,
        limit: int = EVERYTHING,
        at_least: float = -1.0,
    ) -> dict[tuple[str, int], float]:
        """Where each neighbour stands, and its cosine, best first."""
        space = index.spaces().active
        assert space is not None
        with index.rows.reading() as (connection, vault):
            filters = filters or Filters()
            reach = reach_of([(vault, index.origin)], filters.sources)
            found = nearest(connection, space, reach, vector(query), filters, limit, self._resident, at_least)
            places = {number: (path, line) for number, path, line in connection.execute(PLACES)}
        ordered = [neighbour.cosine for neighbour in found]
        assert ordered == sorted(ordered, reverse=True)
        assert len({neighbour.passage_id for neighbour in found}) == len(found)
        return {places[neighbour.passage_id]: neighbour.cosine for neighbour in found}  # type: ignore[misc]


@pytest.fixture(scope="module", params=["vec0", "plain", "numpy"])
def way(request: pytest.FixtureRequest) -> str:
    if request.param != "plain" and vector_extension() is None:
        pytest.skip("sqlite-vec is not installed: pip install sqlite-vec")
    return str(request.param)


@pytest.fixture
def ways(way: str, data_dir: Path) -> Iterator[Ways]:
    opened = Ways(data_dir, way)
    yield opened
    opened.database.close()


@pytest.fixture(scope="module")
def kept(way: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Ways, KnowledgeIndex]]:
    """A vault of 150 notes for those who only ask."""
    folder = tmp_path_factory.mktemp("kept")
    write_corpus(str(folder / "vault"), 150)
    opened = Ways(folder, way)
    index = opened.index(folder / "vault")
    index.sync()
    yield opened, index
    opened.database.close()


def vector(text: str) -> bytes:
    [found] = MODEL.embed([text], "query")
    assert found is not None
    return found


def expected(
    index: KnowledgeIndex, query: str = QUERY, wanted: Callable[[Row], bool] = lambda row: True
) -> dict[tuple[str, int], float]:
    """The same from the texts: each embedded now and compared with plain arithmetic."""
    with index.rows.reading() as (connection, vault):
        rows = connection.execute(ROWS, {"vault": vault}).fetchall()
    question = struct.unpack("<256f", vector(query))
    made = MODEL.embed([embedding_text(*map(str, row[5:])) for row in rows], "document")
    found: dict[tuple[str, int], float] = {}
    for (path, line, source, tags, created, *_), numbers in zip(rows, made, strict=True):
        assert numbers is not None
        cosine = sum(a * b for a, b in zip(question, struct.unpack("<256f", numbers), strict=True))
        if wanted(Row(source, tags, created, cosine)):  # type: ignore[arg-type]
            found[path, line] = cosine  # type: ignore[index]
    return found


def test_each_way_is_what_it_says(ways: Ways, vault: Vault) -> None:
    write_corpus(str(vault.root), 5)
    index = ways.index(vault.root)
    index.sync()

    with ways.database.reading() as connection:
        assert is_vec0(connection, "docs_vec") is (ways.way != "plain")


def test_every_passage_is_found_with_its_exact_cosine(kept: tuple[Ways, KnowledgeIndex]) -> None:
    ways, index = kept

    found = ways.nearest(index)

    assert len(found) > 150
    assert found == pytest.approx(expected(index), abs=STEPS)


def test_a_limit_keeps_the_best(kept: tuple[Ways, KnowledgeIndex]) -> None:
    ways, index = kept

    best = sorted(expected(index).values(), reverse=True)[:7]

    assert list(ways.nearest(index, limit=7).values()) == pytest.approx(best, abs=STEPS)


@pytest.mark.parametrize("limit", [1, 7, 40])
def test_a_cosine_that_so_many_are_known_to_reach_changes_nothing(
    kept: tuple[Ways, KnowledgeIndex], limit: int
) -> None:
    ways, index = kept
    best = ways.nearest(index, limit=limit)

    assert ways.nearest(index, limit=limit, at_least=min(best.values())) == best
    assert best == dict(list(ways.nearest(index).items())[:limit])


@pytest.mark.parametrize(
    ("filters", "wanted"),
    [
        (Filters(sources=("memory",)), lambda row: row.source == "memory"),
        (Filters(sources=("article",)), lambda row: row.source == "article"),
        (Filters(sources=("article", "memory")), lambda row: True),
        (Filters(tags=("invoice",)), lambda row: '"invoice"' in row.tags),
        (
            Filters(tags=("invoice", "refund"), any_tag=True),
            lambda row: '"invoice"' in row.tags or '"refund"' in row.tags,
        ),
        (Filters(since=1_770_000_000.0), lambda row: row.created >= 1_770_000_000.0),
        (
            Filters(sources=("memory",), since=1_760_000_000.0, until=1_780_000_000.0),
            lambda row: row.source == "memory" and 1_760_000_000.0 <= row.created <= 1_780_000_000.0,
        ),
        (Filters(tags=("nobody-has-this",)), lambda row: False),
    ],
    ids=["memories", "articles", "both", "a tag", "any tag", "since", "between", "none"],
)
def test_filters_narrow_before_the_limit(
    kept: tuple[Ways, KnowledgeIndex], filters: Filters, wanted: Callable[[Row], bool]
) -> None:
    ways, index = kept

    right = expected(index, wanted=wanted)

    assert ways.nearest(index, filters=filters) == pytest.approx(right, abs=STEPS)
    best = sorted(right.values(), reverse=True)[:3]
    assert list(ways.nearest(index, filters=filters, limit=3).values()) == pytest.approx(best, abs=STEPS)
    assert len(right) < len(expected(index)) or len(filters.sources) == 2


def test_vaults_in_one_file_do_not_see_each_other(ways: Ways, tmp_path: Path) -> None:
    indexes: list[KnowledgeIndex] = []
    for number in range(3):
        other = Vault(tmp_path / f"vault-{number}")
        write_corpus(str(other.root), 30, seed=number)
        indexes.append(ways.index(other.root))
        indexes[-1].sync()

    for index in indexes:
        assert ways.nearest(index) == pytest.approx(expected(index), abs=STEPS)


def test_deletes_edits_and_moves_are_followed(ways: Ways, vault: Vault) -> None:
    write_corpus(str(vault.root), 60)
    index = ways.index(vault.root)
    index.sync()
    ways.nearest(index)
    paths = vault.notes()

    for path in paths[:10]:
        vault.delete(path)
    for path in paths[10:20]:
        vault.write(path, f"---\ntitle: Another\n---\nThe customer got a refund for {path}.\n")
    for path in paths[20:25]:
        vault.path(path).rename(vault.path(path).with_name(f"moved-{vault.path(path).name}"))
    vault.path(paths[25]).rename(vault.root / "articles" / "from-elsewhere.md")
    index.sync()

    found = ways.nearest(index)
    assert found == pytest.approx(expected(index), abs=STEPS)
    assert {path for path, _ in found} == set(vault.notes())
    assert next(iter(found))[0] in paths[10:20]


def test_cosines_of_chosen_passages_are_those_of_the_scan(ways: Ways, vault: Vault) -> None:
    write_corpus(str(vault.root), 40)
    index = ways.index(vault.root)
    index.sync()
    space = index.spaces().active
    assert space is not None

    with index.rows.reading() as (connection, _):
        places = {number: (path, line) for number, path, line in connection.execute(PLACES)}
        some = sorted(places)[::3]
        found = cosines(connection, space, vector(QUERY), [*some, 999_999])  # type: ignore[list-item]

    right = expected(index)
    assert found == pytest.approx({number: right[places[number]] for number in some}, abs=STEPS)  # type: ignore[index]
