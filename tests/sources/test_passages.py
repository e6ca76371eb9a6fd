"""How notes are cut into passages and sentences: at the right places, and without losing anything."""

from __future__ import annotations

import logging
from dataclasses import replace
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from co_cli.ground.hits import Passage
from co_cli.notes.note import Note, read_note
from co_cli.sources.cutting import CutRule, sentences
from co_cli.sources.documents import read_document
from co_cli.sources.documents.outline import outline
from co_cli.sources.passages import LONGEST, LONGEST_PROPOSED, Lines, passages_of

MARKS = (
    "# One|## Two|### Three|# One #|#tag|```|~~~|```python|- item|  - inner|1. first|    code|> said|---|===|***|* * *"
)
WORDS = (
    "words of a line|A sentence. Another one! And e.g. a third?|彼は言った。そうです。|a / b|[x]: y|<b>|é\u2028x|\ttab"
)
LINE = st.sampled_from(
    [
        *MARKS.split("|"),
        *WORDS.split("|"),
        *("", "", "| a | b |", "|---|:-:|"),
        *("x" * 300, "Oaks live. " * 30, "語" * 400),
    ]
)
TEXT = st.one_of(st.lists(LINE, max_size=60).map("\n".join), st.text(alphabet="a.#-`|> \n\t。é", max_size=300))
RULES = st.sampled_from([CutRule(), CutRule(80, 160, 0), CutRule(80, 80), CutRule(200, 400, 1.0), CutRule(1, 1)])


def article(body: str, head: str = "") -> Note:
    return read_note("articles/a.md", (head + body).encode())


def texts_of(body: str, rule: CutRule | None = None) -> list[str]:
    return [passage.text for passage in passages_of(article(body), rule=rule or CutRule())]


def shown(note: Note, passage: Passage) -> str:
    """What stands on a passage's lines."""
    lines = note.body.split("\n")
    return "\n".join(lines[passage.first_line - note.body_line : passage.last_line - note.body_line + 1])


def test_a_memory_is_one_passage_whatever_its_headings() -> None:
    note = read_note("memories/a.md", b"---\ntitle: T\n---\n\n# One\n\ntext\n\n# Two\n\nmore\n\n")

    passages = passages_of(note)

    assert [(one.text, one.first_line, one.last_line) for one in passages] == [
        ("# One\n\ntext\n\n# Two\n\nmore", 5, 11)
    ]


def test_headings_and_what_belongs_to_them() -> None:
    expected = {
        "Deploys\n=======\n\nBlue first.\n\nRolling back\n---\n\nGreen again.\n": [
            ("Blue first.", 1, 4, ""),
            ("Green again.", 6, 9, "Rolling back"),
        ],
        "# Deploys\n\nIntro.\n\n## Blue\n\nFirst.\n": [("Intro.", 1, 3, ""), ("First.", 5, 7, "Blue")],
        "# A\n\n## B\n\n### C\n\ntext\n": [("text", 1, 7, "B > C")],
        "# T\n\n## To do\n\n## Done\n\ntext\n": [("## To do", 1, 3, "To do"), ("text", 5, 7, "Done")],
        "": [("", 1, 1, "")],
    }

    assert {body: [tuple(one)[:4] for one in passages_of(article(body))] for body in expected} == expected


def test_a_long_section_is_cut_between_its_blocks_into_passages_of_like_length() -> None:
    paragraph = "word " * 50

    passages = texts_of("# Long\n\n" + f"{paragraph}\n\n" * 5)

    assert passages == ["\n\n".join([paragraph] * 3).rstrip(), "\n\n".join([paragraph] * 2).rstrip()]


def test_code_tables_and_lists_stay_whole_beyond_the_length_of_a_passage() -> None:
    blocks_there = {
        "code": "```\n" + "code line\n\n" * 300 + "```",
        "table": "| a | b |\n|---|---|\n" + "| cell | another cell |\n" * 150,
        "list": "- an item of the list\n\n  and its second paragraph\n" * 70,
        "code in a list": "1. first\n\n   ```\n" + "   code\n\n" * 400 + "   ```\n2. second",
    }
    before, after = "word " * 150, "more " * 150

    found = {name: texts_of(f"# Long\n\n{before}\n\n{block}\n\n{after}\n") for name, block in blocks_there.items()}

    assert all(LONGEST < len(block) <= LONGEST_PROPOSED for block in blocks_there.values())
    assert found == {name: [before.rstrip(), block.rstrip(), after.rstrip()] for name, block in blocks_there.items()}


