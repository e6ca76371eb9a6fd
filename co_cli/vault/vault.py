"""One opened vault: its folder, settings, files, index and activity log. Frozen, and built only here.

If its sources or tiers change while a process runs, `reopen_vault` makes another value; what is open stays open.
"""

from __future__ import annotations

import math
import os
import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

from co_cli.activity import Activity
from co_cli.activity.use_counts import use_counts
from co_cli.embedding.embedders import PASSAGES_A_SECOND, Embedders
from co_cli.embedding.model_file import can_run
from co_cli.embedding.reader import CrossEncoder
from co_cli.ground.errors import IndexUnavailableError, InvalidInputError, SettingsError, VaultError
from co_cli.ground.paths import project_of
from co_cli.ground.reports import Progress, SyncReport, Waiting, counting_passages
from co_cli.ground.settings import Settings, load_settings, this_process
from co_cli.ground.values import content_hash
from co_cli.index.authority import VaultAuthority
from co_cli.index.engine import Engine
from co_cli.index.engines import engine_of
from co_cli.index.indexed_notes import FEW, LastSeen, Tiers
from co_cli.knowledge_index import IndexSetup, KnowledgeIndex
from co_cli.notes.files import locked
from co_cli.notes.store import NoteStore
from co_cli.sources.documents.formats import can_read_pictures, is_unread_picture
from co_cli.sources.origin import IGNORE_FILE, PICTURE, VAULT, Origin, added_sources, registry_version
from co_cli.sources.walk import LARGEST_IGNORE_FILE, require_vault, scan_origin
from co_cli.vault.ranking import RankingSettings, configured
from co_cli.vault.tiers import is_own_vault, other_tiers, trusted_vaults

if TYPE_CHECKING:
    from co_cli.sources.passages import Boundaries

PATIENCE = 5.0
"""Seconds in which another process that makes vectors should have stored some."""
FEW_SECONDS = 0.3
"""How long a command may make vectors of a few new notes before its answer."""


@dataclass(frozen=True, slots=True)
class Opening:
    """Who opens a vault, and what for."""

    front_end: str = "python"
    """Recorded in the query log."""
    short_lived: bool = False
    """Whether the process ends soon, as a command does. Then activity is only written to a spool file."""
    boundaries: Boundaries | None = None
    """A model that proposes passage boundaries, if there is one."""
    on_set_aside: Callable[[str], None] | None = None
    """Called with a message when a damaged database was moved aside; None: it is logged."""
    home: str | None = None
    """The folder that stands for the user's home where skills are looked for; None: the user's."""
    record: bool = True
    """Whether changes are recorded in the history of notes."""


class LinkedSources(NamedTuple):
    """What is searched with a vault."""

    origins: tuple[Origin, ...]
    tiers: Tiers | None
    """None if there is no other tier."""
    vaults: tuple[str, ...]
    """This vault and your own, if that is searched with it: the ones whose added folders are searched."""
    problem: str | None
    """Why sources.toml, or the settings of a source, cannot be read; then it is not searched."""
    version: tuple[int, ...] | None
    """Of sources.toml, before it was read."""


@dataclass(frozen=True, slots=True)
class Vault:
    """A folder of notes that is open. Safe to share between threads."""

    root: str
    settings: Settings
    opening: Opening
    index: KnowledgeIndex
    store: NoteStore
    """The files."""
    activity: Activity
    """The log of searches, opened notes and versions (activity.db), created when there is something to write."""
    reader: CrossEncoder | None
    """The model that reads the first results, loaded when it is first used; None if the settings say so, or
    nothing can run it."""
    sources: LinkedSources
    settings_of: Callable[[str], Settings]
    """The settings of a folder that is searched with the vault. This vault's project has no say there. Raises
    SettingsError."""

    @property
    def engine(self) -> Engine:
        return self.index.engine

    @property
    def embedders(self) -> Embedders:
        return self.index.embedders

    @property
    def ranking(self) -> RankingSettings:
        """What decides about the order of results."""
        return RankingSettings(self.settings, self.root, self.embedders.space)

    @property
    def linked(self) -> Sequence[Origin]:
        """Other folders and vaults that are searched with this one."""
        return self.index.linked

    @property
    def authority(self) -> VaultAuthority | None:
        """Says what the files should be, where several servers share the vault; None: the files say so."""
        return self.index.setup.authority

    def require_room(self, has: int | None = None) -> None:
        """Raise InvalidInputError if the vault has as many notes as it may have. Called before a note is created.

        `has`: how many there are, if the caller has created some that are not indexed yet.
        """
        most = self.settings.most_notes
        with suppress(IndexUnavailableError):  # notes are written without it
            has = self.index.notes.state().notes if most and has is None else has or 0
            if most and has >= most:
                raise InvalidInputError(f"this vault has {has:,} notes, and may have {most:,}: forget some first")

    def working_index(self) -> KnowledgeIndex | None:
        """The index, or None if it cannot be opened: notes can be read and written without it."""
        return self.index if self.index.notes.works() else None

    def close(self) -> None:
        self.activity.close()
        self.engine.close()


