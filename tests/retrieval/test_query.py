"""Any text is a query: operators narrow it, and what only looks like an operator is plain text."""

from __future__ import annotations

from co_cli.ground.hits import Filters
from co_cli.index.tokens import tokens
from co_cli.retrieval.grammar import Node
from co_cli.retrieval.query import MOST_TERMS, Query, parse


def terms(query: Query) -> list[str]:
    return list(query.words.terms)


def exact(query: Query) -> Node | None:
    return query.condition and query.condition.node


def phrase(text: str) -> Node:
    return Node("phrase", text)


def no(text: str) -> Node:
    return Node("not", nodes=(phrase(text),))


def stemmed(*words: str) -> list[str]:
    return [token for word in words for token in tokens(word)]


def test_a_query_is_split_into_words_phrases_exclusions_and_filters() -> None:
    query = parse('how to deploy "blue pool" -green -"red pool" tag:ops #team/a path:guides file:"two words"')

    assert terms(query) == stemmed("deploy", "blue", "pool"), "words of a phrase rank, too"
    assert exact(query) == Node("and", nodes=(phrase("blue pool"), no("green"), no("red pool")))
    assert (query.tags, query.paths, query.files) == (("ops", "team/a"), ("guides",), ("two words",))
    assert query.text == "how to deploy blue pool", "what is embedded has no operators"
    assert (query.spelled, query.quoted, query.refused) == (("deploy",), ("blue pool",), ("green", "red pool"))


PLAIN_TEXT = {
    "ffmpeg -c copy": ["ffmpeg", "c", "copy"],
    "git log -S": ["git", "log", "s"],
    "sort -k2 file": ["sort", "k2", "file"],
    "ls --color never": ["ls", "color", "never"],
    "well-known e-mail": ["well-known", "e-mail"],
    "C# language": ["c", "language"],
    "issue #123": ["issue", "123"],
    "git tag: move one": ["git", "tag", "move", "one"],
    "hashtag:ops": ["hashtag", "ops"],
    "code -2222": ["code", "2222"],
    "-draft": ["draft"],
    '-"old draft"': ["old", "draft"],
    "Mara's boat": ["mara", "boat"],
}


def test_what_only_looks_like_an_operator_is_plain_text() -> None:
    parsed = {text: parse(text) for text in PLAIN_TEXT}

    assert {text: terms(query) for text, query in parsed.items()} == {
        text: stemmed(*words) for text, words in PLAIN_TEXT.items()
    }
    assert [text for text, query in parsed.items() if query.refused or query.narrow(Filters()) != Filters()] == []


def test_a_number_in_quotes_can_be_excluded() -> None:
    query = parse('code -"2222"')
    assert (terms(query), exact(query)) == (stemmed("code"), no("2222"))


def test_an_exclusion_alone_asks_for_what_it_would_exclude_unless_there_is_a_filter() -> None:
    assert exact(parse('-"old draft"')) == phrase("old draft")
    with_a_tag = parse("tag:ops -draft")
    assert (with_a_tag.words.empty, exact(with_a_tag)) == (True, no("draft"))


def test_a_tag_is_read_without_the_punctuation_of_the_sentence() -> None:
    cases = {"#ops!": "ops", "Tag:#Pools.": "Pools", "tag:ops, x": "ops", 'tag:"a b" x': "a b", "#a-1 x": "a-1"}

    assert {text: parse(text).tags for text in cases} == {text: (tag,) for text, tag in cases.items()}


def test_a_quote_that_is_never_closed_is_ignored() -> None:
    query = parse('deploy" AND "x')
    assert (exact(query), query.text) == (None, "deploy AND x")
    assert parse('deploy "blue pool').words == parse("deploy blue pool").words
    assert exact(parse('"blue pool" and "green')) == phrase("blue pool")
    assert parse('"').words.empty
    assert (parse('tag:"ops deploy').tags, parse('tag:"ops deploy').text) == (("ops",), "deploy")
    assert exact(parse('deploy -"blue pool')) == no("blue")


def test_stop_words_count_only_where_there_is_nothing_else() -> None:
    assert terms(parse("what is the harbour")) == stemmed("harbour")
    assert terms(parse("to be or not to be")) == stemmed("to", "be", "or", "not")


def test_a_prefix_completes_the_word_that_is_being_typed() -> None:
    assert parse("the zanzi", prefix=True).words.prefixes[0] == "zanzi"
    assert parse("the zanzi ", prefix=True).words.prefixes == (), "a blank ends the word"
    assert parse("the zanzi").words.prefixes == ()
    assert parse("well-kno", prefix=True).words.prefixes[0] == "kno"


def test_a_query_has_a_maximum_number_of_terms() -> None:
    query = parse(" ".join(f'word{number} "a phrase {number}" -not{number}' for number in range(1_000)))

    node = exact(query)
    assert node
    assert (len(query.words.terms), len(node.nodes)) == (MOST_TERMS, 2 * MOST_TERMS)


def test_filters_of_the_query_are_added_to_those_of_the_caller() -> None:
    query = parse("x tag:ops path:guides")

    assert query.narrow(Filters(tags=("a",), paths=("b",))) == Filters(tags=("a", "ops"), paths=("b", "guides"))
    assert query.narrow(Filters(tags=("a", "b"), any_tag=True)).tags == ("a", "b"), "any of those is enough"


def test_a_colour_is_a_word_and_no_tag() -> None:
    query = parse("where is #0969da used #css")

    assert (query.tags, query.text) == (("css",), "where is 0969da used")
