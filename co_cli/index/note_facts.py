"""What a search may want to know of a few notes beside their text: dates, tags, and some fields of the frontmatter."""

from __future__ import annotations

from co_cli.index.connection import fetch
from co_cli.index.standing import Standing
from co_cli.record import Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    import apsw

FACTS = """
select docs.id, iif(docs.created <> docs.mtime, docs.created, null), docs.title, docs.path, vaults.root,
    (select group_concat(tag.value, char(10)) from json_each(docs.tags) as tag),
    json_extract(docs.frontmatter, '$.importance'), json_extract(docs.frontmatter, '$.severity'),
    (select group_concat(domain.value, char(10)) from json_each(docs.frontmatter, '$.domain') as domain),
    coalesce(json_extract(docs.frontmatter, '$.decay_protected'), 0) in (1, 'true', 'yes'),
    coalesce(json_extract(docs.frontmatter, '$.updated'), json_extract(docs.frontmatter, '$.modified')),
    docs.created, docs.valid_from, docs.valid_until
from docs join vaults on vaults.id = docs.vault_id
where docs.id in (select value from json_each(:ids))
"""


class NoteFacts(Record):
    """A note, as far as signals look at it."""

    created: float | None
    """None: it does not say when it came to be."""
    title: str
    path: str
    root: str
    tags: tuple[str, ...]
    importance: object
    severity: object
    domains: tuple[str, ...]
    protected: bool
    updated: object
    """As the frontmatter has it."""
    standing: Standing


def facts_of_notes(connection: apsw.Connection, ids: str) -> dict[int, NoteFacts]:
    """`ids` is a JSON list."""
    found: dict[int, NoteFacts] = {}
    for doc, created, title, path, root, tags, *rest in fetch(connection, FACTS, {"ids": ids}):
        importance, severity, domains, protected, updated, came, first, last = rest
        standing = Standing(came, first, last, None)
        lines = _lines(tags), importance, severity, _lines(domains), bool(protected), updated
        found[doc] = NoteFacts(created, title, path, root, *lines, standing)
    return found


def _lines(text: object) -> tuple[str, ...]:
    return tuple(str(text).split("\n")) if text else ()
