"""Did somebody delete these notes, or is the vault not there? A drive that is not mounted leaves an empty folder.

People delete a few notes at a time. When all or most of a vault is gone at once, or its folder is bare, the rows stay
and are marked as missing: they come back by themselves with their files, and are forgotten when somebody says so.
"""

from __future__ import annotations

import os
from collections.abc import Collection, Sequence

from co_cli.index.vault_database import VaultDatabase
from co_cli.sources.origin import VAULT

MANY = 10
"""Fewer notes than these are deleted by hand, unless they were all there is."""
ALL = 2
"""So many are all there is; a single note is deleted by hand too."""

PRESENT = """
select count(*) from (select 1 from docs where vault_id = :vault and missing is null limit :enough)
"""


def vanished(database: VaultDatabase, gone: Sequence[str], moved: Collection[str]) -> bool:
    """Are these paths, which a walk no longer found, more than a person deletes?"""
    root = database.origin.root
    if database.origin.kind != VAULT or not gone:
        return False
    lost = [path for path in gone if path not in moved and not os.path.lexists(os.path.join(root, path))]
    if not lost or (len(lost) < ALL and not is_bare(root)):
        return False  # mostly, and nothing is counted
    with database.reading() as (connection, vault):
        # twice as many is enough to know
        present: int = connection.execute(PRESENT, {"vault": vault, "enough": 2 * len(lost)}).get or 0
    return too_many(root, len(lost), present)


def too_many(root: str, lost: int, present: int) -> bool:
    """Are so many of a vault's notes more than a person deletes?"""
    if lost >= present:
        return lost >= ALL or (lost > 0 and is_bare(root))
    return lost > 0 and (is_bare(root) or (lost >= MANY and lost * 2 > present))


def is_bare(folder: str) -> bool:
    """Is there nothing at all in it, as in a place where a drive would be mounted?"""
    try:
        with os.scandir(folder) as entries:
            return next(entries, None) is None
    except OSError:
        return not os.path.exists(folder)
