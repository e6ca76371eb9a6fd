"""`co doctor`: look at everything that can go wrong, and name a cure for each finding.

With `fix` it applies the cures that cannot do harm: all of them concern what is derived from the files.
"""

from __future__ import annotations

import contextlib
import os
import shlex
from collections.abc import Callable, Iterable, Iterator, Sequence
from difflib import get_close_matches
from typing import TYPE_CHECKING, Literal, NamedTuple

from co_cli.errors import IndexDamagedError, IndexUnavailableError, KnowledgeError, VaultError
from co_cli.index.sqlite.engine import library_problems
from co_cli.index.sqlite.files import no_room, set_aside_before
from co_cli.index.verify import compare, lost_vectors
from co_cli.settings import SETTINGS
from co_cli.values import OWN_SOURCES, Filters

if TYPE_CHECKING:
    from co_cli.knowledge_base import KnowledgeBase
    from co_cli.knowledge_index import KnowledgeIndex

FIRST = 3
"""Names that are told of many."""

NOT_SETTINGS = {"CO_MCP_TOKEN", "CO_API_KEY", "CO_API_URL", "CO_BASE_URL"}
"""Variables that look like settings: the token of `co mcp --http`, and what Cohere's packages read."""

Level = Literal["ok", "warning", "error"]


class Finding(NamedTuple):
    """One thing looked at: how it is, and if it is not well, what helps."""

    check: str
    level: Level
    text: str
    cure: str = ""
    fixed: bool = False


def examine(kb: KnowledgeBase, fix: bool) -> list[Finding]:
    """Every check in turn; one that needs the index is left out when there is none."""
    findings: list[Finding] = []
    checks: tuple[Callable[[KnowledgeBase, bool], Iterator[Finding]], ...] = (
        _environment,
        _sqlite,
        _vault,
        _database,
        _freshness,
        _drift,
        _vectors,
        _unreadable,
        _odd,
        _secrets,
        _activity,
        _moved,
        _origins,
    )
    for check in checks:
        try:
            findings += check(kb, fix)
        except IndexDamagedError as error:
            fixed = fix and _rebuilt(kb)
            findings.append(Finding("index", "error", str(error), "co index sync", fixed))
        except IndexUnavailableError as error:
            fixed = fix and _rebuilt(kb)
            full = no_room(kb.engine.path, error.__cause__)
            place = "free some space" if full else "free or delete search.db; it comes back from the files"
            cure = "co index rebuild" if fixed else place
            findings.append(Finding("index", "error", str(error), cure, fixed))
            if not fixed:
                break
    return findings


def _rebuilt(kb: KnowledgeBase) -> bool:
    """A damaged search.db can be made anew; one that there is no place for cannot."""
    try:
        kb.rebuild()
    except IndexUnavailableError:
        return False
    return True


def _environment(kb: KnowledgeBase, fix: bool) -> Iterator[Finding]:
    known = [setting.environment for setting in SETTINGS]
    for variable in sorted(os.environ):
        if variable.startswith("CO_") and variable not in NOT_SETTINGS and variable not in known:
            [closest] = get_close_matches(variable, known, n=1, cutoff=0.0)
            text = f"{variable} is set, but no setting has this name; the closest is {closest}"
            yield Finding("environment", "warning", text, "rename or unset it; `co config show` lists all names")


def _sqlite(kb: KnowledgeBase, fix: bool) -> Iterator[Finding]:
    problems = library_problems()
    for name, text, cure in problems:
        yield Finding(name, "error" if name == "sqlite" else "warning", text, cure)
    if not problems:
        yield Finding("sqlite", "ok", "SQLite and sqlite-vec work")


def _vault(kb: KnowledgeBase, fix: bool) -> Iterator[Finding]:
    if not os.access(kb.root, os.R_OK | os.X_OK):
        yield Finding("vault", "error", f"{kb.root} cannot be read", f"chmod u+rx {kb.root}")
    elif not os.access(kb.root, os.W_OK):
        yield Finding(
            "vault", "warning", f"{kb.root} cannot be written: search works, remember does not", f"chmod u+w {kb.root}"
        )
    else:
        yield Finding("vault", "ok", f"{kb.root} can be read and written")
    if fix:
        swept = kb.store.sweep()
        if swept:
            yield Finding("temporary files", "warning", f"{len(swept)} left by killed writers", "removed", True)


