"""A vault was moved, and its folder has another name: bring along what is kept under the old one.

History, use, feedback and learned weights, decisions of a review, and the sources that stand beside it are known by the
vault's folder, because nothing of ours is written into a vault. Trust is not brought along: whoever puts other notes in
the place of yours must not inherit it.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable
from typing import TYPE_CHECKING, NamedTuple

from co_cli.activity.adopting import adopt, vaults_like
from co_cli.activity.database import available
from co_cli.activity.folding import fold_spool
from co_cli.errors import IndexUnavailableError, InvalidInputError
from co_cli.index.verify import hash_of_file
from co_cli.paths import project_vault
from co_cli.service.learned import adopt_learned
from co_cli.service.review import Dismissals
from co_cli.sources.origin import VAULT, Added, Origin, change_registry, read_registry

if TYPE_CHECKING:
    from co_cli.knowledge_base import KnowledgeBase


class Left(NamedTuple):
    """A vault whose folder is gone, and what is kept of it."""

    vault: str
    documents: int
    alike: int
    """Documents that stand here at the same path with the same content: it may be this vault that moved."""
    sources: int


class Adopted(NamedTuple):
    """What was brought along."""

    vault: str
    documents: int
    sources: list[str]
    left: list[str]
    """Sources that stay where they are: this vault has others of the same name or place."""


def left_behind(kb: KnowledgeBase, likely: bool = True) -> list[Left]:
    """Vaults whose folders are gone, likely ones first; all of them if `likely` is false."""
    sources: dict[str, int] = {}
    for entry in read_registry(kb.settings.data_dir):
        sources[entry.vault] = sources.get(entry.vault, 0) + 1
    database = kb.activity.database
    known: list[Left] = []
    if os.path.exists(database.path):
        kb.activity.flush()
        with available(database.path), database.reading() as connection:
            others = [one for one in vaults_like(connection, kb.root, _holding(kb.root)) if one.alike or not likely]
            known = [Left(*one, sources.get(one.root, 0)) for one in others]
    heard = {one.vault for one in known}
    known += [Left(vault, 0, 0, count) for vault, count in sources.items() if vault not in heard]
    return [one for one in known if one.vault != kb.root and not os.path.isdir(one.vault)]


def _holding(root: str) -> Callable[[str, str], bool]:
    """Does the file at a path have the content of a hash? Each file is read once."""
    read: dict[str, str | None] = {}

    def holds(path: str, known: str) -> bool:
        if path not in read:
            read[path] = hash_of_file(os.path.join(root, path))
        return read[path] == known

    return holds


def adopt_vault(kb: KnowledgeBase, old: str, now: float) -> Adopted:
    """What is kept of the vault that stood at `old`, a vault or its project, is kept of this one from now on."""
    wanted = os.path.realpath(os.path.expanduser(old))
    if not old.strip() or wanted in (kb.root, os.path.dirname(os.path.dirname(kb.root))):
        raise InvalidInputError(
            "name the folder where this vault was before: `co index move` alone lists what is known"
        )
    known = {one.vault: one for one in left_behind(kb, likely=False)}
    places = [wanted, project_vault(wanted)]
    if kb.root.endswith(os.sep + project_vault("")):
        places.reverse()  # a project's folder may have been a source of its vault, and is known for that too
    vault = next((place for place in places if place in known), None)
    if vault is None:
        if os.path.isdir(wanted):
            raise InvalidInputError(f"{wanted} is still there, and keeps what is known of it; a copy begins anew")
        raise InvalidInputError(f"nothing is kept of a vault at {wanted}: `co index move` alone lists what is")
    # the list of sources last: who was stopped on the way can ask again
    adopt_learned(kb.settings.data_dir, vault, kb.root)
    Dismissals(kb.settings.data_dir, kb.root).adopt(vault)
    rebased = _sources(kb, vault, write=False)[2]
    documents = 0
    database = kb.activity.database
    if os.path.exists(database.path):
        kb.activity.flush()
        with available(database.path):
            fold_spool(database, kb.activity.data_dir)
            with database.writing() as connection:
                documents = adopt(connection, vault, kb.root, now, _in(kb.root))
                for before, after in rebased:
                    adopt(connection, before.root, after, now, _in(after))
    came, stay, _ = _sources(kb, vault)
    kb.look_beside()
    _bring_rows(kb, vault, rebased)
    return Adopted(vault, documents, came, stay)


def _bring_rows(kb: KnowledgeBase, vault: str, rebased: list[tuple[Origin, str]]) -> None:
    """The index of the old places is dropped: the next sync reads the files where they are now."""
    used = {entry.origin for entry in read_registry(kb.settings.data_dir)}
    with contextlib.suppress(IndexUnavailableError):
        for before, _ in rebased:
            if before not in used:
                kb.index.of(before).drop_all()
        kb.index.of(Origin(VAULT, vault)).drop_all()


def _in(root: str) -> Callable[[str], bool]:
    return lambda path: os.path.lexists(os.path.join(root, path))


def _sources(kb: KnowledgeBase, old: str, write: bool = True) -> tuple[list[str], list[str], list[tuple[Origin, str]]]:
    """Bring the sources; their labels, the labels of those that stay, and those that moved along, with where to."""
    came: list[str] = []
    stay: list[str] = []
    rebased: list[tuple[Origin, str]] = []

    def change(entries: list[Added]) -> list[Added]:
        ours = [entry.origin for entry in entries if entry.vault == kb.root]
        changed: list[Added] = []
        for entry in entries:
            if entry.vault != old:
                changed.append(entry)
                continue
            origin = entry.origin._replace(root=_moved_with(entry.origin.root, old, kb.root))
            if any(origin.name == one.name or (origin.root, origin.only) == (one.root, one.only) for one in ours):
                stay.append(origin.label)
                changed.append(entry)
                continue
            if origin.root != entry.origin.root:
                rebased.append((entry.origin, origin.root))
            came.append(origin.label)
            changed.append(entry._replace(vault=kb.root, origin=origin))
        return changed

    entries = read_registry(kb.settings.data_dir)
    if not write:
        change(entries)
    elif any(entry.vault == old for entry in entries):
        change_registry(kb.settings.data_dir, change)
    return came, stay, rebased


def _moved_with(folder: str, old: str, new: str) -> str:
    """Where a folder is now that may have stood in the same project: it went along, if it is gone and stands there."""
    if os.path.isdir(folder):
        return folder
    while os.path.basename(old) == os.path.basename(new):  # they differ, so this ends
        old, new = os.path.dirname(old), os.path.dirname(new)
    inside = os.path.relpath(folder, old)
    there = os.path.normpath(os.path.join(new, inside))
    return there if inside.split(os.sep)[0] != os.pardir and os.path.isdir(there) else folder
