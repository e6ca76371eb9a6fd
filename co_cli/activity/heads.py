"""The heads of documents, read from search.db: what the index says of them now."""

from __future__ import annotations

import json
import os
from collections.abc import Sequence

from co_cli.activity.versions import Head
from co_cli.index.connection import fetch
from co_cli.index.vault_database import VaultDatabase

EVERY_HEAD = "select path, hash, title from docs where vault_id = :vault"
# one statement for both would read every note of the vault for each that is saved
HEADS = """
select docs.path, docs.hash, docs.title
from json_each(:paths) as wanted cross join docs on docs.vault_id = :vault and docs.path = wanted.value
"""
LISTED = "select path, ref, title from docs where vault_id = :vault order by created desc, path"


def heads_of(rows: VaultDatabase, root: str, paths: Sequence[str] | None = None) -> list[Head]:
    """Of these documents, or of all; the size is that of the file now."""
    with rows.reading() as (connection, vault):
        if paths is None:
            found = fetch(connection, EVERY_HEAD, {"vault": vault})
        else:
            found = fetch(connection, HEADS, {"vault": vault, "paths": json.dumps(list(paths))})
    return [Head(path, file_hash, title, _size(root, path)) for path, file_hash, title in found]


def listed(rows: VaultDatabase) -> list[tuple[str, str, str]]:
    """Every document's path, ref and title, newest first."""
    with rows.reading() as (connection, vault):
        return fetch(connection, LISTED, {"vault": vault})


def _size(root: str, path: str) -> int | None:
    try:
        return os.stat(os.path.join(root, path)).st_size
    except OSError:
        return None
