"""`co index status` counts what is indexed; `co doctor` checks what can go wrong, and names a fix for each problem.

With `fix` it applies the fixes that cannot do harm. All of them concern data that is derived from the files.
"""

from __future__ import annotations

import contextlib
import os
import time
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Literal

from co_cli.activity.backup import FOLDER as BACKUPS
from co_cli.activity.statistics import count_turns
from co_cli.embedding.model_file import can_run
from co_cli.ground.errors import IndexDamagedError, IndexUnavailableError, KnowledgeError, VaultError
from co_cli.ground.paths import permission_cure, shell_line
from co_cli.ground.reports import BINARY, Progress, Waiting
from co_cli.ground.settings import SETTINGS
from co_cli.ground.summaries import Status
from co_cli.ground.values import DAY, moment_text
from co_cli.index.sqlite.database_files import no_room, set_aside_before, sweep_unfinished, unwritable
from co_cli.index.sqlite.sqlite_engine import library_problems
from co_cli.index.sync import Unreadable, read_file
from co_cli.knowledge_index import KnowledgeIndex
from co_cli.notes.files import sweep_temporary
from co_cli.notes.secrets import find_secrets
from co_cli.sources.documents.formats import INSTALL_PARSERS, NEEDS_EXTRA, NO_TEXT_SHOWN
from co_cli.sources.origin import Origin
from co_cli.sources.walk import UNREAD_FOLDER
from co_cli.upkeep.language_advice import advise, indexed_texts
from co_cli.upkeep.verification import compare
from co_cli.vault.lookup import Lookup
from co_cli.vault.tiers import tier_of
from co_cli.vault.vault import Vault, rebuild_index, sync_origin, waiting_vectors

UPDATE = "pip install -U co-cli"
SHOWN = 3
"""How many of many files a finding names."""
LATE_DAYS, MANY_LATE = 30, 0.05
"""Days, and the share of prompts without notes above which that is a warning."""
LONGEST_SHOWN = 100
"""Letters of a path."""
NOT_SETTINGS = {
    "CO_NO_HOOKS",
    "CO_MCP_TOKEN",
    "CO_TOKEN",
    "CO_OIDC_SECRET",
    "CO_WEBHOOK_SECRET",
    "CO_API_KEY",
    "CO_API_URL",
    "CO_BASE_URL",
}
"""Variables that look like settings: secrets of our servers and clients, and what Cohere's packages read."""


Report = tuple[str, str]
"""A file, and what is wrong with it."""
Level = Literal["ok", "warning", "error"]


def status_of(vault: Vault) -> Status:
    state, cache, waiting = vault.index.notes.state(), vault.index.notes.cache_state(), waiting_vectors(vault)
    semantic = vault.embedders.space is not None
    active, building = (state.active, state.building) if semantic else (None, None)
    skipped, problems = vault.index.notes.reported()
    trash = Counter(note.tier for note in Lookup(vault).trashed())
    counts = vault.index.notes.counts()
    return Status(
        vault=vault.root,
        search_db=vault.engine.path,
        search_db_bytes=vault.engine.size(),
        backend=vault.settings.knowledge_search_backend,
        notes={count.source: count.notes for count in counts},
        passages=state.passages,
        synced_at=moment_text(state.synced_at) if state.synced_at else None,
        skipped=skipped,
        problems=problems,
        trashed=trash.pop(None, 0),
        space=active.space.key if active else None,
        building=building.space.key if building else None,
        unembedded=waiting.passages,
        unembedded_seconds=waiting.seconds,
        cache_entries=cache.entries,
        cache_bytes=cache.bytes,
        cache_hit_rate=cache.hit_rate,
        trashed_in_tiers={str(tier): count for tier, count in trash.items()},
        tier=tier_of(vault.settings) if vault.sources.tiers else None,
        missing=sum(count.missing for count in counts),
        unread=tuple(vault.index.unread_entries()),
        unindexed=vault.engine.unindexed(),
        moved_aside=(*set_aside_before(vault.engine.path), *set_aside_before(vault.activity.database.path)),
        linked={origin.label: vault.index.of(origin).notes.state().notes for origin in vault.index.linked},
    )