def embedders_of(settings: Settings) -> Embedders:
    return Embedders(
        settings.knowledge_embedding_provider,
        settings.knowledge_embedding_model,
        settings.knowledge_embedding_host,
        settings.data_dir,
    )


def open_vault(settings: Settings, opening: Opening | None = None) -> Vault:
    """Open the vault of these settings. Raises VaultError if its folder does not exist."""
    opening = opening or Opening()
    root = require_vault(settings.vault)
    git_dir = os.path.join(root, ".git")
    repository = None
    if settings.engine != "sqlite" and os.path.isdir(git_dir):
        from co_cli.notes.git import Repository  # starts processes, which other vaults do without

        repository = Repository(root, {IGNORE_FILE: LARGEST_IGNORE_FILE}, GIT_DIR=git_dir)
    engine = engine_of(settings, {root: repository.name()} if repository else {}, opening.on_set_aside)
    activity = Activity(settings, root, opening.front_end, opening.short_lived, opening.on_set_aside)
    settings_of = partial(_settings_of, settings, root, {})
    sources = _linked_sources(settings, root, settings_of)
    embedders = embedders_of(settings)
    ranking = RankingSettings(settings, root, embedders.space)
    setup = IndexSetup(
        linked=sources.origins,
        tiers=sources.tiers,
        use_counts=partial(use_counts, settings.data_dir, settings.count_use == "on"),
        limits_of=partial(_limits_of, settings_of),
        configured=partial(configured, ranking),
        on_change=activity.indexed if opening.record else None,
        boundaries=opening.boundaries,
    )
    index = KnowledgeIndex(
        engine,
        Origin(VAULT, root),
        embedders=embedders,
        exclude=settings.knowledge_exclude,
        max_note_bytes=settings.knowledge_max_note_bytes,
        setup=setup,
        seen=LastSeen(),
    )
    limits = settings.knowledge_max_note_bytes, settings.secrets
    if repository:
        from co_cli.vault.team.team_vault import TeamVault  # PostgreSQL's packages are an extra

        team = TeamVault(index, repository)
        index, store = index.within(replace(setup, authority=team)), team.store(*limits)
    else:
        store = NoteStore(root, partial(_count_indexed, index), *limits)
    reader = CrossEncoder() if settings.knowledge_reader == "on" and can_run() else None
    return Vault(root, settings, opening, index, store, activity, reader, sources, settings_of)


def reopen_vault(vault: Vault) -> Vault:
    """The same vault with the sources and tiers that it has now. Another process may have added some."""
    sources = _linked_sources(vault.settings, vault.root, vault.settings_of)
    setup = replace(vault.index.setup, linked=sources.origins, tiers=sources.tiers)
    return replace(vault, index=vault.index.within(setup), sources=sources)


def lists_other_sources(vault: Vault) -> bool:
    """Whether sources.toml was written since the vault was opened."""
    return registry_version(vault.settings.data_dir) != vault.sources.version


def sync_vault(
    vault: Vault, progress: Progress | None = None, seconds: float | None = None, drop_missing: bool = False
) -> SyncReport:
    """Update the index from the files of the vault and of what is searched with it.

    `seconds` limits the time for vectors; `embed_vault` makes the others. If most of the vault is gone at once, as when
    its drive is not mounted, its notes are kept (`report.kept`) until the files are back; `drop_missing` removes them.
    """
    index = vault.index
    report = sync_origin(vault, index.origin, progress)
    if drop_missing:
        report = replace(report, removed=[*report.removed, *index.drop_missing()], kept=())
    linked: list[tuple[str, SyncReport]] = []
    for origin in vault.linked:
        try:
            linked.append((origin.label, sync_origin(vault, origin, progress)))
        except VaultError as error:  # not there now; its notes stay in the index
            index.seen.unread[origin] = [""] if os.path.lexists(origin.path) else []
            notes = index.of(origin).notes.state().notes
            linked.append((origin.label, SyncReport(unchanged=notes, skipped=[(origin.path, str(error))])))
    _forget_pictures(vault)
    if seconds != 0:
        embed_vault(vault, seconds, progress)
    return replace(report, linked=tuple(linked)) if linked else report


