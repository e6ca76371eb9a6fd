"""Runs as rows for JSON, out of saved JSON again, and as a ranking that other scorers read."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from co_cli.errors import InvalidInputError
from co_cli.evaluation.methods import PRODUCT
from co_cli.evaluation.running import Run
from co_cli.evaluation.scoring import Marks
from co_cli.settings import Settings

HAIR = 1e-6

MarksOf = dict[str, dict[str, Marks]]
"""By set, then by question."""


def rows_of(run: Run, settings: Settings) -> list[dict[str, Any]]:
    """One row for each kind; that of `all` holds every question's marks too, to be compared with another run's."""
    rows: list[dict[str, Any]] = []
    kind_of_method, _, backend = run.method.partition(":")
    product = kind_of_method == PRODUCT
    for kind, scores in run.scores().items():
        row: dict[str, Any] = {
            "set": run.set,
            "method": run.method,
            "backend": (backend or settings.knowledge_search_backend) if product else None,
            "kind": kind,
            **scores._asdict(),
        }
        if kind == "all":
            row["provider"], row["degraded"] = settings.knowledge_embedding_provider, run.degraded()
            row["marks"] = {
                answered.question.id: [round(mark, 6) for mark in answered.marks] for answered in run.answered
            }
        rows.append(row)
    return rows


def json_text(rows: Sequence[dict[str, Any]]) -> str:
    """A row a line, so that two files can be read and told apart."""
    return "[\n" + ",\n".join(json.dumps(row) for row in rows) + "\n]"


def marks_of(runs: Sequence[Run], method: str) -> MarksOf:
    return {
        run.set: {answered.question.id: answered.marks for answered in run.answered}
        for run in runs
        if run.method == method
    }


def read_marks(name: str) -> MarksOf:
    """Out of what `co eval --json` printed: FILE.json, or FILE.json:METHOD for another method than `co`."""
    path, _, method = name.partition(".json")
    path, method = f"{path}.json", method.removeprefix(":") or PRODUCT
    try:
        with open(path, encoding="utf-8") as stream:
            rows: list[dict[str, Any]] = json.load(stream)
        found = {
            str(row["set"]): {str(question): Marks(*marks) for question, marks in row["marks"].items()}
            for row in rows
            if row["method"] == method and "marks" in row
        }
        methods = dict.fromkeys(str(row["method"]) for row in rows)
    except OSError as error:
        raise InvalidInputError(f"{path} cannot be read: {error.strerror}") from None
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        raise InvalidInputError(f"{path} is not what `co eval --json` prints ({error})") from None
    if not found:
        raise InvalidInputError(f"{path} has no run of {method}; it has {', '.join(methods) or 'none at all'}")
    return found


def is_saved(name: str) -> bool:
    """Is this a file, and not the name of a method?"""
    return ".json" in name


def ranking_text(run: Run) -> str:
    """Lines of question TAB document TAB score, best first.

    Scorers sort by score, so one that would not keep the order is written a hair below the one before it.
    """
    lines: list[str] = []
    for answered in run.answered:
        lowest = float("inf")
        for name, score in answered.ranking:
            lowest = score if score < lowest else lowest - HAIR
            lines.append(f"{answered.question.id}\t{name}\t{lowest:.6f}\n")
    return "".join(lines)
