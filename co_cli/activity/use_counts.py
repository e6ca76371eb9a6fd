"""How often documents were found, opened and rated, for the signals of a search."""

from __future__ import annotations

import json
import os
from collections.abc import Collection
from contextlib import suppress

from co_cli.activity.database import FILE_NAME, ActivityDatabase
from co_cli.activity.events import Opened, SearchEvent, read_spool
from co_cli.ground.errors import KnowledgeError
from co_cli.ground.hits import UseCount
from co_cli.index.sqlite.connection import fetch

USES = """
select vaults.root, documents.path, ifnull(recalls, 0), ifnull(opens, 0),
    count(iif(good, 1, null)), count(iif(good, null, how)), nullif(max(ifnull(opened, 0), ifnull(led, 0)), 0)
from json_each(:places) as place
cross join vaults on vaults.root = place.value ->> 0
cross join documents on documents.vault_id = vaults.id and documents.path = place.value ->> 1
left join uses on uses.document_id = documents.id
left join judgements on judgements.document_id = documents.id and how in ('said', 'heard')
group by documents.id
"""


Place = tuple[str, str]


def use_counts(data_dir: str, count_use: bool, places: Collection[Place]) -> dict[Place, UseCount]:
    """How documents, given by root and path, were used and rated, with what still waits in the spool.

    If use is not counted any more, when it last happened says nothing.
    """
    found = _stored(data_dir, places)
    if not count_use:
        return {place: count._replace(used=None) for place, count in found.items()}
    for event in read_spool(data_dir):
        with suppress(TypeError):  # another version wrote it
            if isinstance(event, Opened):
                _count(found, (event.root, event.path), event.at, opens=1)
            elif isinstance(event, SearchEvent):
                for number, place in enumerate(dict.fromkeys(event.recalled)):
                    _count(found, place, 0.0 if number else event.at, recalls=1)
    return {place: count for place, count in found.items() if place in places}


def _count(found: dict[Place, UseCount], place: Place, used: float, recalls: int = 0, opens: int = 0) -> None:
    before = found.get(place, UseCount())
    latest = max(before.used or 0.0, used) or None
    found[place] = before._replace(recalls=before.recalls + recalls, opens=before.opens + opens, used=latest)


def _stored(data_dir: str, places: Collection[Place]) -> dict[Place, UseCount]:
    """What activity.db has. Nothing if it cannot be read."""
    if not os.path.exists(os.path.join(data_dir, FILE_NAME)):
        return {}
    database = ActivityDatabase(data_dir)
    try:
        with database.reading() as connection:
            rows = fetch(connection, USES, {"places": json.dumps(list(places))})
    except KnowledgeError:
        return {}
    finally:
        database.close()
    return {(root, path): UseCount(*counts) for root, path, *counts in rows}
