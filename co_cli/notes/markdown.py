"""Blocks, headings and inline tags of Markdown text. Code is skipped."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import NamedTuple

# what is only a string is compiled when it is first used: a search does without most of it
FENCE = re.compile(r" {0,3}(`{3,}|~{3,})")
HEADING = re.compile(r" {0,3}(#{1,6})[ \t]+(.*?)(?:[ \t]+#+)?[ \t]*$")
CLOSING = re.compile(r" {0,3}(`{3,}|~{3,})[ \t]*$")
FENCES = ("`", "~")
UNDERLINE = re.compile(r" {0,3}(={2,}|-{3,})[ \t]*$")
"""Makes the line above it a heading."""
ITEM = re.compile(r" {0,3}(?:[-*+]|\d{1,9}[.)])(?:[ \t]|$)")
CODE = (
    r"(?ims)^[ \t>]*(?:(?:[-*+]|\d{1,9}[.)])[ \t]+)?(`{3,}(?![^\n]*`)|~{3,}).*?(?:^[ \t>]*\1[`~]*[ \t]*$|\Z)"
    r"|(`+)[^`].*?(?<!`)\2(?!`)|<(pre|code|style|script|svg)\b(?:(?!<\3\b).)*?</\3\b"
)
"""Fenced, also in a quote or a list; between backticks; HTML that shows code."""
INDENTED = re.compile(r"^(?: {4}|\t).*#", re.M)
LINK = r"\]\(\s*<?([^)\s>]{1,500}+)>?(?:\s+[\"'][^\n]*?)?\s*\)"
TAG = r"#(?<![^\s(,;]#)([^\W\d_][\w/-]*|\d[\w/-]*[^\W\d][\w/-]*)"

COLOUR = re.compile(r"[0-9a-f]{3,4}|[0-9a-f]{6}|[0-9a-f]{8}", re.I)
SHOWN = r"!?\[((?:[^\[\]]|\[[^\[\]]*\])*)\](?:\([^()\s]*(?:\([^()]*\)[^()\s]*)*(?:\s[^()]*)?\)|\[[^\[\]]*\])"
"""A picture or a link, and the text that is shown for it."""
WIKI = r"!?\[\[(?:[^\[\]|]+\|)?([^\[\]|]+)\]\]"
EMPHASIS = r"(?<![\w*`_])(\*{1,3}|_{1,3}|`+)(?=\S)(.+?)(?<=\S)\1(?![\w*`_]|\.\w)"
PICTURE = r"!\[\[[^\[\]\n]+\]\]|!\[[^\[\]\n]*\]\([^()\n]*(?:\([^()\n]*\)[^()\n]*)*\)"
BLOCK_MARKS = r"\s*(?:>[ \t]?)*(?:\[![\w-]+\][+-]?[ \t]*)?(?:(?:[-*+]|\d{1,9}[.)])[ \t]+(?:\[[ xX]\][ \t]+)?)?"
"""What stands before the text of a line: quotes, callouts, lists and tasks."""
UNSHOWN = r"==|~~|%%.*?%%|\^\[[^\]\n]+\]|\[\^[^\]\n]+\]:?|</?[a-zA-Z][^<>\n]*>"
"""Marks of highlights, comments, footnotes and HTML."""
STRUCK = r"(?<![\w=~])(==|~~)(?=[^\s=~])(.+?)(?<=[^\s=~])\1(?![\w=~])"
SIGNS = (
    r"(?m)(?<!\S)(?:#{1,6}\s(?=\S)|(?:[-*+]|\d{1,9}[.)])\s+\[.\]\s|(?:>\s?)*\[![\w-]+\][+-]?\s?)|^(?:(?:>|[-*+]\s|\|)\s*)+"
    r"|\|?(?:\s*:?-{2,}:?\s*\|)+(?:\s*:?-{2,}:?)?|\[\^[^\s\]]+\](?::\s?)?"
)
"""What stands before a heading, a quote, a callout or a task; the line below a table's header; footnotes."""
LONGEST_LINE = 1_000
"""Characters of a line that `plain_text` looks at."""


class Heading(NamedTuple):
    """One heading: its level, its text, and its line in the body (from 0)."""

    level: int
    text: str
    line: int


