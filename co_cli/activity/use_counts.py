"""How often documents were found, opened and rated, for the signals of a search."""

from __future__ import annotations

import json
import os
from collections.abc import Collection

from co_cli.activity.database import FILE_NAME, ActivityDatabase
from co_cli.errors import KnowledgeError
from co_cli.hits import UseCount
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


def use_counts(data_dir: str, count_use: bool, places: Collection[tuple[str, str]]) -> dict[tuple[str, str], UseCount]:
    """How documents, given by root and path, were used and rated. Nothing if activity.db cannot be read.

    If use is not counted any more, when it last happened says nothing.
    """
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
    found = {(root, path): UseCount(*counts) for root, path, *counts in rows}
    return found if count_use else {place: count._replace(used=None) for place, count in found.items()}
