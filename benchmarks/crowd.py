"""How many answers are still found when a small vault becomes a large one: its questions, asked among notes of others.

`python -m benchmarks crowd FOLDER...`: each folder is one crowd, with its texts in lines of JSON: our own notes
(`benchmarks/reader/data`, which the models were trained on), or a collection that no model has seen.
"""

from __future__ import annotations

import json
import lzma
import random
import shutil
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path

from benchmarks.measuring import BenchRow
from benchmarks.vaults import Bar
from co_cli.evaluation.running import Evaluation, method
from co_cli.evaluation.sets import ABSENT, add_others, read_vault
from co_cli.ground.errors import InvalidInputError
from co_cli.ground.settings import load_settings
from co_cli.vault.vault import open_vault

ROOT = Path(__file__).parents[1]
VAULTS = ("knowledge", "benchmarks/quality/short_notes", "benchmarks/quality/unseen")
SIZES = (0, 1_000, 5_000, 20_000)
USUAL = 5_000
"""A smaller crowd is asked with all of its texts, too."""
PROVIDERS = ("static", "encoder")
MOST_WORDS = 300
"""Longer texts are cut: a crowd of books would be another question."""


def bench_crowd(folders: Sequence[str], bar: Bar | None = None) -> list[BenchRow]:
    rows: list[BenchRow] = []
    for folder in folders:
        with tempfile.TemporaryDirectory(prefix="co-crowd-") as work:
            texts = read_texts(Path(folder))
            sizes = sorted({*(size for size in SIZES if size <= len(texts)), min(len(texts), USUAL)})
            for size, before in zip(sizes[1:], sizes, strict=False):
                write_notes(Path(work, str(size)), texts[before:size])
            for vault in VAULTS:
                for provider in PROVIDERS:
                    for size, kind, ndcg, recall in ask(Path(work), ROOT / vault, provider, sizes, bar):
                        label = f"{Path(vault).name} among {size:,} of {Path(folder).name}, {provider}, {kind}"
                        rows.append(BenchRow(f"{label}: nDCG@10", ndcg, ""))
                        rows.append(BenchRow(f"{label}: recall@10", recall, ""))
    return rows


def ask(
    work: Path, source: Path, provider: str, sizes: Sequence[int], bar: Bar | None
) -> Iterator[tuple[int, str, float, float]]:
    """A copy of the vault, which grows: of each size and kind of question, nDCG@10 and recall@10.

    All vaults share one data folder, and so the vectors of the others' notes.
    """
    home = Path(tempfile.mkdtemp(dir=work))
    root = shutil.copytree(source, home / source.name)
    found = read_vault(str(root))
    found = found._replace(questions=[question for question in found.questions if question.kind != ABSENT])
    settings = load_settings(
        {"vault": str(root), "data_dir": str(work / "data")} | {"knowledge_embedding_provider": provider},
        environ={"HOME": str(home)},
        start=str(home),
    )
    for size in sizes:
        if size:
            add_others(str(root), str(work / str(size)))
        vault = open_vault(settings)
        try:
            evaluation = Evaluation(settings, str(home), bar or (lambda done, total: None))
            (run,) = evaluation.ask(found, {"co": method("co")}, vault)
        finally:
            vault.close()
        for row in run.rows():
            yield size, row["kind"], row["ndcg10"], row["recall10"]
    shutil.rmtree(home)


def read_texts(folder: Path) -> list[str]:
    """The texts of all lines of JSON in a folder, each once, in an order of chance that is the same each time."""
    texts: dict[str, None] = {}
    files = [path for path in (*folder.glob("*.jsonl"), *folder.glob("*.jsonl.xz")) if path.name != "queries.jsonl"]
    for path in sorted(files):
        with lzma.open(path, "rt", encoding="utf-8") if path.suffix == ".xz" else path.open(encoding="utf-8") as lines:
            for row in map(json.loads, lines):
                if text := " ".join(str(row.get("text", "")).split()[:MOST_WORDS]):
                    texts[text] = None
    if len(texts) < SIZES[1]:
        raise InvalidInputError(f'{folder} has {len(texts)} lines with a "text": name a folder with at least 1,000')
    return random.Random(1).sample(list(texts), min(len(texts), SIZES[-1]))


def write_notes(folder: Path, texts: Sequence[str]) -> None:
    folder.mkdir()
    for number, text in enumerate(texts):
        (folder / f"{number:05}.md").write_text(f"{text.lstrip('#').strip()}\n", encoding="utf-8")
