"""Make folders and files searchable in place, see what became of them, and take them out again.

What is added is listed in `sources.toml` and indexed; its files are never touched and never copied. A file that is gone
from its origin stays findable, is reported as missing, and is dropped when somebody says so.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Sequence
from typing import Literal, NamedTuple

from co_cli.errors import InvalidInputError, NoteConflictError, VaultError
from co_cli.knowledge_index import KnowledgeIndex
from co_cli.notes.refs import slugify
from co_cli.sources.origin import KINDS, VAULT, Added, Origin, change_registry, read_registry
from co_cli.values import BINARY, ON_CONFLICT, SyncReport, moment_text

AddedOutcome = Literal["created", "updated", "unchanged", "skipped", "missing", "removed"]
Progress = Callable[[int, int], None]
SYSTEM = (os.sep, *(f"{os.sep}{name}" for name in ("proc", "sys", "dev")))
"""Folders that hold everything, or no files at all."""


class SourceReceipt(NamedTuple):
    """What became of one origin."""

    label: str
    path: str
    outcome: AddedOutcome
    detail: str = ""
    report: SyncReport | None = None
    """What was seen in it; None if nobody looked."""


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


def told_apart(report: SyncReport, root: str) -> SyncReport:
    """What a sync removed, with those named that a pattern leaves out now: their files are not missing."""
    there = tuple(path for path in report.removed if os.path.lexists(os.path.join(root, *path.split("/"))))
    return report.replaced(excluded=there) if there else report


class Origins:
    """The origins beside one vault."""

    def __init__(self, data_dir: str, index: KnowledgeIndex) -> None:
        self._data_dir, self._index = data_dir, index
        self._vault = index.root

    def entries(self) -> list[Added]:
        return [entry for entry in read_registry(self._data_dir) if entry.vault == self._vault]

    def orphaned(self) -> list[str]:
        """Vaults that are gone, and had sources beside them: one of them may be this vault, which was moved."""
        vaults = dict.fromkeys(entry.vault for entry in read_registry(self._data_dir))
        return [vault for vault in vaults if not os.path.isdir(vault)]

    def add(
        self,
        path: str,
        kind: str | None = None,
        name: str | None = None,
        on_conflict: str = "skip",
        progress: Progress | None = None,
    ) -> SourceReceipt:
        """Make a folder or a file searchable where it lies. One that is known already is skipped, read again or an
        error.
        """
        if on_conflict not in ON_CONFLICT:
            raise InvalidInputError(f"on_conflict is one of {', '.join(ON_CONFLICT)}, not {on_conflict!r}")
        root, only = _place(path)
        origin = Origin(kind or _likely_kind(root, only), root, "", only)
        if origin.kind not in KINDS or origin.kind == VAULT:
            raise InvalidInputError(f"a source is a folder, obsidian or skill, not {origin.kind!r}")
        known: list[Origin] = []
        made: list[Origin] = []

        def put(entries: list[Added]) -> Sequence[Added]:
            """With nobody in between: two who add the same folder at once add it once."""
            mine = [entry.origin for entry in entries if entry.vault == self._vault]
            known.extend(one for one in mine if one._replace(name="") == origin)
            if known:
                return entries
            self._refuse_overlap(origin, mine)
            made.append(origin._replace(name=_name(name, origin, {one.name for one in mine})))
            return [*entries, Added(self._vault, made[0], moment_text(time.time()))]

        try:
            change_registry(self._data_dir, put)
            if known:
                return self._add_again(known[0], name, on_conflict, progress)
            report = self._index.of(made[0]).sync(progress=progress)
        except BaseException:  # Ctrl-C too: who stops it does not want it, or not now
            if made and any(entry.origin == made[0] for entry in self.entries()):
                self.remove(made[0].label)
            raise
        return SourceReceipt(made[0].label, origin.path, "created", _summary(report), report)

    def refresh(
        self, labels: Sequence[str] | None = None, drop_missing: bool = False, progress: Progress | None = None
    ) -> list[SourceReceipt]:
        """Look at these origins again, or at all; only what changed is read. `drop_missing` forgets what is gone."""
        wanted = (
            [self.find(label) for label in labels] if labels is not None else [one.origin for one in self.entries()]
        )
        receipts: list[SourceReceipt] = []
        for origin in wanted:
            index = self._index.of(origin)
            try:
                report = told_apart(index.sync(progress=progress), origin.root)
            except VaultError as error:
                receipts.append(SourceReceipt(origin.label, origin.path, "missing", str(error)))
                continue
            dropped = index.drop_missing() if drop_missing else []
            outcome: AddedOutcome = "updated" if report.touched or dropped else "unchanged"
            detail = _summary(report, len(index.missing())) + (f", {len(dropped):,} dropped" if dropped else "")
            receipts.append(SourceReceipt(origin.label, origin.path, outcome, detail, report))
        return receipts

    def remove(self, label: str) -> SourceReceipt:
        """Take an origin out of the list and of the index. Its files are left alone."""
        origin = self.find(label)

        def take(entries: list[Added]) -> Sequence[Added]:
            return [entry for entry in entries if (entry.vault, entry.origin) != (self._vault, origin)]

        change_registry(self._data_dir, take)
        others = any(entry.origin == origin for entry in read_registry(self._data_dir))
        count = 0 if others else self._index.of(origin).drop_all()
        return SourceReceipt(
            origin.label, origin.path, "removed", f"{_notes(count)} out of the index; the files are untouched"
        )

    def find(self, label: str) -> Origin:
        """By its label, its name alone, or its path."""
        origins = [entry.origin for entry in self.entries()]
        real = os.path.realpath(os.path.expanduser(label))
        for origin in origins:
            if label in (origin.label, origin.name) or origin.path == real:
                return origin
        names = ", ".join(origin.label for origin in origins)
        known = f"those here are {names}" if names else "none was added yet: `co add PATH` adds one"
        raise InvalidInputError(f"there is no source {label!r}; {known}")

    def states(self) -> list[SourceState]:
        """The vault's own sources and every origin, for people to look at."""
        rows: list[SourceState] = []
        own, counts = self._index.by_source(), self._index.counts()
        synced = moment_text(counts.synced_at) if counts.synced_at else None
        skipped = len(self._index.reported()[0]) + len(self._index.odd())
        with self._index.engine.reading() as reader:
            vault = reader.vault(self._index.origin)
            counted = reader.count_sources(vault) if vault is not None else {}
            pages = self._index.field_values("source_url")
            parts = sum(one.path in pages for one in reader.passages_of(vault)) if pages and vault is not None else 0
        for number, (source, notes) in enumerate(own.items()):
            left_out = skipped if number == 0 else 0
            rows.append(SourceState(source, self._vault, notes, counted[source].passages, 0, left_out, 0, synced, True))
        if pages:  # they are articles, and counted there too
            rows.append(SourceState("url", self._vault, len(pages), parts, 0, 0, 0, synced, True))
        tiers = [origin for origin in self._index.beside if origin.tier]
        for origin in [*tiers, *(entry.origin for entry in self.entries())]:
            index = self._index.of(origin)
            counts, reported = index.counts(), [*index.reported()[0], *index.odd()]
            binary = sum(reason == BINARY for _, reason in reported)
            rows.append(
                SourceState(
                    origin.label,
                    origin.path,
                    counts.notes,
                    counts.passages,
                    binary,
                    len(reported) - binary,
                    len(index.missing()),
                    moment_text(counts.synced_at) if counts.synced_at else None,
                    os.path.isfile(origin.path) if origin.only else os.path.isdir(origin.path),
                )
            )
        return rows

    def _add_again(
        self, origin: Origin, name: str | None, on_conflict: str, progress: Progress | None
    ) -> SourceReceipt:
        if name not in (None, origin.name):
            raise InvalidInputError(
                f"{origin.path} is {origin.label} already: `co source remove {origin.label}` first, to call it {name!r}"
            )
        if on_conflict == "error":
            raise NoteConflictError(
                f"{origin.path} is a source already: `co source refresh {origin.label}` reads it again"
            )
        if on_conflict == "overwrite":
            self._index.of(origin).drop_all()
        report = told_apart(self._index.of(origin).sync(progress=progress), origin.root)
        if on_conflict == "overwrite":
            return SourceReceipt(origin.label, origin.path, "updated", f"read anew: {_summary(report)}", report)
        outcome: AddedOutcome = "updated" if report.touched else "skipped"
        detail = f"a source already; {_summary(report) if report.touched else 'nothing changed there'}"
        return SourceReceipt(origin.label, origin.path, outcome, detail, report)

    def _refuse_overlap(self, origin: Origin, others: Sequence[Origin]) -> None:
        """A text must not be found twice; and what is no document must not be read at all."""
        if origin.root in SYSTEM or origin.root.startswith(tuple(f"{root}{os.sep}" for root in SYSTEM[1:])):
            raise InvalidInputError(f"{origin.path} is the system's: name the folders in it that hold your texts")
        if _inside(origin.path, os.path.realpath(self._data_dir)):
            raise InvalidInputError(f"{origin.path} is where co-cli keeps its own files: there is nothing to search")
        if _inside(origin.path, self._vault):
            raise InvalidInputError(f"{origin.path} is in the vault {self._vault}, and so it is searched already")
        for other in others:
            if _inside(origin.path, other.path):
                raise InvalidInputError(f"{origin.path} is in {other.label}, and so it is searched already")
            if _inside(other.path, origin.path):
                raise InvalidInputError(
                    f"{origin.path} holds {other.label}, whose notes would be found twice: "
                    f"`co source remove {other.label}` first"
                )


