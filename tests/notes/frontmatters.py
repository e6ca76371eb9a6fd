"""Frontmatter as people and programs write it, for property tests: entries of one key each, in many styles."""

from __future__ import annotations

from typing import NamedTuple

from hypothesis import strategies as st

KEYS = ("title", "tags", "created", "x", "Über", "a-b", "cssclasses", "draft", "weight")
PLAIN = st.sampled_from("Blue first|NO|on|1.10|12|-3|0.5|true|null|~|2026-03-01|2026-03-01T10:00:00Z|a#b|07".split("|"))
WORDS = st.text(st.characters(codec="utf-8", exclude_categories=["Cc", "Cs", "Zl", "Zp", "Cn"]), max_size=12)
QUOTED = st.one_of(
    st.sampled_from(['"a: b"', "'it''s'", '"tab\\tinside"', '"# no comment"', "''", '""', "'[x]'", '"é\\u00e9"']),
    WORDS.filter(lambda text: "'" not in text and "\ufeff" not in text).map(lambda text: f"'{text}'"),
)
FLOW = st.sampled_from(["[]", "[a, b]", "[ deploy , ops ]", '["a, b", c]', "[1, true, null]", "{a: 1, b: [x]}", "{}"])
BLOCK = st.sampled_from(
    ["|\n  two\n  lines", ">-\n  folded\n  text", "\n  - one\n  - two", "\n- flush", "\n  inner: 1\n  other: 2"]
)
GAP = st.sampled_from([" ", "  ", "    "])
COMMENT = st.sampled_from(["", "", " # why", "   # kind: memory | article"])
ABOVE = st.sampled_from(["", "", "# a comment\n", "\n", "# title: not this one\n\n"])


class Entry(NamedTuple):
    """One key of a block, with the blank lines and comments that stand above it."""

    above: str
    key: str
    lines: str


class Block(NamedTuple):
    """A whole text with frontmatter, and where each entry stands in it."""

    text: str
    entries: list[Entry]
    newline: str

    def around(self, number: int) -> tuple[str, str]:
        """What stands before and behind an entry, which a change of that entry must not touch."""
        entry = self.entries[number]
        place = self.text.index("\n") + 1
        for earlier in self.entries[:number]:
            place += len(self._native(earlier.above + earlier.lines))
        start = place + len(self._native(entry.above))
        return self.text[:start], self.text[start + len(self._native(entry.lines)) :]

    def _native(self, text: str) -> str:
        return text.replace("\n", self.newline)


@st.composite
def entries(draw: st.DrawFn, key: str) -> Entry:
    style = draw(st.integers(0, 3))
    if style == 3:
        value, comment = draw(BLOCK), ""
        gap = "" if value.startswith("\n") else draw(GAP)
    else:
        value, comment = draw((PLAIN, QUOTED, FLOW)[style]), draw(COMMENT)
        gap = draw(GAP)
    return Entry(draw(ABOVE), key, f"{key}:{gap}{value}{comment}\n")


@st.composite
def blocks(draw: st.DrawFn) -> Block:
    keys = draw(st.lists(st.sampled_from(KEYS), min_size=1, max_size=5, unique=True))
    found = [draw(entries(key)) for key in keys]
    newline = draw(st.sampled_from(["\n", "\n", "\r\n"]))
    bom = draw(st.sampled_from(["", "", "\ufeff"]))
    body = draw(
        st.sampled_from(["", "Body.\n", "\nBody\n---\nnot: frontmatter\n", "no newline at the end", "a\r\nb\n"])
    )
    inside = "".join(entry.above + entry.lines for entry in found)
    return Block(bom + f"---\n{inside}---\n".replace("\n", newline) + body, found, newline)
