"""Lenient in: whatever people and programs write in a Markdown file, it is a note."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import pytest

from co_cli.notes.dates import read_moment
from co_cli.notes.encoding import NotTextError
from co_cli.notes.note import Note, read_note


def note_of(text: str | bytes, path: str = "memories/a-note.md") -> Note:
    return read_note(path, text if isinstance(text, bytes) else text.encode())


def test_every_shape_of_file_gives_title_and_body() -> None:
    for text, title, body in (
        ("Just words.\n", "A note", "Just words.\n"),
        ("\ufeff---\ntitle: T\n---\nB", "T", "B"),  # byte order mark
        ("---\r\ntitle: T\r\n---\r\nB\r\nC\r\n", "T", "B\nC\n"),  # Windows line endings
        ("---\ntitle: T\nlist:\n\t- a\n---\nB", "T", "B"),  # tab as indentation
        ("\n\n---\ntitle: T\n---\nB", "T", "B"),  # blank lines above
        ("---  \ntitle: T\n...\nB", "T", "B"),  # blanks behind the mark, closed by dots
        ("---\ntitle: T\n---", "T", ""),
        ("---\n# only a comment\n---\nB", "A note", "B"),
        ("---\ntitle: T\n---\na\n---\nb: c\n---\n", "T", "a\n---\nb: c\n---\n"),  # rules in the body
        ("---\n\nA rule, no frontmatter.\n", "A note", "---\n\nA rule, no frontmatter.\n"),
        ("```\n# not this\n```\n# This\n", "This", "```\n# not this\n```\n# This\n"),  # title from the heading
        ("", "A note", ""),
        ("---\ntitle:\n  - a\n---\nB", "A note", "B"),
        ("---\ntitle: NO\n---\nB", "NO", "B"),  # a word that YAML 1.1 takes for false
        ('---\ntitle: "two\\nlines"\n---\nB', "two lines", "B"),
    ):
        note = note_of(text)
        assert (note.title, note.body, note.problem) == (title, body, None), text


def test_broken_frontmatter_leaves_the_body_and_says_on_which_line() -> None:
    notes = {inside: note_of(f"---\n{inside}\n---\nBody.") for inside in BROKEN}

    assert {note.body for note in notes.values()} == {"Body."}
    problems = {inside: note.problem or "" for inside, note in notes.items()}
    assert {one: said for one, said in problems.items() if not said.startswith(BROKEN[one]) or "\n" in said} == {}


def test_an_object_tag_builds_nothing() -> None:
    note = note_of("---\ntitle: T\nx: !!python/object/new:os.system [echo]\n---\nBody.")

    assert note.title == "T"
    assert "x" not in note.metadata


def test_an_alias_bomb_is_refused_and_costs_nothing() -> None:
    bomb = "a: &a [x,x,x,x,x,x,x,x,x]\n" + "".join(
        f"{new}: &{new} [{','.join([f'*{old}'] * 9)}]\n" for old, new in zip("abcdefgh", "bcdefghi", strict=True)
    )

    note = note_of(f"---\n{bomb}---\nBody.")

    assert note.body == "Body."
    assert note.problem is not None
    assert "more than 100,000 values" in note.problem
    assert len(str(note.metadata)) < 10_000


def test_merge_keys_copy_a_limited_number_of_fields() -> None:
    doubling = "a0: &a0 {k: v}\n" + "".join(f"a{n}: &a{n} {{<<: [*a{n - 1}, *a{n - 1}]}}\n" for n in range(1, 41))
    wide = f"a: &a {{{', '.join(f'k{n}: v' for n in range(1_000))}}}\nb: {{<<: [{', '.join(['*a'] * 1_000)}]}}\n"
    for bomb in (doubling, wide, doubling.replace("<<", "!!merge x")):
        note = note_of(f"---\ntitle: T\n{bomb}---\nBody.")

        assert (note.title, note.body) == ("T", "Body.")
        assert "`<<` expands to more than 10,000 fields" in (note.problem or "")


def test_merge_keys_give_what_yaml_says() -> None:
    base = "a: &a {x: 1, y: 2}\nb: &b {x: 3, z: 4}\n"
    for mapping, fields in (
        ("{<<: *a, y: 5}", {"x": 1, "y": 5}),
        ("{<<: [*a, *b]}", {"x": 1, "y": 2, "z": 4}),
        ("&c {<<: *c, y: 5}", {"y": 5}),
    ):
        note = note_of(f"---\n{base}c: {mapping}\n---\nBody.")

        assert (note.problem, note.metadata["c"]) == (None, fields)
    assert "not a mapping" in (note_of("---\na: {<<: b}\n---\n").problem or "")


def test_an_integer_tag_makes_no_number_that_takes_long_to_read_or_write() -> None:
    for value in ("1:" * 200_000 + "1", "0x" + "1" * 200_000):
        note = note_of(f"---\na: !!int {value}\n---\nBody.")

        assert note.problem == "line 2: a value that does not fit its `!!tag`"
    assert note_of("---\na: !!int 12\n---\n").metadata == {"a": 12}


@pytest.mark.medium
def test_a_very_deep_block_is_refused_not_crashed_on() -> None:
    for key in ("x: ", "", "x:\n  "):
        for opening in ("[", "{a: ", "- ", "? ", "-\t"):
            note = note_of(f"---\n{key}{opening * 100_000}\n---\nBody.")
            assert note.problem
            assert note.body == "Body.", (key, opening)


BROKEN = {
    "title: T\na: [1": "line 3: a list that is not closed with `]`",
    "title: T\na: 'one": "line 3: a quote that is not closed",
    "date: {{date}}": "line 2: a key that is not a word, as in `{{date}}`; put it in quotes",
    "title: Deploys: blue first": "line 2: a second `: ` in one line; put the value in quotes",
    "ok: 1\nx: *nowhere": "line 3: a value that starts with `*`; put it in quotes",
    "a: @b": "line 2: a value that starts with a character that YAML reserves",
    "- a\n- b": "line 2: the frontmatter is not a list of `key: value` lines",
    "x: !!python/object/apply:os.system [ls]": "line 2: ",
    "x: !!python/name:os.system": "line 2: ",
    **{f"title: T\nx: {value}": "line " for value in ("!!bool x", "!!int ''", "!!timestamp x", "&a [*a]")},
}


def test_tags_and_aliases_are_read_in_every_form() -> None:
    tags = {
        "tags: [Deploy, ops]": ("deploy", "ops"),
        "tags:\n  - deploy\n  - ops": ("deploy", "ops"),
        "tags: deploy, ops": ("deploy", "ops"),
        "tags: '#deploy #ops'": ("deploy", "ops"),
        "tags: ['#deploy', 'on call']": ("deploy", "on call"),
        "tag: deploy": ("deploy",),
        "tags: [2026, true, null]": ("2026", "true"),
        "tags: {a: b}": (),
        "tags:": (),
        "tags: [Cafe\u0301, Café, CAFÉ]": ("café",),
    }
    aliases = {
        "aliases: [Blue pool, BP]": ("Blue pool", "BP"),
        "aliases:\n- Blue pool": ("Blue pool",),
        "alias: Blue pool": ("Blue pool",),
        "aliases:": (),
    }

    assert {written: note_of(f"---\n{written}\n---\n").tags for written in tags} == tags
    assert {written: note_of(f"---\n{written}\n---\n").aliases for written in aliases} == aliases


MOMENTS = """\
2026-03-01T09:30:00Z|2026-03-01 09:30|2026-03-01T10:30:00+01:00|2026-03-01T10:30:00 +0100|2026-03-01T10:30:00+01
'2026-03-01T09:30:00.000Z'|2026-3-1 09:30:00|2026/03/01 09:30:00|2026-03-01 09:30:00 UTC"""


def test_a_date_is_read_in_every_form_and_an_odd_one_is_none() -> None:
    def created(written: str) -> float | None:
        note = note_of(f"---\ntitle: T\ndate: {written}\n---\nBody.")
        assert (note.title, note.body) == ("T", "Body.")
        return note.created

    days, odd = "2026-03-01 2026-3-1 2026/03/01 2026.3.1 20260301 2026-03", "2026-13-01 2026-02-30 soon [2026] true -5"
    moment, day = datetime(2026, 3, 1, 9, 30, tzinfo=UTC).timestamp(), datetime(2026, 3, 1, tzinfo=UTC).timestamp()
    assert {created(written) for written in MOMENTS.replace("\n", "|").split("|")} == {moment}
    assert {created(written) for written in days.split()} == {day}
    assert {created(written) for written in odd.split()} == {None}


def test_another_encoding_is_read_and_reported_and_bytes_are_no_note() -> None:
    broken, wide = note_of(b"---\ntitle: T\n---\nfine\ncaf\xe9\n"), note_of("---\na: 1\n---\nBody.".encode("utf-16"))

    guessed = "line 5: not UTF-8, read as what it looks like; save it as UTF-8"
    assert (broken.body, broken.problem) == ("fine\ncafé\n", guessed)
    damaged = note_of("Bäume in Köln: ".encode() + b"\xe9\n")
    assert (damaged.body, damaged.problem) == (
        "Bäume in Köln: \ufffd\n",
        "line 1: not valid UTF-8; save it as UTF-8",
    )
    assert (wide.body, wide.problem) == ("Body.", "line 1: UTF-16; save it as UTF-8")
    with pytest.raises(NotTextError):
        note_of(b"\x89PNG\x00\x00\x00")


def test_a_note_is_what_it_says_it_is_else_what_its_folder_says() -> None:
    for path, kind, source in (
        ("memories/a.md", "", "memory"),
        ("articles/a.md", "", "article"),
        ("inbox/a.md", "", "article"),
        ("inbox/a.md", "memory", "memory"),
        ("memories/a.md", "article", "article"),
        ("memories/a.md", "nonsense", "memory"),
    ):
        assert note_of(f"---\nkind: {kind}\n---\n", path).source == source


def test_what_can_be_read_but_not_as_it_was_meant_is_reported() -> None:
    for text, problem in (
        ("---\ntitle: T\ntags: [a]\ntags: [b]\n---\nBody.", "line 4: `tags` appears twice; the last one is used"),
        ("---\ntitle: T\n\nBody.", "line 1: frontmatter that never ends; put a line `---` after its last field"),
        ("---\na:\ncreated: 2026-13-45\n---\n", "line 3: created must be a date such as 2026-03-01, not '2026-13-45'"),
        ("---\nupdated: soon\n---\n", "line 2: updated must be a date such as 2026-03-01, not 'soon'"),
    ):
        assert note_of(text).problem == problem


def test_a_note_whose_frontmatter_cannot_be_read_does_not_pass_for_the_user_s() -> None:
    assert note_of("---\nx: [1\n---\nBody.").provenance == "unknown"
    assert note_of("---\nprovenance: web\nx: [1\n---\nBody.").provenance == "web"
    assert note_of("Body.").provenance == "user"
    elsewhere: Any = "a source that is added later"
    assert replace(note_of("Body."), source=elsewhere).provenance == "import"


def test_a_name_that_begins_with_a_day_dates_the_note() -> None:
    for path, title, day in (
        ("articles/Daily/2026-03-01.md", "2026-03-01", "2026-03-01"),
        ("articles/2026-03-01-standup.md", "2026-03-01 standup", "2026-03-01"),
        ("memories/2026-03-01 with Mara.md", "2026-03-01 with Mara", "2026-03-01"),
        ("articles/2026-13-01-no-month.md", "2026 13 01 no month", None),
        ("articles/2026-03-011.md", "2026 03 011", None),
        ("articles/release-2026-03-01.md", "Release 2026 03 01", None),
    ):
        note = read_note(path, b"We met.")
        assert note.title == title
        assert note.created == (None if day is None else read_moment(day))
