"""What a word in frontmatter means, with python-frontmatter or without."""

from __future__ import annotations

import frontmatter
from hypothesis import given

from co_cli.notes.frontmatter import NoteHandler, read_frontmatter, render_value
from tests.notes.frontmatters import Block, blocks


def test_a_bare_word_means_what_its_writer_meant() -> None:
    meant = {
        **{word: word for word in ("NO", "on", "1.10", "07", "1_000", "0x1F", "1:30", "2026-03-01", "1" * 23)},
        **{"1.5": 1.5, "12": 12, "True": True, "~": None, "null": None, "!!str 12": "12", "'12'": "12"},
    }

    assert {word: NoteHandler().load(f"a: {word}")["a"] for word in meant} == meant


@given(block=blocks())
def test_python_frontmatter_reads_a_note_as_we_do(block: Block) -> None:
    front = read_frontmatter(block.text)
    if not front.problem:
        assert frontmatter.loads(block.text, handler=NoteHandler()).metadata == front.metadata


def test_a_value_is_written_on_one_line_with_quotes_only_where_needed() -> None:
    written: list[tuple[object, str]] = [
        ("it's on, or NO", "it's on, or NO"),
        ("Deploys: blue first", '"Deploys: blue first"'),
        ("C# and F#", "C# and F#"),
        ("[[Oak]]", '"[[Oak]]"'),
        ("two\nlines", '"two\\nlines"'),
        ("12", '"12"'),
        (True, "true"),
        (["a, b", "c"], '["a, b", c]'),
        ({"a": [1, None]}, "{a: [1, null]}"),
    ]

    assert [render_value(value) for value, _ in written] == [text for _, text in written]