class Block(NamedTuple):
    """One block: the lines from `start` up to `end`, counted from 0 in the body."""

    kind: str
    """heading, paragraph, list, code or table"""
    start: int
    end: int
    level: int = 0
    text: str = ""
    """Level and text of a heading."""


def headings(lines: Sequence[str]) -> Iterator[Heading]:
    """Every heading outside code."""
    for block in blocks(lines):
        if block.kind == "heading":
            yield Heading(block.level, block.text, block.start)


def blocks(lines: Sequence[str]) -> Iterator[Block]:
    """Headings, paragraphs, lists, code blocks and tables, in order. Every line that is not blank is in one."""
    number, end = 0, len(lines)
    while number < end:
        line = lines[number]
        if not line or line.isspace():
            number += 1
            continue
        start, mark = number, line[:4].lstrip(" ")[:1]
        found = HEADING.match(line) if mark == "#" else None
        if found:
            number += 1
            yield Block("heading", start, number, len(found[1]), found[2])
        elif mark in ("", "\t"):
            number = _past_indented(lines, number)
            yield Block("code", start, number)
        elif mark in FENCES and (found := FENCE.match(line)):
            number = _past_fence(lines, number, found[1])
            yield Block("code", start, number)
        elif is_item(line):
            number = _past_list(lines, number)
            yield Block("list", start, number)
        elif starts_table(lines, number):
            number = _past_table(lines, number)
            yield Block("table", start, number)
        elif mark != ">" and number + 1 < end and (found := UNDERLINE.match(lines[number + 1])):
            number += 2
            yield Block("heading", start, number, 1 if found[1][0] == "=" else 2, line.strip())
        else:
            number = _past_paragraph(lines, number)
            yield Block("paragraph", start, number)


def is_item(line: str) -> bool:
    """Whether a list item begins here. A line of dashes or stars is a rule."""
    return bool(ITEM.match(line)) and not _is_rule(line)


def closes(line: str, fence: str) -> bool:
    """Whether this line closes the code block that `fence` opened."""
    mark = CLOSING.match(line)
    return bool(mark) and mark[1][0] == fence[0] and len(mark[1]) >= len(fence)


def _past_fence(lines: Sequence[str], number: int, fence: str) -> int:
    """The line after the code block. One that is not closed extends to the end."""
    for place in range(number + 1, len(lines)):
        if closes(lines[place], fence):
            return place + 1
    return len(lines)


def _past_indented(lines: Sequence[str], number: int) -> int:
    last = number
    for place in range(number + 1, len(lines)):
        line = lines[place]
        if line[:1] == "\t" or line[:4] == "    ":
            last = place if not line.isspace() else last
        elif line and not line.isspace():
            break
    return last + 1


def _past_list(lines: Sequence[str], number: int) -> int:
    """The line after the last item, including indented lines, code in items and lazy continuation lines."""
    last, fence = number, ""
    for place in range(number + 1, len(lines)):
        line = lines[place]
        if not line or line.isspace():
            continue
        inside = line[:1] == "\t" or line[:2] == "  "
        if fence and inside:
            fence = "" if closes(line.strip(), fence) else fence
        elif inside:
            mark = FENCE.match(line.lstrip())
            fence = mark[1] if mark else ""
        elif not is_item(line) and (place > last + 1 or _starts_block(lines, place)):
            break
        else:
            fence = ""
        last = place
    return last + 1


def _past_table(lines: Sequence[str], number: int) -> int:
    for place in range(number + 2, len(lines)):
        if "|" not in lines[place]:
            return place
    return len(lines)


def _past_paragraph(lines: Sequence[str], number: int) -> int:
    for place in range(number + 1, len(lines)):
        line = lines[place]
        if not line or line.isspace() or is_item(line) or _starts_block(lines, place):
            return place
    return len(lines)


def _starts_block(lines: Sequence[str], number: int) -> bool:
    """Whether a heading, code or a table begins here without a blank line before it."""
    line = lines[number]
    mark = line[:4].lstrip(" ")[:1]
    if mark == "#":
        return bool(HEADING.match(line))
    return (mark in FENCES and bool(FENCE.match(line))) or starts_table(lines, number)


def starts_table(lines: Sequence[str], number: int) -> bool:
    if "|" not in lines[number] or number + 1 >= len(lines):
        return False
    below = lines[number + 1]
    return "|" in below and "-" in below and not below.strip("|-: \t")


