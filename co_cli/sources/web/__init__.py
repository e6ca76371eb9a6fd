"""Web pages: fetch one from a public address, and extract its main text as Markdown."""

from __future__ import annotations

import re


def looks_like_url(text: str) -> bool:
    """Whether it is meant as a URL of any kind, and not as a path."""
    return re.match(r"[A-Za-z][A-Za-z0-9+.-]*://", text) is not None
