"""What was not changed keeps every byte."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from co_cli.ground.errors import FrontmatterError, InvalidInputError
from co_cli.notes.editing import Tags, render_note, set_fields
from co_cli.notes.encoding import NotTextError
from co_cli.notes.frontmatter import read_frontmatter
from co_cli.notes.note import read_note
from tests.command import Co
from tests.folder import Vault
from tests.notes.frontmatters import KEYS, Block, blocks

VALUES = st.one_of(
    st.text(max_size=30),
    st.integers(-(10**6), 10**6),
    st.booleans(),
    st.floats(0, 1).map(lambda number: round(number, 3)),
    st.lists(st.text(max_size=10), max_size=4),
)


@given(text=st.text(), inside=st.text(), key=st.sampled_from(KEYS))
def test_any_text_is_the_same_after_changing_nothing(text: str, inside: str, key: str) -> None:
    for whole in (text, f"---\n{inside}\n---\n{text}"):
        front = read_frontmatter(whole)
        assert set_fields(whole, {}) == whole
        if not front.problem and front.metadata.get(key) is not None:
            assert set_fields(whole, {key: front.metadata[key]}) == whole


@pytest.mark.medium
@given(block=blocks(), value=VALUES, data=st.data())
def test_setting_one_field_changes_the_lines_of_that_field_only(
    block: Block, value: object, data: st.DataObject
) -> None:
    number = data.draw(st.integers(0, len(block.entries) - 1))
    key = block.entries[number].key
    before = read_frontmatter(block.text)
    head, tail = block.around(number)

    try:
        edited = set_fields(block.text, {key: value})
    except FrontmatterError:
        assert before.problem  # only what cannot be read is refused
        return

    assert edited.startswith(head)
    assert edited.endswith(tail)
    after = read_frontmatter(edited)
    assert after.metadata == {**before.metadata, key: value}
    assert list(after.metadata) == list(before.metadata)


@given(block=blocks(), data=st.data())
def test_taking_a_field_away_takes_its_lines_and_no_others(block: Block, data: st.DataObject) -> None:
    number = data.draw(st.integers(0, len(block.entries) - 1))
    before = read_frontmatter(block.text)
    if before.problem:
        return
    head, tail = block.around(number)

    assert set_fields(block.text, {block.entries[number].key: None}) == head + tail


@pytest.mark.medium
@given(block=blocks(), value=VALUES)
def test_a_new_field_is_one_more_line_at_the_end_of_the_block(block: Block, value: object) -> None:
    front = read_frontmatter(block.text)
    if front.problem:
        return

    edited = set_fields(block.text, {"importance": value})

    assert edited.startswith(block.text[: front.end])
    assert edited.endswith(block.text[front.end :])
    added = edited[front.end : len(edited) - len(block.text) + front.end]
    assert added.startswith("importance: ") or added.startswith("importance:")
    assert added.count("\n") == 1
    assert added.endswith(block.newline)
    assert read_frontmatter(edited).metadata["importance"] == value


@given(st.binary())
def test_any_bytes_are_a_note_or_no_text_at_all(data: bytes) -> None:
    for content in (data, b"---\n" + data + b"\n---\nbody"):
        try:
            note = read_note("memories/x.md", content)
        except NotTextError:
            assert b"\0" in content
        else:
            assert note.title
            assert "\0" not in note.body


def test_broken_frontmatter_is_not_edited_by_guessing() -> None:
    with pytest.raises(FrontmatterError) as refused:
        set_fields("---\ntitle: [oops\n---\nBody", {"tags": ["a"]}, "memories/a.md")

    assert str(refused.value).startswith("memories/a.md:")
    assert "\n" not in str(refused.value)


@pytest.mark.parametrize("tags", ["{a: b}", "[boat, {a: b}]", "\n  a: b"])
def test_tags_that_are_no_words_are_not_dropped_for_a_new_one(co: Co, vault: Vault, tags: str) -> None:
    text = f"---\ntags: {tags}\n---\nOaks live long.\n"
    vault.write("memories/oak.md", text)

    ran = co("edit", "oak", "--add-tag", "tree")

    assert (ran.code, ran.out) == (2, "")
    assert ran.err == "co: memories/oak.md:2: `tags` is not a list of words; edit the file by hand\n"
    assert vault.read("memories/oak.md") == text


@given(text=st.text(), value=VALUES)
def test_a_note_without_frontmatter_gets_one_above_its_untouched_text(text: str, value: object) -> None:
    front = read_frontmatter(text)
    if front.body > front.start:
        return

    edited = set_fields(text, {"importance": value})

    assert edited.endswith(text[front.start :])
    after = read_frontmatter(edited)
    assert after.metadata == {"importance": value}
    assert edited[after.body :] == text[front.start :]


@pytest.mark.parametrize("name", ["a: b", "#x", "- x", "", " x", "x ", "a\nb", "null", "true", "[x]", "&a", "a:"])
def test_a_name_that_frontmatter_would_misread_is_refused(name: str) -> None:
    for attempt in (lambda: set_fields("---\na: 1\n---\n", {name: "v"}), lambda: render_note({name: "v"}, "Body.")):
        with pytest.raises(InvalidInputError):
            attempt()


def test_a_list_with_an_item_on_each_line_keeps_its_form_and_comments() -> None:
    text = '---\r\ntags:\r\n  - deploy   # mine\r\n  # later\r\n  - "Ops"\r\n  - old\r\nother: 1\r\n---\r\nBody.\r\n'

    edited = set_fields(text, {"tags": Tags(["deploy", "ops", "a: b"])})

    assert edited == text.replace("  - old\r\n", '  - "a: b"\r\n')