@dataclass(frozen=True, slots=True)
class Finding:
    """The result of one check, with a fix if something is wrong."""

    check: str
    level: Level
    text: str
    fix: str = ""
    fixed: bool = False


def examine(vault: Vault, fix: bool, progress: Progress = lambda done, total: None) -> list[Finding]:
    """All findings. The checks stop at an index that can be neither opened nor rebuilt.

    `progress` is told about files: they are all read twice, which is what takes time.
    """
    checks: list[Callable[[], Iterator[Finding]]] = [
        _environment,
        _sqlite,
        lambda: _vault(vault, fix),
        lambda: _database(vault, fix),
        lambda: _authority(vault),
        lambda: _index(vault, vault.index.origin, fix, progress),
        lambda: _vectors(vault),
        lambda: _language(vault),
        lambda: _secrets(vault, progress),
        lambda: _activity(vault, fix),
        lambda: _linked_sources(vault, fix, progress),
    ]
    findings: list[Finding] = []
    for check in checks:
        try:
            findings += check()
        except IndexDamagedError as error:
            findings.append(Finding("index", "error", str(error), "co index sync", fix and _rebuilt(vault)))
        except IndexUnavailableError as error:
            if fix and _rebuilt(vault):
                findings.append(Finding("index", "error", str(error), "co index rebuild", True))
                continue
            if vault.settings.engine != "sqlite":
                what, newer, _ = str(error).partition(f": `{UPDATE}`")
                return [*findings, Finding("index", "error", what, UPDATE if newer else "co config show engine")]
            full = no_room(vault.engine.path, error.__cause__)
            advice = "delete search.db, or close what uses it; it is rebuilt from the files"
            if refused := unwritable(vault.engine.path):
                advice = refused[1]
            advice = "free some space" if full else advice
            return [*findings, Finding("index", "error", str(error), advice)]
    return findings


def _rebuilt(vault: Vault) -> bool:
    try:
        rebuild_index(vault)
    except IndexUnavailableError:
        return False
    return True


def _environment() -> Iterator[Finding]:
    known = [setting.environment for setting in SETTINGS]
    for variable in sorted(os.environ):
        if variable.startswith("CO_") and variable.removesuffix("_FILE") not in NOT_SETTINGS and variable not in known:
            [closest] = get_close_matches(variable, known, n=1, cutoff=0.0)
            text = f"{variable} is set, but no setting has this name; the closest is {closest}"
            yield Finding("environment", "warning", text, "rename or unset it; `co config show` lists all names")


def _sqlite() -> Iterator[Finding]:
    problems = library_problems()
    for name, text, advice in problems:
        yield Finding(name, "error" if name == "sqlite" else "warning", text, advice)
    if not problems:
        yield Finding("sqlite", "ok", "SQLite and sqlite-vec work")


def _vault(vault: Vault, fix: bool) -> Iterator[Finding]:
    root = vault.root
    if not os.access(root, os.R_OK | os.X_OK):
        yield Finding("vault", "error", f"{root} cannot be read", f"chmod u+rx {shell_line(root)}")
    elif not os.access(root, os.W_OK):
        text = f"{root} cannot be written: search works, remember does not"
        yield Finding("vault", "warning", text, f"chmod u+w {shell_line(root)}")
    else:
        yield Finding("vault", "ok", f"{root} can be read and written")
    swept: list[str] = []
    kept: list[str] = []
    if fix:
        data_dir = vault.settings.data_dir
        with vault.authority.lock() if vault.authority else contextlib.nullcontext():
            swept, kept = vault.store.sweep()
        swept += [*sweep_temporary(data_dir), *sweep_temporary(os.path.join(data_dir, BACKUPS))]
        sweep_unfinished(os.path.join(data_dir, "search.db"))
    if swept:
        done = f"removed; texts that are in no note: {', '.join(kept)}" if kept else "removed"
        yield Finding("temporary files", "warning", f"{len(swept)} left by processes that were killed", done, True)


