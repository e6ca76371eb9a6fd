"""Every note of a vault at once, for those who look through all of them."""

from __future__ import annotations

import json
from typing import Any, NamedTuple

from co_cli.index.connection import fetch
from co_cli.index.vault_database import VaultDatabase

EVERY_NOTE = """
select id, path, ref, title, source, created, fingerprint, valid_until, superseded_by, links, frontmatter
from docs where vault_id = :vault and missing is null order by created, path
"""
EVERY_TEXT = """
select docs.id, passages.body from docs join passages on passages.doc_id = docs.id
where docs.vault_id = :vault and docs.missing is null order by passages.id
"""
EVERY_NAME = """
select names.name, docs.path from names cross join docs on docs.id = names.doc_id where names.vault_id = :vault
"""


class Overview(NamedTuple):
    """A note as search.db has it: what it says of itself, and its text without the frontmatter."""

    path: str
    ref: str
    title: str
    source: str
    created: float
    fingerprint: str
    valid_until: float | None
    superseded_by: str | None
    links: tuple[str, ...]
    frontmatter: dict[str, Any]
    body: str


def every_note(rows: VaultDatabase) -> tuple[list[Overview], dict[int, set[str]]]:
    """The oldest first; and the numbers of notes' names, each with the paths that have it."""
    names: dict[int, set[str]] = {}
    texts: dict[int, list[str]] = {}
    with rows.reading() as (connection, vault):
        notes = fetch(connection, EVERY_NOTE, {"vault": vault})
        for doc, body in fetch(connection, EVERY_TEXT, {"vault": vault}):
            texts.setdefault(doc, []).append(body)
        for name, path in fetch(connection, EVERY_NAME, {"vault": vault}):
            names.setdefault(name, set()).add(path)
    found = [
        Overview._make((*rest, tuple(json.loads(links)), json.loads(front), "\n\n".join(texts.get(doc, ()))))
        for doc, *rest, links, front in notes
    ]
    return found, names