def sync_origin(vault: Vault, origin: Origin, progress: Progress | None = None) -> SyncReport:
    """Sync the vault alone, or one linked source, with the vectors of the static model. Others are made later.

    Raises VaultError if its folder does not exist.
    """
    index = vault.index.of(origin)
    if vault.authority and index is vault.index:  # every save indexes its change
        vault.authority.catch_up()
        state = index.notes.state()
        if state.synced_at is not None:
            index.embed_written()
            return SyncReport(unchanged=state.notes)
    return index.sync(progress=progress, seconds=0)


def waits_for_vectors(vault: Vault, more_than: int = 0) -> bool:
    """Whether something waits in the vault or in what is searched with it, or more than this many passages in one."""
    return any(vault.index.of(origin).waits(more_than) for origin in (vault.index.origin, *vault.linked))


def pictures_beside(settings: Settings, vaults: Sequence[str]) -> list[Origin]:
    """The pictures of these vaults, without those of a project that the user does not trust: it may be a clone.

    Servers that share a vault on PostgreSQL read none.
    """
    trusted = trusted_vaults(settings.data_dir)
    read = [root for root in vaults if settings.engine == "sqlite" and (not project_of(root) or root in trusted)]
    return [Origin(PICTURE, root, "own" if is_own_vault(root) else VAULT) for root in read]


def waits_for_pictures(vault: Vault) -> bool:
    """Whether there are pictures or scanned pages that nobody has read, and the extra that reads them."""
    if not can_read_pictures():
        return False
    reported = [vault.index.of(origin).notes.reported() for origin in vault.linked]
    return any(
        any(is_unread_picture(path, reason) for path, reason in skipped)
        or any(is_unread_picture(path, None, problem) for path, problem in problems)
        for skipped, problems in reported
    )


def _forget_pictures(vault: Vault) -> None:
    """Forget the text of a vault's pictures when the last of them is gone: they are not searched or synced any more."""
    for origin in pictures_beside(vault.settings, vault.sources.vaults) if can_read_pictures() else ():
        index = vault.index.of(origin)
        if origin not in vault.linked and index.notes.state().notes and not index.files():
            index.drop_all()


def read_pictures(vault: Vault) -> bool:
    """Read the text of pictures that wait. False if another process does so, or none waits."""
    if not waits_for_pictures(vault):
        return False
    with suppress(BlockingIOError), locked(_pictures_lock(vault.settings), wait=False):
        this_process.reads_pictures = True
        try:
            sync_vault(vault, seconds=0)
        finally:
            this_process.reads_pictures = False
        return True
    return False


def _pictures_lock(settings: Settings) -> str:
    return os.path.join(settings.data_dir, "pictures.lock")


def waiting_vectors(vault: Vault) -> Waiting:
    """What waits for a vector of the chosen model, in the vault and in what is searched with it."""
    space = vault.embedders.space
    count = sum(vault.index.of(origin).unembedded() for origin in (vault.index.origin, *vault.linked))
    rate = PASSAGES_A_SECOND.get(space.provider) if space else None
    return Waiting(count, count / rate if rate else None)


def embed_vault(vault: Vault, seconds: float | None = None, progress: Progress | None = None) -> bool:
    """Make vectors of what waits, for at most this long. Returns whether the time was too short.

    If another process does so already, leave it to that one; without a limit, wait until it has finished.
    """
    until = math.inf if seconds is None else time.monotonic() + seconds
    total = waiting_vectors(vault).passages if progress else 0

    def report(*_: int) -> None:
        if progress and total:
            counting_passages(progress)(max(0, total - waiting_vectors(vault).passages), total)

    report()
    with ExitStack() as stack:
        works = waits_for_vectors(vault) and _may_embed(vault, stack, seconds is None, report)
        origins = (vault.index.origin, *vault.linked)
        for origin in origins if works else ():
            index = vault.index.of(origin)
            if (left := until - time.monotonic()) > 0 and index.waits():
                index.embed_waiting(report, None if seconds is None else left, origins)
    if seconds is None and vault.engine.unindexed():  # what failed is tried again
        vault.engine.compact()
    return time.monotonic() >= until