def _database(kb: KnowledgeBase, fix: bool) -> Iterator[Finding]:
    counts, path = kb.index.counts(), kb.engine.path
    kept = set_aside_before(path)
    if kept:
        size = sum(os.path.getsize(one) for one in kept)
        text = f"search.db was unusable; it is kept as {', '.join(kept)} ({size:,} bytes)"
        yield Finding("index", "warning", text, "delete it when you like")
    problem = kb.engine.problem()
    if problem:
        if fix:
            kb.engine.discard(problem)
            kb.sync()
        yield Finding("index", "error", problem, "co doctor --fix", fix)
    else:
        yield Finding("index", "ok", f"{path} is sound (notes: {counts.notes:,}, passages: {counts.passages:,})")


def _freshness(kb: KnowledgeBase, fix: bool) -> Iterator[Finding]:
    waiting = kb.index.waiting()
    if waiting:
        if fix:
            kb.sync()
        yield Finding("freshness", "warning", f"files changed since the last sync: {waiting:,}", "co index sync", fix)
    else:
        yield Finding("freshness", "ok", "the index has seen every file")


def _drift(kb: KnowledgeBase, fix: bool) -> Iterator[Finding]:
    """Read every file: catches an edit that kept size, time and inode, and rows that somebody changed."""
    missing = kb.index.missing()
    if missing:
        text = f"{len(missing):,} notes are kept though their files are gone, such as {missing[0]}: is it mounted?"
        yield Finding("content", "warning", text, "bring them back, or co index sync --drop-missing")
    if kb.index.waiting():
        return  # files that changed differ anyway, and a sync comes first
    found = _differing(kb, kb.index)
    if found:
        if fix:
            kb.rebuild()
        yield Finding("content", "error", f"the index differs from the files: {found}", "co index rebuild", fix)
    else:
        yield Finding("content", "ok", "every indexed note has the content of its file")


def _differing(kb: KnowledgeBase, index: KnowledgeIndex) -> str:
    """Where an index differs from its files, the first places by name; empty if nowhere."""
    by_model = kb.settings.boundaries_model is not None
    found = compare(index, cut_by_model=by_model, vectors=False).differing
    more = f"; and {len(found) - FIRST:,} more" if len(found) > FIRST else ""
    return "; ".join(f"{one.path} {one.what}".strip() for one in found[:FIRST]) + more


def _vectors(kb: KnowledgeBase, fix: bool) -> Iterator[Finding]:
    """Every passage has a vector in the vault's space, or waits for one."""
    lost = lost_vectors(kb.index)
    if lost:
        if fix:
            kb.reembed()
        yield Finding("vectors", "error", f"{lost:,} passages have no vector", "co doctor --fix", fix)
    status = kb.status()
    if status.unembedded:
        where = "in the space that is being built" if status.building else "and are found by words"
        yield Finding(
            "vectors", "warning", f"{status.unembedded:,} passages wait for a vector {where}", "co index reembed"
        )
    if not lost and not status.unembedded:
        yield Finding("vectors", "ok", f"vectors: {status.space or 'none, search goes by words'}")


def _origins(kb: KnowledgeBase, fix: bool) -> Iterator[Finding]:
    """The same for what is read in place beside the vault, in a line each."""
    if kb.trouble_beside:
        cure = "mend that line, or move the file away and `co add` the folders again"
        yield Finding("sources", "error", f"only the vault is searched: {kb.trouble_beside}", cure)
    for origin in kb.index.beside:
        index = kb.index.of(origin)
        label = origin.label
        try:
            waiting = index.waiting()
        except VaultError as error:
            yield Finding(
                label, "warning", f"{label} is not there now: {error}", f"bring it back, or co source remove {label}"
            )
            continue
        if waiting and fix:
            index.sync()
        differing = "" if waiting and not fix else _differing(kb, index)
        lost = lost_vectors(index)
        if differing and fix:
            index.drop_all()
            index.sync()
        elif lost and fix:
            index.reembed()
        if waiting:
            yield Finding(
                label, "warning", f"{label}: files changed since the last sync: {waiting:,}", "co index sync", fix
            )
        if differing:
            text = f"{label}: the index differs from the files: {differing}"
            yield Finding(label, "error", text, "co doctor --fix", fix)
        if lost:
            yield Finding(label, "error", f"{label}: {lost:,} passages have no vector", "co doctor --fix", fix)
        missing = len(index.missing())
        if missing:
            cure = f"co source refresh {label} --drop-missing"
            yield Finding(
                label, "warning", f"{label}: notes that are kept though their files are gone: {missing:,}", cure
            )
        if not (waiting or differing or lost or missing):
            yield Finding(label, "ok", f"{label} is as the index has it (notes: {index.counts().notes:,})")