def _database(vault: Vault, fix: bool) -> Iterator[Finding]:
    counts, path = vault.index.notes.state(), vault.engine.path
    yield from _moved_aside("index", path, "delete it when you like")
    if getattr(getattr(vault.engine, "database", None), "was_other", False):
        text = f"{path} was made by another version of co-cli, and is rebuilt; two versions rebuild it in turns"
        yield Finding("index", "ok", f"{text}: a CO_DATA_DIR for each prevents that")
    problem = vault.engine.problem()
    if problem:
        if fix:
            rebuild_index(vault)
        yield Finding("index", "error", problem, "co doctor --fix", fix)
    else:
        yield Finding("index", "ok", f"{path} is sound (notes: {counts.notes:,}, passages: {counts.passages:,})")
    if late := getattr(getattr(vault.engine, "replica", None), "problem", None):
        yield Finding("replica", "warning", late, "co config show engine_replica")


def _authority(vault: Vault) -> Iterator[Finding]:
    """Whether what is saved in a vault of several servers gets where it belongs."""
    for health in vault.authority.health() if vault.authority else ():
        yield Finding(health.about, "warning" if health.fix else "ok", health.text, health.fix)


def _linked_sources(vault: Vault, fix: bool, progress: Progress) -> Iterator[Finding]:
    if vault.sources.problem:
        advice = "correct that line, or move the file away and `co add` the folders again"
        yield Finding("sources", "error", f"only the vault is searched: {vault.sources.problem}", advice)
    for origin in vault.index.linked:
        try:
            yield from _index(vault, origin, fix, progress)
        except VaultError as error:
            advice = f"mount or restore it, or co source remove {origin.label}"
            yield Finding(origin.label, "warning", f"{origin.label} is not there now: {error}", advice)


def _index(vault: Vault, origin: Origin, fix: bool, progress: Progress) -> Iterator[Finding]:
    """Compare the index of the vault or of a linked source with its files, which are all read."""
    own = origin == vault.index.origin
    index = vault.index.of(origin)
    start = "" if own else f"{origin.label}: "

    def finding(check: str, level: Level, text: str, advice: str = "", fixed: bool = False) -> Finding:
        return Finding(check if own else origin.label, level, f"{start}{text}", advice, fixed)

    def full(path: str) -> str:
        return shell_line(os.path.join(index.root, path))

    waiting = index.waiting()
    if waiting:
        if fix:
            sync_origin(vault, origin)
        yield finding("freshness", "warning", f"files changed since the last sync: {waiting:,}", "co index sync", fix)
    elif own:
        yield finding("freshness", "ok", "the index has seen every file")
    missing = index.notes.missing()
    if missing:
        text = f"{len(missing):,} notes are kept though their files are gone, such as {missing[0]}: is it mounted?"
        command = "co index sync --drop-missing" if own else f"co source refresh {origin.label} --drop-missing"
        yield finding("content", "warning", text, f"mount or restore them, or {command}")
    differing = "" if waiting and not fix else _differences(vault, origin, progress)
    if fix and differing:
        if own:
            rebuild_index(vault)
        else:
            index.drop_all()
            index.sync()
    if differing:
        text = f"the index differs from the files: {differing}"
        yield finding("content", "error", text, "co index rebuild" if own else "co doctor --fix", fix)
    elif own and not waiting:
        yield finding("content", "ok", "every indexed note has the content of its file")
    unread = index.unread_entries()
    locked = [path for path, reason in unread if reason.startswith(UNREAD_FOLDER) and reason[-1] == "`"]  # with a cure
    unread = [entry for entry in unread if entry[0] not in locked]
    unreadable = [path for path in index.files() if not os.access(os.path.join(index.root, path), os.R_OK)] + locked
    for path in unreadable:
        advice = permission_cure(os.path.join(index.root, path))
        yield finding("note", "warning", f"{path} cannot be read: no permission", advice)
    skipped, problems = _changed_reports(index, unreadable) if waiting else index.notes.reported()
    skipped = [(path, reason) for path, reason in skipped if reason not in (BINARY, NO_TEXT_SHOWN) or own]
    for path, reason in skipped:
        advice = f"change or remove {path}" if own else f"change {full(path)}, or exclude it in a .coignore"
        advice = INSTALL_PARSERS if reason == NEEDS_EXTRA else advice
        yield finding("note", "warning", f"{path} is not indexed: {reason}", advice)
    for path, problem in problems:
        advice = f"co edit {shell_line(path)}" if own else f"edit {full(path)}"
        yield finding("note", "warning", f"{path}: {problem}", advice)
    if unread:
        advice = "replace it with the file itself, or rename it; nothing of it is searched"
        yield finding("unread entries", "warning", unread_text(unread), advice)
    if not own and not (waiting or missing or differing or unreadable or skipped or problems or unread):
        yield finding("", "ok", f"the index agrees with the files (notes: {index.notes.state().notes:,})")
    elif own and not unreadable and not skipped and not problems:
        yield finding("notes", "ok", "every note can be read")


