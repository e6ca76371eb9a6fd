"""Emails (.eml), and HTML files, into Markdown.

An HTML file without a clear main text (a report, a form, a fragment) is kept in full. Links to other local files lead
nowhere from a note, so only their words are kept.
"""

from __future__ import annotations

import contextlib
import email
from collections.abc import Iterator, Sequence
from email.errors import MessageError
from email.header import decode_header, make_header
from email.message import Message
from email.utils import parsedate_to_datetime
from itertools import islice

from co_cli.ground.errors import PageRefusedError
from co_cli.notes.encoding import NotTextError, decode_page
from co_cli.sources.documents import Document
from co_cli.sources.documents.markup import plain
from co_cli.sources.web.extract import ALL_TEXT, extract_here

MAIN_SHARE = 0.3
"""An element with a smaller share of the letters is not the main text."""
MOST_PARTS = 200
LONGEST_FIELD = 20_000
"""Characters of a header: to decode one takes quadratic time."""


def read_html(data: bytes) -> Iterator[Document]:
    markup = decode_page(data)
    if "\0" in markup[:8_192]:
        raise NotTextError("not a text file")
    try:
        yield Document(*extract_here(markup, least_share=MAIN_SHARE))
    except PageRefusedError as error:
        raise NotTextError(str(error)) from None


def read_mail(data: bytes) -> Iterator[Document]:
    """Sender, recipients, date and the names of attachments, and then the body, which may take longer."""
    message = email.message_from_bytes(data)
    fields = {name: str(message.get(name) or "") for name in ("From", "To", "Cc", "Date", "Subject")}
    said = {name: _decoded(value) for name, value in fields.items()}
    if not any(said.values()):
        raise NotTextError("not an email: it has no sender, subject or date")
    parts = [*islice(message.walk(), MOST_PARTS + 1)]
    texts, pages, attached = _contents(parts[:MOST_PARTS])
    problems = [
        f"only the first {LONGEST_FIELD:,} characters of {name} are read"
        for name, value in fields.items()
        if len(value) > LONGEST_FIELD
    ]
    problems += [f"only its first {MOST_PARTS} parts are read"] if len(parts) > MOST_PARTS else []
    subject = said.pop("Subject")
    lines = [f"{name}: {value}" for name, value in {**said, "Attached": ", ".join(attached)}.items() if value]
    created = None
    with contextlib.suppress(ValueError, TypeError, IndexError, OverflowError):
        created = parsedate_to_datetime(said["Date"]).isoformat()
    metadata: dict[str, object] = {"author": said["From"], "to": said["To"], "created": created}
    yield Document(subject, "\n".join(lines) + "\n", metadata, "; ".join(problems) or None)
    if any(text.strip() for text in texts):
        yield Document(text="\n\n".join(map(plain, texts)))
    elif pages:
        with contextlib.suppress(PageRefusedError):  # there is no text in them
            yield Document(text=extract_here("\n".join(pages), least_share=ALL_TEXT).text)


def _contents(parts: Sequence[Message]) -> tuple[list[str], list[str], list[str]]:
    """The plain texts, the HTML pages, and the names of attachments."""
    texts: list[str] = []
    pages: list[str] = []
    attached: list[str] = []
    for part in parts:
        name, kind = part.get_filename(), part.get_content_type()
        if name or part.get_content_disposition() == "attachment":
            attached.append(_decoded(name or kind))
        elif kind.startswith("text/"):
            content = part.get_payload(decode=True)
            is_page = kind == "text/html"
            body = content if isinstance(content, bytes) else b""
            (pages if is_page else texts).append(decode_page(body, part.get_content_charset() or "", markup=is_page))
    return texts, pages, attached


def _decoded(text: str) -> str:
    """`=?utf-8?q?=C3=BCber?=` as a person reads it; what cannot be decoded is kept."""
    text = text[:LONGEST_FIELD]
    with contextlib.suppress(MessageError, LookupError, ValueError):
        text = str(make_header(decode_header(text)))
    return " ".join(text.split())
