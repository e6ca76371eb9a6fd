"""The heads of documents, read from search.db: what the index says of them now."""

from __future__ import annotations

import json
import os
from collections.abc import Sequence

from co_cli.activity.versions import Head
from co_cli.index.connection import fetch
from co_cli.index.vault_database import VaultDatabase

HEADS = """
select path, hash, title from docs
where vault_id = :vault and (:paths is null or path in (select value from json_each(:paths)))
"""
LISTED = "select path, ref, title from docs where vault_id = :vault order by created desc, path"


def heads_of(rows: VaultDatabase, root: str, paths: Sequence[str] | None = None) -> list[Head]:
    """Of these documents, or of all; the size is that of the file now."""
    wanted = None if paths is None else json.dumps(list(paths))
    with rows.reading() as (connection, vault):
        found = fetch(connection, HEADS, {"vault": vault, "paths": wanted})
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