def _changed_reports(index: KnowledgeIndex, unreadable: Collection[str]) -> tuple[list[Report], list[Report]]:
    """What a sync would report now. Changed files are read: the index knows only what was wrong with them before."""
    before, files = index.notes.reported(), index.files()
    skipped, problems = (dict[str, str | None](report) for report in before)
    known = index.notes.hashes()
    for path in files:
        try:
            file = read_file(index.origin, path, index.limit, known.get(path))
        except Unreadable as error:
            skipped[path] = None if path in unreadable else str(error)
            continue
        if file.note or file.skipped:  # else it is unchanged
            skipped[path], problems[path] = file.skipped, file.note.problem if file.note else None
    skipped, problems = ({path: report.get(path) for path in files} for report in (skipped, problems))
    return [(path, why) for path, why in skipped.items() if why], [(path, why) for path, why in problems.items() if why]


def _differences(vault: Vault, origin: Origin, progress: Progress) -> str:
    """The first differences between an index and its files; empty if there are none."""
    found = compare(vault.index.of(origin), progress, vault.settings.boundaries_model is not None).differing
    more = f"; and {len(found) - SHOWN:,} more" if len(found) > SHOWN else ""
    return "; ".join(f"{difference.path} {difference.what}".strip() for difference in found[:SHOWN]) + more


def unread_text(found: Sequence[tuple[str, str]]) -> str:
    """How many entries are not read, and the first of them: links, pipes, devices and the like."""
    some = ", ".join(f"{path} ({reason.partition(',')[0].partition(';')[0]})" for path, reason in found[:SHOWN])
    more = " ..." if len(found) > SHOWN else ""
    return f"{'1 entry is' if len(found) == 1 else f'{len(found):,} entries are'} not read: {some}{more}"


def _vectors(vault: Vault) -> Iterator[Finding]:
    """Ask the configured embedder: without it, no command can make the vectors that are missing."""
    if not can_run():
        text = "onnxruntime is not installed, which has no wheels for some platforms: search uses static vectors"
        yield Finding("models", "ok", f"{text} and does not read")
    status, chosen = status_of(vault), vault.embedders.space
    if problem := vault.embedders.problem():
        what, _, advice = problem.rpartition(": ")
        older = chosen is not None and status.space not in (None, chosen.key)
        instead = f"the older vectors of {status.space}" if older else "words only"
        yield Finding("vectors", "warning", f"{what}; until then search uses {instead}", advice)
    elif status.unembedded:
        waiting = Waiting(status.unembedded, status.unembedded_seconds)
        text = f"{waiting}: no vector of {chosen and chosen.provider} yet; until then search uses {status.space}"
        yield Finding("vectors", "warning", text, "co index sync")
    elif not status.unindexed:
        yield Finding("vectors", "ok", f"vectors: {status.space or 'none, search uses words only'}")
    if status.unindexed:
        yield Finding("vectors", "warning", status.unindexed, "co index sync")


