"""Turn a note's text into HTML that is safe to show: Markdown by markdown-it-py, sanitised by nh3.

Links to notes become links of the page, and links to a heading of the note `#L` and its line. Pictures and attachments
get a `data-file`, which the page loads with its token; nothing is loaded from elsewhere, and a picture on the web is
only a link. Each block has the lines of the file that it comes from, in `data-line` and `data-end`; a task has its sign
in `data-task`. HTML in a note works as far as it is harmless, and what it would hide, such as a comment, is shown:
agents read it, so people must see it. MathML is only made from formulas.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from html import escape
from itertools import pairwise
from typing import cast
from urllib.parse import quote, unquote

import nh3
from markdown_it.token import Token
from markdown_it.utils import OptionsDict, OptionsType

from co_cli.ground.values import INVISIBLE
from co_cli.notes.note import Note
from co_cli.notes.refs import ENDINGS
from co_cli.server.markdown_rules import COLOURS, Colouring, make_parser

LONGEST, MOST_MARKS = 300_000, 20_000
"""Characters of a body that is rendered as Markdown, and how many of them may have a meaning there: about two seconds'
work at worst. Any other is shown as plain text."""
MARKS = re.compile(r"[\[\]*_<&~!`$=\\\n]")
PICTURES = {
    ".avif": "image/avif",
    ".gif": "image/gif",
    ".jpeg": "image/jpeg",
    ".jpg": "image/jpeg",
    ".png": "image/png",
    ".svg": "image/svg+xml",
    ".webp": "image/webp",
}
"""What the page shows as a picture, by file ending."""
RECORDINGS = {
    ".flac": "audio/flac",
    ".m4a": "audio/mp4",
    ".mov": "video/quicktime",
    ".mp3": "audio/mpeg",
    ".mp4": "video/mp4",
    ".ogg": "audio/ogg",
    ".opus": "audio/ogg",
    ".wav": "audio/wav",
    ".webm": "video/webm",
}
"""What it plays."""
ELSEWHERE = re.compile(r"[a-z][a-z0-9+.-]*:|//", re.I)
TAGS = set(
    "a abbr b blockquote br code dd del details div dl dt em h1 h2 h3 h4 h5 h6 hr i img ins kbd li mark ol p pre q s "
    "samp small span strong sub summary sup table tbody td tfoot th thead tr u ul var".split()
)
MATHS = set(
    "math menclose mfrac mi mn mo mover mpadded mphantom mroot mrow mspace msqrt mstyle msub msubsup msup mtable mtd "
    "mtext mtr munder munderover".split()
)
LINES, DIRECTION = {"data-line", "data-end"}, {"dir"}
ATTRIBUTES = {
    **dict.fromkeys("h1 h2 h3 h4 h5 h6 p div summary blockquote".split(), LINES | DIRECTION),
    **dict.fromkeys("ul table".split(), DIRECTION),
    "a": {"href", "title", "data-file"},
    "code": LINES | {"data-language"},
    "details": LINES | DIRECTION | {"open", "data-callout"},
    "div": LINES | DIRECTION | {"data-callout", "data-footnote"},
    "img": {"alt", "title", "width", "data-file"},
    "li": LINES | DIRECTION | {"data-task"},
    "math": {"display"},
    "menclose": {"notation"},
    "mo": {"stretchy", "fence", "form", "accent", "minsize", "maxsize"},
    "mover": {"accent"},
    "mspace": {"width"},
    "mstyle": {"displaystyle", "scriptlevel"},
    "mtable": {"displaystyle"},
    "mtd": {"columnalign"},
    "ol": DIRECTION | {"start"},
    "pre": LINES,
    "td": DIRECTION | {"align"},
    "th": DIRECTION | {"align"},
    "tr": LINES,
}
CLASSES = {
    "a": {"embed", "footnote", "missing"},
    "details": {"callout"},
    "div": {"callout", "footnote"},
    "p": {"callout-title"},
    "span": {f"code-{name}" for name in COLOURS.values()},
    "summary": {"callout-title"},
}


def render(note: Note, links: Mapping[str, str | None]) -> str:
    """The body of a note as HTML. `links` says which note each of its links means, if any."""
    body = re.sub(INVISIBLE, lambda found: "".join(f"\\u{{{ord(letter):x}}}" for letter in found[0]), note.body)
    plain = note.sections is not None or len(body) > LONGEST or len(MARKS.findall(body)) > MOST_MARKS
    return sanitise(_plain(body, note.body_line) if plain else _markdown(body, note.body_line, links))


def sanitise(html: str) -> str:
    """Only what is allowed. All HTML that the page shows comes through here."""
    return nh3.clean(
        html,
        tags=TAGS | MATHS,
        attributes=ATTRIBUTES,
        allowed_classes=CLASSES,
        clean_content_tags=set(),  # their text is shown
        url_schemes={"http", "https", "mailto"},
    )


def note_url(ref: str) -> str:
    """Where the page shows a note."""
    return f"/note/{quote(ref, safe='/:')}"


def _plain(body: str, first_line: int) -> str:
    lines = body.rstrip("\n").split("\n")
    step = 1 + len(lines) // MOST_MARKS
    shown: list[str] = []
    for start in range(0, len(lines), step):
        chunk, line = lines[start : start + step], first_line + start
        text = escape("\n".join(chunk))
        shown.append(f'<code data-line="{line}" data-end="{line + len(chunk) - 1}">{text}\n</code>')
    return f"<pre>{''.join(shown)}</pre>"


def _markdown(body: str, first_line: int, links: Mapping[str, str | None]) -> str:
    tokens = PARSER.parse(body, {"first_line": first_line})
    headings = [(text.content, token.map) for token, text in pairwise(tokens) if token.type == "heading_open"]
    links = {**links, **{f"#{_slug(text)}": f"#L{first_line + at[0]}" for text, at in headings[::-1] if at}}
    for token in tokens:
        if token.map and token.type != "inline":
            token.attrs |= {"data-line": first_line + token.map[0], "data-end": first_line + token.map[1] - 1}
        if token.nesting == 1 and (not token.level or token.type in ("list_item_open", "td_open", "th_open")):
            token.attrs["dir"] = "auto"
        if "style" in token.attrs:  # of a table's cells; the page allows no style attributes
            token.attrs["align"] = str(token.attrs.pop("style")).removeprefix("text-align:")
        if token.type == "fence" and token.info.strip():
            token.attrs["data-language"] = token.info.split()[0]
        if token.type == "html_block":
            token.content = _unhidden(token.content)
        if token.children:
            token.children = list(_linked(token.children, links))
    options = OptionsDict(cast("OptionsType", {**PARSER.options, "highlight": Colouring()}))
    return PARSER.renderer.render(tokens, options, {})


def _linked(tokens: Sequence[Token], links: Mapping[str, str | None]) -> Iterable[Token]:
    """The tokens of a line, with links and pictures as the page has them."""
    for token in tokens:
        if token.type == "html_inline":
            token.content = _unhidden(token.content)
        elif token.type == "link_open":
            token.attrs = _target(str(token.attrs.get("href", "")), links) | _titled(token)
        elif token.type == "image":
            target = str(token.attrs.pop("src"))
            about = _target(target, links)
            if "data-file" not in about or _ending(target) not in PICTURES:
                label = token.content or unquote(target)
                opening, text, closing = Token("link_open", "a", 1), Token("text", "", 0), Token("link_close", "a", -1)
                opening.attrs, text.content = about, label
                if "class" not in about and not ELSEWHERE.match(target):
                    opening.attrs["class"] = "embed"
                yield from (opening, text, closing)
                continue
            token.attrs |= about
        yield token


def _target(href: str, links: Mapping[str, str | None]) -> dict[str, str | int | float]:
    """The attributes of a link: to the web, to a heading of the note, to another note, to a file, or to a new note."""
    if ELSEWHERE.match(href):
        return {"href": href}
    name, _, heading = unquote(href).partition("#")
    name = name.strip()
    if not name:
        line = links.get(f"#{_slug(heading)}")
        return {"href": line} if line else {}
    ref = links.get(name)
    if ref:
        return {"href": note_url(ref) + (f"#{quote(_slug(heading))}" if heading else "")}
    if _ending(name) and _ending(name) not in ENDINGS:
        return {"data-file": name}
    title = re.sub(r"\.\w+$", "", name.rpartition("/")[2]) if _ending(name) else name
    return {"href": f"/note/?title={quote(title, safe='')}", "class": "missing"}


def _slug(heading: str) -> str:
    """A heading as links name it: `#rolling-back` as on GitHub, `#Rolling back` as in Obsidian."""
    return re.sub(r"[^\w -]", "", heading.strip().lower()).replace(" ", "-")


def _titled(token: Token) -> dict[str, str | int | float]:
    return {"title": token.attrs["title"]} if "title" in token.attrs else {}


def _ending(name: str) -> str:
    """`.png`; empty if the name has no ending."""
    found = re.search(r"\.[a-z0-9]{1,8}$", name.partition("#")[0], re.I)
    return found[0].lower() if found else ""


def _unhidden(html: str) -> str:
    """HTML in which comments, and tags such as `<template>` that take their text with them, are text."""
    return re.sub(
        r"<(?=[!?]|/?([a-z][^\s/>]*))",
        lambda it: "&lt;" if not it[1] or _hides(it[1].lower()) else "<",
        html,
        flags=re.I,
    )


@lru_cache
def _hides(tag: str) -> bool:
    """Whether the sanitiser drops the text of an element together with its tags."""
    return tag in ("svg", "math") or "text" not in sanitise(f"<{tag}>text</{tag}>")


PARSER = make_parser()
