"""Bring an export into the vault: first decide about everything, then, if that is wanted, write it.

The first pass writes nothing; it is the dry run, and it finds every conflict before the first file is touched. Two
imports into one vault run one after the other, so that the second sees what the first one wrote.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

from co_cli.errors import IndexUnavailableError, InvalidInputError
from co_cli.exchange.archive import Export, open_export
from co_cli.exchange.chatgpt import read_chatgpt
from co_cli.exchange.claude import read_claude
from co_cli.exchange.folders import read_basic_memory, read_obsidian
from co_cli.exchange.items import Entry, Remark, Trouble
from co_cli.exchange.mem0 import read_mem0
from co_cli.exchange.own_lines import read_own
from co_cli.exchange.writing import Receipt, Writer
from co_cli.knowledge_base import KnowledgeBase
from co_cli.notes.files import locked
from co_cli.values import ON_CONFLICT, masked_text

Progress = Callable[[int, int], None]
Stages = Callable[[str], Progress]
"""Gives each stage of the work, by its verb, somebody to tell how far it is."""

EMBEDDING_SECONDS = 5.0
"""How long a slow embedder is waited for; `co sync` finishes the work."""
WRITTEN = ("created", "updated")
TRUSTABLE = ("obsidian", "basic-memory", "co")
"""Formats whose files may be the person's own words, if the person says so."""
READERS: dict[str, Callable[[Export, int], Iterator[Entry]]] = {
    "obsidian": read_obsidian,
    "basic-memory": read_basic_memory,
    "mem0": lambda export, _: read_mem0(export),
    "claude": lambda export, _: read_claude(export),
    "chatgpt": lambda export, _: read_chatgpt(export),
    "co": read_own,
}


class ImportReport(NamedTuple):
    """What became, or would become, of an export."""

    origin: str
    written: bool
    receipts: list[Receipt]
    troubles: list[Trouble]
    remarks: list[str]


def import_export(
    kb: KnowledgeBase,
    origin: str,
    paths: Sequence[str],
    write: bool = False,
    on_conflict: str = "skip",
    trust: bool = False,
    stages: Stages | None = None,
) -> ImportReport:
    """Read these exports of one service. Without `write` nothing is touched, and the report says what would be done."""
    if origin not in READERS:
        raise InvalidInputError(f"{origin!r} is no format: {', '.join(READERS)}")
    if on_conflict not in ON_CONFLICT:
        raise InvalidInputError(f"on_conflict is one of {', '.join(ON_CONFLICT)}, not {on_conflict!r}")
    if trust and origin not in TRUSTABLE:
        raise InvalidInputError(f"trust is for {', '.join(TRUSTABLE)}: what {origin} wrote is not your own words")
    for path in paths:
        _refuse_own_vault(path, kb.root)
    with contextlib.ExitStack() as held:
        try:
            os.makedirs(kb.settings.data_dir, exist_ok=True)
            held.enter_context(locked(os.path.join(kb.settings.data_dir, "import.lock")))
        except OSError as error:
            raise IndexUnavailableError(f"cannot write to {kb.settings.data_dir}: {error.strerror}") from None
        kb.index.sync(progress=stages and stages("indexing"), seconds=EMBEDDING_SECONDS)
        planned = _run(kb, paths, Writer(kb, origin, False, on_conflict, trust), stages and stages("reading"))
        if not write:
            return planned
        total = sum(receipt.outcome in WRITTEN for receipt in planned.receipts)
        if total == 0:
            return planned._replace(written=True)
        report = _run(kb, paths, Writer(kb, origin, True, on_conflict, trust), stages and stages("writing"), total)
        kb.index.sync(progress=stages and stages("indexing"), seconds=EMBEDDING_SECONDS)
        return report


def _run(
    kb: KnowledgeBase, paths: Sequence[str], writer: Writer, progress: Progress | None, total: int | None = None
) -> ImportReport:
    """One pass over everything. Progress is told in things if their number is known, else in bytes."""
    report = ImportReport(writer.origin, writer.write, [], [], [])
    done = 0
    for path in paths:
        with open_export(path) as export:
            report.troubles.extend(export.troubles)
            for entry in READERS[writer.origin](export, kb.settings.knowledge_max_note_bytes):
                match entry:
                    case Trouble():
                        report.troubles.append(entry)
                    case Remark():
                        report.remarks.append(entry.text)
                    case _:
                        report.receipts.append(writer.put(entry))
                        done += report.receipts[-1].outcome in WRITTEN
                if progress:
                    progress(*((done, total) if total is not None else (export.done, export.size)))
    masked = [receipt.masked for receipt in report.receipts if receipt.masked]
    if masked:
        told = masked_text(sum(masked)) if writer.write else masked_text(sum(masked)).replace("masked", "to be masked")
        report.remarks.append(f"{told} in {'1 note' if len(masked) == 1 else f'{len(masked):,} notes'}")
    if writer.disowned:
        report.remarks.append(_told(writer.disowned, writer.write))
    return report


def _told(count: int, written: bool) -> str:
    notes = "1 note claims" if count == 1 else f"{count:,} notes claim"
    marked = "marked" if written else "to be marked"
    return (
        f"{notes} to be your own words, or to belong beside every prompt: {marked} `provenance: import`; "
        "if you wrote this export yourself, `--trust` keeps what it says"
    )


def _refuse_own_vault(path: str, root: str) -> None:
    real = os.path.realpath(path)
    if real == root or real.startswith(root + os.sep) or root.startswith(real + os.sep):
        raise InvalidInputError(f"{path} is the vault itself, or lies in it, or around it: there is nothing to import")
