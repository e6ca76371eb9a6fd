"""Links between the notes of one origin: what a note links to, and which notes link to it.

Stored by the name that a link gives; which note that means is decided when somebody asks, so that a note that comes,
goes or moves changes no other note's rows.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import apsw

from co_cli.index.connection import fetch
from co_cli.index.names import fold_name, name_number
from co_cli.notes.link_targets import link_key, resolve_link
from co_cli.notes.refs import stem_of
from co_cli.typed import whole

PUT_LINK = "insert into links (vault_id, target, doc_id) values (:vault, :target, :doc) on conflict do nothing"
DROP_LINKS = "delete from links where doc_id = :doc"
OUTGOING = """
select link.value from docs, json_each(docs.links) as link where docs.vault_id = :vault and docs.path = :path
"""
LINKING = """
select docs.path, docs.ref, docs.title, link.value
from links cross join docs on docs.id = links.doc_id, json_each(docs.links) as link
where links.vault_id = :vault and links.target = :target
order by docs.path
"""
NAMESAKES = """
select docs.path, docs.ref from names cross join docs on docs.id = names.doc_id
where names.vault_id = :vault and names.name = :name
"""


class Link(NamedTuple):
    """A link as it is written, and the note that it means, if that is there."""

    target: str
    ref: str | None


class Backlink(NamedTuple):
    """A note that links here."""

    ref: str
    title: str


def link_rows(vault_id: int, doc: int, targets: tuple[str, ...]) -> list[dict[str, apsw.SQLiteValue]]:
    """What PUT_LINK takes for the links of one note."""
    keys = {link_key(whole(target)) for target in targets}
    return [{"vault": vault_id, "target": key, "doc": doc} for key in keys if key]


def links_from(
    connection: apsw.Connection, vault_id: int, path: str, targets: Sequence[str] | None = None
) -> list[Link]:
    """The links of a note, in their order: those that are stored, or these."""
    if targets is None:
        targets = [str(row[0]) for row in fetch(connection, OUTGOING, {"vault": vault_id, "path": path})]
    return [Link(target, _meant(connection, vault_id, target, path)) for target in targets]


def links_to(connection: apsw.Connection, vault_id: int, path: str) -> list[Backlink]:
    """The notes that link to one, each once. A link to itself does not count."""
    key = link_key(path)
    namesakes = list(_namesakes(connection, vault_id, path))
    found: dict[str, Backlink] = {}
    for linking, ref, title, target in fetch(connection, LINKING, {"vault": vault_id, "target": key}):
        if linking != path and link_key(target) == key and resolve_link(target, linking, namesakes) == path:
            found.setdefault(linking, Backlink(ref, title))
    return list(found.values())


def _meant(connection: apsw.Connection, vault_id: int, target: str, linking: str) -> str | None:
    namesakes = _namesakes(connection, vault_id, target)
    path = resolve_link(target, linking, list(namesakes))
    return namesakes[path] if path is not None else None


def _namesakes(connection: apsw.Connection, vault_id: int, target: str) -> dict[str, str]:
    """Every note with the name that a link gives, whatever its folder: path to ref."""
    key = link_key(target)
    rows = fetch(connection, NAMESAKES, {"vault": vault_id, "name": name_number(fold_name(key))})
    return {path: ref for path, ref in rows if link_key(stem_of(path)) == key}
