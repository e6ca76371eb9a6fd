"""Import exports of other services into the vault, and export the vault.

The first pass writes nothing: it is the dry run, and it finds every conflict before a file is touched.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from typing import NamedTuple

from co_cli.errors import IndexUnavailableError, InvalidInputError
from co_cli.importers.archive import Export
from co_cli.importers.chatgpt import read_chatgpt
from co_cli.importers.claude import read_claude
from co_cli.importers.export import ExportReport, Progress, export_notes
from co_cli.importers.folders import read_basic_memory, read_obsidian, read_own
from co_cli.importers.items import Entry, ImportReceipt
from co_cli.importers.memories import read_mem0
from co_cli.importers.note_importer import WRITTEN, ImportRequest, NoteImporter
from co_cli.knowledge_base import KnowledgeBase
from co_cli.notes.files import locked
from co_cli.values import masked_text

__all__ = ["READERS", "ExportReport", "ImportReceipt", "ImportReport", "ImportRequest", "export_notes", "import_export"]

Stages = Callable[[str], Progress]
"""Returns the progress bar of a stage of the work, given its verb."""
EMBEDDING_SECONDS = 5.0
"""How long to wait for a slow embedder; `co index sync` finishes the work."""
READERS: dict[str, Callable[[Export], Iterator[Entry]]] = {
    "obsidian": read_obsidian,
    "basic-memory": read_basic_memory,
    "mem0": read_mem0,
    "claude": read_claude,
    "chatgpt": read_chatgpt,
    "co": read_own,
}
TRUSTABLE = ("obsidian", "basic-memory", "co")
"""Formats whose files may be the person's own words."""


class ImportReport(NamedTuple):
    """What an import did, or would do. What could not be read is a receipt with the outcome `failed`."""

    origin: str
    written: bool
    receipts: list[ImportReceipt]
    remarks: list[str]


def import_export(kb: KnowledgeBase, request: ImportRequest, stages: Stages | None = None) -> ImportReport:
    """Import exports of one service, or say what would be done."""
    _check(kb, request)
    try:
        os.makedirs(kb.settings.data_dir, exist_ok=True)
        with locked(os.path.join(kb.settings.data_dir, "import.lock")):  # a second import sees what the first one wrote
            kb.index.sync(progress=stages and stages("indexing"), seconds=EMBEDDING_SECONDS)
            report = _run(kb, request._replace(write=False), stages and stages("reading"))
            total = sum(receipt.outcome in WRITTEN for receipt in report.receipts)
            if request.write and total:
                report = _run(kb, request, stages and stages("writing"), total)
                kb.index.sync(progress=stages and stages("indexing"), seconds=EMBEDDING_SECONDS)
            return report._replace(written=request.write)
    except OSError as error:
        raise IndexUnavailableError(
            f"the import stopped ({error}): check {kb.settings.data_dir} and its disk"
        ) from None


def _check(kb: KnowledgeBase, request: ImportRequest) -> None:
    if request.trust and request.origin not in TRUSTABLE:
        raise InvalidInputError(f"what {request.origin} wrote is not your own words: trust {', '.join(TRUSTABLE)} only")
    for path in request.paths:
        real = os.path.realpath(path)
        if real == kb.root or real.startswith(kb.root + os.sep) or kb.root.startswith(real + os.sep):
            raise InvalidInputError(f"{path} is the vault, a folder in it, or a folder around it: nothing to import")


def _run(kb: KnowledgeBase, request: ImportRequest, progress: Progress | None, total: int = 0) -> ImportReport:
    """One pass over the exports. Progress counts notes if their number is known, else bytes."""
    importer = NoteImporter(kb, request)
    receipts: list[ImportReceipt] = []
    remarks: list[str] = []
    done = 0
    for path in request.paths:
        before = len(receipts)
        with Export(path, kb.settings.knowledge_max_note_bytes) as export:
            for item in READERS[request.origin](export):
                receipts.append(importer.put(item))
                done += receipts[-1].outcome in WRITTEN
                if progress:
                    progress(*((done, total) if total else (export.done, export.size)))
            if len(receipts) == before and not export.failures:
                export.fail(path, f"there is nothing in it that `co data import {request.origin}` can read")
            receipts += export.failures
            remarks += export.remarks
    to_be = "" if request.write else "to be "
    masked = [receipt.masked for receipt in receipts if receipt.masked]
    if masked:
        secrets = masked_text(sum(masked)).replace("masked", f"{to_be}masked")
        remarks.append(f"{secrets} in {'1 note' if len(masked) == 1 else f'{len(masked):,} notes'}")
    if importer.disowned:
        notes = "1 note claims" if importer.disowned == 1 else f"{importer.disowned:,} notes claim"
        remarks.append(
            f"{notes} to be your own words, or to belong in every prompt: {to_be}marked `provenance: import`; "
            "if you wrote this export yourself, `--trust` keeps what it says"
        )
    return ImportReport(request.origin, request.write, receipts, remarks)
