"""Make folders and files searchable without copying them, sync them again, and remove them.

What is added is listed in `sources.toml` and indexed; its files are never changed. When most files of a source vanish
at once, as when its drive is not mounted, their notes stay searchable and are reported as missing until the user drops
them.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from fnmatch import fnmatch
from functools import partial
from itertools import count
from typing import Literal, NamedTuple

from co_cli.ground.errors import InvalidInputError, NoteConflictError, VaultError
from co_cli.ground.paths import is_inside, path_inside
from co_cli.ground.reports import BINARY, Progress, SyncReport
from co_cli.ground.saves import ON_CONFLICT
from co_cli.ground.values import OWN_SOURCES, moment_text
from co_cli.notes.refs import slugify
from co_cli.sources.documents.formats import can_read_pictures, is_unread_picture
from co_cli.sources.origin import PICTURE, SOURCE_ADAPTERS, Added, Origin, added_sources, change_registry, read_registry
from co_cli.vault.tiers import is_own_vault
from co_cli.vault.vault import Vault, pictures_beside

SourceOutcome = Literal["created", "updated", "unchanged", "skipped", "missing", "removed"]
Part = Callable[[str], bool]
Branch = dict[str, "Branch | str"]
MISSING = "missing"
SYSTEM = tuple(f"{os.sep}{name}" for name in ("proc", "sys", "dev"))
MEMORY_DISK = "/dev/shm"
"""Linux keeps files of programs there: it holds no devices."""


class SourceReceipt(NamedTuple):
    """The outcome for one origin."""

    label: str
    path: str
    outcome: SourceOutcome
    detail: str = ""
    report: SyncReport | None = None
    """None if it was not synced."""


class SourceState(NamedTuple):
    """One row of `co source list`."""

    source: str
    """`memory`, `article`, or `folder:handbook`."""
    path: str
    notes: int
    passages: int
    binary: int
    """Files that are listed only."""
    skipped: int
    """Files that could not be read as text."""
    missing: int
    """Notes whose file is gone."""
    synced_at: str | None
    there: bool
    vault: str = ""
    """The vault that it was added to."""


class Tree(NamedTuple):
    """The files of one source."""

    source: str
    path: str
    files: dict[str, str]
    """Each path, with `missing`, why it is not indexed, or nothing."""

    def skipped(self) -> dict[str, str]:
        """What is not indexed, with the reason."""
        return {path: reason for path, reason in self.files.items() if reason not in ("", MISSING)}

    def lines(self, depth: int | None = None) -> Iterator[str]:
        """The tree, drawn with lines."""
        root: Branch = {}
        for path, remark in self.files.items():
            *folders, name = path.rstrip("/").split("/")
            name += "/" if path.endswith("/") else ""
            branch = root
            for folder in folders:
                found = branch.setdefault(folder + "/", {})
                branch = found if isinstance(found, dict) else branch
            branch[name] = remark
        yield from _draw(root, "", depth)


class Origins:
    """The folders and files that were added to one vault, and those of your own where that is searched with it."""

    def __init__(self, vault: Vault, on_change: Callable[[], None] = lambda: None) -> None:
        """`on_change` is called when a source was added or removed: whoever searches has to open the vault again."""
        self._index, self._vault, self._data_dir = vault.index, vault.root, vault.settings.data_dir
        self._vaults, self._on_change, self._settings = vault.sources.vaults, on_change, vault.settings

    def all(self) -> list[Origin]:
        return [entry.origin for entry in self.entries()]

    def entries(self) -> list[Added]:
        """The same, with the vault that each belongs to."""
        return added_sources(self._data_dir, self._vaults)

    def orphaned(self) -> list[str]:
        """Vaults with sources that no longer exist: one of them may have been moved to this vault."""
        vaults = dict.fromkeys(entry.vault for entry in read_registry(self._data_dir))
        return [vault for vault in vaults if not os.path.isdir(vault)]

    def find(self, label: str) -> Origin:
        """By its label, its name alone, or its path."""
        real = os.path.realpath(os.path.expanduser(label))
        for origin in self.all():
            if label in (origin.label, origin.name) or origin.path == real:
                return origin
        names = ", ".join(origin.label for origin in self.all())
        known = f"the sources here are {names}" if names else "none was added yet: `co add PATH` adds one"
        raise InvalidInputError(f"there is no source {label!r}; {known}")

    def matching(self, name: str) -> dict[Origin, Part]:
        """The sources that a label, a name, the ref or path of a file or folder in them, or a glob means.

        Each comes with the part of it that is meant: a function that says whether a path is in it.
        """
        real = os.path.realpath(os.path.expanduser(name))
        found: dict[Origin, Part] = {}
        for origin in self.all():
            inside = self._path_in(origin, name, real)
            if inside is not None:
                found[origin] = partial(_is_at, inside)
            elif is_glob(name) and os.path.isdir(origin.root):
                part = partial(_matches, origin, (name, real))
                found |= {origin: part} if any(map(part, self._index.of(origin).files())) else {}
        return found

    def _path_in(self, origin: Origin, name: str, real: str) -> str | None:
        """The path in a source that a name means, "" for the source itself; None if it means nothing in it."""
        if name in (origin.label, origin.name) or real == origin.path:
            return ""
        if name.startswith(f"{origin.label}/"):
            return name[len(origin.label) + 1 :]
        if name.startswith(f"{origin.name}/"):  # as long as it is there, or was: the vault may have such a folder, too
            inside = name[len(origin.name) + 1 :]
            if os.path.lexists(os.path.join(origin.root, inside)) or self._index.of(origin).notes.ref_of(inside):
                return inside
        return path_inside(real, origin.root) if is_inside(real, origin.path) and os.path.exists(real) else None

    def add(
        self,
        path: str,
        source: str | None = None,
        name: str | None = None,
        on_conflict: str = "skip",
        progress: Progress | None = None,
        read_only: bool = False,
    ) -> SourceReceipt:
        """Make a folder or a file searchable. If it was added before, sync it, read it from scratch, or refuse.

        `read_only` marks it so that `co edit` leaves its files alone, too.
        """
        if on_conflict not in ON_CONFLICT:
            raise InvalidInputError(f"on_conflict must be one of {', '.join(ON_CONFLICT)}, not {on_conflict!r}")
        root, only = _place(os.fspath(path))
        is_obsidian = not only and os.path.isdir(os.path.join(root, ".obsidian"))
        origin = Origin(source or ("obsidian" if is_obsidian else "folder"), root, "", only)
        if origin.source not in SOURCE_ADAPTERS:
            raise InvalidInputError(f"the source must be one of {', '.join(SOURCE_ADAPTERS)}, not {origin.source!r}")
        known: list[Origin] = []
        made: list[Origin] = []

        def put(entries: list[Added]) -> Sequence[Added]:
            """Under the lock, so that two processes that add the same folder add it once."""
            mine = [entry.origin for entry in entries if entry.vault == self._vault]
            known.extend(known_origin for known_origin in mine if known_origin._replace(name="") == origin)
            if known:
                mark = {"read_only": True} if read_only else {}
                return [
                    entry._replace(**mark) if (entry.vault, entry.origin) == (self._vault, known[0]) else entry
                    for entry in entries
                ]
            self._refuse_overlap(origin, mine)
            # a source of your own vault is searched with every other vault, so its name must be free in all of them
            beside = entries if is_own_vault(self._vault) else self.entries()
            made.append(origin._replace(name=_name(name, origin, {entry.origin.name for entry in beside})))
            return [*entries, Added(self._vault, made[0], moment_text(time.time()), read_only)]

        try:
            change_registry(self._data_dir, put)
            if known:
                return self._add_again(known[0], name, on_conflict, progress)
            report = self._index.of(made[0]).sync(progress=progress, seconds=0)
            if only and report.skipped:
                raise InvalidInputError(f"{origin.path}: {report.skipped[0][1]}")
        except Exception:  # not after Ctrl-C: what was indexed stays, and the next sync goes on
            if made and made[0] in self.all():
                self.remove(made[0].label)
            raise
        self._on_change()
        return SourceReceipt(made[0].label, origin.path, "created", _summary(report), report)

    def refresh(self, label: str, drop_missing: bool = False, progress: Progress | None = None) -> SourceReceipt:
        """Sync an origin; only changed files are read. `drop_missing` removes notes whose file is gone."""
        origin = self.find(label)
        index = self._index.of(origin)
        try:
            report = index.sync(progress=progress, seconds=0)
        except VaultError as error:
            return SourceReceipt(origin.label, origin.path, "missing", str(error))
        dropped = index.drop_missing() if drop_missing else []
        report = replace(report, kept=tuple(index.notes.missing()))  # also those that earlier syncs kept
        detail = _summary(report) + (f", {len(dropped):,} dropped" if dropped else "")
        outcome: SourceOutcome = "updated" if report.touched or dropped else "unchanged"
        return SourceReceipt(origin.label, origin.path, outcome, detail, report)

    def remove(self, label: str) -> SourceReceipt:
        """Remove an origin from the list and from the index. Its files are left alone."""
        origin = self.find(label)
        vault = next(entry.vault for entry in self.entries() if entry.origin == origin)

        def take(entries: list[Added]) -> Sequence[Added]:
            return [entry for entry in entries if (entry.vault, entry.origin) != (vault, origin)]

        change_registry(self._data_dir, take)
        shared = any(entry.origin == origin for entry in read_registry(self._data_dir))
        removed = 0 if shared else self._index.of(origin).drop_all()
        self._on_change()
        notes = "1 note" if removed == 1 else f"{removed:,} notes"
        own = "" if vault == self._vault else "; it was a source of your own vault"
        return SourceReceipt(origin.label, origin.path, "removed", f"{notes} removed from the index; files stay{own}")

    def states(self) -> list[SourceState]:
        """The vault's own sources, and every origin."""
        synced = _moment(self._index.notes.state().synced_at)
        skipped = len(self._index.notes.reported()[0]) + len(self._index.odd())
        rows = [
            SourceState(
                counted.source, self._vault, counted.notes, counted.passages, 0, 0, counted.missing, synced, True
            )
            for counted in self._index.notes.counts()
        ]
        if rows:
            rows[0] = rows[0]._replace(skipped=skipped)
        tiers = [origin for origin in self._index.linked if origin.tier or origin.source == PICTURE]
        added = [self._state(entry.origin)._replace(vault=entry.vault) for entry in self.entries()]
        return [*rows, *map(self._state, tiers), *added]

    def trees(self, source: str | None = None) -> list[Tree]:
        """The files of the vault and of every source, or of one of them: `vault`, a tier, a label or a name."""
        tiers = [origin for origin in self._index.linked if origin.tier]
        if source in ("vault", *OWN_SOURCES):
            origins = [self._index.origin]
        elif source is None:
            origins = [self._index.origin, *tiers, *self.all()]
        else:
            origins = [origin for origin in tiers if origin.tier == source] or [self.find(source)]
        found: list[Tree] = []
        pictures = pictures_beside(self._settings, self._vaults)
        for origin in origins:
            files = dict(self._index.of(origin).listed())
            for beside in (picture for picture in pictures if picture.root == origin.root):
                index = self._index.of(beside)
                files |= dict.fromkeys(index.files(), BINARY)
                files |= dict(index.listed() if beside in self._index.linked else ())
            label = "vault" if origin == self._index.origin else origin.label
            found.append(Tree(label, origin.path, dict(sorted(files.items()))))
        return found

    def _state(self, origin: Origin) -> SourceState:
        index = self._index.of(origin)
        counts, reported = index.notes.state(), [*index.notes.reported()[0], *index.odd()]
        binary = sum(reason == BINARY for _, reason in reported)
        return SourceState(
            origin.label,
            origin.path,
            counts.notes,
            counts.passages,
            binary,
            len(reported) - binary,
            sum(counted.missing for counted in index.notes.counts()),
            _moment(counts.synced_at),
            os.path.isfile(origin.path) if origin.only else os.path.isdir(origin.path),
        )

    def _add_again(
        self, origin: Origin, name: str | None, on_conflict: str, progress: Progress | None
    ) -> SourceReceipt:
        label, path = origin.label, origin.path
        if name not in (None, origin.name):
            raise InvalidInputError(f"{path} is {label} already: `co source remove {label}` first, to call it {name!r}")
        if on_conflict == "error":
            raise NoteConflictError(f"{path} is a source already: `co source refresh {label}` reads it again")
        if on_conflict == "overwrite":
            self._index.of(origin).drop_all()
        report = self._index.of(origin).sync(progress=progress, seconds=0)
        if on_conflict == "overwrite":
            return SourceReceipt(label, path, "updated", f"read again: {_summary(report)}", report)
        outcome: SourceOutcome = "updated" if report.touched else "skipped"
        detail = f"a source already; {_summary(report) if report.touched else 'nothing changed there'}"
        return SourceReceipt(label, path, outcome, detail, report)

    def _refuse_overlap(self, origin: Origin, others: Sequence[Origin]) -> None:
        """No text may be found twice, and what holds no documents is not read."""
        path = origin.path
        of_system = any(is_inside(origin.root, folder) for folder in SYSTEM) and not is_inside(path, MEMORY_DISK)
        if os.path.dirname(origin.root) == origin.root or of_system:
            raise InvalidInputError(f"{path} belongs to the system: name the folders in it that hold your texts")
        if is_inside(path, os.path.realpath(self._data_dir)):
            raise InvalidInputError(f"{path} is where co-cli keeps its own files: there is nothing to search")
        if is_inside(path, self._vault):
            rule = "its Markdown files are searched already; move other files out of the vault to add them"
            raise InvalidInputError(f"{path} is in the vault {self._vault}: {rule}")
        for other in (added for added in self.all() if added not in others and origin.is_in(added)):
            raise InvalidInputError(f"{path} is in {other.label} of your own vault, and so it is searched already")
        for other in others:
            if is_inside(path, other.path):
                raise InvalidInputError(f"{path} is in {other.label}, and so it is searched already")
            if is_inside(other.path, path):
                raise InvalidInputError(
                    f"{path} holds {other.label}, whose notes would be found twice: "
                    f"`co source remove {other.label}` first"
                )


