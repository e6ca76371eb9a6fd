"""What people drop on the page: files next to a note, documents that become articles, and web pages to save."""

from __future__ import annotations

import os
import re
import tempfile
from typing import NamedTuple

from pydantic import Base64Bytes, BaseModel

from co_cli.entrance.local import LocalKnowledgeBase
from co_cli.ground.errors import InvalidInputError
from co_cli.ground.values import INVISIBLE
from co_cli.importers.articles import import_articles
from co_cli.notes.refs import is_taken_by_windows
from co_cli.saving.web_pages import PageReceipt
from co_cli.server.note_api import OneNote
from co_cli.server.rendering import PICTURES
from co_cli.server.routes import route

LARGEST_DROPPED, LARGEST_BODY = 20_000_000, 27_000_000
"""Bytes, and in base64."""
OTHERS = frozenset(
    ".csv .docx .epub .ics .json .m4a .mov .mp3 .mp4 .odt .ogg .pdf .pptx .tsv .txt .wav .webm .xlsx .zip".split()
)
"""Besides pictures: what a note may have next to it. A Markdown file would be a note itself."""
SIGNATURES = {
    ".avif": rb"....ftypavi[fs]",
    ".gif": rb"GIF8[79]a",
    ".jpeg": rb"\xff\xd8\xff",
    ".jpg": rb"\xff\xd8\xff",
    ".pdf": rb"%PDF-",
    ".png": rb"\x89PNG\r\n\x1a\n",
    ".webp": rb"RIFF....WEBP",
}
"""How files of a type begin."""
UNUSABLE = re.compile(rf'(?:[\x00-\x20\x7f:*?"<>|#^\[\]()%\\/]|{INVISIBLE})+')
LONGEST_NAME = 100
"""Bytes."""


class Dropped(BaseModel):
    """A file, in base64."""

    name: str
    data: Base64Bytes


class NewAttachment(OneNote, Dropped):
    """A file for a note."""


class Attached(NamedTuple):
    """A file that was stored next to a note."""

    path: str
    markdown: str
    """Shows or links it, in the text of that note."""


class AddedArticle(NamedTuple):
    """A document whose text was saved as an article."""

    ref: str
    outcome: str


class PastedHtml(BaseModel):
    """What another program put on the clipboard."""

    html: str


class PageAddress(BaseModel):
    """Of a web page."""

    url: str


@route("POST", "/files/{ref:path}")
def add_file(kb: LocalKnowledgeBase, asked: NewAttachment) -> Attached:
    """Store a picture or another file next to a note. It gets a number if the name is taken: nothing is overwritten."""
    name, ending = _checked(asked)
    if ending not in PICTURES and ending not in OTHERS:
        raise InvalidInputError(
            f"{asked.name}: files of this type cannot be added to a note; a picture, a PDF or a ZIP can"
        )
    note = kb.lookup().open_own(asked.ref, "changed")
    path = kb.store.create_file(os.path.dirname(note.path), name, asked.data)
    name = os.path.basename(path)
    label = os.path.splitext(name)[0].replace("-", " ") if ending in PICTURES else name
    return Attached(path, f"{'!' if ending in PICTURES else ''}[{label}]({name})")


@route("POST", "/documents")
def add_document(kb: LocalKnowledgeBase, asked: Dropped) -> AddedArticle:
    """Save the text of a document (Markdown, text, HTML, PDF, Office) as an article, as `co note article add` does."""
    name, _ = _checked(asked)
    with tempfile.TemporaryDirectory() as folder:
        with open(os.path.join(folder, name), "wb") as file:
            file.write(asked.data)
        ((_, saved, reason),) = import_articles(kb.vault, [file.name]) or [("", None, "there is no text in it")]
    if saved is None:
        raise InvalidInputError(f"{asked.name} was not added: {reason}")
    return AddedArticle(saved.ref, saved.outcome)


@route("POST", "/markdown", role="read")
def convert_html(kb: LocalKnowledgeBase, asked: PastedHtml) -> dict[str, str]:
    """Convert HTML that is pasted to Markdown: headings, lists, links, tables and code. Nothing is saved."""
    from co_cli.sources.web.extract import ALL_TEXT, extract  # imports lxml and readability

    return {"text": extract(asked.html, least_share=ALL_TEXT).text.strip()}


@route("POST", "/pages")
def save_page(kb: LocalKnowledgeBase, asked: PageAddress) -> PageReceipt:
    """Fetch a public web page and save its main text as an article, as `co add URL` does."""
    return kb.web_pages().add(asked.url)


def _checked(file: Dropped) -> tuple[str, str]:
    """The name that a file gets, and its ending. Raises InvalidInputError."""
    stem, ending = os.path.splitext(file.name.replace("\\", "/").rpartition("/")[2])
    name = UNUSABLE.sub("-", stem).encode("utf-8", "replace")[:LONGEST_NAME].decode("utf-8", "ignore")
    name = name.strip("-. ") or "file"
    name = f"file-{name}" if is_taken_by_windows(name) else name
    ending = ending.lower()
    if not ending.isprintable() or len(ending.encode()) > LONGEST_NAME:
        raise InvalidInputError(f"{name}: the ending of its name is no type of file; rename it")
    if len(file.data) > LARGEST_DROPPED:
        raise InvalidInputError(
            f"{file.name} has {len(file.data):,} bytes: at most {LARGEST_DROPPED:,} can be added here"
        )
    if not file.data:
        raise InvalidInputError(f"{file.name} is empty: nothing was written")
    if ending in SIGNATURES and not re.match(SIGNATURES[ending], file.data, re.DOTALL):
        raise InvalidInputError(f"{file.name} is not what its name says: rename it, or save it again as {ending}")
    return name + UNUSABLE.sub("-", ending), ending
