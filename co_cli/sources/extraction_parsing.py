"""A page's markup into a tree, in a time that grows with its length.

libxml2 takes the square of the number of attributes that one tag has, minutes for a page of a megabyte, and nothing can
interrupt it; and where elements are nested too deep it reads no further. So it gets harmless markup: no tag has more
than some hundred attributes, and each `<` begins a tag or is a character of the text, never of a value, whatever the
parser believes to be reading. What is nested too deep is read once more, as paragraphs.
"""

from __future__ import annotations

import re
from typing import Any

import lxml
import lxml.html

from co_cli.sources.extraction_plain import BLOCKS, HEADINGS

lxml_html: Any = lxml.html
lxml_etree: Any = vars(lxml)["etree"]  # compiled, and without types

MOST_ATTRIBUTES = 250
"""Of one tag; those that follow are left out."""
BLANK = r"[ \t\n\r\f]*+"
ATTRIBUTE = (
    r"[ \t\n\r\f/]*+[^ \t\n\r\f/>][^ \t\n\r\f/>=]*+"
    rf"""(?:{BLANK}={BLANK}(?:"[^"]*+(?:"|\Z)|'[^']*+(?:'|\Z)|[^ \t\n\r\f>]*+))?+"""
)
TOKEN = re.compile(
    r"<!--(?:-?>|(?:[^-]++|-(?!-!?>))*+(?:--!?>|\Z))"  # a comment
    r"|<(?:[!?]|/(?![A-Za-z]))[^>]*+>?+"  # a doctype, an instruction, or what browsers take for a comment
    rf"|(?P<tag></?+(?P<name>[A-Za-z][^ \t\n\r\f/>]*+)(?:{ATTRIBUTE}){{0,{MOST_ATTRIBUTES}}}+)"
    rf"(?:{ATTRIBUTE})*+(?P<end>[ \t\n\r\f/]*+>?+)"
)
"""As browsers cut a page into tokens. What was matched is never given back, so nothing is looked at twice."""
UNREAD = ("script", "style")
RAW = {name: re.compile(rf"</{name}(?=[ \t\n\r\f/>])", re.I) for name in (*UNREAD, "textarea", "title")}
"""In these elements a `<` begins nothing but their end."""
OWN_LINE = frozenset(("li", "br", "td", "th", *BLOCKS, *HEADINGS))


def parse(markup: str) -> Any:
    """The root of the tree, without comments and scripts' text; None if there is nothing in it."""
    markup = harmless(markup.replace("\0", ""))
    tree, whole = _parsed(markup)
    return tree if whole else _parsed(_flat(markup))[0]


def harmless(markup: str) -> str:
    """The same page for whoever parses it as a browser does, without what may take long or be read in two ways."""
    parts: list[str] = []
    place = kept = 0
    while found := TOKEN.search(markup, place):
        begin, place = found.span()
        tag, end = _tag(found)
        name = found["name"].lower() if found["name"] else ""
        if name in RAW and end == ">" and not tag.startswith("</"):
            closing = RAW[name].search(markup, place)
            inside = markup[place : closing.start() if closing else len(markup)]
            place += len(inside)
            end += "" if name in UNREAD else inside.replace("<", "&lt;")
        if markup[begin:place] != tag + end:
            parts += (markup[kept:begin], tag, end)
            kept = place
    return "".join([*parts, markup[kept:]])


def _tag(found: re.Match[str]) -> tuple[str, str]:
    """A tag and its end as they may stay; nothing, if it is a comment or does not end."""
    tag, end = found["tag"] or "", found["end"] or ""
    if not end.endswith(">"):
        return "", ""
    if tag.startswith("</"):
        return "</" + found["name"].replace("<", "&lt;"), ">"  # not every parser knows that quotes may follow
    if "<" in tag[1:]:
        tag = "<" + tag[1:].replace("<", "&lt;")
    if end != ">":
        end = " />" if "/" in end else ">"
    return tag, end


def _flat(markup: str) -> str:
    """Harmless markup without anything that nests: its text, in paragraphs."""

    def one(found: re.Match[str]) -> str:
        name = (found["name"] or "").lower()
        return found[0] if name == "title" else "<p>" if name in OWN_LINE else ""

    return TOKEN.sub(one, markup)


def _parsed(markup: str) -> tuple[Any, bool]:
    """And whether it was read to its end."""
    parser = lxml_html.HTMLParser(remove_comments=True, remove_pis=True, no_network=True, encoding="utf-8")
    try:
        tree = lxml_html.document_fromstring(markup.encode("utf-8", "replace"), parser=parser)
    except lxml_etree.LxmlError:
        tree = None
    return tree, not any("depth" in entry.message for entry in parser.error_log)
