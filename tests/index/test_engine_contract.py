"""What every storage engine does, whatever is behind it: `co_cli/index/engine.py` as behaviour.

A new engine joins by one line in `ENGINES`.
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import apsw
import numpy as np
import pytest

from co_cli.embedding.space import Vector, VectorSpace
from co_cli.ground.hits import Filters, Passage
from co_cli.ground.values import content_hash
from co_cli.index.engine import Engine, ReadTransaction, WriteTransaction
from co_cli.index.postgres.postgres_engine import PostgresEngine
from co_cli.index.sqlite import resident
from co_cli.index.sqlite.connection import vector_extension
from co_cli.index.sqlite.sqlite_engine import SqliteEngine, SqliteTransaction
from co_cli.index.stored import (
    IndexedFile,
    ReadyVectors,
    Scope,
    StoredFile,
    StoredNote,
    StoredPassage,
    StoredSpace,
    SyncState,
    text_hash,
)
from co_cli.index.tables.spaces import vectors_table
from co_cli.index.tokens import tokens
from co_cli.index.word_query import WordQuery
from co_cli.notes.note import read_note
from co_cli.sources.origin import Origin
from co_cli.sources.passages import passages_of
from tests.postgres import new_database
from tests.server.browser import wait_for

VAULT, OTHER = Origin("vault", "/vault"), Origin("vault", "/other")
FLOATS = VectorSpace("test", "floats", 8)
BYTES = VectorSpace("static", "bytes", 256)
"""Vectors of the embedded model may be stored with less precision."""
DAY = 86_400.0

Open = Callable[[], Engine]
ENGINES: dict[str, Callable[[str], Engine]] = {
    "sqlite-vec": lambda path: SqliteEngine(path, vector_extension()),
    "sqlite-vec in memory": lambda path: SqliteEngine(path, vector_extension()),
    "sqlite alone": lambda path: SqliteEngine(path, None),
    "postgres": lambda address: PostgresEngine(address),
}


@pytest.fixture(
    params=[pytest.param(name, marks=pytest.mark.postgres) if name == "postgres" else name for name in ENGINES]
)
def open_engine(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Open]:
    """Opens the same store again and again, as several processes would."""
    place = new_database() if request.param == "postgres" else str(tmp_path / "search.db")
    if request.param.startswith("sqlite-vec") and vector_extension() is None:
        pytest.skip("sqlite-vec is not installed: pip install sqlite-vec")
    scans = {"sqlite-vec": sys.maxsize, "sqlite-vec in memory": 0}  # for which vec0 is asked
    monkeypatch.setattr(resident, "FEW_SCANS", scans.get(request.param, resident.FEW_SCANS))
    opened: list[Engine] = []

    def open_it() -> Engine:
        opened.append(ENGINES[request.param](place))
        return opened[-1]

    yield open_it
    for engine in opened:
        engine.close()


@pytest.fixture
def engine(open_engine: Open) -> Engine:
    return open_engine()


def file(path: str, text: str, mtime: float = 1_000.0, passages: Sequence[Passage] | None = None) -> IndexedFile:
    data = text.encode()
    note = read_note(path, data)
    return IndexedFile(path, content_hash(data), mtime, note, passages_of(note) if passages is None else passages)


def put(engine: Engine, *files: IndexedFile, origin: Origin = VAULT) -> int:
    with engine.writing() as writer:
        vault = writer.add_origin(origin)
        writer.put_files(vault, files)
    return vault


def oaks(engine: Engine, *names: str, origin: Origin = VAULT) -> int:
    return put(engine, *(file(f"memories/{name}.md", f"The {name} is an oak.") for name in names), origin=origin)


def scope_of(*vaults: int, filters: Filters | None = None, sources: Sequence[str] = ("memory", "article")) -> Scope:
    return Scope(tuple((vault, source) for vault in vaults for source in sources), filters or Filters())


def words(text: str = "", phrase: str = "", prefix: str = "") -> WordQuery:
    return WordQuery(
        terms=tuple(tokens(text)),
        phrases=(tuple(tokens(phrase)),) if phrase else (),
        prefixes=(prefix,) if prefix else (),
    )


def found(reader: ReadTransaction, scope: Scope, query: WordQuery, limit: int = 10) -> list[str]:
    """The bodies of the passages that have the words, best first."""
    matches = reader.words(scope, query, limit)
    assert [one.score for one in matches] == sorted((one.score for one in matches), reverse=True)
    stored = reader.passages([one.passage for one in matches])
    assert all(stored[one.passage].note == one.note for one in matches)
    return [stored[one.passage].body for one in matches]


def paths(notes: Sequence[StoredNote]) -> list[str]:
    return [note.path for note in notes]


def passages_in(reader: ReadTransaction, vault: int) -> dict[int, StoredPassage]:
    return reader.passages(notes=[note.id for note in reader.list_notes(scope_of(vault))])


def counted(reader: ReadTransaction, vault: int) -> tuple[int, int]:
    """How many notes and passages a vault has."""
    (stored,) = [one for one in reader.origins() if one.id == vault]
    return stored.notes, stored.passages


def finish_sync(
    engine: Engine,
    vault: int,
    at: float = 1.0,
    listings: dict[str, bytes | None] | None = None,
    **state: Any,
) -> list[str]:
    nothing: dict[str, Any] = {"unlisted": {}, "times": {}, "missing": ()}
    with engine.writing() as writer:
        return writer.finish_sync(vault, SyncState(at, listings or {}, **(nothing | state)))


def unit(numbers: Sequence[float]) -> Vector:
    vector = np.array(numbers, "<f4")
    return (vector / np.linalg.norm(vector)).astype("<f4").tobytes()


def random_unit(chance: np.random.Generator, dimensions: int) -> Vector:
    return unit(chance.normal(size=dimensions).tolist())


def active_space(writer: WriteTransaction, vault: int, space: VectorSpace = FLOATS) -> StoredSpace:
    found = writer.begin_space(vault, space).active
    assert found
    return found


def embed_all(writer: WriteTransaction, vault: int, space: StoredSpace, vectors: Callable[[str], Vector | None]) -> int:
    _, waiting = writer.waiting(vault, space, 1_000)
    return writer.put_vectors(vault, space, [(one, vectors(one.text)) for one in waiting])


# -- files and notes ---------------------------------------------------------------------------------------------------


@pytest.mark.medium
def test_every_process_sees_by_the_revision_whether_something_was_written(open_engine: Open) -> None:
    engine, other = open_engine(), open_engine()
    vault = oaks(engine, "holm")

    def stays() -> bool:
        before = other.revision()
        with engine.reading() as reader:
            assert counted(reader, vault) == (1, 1)
        return other.revision() == before

    wait_for(stays)  # PostgreSQL counts what other tests write to other databases, too
    before = other.revision()
    put(engine, file("memories/holm.md", "The holm is an elm."))
    assert other.revision() != before
    wait_for(lambda: engine.revision() == other.revision())


def test_files_are_put_replaced_and_dropped(engine: Engine) -> None:
    vault = put(
        engine,
        file("memories/oak.md", "Oaks live long."),
        file("articles/elm.md", "---\ntitle: Elms\n---\n# Elms\n\nThey fall.\n\n## Ill\n\nAll.\n"),
        IndexedFile("memories/blob.md", "1234", 1_000.0, None, [], "not a text file"),
    )
    with engine.reading() as reader:
        assert counted(reader, vault) == (2, 3)
        assert sorted(reader.files(vault)) == ["articles/elm.md", "memories/blob.md", "memories/oak.md"]
        assert reader.files(vault, reported=True) == {"memories/blob.md": StoredFile("1234", "not a text file", None)}
        assert list(reader.files(vault, ["memories/oak.md", "memories/never.md"])) == ["memories/oak.md"]

    put(engine, file("articles/elm.md", "Elms stand again."), file("memories/blob.md", "Text after all."))
    with engine.reading() as reader:
        assert counted(reader, vault) == (3, 3)
        assert reader.files(vault, reported=True) == {}
        assert [one.body for one in passages_in(reader, vault).values() if one.ref == "article:elm"] == [
            "Elms stand again."
        ]
        assert found(reader, scope_of(vault), words("fall")) == []

    with engine.writing() as writer:
        assert writer.drop_files(vault, ["memories/oak.md", "memories/never.md"]) == ["memories/oak.md"]
    with engine.reading() as reader:
        assert counted(reader, vault) == (2, 2)
        assert found(reader, scope_of(vault), words("oaks")) == []
        assert reader.named(scope_of(vault), "oak") == []


def test_names_are_found_as_they_are_typed(engine: Engine) -> None:
    titles = {"a": "Tide clock", "b": "A clock for tides", "c": "Undertides", "d": "Oaks", "e": "Elms"}
    vault = put(
        engine,
        *(file(f"memories/{name}.md", f"---\ntitle: {title}\n---\nText.\n") for name, title in titles.items()),
        file("articles/trees/oak.md", "---\naliases: [Quercus robur]\n---\nText.\n"),
    )

    def named(text: str, limit: int = 10) -> list[str]:
        with engine.reading() as reader:
            best = reader.names_like([vault], text, limit)
            notes = {note.id: note.ref for note in reader.find_notes(None, "id", best)}
            return [notes[one] for one in best]

    assert named("tide") == ["memory:a", "memory:b", "memory:c"], "it begins with it, a word does, it is inside"
    assert named("tide", 1) == ["memory:a"]
    assert named("tdclk") == ["memory:a"], "letters in this order"
    assert named("quercus") == named("trees oak") == ["article:trees/oak"]
    assert named("zqx") == []
    with engine.reading() as reader:
        oak = reader.named(scope_of(vault), "oak")[0].note
        assert sorted(reader.names_of([oak])) == [
            (oak, "oak", "title"),
            (oak, "quercus robur", "alias"),
        ], "neither the ref nor the folders"


def test_notes_and_passages_are_counted_by_source(engine: Engine) -> None:
    put(engine, file("memories/elm.md", "Elms."), origin=OTHER)
    long = file("articles/long.md", "# One\n\nText.\n\n# Two\n\nText.\n")
    memories = [file(f"memories/{name}.md", f"{name}.") for name in ("a", "b")]
    vault = put(engine, *memories, long, file("articles/oaks.md", "Oaks."))
    finish_sync(engine, vault, missing=["memories/a.md"])

    with engine.reading() as reader:
        assert [tuple(one) for one in reader.counts(vault)] == [("article", 2, 3, 0), ("memory", 2, 2, 1)]
        assert reader.counts(vault + 100) == []


def test_dropping_a_vault_forgets_everything_of_it_and_nothing_of_another(engine: Engine) -> None:
    one, other = oaks(engine, "ash", "elm"), oaks(engine, "yew", origin=OTHER)
    with engine.writing() as writer:
        for vault in (one, other):
            space = active_space(writer, vault)
            embed_all(writer, vault, space, lambda text: unit([1, 0, 0, 0, 0, 0, 0, 0]))
    finish_sync(engine, one, 5.0, {"memories": b"x"})

    with engine.writing() as writer:
        assert len(writer.drop_files(one, None)) == 2
    with engine.reading() as reader:
        assert counted(reader, one) == (0, 0)
        assert (reader.files(one), reader.listings(one), reader.term_counts([one])[1]) == ({}, ({}, []), {})
        assert found(reader, scope_of(one, other), words("oak")) == ["The yew is an oak."]
        near = reader.nearest(scope_of(one, other), space, unit([1, 1, 0, 0, 0, 0, 0, 0]), 10)
        assert [reader.passages([one.passage])[one.passage].ref for one in near] == ["memory:yew"]
    oaks(engine, "ash")  # and it may be filled again
    with engine.reading() as reader:
        assert counted(reader, one)[0] == 1


def test_any_text_can_be_stored(engine: Engine) -> None:
    texts = [
        '---\ntitle: "\\ud800"\ntags: ["a\\udfffb"]\nx: "\\ud800"\n---\nbody',
        '---\ntitle: "a\\0b"\ntags: ["a\\0b"]\nx: "\\0"\ny: .nan\nz: -.inf\n---\nbody' + " words" * 2_000 + "[[a\0b]]",
        "",
        "🌳",
    ]
    vault = put(engine, *(file(f"memories/{number}.md", text) for number, text in enumerate(texts)))

    with engine.reading() as reader:
        assert sorted(paths(reader.list_notes(scope_of(vault)))) == [f"memories/{number}.md" for number in range(4)]


def test_an_outline_has_a_line_for_each_note_that_passes_and_beginnings_their_first_texts(engine: Engine) -> None:
    long = "---\ntitle: Oak\ntags: [a, 'say \"b\"']\ncreated: 1970-01-02\n---\n" + "\n\n".join(
        f"# Part {number}\n\nText {number}." for number in range(5)
    )
    vault = put(engine, file("articles/oak.md", long, 3 * DAY), file("memories/elm.md", "Elms.", 2 * DAY))

    with engine.reading() as reader:
        lines = {line.path: line for line in reader.outline(scope_of(vault))}
        tagged = reader.outline(scope_of(vault, filters=Filters(tags=("a",))))
        oak, elm = lines["articles/oak.md"], lines["memories/elm.md"]
        texts = reader.beginnings([oak.id, elm.id], 2)

        assert (oak.title, oak.source, oak.tags, oak.created, oak.changed) == (
            "Oak",
            "article",
            ("a", 'say "b"'),
            DAY,
            3 * DAY,
        )
        assert (elm.tags, elm.created, elm.changed) == ((), 2 * DAY, 2 * DAY)
        assert tagged == [oak]
        assert [*map(len, texts.values())] == [2, 1]
        assert "Text 0." in texts[oak.id][0]
        assert reader.beginnings([], 2) == {}


# -- words -------------------------------------------------------------------------------------------------------------

POOLS = {
    "blue": "---\ntitle: Deploys\ntags: [ops]\n---\nThe blue pool takes traffic first.",
    "green": "The green pool follows after ten quiet minutes of traffic.",
    "swim": "The pool in the garden is blue, and nobody swims first.",
    "cafe": "---\naliases: [Kubernetes]\ndescription: The cluster.\n---\nLe café naïf.",
}


@pytest.fixture
def pools(engine: Engine) -> tuple[Engine, Scope]:
    vault = put(engine, *(file(f"memories/{name}.md", text) for name, text in POOLS.items()))
    return engine, scope_of(vault)


WORD_QUERIES: list[tuple[WordQuery, list[str]]] = [
    (words("blue pool traffic"), ["blue", "swim", "green"]),
    (words("minute zebra"), ["green"]),
    (words(phrase="blue pool"), ["blue"]),
    (words(phrase="pool blue"), []),
    (words("garden", phrase="blue"), ["swim", "blue"]),
    (words("zebra", phrase="blue pool"), ["blue"]),
    (words(prefix="traf"), ["blue", "green"]),
    (words("quiet", prefix="gard"), ["swim", "green"]),
    (words("cafe NAÏF"), ["cafe"]),
    (words("kubernetes"), ["cafe"]),
    (words("cluster"), ["cafe"]),
    (words("ops"), ["blue"]),
    (words("deploying"), ["blue"]),
    (words("swim"), ["swim"]),
    (words('pool" OR "x'), ["swim", "blue", "green"]),
    (WordQuery(), []),
]


def test_words_find_passages_with_any_term_and_each_phrase(pools: tuple[Engine, Scope]) -> None:
    engine, scope = pools
    wrong: list[object] = []
    with engine.reading() as reader:
        for query, names in WORD_QUERIES:
            bodies = found(reader, scope, query)
            right = {POOLS[name].split("---\n")[-1] for name in names}
            if set(bodies) != right or found(reader, scope, query, limit=1) != bodies[:1]:
                wrong.append((query, bodies))
    assert wrong == []


def test_better_matches_come_first(engine: Engine) -> None:
    vault = put(
        engine,
        file("memories/mention.md", "---\ntitle: Other things\n---\nWe talked about rollback once."),
        file("memories/title.md", "---\ntitle: Rollback\n---\nHow we go back."),
        file("memories/twice.md", "---\ntitle: Others\n---\nA rollback of the rollback."),
    )

    with engine.reading() as reader:
        for limit in (3, 2, 1):
            matches = reader.words(scope_of(vault), words("rollback"), limit)
            stored = reader.passages([one.passage for one in matches])
            right = ["memory:title", "memory:twice", "memory:mention"][:limit]
            assert [stored[one.passage].ref for one in matches] == right


def test_a_long_note_does_not_crowd_out_the_others(engine: Engine) -> None:
    long = [Passage(f"pool pool pool {number}", number, number) for number in range(1, 60)]
    vault = put(
        engine, file("articles/long.md", "x", passages=long), file("memories/short.md", "One pool of many words.")
    )

    with engine.reading() as reader:
        assert "One pool of many words." in found(reader, scope_of(vault), words("pool"))


def test_texts_are_found_in_the_middle_of_words_whatever_their_case(engine: Engine) -> None:
    front = '---\ntitle: Feeds\ndirector: "[[Ridley Scott]]"\n---\n'
    elsewhere = put(engine, file("memories/other.md", "Other productivityhacks."), origin=OTHER)
    vault = put(
        engine,
        file("memories/feeds.md", f"{front}The ProductivityHacks letter.", mtime=2_000),
        file("memories/umlaut.md", "---\ntags: [gem\u00fcse]\n---\nEin \u00c4PFELKORB und 100% Apfelmus.", mtime=3_000),
    )

    with engine.reading() as reader:

        def having(*texts: str, filters: Filters | None = None, limit: int = 10) -> list[str]:
            ids = reader.containing(scope_of(vault, filters=filters), texts, limit)
            return [reader.passages([number])[number].path.split("/")[-1] for number in ids]

        assert having("ivityhack") == having("IVITYHACK") == having("idley") == ["feeds.md"]
        assert having("\u00e4PFEL") == having("0%") == having("m\u00fcs") == ["umlaut.md"]
        assert having("e") == ["umlaut.md", "feeds.md"], "the newest first"
        assert having("e", limit=1) == ["umlaut.md"]
        assert having("ivity", "letter") == ["feeds.md"]
        assert having("ivity", "korb") == having() == having("ivity", filters=Filters(tags=("x",))) == []
        assert len(reader.containing(scope_of(vault, elsewhere), ["ivity"], 10)) == 2


def test_word_statistics_of_a_vault_do_not_depend_on_another(engine: Engine) -> None:
    vault = oaks(engine, "ash", "elm", "yew")
    with engine.reading() as reader:
        before = reader.words(scope_of(vault), words("ash oak"), 10)

    many = [file(f"memories/{number}.md", f"Ash number {number}.") for number in range(50)]
    other = put(engine, *many, origin=OTHER)

    oak, ash, zebra = tokens("oak ash zebra")
    with engine.reading() as reader:
        after = reader.words(scope_of(vault), words("ash oak"), 10)
        assert [one.score for one in after] == [one.score for one in before]
        assert reader.term_counts([vault], [oak, ash, zebra]) == (3, {oak: 3, ash: 1, zebra: 0})
        assert reader.term_counts([vault, other], [ash]) == (53, {ash: 51})
        assert reader.term_counts([vault])[1].items() >= {oak: 3, ash: 1}.items()
        assert reader.term_counts([vault, other])[1]["49"] == 1
        assert len(found(reader, scope_of(vault, other), words("ash"), limit=20)) == 20


# -- vectors -----------------------------------------------------------------------------------------------------------


def test_only_a_process_that_searches_again_and_again_reads_every_vector_into_memory(tmp_path: Path) -> None:
    assert np  # which the encoder imports for a single search
    engine = SqliteEngine.at(str(tmp_path / "search.db"))
    vault = oaks(engine, "garry", "holm")
    with engine.writing() as writer:
        space = active_space(writer, vault, FLOATS)
        embed_all(writer, vault, space, lambda text: random_unit(np.random.default_rng(3), 8))
    ran: list[str] = []
    with engine.reading() as reader:
        assert isinstance(reader, SqliteTransaction)
        every = resident.EVERY.format(table=vectors_table(space.id))
        reader.connection.trace_v2(apsw.SQLITE_TRACE_STMT, lambda event: ran.append(event["sql"]))

        for search in range(resident.FEW_SCANS + 1):
            assert every not in ran, search
            reader.nearest(scope_of(vault), space, random_unit(np.random.default_rng(4), 8), 2)

        assert every in ran
    engine.close()


@pytest.mark.parametrize(("space", "off"), [(FLOATS, 1e-5), (BYTES, 5e-3)], ids=["floats", "bytes"])
def test_the_nearest_passages_are_those_of_the_exact_cosines(engine: Engine, space: VectorSpace, off: float) -> None:
    chance = np.random.default_rng(3)
    made: dict[str, Vector] = {}
    vault = oaks(engine, *(f"tree{number}" for number in range(60)))
    other = oaks(engine, "elsewhere", origin=OTHER)
    query = random_unit(chance, space.dimensions)
    with engine.writing() as writer:
        for one in (vault, other):
            stored = active_space(writer, one, space)
            embed_all(writer, one, stored, lambda text: made.setdefault(text, random_unit(chance, space.dimensions)))

    with engine.reading() as reader:
        passages = passages_in(reader, vault)
        right = {
            number: float(np.frombuffer(made[f"{one.title}\n{one.body}"], "<f4") @ np.frombuffer(query, "<f4"))
            for number, one in passages.items()
        }
        everything = reader.nearest(scope_of(vault), stored, query, 1_000)
        best = reader.nearest(scope_of(vault), stored, query, 7)
        some = [*list(passages)[::7], 999_999]
        cosines = reader.cosines(stored, query, some)
        two = [one.note for one in passages.values()][3:5]
        vectors = dict(reader.vectors(stored, [*two, 999_999]))

    assert {one.passage: one.score for one in everything} == pytest.approx(right, abs=off)
    assert [one.score for one in everything] == sorted((one.score for one in everything), reverse=True)
    assert [one.passage for one in best] == [one.passage for one in everything[:7]]
    assert all(passages[one.passage].note == one.note for one in best)
    assert cosines == pytest.approx({number: right[number] for number in some[:-1]}, abs=off)
    by_note = {one.note: np.frombuffer(made[f"{one.title}\n{one.body}"], "<f4") for one in passages.values()}
    assert vectors.keys() == set(two)
    assert all(float(np.frombuffer(vectors[note], "<f4") @ by_note[note]) == pytest.approx(1, abs=off) for note in two)
    if space == FLOATS:
        assert [one.passage for one in everything] == sorted(right, key=lambda number: -right[number])


def test_a_vector_is_stored_only_for_a_passage_that_still_waits_as_it_was_read(engine: Engine) -> None:
    vector = unit([1, 0, 0, 0, 0, 0, 0, 0])
    vault = oaks(engine, "ash", "elm", "yew", "fir")
    with engine.writing() as writer:
        space = active_space(writer, vault)
        waiting = {one.text.split("\n")[0]: one for one in writer.waiting(vault, space, 10)[1]}
        assert writer.waiting(vault) == writer.waiting(vault, space) == (4, [])
        assert len(writer.waiting(vault, space, 2)[1]) == 2
        writer.put_vectors(vault, space, [(waiting["Fir"], vector)])

    put(engine, file("memories/ash.md", "Another text."))
    with engine.writing() as writer:
        writer.drop_files(vault, ["memories/elm.md"])
        assert writer.put_vectors(vault, space, [(one, vector) for one in waiting.values()]) == 1
        assert [one.text for one in writer.waiting(vault, space, 10)[1]] == ["Ash\nAnother text."]
        assert len(writer.nearest(scope_of(vault), space, vector, 10)) == 2


def test_a_vector_that_is_ready_is_stored_with_its_passage_and_the_others_wait(engine: Engine) -> None:
    vector = unit([1, 0, 0, 0, 0, 0, 0, 0])
    elm, ash = file("memories/elm.md", "An elm."), file("memories/ash.md", "An ash.")
    key = text_hash("Elm\nAn elm.")
    with engine.writing() as writer:
        vault = writer.add_origin(VAULT)
        assert writer.put_files(vault, [elm], [ReadyVectors(FLOATS, {key: vector})]) == 1, "the vault has no space yet"
        space = active_space(writer, vault)
        assert writer.put_files(vault, [elm, ash], [ReadyVectors(FLOATS, {key: vector})]) == 1
    with engine.reading() as reader:
        (near,) = reader.nearest(scope_of(vault), space, vector, 10)
        assert (reader.passages([near.passage])[near.passage].body, near.score) == ("An elm.", pytest.approx(1))
        assert [one.text for one in reader.waiting(vault, space, 10)[1]] == ["Ash\nAn ash."]
        assert reader.cached(FLOATS, [key]) == {key: vector}
    with engine.writing() as writer:
        writer.cache(FLOATS, {b"of a text that is gone": vector})
    engine.erase()
    with engine.reading() as reader:
        assert reader.cached(FLOATS, [key, b"of a text that is gone"]) == {key: vector}
    with engine.writing() as writer:
        other = ReadyVectors(FLOATS._replace(model="other"), {key: vector})
        assert writer.put_files(vault, [elm], [other]) == 1, "vectors of another space are not used"


def test_a_new_space_replaces_the_active_one_when_it_is_complete(engine: Engine) -> None:
    query, turned = unit([1, 0, 0, 0, 0, 0, 0, 0]), random_unit(np.random.default_rng(1), 256)
    vault = oaks(engine, "ash", "elm")
    with engine.writing() as writer:
        active = active_space(writer, vault)
        embed_all(writer, vault, active, lambda text: query)

        state = writer.begin_space(vault, BYTES)
        assert state.building
        assert (state.active, state.building.space) == (active, BYTES)
        assert writer.waiting(vault, state.building)[0] == 2
        assert len(writer.nearest(scope_of(vault), active, query, 10)) == 2
        assert writer.nearest(scope_of(vault), state.building, turned, 10) == []

    oaks(engine, "yew")  # belongs to both
    with engine.writing() as writer:
        assert (writer.waiting(vault, active)[0], writer.waiting(vault, state.building)[0]) == (1, 3)
        assert not writer.finish_space([vault], state.building)
        embed_all(writer, vault, state.building, lambda text: turned)
        assert writer.finish_space([vault], state.building)
        stored = writer.origins()[0]
        assert (stored.active, stored.building) == (state.building, None)
        assert writer.waiting(vault)[0] == 0
        assert len(writer.nearest(scope_of(vault), state.building, turned, 10)) == 3
        assert writer.nearest(scope_of(vault), active, query, 10) == []


def test_a_new_space_replaces_the_active_ones_of_several_origins_together(engine: Engine) -> None:
    chance = np.random.default_rng(1)
    both = [oaks(engine, "ash"), oaks(engine, "elm", origin=OTHER)]
    empty = put(engine, origin=Origin("vault", "/empty"))
    with engine.writing() as writer:
        for vault in both:
            embed_all(writer, vault, active_space(writer, vault), lambda text: random_unit(chance, 8))
        built = writer.begin_space(both[0], BYTES).building
        assert built
        embed_all(writer, both[0], built, lambda text: random_unit(chance, 256))
        assert not writer.finish_space([*both, empty], built), "the other one has not begun"
        writer.begin_space(both[1], BYTES)
        assert not writer.finish_space([*both, empty], built)
        embed_all(writer, both[1], built, lambda text: random_unit(chance, 256))
        assert [stored.building for stored in writer.origins()[:2]] == [built, built]

        assert writer.finish_space([*both, empty], built)
        assert [(stored.active, stored.building) for stored in writer.origins()[:2]] == [(built, None)] * 2


def test_the_vectors_of_the_floor_stay_whatever_space_answers(engine: Engine) -> None:
    several, static = VectorSpace("languages", "several", 256), random_unit(np.random.default_rng(1), 256)
    vault = oaks(engine, "ash", "elm")
    with engine.writing() as writer:
        floor = writer.keep_floor(vault, BYTES).floor
        assert floor
        assert writer.keep_floor(vault, BYTES).spaces == [floor]
        active = writer.begin_space(vault, several).active
        assert active
        for space in (floor, active):
            embed_all(writer, vault, space, lambda text: static)

    oaks(engine, "yew")  # belongs to both
    with engine.writing() as writer:
        assert [writer.waiting(vault, space)[0] for space in (floor, active)] == [1, 1]
        assert [writer.is_waiting(vault, count, active) for count in (0, 1)] == [True, False]
        embed_all(writer, vault, floor, lambda text: static)
        assert not writer.is_waiting(vault, 0, floor)
        stored = writer.origins()[0]
        assert (stored.active, stored.building, stored.floor) == (active, None, floor)
        assert (stored.seen(lambda space: True).active, stored.seen(lambda space: False).active) == (active, floor)
        assert [len(writer.nearest(scope_of(vault), space, static, 10)) for space in (active, floor)] == [2, 3]

        stored = writer.begin_space(vault, BYTES)
        assert (stored.active, stored.building) == (floor, None), "it is complete"
        assert writer.nearest(scope_of(vault), active, static, 10) == []
        writer.begin_space(vault, several)
        assert len(writer.nearest(scope_of(vault), floor, static, 10)) == 3


def test_a_vault_without_passages_changes_its_space_at_once(engine: Engine) -> None:
    vault = put(engine)
    with engine.writing() as writer:
        writer.begin_space(vault, FLOATS)
        stored = writer.begin_space(vault, BYTES)

    assert (stored.active and stored.active.space, stored.building) == (BYTES, None)


def test_a_full_cache_forgets_what_was_used_least_recently(engine: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("co_cli.index.tables.spaces.CACHE_ENTRIES", 3)
    monkeypatch.setattr("co_cli.index.tables.spaces.EVICT_EVERY", 2)
    keys = [b"a", b"b", b"c", b"d", b"e"]
    sizes: list[int] = []
    with engine.writing() as writer:
        for key in keys[:4]:
            writer.cache(FLOATS, {key: unit([1] * 8)}, [b"a"] if key == b"d" else ())
            sizes.append(writer.cache_state().entries)
        writer.cache(FLOATS, {b"e": unit([1] * 8)})
        assert set(writer.cached(FLOATS, keys)) == {b"a", b"c", b"d", b"e"}, "not evicted on every write"
    assert sizes == [1, 2, 3, 3]


# -- filters -----------------------------------------------------------------------------------------------------------

FILTERED = {
    "memories/ann.md": "category: Decision\ntags: [ops/deploy, Größe]\nplace: Straße 7\nprovenance: agent",
    "memories/bob.md": "category: fact\ntags: [ops, it's]\ndone: true\nweight: 12\nown-key.a: [Ann, Bob]",
    "articles/Deep/cy.md": "tags: [opsx]\ncreated: 2024-05-01T09:30:00Z\ndone: false\nprovenance: Import",
}
MAY = 1_714_521_600.0
"""2024-05-01, midnight."""
HALF_PAST_NINE = MAY + 9.5 * 3_600
CASES: dict[str, tuple[Filters, str]] = {
    "nothing": (Filters(), "ann bob cy"),
    "a tag covers those below it": (Filters(tags=("ops",)), "ann bob"),
    "a tag below": (Filters(tags=("#Ops/Deploy",)), "ann"),
    "a tag in any spelling": (Filters(tags=("GRÖSSE",)), "ann"),
    "a tag with a quote": (Filters(tags=("it's",)), "bob"),
    "all tags": (Filters(tags=("ops", "größe")), "ann"),
    "any tag": (Filters(tags=("größe", "opsx", "zebra"), any_tag=True), "ann cy"),
    "half a tag": (Filters(tags=("op",)), ""),
    "category": (Filters(category="DECISION"), "ann"),
    "half a category": (Filters(category="deci"), ""),
    "since": (Filters(since=HALF_PAST_NINE), "cy"),
    "since a moment later": (Filters(since=HALF_PAST_NINE + 1), ""),
    "until": (Filters(until=HALF_PAST_NINE - 1), "ann bob"),
    "as of": (Filters(as_of=HALF_PAST_NINE), "ann bob cy"),
    "as of before": (Filters(as_of=999.0), ""),
    "a field in any spelling": (Filters(fields=(("place", "STRASSE 7"),)), "ann"),
    "a boolean": (Filters(fields=(("done", "True"),)), "bob"),
    "the other boolean": (Filters(fields=(("done", "false"),)), "cy"),
    "a number": (Filters(fields=(("weight", "12"),)), "bob"),
    "a member of a list": (Filters(fields=(("own-key.a", "bob"),)), "bob"),
    "the value of another field": (Filters(fields=(("place", "12"),)), ""),
    "two fields": (Filters(category="fact", fields=(("done", "true"), ("weight", "12"))), "bob"),
    "a part of the path": (Filters(paths=("DEEP/",)), "cy"),
    "two parts of the path": (Filters(paths=("memories", "nn")), "ann"),
    "a part of the file name": (Filters(files=("CY",)), "cy"),
    "a folder is no file name": (Filters(files=("deep",)), ""),
    "a speaker": (Filters(speakers=("agent",)), "ann"),
    "who names nobody is the user": (Filters(speakers=("user", "import")), "bob cy"),
    "injection": (Filters(tags=("' or 1 --",), fields=(("x') --", '"'),)), ""),
    "no text": (Filters(tags=("\ud800",), fields=(("\udfff", "\ud800"),), paths=("\ud800",)), ""),
}


def test_filters_narrow_every_kind_of_search_alike(engine: Engine) -> None:
    vault = put(engine, *(file(path, f"---\n{fields}\n---\nAn oak here.") for path, fields in FILTERED.items()))
    put(engine, file("memories/elsewhere.md", "An oak elsewhere."), origin=OTHER)
    query = unit([1] * 8)
    with engine.writing() as writer:
        space = active_space(writer, vault)
        embed_all(writer, vault, space, lambda text: query)

    wrong: list[object] = []
    with engine.reading() as reader:
        stored = {one.id: one.path for one in passages_in(reader, vault).values()}
        for case, (filters, names) in CASES.items():
            scope = scope_of(vault, filters=filters)
            results = {
                "words": [stored[one.passage] for one in reader.words(scope, words("oak"), 10)],
                "meaning": [stored[one.passage] for one in reader.nearest(scope, space, query, 10)],
                "names": [stored[one.passage] for name in ("ann", "bob", "cy") for one in reader.named(scope, name)],
                "list": paths(reader.list_notes(scope)),
            }
            right = sorted(path for path in FILTERED if path.split("/")[-1][:-3] in names.split())
            wrong += [(case, by, got) for by, got in results.items() if sorted(got) != right]
    assert wrong == []


# -- names, links and validity -----------------------------------------------------------------------------------------


def validity(engine: Engine, now: float, **notes: str) -> dict[str, str | None]:
    """Why each of these notes is not valid at a moment; None if it is."""
    created = {name: (number + 1) * DAY for number, name in enumerate(notes)}
    vault = put(engine, *(file(f"memories/{name}.md", f"---\n{notes[name]}\n---\nx", created[name]) for name in notes))
    with engine.reading() as reader:
        ids = {note.id: note.path[9:-3] for note in reader.list_notes(scope_of(vault))}
        found = reader.validities(list(ids), now)
        return {name: found[number].problem(now) if found else None for number, name in ids.items()}


SUPERSEDED = "superseded by memory:new"
SUPERSESSIONS: dict[str, tuple[dict[str, str], dict[str, str | None]]] = {
    "the newer names the older": (
        {"old": "x: 1", "new": "supersedes: memory:old"},
        {"old": SUPERSEDED, "new": None},
    ),
    "by title": (
        {"old": "title: The Old One", "new": "supersedes: '[[the old one]]'"},
        {"old": SUPERSEDED, "new": None},
    ),
    "the older names the newer": (
        {"old": "superseded_by: memory:new", "new": "x: 1"},
        {"old": SUPERSEDED, "new": None},
    ),
    "the newest of two successors": (
        {"old": "x: 1", "mid": "supersedes: old", "new": "supersedes: old"},
        {"old": SUPERSEDED, "mid": None, "new": None},
    ),
    "each other: the newer is valid": (
        {"old": "supersedes: new", "new": "supersedes: old"},
        {"old": SUPERSEDED, "new": None},
    ),
    "itself means nothing": ({"old": "supersedes: old", "new": "superseded_by: new"}, {"old": None, "new": None}),
    "one that is not here": (
        {"old": "superseded_by: ghost", "new": "x: 1"},
        {"old": "superseded by ghost", "new": None},
    ),
    "one that is not valid yet": ({"old": "x: 1", "new": "supersedes: old\nvalid_from: 2030-01-01"}, {}),
}


def test_a_superseded_note_is_not_valid(open_engine: Open) -> None:
    engine, wrong = open_engine(), list[object]()
    for case, (notes, said) in SUPERSESSIONS.items():
        with engine.writing() as writer:
            writer.drop_files(writer.add_origin(VAULT), None)
        problems = validity(engine, 100 * DAY, **notes)
        if problems != (said or {"old": None, "new": "not valid yet"}):
            wrong.append((case, problems))
    assert wrong == []


# -- transactions ------------------------------------------------------------------------------------------------------


def test_a_write_that_fails_leaves_nothing_behind_and_lets_others_write(engine: Engine) -> None:
    vault = oaks(engine, "ash")
    with pytest.raises(ZeroDivisionError), engine.writing() as writer:
        writer.put_files(vault, [file("memories/elm.md", "An elm."), file("memories/ash.md", "Changed.")])
        writer.drop_files(vault, ["memories/ash.md"])
        writer.begin_space(vault, FLOATS)
        writer.add_origin(OTHER)
        _ = 1 / 0

    with engine.reading() as reader:
        assert counted(reader, vault) == (1, 1)
        assert found(reader, scope_of(vault), words("ash elm")) == ["The ash is an oak."]
        assert reader.origin(OTHER) is None
        assert reader.origins()[0].active is None
    done = threading.Thread(target=oaks, args=(engine, "yew"), daemon=True)
    done.start()
    done.join(60)
    with engine.reading() as reader:
        assert counted(reader, vault)[0] == 2


def test_a_read_transaction_sees_one_moment_while_others_write(engine: Engine, open_engine: Open) -> None:
    vault = oaks(engine, "ash")
    with engine.reading() as reader:
        before = counted(reader, vault)
        for writing in (engine, open_engine()):  # of this process, and as another one would
            thread = threading.Thread(target=oaks, args=(writing, "elm", "yew"))
            thread.start()
            thread.join()
        with engine.reading() as inner:  # one transaction of this thread
            assert counted(inner, vault) == before
        assert counted(reader, vault) == before
        assert found(reader, scope_of(vault), words("oak")) == ["The ash is an oak."]
        assert reader.term_counts([vault])[1].keys() == {*tokens("ash the is an oak")}

    with engine.reading() as reader:
        assert counted(reader, vault)[0] == 3


def test_vectors_that_another_process_changes_are_never_answered_from_memory(engine: Engine, open_engine: Open) -> None:
    one, other = unit([1, 0, 0, 0, 0, 0, 0, 0]), unit([0, 1, 0, 0, 0, 0, 0, 0])
    vault = oaks(engine, "ash", "elm")
    elsewhere = open_engine()

    def nearest(space: StoredSpace) -> str:
        with engine.reading() as reader:
            (near,) = reader.nearest(scope_of(vault), space, one, 1)
            return reader.passages([near.passage])[near.passage].title

    for turn in range(12):
        first = "Ash" if turn % 2 else "Elm"
        with elsewhere.writing() as writer:
            assert writer.add_origin(VAULT) == vault
            space = active_space(writer, vault)
            writer.reembed(vault, space)
            embed_all(writer, vault, space, lambda text, first=first: one if text.startswith(first) else other)
        for _ in range(1 + turn):
            assert nearest(space) == first


def test_a_rebuild_swaps_in_a_complete_store_while_others_read(engine: Engine, open_engine: Open) -> None:
    with engine.writing() as writer:
        writer.cache(FLOATS, {b"kept": unit([1] * 8)})
    vault = oaks(engine, "ash")
    elsewhere, done = open_engine(), threading.Event()
    seen: set[int | str] = set()

    def look() -> None:
        while not done.is_set():
            try:
                with elsewhere.reading() as reader:
                    stored = reader.origin(VAULT)
                    seen.add(stored.notes if stored else "no vault")
            except Exception as failure:
                seen.add(repr(failure))

    def fill(fresh: Engine) -> None:
        oaks(fresh, "elm")
        oaks(fresh, "yew")

    def catch_up(fresh: Engine) -> None:
        oaks(fresh, "fir")

    looking = threading.Thread(target=look)
    looking.start()
    try:
        with engine.reading() as reader:
            engine.rebuild(fill, catch_up)
            assert counted(reader, vault)[0] == 1, "an open transaction keeps the old store"
    finally:
        done.set()
        looking.join()

    assert seen <= {1, 3}
    with engine.reading() as reader:
        assert counted(reader, vault)[0] == 3
        assert set(reader.cached(FLOATS, [b"kept"])) == {b"kept"}, "the embedding cache is copied"


def test_writers_wait_while_a_rebuild_catches_up_and_then_write_to_the_new_store(
    engine: Engine, open_engine: Open
) -> None:
    vault, elsewhere = oaks(engine, "ash"), open_engine()
    writing = threading.Thread(target=lambda: oaks(elsewhere, "late"))

    def fill(fresh: Engine) -> None:
        oaks(fresh, "elm")

    def catch_up(fresh: Engine) -> None:
        writing.start()
        writing.join(0.1)
        assert writing.is_alive()

    engine.rebuild(fill, catch_up)
    writing.join()

    with engine.reading() as reader:
        assert sorted(paths(reader.list_notes(scope_of(vault)))) == ["memories/elm.md", "memories/late.md"]


def test_a_rebuild_that_fails_leaves_the_old_store(engine: Engine) -> None:
    vault = oaks(engine, "ash")

    def fail(fresh: Engine) -> None:
        oaks(fresh, "elm")
        raise ZeroDivisionError

    for steps in ((fail, print), (print, fail)):
        with pytest.raises(ZeroDivisionError):
            engine.rebuild(*steps)
        oaks(engine, "ash")  # the lock is free
        with engine.reading() as reader:
            assert paths(reader.list_notes(scope_of(vault))) == ["memories/ash.md"]


def test_a_scope_may_have_some_passages_only_or_all_but_some(engine: Engine) -> None:
    vault = oaks(engine, "ash", "elm", "fir")
    with engine.reading() as reader:
        ids = {passage.path: passage.id for passage in passages_in(reader, vault).values()}
        elm, every = {ids["memories/elm.md"]}, scope_of(vault)
        for scope, left in (
            (replace(every, only=elm), ["elm"]),
            (replace(every, without=elm), ["ash", "fir"]),
            (replace(every, only=set[int]()), []),
        ):
            expected = [f"memories/{name}.md" for name in left]
            assert sorted(paths(reader.list_notes(scope))) == expected
            assert sorted(found(reader, scope, words("oak"))) == [f"The {name} is an oak." for name in left]
