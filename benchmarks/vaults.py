"""A generated vault in a temporary folder, synced once: where most benchmarks begin."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Generator
from contextlib import contextmanager
from typing import NamedTuple, Protocol
from unittest.mock import patch

from benchmarks.corpus import Writer, write_corpus
from co_cli.embedding.encoder import EncoderEmbedder
from co_cli.embedding.static import shared_embedder
from co_cli.entrance.knowledge_base import KnowledgeBase
from co_cli.entrance.local import LocalKnowledgeBase
from co_cli.ground.settings import load_settings
from co_cli.vault.vault import Opening

WORDS = 8


class Bar(Protocol):
    """Shows progress."""

    def __call__(self, done: int, total: int) -> None: ...
    def done(self) -> None: ...


class BenchVault(NamedTuple):
    """Where it is. No settings or notes of the person who runs the benchmark are used."""

    folder: str
    root: str
    data: str
    paths: list[str]
    provider: str = "static"

    def open(self, data: str | None = None, opening: Opening | None = None) -> LocalKnowledgeBase:
        flags = {"vault": self.root, "data_dir": data or self.data, "knowledge_embedding_provider": self.provider}
        return KnowledgeBase.open(
            settings=load_settings(flags, environ={"HOME": self.folder}, start=self.folder), opening=opening
        )

    @property
    def environment(self) -> dict[str, str]:
        """For a process of its own."""
        return {
            "PATH": os.environ.get("PATH", ""),
            "HOME": self.folder,
            "CO_VAULT": self.root,
            "CO_DATA_DIR": self.data,
            "CO_KNOWLEDGE_EMBEDDING_PROVIDER": self.provider,  # whatever is installed
            # an installed package has its bytecode; so has this one, whatever the environment says
            "PYTHONPYCACHEPREFIX": os.path.join(self.folder, "bytecode"),
        }


@contextmanager
def bench_vault(
    notes: int, bar: Bar | None = None, seed: int = 7, synced: bool = True, provider: str = "static"
) -> Generator[BenchVault]:
    """With `encoder`, the static model makes its vectors: what a search costs does not depend on their values."""
    with tempfile.TemporaryDirectory(prefix="co-bench-") as folder:
        root = os.path.join(folder, "vault")
        os.makedirs(os.path.join(root, "memories"))
        vault = BenchVault(folder, root, os.path.join(folder, "data"), write_corpus(root, notes, seed), provider)
        if synced:
            with vault.open() as kb, _stand_in():
                kb.sync(bar)
            if bar:
                bar.done()
        yield vault


@contextmanager
def _stand_in() -> Generator[None]:
    """25 passages a second would take ten minutes for 10,000 notes."""
    with patch.object(
        EncoderEmbedder, "embed", lambda _, texts, kind, seconds=None: shared_embedder().embed(texts, kind)
    ):
        yield


def questions(count: int, seed: int = 29) -> list[str]:
    """The beginnings of sentences like those of the notes."""
    writer = Writer(seed)
    return [" ".join(writer.sentence().split()[:WORDS]) for _ in range(count)]


def walk(root: str) -> int:
    """The least that finding a change can cost: every folder listed, every file's state asked for."""
    count = 0
    waiting = [root]
    while waiting:
        with os.scandir(waiting.pop()) as entries:
            for entry in entries:
                if entry.is_dir(follow_symlinks=False):
                    waiting.append(entry.path)
                else:
                    entry.stat(follow_symlinks=False)
                    count += 1
    return count
