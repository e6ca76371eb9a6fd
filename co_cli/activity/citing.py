"""Which notes an answer names: refs of the vault's own notes in a text, as paths."""

from __future__ import annotations

import re

from co_cli.notes.refs import path_of, without_lines

REFS = re.compile(r"(?<![\w:])(?:memory|article):[^\s\]\[()<>{},;\"'`|*]+")
MOST = 20


def paths_in(text: str) -> list[str]:
    """The first so many, each once. Whether there is such a note is for others to know."""
    refs = (without_lines(found.rstrip(".:!?")) for found in REFS.findall(text))
    paths = (path_of(ref) for ref in refs)
    return list(dict.fromkeys(path for path in paths if path))[:MOST]
