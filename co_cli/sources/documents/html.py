"""An HTML file into the Markdown of its main text.

A file without a clear main text (a report, a form, a fragment) is taken whole. Links to other local files lead nowhere
from a note, so only their words are kept.
"""

from __future__ import annotations

import re
from typing import Any

import lxml

from co_cli.errors import PageRefusedError
from co_cli.notes.note import NotTextError
from co_cli.sources.documents import Document
from co_cli.sources.documents.markup import plain
from co_cli.sources.extraction_encoding import decode_page
from co_cli.sources.extraction_main import find_main
from co_cli.sources.extraction_markdown import render
from co_cli.sources.extraction_parsing import parse
from co_cli.sources.extraction_plain import RENDERED, count_elements, plainly

lxml_etree: Any = vars(lxml)["etree"]  # compiled, and without types

WITHOUT_WORDS = "script style noscript template svg math canvas iframe object embed head".split()
MAIN_SHARE = 0.3
"""An element with a smaller share of the letters is not the main text."""
EMPTY_RUN = re.compile(r"\s{100,}")
"""Regular expressions of readability and markdownify take quadratic time for these."""
NOWHERE = "file:///"


def read_html(data: bytes) -> Document:
    markup = EMPTY_RUN.sub("\n", decode_page(data))
    if "\0" in markup[:8_192]:
        raise NotTextError("not a text file")
    tree = parse(markup)
    if tree is None:
        raise NotTextError("no text in the page")
    scripted = tree.find(".//script") is not None
    title, text = " ".join((tree.findtext(".//title") or "").split()), ""
    if count_elements(tree) <= RENDERED:
        try:
            title, main, _ = find_main(markup, NOWHERE)
        except PageRefusedError as error:
            raise NotTextError(str(error).removeprefix(f"{NOWHERE}: ")) from None
        text = "" if main is None else render(main)
    if _letters(text) < sum(map(_letters, _body(tree).itertext())) * MAIN_SHARE:
        text = _whole(tree, RENDERED)
    if not re.search(r"\w", text):
        why = ", only scripts, which are not run: save what the browser shows" if scripted else ""
        raise NotTextError(f"no text in the page{why}")
    return Document(title, text)


def body_text(markup: str, most: int = RENDERED) -> str:
    """All of a page as Markdown, in a simpler form if it has more than `most` elements."""
    tree = parse(EMPTY_RUN.sub("\n", markup))
    return "" if tree is None else _whole(tree, most)


def _whole(tree: Any, most: int) -> str:
    simple = count_elements(tree) > most
    return plainly(_body(tree), plain) if simple else render(_body(tree))


def _body(tree: Any) -> Any:
    body = tree.find("body")
    body = tree if body is None else body
    lxml_etree.strip_elements(body, *WITHOUT_WORDS, with_tail=False)
    return body


def _letters(text: str) -> int:
    return sum(map(str.isalnum, text))
