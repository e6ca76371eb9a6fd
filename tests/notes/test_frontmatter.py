"""What a word in frontmatter means, with python-frontmatter or without."""

from __future__ import annotations

import frontmatter
from hypothesis import given

from co_cli.notes.frontmatter import NoteHandler, read_frontmatter, render_value, resolve_scalar
from tests.notes.frontmatters import Block, blocks


def test_a_bare_word_means_what_its_writer_meant() -> None:
    for written, meant in (
        ("NO", "NO"),
        ("on", "on"),
        ("yes", "yes"),
        ("1.10", "1.10"),
        ("1.5", 1.5),
        ("0.8", 0.8),
        ("07", "07"),
        ("12", 12),
        ("1_000", "1_000"),
        ("0x1F", "0x1F"),
        ("1:30", "1:30"),
        ("2026-03-01", "2026-03-01"),
        ("True", True),
        ("~", None),
        ("null", None),
        ("12345678901234567890123", "12345678901234567890123"),
        ("!!str 12", "12"),
        ("'12'", "12"),
    ):
        if not written.startswith(("!", "'")):
            assert resolve_scalar(written) == meant
        assert NoteHandler().load(f"a: {written}") == {"a": meant}


@given(block=blocks())
def test_python_frontmatter_reads_a_note_as_we_do(block: Block) -> None:
    front = read_frontmatter(block.text)
    if not front.problem:
        assert frontmatter.loads(block.text, handler=NoteHandler()).metadata == front.metadata


def test_a_value_is_written_on_one_line_with_quotes_only_where_needed() -> None:
    for value, written in (
        ("Blue first", "Blue first"),
        ("Deploys: blue first", '"Deploys: blue first"'),
        ("it's on, or NO", "it's on, or NO"),
        ("C# and F#", "C# and F#"),
        ("[[Oak]]", '"[[Oak]]"'),
        ("two\nlines", '"two\\nlines"'),
        ("12", '"12"'),
        ("1.10", "1.10"),
        ("2026-03-01T10:00:00Z", "2026-03-01T10:00:00Z"),
        (0.8, "0.8"),
        (True, "true"),
        (["a, b", "c"], '["a, b", c]'),
        ({"a": [1, None]}, "{a: [1, null]}"),
        (("a", "b"), "[a, b]"),
    ):
        assert render_value(value) == written
