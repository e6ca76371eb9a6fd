"""Text in scripts that are written without spaces is found by any part of it; others by their words."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from co_cli.index.tokens import spans, tokens
from co_cli.knowledge_index import KnowledgeIndex
from co_cli.retrieval.grammar import Node
from co_cli.retrieval.query import needles_in, parse
from tests.folder import Vault

NOTES = {
    "chinese": "我们先把流量切到蓝色池,然后再切绿色池。",
    "japanese": "東京都の会議室は三階にあります。カタカナも使う。",
    "korean": "배포는 금요일에 하지 않습니다. 파란색이 먼저입니다.",
    "thai": "เราปล่อยรุ่นใหม่ทุกวันพุธตอนเช้า",
    "hindi": "हम शुक्रवार को कभी परिनियोजन नहीं करते",
    "russian": "Мы выпускаем новую версию по средам",
    "arabic": "نطلق الإصدار الجديد كل أربعاء",
    "mixed": "Der Deploy heißt 青い月 und läuft nachts.",
    "english": "We never deploy on Fridays.",
}


@pytest.fixture
def world(vault: Vault, index: KnowledgeIndex) -> KnowledgeIndex:
    for name, text in NOTES.items():
        vault.write(f"memories/{name}.md", text)
    index.sync()
    return index


def found(index: KnowledgeIndex, query: str) -> list[str]:
    return [hit.ref.removeprefix("memory:") for hit in index.search(query)]


QUERIES = {
    "chinese": ["流量", "蓝色池", "我们先把流量切到蓝色池", "池", '"然后再切"', '"蓝色池,然后"'],
    "japanese": [
        "会議室",
        "京都",
        "階",
        "カタカナ",
        "\uff76\uff80\uff76\uff85",
        "会議室はどこですか",
    ],
    "korean": ["금요일", "요일", "파란"],
    "thai": ["รุ่นใหม่", "วันพุธ"],
    "hindi": ["परिनियोजन", "शुक्रवार", "परि"],
    "russian": ["версию", "СРЕДАМ"],
    "arabic": ["الإصدار"],
    "mixed": ["青い月", "deploy 青い月", '"青い月 und läuft"'],
}


def test_a_query_in_any_script_finds_the_note_and_no_other_text(world: KnowledgeIndex) -> None:
    wrong = [
        (name, query) for name, queries in QUERIES.items() for query in queries if found(world, query)[:1] != [name]
    ]
    absent = ["蓝绿", "都京", "요금", "ฟหก", '"再切然后"', "色 -绿色"]

    assert wrong == []
    assert {query: found(world, query) for query in absent} == {query: [] for query in absent}
    assert "mixed" in found(world, "deploy")
    assert "mixed" not in found(world, "deploy -青い月")


@given(
    run=st.text(st.sampled_from("東京都木森"), min_size=1, max_size=8),
    text=st.text(st.sampled_from("東京都木森 a"), max_size=20),
)
def test_pairs_find_exactly_the_substrings(run: str, text: str) -> None:
    """What a query asks for, a phrase of pairs or a prefix, is among a text's pairs if the text contains the run."""
    held, asked = tokens(text), parse(run).words
    if len(run) > 1:
        [wanted] = needles_in(Node("phrase", run), ())
        matches = any(tuple(held[place : place + len(wanted)]) == wanted for place in range(len(held)))
    else:
        matches = any(token.startswith(asked.prefixes) for token in held)

    assert matches == (run in text)


@given(text=st.text(st.sampled_from("Oäk 東京ｶﾅ🌳e\u0301_-"), max_size=30))
def test_every_token_says_where_it_stands(text: str) -> None:
    assert [span.token for span in spans(text)] == tokens(text)
    for span in spans(text):
        assert 0 <= span.start < span.end <= len(text)
