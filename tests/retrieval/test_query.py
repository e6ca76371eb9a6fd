"""Any text is a query: operators narrow it, and what only looks like an operator is plain text."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from co_cli.index.sqlite.words import match_text
from co_cli.index.tokens import tokens
from co_cli.retrieval.query import MOST_TERMS, Query, parse
from co_cli.values import Filters

PIECES = ("oak", "-", '"', "#", "tag:", "path:", "file:", " ", "東京", "木", "c++", "-xy", "\0", "\ud800", "🎉", "'s")


def terms(query: Query) -> list[str]:
    return list(query.words.terms)


def stemmed(*words: str) -> list[str]:
    return [token for word in words for token in tokens(word)]


def test_a_query_is_taken_apart_into_words_phrases_exclusions_and_filters() -> None:
    query = parse('how to deploy "blue pool" -green -"red pool" tag:ops #team/a path:guides file:"two words"')

    assert terms(query) == stemmed("deploy")
    assert query.words.phrases == (tuple(tokens("blue pool")),)
    assert query.words.excluded == (tuple(tokens("green")), tuple(tokens("red pool")))
    assert (query.tags, query.paths, query.files) == (("ops", "team/a"), ("guides",), ("two words",))
    assert query.text == "how to deploy blue pool", "what is embedded has no operators"
    assert (query.spelled, query.quoted, query.refused) == (("deploy",), ("blue pool",), ("green", "red pool"))


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("ffmpeg -c copy", ["ffmpeg", "c", "copy"]),
        ("git log -S", ["git", "log", "s"]),
        ("sort -k2 file", ["sort", "k2", "file"]),
        ("ls --color never", ["ls", "color", "never"]),
        ("well-known e-mail", ["well-known", "e-mail"]),
        ("C# language", ["c", "language"]),
        ("issue #123", ["issue", "123"]),
        ("git tag: move one", ["git", "tag", "move", "one"]),
        ("hashtag:ops", ["hashtag", "ops"]),
        ("-draft", ["draft"]),
        ('-"old draft"', []),
        ("Mara's boat", ["mara", "boat"]),
    ],
)
def test_what_only_looks_like_an_operator_is_plain_text(text: str, wanted: list[str]) -> None:
    query = parse(text)

    assert terms(query) == stemmed(*wanted)
    assert query.words.excluded == ()
    assert query.narrow(Filters()) == Filters()


def test_an_exclusion_alone_asks_for_what_it_would_exclude_unless_a_filter_says_among_what() -> None:
    assert parse('-"old draft"').words.phrases == (tuple(tokens("old draft")),)
    beside_a_tag = parse("tag:ops -draft")
    assert (beside_a_tag.words.empty, beside_a_tag.words.excluded) == (True, (tuple(tokens("draft")),))


@pytest.mark.parametrize(
    ("text", "tags"),
    [("#ops!", "ops"), ("Tag:#Pools.", "Pools"), ("tag:ops, x", "ops"), ('tag:"a b" x', "a b"), ("#a-1 x", "a-1")],
)
def test_a_tag_is_read_without_the_punctuation_of_the_sentence(text: str, tags: str) -> None:
    assert parse(text).tags == (tags,)


def test_a_quote_that_is_never_closed_ends_with_the_query() -> None:
    assert parse('deploy "blue pool').words.phrases == (tuple(tokens("blue pool")),)
    assert parse('"').words.empty
    assert parse('tag:"ops deploy').tags == ("ops deploy",)


def test_stop_words_count_only_where_there_is_nothing_else() -> None:
    assert terms(parse("what is the harbour")) == stemmed("harbour")
    assert terms(parse("to be or not to be")) == stemmed("to", "be", "or", "not")


def test_scripts_without_spaces_are_searched_by_pairs_and_single_letters_as_beginnings() -> None:
    assert terms(parse("東京都")) == ["東京", "京都"]
    assert terms(parse("ｶﾀｶﾅ")) == terms(parse("カタカナ")), "half width is the same"
    assert (terms(parse("木")), parse("木").words.prefixes) == ([], ("木",))


def test_a_prefix_completes_the_word_that_is_being_typed() -> None:
    assert parse("the zanzi", prefix=True).words.prefixes[0] == "zanzi"
    assert parse("the zanzi ", prefix=True).words.prefixes == (), "a blank ends the word"
    assert parse("the zanzi").words.prefixes == ()
    assert parse("well-kno", prefix=True).words.prefixes[0] == "kno"


def test_a_long_query_keeps_its_first_words() -> None:
    assert len(parse(" ".join(f"word{number}" for number in range(500))).words.terms) == MOST_TERMS


def test_filters_of_the_query_come_on_top_of_those_of_the_caller() -> None:
    query = parse("x tag:ops path:guides")

    assert query.narrow(Filters(tags=("a",), paths=("b",))) == Filters(tags=("a", "ops"), paths=("b", "guides"))
    assert query.narrow(Filters(tags=("a", "b"), any_tag=True)).tags == ("a", "b"), "any of those is enough"


@given(st.one_of(st.text(), st.lists(st.sampled_from(PIECES)).map("".join)), st.booleans())
def test_any_text_parses(text: str, prefix: bool) -> None:
    query = parse(text, prefix)

    query.text.encode("utf-8")
    assert len(query.words.terms) <= MOST_TERMS
    if not query.words.empty:
        assert match_text(query.words)
