"""Text as it came from a terminal, an argument or a YAML escape, into text that a file and SQLite can hold."""

from __future__ import annotations


def whole(text: str) -> str:
    """Without lone surrogates: bytes that the locale could not read are read as UTF-8, what is left becomes `?`."""
    if text.isascii():
        return text
    try:
        return text.encode("utf-8", "surrogateescape").decode("utf-8", "replace")
    except UnicodeEncodeError:
        return text.encode("utf-8", "replace").decode()
