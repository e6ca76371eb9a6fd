"""Ranking only what can reach the top gives what ranking everything gives."""

from __future__ import annotations

import random
from collections.abc import Iterator

import apsw
import pytest

from co_cli.index import best_words
from co_cli.index.best_words import RANKED, best_by_words
from co_cli.index.connection import fetch

PASSAGES = 3_000
WORDS = [f"w{number}" for number in range(400)]
COLUMNS = ("title", "heading", "body", "tags", "aliases", "grams", "context")


@pytest.fixture(scope="module")
def connection() -> Iterator[apsw.Connection]:
    """Passages of words as rare as words are, and one word that most of them have."""
    opened = apsw.Connection(":memory:")
    opened.execute(f"create virtual table docs_fts using fts5 ({', '.join(COLUMNS)})")
    choose = random.Random(5)
    weights = [1 / (rank + 3) for rank in range(len(WORDS))]
    put = f"insert into docs_fts (rowid, {', '.join(COLUMNS)}) values ({', '.join('?' * 8)})"
    with opened:
        for number in range(1, PASSAGES + 1):
            body = choose.choices(WORDS, weights, k=choose.randrange(5, 60)) + ["most"] * (choose.random() < 0.7)
            context = choose.choices(WORDS, weights, k=8)
            title = choose.choices(WORDS, weights, k=3)
            opened.execute(put, (number, " ".join(title), "", " ".join(body), "", "", "", " ".join(context)))
    yield opened
    opened.close()


@pytest.fixture(autouse=True)
def however_few(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(best_words, "FEW", 0)


def counts_of(connection: apsw.Connection, words: list[str]) -> dict[str, int | None]:
    count = "select count(*) from docs_fts where docs_fts match :match"
    return {f'"{word}"': fetch(connection, count, {"match": word})[0][0] for word in words}


def every_rank(connection: apsw.Connection, words: list[str]) -> list[tuple[int, float]]:
    return fetch(connection, RANKED, {"match": " OR ".join(words), "limit": PASSAGES})


@pytest.mark.parametrize("limit", [1, 10, 100])
def test_the_best_are_those_of_ranking_everything(connection: apsw.Connection, limit: int) -> None:
    choose = random.Random(limit)
    for _ in range(40):
        words = list(
            dict.fromkeys([*choose.choices(WORDS, k=choose.randrange(1, 6)), *choose.choices(WORDS[:60], k=2)])
        )
        words += ["most"] * choose.randrange(2)
        ranks = dict(every_rank(connection, words))

        found = best_by_words(connection, counts_of(connection, words), PASSAGES, limit)

        best = sorted(ranks.values())[:limit]
        assert [rank for _, rank in found] == pytest.approx(best, abs=1e-4)
        assert [ranks[passage] for passage, _ in found] == pytest.approx(best, abs=1e-4)
        assert len({passage for passage, _ in found}) == len(found)


def test_what_only_has_common_words_is_not_ranked(connection: apsw.Connection) -> None:
    words = ["w350", "w390", "w25", "most"]
    counts = counts_of(connection, words)
    asked: list[str] = []

    def note(_: apsw.Cursor, statement: str, values: apsw.Bindings | None) -> bool:
        asked.append(str(values["match"]) if isinstance(values, dict) else statement)
        return True

    connection.exec_trace = note
    try:
        found = best_by_words(connection, counts, PASSAGES, 5)
    finally:
        connection.exec_trace = None

    assert len(found) == 5
    assert asked == ['("w390" OR "w350")', '("w25")']


def test_a_word_of_which_nothing_is_known_is_ranked(connection: apsw.Connection) -> None:
    words = ["w200", "w0", "w1"]
    counts = {**counts_of(connection, words), '"w0"': None}

    found = best_by_words(connection, counts, PASSAGES, 20)

    assert dict(found) == pytest.approx(dict(every_rank(connection, words)[:20]), abs=1e-4)


def test_fewer_matches_than_wanted_are_all_found(connection: apsw.Connection) -> None:
    words = ["w399", "most"]

    found = best_by_words(connection, counts_of(connection, words), PASSAGES, PASSAGES)

    assert dict(found) == pytest.approx(dict(every_rank(connection, words)), abs=1e-4)


def test_words_that_nobody_has_find_nothing(connection: apsw.Connection) -> None:
    assert best_by_words(connection, {'"nobody"': 0, '"nothing"': 0}, PASSAGES, 10) == []


@pytest.mark.parametrize(
    "bodies",
    [
        # alike in the rare word, and only the last of them have the common one too
        ["rare x y z"] * 195 + ["rare common y z"] * 5 + ["common x y z"] * 1_800 + ["q x y z"] * 3_000,
        # so long that the rare word gives little: a short text with the common one is better
        [f"rare {'x ' * 3_000}"] * 10 + ["common"] * 1_000 + ["q " * 20] * 4_000,
    ],
    ids=["many alike", "long texts"],
)
def test_what_common_words_bring_up_is_found(bodies: list[str]) -> None:
    with apsw.Connection(":memory:") as opened:
        opened.execute(f"create virtual table docs_fts using fts5 ({', '.join(COLUMNS)})")
        opened.executemany("insert into docs_fts (body) values (?)", [(body,) for body in bodies])
        right = fetch(opened, RANKED, {"match": "rare OR common", "limit": 5})

        found = best_by_words(opened, counts_of(opened, ["rare", "common"]), len(bodies), 5)

    assert [rank for _, rank in found] == pytest.approx([rank for _, rank in right], abs=1e-4)
