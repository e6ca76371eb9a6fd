"""An HTML file into the Markdown of its main text.

A file without a clear main text (a report, a form, a fragment) is taken whole. Links to other local files lead nowhere
from a note, so only their words are kept.
"""

from __future__ import annotations

from co_cli.errors import PageRefusedError
from co_cli.notes.note import NotTextError
from co_cli.sources.documents import Document
from co_cli.sources.web.encoding import decode_page
from co_cli.sources.web.extract import WHOLE, extract

MAIN_SHARE = 0.3
"""An element with a smaller share of the letters is not the main text."""


def read_html(data: bytes) -> Document:
    markup = decode_page(data)
    if "\0" in markup[:8_192]:
        raise NotTextError("not a text file")
    try:
        return Document(*extract(markup, least_share=MAIN_SHARE))
    except PageRefusedError as error:
        raise NotTextError(str(error)) from None


def body_text(markup: str) -> str:
    """All of a page as Markdown; empty if there is no text in it."""
    try:
        return extract(markup, least_share=WHOLE).text
    except PageRefusedError:
        return ""
