"""Links between a few notes and whatever they link to or are linked from, as pairs of their ids."""

from __future__ import annotations

from co_cli.index.connection import fetch
from co_cli.index.names import fold_name, name_number
from co_cli.notes.link_targets import link_key, resolve_link

TYPE_CHECKING = False
if TYPE_CHECKING:
    import apsw

MOST_LINKING = 2_000
"""Notes that link to the few, at most: one that everything links to is near to nothing."""
PLACES = "select id, vault_id, path from docs where id in (select value from json_each(:ids))"
OUTGOING = """
select docs.id, link.value from docs, json_each(docs.links) as link
where docs.id in (select value from json_each(:ids))
"""
NAMESAKES = """
select wanted.value, docs.id, docs.path
from json_each(:names) as wanted cross join names on names.vault_id = :vault and names.name = wanted.value
cross join docs on docs.id = names.doc_id
"""
LINKING = """
select docs.id, docs.path, link.value
from json_each(:keys) as wanted cross join links on links.vault_id = :vault and links.target = wanted.value
cross join docs on docs.id = links.doc_id, json_each(docs.links) as link
limit :most
"""


def links_around(connection: apsw.Connection, ids: str) -> list[tuple[int, int]]:
    """Each link of which one end is among these notes, once for each way. `ids` is a JSON list."""
    import json

    found: set[tuple[int, int]] = set()
    by_vault: dict[int, dict[int, str]] = {}
    for doc, vault, path in fetch(connection, PLACES, {"ids": ids}):
        by_vault.setdefault(vault, {})[doc] = path
    outgoing: dict[int, list[str]] = {}
    for doc, target in fetch(connection, OUTGOING, {"ids": ids}):
        outgoing.setdefault(doc, []).append(str(target))
    for vault, places in by_vault.items():
        leaving = [(doc, path, target) for doc, path in places.items() for target in outgoing.get(doc, ())]
        keys = {link_key(path) for path in places.values()}
        arriving = fetch(connection, LINKING, {"vault": vault, "keys": json.dumps(sorted(keys)), "most": MOST_LINKING})
        links = leaving + [(doc, path, target) for doc, path, target in arriving if link_key(target) in keys]
        namesakes = _namesakes(connection, vault, {link_key(target) for _, _, target in links})
        for doc, path, target in links:
            meant = namesakes.get(link_key(target), {})
            there = resolve_link(target, path, list(meant))
            if there is not None and meant[there] != doc:
                found.add((doc, meant[there]))
    return sorted(found)


def _namesakes(connection: apsw.Connection, vault: int, keys: set[str]) -> dict[str, dict[str, int]]:
    """By the key of a link: the notes that may be meant, path to id."""
    import json

    names = sorted({name_number(name) for key in keys if (name := fold_name(key))})
    found: dict[str, dict[str, int]] = {}
    for _, doc, path in fetch(connection, NAMESAKES, {"vault": vault, "names": json.dumps(names)}):
        key = link_key(path)
        if key in keys:
            found.setdefault(key, {})[path] = doc
    return found
