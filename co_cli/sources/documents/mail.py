"""Emails (.eml), and HTML files, into Markdown.

An HTML file without a clear main text (a report, a form, a fragment) is kept in full. Links to other local files lead
nowhere from a note, so only their words are kept.
"""

from __future__ import annotations

import contextlib
import email
from email.errors import MessageError
from email.header import decode_header, make_header
from email.message import Message
from email.utils import parsedate_to_datetime

from co_cli.errors import PageRefusedError
from co_cli.notes.note import NotTextError
from co_cli.sources.documents import Document
from co_cli.sources.documents.markup import plain
from co_cli.sources.documents.text import decode_page
from co_cli.sources.web.extract import ALL_TEXT, extract

MAIN_SHARE = 0.3
"""An element with a smaller share of the letters is not the main text."""
MOST_PARTS = 200


def read_html(data: bytes) -> Document:
    markup = decode_page(data)
    if "\0" in markup[:8_192]:
        raise NotTextError("not a text file")
    try:
        return Document(*extract(markup, least_share=MAIN_SHARE))
    except PageRefusedError as error:
        raise NotTextError(str(error)) from None


def read_mail(data: bytes) -> Document:
    """Sender, recipients, date, body, and the names of attachments."""
    message = email.message_from_bytes(data)
    said = {name: _decoded(message.get(name)) for name in ("From", "To", "Cc", "Date", "Subject")}
    if not any(said.values()):
        raise NotTextError("not an email: it has no sender, subject or date")
    subject, text, attached = said.pop("Subject"), *_body(message)
    head = {**said, "Attached": ", ".join(attached)}
    lines = [f"{name}: {value}" for name, value in head.items() if value]
    blocks = [block for block in ("\n".join(lines), text.strip("\n")) if block.strip()]
    created = None
    with contextlib.suppress(ValueError, TypeError, IndexError, OverflowError):
        created = parsedate_to_datetime(said["Date"]).isoformat()
    metadata: dict[str, object] = {"author": said["From"], "to": said["To"], "created": created}
    return Document(subject, "\n\n".join(blocks) + "\n", metadata)


def _body(message: Message) -> tuple[str, list[str]]:
    """The plain text, else the text of the HTML; and the names of attachments."""
    texts: list[str] = []
    pages: list[str] = []
    attached: list[str] = []
    for _, part in zip(range(MOST_PARTS), message.walk(), strict=False):
        name, kind = part.get_filename(), part.get_content_type()
        if name or part.get_content_disposition() == "attachment":
            attached.append(_decoded(name or kind))
        elif kind.startswith("text/"):
            content = part.get_payload(decode=True)
            is_page = kind == "text/html"
            body = content if isinstance(content, bytes) else b""
            (pages if is_page else texts).append(decode_page(body, part.get_content_charset() or "", markup=is_page))
    if any(text.strip() for text in texts):
        return "\n\n".join(map(plain, texts)), attached
    try:
        return extract("\n".join(pages), least_share=ALL_TEXT).text, attached
    except PageRefusedError:
        return "", attached


def _decoded(header: object) -> str:
    """`=?utf-8?q?=C3=BCber?=` as a person reads it; what cannot be decoded is kept."""
    text = str(header or "")
    with contextlib.suppress(MessageError, LookupError, ValueError):
        text = str(make_header(decode_header(text)))
    return " ".join(text.split())
