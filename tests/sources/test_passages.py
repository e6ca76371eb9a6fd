"""A memory is one passage; an article is cut where its author cut it."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from co_cli.notes.note import Note, read_note
from co_cli.sources.passages import HARD_LIMIT, LONGEST, passages_of

LINE = st.sampled_from(
    ["", "# One", "## Two", "### Three", "words of a line", "```", "~~~", "- item", "x" * 300, "# One # ", "    code"]
)


def article(body: str, head: str = "") -> Note:
    return read_note("articles/a.md", (head + body).encode())


def test_a_memory_is_one_passage_whatever_its_headings() -> None:
    note = read_note("memories/a.md", b"---\ntitle: T\n---\n\n# One\n\ntext\n\n# Two\n\nmore\n\n")

    passages = passages_of(note)

    assert [(one.text, one.first_line, one.last_line) for one in passages] == [
        ("# One\n\ntext\n\n# Two\n\nmore", 5, 11)
    ]


def test_an_article_is_cut_at_its_headings_and_knows_its_lines() -> None:
    note = article(
        "Intro.\n\n# Deploys\n\nBlue first.\n\n## Rolling back\n\nGreen again.\n\n# After\nParty.\n",
        "---\ntitle: Guide\n---\n",
    )

    assert [tuple(passage) for passage in passages_of(note)] == [
        ("Intro.", 4, 4, ""),
        ("Blue first.", 6, 8, "Deploys"),
        ("Green again.", 10, 12, "Deploys > Rolling back"),
        ("Party.", 14, 15, "After"),
    ]


def test_a_heading_that_repeats_the_title_is_not_repeated_in_the_path() -> None:
    note = article("# Deploys\n\nIntro.\n\n## Blue\n\nFirst.\n")

    assert [passage.heading for passage in passages_of(note)] == ["", "Blue"]


def test_a_heading_with_nothing_under_it_is_no_passage() -> None:
    assert [passage.text for passage in passages_of(article("# A\n\n# B\n\ntext\n"))] == ["text"]


def test_a_long_section_is_cut_between_paragraphs_and_never_inside_code() -> None:
    paragraph = "word " * 100 + "\n\n"
    code = "```\n" + "code line\n\n" * 150 + "```\n\n"
    note = article("# Long\n\n" + paragraph * 3 + code + paragraph * 6)

    passages = passages_of(note)

    assert len(passages) > 2
    for passage in passages:
        assert passage.text.count("```") % 2 == 0
        assert passage.heading == ""
    assert all(len(passage.text) <= LONGEST + 600 for passage in passages if "```" not in passage.text)


def test_an_empty_article_is_still_one_passage() -> None:
    assert [passage.text for passage in passages_of(article(""))] == [""]


@given(lines=st.lists(LINE, max_size=60), head=st.sampled_from(["", "---\na: 1\n---\n"]))
def test_every_line_of_an_article_is_in_exactly_one_passage(lines: list[str], head: str) -> None:
    note = article("\n".join(lines), head)
    file_lines = (head + "\n".join(lines)).split("\n")

    passages = passages_of(note)

    covered: list[int] = []
    for passage in passages:
        assert 1 <= passage.first_line <= passage.last_line <= len(file_lines)
        covered += range(passage.first_line, passage.last_line + 1)
        for line in passage.text.split("\n"):
            assert line in file_lines[passage.first_line - 1 : passage.last_line]
        assert len(passage.text) <= HARD_LIMIT + 300
    assert len(covered) == len(set(covered))
    said = [number for number, line in enumerate(file_lines, 1) if line.strip() and number >= note.body_line]
    missed = [file_lines[number - 1] for number in said if number not in covered]
    assert all(line.lstrip().startswith("#") for line in missed)  # headings with nothing under them
