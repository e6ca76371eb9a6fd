"""Read an export into entries, in a process of its own with limits: exports come from elsewhere and can be hostile.

Little text that is not compressed is read in this process, where it cannot cost much.
"""

from __future__ import annotations

import contextlib
import os
import re
import time
from collections.abc import Callable, Generator, Iterator
from functools import partial
from itertools import islice
from typing import Any, NamedTuple

from co_cli.ground.errors import InvalidInputError
from co_cli.importers.archive import Export
from co_cli.importers.assistants import read_chatgpt, read_claude, read_mem0
from co_cli.importers.claude_mem import read_claude_mem
from co_cli.importers.folders import read_basic_memory, read_obsidian, read_own
from co_cli.importers.items import Entry, ImportReceipt, Item, failed
from co_cli.importers.okf import read_okf
from co_cli.importers.sessions import CLIENTS, read_jsonl, read_sessions
from co_cli.sources.documents import SMALL
from co_cli.sources.worker import ParserLimits, stream_parser

IMPORTERS: dict[str, Callable[[Export], Iterator[Entry]]] = {
    "obsidian": read_obsidian,
    "basic-memory": read_basic_memory,
    "okf": read_okf,
    "mem0": read_mem0,
    "claude-mem": read_claude_mem,
    "claude": read_claude,
    "chatgpt": read_chatgpt,
    **{client: partial(read_sessions, client) for client in CLIENTS},
    "jsonl": read_jsonl,
    "co": read_own,
}
SECONDS_A_PART = 60.0
FEW = 100
COSTLY = re.compile(r"\.(?:zip|db)$", re.I)
"""Files whose size says little about what reading them costs."""


class Budget(NamedTuple):
    """What may be read in one import, of all its exports together."""

    items: int = 200_000
    text: int = 4_000_000_000  # characters
    seconds: float = 900.0


class Part(NamedTuple):
    """An item or a receipt, how many of how many bytes are read, or why the export is refused as a whole."""

    item: Item | None = None
    receipt: ImportReceipt | None = None
    done: int = 0
    size: int = 0
    refusal: str = ""

    @property
    def text(self) -> str:
        return self.item.text if self.item else ""


class ExportStream:
    """Reads the exports of one import, one after the other, until its budget is used up."""

    def __init__(self, origin: str, largest: int, budget: Budget | None = None) -> None:
        self.origin, self.largest, self.left = origin, largest, budget or Budget()

    def read(self, path: str) -> Generator[Part]:
        """The parts of an export; a failed receipt if they are not all. Raises InvalidInputError if it is none."""
        arguments = (self.origin, path, self.largest, self.left.items, self.left.text)
        limits = ParserLimits(SECONDS_A_PART, self.left.seconds, self.left.text)
        if _is_small(path):
            answers = read_parts(b"", *arguments)
        else:
            answers = stream_parser(f"{__name__}:read_parts", *arguments, limits=limits)
        with contextlib.closing(answers):
            while (answer := self._next(answers)) is not None:
                if isinstance(answer, str):
                    if answer:
                        yield Part(receipt=failed(path, f"read in part: {answer}"))
                    return
                part = answer if isinstance(answer, Part) else _part(*answer)
                if part.refusal:
                    raise InvalidInputError(part.refusal)
                self.left = self.left._replace(items=self.left.items - 1, text=self.left.text - len(part.text))
                yield part

    def _next(self, answers: Iterator[Any]) -> Any:
        started = time.monotonic()
        answer = next(answers, None)
        self.left = self.left._replace(seconds=max(0.0, self.left.seconds - (time.monotonic() - started)))
        return answer


def _is_small(path: str) -> bool:
    """Whether these are a few files that have little text together, and no zip or database."""
    inside = (os.path.join(folder, name) for folder, _, names in os.walk(path) for name in names)
    files = [*islice(inside, FEW + 1)] if os.path.isdir(path) else [path]
    sizes = [os.path.getsize(file) for file in files if os.path.isfile(file)]
    return len(files) <= FEW and sum(sizes) <= SMALL and not any(map(COSTLY.search, files))


def read_parts(_: bytes, origin: str, path: str, largest: int, most_items: int, most_text: int) -> Generator[Part]:
    """In the worker process: every entry of an export, and a failed receipt where the budget ends."""
    try:
        export = Export(path, largest)
    except InvalidInputError as error:
        yield Part(refusal=str(error))
        return
    count = length = 0
    with contextlib.closing(export):
        for entry in _entries(export, origin):
            count, length = count + 1, length + (len(entry.text) if isinstance(entry, Item) else 0)
            if count > most_items or length > most_text:
                much = "many items" if count > most_items else "much text"
                why = f"the rest is not read: too {much} for one import; split the export"
                yield Part(None, failed(path, why), export.done, export.size)
                return
            item, receipt = (entry, None) if isinstance(entry, Item) else (None, entry)
            yield Part(item, receipt, export.done, export.size)


def _entries(export: Export, origin: str) -> Iterator[Entry]:
    """What an importer yields, and what it reports meanwhile."""
    reported = 0
    for entry in IMPORTERS[origin](export):
        yield from export.receipts[reported:]
        reported = len(export.receipts)
        yield entry
    yield from export.receipts[reported:]


def _part(item: list[Any] | None, receipt: list[Any] | None, done: int, size: int, refusal: str) -> Part:
    """What the worker's JSON says."""
    read = Item(*item) if item else None
    return Part(
        read and read._replace(tags=tuple(read.tags)), ImportReceipt(*receipt) if receipt else None, done, size, refusal
    )