def _is_at(place: str, path: str) -> bool:
    """Whether a path is this file or folder, or is in it. A ref leaves out the ending of a note."""
    return not place or path == place or path.startswith((f"{place.rstrip('/')}/", f"{place}."))


def _matches(origin: Origin, globs: Sequence[str], path: str) -> bool:
    return any(
        fnmatch(spelling, glob)
        for spelling in (path, f"{origin.label}/{path}", f"{origin.root}/{path}")
        for glob in globs
    )


def is_glob(name: str) -> bool:
    return any(letter in name for letter in "*?[")


def _draw(branch: Branch, indent: str, depth: int | None) -> Iterator[str]:
    for number, (name, inside) in enumerate(branch.items()):
        last = number == len(branch) - 1
        mark, below = ("└─ ", "   ") if last else ("├─ ", "│  ")
        if isinstance(inside, str):
            yield f"{indent}{mark}{name}" + (f"  ({inside})" if inside else "")
        elif depth == 1:
            yield f"{indent}{mark}{name}  ({_count(inside):,} files)"
        else:
            yield f"{indent}{mark}{name}"
            yield from _draw(inside, indent + below, None if depth is None else depth - 1)


def _count(branch: Branch) -> int:
    return sum(1 if isinstance(inside, str) else _count(inside) for inside in branch.values())


