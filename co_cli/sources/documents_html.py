"""An HTML file into the Markdown of its text.

The main text, as of a page from the web: what surrounds it in a saved page is no part of it. A file that is mostly
something else (a report, a form, a fragment) is taken whole. Links lead nowhere from here, so only their words stay,
except for those to the web.
"""

from __future__ import annotations

import re
from typing import Any

import lxml

from co_cli.errors import PageRefusedError
from co_cli.notes.note import NotTextError
from co_cli.sources.documents import Document
from co_cli.sources.documents_markdown import plain
from co_cli.sources.extraction_encoding import decode_page
from co_cli.sources.extraction_main import find_main
from co_cli.sources.extraction_markdown import render
from co_cli.sources.extraction_parsing import parse
from co_cli.sources.extraction_plain import RENDERED, count_elements, plainly

lxml_etree: Any = vars(lxml)["etree"]  # compiled, and without types

WITHOUT_WORDS = "script style noscript template svg math canvas iframe object embed head".split()
MAIN_SHARE = 0.3
"""What holds less of the file's letters than this is not its main text, whatever it looks like."""
EMPTY_RUN = re.compile(r"\s{100,}")
"""Means nothing, and takes Markdown's regular expressions the square of its length."""
NOWHERE = "file:///"


def read_html(_: str, data: bytes) -> Document:
    markup = EMPTY_RUN.sub("\n", decode_page(data))
    if "\0" in markup[:8_192]:
        raise NotTextError("not a text file")
    tree, elements = _parsed(markup)
    if tree is None:
        raise NotTextError("no text in the page, nothing to read")
    scripted = tree.find(".//script") is not None
    if elements > RENDERED:
        title, text = " ".join((tree.findtext(".//title") or "").split()), plainly(_body(tree), plain)
    else:
        title, text = _main(markup, tree)
    if not re.search(r"\w", text):
        why = "only scripts, which are not run: save what the browser shows" if scripted else "nothing to read"
        raise NotTextError(f"no text in the page, {why}")
    return Document(title or None, text, {})


def body_text(markup: str, most: int = RENDERED) -> tuple[str, int]:
    """All of a page as Markdown, carefully if it has at most so many elements, and how many it has."""
    tree, elements = _parsed(EMPTY_RUN.sub("\n", markup))
    if tree is None:
        return "", 0
    return (_rendered(tree) if elements <= most else plainly(_body(tree), plain)), elements


def _main(markup: str, tree: Any) -> tuple[str, str]:
    """The title and the main text, or all of it."""
    try:
        title, element, _ = find_main(markup, NOWHERE)
    except PageRefusedError as error:
        raise NotTextError(str(error).removeprefix(f"{NOWHERE}: ")) from None
    text = "" if element is None else render(_narrowed(element))
    body = _body(tree)
    if _letters(text) < sum(_letters(part) for part in body.itertext()) * MAIN_SHARE:
        text = render(body)
    return title, text


def _parsed(markup: str) -> tuple[Any, int]:
    tree = parse(markup)
    return tree, 0 if tree is None else count_elements(tree)


def _body(tree: Any) -> Any:
    """Without what is no text."""
    body = tree.find("body")
    body = tree if body is None else body
    lxml_etree.strip_elements(body, *WITHOUT_WORDS, with_tail=False)
    return _narrowed(body)


def _narrowed(element: Any) -> Any:
    """Without endless spaces, which may also be written as entities."""
    for inner in element.iter():
        for name in ("text", "tail"):
            text = getattr(inner, name)
            if text and len(text) > 100:
                setattr(inner, name, EMPTY_RUN.sub("\n", text))
    return element


def _rendered(tree: Any) -> str:
    return str(render(_body(tree)))


def _letters(text: str) -> int:
    return sum(map(str.isalnum, text))
