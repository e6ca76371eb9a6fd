"""Carry what is known of a vault along when its folder was moved."""

from __future__ import annotations

import os
from typing import NamedTuple

from co_cli.activity import Activity
from co_cli.activity.judgements import change_learned
from co_cli.activity.versions import known_roots, move_vault
from co_cli.ground.errors import InvalidInputError
from co_cli.ground.settings import Settings
from co_cli.index.engines import engine_of
from co_cli.knowledge_index import KnowledgeIndex
from co_cli.sources.origin import Added, change_registry
from co_cli.upkeep.review import Dismissals


class Moved(NamedTuple):
    """What `co index move` carried to a new folder."""

    folders: list[str]
    """Vaults and sources whose history was carried along, where they are now."""
    sources: list[str]
    """Labels of the sources that belong to the vault at the new place now."""
    left: list[str]
    """Labels of sources that were left, because the new vault has others of that name or folder."""


def move_history(settings: Settings, old: str, new: str) -> Moved:
    """Carry history, use, feedback, review decisions and sources from a folder that was moved to its new place.

    Everything known of `old` or a folder in it is known of the same place in `new` from now on. Trust is not carried
    along: other notes may have taken the place of yours.
    """
    old, new = (os.path.realpath(os.path.expanduser(folder)) for folder in (old, new))
    if not os.path.isdir(new):
        raise InvalidInputError(f"{new} is not a folder: name the folder where the vault is now")
    if os.path.isdir(old):
        raise InvalidInputError(f"{old} still exists and keeps its history: move it first, a copy starts its own")

    def moved(path: str) -> str:
        return new + path[len(old) :] if path == old or path.startswith(old + os.sep) else path

    result = Moved([], [], [])

    def move_sources(entries: list[Added]) -> list[Added]:
        changed: list[Added] = []
        taken = {(entry.vault, value) for entry in entries for value in (entry.origin.name, entry.origin.path)}
        for entry in entries:
            vault, origin = moved(entry.vault), entry.origin._replace(root=moved(entry.origin.root))
            clash = vault != entry.vault and {(vault, origin.name), (vault, origin.path)} & taken
            changed.append(entry if clash else entry._replace(vault=vault, origin=origin))
            if vault != entry.vault:
                (result.left if clash else result.sources).append(origin.label)
        return changed

    def move_learned(learned: dict[str, object]) -> None:
        for root in [root for root in learned if moved(root) != root]:
            learned.setdefault(moved(root), learned.pop(root))

    with Activity(settings, new) as activity, activity.written().writing() as connection:
        for root in [root for root in known_roots(connection) if moved(root) != root]:
            move_vault(connection, root, moved(root))
            result.folders.append(moved(root))
    change_learned(settings.data_dir, move_learned)
    Dismissals(settings.data_dir, new).move(moved)
    change_registry(settings.data_dir, move_sources)
    if not (result.folders or result.sources or result.left):
        raise InvalidInputError(f"nothing is known of a vault at {old}")
    engine = engine_of(settings, {old: old})  # PostgreSQL shows no vault that is not named
    with engine.reading() as snapshot:
        indexed = [vault.origin for vault in snapshot.origins() if moved(vault.origin.root) != vault.origin.root]
    for origin in indexed:  # the next sync reads the files at their new place
        KnowledgeIndex(engine, origin).drop_all()
    engine.close()
    return result