def _activity(kb: KnowledgeBase, fix: bool) -> Iterator[Finding]:
    """Nothing in it is needed to find a note, so nothing about it is an error."""
    from co_cli.service.usage import unsound

    problem = unsound(kb.settings.data_dir, fix)
    if problem:
        cure = "`co data restore` brings back what was backed up"
        if "newer co-cli" in problem:
            cure = "update co-cli, or move activity.db away: a new one is begun"
        yield Finding("activity", "warning", problem, cure)


def _moved(kb: KnowledgeBase, fix: bool) -> Iterator[Finding]:
    """Was this vault somewhere else before? Its history and its sources are kept under that place."""
    from co_cli.service.adopting import left_behind

    with contextlib.suppress(KnowledgeError):  # of activity.db or sources.toml: another check says so
        for one in left_behind(kb)[:1]:
            if 2 * one.alike >= one.documents > 0:
                text = (
                    f"{one.vault} is gone, and {one.alike:,} of its {one.documents:,} documents are here: was it moved?"
                )
                yield Finding("vault", "warning", text, f"co index move {shlex.quote(one.vault)}")


def _secrets(kb: KnowledgeBase, fix: bool) -> Iterator[Finding]:
    """Keys and passwords that came into the vault by an editor or before there was a check. Never shown whole."""
    from co_cli.notes.secrets import find_secrets

    def holding(paths: Iterable[str]) -> list[tuple[str, str]]:
        """Those that hold one, each with where it stands and what it is."""
        found: list[tuple[str, str]] = []
        for path in paths:
            with contextlib.suppress(KnowledgeError):  # it went, or cannot be read: another check says so
                first = find_secrets(kb.store.read(path).decode("utf-8", "replace"))[:1]
                found += [(path, f"{path}:{secret.line} holds {secret.what}") for secret in first]
        return found

    notes = holding(row.path for row in kb.index.docs(Filters(OWN_SOURCES), -1) if row.root == kb.root)
    if notes:
        more = f", and {len(notes) - 1:,} more notes hold one" if len(notes) > 1 else ""
        cure = "take it out and change it where it is used; `co note review --only secret` shows each"
        yield Finding("secrets", "warning", f"{notes[0][1]}{more}", cure)
    trashed = holding(kept for kept, _ in kb.store.trashed())
    if trashed:
        more = f", and {len(trashed) - 1:,} more files of the trash hold one" if len(trashed) > 1 else ""
        cure = f"delete {'each such file' if more else 'that file'}: rm {shlex.quote(kb.store.absolute(trashed[0][0]))}"
        yield Finding("secrets", "warning", f"{trashed[0][1]}{more}", cure)
    if not notes and not trashed:
        yield Finding("secrets", "ok", "no note holds a key, token or password that is known by its form")


def _odd(kb: KnowledgeBase, fix: bool) -> Iterator[Finding]:
    """What lies in the vault and is not read, however often somebody syncs."""
    found = kb.index.unread_entries()
    if found:
        cure = "put the file itself there, rename it, or leave it: nothing is lost, and nothing of it is searched"
        yield Finding("odd entries", "warning", odd_text(found), cure)


def odd_text(found: Sequence[tuple[str, str]]) -> str:
    """Of links, pipes, devices and the like: how many, and the first of them."""
    some = ", ".join(f"{path} ({reason.partition(',')[0].partition(';')[0]})" for path, reason in found[:FIRST])
    more = " ..." if len(found) > FIRST else ""
    what = "1 entry of the vault is" if len(found) == 1 else f"{len(found):,} entries of the vault are"
    return f"{what} not read: {some}{more}"


def _unreadable(kb: KnowledgeBase, fix: bool) -> Iterator[Finding]:
    skipped, problems = kb.index.reported()
    for path, reason in skipped:
        yield Finding("note", "warning", f"{path} is not indexed: {reason}", f"mend or exclude {path}")
    for path, problem in problems:
        yield Finding("note", "warning", f"{path}: {problem}", f"mend it: co edit {path}")
    if not skipped and not problems:
        yield Finding("notes", "ok", "every note can be read")
