"""What a word in frontmatter means, and how a value is written."""

from __future__ import annotations

from co_cli.notes.frontmatter import HANDLER, render_value


def test_a_bare_word_means_what_its_writer_meant() -> None:
    meant = {
        **{word: word for word in ("NO", "on", "1.10", "07", "1_000", "0x1F", "1:30", "2026-03-01", "1" * 23)},
        **{"1.5": 1.5, "12": 12, "True": True, "~": None, "null": None, "!!str 12": "12", "'12'": "12"},
    }

    assert {word: HANDLER.load(f"a: {word}")["a"] for word in meant} == meant


def test_a_value_is_written_on_one_line_with_quotes_only_where_needed() -> None:
    written: list[tuple[object, str]] = [
        ("it's on, or NO", "it's on, or NO"),
        ("Deploys: blue first", '"Deploys: blue first"'),
        ("C# and F#", "C# and F#"),
        ("[[Oak]]", '"[[Oak]]"'),
        ("two\nlines", '"two\\nlines"'),
        ("12", '"12"'),
        ("ends with a no-break space\xa0", '"ends with a no-break space\xa0"'),
        (True, "true"),
        (["a, b", "c"], '["a, b", c]'),
        ({"a": [1, None]}, "{a: [1, null]}"),
    ]

    assert [render_value(value) for value, _ in written] == [text for _, text in written]
