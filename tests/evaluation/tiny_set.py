"""A small question set in BEIR's layout that a test writes."""

from __future__ import annotations

import json
from pathlib import Path


def write_set(
    folder: Path,
    documents: list[dict[str, object]],
    questions: list[dict[str, object]],
    grades: list[tuple[str, str, int]],
    skipped: list[str] | None = None,
) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    for name, rows in (("corpus.jsonl", documents), ("queries.jsonl", questions)):
        (folder / name).write_text("".join(f"{json.dumps(row)}\n" for row in rows), "utf-8")
    (folder / "qrels.tsv").write_text("".join(f"{query}\t{doc}\t{grade}\n" for query, doc, grade in grades), "utf-8")
    (folder / "meta.json").write_text(json.dumps({"skip_categories": skipped or []}), "utf-8")
    return folder


def trees(folder: Path) -> Path:
    """Three documents, three questions, one of which is not scored."""
    return write_set(
        folder,
        [
            {"id": "oak", "title": "Oak", "text": "Oaks live for centuries."},
            {"id": "elm", "text": "Elms stand in the park."},
            {"id": "ship", "text": "The harbour master keeps a list of boats."},
        ],
        [
            {"id": "1", "text": "how old do oaks get", "category": "age"},
            {"id": "2", "text": "where are the elms", "category": "place"},
            {"id": "3", "text": "who painted the wall", "category": "trap"},
        ],
        [("1", "oak", 1), ("2", "elm", 1), ("3", "ship", 1)],
        skipped=["trap"],
    )