def _place(path: str) -> tuple[str, str]:
    """The folder, and the file in it if that is what was named."""
    real = os.path.realpath(os.path.expanduser(path))
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
    folder, name = os.path.split(real)
    if name.startswith("."):
        raise InvalidInputError(f"{path}: hidden files are not read")
    return folder, name


def _likely_kind(root: str, only: str) -> str:
    return "obsidian" if not only and os.path.isdir(os.path.join(root, ".obsidian")) else "folder"


def _name(wanted: str | None, origin: Origin, taken: set[str]) -> str:
    if wanted is not None:
        if slugify(wanted) != wanted:
            raise InvalidInputError(f"a name is written as in {slugify(wanted)!r}, not {wanted!r}")
        if wanted in taken:
            raise InvalidInputError(f"another source is called {wanted!r} already")
        return wanted
    stem = slugify(os.path.splitext(origin.only)[0] or os.path.basename(origin.root)) or "source"
    return next(
        name for name in (stem, *(f"{stem}-{number}" for number in range(2, len(taken) + 3))) if name not in taken
    )


def _notes(count: int) -> str:
    return "1 note is" if count == 1 else f"{count:,} notes are"


def _inside(path: str, folder: str) -> bool:
    return path == folder or path.startswith(folder.rstrip(os.sep) + os.sep)


def _summary(report: SyncReport, missing: int = 0) -> str:
    """`missing` are all that are gone, those of earlier times too."""
    binary = sum(reason == BINARY for _, reason in report.skipped)
    counts = (
        (len(report.added), "new"),
        (len(report.changed), "changed"),
        (len(report.moved), "moved"),
        (max(missing, len(report.gone)), "missing"),
        (len(report.excluded), "left out"),
        (report.unchanged, "unchanged"),
        (binary, "binary"),
        (len(report.skipped) - binary, "skipped"),
    )
    return ", ".join(f"{count:,} {word}" for count, word in counts if count) or "no texts there"
