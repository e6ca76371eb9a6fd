"""The quick reader of frontmatter and the YAML library must never disagree."""

from __future__ import annotations

import pytest
import yaml
from hypothesis import example, given, settings
from hypothesis import strategies as st

from co_cli.notes.plain_yaml import read_plain, resolve_scalar
from co_cli.notes.yaml_handler import NoteHandler
from tests.notes.frontmatters import Block, blocks

MARKS = "a :-#[]{}\"'\\~!|>%@`?=é_,\t\ufeff\u00a0\u3000\u2028\x85\x0c\x1c"
PIECES = (
    ": ",
    "- ",
    " # ",
    "? ",
    "\n",
    "\n  ",
    "\r\n",
    "\n- ",
    "\nk: ",
    "key: ",
    "tags:",
    "b c",
    "<<",
    "&x",
    "*x",
    "---",
    "...",
)
SCALARS = ("1", "-1", "0.5", ".5", "1e3", "1_000", "true", "null", "2026-01-01")
FRAGMENTS = st.sampled_from([*MARKS, *PIECES, *SCALARS])
LINES = st.lists(FRAGMENTS, max_size=12).map("".join)


def agree(block: str) -> bool:
    quick = read_plain(block)
    if quick is None:
        return False
    loaded = NoteHandler().load(block)
    assert quick == (loaded or {})
    assert repr(quick) == repr(loaded or {})  # True is not 1
    return True


@given(block=blocks())
@settings(max_examples=200)
def test_it_agrees_with_yaml_on_ordinary_frontmatter(block: Block) -> None:
    agree("".join(entry.above + entry.lines for entry in block.entries))


@given(
    block=st.one_of(
        LINES,
        st.lists(st.tuples(st.sampled_from("abc"), LINES), max_size=4).map(
            lambda pairs: "\n".join(f"{key}: {value}" for key, value in pairs)
        ),
    )
)
@settings(max_examples=500)
@example("a: 1\x0cb: 2")
@example("a: b\u2028c: d")
@example("a: [x\u3000, y]")
@example("a: '\u00a0'")
@example("a: - b")
@example("a: -")
@example("a: 'x\ny'")
@example("a:\n  - x\nb: y\n- z")
def test_whatever_it_accepts_yaml_reads_the_same_way(block: str) -> None:
    agree(block)


@pytest.mark.parametrize(
    "block",
    [
        "title: Blue first\ntags: [deploy, ops]\ncreated: 2026-11-14T09:12:00Z\nimportance: 0.8\n",
        "title: 'Quoted'\naliases:\n  - one\n  - two\n# comment\n\nkind: memory\n",
        "empty:\nnext: 1\n",
    ],
)
def test_the_usual_frontmatter_needs_no_yaml_library(block: str) -> None:
    assert agree(block)


@pytest.mark.parametrize(
    "block",
    [
        "a: |\n  x\n",
        "a: {b: c}\n",
        "a: b: c\n",
        "a: &x 1\n",
        "a: b # comment\n",
        "a: 1\na: 2\n",
        "a:\tb\n",
        "- a\n",
        "just text\n",
        "a:\n  b: c\n",
    ],
)
def test_what_is_beyond_it_is_left_to_the_yaml_library(block: str) -> None:
    assert read_plain(block) is None


@pytest.mark.parametrize(
    ("written", "meant"),
    [
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
    ],
)
def test_a_bare_word_means_what_its_writer_meant(written: str, meant: object) -> None:
    assert resolve_scalar(written) == meant
    assert NoteHandler().load(f"a: {written}") == {"a": meant}


def test_the_loader_is_a_safe_one() -> None:
    with pytest.raises(yaml.YAMLError):
        NoteHandler().load("a: !!python/object/apply:os.system [echo]")