def test_a_long_paragraph_is_cut_at_sentence_ends_and_says_a_sentence_again() -> None:
    said = [f"This is sentence number {number}, as Dr. Oak said, e.g. Yesterday." for number in range(25)]
    note = article(" ".join(said))

    passages = passages_of(note)

    assert len(passages) == 2
    assert all(passage.text.startswith("This is") and passage.text.endswith("Yesterday.") for passage in passages)
    last = passages[0].text.rpartition("This is")[2]
    assert passages[1].text.startswith(f"This is{last}")
    assert [(passage.first_line, passage.last_line) for passage in passages] == [(1, 1), (1, 1)]


def test_a_long_table_is_cut_between_its_rows_and_its_header_is_searched_with_each_passage() -> None:
    note = article("| city | people |\n|---|---|\n" + "".join(f"| Oakham {n} | 10,922 |\n" for n in range(400)))

    passages = passages_of(note)

    assert len(passages) > 2
    assert "| city | people |" not in passages[0].around
    assert all(passage.around.startswith("| city | people |\n") for passage in passages[1:])
    assert all(passage.text.endswith("10,922 |") and passage.text in shown(note, passage) for passage in passages)


def test_a_passage_is_searched_with_the_nearest_sentences_of_its_neighbours() -> None:
    note = article(
        "# A\n\nOaks live very long. So they say here.\n\n## B\n\nElms.\n\n## C\n\nFew birches are left. The end.\n"
    )

    assert [passage.around for passage in passages_of(note)] == [
        "Elms.",
        "So they say here.\nFew birches are left.",
        "Elms.",
    ]


@pytest.mark.medium
def test_huge_documents_are_cut_in_one_pass() -> None:
    """Not timed: more passes over the text would take minutes."""
    for text in (
        "x" * 500_000,
        "A b c. " * 15_000,
        "你好吗朋友。" * 15_000,
        "a." + " " * 500_000 + "b",
        "line of text\n" * 20_000,
        "- a\n\n```\n" * 6_000,
        "|a|b|\n|-|-|\n" + "|1|2|\n" * 20_000,
        "```\n" + "code\n\n" * 10_000,
        "# h\n" * 10_000,
    ):
        passages = passages_of(article(text))

        assert max(len(passage.text) for passage in passages) <= LONGEST_PROPOSED, text[:10]
        assert passages[-1].last_line == len(text.rstrip().split("\n")), text[:10]


@given(body=TEXT, head=st.sampled_from(["", "---\na: 1\n---\n"]), rule=RULES)
def test_nothing_is_lost_and_every_passage_stands_on_its_lines(body: str, head: str, rule: CutRule) -> None:
    note = article(body, head)
    lines = note.body.split("\n")

    passages = passages_of(note, rule=rule)

    assert passages == passages_of(note, rule=rule)
    covered: set[int] = set()
    for passage in passages:
        assert passage.text in shown(note, passage)
        assert passage.text.strip() or not note.body.strip()
        covered.update(range(passage.first_line, passage.last_line + 1))
    assert [number for number, line in enumerate(lines, note.body_line) if line.strip() and number not in covered] == []
    for one, other in pairwise(passages):
        assert one.first_line <= other.first_line
        assert one.last_line <= other.last_line


BODY = "# A\n\nfirst\n\n## B\n\nsecond\n\nthird\n"


def test_a_proposal_cuts_the_document_s_own_lines() -> None:
    found = passages_of(article(BODY), boundaries=lambda note: ((1, 7), (9, 9)))

    assert [tuple(passage)[:4] for passage in found] == [("first\n\n## B\n\nsecond", 1, 7, ""), ("third", 9, 9, "B")]


