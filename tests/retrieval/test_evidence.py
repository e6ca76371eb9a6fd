"""What a passage has of a question is counted word by word, and means the same in every vault."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from co_cli.embedding.static import StaticEmbedder
from co_cli.embedding.word_codes import codes_of, cosine_table
from co_cli.index.lexicon import PassageWords, split_words
from co_cli.retrieval.evidence import AKIN, Evidence, likeness, measure
from co_cli.retrieval.question import Term

MODEL = StaticEmbedder()


def code(word: str) -> int:
    vector = MODEL.embed([word], "document")[0]
    return int.from_bytes(codes_of([vector])[0], "big") if vector else 0


def term(word: str, weight: float = 1.0, named: bool = False) -> Term:
    return Term(word, weight, code(word), named)


def passage(body: str, title: str = "", context: str = "") -> PassageWords:
    return PassageWords(split_words(title), split_words(body), split_words(context))


def evidence(terms: list[Term], *passages: PassageWords) -> list[Evidence]:
    seen = {word for one in passages for part in one[:3] for word in part if word != "."}
    words = {word: (word, code(word)) for word in seen}
    measured = measure(terms, dict(enumerate(passages)), likeness(terms, words, cosine_table()))
    return list(measured.values())


def test_a_word_of_like_meaning_counts_in_part() -> None:
    same, alike, other = evidence(
        [term("doctor")], passage("the doctor came"), passage("the physician came"), passage("the carrot came")
    )

    assert same.related == 1
    assert 0.5 < alike.related < 1
    assert other.related == 0
    assert same.weighed > alike.weighed > other.weighed


def test_the_same_word_is_no_more_akin_than_one_like_it() -> None:
    same, alike, other = evidence(
        [term("doctor")], passage("the doctor came"), passage("the physician came"), passage("the carrot came")
    )

    assert same.akin == alike.akin == AKIN
    assert other.akin == 0


def test_a_name_or_a_number_is_like_nothing_but_itself() -> None:
    alike, same = evidence([term("doctor", named=True)], passage("the physician came"), passage("the doctor came"))

    assert (alike.related, alike.named) == (0, 0)
    assert (same.related, same.named) == (1, 1)


def test_words_in_one_sentence_count_more_than_words_in_two() -> None:
    together, apart = evidence(
        [term("boat"), term("storm")],
        passage("a boat came home through the storm. nobody was hurt at all."),
        passage("a boat came home late on friday. nobody feared the storm at all."),
    )

    assert together.sentence == 1
    assert apart.sentence < 0.7
    assert together.related == apart.related == 1


def test_neighbours_in_the_question_should_be_neighbours_in_the_passage() -> None:
    terms = [term("blue"), term("pool")]
    close, turned, far = evidence(
        terms,
        passage("the blue pool first"),
        passage("the pool is blue first"),
        passage(f"blue {'and then a word ' * 10} pool"),
    )

    assert close.order == 1
    assert close.order > turned.order > far.order > 0
    assert (close.near, far.near) == (1, 0.5)


def test_a_rare_word_counts_more() -> None:
    rare, common = evidence(
        [term("anemometer", weight=6), term("day", weight=1)], passage("an anemometer"), passage("a day")
    )

    assert rare.related > 6 * common.related / 1.5
    assert rare.near > common.near


def test_what_only_the_context_has_is_kept_apart() -> None:
    (found,) = evidence([term("boat"), term("storm")], passage("the boat sank", context="what a storm, said Mara"))

    assert found.context == 0.5
    assert found.related < 1


def test_a_title_counts_for_itself_and_helps_every_sentence() -> None:
    titled, untitled = evidence(
        [term("boat"), term("storm")],
        passage("it sank in a storm near home. nobody was hurt at all.", title="Boat"),
        passage("it sank in a storm near home. nobody was hurt at all."),
    )

    assert titled.title == 0.5
    assert titled.sentence == 1 > untitled.sentence


def test_a_title_that_is_only_how_the_text_begins_counts_for_nothing() -> None:
    given, derived = evidence(
        [term("boat")],
        passage("the boat sank in a storm.", title="The boat"),
        passage("the boat sank in a storm.", title="The boat")._replace(own_title=False),
    )

    assert (given.title, derived.title) == (1, 0)
    assert given._replace(title=0.0) == derived  # its words stand in the text as well, and count there


WORDS = st.lists(st.sampled_from("boat storm doctor physician carrot pool blue . ship 2023 the".split()), max_size=30)


@given(title=WORDS, body=WORDS, context=WORDS, asked=st.sets(st.sampled_from(["boat", "storm", "doctor", "2023"])))
def test_every_share_is_between_none_and_all(
    title: list[str], body: list[str], context: list[str], asked: set[str]
) -> None:
    terms = [term(word, named=word.isdigit()) for word in sorted(asked)]

    (found,) = evidence(terms, PassageWords(title, body, context))

    assert found.weighed >= 0
    assert all(-1e-9 <= share <= 1 + 1e-9 for share in found._replace(weighed=0))
    assert found.near <= found.related + 1e-9


def test_without_terms_or_without_passages_there_is_none() -> None:
    assert evidence([], passage("the doctor came")) == [Evidence()]
    assert measure([term("doctor")], {}, {}) == {}
