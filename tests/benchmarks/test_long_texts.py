"""Documents are joined into long texts, cut in different ways, and asked for their parts."""

from __future__ import annotations

from pathlib import Path

from benchmarks.long_texts import CUTTERS, join, measure_cut
from co_cli.evaluation.sets import Document, Question
from co_cli.settings import load_settings

FACTS = {
    "oak": "Oaks live for centuries, and their wood is hard. ",
    "elm": "Elms stand along the park, and a beetle kills them. ",
    "ship": "The harbour master keeps a list of boats and their owners. ",
}


def document(name: str, title: str, text: str, speaker: str = "", session: str = "") -> Document:
    return Document(name, text, 0.0, title, speaker, "", "", session)


def test_the_parts_of_a_page_are_joined_in_order_with_their_titles_as_headings() -> None:
    documents = [
        document("a/b-c#1", "One", "first\n"),
        document("a/x#1", "X", "x"),
        document("a/b-c#2", "Two", "second"),
    ]

    headed, bare = join(documents), join(documents, headings=False)

    assert [(text.title, text.text) for text in headed] == [
        ("b c", "## One\n\nfirst\n\n## Two\n\nsecond"),
        ("x", "## X\n\nx"),
    ]
    assert [text.text for text in bare] == ["first\n\nsecond", "x"]
    assert [bare[0].text[part.start : part.end] for part in bare[0].parts] == ["first", "second"]


def test_turns_of_a_session_and_documents_of_one_title_belong_together() -> None:
    turns = [document("1", "", "Hello.", "Ann", "s"), document("2", "", "Hi.", "Ben", "s")]

    assert [text.text for text in join(turns)] == ["Ann: Hello.\nBen: Hi."]
    assert [text.text for text in join([document("1", "T", "a"), document("2", "T", "b")])] == ["a\n\nb"]


def test_a_cut_at_the_parts_finds_each_of_them(tmp_path: Path) -> None:
    """Two pages, the first of which has two parts of 700 characters, which are two passages and not one."""
    documents = [
        document(f"{'trees' if name != 'ship' else 'sea'}#{name}", name.title(), fact + fact.upper() * 13)
        for name, fact in FACTS.items()
    ]
    questions = [
        Question("1", "how old do oaks get", {"trees#oak": 1}),
        Question("2", "what kills the elms", {"trees#elm": 1}),
        Question("3", "who keeps the list of boats", {"sea#ship": 1}),
    ]
    settings = load_settings({"data_dir": str(tmp_path)})

    for name, cutter in CUTTERS.items():
        rows = measure_cut(name, join(documents, headings=False), questions, cutter, settings)
        _, texts, parts, read = (row.value for row in rows)
        assert texts == 1.0
        assert parts == 1.0 or name == "2,000 characters"
        assert 0.4 < read <= 1.0