def _language(vault: Vault) -> Iterator[Finding]:
    """Where the model in use does not know a language, only words find notes, which the user may not notice."""
    if advice := advise(indexed_texts(vault), vault.embedders):
        yield Finding("language", "warning", *advice)


def _activity(vault: Vault, fix: bool) -> Iterator[Finding]:
    """Search works without activity.db, so its problems are warnings."""
    database = vault.activity.database
    problem = database.check(fix)
    if problem:
        newer = "newer co-cli" in problem
        advice = f"{UPDATE}, or move activity.db away" if newer else "`co data restore` restores a backup"
        yield Finding("activity", "warning", problem, advice)
    else:
        yield from _late_prompts(vault)
    advice = "`co data restore` restores a backup; delete it when you no longer need it"
    yield from _moved_aside("activity", database.path, advice)


def _late_prompts(vault: Vault) -> Iterator[Finding]:
    """Prompts that went to a coding agent's model without notes, because its hook was too slow."""
    with vault.activity.written().reading() as connection:
        turns = count_turns(connection, vault.root, time.time() - LATE_DAYS * DAY)
    if turns.late:
        often = turns.late > MANY_LATE * turns.prompts
        text = f"in {LATE_DAYS} days, coding agents got no notes for {turns.late_text}"
        fix = "see below what a hook costs here; a busy machine makes it slow" if often else ""
        yield Finding("late prompts", "warning" if often else "ok", text, fix)


def _moved_aside(check: str, path: str, advice: str) -> Iterator[Finding]:
    kept = set_aside_before(path)
    if kept:
        size = sum(os.path.getsize(file) for file in kept)
        text = f"{os.path.basename(path)} was moved aside and is not used: {', '.join(kept)} ({size:,} bytes)"
        yield Finding(check, "warning", text, advice)


def _secrets(vault: Vault, progress: Progress) -> Iterator[Finding]:
    """Secrets that an editor put into notes, or that were saved before there was a check. Never shown in full."""

    unread: list[str] = []

    def with_secrets(paths: Sequence[str]) -> list[tuple[str, str]]:
        found: list[tuple[str, str]] = []
        for done, path in enumerate(paths):
            progress(done, len(paths))
            try:
                first = find_secrets(vault.store.read(path).decode("utf-8", "replace"))[:1]
            except KnowledgeError:
                unread.append(path)
                continue
            found += [(path, f"{path}:{secret.line} holds {secret.what}") for secret in first]
        return found

    notes = with_secrets(vault.index.files())  # not those of the index, which may be older
    trashed = with_secrets([trash for trash, _ in vault.store.trashed()])
    if notes:
        more = f", and {len(notes) - 1:,} more notes hold one" if len(notes) > 1 else ""
        advice = "remove it and change it where it is used; `co note review --only secret` shows each"
        yield Finding("secrets", "warning", f"{notes[0][1]}{more}", advice)
    if trashed:
        more = f", and {len(trashed) - 1:,} more files of the trash hold one" if len(trashed) > 1 else ""
        path = shell_line(vault.store.absolute(trashed[0][0]))
        advice = f"delete {'each such file' if more else 'that file'}: rm {path}"
        yield Finding("secrets", "warning", f"{trashed[0][1]}{more}", advice)
    if unread:
        some = ", ".join(unread[:SHOWN]) + (" ..." if len(unread) > SHOWN else "")
        text = f"not checked for secrets, because it cannot be read or is too large: {some}"
        yield Finding("secrets", "warning", text, "make it readable, or shorten or move it")
    if not (notes or trashed or unread):
        yield Finding("secrets", "ok", "no note holds a key, token or password of a known form")
