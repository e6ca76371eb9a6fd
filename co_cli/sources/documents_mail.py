"""A saved message (.eml) into text: who wrote to whom and when, what it says, and the names of what was attached."""

from __future__ import annotations

import email
from email.errors import MessageError
from email.header import decode_header, make_header
from email.message import Message
from email.utils import parsedate_to_datetime

from co_cli.notes.note import NotTextError
from co_cli.sources.documents import Document
from co_cli.sources.documents_html import body_text
from co_cli.sources.documents_markdown import plain
from co_cli.sources.extraction_encoding import decode_page
from co_cli.sources.extraction_plain import RENDERED

SHOWN = ("From", "To", "Cc", "Date")
MOST_PARTS = 200


def read_mail(_: str, data: bytes) -> Document:
    message = email.message_from_bytes(data)
    if not any(message.get(name) for name in ("From", "To", "Subject", "Date", "Received", "Message-ID")):
        raise NotTextError("not a message: there is no sender, subject or date at its beginning")
    said = {name: _header(message, name) for name in SHOWN}
    head = [f"{name}: {text}" for name, text in said.items() if text]
    text, attached = _body(message)
    if attached:
        head.append(f"Attached: {', '.join(attached)}")
    blocks = [block for block in ("\n".join(head), text.strip("\n")) if block.strip()]
    metadata: dict[str, object] = {"author": said["From"], "to": said["To"], "created": _moment(said["Date"])}
    return Document(_header(message, "Subject") or None, "\n\n".join(blocks) + "\n", metadata)


def _body(message: Message) -> tuple[str, list[str]]:
    """The plain text, else the text of the HTML; and the names of attachments."""
    texts: list[str] = []
    pages: list[str] = []
    attached: list[str] = []
    for _, part in zip(range(MOST_PARTS), message.walk(), strict=False):
        name = part.get_filename()
        if name or part.get_content_disposition() == "attachment":
            attached.append(" ".join(_decoded(name or part.get_content_type()).split()))
        elif part.get_content_maintype() == "text":
            content = part.get_payload(decode=True)
            body = content if isinstance(content, bytes) else b""
            charset = part.get_content_charset() or ""
            if part.get_content_subtype() == "html":
                pages.append(decode_page(body, charset))
            else:
                texts.append(plain(decode_page(body, charset, markup=False)))
    if any(text.strip() for text in texts):
        return "\n\n".join(texts), attached
    return "\n\n".join(body_text(page, RENDERED // len(pages))[0] for page in pages), attached


def _header(message: Message, name: str) -> str:
    return " ".join(_decoded(str(message.get(name) or "")).split())


def _decoded(text: str) -> str:
    """`=?utf-8?q?=C3=BCber?=` as a person reads it; what cannot be decoded stays."""
    try:
        return str(make_header(decode_header(text)))
    except (MessageError, LookupError, ValueError):
        return text


def _moment(text: str) -> str | None:
    try:
        return parsedate_to_datetime(text).isoformat() if text else None
    except (ValueError, TypeError, IndexError, OverflowError):
        return None