def embed_few(vault: Vault) -> None:
    """Make the vectors of notes that were just edited, if those are all that wait: a search loads the model anyway."""
    with suppress(IndexUnavailableError):  # the search that follows says so
        if waits_for_vectors(vault) and not waits_for_vectors(vault, FEW):
            embed_vault(vault, FEW_SECONDS)


def _may_embed(vault: Vault, stack: ExitStack, patient: bool, report: Callable[[], None]) -> bool:
    """Whether it is this process that makes vectors. A patient one lets another finish, as long as that gets on."""
    left, wait = math.inf, PATIENCE if patient else 0.0
    while True:
        try:
            with ExitStack() as both:  # of this machine, and of those that share the store
                both.enter_context(locked(embedding_lock(vault.settings), wait=wait or False))
                both.enter_context(vault.engine.embedding(vault.index.origin, wait))
                stack.push(both.pop_all())
            return True
        except BlockingIOError:
            now = waiting_vectors(vault).passages
            if not patient or not now:
                return False
            if now >= left:  # it does not get on
                return True
            left = now
            report()
        except OSError:  # nothing can be written here
            return patient


def makes_vectors(settings: Settings) -> bool:
    """Whether a process makes vectors of what waits in this vault."""
    try:
        with locked(embedding_lock(settings), wait=False):
            return False
    except OSError:
        return True


def embedding_lock(settings: Settings) -> str:
    """Held by the process that makes vectors for this vault; those of other vaults do not wait for it."""
    place = os.path.realpath(settings.vault).encode(errors="surrogateescape")
    return os.path.join(settings.data_dir, f"embedding-{content_hash(place)[:8]}.lock")


def rebuild_index(vault: Vault, progress: Progress | None = None) -> SyncReport:
    """Build a new index from the files, and replace the old one when it is complete."""
    if vault.authority:
        vault.authority.repair()
    return vault.index.rebuild(progress)


def _linked_sources(settings: Settings, root: str, settings_of: Callable[[str], Settings]) -> LinkedSources:
    linked: list[Origin] = []
    tiers, problem, version = None, None, registry_version(settings.data_dir)
    if settings.team_vault or settings.set_by["vault"] == "project":  # else there are no tiers
        tiers, linked = other_tiers(settings, root)
    vaults = (root, *(origin.root for origin in linked if origin.tier == "user"))
    try:
        for entry in added_sources(settings.data_dir, vaults):
            label = entry.origin.label
            if any(label == origin.label for origin in linked):
                rule = "`co source remove` one of them, and add it again with another --name"
                problem = f"{entry.origin.path} is called {label}, as a source of this vault: {rule}"
            elif entry.origin.source != "skill":  # skills have a search of their own
                linked.append(entry.origin)
    except SettingsError as error:
        problem = str(error)
    linked += pictures_beside(settings, vaults) if can_read_pictures() else []
    found: list[Origin] = []
    for origin in linked:
        try:
            exclude = settings_of(origin.root).knowledge_exclude
            if origin.source != PICTURE or scan_origin(origin, exclude).notes:
                found.append(origin)
        except (SettingsError, VaultError) as error:
            problem = str(error)
    return LinkedSources(tuple(found), tiers, vaults, problem, version)


def _settings_of(settings: Settings, own: str, known: dict[str, Settings], root: str) -> Settings:
    """Those of the project that a folder is in, else the user's."""
    if root == own:
        return settings
    if root not in known:
        known[root] = load_settings({"vault": root, "data_dir": settings.data_dir})
    return known[root]


def _limits_of(settings_of: Callable[[str], Settings], origin: Origin) -> tuple[Sequence[str], int]:
    settings = settings_of(origin.root)
    return settings.knowledge_exclude, settings.knowledge_max_note_bytes


def _count_indexed(index: KnowledgeIndex) -> int:
    """How many notes the index has; 0 if it cannot be opened."""
    return index.notes.state().notes if index.notes.works() else 0
