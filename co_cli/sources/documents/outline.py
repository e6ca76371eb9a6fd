"""Find the sections of text that is not Markdown: headings of reStructuredText, Org, AsciiDoc and LaTeX, and functions.

In code, a class or function is a section, together with the comments and decorators right above it. A few regular
expressions are enough to keep a function in one passage; no parser is needed.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import pairwise

from co_cli.notes.markdown import Heading
from co_cli.sources.documents.formats import ending_of

DEFINITION = re.compile(
    r"(?P<indent> {0,4}|\t?)(?:(?:export|default|public|private|protected|internal|static|final|abstract|sealed|open|"
    r"override|async|inline|virtual|unsafe|extern|partial|pub(?:\([a-z]+\))?|data|case|declare|const|suspend|local)\s+)*"
    r"(?P<text>(?:class|interface|trait|enum|struct|record|object|union|impl|namespace|module|mod|function\*?|fn|fun|def|"
    r"func|type|protocol|extension|actor)\b(?: +\([^)\n]{1,80}\))?[^\n{(=;:]{1,120})"
)
ARROW = re.compile(
    r"(?P<indent>)(?:export +)?(?:const|let|var) +(?P<text>\w+) *(?::[^=\n]{1,80})?= *"
    r"(?:async *)?(?:\(|function\b|\w+ *=>)"
)
FUNCTION = re.compile(
    r"(?P<indent> {0,4}|\t?)(?!(?:if|for|while|switch|return|else|typedef|using|case|new|throw)\b)"
    r"(?:[A-Za-z_][\w:<>,\[\].?]*[ *&]+){1,4}(?P<text>[A-Za-z_~][\w:~]*) *\([^;]*$"
)
SHELL = re.compile(r"(?P<indent>)(?P<text>(?:function +)?[\w:.-]+) *\(\)")
SQL = re.compile(r"(?P<indent>)(?P<text>create +(?:[a-z]+ +){1,4}[^\s(;]+)", re.I)
SECTION = re.compile(r"(?P<indent>)\[{1,2}(?P<text>[^\]\n]{1,120})\]{1,2}\s*$")
CODE = {
    **dict.fromkeys("py pyi pyx rs swift kt kts scala dart zig php lua rb ex exs go".split(), (DEFINITION,)),
    **dict.fromkeys("js mjs cjs jsx ts tsx mts vue svelte".split(), (DEFINITION, ARROW)),
    **dict.fromkeys("java cs groovy c h cc cpp cxx hh hpp hxx m mm".split(), (DEFINITION, FUNCTION)),
    **dict.fromkeys("sh bash zsh fish ksh".split(), (SHELL,)),
    **dict.fromkeys("sql ddl".split(), (SQL,)),
    **dict.fromkeys("ini cfg conf toml desktop service editorconfig".split(), (SECTION,)),
}
ABOVE = re.compile(r"\s*(?:@|#(?![!a-z])|//|/\*|\*|--|'''|\"\"\"|\[<?\w)")
"""Comments, decorators and attributes."""
MOST_ABOVE = 40

LATEX = re.compile(
    r"\s*\\(?P<latex>part|chapter|(?:sub){0,2}section|paragraph)\*?(?:\[[^\]]*\])?\{(?P<text>[^}]{1,200})\}"
)
LATEX_LEVELS = {"part": 1, "chapter": 1, "section": 2, "subsection": 3, "subsubsection": 4, "paragraph": 5}
PATTERNS = {
    **CODE,
    "org": (re.compile(r"(?P<mark>\*{1,6})[ \t]+(?P<text>.+)"),),
    **dict.fromkeys(("adoc", "asciidoc"), (re.compile(r"(?P<mark>={1,6})[ \t]+(?P<text>.+)"),)),
    **dict.fromkeys(("tex", "ltx"), (LATEX,)),
}
UNDERLINE = re.compile(r"([=\-`:.'\"~^_*+#<>])\1{2,}[ \t]*$")


def outline(name: str, text: str) -> tuple[Heading, ...]:
    """Headings with their lines, from 0; none for formats that we do not know."""
    ending, lines = ending_of(name), text.split("\n")
    if ending in ("rst", "rest", "txt", "text", ""):
        return tuple(_underlined(lines, strict=ending in ("rst", "rest")))
    return tuple(_marked(lines, PATTERNS.get(ending, ()), is_code=ending in CODE))


def _marked(lines: list[str], patterns: tuple[re.Pattern[str], ...], is_code: bool) -> Iterator[Heading]:
    last, inside = -1, False
    for number, line in enumerate(lines if patterns else ()):
        if not is_code and (line.startswith("----") or line.lower().startswith(("#+begin", "#+end"))):
            inside = not inside
        found = next(filter(None, (pattern.match(line[:400]) for pattern in patterns)), None)
        if not found or inside:
            continue
        start = number
        while is_code and start - 1 > last and number - start < MOST_ABOVE and ABOVE.match(lines[start - 1]):
            start -= 1
        yield Heading(_level(found.groupdict()), " ".join(found["text"].split()), start)
        last = number


def _level(found: dict[str, str]) -> int:
    if "latex" in found:
        return LATEX_LEVELS[found["latex"]]
    return len(found["mark"]) if "mark" in found else 2 if found["indent"] else 1


def _underlined(lines: list[str], strict: bool) -> Iterator[Heading]:
    """Levels in the order in which the underlines appear, as in reStructuredText."""
    levels: list[tuple[str, bool]] = []
    for number, (line, under) in enumerate(pairwise(lines)):
        below, title = UNDERLINE.match(under), line.strip()
        if not below or not title or len(title) > 200 or len(under.rstrip()) < len(title):
            continue
        if UNDERLINE.match(line) or (not strict and below[1] not in "=-~"):
            continue
        before = lines[number - 1] if number else ""
        above = UNDERLINE.match(before)
        over = strict and bool(above and above[1] == below[1])
        if before.strip() and not over:  # the end of a table or paragraph
            continue
        if (below[1], over) not in levels:
            levels.append((below[1], over))
        yield Heading(min(levels.index((below[1], over)) + 1, 6), title, number - 1 if over else number)
