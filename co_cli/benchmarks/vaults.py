"""A generated vault in a temporary folder, synced once: what most benches begin with."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Generator
from contextlib import contextmanager
from typing import NamedTuple

from co_cli.benchmarks.corpus import Writer, write_corpus
from co_cli.benchmarks.sync import Bar
from co_cli.knowledge_base import KnowledgeBase
from co_cli.settings import load_settings

WORDS = 8


class BenchVault(NamedTuple):
    """Where it is. Nothing of the person's own is read or written."""

    folder: str
    root: str
    data: str
    paths: list[str]

    def open(self) -> KnowledgeBase:
        flags = {"vault": self.root, "data_dir": self.data}
        return KnowledgeBase.open(settings=load_settings(flags, environ={"HOME": self.folder}, start=self.folder))

    @property
    def environment(self) -> dict[str, str]:
        """For a process of its own."""
        return {
            "PATH": os.environ.get("PATH", ""),
            "HOME": self.folder,
            "CO_VAULT": self.root,
            "CO_DATA_DIR": self.data,
            # an installed package has its bytecode; so has this one, whatever the environment says
            "PYTHONPYCACHEPREFIX": os.path.join(self.folder, "bytecode"),
        }

    @property
    def bytes(self) -> int:
        """Of the notes' files."""
        return sum(map(os.path.getsize, self.paths))


@contextmanager
def bench_vault(notes: int, bar: Bar | None = None, seed: int = 7, synced: bool = True) -> Generator[BenchVault]:
    with tempfile.TemporaryDirectory(prefix="co-bench-") as folder:
        root = os.path.join(folder, "vault")
        os.makedirs(root)
        vault = BenchVault(folder, root, os.path.join(folder, "data"), write_corpus(root, notes, seed))
        if synced:
            with vault.open() as kb:
                kb.sync(bar)
            if bar:
                bar.done()
        yield vault


def questions(count: int, seed: int = 29) -> list[str]:
    """The beginnings of sentences like those of the notes."""
    writer = Writer(seed)
    return [" ".join(writer.sentence().split()[:WORDS]) for _ in range(count)]
