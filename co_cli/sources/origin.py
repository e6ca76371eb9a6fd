"""Origins: the vault, and the folders and files that `co add` made searchable without copying them.

A source reader says which files of an origin are indexed and how their bytes become a note. `sources.toml` in the data
folder lists the origins that were added. It belongs to the user and may be edited by hand; a project's checked-in files
cannot change it, because a clone must not make folders outside of it searchable.
"""

from __future__ import annotations

import dataclasses
import json
import os
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from importlib import import_module
from typing import Final, NamedTuple

from co_cli.ground.errors import SettingsError
from co_cli.ground.paths import is_inside
from co_cli.ground.settings import read_toml
from co_cli.ground.values import OWN_SOURCES
from co_cli.notes.files import locked, make_folders, replace
from co_cli.notes.note import Note
from co_cli.notes.refs import path_of, without_ending

VAULT: Final = "vault"
CHECKPOINT: Final = "checkpoint"
PICTURE: Final = "picture"
CHECKPOINTS = ".checkpoints"
"""The folder of a vault that has them."""
REGISTRY = "sources.toml"
IGNORE_FILE = ".coignore"
GIT_FILE = ".gitignore"
ENDING = ".md"
MARKDOWN = (ENDING, ".markdown")

HEAD = "# Made searchable by `co add`. `co source list` lists them, `co source remove` removes one.\n"
TABLE = "[[source]]"
FIELDS = ("vault", "source", "name", "path", "only", "added")
READ_ONLY = "read_only"


class Origin(NamedTuple):
    """A folder, or one file of it, whose text is searched."""

    source: str
    """folder, obsidian, skill, checkpoint, picture (those beside the notes of a vault), or the vault itself."""
    root: str
    """The folder, as a real path."""
    name: str = ""
    """Its name in refs: `folder:handbook/guides/deploy.md`. The vault has none."""
    only: str = ""
    """The one file of the folder that was added, if it was a file."""
    tier: str = ""
    """For a second vault: `user` or `team`, the prefix of its refs."""

    @property
    def path(self) -> str:
        """What was added."""
        return os.path.join(self.root, self.only) if self.only else self.root

    @property
    def label(self) -> str:
        """`folder:handbook`, or `user`."""
        if self.tier:
            return self.tier
        return f"{self.source}:{self.name}" if self.name else self.source

    def is_in(self, other: Origin) -> bool:
        """Whether its text is found with the other one's. Skills are searched separately."""
        return is_inside(self.path, other.path) and (self.source == "skill") == (other.source == "skill")


class SourceAdapter(ABC):
    """How the files of a source become notes. Subclasses change what differs from a folder of Markdown."""

    sources: tuple[str, ...] = ()
    """The sources that its notes belong to."""
    guards_missing = True
    """Whether notes stay searchable and are reported when most files vanish at once, until the user drops them."""

    def wants(self, name: str) -> bool:
        """Whether files of this name are listed at all."""
        return name.lower().endswith(MARKDOWN)

    def unread(self, name: str) -> str | None:
        """Why files of this name are listed but not read; None if they are read."""
        return None

    def largest(self, name: str, limit: int) -> int:
        """The largest size in bytes; `limit` is the setting for notes."""
        return limit

    def limit_text(self, name: str, limit: int) -> str:
        """The same in words, with the name of the setting if raising that raises the limit."""
        largest = self.largest(name, limit)
        if self.largest(name, limit + 1) > largest:
            return f"the limit is {largest:,} (setting knowledge_max_note_bytes)"
        return f"the limit for such files is {largest:,}"

    def exclusions(self, origin: Origin) -> tuple[Mapping[str, Sequence[str]], Sequence[str]]:
        """Patterns to leave out, by the reason why, and the names of ignore files, the strongest last."""
        return {}, (IGNORE_FILE,)

    def path(self, origin: Origin, rest: str) -> str:
        """The path that a ref means by what follows the label."""
        return rest

    @abstractmethod
    def read(self, origin: Origin, path: str, data: bytes) -> Note:
        """Raises NotTextError, with the reason, for bytes without text."""


class VaultAdapter(SourceAdapter):
    """A vault: Markdown files, of the kinds that it has folders for."""

    sources = OWN_SOURCES

    def path(self, origin: Origin, rest: str) -> str:
        return path_of(rest) or rest

    def read(self, origin: Origin, path: str, data: bytes) -> Note:
        from co_cli.notes.note import read_note  # a search reads no note

        note = read_note(path, data)
        return dataclasses.replace(note, ref=f"{origin.tier}:{note.ref}") if origin.tier else note


