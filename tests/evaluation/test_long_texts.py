"""Documents are joined into long texts, cut in different ways, and asked for their parts."""

from __future__ import annotations

from pathlib import Path

import pytest

from co_cli.evaluation.cuts import cutter
from co_cli.evaluation.long_texts import join, measure_cuts, spans
from co_cli.evaluation.sets import Document
from co_cli.settings import load_settings
from tests.chat_server import ChatServer, calls
from tests.command import Co
from tests.evaluation.tiny_set import write_set

FACTS = {
    "oak": "Oaks live for centuries, and their wood is hard. ",
    "elm": "Elms stand along the park, and a beetle kills them. ",
    "ship": "The harbour master keeps a list of boats and their owners. ",
}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Two pages, the first of which has two parts of 700 characters, which are two passages and not one."""
    documents: list[dict[str, object]] = [
        {
            "id": f"{'trees' if name != 'ship' else 'sea'}#{name}",
            "title": name.title(),
            "text": fact + fact.upper() * 13,
        }
        for name, fact in FACTS.items()
    ]
    questions: list[dict[str, object]] = [
        {"id": "1", "text": "how old do oaks get"},
        {"id": "2", "text": "what kills the elms"},
        {"id": "3", "text": "who keeps the list of boats"},
    ]
    return write_set(
        tmp_path / "set", documents, questions, [("1", "trees#oak", 1), ("2", "trees#elm", 1), ("3", "sea#ship", 1)]
    )


def test_the_parts_of_a_page_are_joined_in_order_with_their_titles_as_headings() -> None:
    documents = [
        Document("a/b-c#1", "One", "first\n"),
        Document("a/x#1", "X", "x"),
        Document("a/b-c#2", "Two", "second"),
    ]

    headed, bare = join(documents), join(documents, headings=False)

    assert [(text.title, text.text) for text in headed] == [
        ("b c", "## One\n\nfirst\n\n## Two\n\nsecond"),
        ("x", "## X\n\nx"),
    ]
    assert [text.text for text in bare] == ["first\n\nsecond", "x"]
    assert [bare[0].text[part.start : part.end] for part in bare[0].parts] == ["first", "second"]
    assert [*spans(headed[0])] == [(1, 3), (5, 7)]


def test_turns_of_a_session_and_documents_of_one_title_belong_together() -> None:
    turns = [
        Document("1", "", "Hello.", speaker="Ann", session="s"),
        Document("2", "", "Hi.", speaker="Ben", session="s"),
    ]

    assert [text.text for text in join(turns)] == ["Ann: Hello.\nBen: Hi."]
    assert [text.text for text in join([Document("1", "T", "a"), Document("2", "T", "b")])] == ["a\n\nb"]


def test_a_cut_that_knows_the_parts_finds_each_and_one_that_sees_only_pages_does_not(
    folder: Path, tmp_path: Path
) -> None:
    cutters = {name: cutter(name) for name in ("parts", "co", "5000/0/0")}

    found = measure_cuts(str(folder), str(tmp_path), load_settings({}), cutters, headings=False)

    parts, ours, pages = found
    assert (parts.passages, ours.passages, pages.passages) == (3, 3, 2)
    assert parts.documents.ndcg10 == ours.documents.ndcg10 == pages.documents.ndcg10 == 1.0
    assert parts.parts.ndcg10 == ours.parts.ndcg10 == 1.0
    assert pages.parts.ndcg10 < 1.0
    assert 0.9 < parts.read <= 1.0


def test_the_command_shows_a_row_for_each_way_to_cut(co: Co, folder: Path) -> None:
    shown = co("eval", str(folder), "--passages", "--cut", "co", "--cut", "fixed/300")

    assert shown.code == 0
    lines = shown.out.splitlines()
    assert [line.split()[:2] for line in lines[2:6]] == [
        ["set", "co"],
        ["fixed/300", lines[3].split()[1]],
        ["no", "headings"],
        ["fixed/300", lines[5].split()[1]],
    ]
    assert max(map(len, lines[:6])) <= 80
    rows = co("eval", str(folder), "--passages", "--json").json
    assert [(row["cut"], row["headings"]) for row in rows] == [
        ("co", True),
        ("parts", True),
        ("co", False),
        ("parts", False),
    ]
    assert rows[0]["documents"]["ndcg10"] == 1.0


@pytest.mark.parametrize("name", ["x", "0", "fixed", "fixed/x", "1200/1/1/1", "-5", "fixed/10/1"])
def test_a_way_to_cut_that_there_is_not_is_told(co: Co, folder: Path, name: str) -> None:
    ran = co("eval", str(folder), "--passages", f"--cut={name}")

    assert ran.code == 2
    assert f"--cut {name}: there are co, parts, fixed/2000" in ran.err


def test_a_model_s_cuts_are_measured_beside_ours(co: Co, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """One page is long enough to ask about, with headings and without; the second answer leaves lines out."""
    answers = [[{"first": 1, "last": 4}, {"first": 5, "last": 8}], [{"first": 1, "last": 1}]]
    with ChatServer() as server:
        monkeypatch.setenv("OLLAMA_BASE_URL", server.url)
        monkeypatch.setenv("CO_BOUNDARIES_MODEL", "ollama:qwen3")
        server.play(*(calls(("final_result", {"response": answer})) for answer in answers))

        ran = co("eval", str(folder), "--passages", "--cut", "model", "--cut", "co")

        assert ran.code == 0, ran.err
        assert "model: cut as it said 1 of 2 texts that are long enough to ask about" in ran.out
        assert [line.split()[1] for line in ran.out.splitlines()[2:4]] == ["model", ran.out.splitlines()[3].split()[1]]


def test_a_model_to_measure_has_to_be_named(co: Co, folder: Path) -> None:
    ran = co("eval", str(folder), "--passages", "--cut", "model")

    assert ran.code == 2
    assert "--cut model: the setting boundaries_model names none" in ran.err


@pytest.mark.parametrize("arguments", [["--passages"], ["--cut", "co"]])
def test_passages_are_measured_on_a_set(co: Co, arguments: list[str]) -> None:
    ran = co("eval", *arguments)

    assert ran.code == 2
    assert "--passages needs a SET" in ran.err
