"""The sections of a text that is not Markdown, as its own format marks them; the text itself stays as it is.

In reStructuredText a heading is underlined, in Org it starts with stars, in LaTeX it is a command; in code a class or a
function is a section, together with what stands right above it: its comment, its decorator. A light touch: one regular
expression for each family of languages, which a passage needs in order not to tear a function apart, and no parser.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from co_cli.notes.markdown import Heading
from co_cli.sources.documents_endings import ending_of

WORDS = (
    r"(?:(?:export|default|public|private|protected|internal|static|final|abstract|sealed|open|override|async|inline|"
    r"virtual|unsafe|extern|partial|pub(?:\([a-z]+\))?|data|case|declare|const|suspend|local)\s+)*"
)
PYTHON = re.compile(r"(?P<indent> {0,4}|\t?)(?P<text>(?:async +def|def|class) +\w+)")
BRACES = re.compile(
    rf"(?P<indent> {{0,4}}|\t?){WORDS}(?P<text>(?:class|interface|trait|enum|struct|record|object|union|impl|namespace|"
    rf"module|mod|func|function\*?|fn|fun|def|type|protocol|extension|actor)\b[^\n{{(=;]{{1,120}})"
)
ARROW = re.compile(
    r"(?P<indent>)(?:export +)?(?:const|let|var) +(?P<text>\w+) *(?::[^=\n]{1,80})?= *"
    r"(?:async *)?(?:\(|function\b|\w+ *=>)"
)
METHOD = re.compile(
    r"(?P<indent> {0,4}|\t?)(?:(?:public|private|protected|internal|static|final|virtual|async|override|abstract)\s+)+"
    r"(?:[\w<>\[\],.?]+\s+){0,2}(?P<text>\w+)\s*\("
)
C = re.compile(
    r"(?P<indent>)(?!(?:if|for|while|switch|return|else|typedef|using|case)\b)"
    r"(?:[A-Za-z_][\w:<>,]*[ *&]+){1,4}(?P<text>[A-Za-z_~][\w:~]*) *\([^;]*$"
)
GO = re.compile(r"(?P<indent>)func +\([^)\n]{1,80}\) *(?P<text>\w+)")
SHELL = re.compile(
    r"(?P<indent>)(?:function +)?(?P<text>[\w:.-]+) *\(\) *\{?|(?P<indent2>)function +(?P<text2>[\w:.-]+)"
)
SQL = re.compile(
    r"(?P<indent>)(?P<text>create +(?:or +replace +)?(?:temp(?:orary)? +|unique +|virtual +)?"
    r"(?:table|view|function|procedure|trigger|index|type)\s+[^\s(;]+)",
    re.I,
)
INI = re.compile(r"(?P<indent>)\[{1,2}(?P<text>[^\]\n]{1,120})\]{1,2}\s*$")

CODE = {
    **dict.fromkeys(("py", "pyi", "pyx"), (PYTHON,)),
    **dict.fromkeys(("js", "mjs", "cjs", "jsx", "ts", "tsx", "mts", "vue", "svelte"), (BRACES, ARROW)),
    **dict.fromkeys(("rs", "swift", "kt", "kts", "scala", "dart", "zig", "php", "lua", "rb", "ex", "exs"), (BRACES,)),
    "go": (GO, BRACES),
    **dict.fromkeys(("java", "cs", "groovy"), (BRACES, METHOD)),
    **dict.fromkeys(("c", "h", "cc", "cpp", "cxx", "hh", "hpp", "hxx", "m", "mm"), (BRACES, C)),
    **dict.fromkeys(("sh", "bash", "zsh", "fish", "ksh"), (SHELL,)),
    **dict.fromkeys(("sql", "ddl"), (SQL,)),
    **dict.fromkeys(("ini", "cfg", "conf", "toml", "desktop", "service", "editorconfig"), (INI,)),
}
ABOVE = re.compile(r"\s*(?:@|#(?![!a-z])|//|/\*|\*|--|'''|\"\"\"|\[<?\w)")
"""Comments, decorators and attributes: what stands right above a function belongs to it."""
MOST_ABOVE = 40

ORG = re.compile(r"(\*{1,6})[ \t]+(.+)")
ASCIIDOC = re.compile(r"(={1,6})[ \t]+(.+)")
LATEX = re.compile(r"\s*\\(part|chapter|section|subsection|subsubsection|paragraph)\*?(?:\[[^\]]*\])?\{([^}]{1,200})\}")
LATEX_LEVELS = {"part": 1, "chapter": 1, "section": 2, "subsection": 3, "subsubsection": 4, "paragraph": 5}
UNDERLINE = re.compile(r"([=\-`:.'\"~^_*+#<>])\1{2,}[ \t]*$")


def outline(name: str, text: str) -> tuple[Heading, ...]:
    """Headings, outermost level 1, with their lines from 0; none for a format that has none that we know."""
    ending = ending_of(name)
    lines = text.split("\n")
    if ending in CODE:
        return tuple(_definitions(lines, CODE[ending]))
    if ending in ("rst", "rest", "txt", "text", ""):
        return tuple(_underlined(lines, strict=ending in ("rst", "rest")))
    if ending in ("adoc", "asciidoc"):
        return tuple(_starred(lines, ASCIIDOC))
    if ending == "org":
        return tuple(_starred(lines, ORG))
    if ending in ("tex", "ltx"):
        return tuple(_latex(lines))
    return ()


def _definitions(lines: list[str], patterns: tuple[re.Pattern[str], ...]) -> Iterator[Heading]:
    last = -1
    for number, line in enumerate(lines):
        for pattern in patterns:
            found = pattern.match(line[:400])
            if found:
                text = found["text"] or found.groupdict().get("text2") or ""
                start = _first_above(lines, number, last)
                yield Heading(2 if found["indent"] else 1, " ".join(text.split()).rstrip(":"), start)
                last = number
                break


def _first_above(lines: list[str], number: int, last: int) -> int:
    start = number
    while start - 1 > last and number - start < MOST_ABOVE and ABOVE.match(lines[start - 1]):
        start -= 1
    return start


def _underlined(lines: list[str], strict: bool) -> Iterator[Heading]:
    """Levels in the order in which the kinds of line appear, as reStructuredText has it. Plain text: = and - only."""
    levels: list[tuple[str, bool]] = []
    for number in range(len(lines) - 1):
        below = UNDERLINE.match(lines[number + 1])
        title = lines[number].strip()
        if not below or not title or len(title) > 200 or len(lines[number + 1].rstrip()) < len(title):
            continue
        if UNDERLINE.match(lines[number]) or (not strict and below[1] not in "=-~"):
            continue
        if number and not strict and lines[number - 1].strip():  # the last row of a table, or of a paragraph
            continue
        above = UNDERLINE.match(lines[number - 1]) if number else None
        over = bool(above and above[1] == below[1])
        if number and not over and lines[number - 1].strip():
            continue
        kind = (below[1], over)
        if kind not in levels:
            levels.append(kind)
        yield Heading(min(levels.index(kind) + 1, 6), title, number - 1 if over else number)


def _starred(lines: list[str], pattern: re.Pattern[str]) -> Iterator[Heading]:
    inside = False
    for number, line in enumerate(lines):
        if line.startswith("----") or line.lower().startswith(("#+begin", "#+end")):
            inside = not inside
        found = None if inside else pattern.match(line[:400])
        if found:
            yield Heading(len(found[1]), found[2].strip(), number)


def _latex(lines: list[str]) -> Iterator[Heading]:
    for number, line in enumerate(lines):
        found = LATEX.match(line[:400])
        if found:
            yield Heading(LATEX_LEVELS[found[1]], found[2].strip(), number)
