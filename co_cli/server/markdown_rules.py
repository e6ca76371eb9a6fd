"""The Markdown of notes: CommonMark, and what Obsidian and GitHub add to it, as tokens of markdown-it-py.

Wikilinks, tables, `~~struck~~`, `==highlighted==`, tasks, callouts, footnotes, and formulas as MathML. Each rule looks
at a bounded piece of text, so that no note takes long.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import lru_cache
from html import escape, unescape
from itertools import groupby, takewhile, zip_longest
from time import thread_time
from urllib.parse import quote
from xml.etree.ElementTree import Element, tostring

from markdown_it import MarkdownIt
from markdown_it.renderer import RendererHTML
from markdown_it.rules_block import StateBlock
from markdown_it.rules_core import StateCore
from markdown_it.rules_inline import StateInline
from markdown_it.token import Token
from mdit_py_plugins.footnote import footnote_plugin

from co_cli.notes.wikilinks import WIKILINK

NOTHING = Token("", "", 0)
CALLOUT = re.compile(r"\[!([\w-]{1,30})(?:\|[^\]\n]*)?\]([+-]?)[ \t]*([^\n]*)(?:\n|$)")
TASK = re.compile(r"\[([^\n])\](?:\s+|$)")
FOOTNOTE = re.compile(r"\[\^([^\s\[\]^]{1,100})\]")
INLINE_FOOTNOTE = re.compile(r"\^\[((?:[^\[\]]|\[(?:[^\[\]]|\[[^\[\]]*\])*\]){1,1000})\]")
HIGHLIGHT = re.compile(r"==(?=[^\s=])([^\n]{1,2000}?)(?<=[^\s=])==(?!=)")
FORMULA = re.compile(r"\$\$([^$]{1,2000})\$\$|\$(?![\s$])((?:\\.|[^$\\\n]){1,1000}?)(?<!\s)\$(?![\d$])")
"""`$$…$$`, and `$…$` where no price is meant: no blanks inside the dollars, and no digit behind them."""
LONGEST_FORMULA = 100
"""Lines of a formula between `$$`."""
LONGEST_COLOURED, COLOUR_SECONDS = 20_000, 0.5
"""Characters of a code block that has colours, and the CPU time for all of a note: that of a block may grow with the
square of its length."""
ALIASES = {
    "abstract": "summary tldr",
    "danger": "error bug",
    "example": "",
    "failure": "fail missing",
    "info": "todo",
    "question": "help faq",
    "quote": "cite",
    "success": "check done",
    "tip": "hint important",
    "warning": "caution attention",
}
CALLOUTS = {name: kind for kind, names in ALIASES.items() for name in (kind, *names.split())}
"""Each type of a callout that has a look of its own; others look like a note."""
COLOURS = {
    "Comment": "comment",
    "Generic.Deleted": "deleted",
    "Generic.Inserted": "inserted",
    "Keyword": "keyword",
    "Literal.Number": "number",
    "Literal.String": "string",
    "Name.Attribute": "attribute",
    "Name.Builtin": "builtin",
    "Name.Class": "name",
    "Name.Decorator": "builtin",
    "Name.Function": "name",
    "Name.Tag": "keyword",
    "Operator.Word": "keyword",
}
"""The class of a piece of code, by the Pygments token or its nearest parent that is here."""


def make_parser() -> MarkdownIt:
    parser = MarkdownIt("commonmark").enable(["table", "strikethrough"])
    parser.use(footnote_plugin, inline=False, move_to_end=False)
    parser.inline.ruler.at("footnote_ref", _footnote)
    parser.inline.ruler.before("escape", "formula", _formula)
    parser.inline.ruler.before("link", "inline_footnote", _inline_footnote)
    parser.inline.ruler.before("link", "wikilink", _wikilink)
    parser.inline.ruler.before("emphasis", "highlight", _highlight)
    parser.block.ruler.before("fence", "formula", _formula_block, {"alt": ["paragraph", "blockquote", "list"]})
    parser.add_render_rule("formula", _show_formula)
    parser.core.ruler.before("inline", "tasks", _tasks)
    parser.core.ruler.before("inline", "callouts", _callouts)
    parser.core.ruler.after("inline", "inline_footnotes", _inline_footnotes)
    parser.core.ruler.after("inline_footnotes", "footnotes", _footnotes)
    return parser


class Colouring:
    """Colours the code of one note, until the time for it is over."""

    def __init__(self) -> None:
        self._left = COLOUR_SECONDS

    def __call__(self, code: str, language: str, _: str = "") -> str:
        """Code as HTML, with a class for each keyword, string, comment and so on; plain if its language is unknown."""
        from pygments.lexers import get_lexer_by_name  # 30 ms  # pyright: ignore[reportUnknownVariableType]
        from pygments.util import ClassNotFound

        if not language or len(code) > LONGEST_COLOURED or self._left <= 0:
            return escape(code)
        try:
            lexer = get_lexer_by_name(language, stripnl=False, ensurenl=False)
        except ClassNotFound:
            return escape(code)
        end = thread_time() + self._left
        tokens = list(takewhile(lambda _: thread_time() < end, lexer.get_tokens(code)))
        self._left = end - thread_time()
        if self._left <= 0:
            return escape(code)
        pieces = groupby(tokens, lambda piece: _colour(str(piece[0])))
        texts = ((colour, escape("".join(text for _, text in group))) for colour, group in pieces)
        return "".join(f'<span class="code-{colour}">{text}</span>' if colour else text for colour, text in texts)


@lru_cache(maxsize=500)
def _colour(kind: str) -> str | None:
    names = kind.removeprefix("Token.").split(".")
    parents = (".".join(names[:end]) for end in range(len(names), 0, -1))
    return next((COLOURS[name] for name in parents if name in COLOURS), None)


def mathml(formula: str, display: str) -> str:
    """A formula of LaTeX as MathML, or as its text if it has something that is not understood."""
    from latex2mathml.converter import convert_to_element  # 250 ms, for a table of symbols

    try:
        math: Element = convert_to_element(formula, display=display)
    except Exception:  # it has no error of its own that all others have, and the text is the answer to all of them
        return f"<code>{escape(formula)}</code>"
    for element in math.iter():
        element.text = unescape(element.text or "")
        if element.text.startswith("\\"):
            return f"<code>{escape(formula)}</code>"
    math.attrib.pop("xmlns", None)
    return tostring(math, encoding="unicode")


def _wikilink(state: StateInline, silent: bool) -> bool:
    """`[[note]]`, `[[note|label]]`, `![[picture.png]]` and `![[picture.png|300]]`, which is a width."""
    embedded = state.src.startswith("![[", state.pos)
    found = WIKILINK.match(state.src, state.pos + embedded)
    if found is None:
        return False
    if not silent:
        name = found[1].strip()
        label = found[0][2:-2].partition("|")[2].strip() or name
        width = re.fullmatch(r"(\d{1,4})(?:x\d+)?", label) if embedded and label != name else None
        if embedded:
            picture = state.push("image", "img", 0)
            text = Token("text", "", 0, content=name if width else label)
            picture.attrs, picture.children, picture.content = {"src": quote(name)}, [text], text.content
            picture.attrs |= {"width": width[1]} if width else {}
        else:
            state.push("link_open", "a", 1).attrs = {"href": quote(name)}
            state.push("text", "", 0).content = label
            state.push("link_close", "a", -1)
    state.pos = found.end()
    return True


def _highlight(state: StateInline, silent: bool) -> bool:
    found = HIGHLIGHT.match(state.src, state.pos, state.posMax)
    if found is None:
        return False
    if not silent:
        end = state.posMax
        state.push("mark_open", "mark", 1)
        state.pos, state.posMax = found.span(1)
        state.md.inline.tokenize(state)
        state.push("mark_close", "mark", -1)
        state.posMax = end
    state.pos = found.end()
    return True


def _formula(state: StateInline, silent: bool) -> bool:
    found = FORMULA.match(state.src, state.pos, state.posMax)
    if found is None or state.src[state.pos - 1 : state.pos] == "\\":
        return False
    if not silent:
        text, display = (found[1], "block") if found[1] else (found[2], "inline")
        state.push("formula", "", 0).content = mathml(text.strip(), display)
    state.pos = found.end()
    return True


def _formula_block(state: StateBlock, start: int, end: int, silent: bool) -> bool:
    """Lines between `$$` and `$$`, which would be lists and headings else."""
    first = state.src[state.bMarks[start] + state.tShift[start] : state.eMarks[start]]
    if not first.startswith("$$") or "$$" in first[2:] or state.is_code_block(start):
        return False
    for line in range(start + 1, min(end, start + LONGEST_FORMULA)):
        text = state.src[state.bMarks[line] + state.tShift[line] : state.eMarks[line]]
        if text.rstrip().endswith("$$"):
            if not silent:
                inside = state.getLines(start, line + 1, state.blkIndent, False).strip()
                token = state.push("formula", "p", 0)
                token.content, token.map, token.block = mathml(inside[2:-2].strip(), "block"), [start, line + 1], True
                state.line = line + 1
            return True
    return False


def _show_formula(renderer: RendererHTML, tokens: Sequence[Token], place: int, *_: object) -> str:
    token = tokens[place]
    return f"<p{renderer.renderAttrs(token)}>{token.content}</p>\n" if token.block else token.content


def _footnote(state: StateInline, silent: bool) -> bool:
    """A reference to a footnote that there is. The first one is number 1."""
    found = FOOTNOTE.match(state.src, state.pos, state.posMax)
    known: dict[str, int] = state.env.get("footnotes", {}).get("refs", {})
    if found is None or f":{found[1]}" not in known:
        return False
    if not silent:
        label = f":{found[1]}"
        if known[label] < 0:
            known[label] = 1 + max(0, *known.values())
        state.push("footnote_ref", "", 0).meta = {"label": found[1]}
    state.pos = found.end()
    return True


def _inline_footnote(state: StateInline, silent: bool) -> bool:
    """`^[text]`: a footnote that is written where it is referred to. It gets the next number."""
    found = INLINE_FOOTNOTE.match(state.src, state.pos, state.posMax)
    if found is None or state.env.get("in_footnote") or not found[1].strip():
        return False
    if not silent:
        known: dict[str, int] = state.env.setdefault("footnotes", {}).setdefault("refs", {})
        number = known[f":^{len(known)}"] = 1 + max((0, *known.values()))
        inside: list[Token] = []
        state.md.inline.parse(found[1].strip(), state.md, {**state.env, "in_footnote": True}, inside)
        state.push("inline_footnote", "", 0).meta = {"number": number, "inside": inside}
    state.pos = found.end()
    return True


def _inline_footnotes(state: StateCore) -> None:
    """The texts of inline footnotes are at the end of the note."""
    first: int = state.env.get("first_line", 1)
    shown: list[Token] = []
    waiting: list[Token] = []
    for token in state.tokens:
        shown.append(token)
        for child in (token.children or ()) if token.map else ():
            if child.type == "inline_footnote" and token.map:
                number = child.meta["number"]
                back = f' <a class="footnote" href="#L{first + token.map[0]}" title="Back">↩</a>'
                child.meta["inside"].append(Token("html_inline", "", 0, content=back))
                place = f'<sup><a class="footnote" href="#L{first + token.map[0]}">{number}</a></sup>'
                about: dict[str, str | int | float] = {"class": "footnote", "data-footnote": number}
                opening = Token("inline_footnote_open", "div", 1, attrs=about, map=token.map, block=True)
                text = Token("inline", "", 0, children=child.meta["inside"], map=token.map, level=2, block=True)
                around = (Token("paragraph_open", "p", 1, level=1), Token("paragraph_close", "p", -1, level=1))
                waiting += [opening, around[0], text, around[1], Token("inline_footnote_close", "div", -1, block=True)]
                child.type, child.content = "html_inline", place
    state.tokens = shown + waiting


def _footnotes(state: StateCore) -> None:
    """Footnotes stay where they are written, so that none is hidden. `#L` and a line leads to one and back."""
    first: int = state.env.get("first_line", 1)
    numbers: dict[str, int] = state.env.get("footnotes", {}).get("refs", {})
    opened = [token for token in state.tokens if token.type == "footnote_reference_open" and token.map]
    places = {token.meta["label"]: first + token.map[0] for token in reversed(opened) if token.map}
    used: dict[str, int] = {}
    label, last = "", Token("inline", "", 0)
    for token in state.tokens:
        if token.type == "footnote_reference_open":
            label = token.meta["label"]
            number = numbers.get(f":{label}", 0)
            token.tag, token.attrs = "div", {"class": "footnote", "data-footnote": number if number > 0 else label}
        elif token.type == "footnote_reference_close":
            token.tag = "div"
            if label in used and last.children is not None:
                back = f' <a class="footnote" href="#L{used[label]}" title="Back">↩</a>'
                last.children.append(Token("html_inline", "", 0, content=back))
        elif token.type == "inline":
            last = token
            for child in token.children or ():
                if child.type == "footnote_ref" and token.map:
                    name = child.meta["label"]
                    used.setdefault(name, first + token.map[0])
                    child.type = "html_inline"
                    child.content = f'<sup><a class="footnote" href="#L{places[name]}">{numbers[f":{name}"]}</a></sup>'


def _tasks(state: StateCore) -> None:
    """`- [ ] text` is a task, done with any other sign than a blank between the brackets."""
    for item, _, inline in zip(state.tokens, state.tokens[1:], state.tokens[2:], strict=False):
        if item.type == "list_item_open" and inline.type == "inline" and (found := TASK.match(inline.content)):
            item.attrs["data-task"] = found[1]
            inline.content = inline.content[found.end() :]


def _callouts(state: StateCore) -> None:
    """`> [!note] Title` is a callout: a box with a title, which can be folded if `-` or `+` follows the bracket."""
    shown: list[Token] = []
    tags: dict[int, str] = {}
    skipped = 0
    for token, paragraph, inline in zip_longest(state.tokens, state.tokens[1:], state.tokens[2:], fillvalue=NOTHING):
        if skipped:
            skipped -= 1
            continue
        shown.append(token)
        if token.type == "blockquote_close":
            token.tag = tags.pop(token.level, token.tag)
        found = CALLOUT.match(inline.content) if token.type == "blockquote_open" and inline.map else None
        if not found or not inline.map:
            continue
        token.tag = tags[token.level] = "details" if found[2] else "div"
        token.attrs |= {"class": "callout", "data-callout": CALLOUTS.get(found[1].lower(), "note")}
        token.attrs |= {"open": ""} if found[2] == "+" else {}
        shown += _title(found[3].strip() or found[1].capitalize(), token, inline)
        inline.content = inline.content[found.end() :]
        inline.map = paragraph.map = [inline.map[0] + 1, inline.map[1]]
        skipped = 0 if inline.content else 3  # a paragraph that was only the title
    state.tokens = shown


def _title(text: str, callout: Token, line: Token) -> list[Token]:
    tag, level = "summary" if callout.tag == "details" else "p", callout.level + 1
    place = [line.map[0], line.map[0] + 1] if line.map else None
    opening = Token("callout_title_open", tag, 1, attrs={"class": "callout-title"}, map=place, level=level, block=True)
    inside = Token("inline", "", 0, content=text, children=[], map=place, level=level + 1, block=True)
    return [opening, inside, Token("callout_title_close", tag, -1, level=level, block=True)]