def _is_rule(line: str) -> bool:
    marks = line.replace(" ", "").replace("\t", "")
    return len(marks) > 2 and marks[0] in "-*_" and not marks.strip(marks[0])


def inline_tags(body: str) -> tuple[str, ...]:
    """The `#tags` of the text, without those in code, links and headings."""
    if "#" not in body:
        return ()
    if INDENTED.search(body):
        lines = body.split("\n")
        kept = [lines[block.start : block.end] for block in blocks(lines) if block.kind != "code"]
        body = "\n".join(line for part in kept for line in part)
    text = re.sub(LINK, "]", re.sub(CODE, " ", body)) if re.search(r"[`<]|~~~|\]\(", body) else body
    tags = (found[1].rstrip("/-") for found in re.finditer(TAG, text))
    return tuple(dict.fromkeys(tag for tag in tags if not is_colour(tag)))


def is_colour(tag: str) -> bool:
    """Whether `#tag` is a colour such as #0969da or #fff. `#e2e`, `#2fa` and `#cafe` are words."""
    if not COLOUR.fullmatch(tag):
        return False
    digits, letters = sum(map(str.isdigit, tag)), set(tag.lower())
    if digits:
        return len(tag) > 4 or digits > 1 or "0" in tag
    pairs = {tag[place : place + 2].lower() for place in range(0, len(tag), 2)}
    doubled = len(tag) > 4 and (len(pairs) == 1 or all(first == second for first, second in pairs))
    return len(letters) == 1 or not letters & {"a", "e"} or doubled


def plain_text(line: str) -> str:
    """A line as Markdown shows it: the text of links and pictures, without marks of emphasis and code."""
    if len(line) > LONGEST_LINE or not re.search(r"[\[*_`]", line):
        return line
    line = re.sub(WIKI, r"\1", line)
    for pattern, part in ((SHOWN, r"\1"), (SHOWN, r"\1"), (EMPHASIS, r"\2"), (EMPHASIS, r"\2")):
        line = re.sub(pattern, part, line)  # twice: a picture may be in a link, and bold in italics
    return line


def beginning(body: str, longest: int) -> str:
    """The first words of a text as Markdown shows them: without headings, code, pictures and lines of tags."""
    found, size, lines = list[str](), 0, body.splitlines()
    for block in blocks(lines):
        if block.kind in ("heading", "code"):
            continue
        for line in lines[block.start : block.end]:
            if (text := _shown(line, block.kind == "table")) and not re.fullmatch(rf"(?:{TAG}[,\s]*)+", text):
                found.append(text)
                size += len(text) + 1
        if size > longest:
            break
    text = " ".join(found)
    return text if len(text) <= longest else f"{text[:longest].rsplit(None, 1)[0]}…"


def _shown(line: str, in_table: bool) -> str:
    line = re.sub(PICTURE, "", line[:LONGEST_LINE])
    line = re.sub(UNSHOWN, "", plain_text(re.sub(BLOCK_MARKS, "", line, count=1)))
    if in_table:
        line = " · ".join(cell.strip() for cell in line.strip().strip("|").split("|") if cell.strip(" :-"))
    return " ".join(line.split())


def plain_snippet(text: str, marks: Sequence[tuple[int, int]] = ()) -> tuple[str, tuple[tuple[int, int], ...]]:
    """A piece of a note, on one line or several, as Markdown shows it, and where marks in it are then."""
    shown, places = text, list(marks)
    for pattern in (SIGNS, WIKI, SHOWN, SHOWN, EMPHASIS, EMPHASIS, STRUCK):
        pieces: list[tuple[int, int]] = []
        end = 0
        for found in re.finditer(pattern, shown):
            kept = found.span(found.lastindex) if found.lastindex else (found.end(), found.end())
            pieces += [(end, found.start()), kept]
            end = found.end()
        pieces.append((end, len(shown)))
        if len(pieces) > 1:
            shown = "".join(shown[first:last] for first, last in pieces)
            places = [(_kept_before(first, pieces), _kept_before(last, pieces)) for first, last in places]
    return shown, tuple((first, last) for first, last in places if first < last)


def _kept_before(place: int, pieces: Sequence[tuple[int, int]]) -> int:
    return sum(min(place, last) - first for first, last in pieces if first < place)