def test_a_wrong_proposal_is_ignored_with_a_warning(caplog: pytest.LogCaptureFixture) -> None:
    note = article(BODY)
    expected: dict[tuple[Lines, ...], str] = {
        (): "lines 1-10 are left out",
        ((1, 9), (9, 10)): "line 9 comes after line 9",
        ((1, 3), (7, 9)): "lines 4-6 are left out",
        ((0, 9),): "lines 0-9 of 10",
        ((3, 1),): "lines 3-1 of 10",
        ((1, 3), (4, 4), (5, 9)): "lines 4-4 are blank",
    }
    for ranges, wrong in expected.items():
        with caplog.at_level(logging.WARNING, "co_cli"):
            assert passages_of(note, boundaries=lambda note, ranges=ranges: ranges) == passages_of(note)
        assert wrong in caplog.text


@given(body=TEXT, cuts=st.sets(st.integers(1, 60)))
def test_a_good_proposal_loses_nothing(body: str, cuts: set[int]) -> None:
    note = article(body)
    lines = note.body.split("\n")
    edges = [0, *sorted(cut for cut in cuts if cut < len(lines)), len(lines)]
    ranges = [(first + 1, last) for first, last in pairwise(edges) if any(line.strip() for line in lines[first:last])]

    passages = passages_of(note, boundaries=lambda note: ranges or None)

    covered = {line for one in passages for line in range(one.first_line, one.last_line + 1)}
    assert all(number in covered for number, line in enumerate(lines, note.body_line) if line.strip())
    assert all(passage.text in shown(note, passage) for passage in passages)


def read(name: str, text: str) -> Note:
    """As a folder's document is read, which need not be Markdown."""
    document = read_document(name, text.encode())
    return replace(article(""), path=name, body=document.text, sections=document.headings, source="folder")


def test_code_is_cut_between_its_functions_and_a_function_stays_whole() -> None:
    lines = "".join(f"    # step {number}\n    moor({number})\n\n" for number in range(100))
    note = read(
        "harbour.py",
        f"import os\n\n\n# ties up\ndef moor():\n{lines}\n\nclass Harbour:\n    def open(self):\n        pass\n",
    )

    passages = passages_of(note)

    assert [passage.heading for passage in passages] == ["", "def moor", "class Harbour", "class Harbour > def open"]
    assert passages[1].text.startswith("# ties up\ndef moor():")
    assert passages[1].text.endswith("moor(99)")
    assert LONGEST < len(passages[1].text) <= LONGEST_PROPOSED
    assert all(passage.text in shown(note, passage) for passage in passages)


@given(body=TEXT, name=st.sampled_from(["a.py", "a.txt", "a.rst", "a.json", "a.c", "a.org"]))
def test_nothing_of_another_format_is_lost(body: str, name: str) -> None:
    note = replace(article(""), path=name, body=body, sections=outline(name, body))

    passages = passages_of(note)

    covered = {line for one in passages for line in range(one.first_line, one.last_line + 1)}
    assert all(number in covered for number, line in enumerate(body.split("\n"), note.body_line) if line.strip())
    assert all(passage.text in shown(note, passage) for passage in passages)
    assert all(passage.text.strip() for passage in passages) or not body.strip()


def said(text: str) -> list[str]:
    return [text[start:end] for start, end in sentences(text, 0, len(text))]


def test_sentences_end_where_a_reader_ends_them() -> None:
    texts = [
        ["He said “they live long.”", "Then he left (it was late).", "Nobody followed."],
        ["As Dr. Oak and J. R. Beech say, e.g. Here, it is so.", "The end of it."],
        ["It costs 3.50 or 4.20 in e.g. two shops.", "Version 1.2.3 is out now."],
        ["They ended… slowly, as trees do.", "What then?! Nobody knows."],
        ["彼は毎朝森を歩いていたと言った。", "「そうですか、それはいいですね。」", "彼女は長い間黙ったままだった！"],
        ["यह एक लंबा और सुंदर वाक्य है।", "यह दूसरा लंबा वाक्य है।"],
        ["هل تعيش أشجار البلوط طويلا؟", "نعم، إنها تعيش طويلا جدا."],
        ["Das gilt z.B. Eichen, Buchen usw. Auch für andere.", "Das ist der Schluss."],
        ["Oaks live\nvery long.", "Beeches live\nless long."],
    ]

    found = [said(("" if "。" in expected[0] else " ").join(expected)) for expected in texts]

    assert [one for one in found if one not in texts] == []
