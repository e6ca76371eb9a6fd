"""An email (.eml) into text: sender, recipients, date, body, and the names of its attachments."""

from __future__ import annotations

import contextlib
import email
from email.errors import MessageError
from email.header import decode_header, make_header
from email.message import Message
from email.utils import parsedate_to_datetime

from co_cli.notes.note import NotTextError
from co_cli.sources.documents import Document
from co_cli.sources.documents.html import body_text
from co_cli.sources.documents.markup import plain
from co_cli.sources.web.encoding import decode_page

MOST_PARTS = 200


def read_mail(data: bytes) -> Document:
    message = email.message_from_bytes(data)
    said = {name: _decoded(message.get(name)) for name in ("From", "To", "Cc", "Date", "Subject")}
    if not any(said.values()):
        raise NotTextError("not an email: it has no sender, subject or date")
    subject, text, attached = said.pop("Subject"), *_body(message)
    head = {**said, "Attached": ", ".join(attached)}
    lines = [f"{name}: {value}" for name, value in head.items() if value]
    blocks = [block for block in ("\n".join(lines), text.strip("\n")) if block.strip()]
    metadata: dict[str, object] = {"author": said["From"], "to": said["To"], "created": _moment(said["Date"])}
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
            text = decode_page(body, part.get_content_charset() or "", markup=is_page)
            (pages if is_page else texts).append(text)
    if any(text.strip() for text in texts):
        return "\n\n".join(map(plain, texts)), attached
    return body_text("\n".join(pages)), attached


def _decoded(header: object) -> str:
    """`=?utf-8?q?=C3=BCber?=` as a person reads it; what cannot be decoded is kept."""
    text = str(header or "")
    with contextlib.suppress(MessageError, LookupError, ValueError):
        text = str(make_header(decode_header(text)))
    return " ".join(text.split())


def _moment(text: str) -> str | None:
    try:
        return parsedate_to_datetime(text).isoformat() if text else None
    except (ValueError, TypeError, IndexError, OverflowError):
        return None