def _place(path: str) -> tuple[str, str]:
    """The folder, and the file in it if a file was named."""
    real = os.path.realpath(os.path.expanduser(path))
    folder, name = os.path.split(real)
    try:
        real.encode()
    except UnicodeEncodeError:
        raise InvalidInputError(f"the path is not valid UTF-8, rename it: {path!r}") from None
    if os.path.isdir(real):
        return real, ""
    if not os.path.exists(real):
        raise InvalidInputError(f"{path}: there is no such file or folder")
    if not os.path.isfile(real):
        raise InvalidInputError(f"{path}: neither a file nor a folder")
    if name.startswith("."):
        raise InvalidInputError(f"{path}: hidden files are not read")
    return folder, name


def _name(wanted: str | None, origin: Origin, taken: set[str]) -> str:
    if wanted is not None:
        if slugify(wanted) != wanted:
            raise InvalidInputError(f"a name is lower case with hyphens, such as {slugify(wanted)!r}, not {wanted!r}")
        if wanted in taken:
            raise InvalidInputError(f"another source is called {wanted!r} already: choose another --name")
        return wanted
    stem = slugify(os.path.splitext(origin.only)[0] or os.path.basename(origin.root)) or "source"
    return stem if stem not in taken else next(name for n in count(2) if (name := f"{stem}-{n}") not in taken)


def _moment(seconds: float | None) -> str | None:
    return moment_text(seconds) if seconds else None


def _summary(report: SyncReport) -> str:
    unread = [path for path, reason in report.skipped if reason == BINARY]
    pictures = sum(is_unread_picture(path, BINARY) for path in unread) if can_read_pictures() else 0
    counts = {
        "new": len(report.added),
        "changed": len(report.changed),
        "moved": len(report.moved),
        "removed": len(report.gone),
        "missing": len(report.kept),
        "left out": len(report.excluded),
        "unchanged": report.unchanged,
        "picture" if pictures == 1 else "pictures": pictures,
        "binary": len(unread) - pictures,
        "skipped": len(report.skipped) - len(unread),
    }
    return ", ".join(f"{number:,} {word}" for word, number in counts.items() if number) or "no texts there"