class CheckpointAdapter(VaultAdapter):
    """The checkpoints of a vault: notes about conversations, beside their messages."""

    sources = (CHECKPOINT,)
    guards_missing = False

    def read(self, origin: Origin, path: str, data: bytes) -> Note:
        name = f"{CHECKPOINT}:{without_ending(path)}"
        return dataclasses.replace(super().read(origin, path, data), source=CHECKPOINT, ref=name)


THE_VAULT, THE_CHECKPOINTS = VaultAdapter(), CheckpointAdapter()
SOURCE_ADAPTERS = {
    "folder": ("co_cli.sources.folder", "FolderAdapter"),
    "obsidian": ("co_cli.sources.folder", "ObsidianAdapter"),
    "skill": ("co_cli.sources.skill_format", "SkillAdapter"),
}
"""The sources that can be added, with the modules and classes of their adapters. They import parsers."""
PICTURE_ADAPTER = ("co_cli.sources.folder", "PictureAdapter")


def adapter_of(origin: Origin) -> SourceAdapter:
    if origin.source in (VAULT, CHECKPOINT):
        return THE_VAULT if origin.source == VAULT else THE_CHECKPOINTS
    module, name = PICTURE_ADAPTER if origin.source == PICTURE else SOURCE_ADAPTERS[origin.source]
    return getattr(import_module(module), name)()


class Added(NamedTuple):
    """One table of `sources.toml`."""

    vault: str
    origin: Origin
    added: str = ""
    """When, as an ISO date."""
    read_only: bool = False
    """Whether `co edit` leaves its files alone."""


def registry_file(data_dir: str) -> str:
    return os.path.join(data_dir, REGISTRY)


def registry_version(data_dir: str) -> tuple[int, ...] | None:
    """Changes when a source is added or removed; None if none was added yet."""
    try:
        found = os.stat(registry_file(data_dir))
    except OSError:
        return None
    return found.st_dev, found.st_ino, found.st_mtime_ns


def added_sources(data_dir: str, vaults: Sequence[str]) -> list[Added]:
    """What was added to these vaults, in their order, without files that a vault before has added already."""
    found: list[Added] = []
    entries = [entry for entry in read_registry(data_dir) if entry.vault in vaults]
    for entry in sorted(entries, key=lambda entry: vaults.index(entry.vault)):
        before = [other.origin for other in found if other.vault != entry.vault]
        found += [] if any(entry.origin.is_in(other) for other in before) else [entry]
    return found


def read_registry(data_dir: str) -> list[Added]:
    """Raises SettingsError, with the file and the line, for a file that cannot be understood."""
    file = registry_file(data_dir)
    found: object = read_toml(file)[1].get("source", [])
    if not isinstance(found, list):
        raise SettingsError(f"{file}: a source is a table that begins with {TABLE}")
    return [_entry(table if isinstance(table, dict) else {}, file) for table in found]  # pyright: ignore[reportUnknownVariableType, reportUnknownArgumentType]


def change_registry(data_dir: str, change: Callable[[list[Added]], Sequence[Added]]) -> None:
    """Read, change and write the file under a lock."""
    make_folders(data_dir)
    file = registry_file(data_dir)
    with locked(data_dir):
        replace(file, _render(change(read_registry(data_dir))).encode(), private=True)


def _entry(table: dict[str, object], file: str) -> Added:
    values = {field: value for field in FIELDS if isinstance(value := table.get(field, ""), str)}
    source, name, path = values.get("source", ""), values.get("name", ""), values.get("path", "")
    lacking = [field for field in FIELDS[:4] if not values.get(field)]
    if lacking:
        problem = f"a source lacks {' and '.join(lacking)}; add it, or delete the table"
    elif source not in SOURCE_ADAPTERS:
        problem = f"this co-cli knows the sources {', '.join(SOURCE_ADAPTERS)}, not {source!r}: a newer one may"
    elif not os.path.isabs(path):
        problem = f"the path of a source must be absolute, not {path!r}"
    elif "/" in name or ":" in name:
        problem = f"the name of a source must be a word such as handbook, not {name!r}"
    else:
        origin = Origin(source, path, name, values.get("only", ""))
        return Added(values["vault"], origin, values.get("added", ""), table.get(READ_ONLY) is True)
    raise SettingsError(f"{file}: {problem}")


def _render(entries: Sequence[Added]) -> str:
    parts = [HEAD]
    for vault, origin, added, read_only in entries:
        values = (vault, origin.source, origin.name, origin.root, origin.only, added)
        lines = [
            f"{field} = {json.dumps(value, ensure_ascii=False)}".replace("\x7f", "\\u007f")  # TOML wants that
            for field, value in zip(FIELDS, values, strict=True)
            if value
        ]
        lines += [f"{READ_ONLY} = true"] if read_only else []
        parts.append("\n".join(("", TABLE, *lines, "")))
    return "".join(parts)
