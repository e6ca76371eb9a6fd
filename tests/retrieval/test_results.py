"""A hit: one for each note, its snippet with marks at the matched words, and how sure it is."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from co_cli.index.stored import StoredPassage
from co_cli.index.tokens import tokens
from co_cli.retrieval.candidates import Candidates
from co_cli.retrieval.query import parse
from co_cli.retrieval.results import (
    SNIPPET,
    Fit,
    Snippet,
    confidence,
    is_unlike,
    make_hit,
    make_snippet,
)
from co_cli.retrieval.score import Scored

WORDS = st.lists(
    st.sampled_from(["oak", "Oaks", "élm", "İstanbul", "ß", "木", "東京都", "a", "\n", "x" * 90]), max_size=80
)
FIT = Fit((10.0, 5.0, 0.0, -8.0), 100)


def snippet(body: str, query: str, prefix: bool = False) -> Snippet:
    return make_snippet(body, parse(query, prefix).words)


def marked(found: Snippet) -> list[str]:
    return [found.text[start:end] for start, end in found.marks]


def passage(body: str, source: str = "memory") -> StoredPassage:
    path = "articles/a/b.md" if source == "article" else "memories/b.md"
    ref = "article:a/b" if source == "article" else "memory:b"
    place = (1, 1, 1, ref, source, path, "/vault", "Title", 0.0, ("tag",), "", "fact", None)
    return StoredPassage(*place, "Part", 3, 9, body, "")


def test_a_long_text_is_cut_between_words_where_most_of_the_query_stands() -> None:
    body = "needle " + "filler " * 200 + "the blue needle is here " + "filler " * 200

    assert snippet("Oaks live\n long.", "long") == Snippet("Oaks live long.", ((10, 14),)), "not cut"
    assert snippet("Oaks live long. " * 50, "zebra").text.startswith("Oaks live long."), "its words are not there"
    found = snippet(body, "blue needle")

    assert marked(found) == ["blue", "needle"]
    assert found.text.startswith("…filler ")
    assert found.text.endswith("filler…")
    assert len(found.text) <= SNIPPET + 2


def test_a_table_is_shown_as_its_cells_with_their_marks() -> None:
    table = "| service | port |\n| :--- | ---: |\n| bell tower | 9090 |\n| gate | |\n| a \\| b |\n"
    code = "```\n| kept | here |\n```\n"

    found = snippet(f"Ports:\n{table}\nA | b, and\n| no row\n{code}", "tower 9090")

    assert found.text == "Ports: service, port; bell tower, 9090; gate; a | b A | b, and | no row\n| kept | here |"
    assert marked(found) == ["tower", "9090"]
    assert snippet(table.rstrip(), "gate").text.startswith("service, port; bell tower, 9090; gate")
    open_ended = "Ports:\nservice | port\n:--- | ---\nbell tower | 9090\ngate | 80\n\nA | b."
    assert snippet(open_ended, "gate").text == "Ports: service, port; bell tower, 9090; gate, 80 A | b."


def test_quotes_callouts_and_wikilinks_are_shown_as_their_text() -> None:
    callout = "> [!warning]- Careful\n> The bilge pump is live.\n>> Even at night, 3 > 2.\n"
    links = "![[Winter storage]] and [[Grass|the meadow]], not [[ -f pump ]].\n"
    code = "```\n> [[kept]]\n```\n"

    found = snippet(f"{callout}\n{links}{code}", "bilge meadow")

    assert found.text == (
        "Careful The bilge pump is live. Even at night, 3 > 2. "
        "Winter storage and the meadow, not [[ -f pump ]].\n> [[kept]]"
    )
    assert marked(found) == ["bilge", "meadow"]


def test_marks_cover_every_form_of_the_matched_words() -> None:
    cases = {
        "running": ["runs", "Run"],
        "cafe": ["Café"],
        "東京都": ["東京都"],
        '"the Café"': ["The", "Café"],
        "zebra": [],
    }
    assert {query: marked(snippet("She runs. Run! The Café in 東京都.", query)) for query in cases} == cases
    assert marked(snippet("Zanzibar, and zanily so", "zan", prefix=True)) == ["Zanzibar", "zanily"]


@given(body=WORDS.map(" ".join), query=WORDS.map(" ".join))
def test_every_mark_is_a_word_of_the_query_and_marks_are_in_order(body: str, query: str) -> None:
    found = snippet(body, query)

    wanted = {*parse(query).words.terms, *parse(query).words.prefixes}
    assert all(any(token.startswith(tuple(wanted)) for token in tokens(text)) for text in marked(found))
    assert list(found.marks) == sorted(found.marks)
    assert all(start < end <= len(found.text) for start, end in found.marks)
    assert "\n" not in found.text


def test_a_hit_says_where_it_is_and_its_signals_add_up_to_its_score() -> None:
    one = Scored(1, 1, {"meaning": 0.123456, "words": 0.200049})

    hit = make_hit(one, passage("Oaks live long.", "article"), parse("oaks"), "team:", weak=False)

    assert (hit.ref, hit.path, hit.lines) == ("team:article:a/b#L3-9", "/vault/articles/a/b.md", (3, 9))
    assert hit.signals == {"meaning": 0.1235, "words": 0.2}
    assert hit.score == 0.3235
    assert (hit.title, hit.heading, hit.tags, hit.category) == ("Title", "Part", ("tag",), "fact")
    assert make_hit(one, passage("x"), parse("x"), "", weak=True).ref == "memory:b", "a memory is opened whole"


def test_confidence_grows_with_the_cosine_and_with_the_words_that_are_there() -> None:
    assert confidence(FIT, 0.8, 0.0, None) == pytest.approx(0.5)
    assert confidence(FIT, 0.3, 1.0, None) == pytest.approx(0.5)


def test_what_was_read_is_judged_by_the_readers_score_and_a_little_by_meaning_and_words() -> None:
    unsure, near, read = (
        confidence(FIT, *figures) for figures in ((0.1, 0.0, -2.0), (0.3, 1.0, -2.0), (0.1, 0.0, 4.0))
    )
    assert unsure < near < 0.5 < read


def test_a_hit_is_unlike_if_neither_meaning_nor_words_support_it() -> None:
    [stem] = tokens("oaks")
    cases: list[tuple[dict[str, float], dict[int, float], bool]] = [
        ({"meaning": 0.1, "words": 0.0}, {1: 0.1}, True),
        ({"meaning": 0.7, "words": 0.0}, {1: 0.9}, False),
        ({"meaning": 0.1, "words": 0.3}, {1: 0.15}, False),
        ({"meaning": 0.1, "words": 0.0, "name": 1.0}, {1: 0.1}, False),
        ({"words": 0.1}, {}, False),
    ]
    for signals, cosines, weak in cases:
        found = Candidates(idf={stem: 2.0}, cosines=cosines)
        assert is_unlike(Scored(1, 1, signals), passage("Oaks live long."), found, FIT) is weak, signals
