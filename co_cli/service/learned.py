"""Learned weights, where a search finds them: one line a vault in a small file beside search.db.

A cold search must not open activity.db, where the judgements are. This file is derived from them, and says for which
vectors it was learned: other vectors have another default. Whatever is wrong with it, a search goes on without.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from co_cli.retrieval.profiles import DEFAULT, profile_named
from co_cli.service.learning import BOUND, STEP, Weights
from co_cli.service.searching import settings_weights

if TYPE_CHECKING:
    from collections.abc import Mapping

    from co_cli.knowledge_base import KnowledgeBase

FILE_NAME = "learned.weights"


def learned_weights(data_dir: str, root: str, space: str) -> dict[str, float] | None:
    """Those of this vault with these vectors; None: there are none.

    Weights too far from the default were learned by a version with another default, for another formula.
    """
    for line in _lines(data_dir):
        place, found = _read(line)
        if found is not None and place == (root, space):
            return found._asdict() if abs(found.meaning - DEFAULT.weights["meaning"]) < BOUND + STEP / 2 else None
    return None


def write_learned(data_dir: str, root: str, space: str, weights: Weights | None) -> None:
    """Put this vault's line in place of the one that is there; None takes it away."""
    from co_cli.notes.files import locked, replace

    path = os.path.join(data_dir, FILE_NAME)
    os.makedirs(data_dir, exist_ok=True)
    with locked(f"{path}.lock"):
        kept = [line for line in _lines(data_dir) if (place := _read(line)[0]) and place[0] != root]
        if weights is not None:
            kept.append(f"{weights.meaning:.4f}\t{weights.words:.4f}\t{space}\t{_escaped(root)}")
        if kept:
            replace(path, "".join(f"{line}\n" for line in kept).encode("utf-8", "surrogateescape"))
        elif os.path.exists(path):
            os.unlink(path)


def adopt_learned(data_dir: str, old: str, new: str) -> None:
    """A vault stands elsewhere now: its line, unless there is one of the new place."""
    lines = [_read(line) for line in _lines(data_dir)]
    taken = any(place and place[0] == new for place, _ in lines)  # a vault has one line, whichever vectors it is for
    for place, weights in lines:
        if place and place[0] == old:
            if weights is not None and not taken:
                write_learned(data_dir, new, place[1], weights)
            write_learned(data_dir, old, place[1], None)


def _lines(data_dir: str) -> list[str]:
    try:
        with open(os.path.join(data_dir, FILE_NAME), encoding="utf-8", errors="surrogateescape") as stream:
            return stream.read().split("\n")
    except OSError:
        return []  # not there, as for nearly everybody; or not to be had, and no search fails for it


def _read(line: str) -> tuple[tuple[str, str] | None, Weights | None]:
    """The vault and the vectors of a line, and its weights; None for one that nobody could have meant."""
    parts = line.split("\t", 3)
    if len(parts) < 4:
        return None, None
    place = _unescaped(parts[3]), parts[2]
    try:
        meaning, words = float(parts[0]), float(parts[1])
    except ValueError:
        return place, None
    sound = 0 <= meaning <= 1 and 0 <= words <= 1 and meaning + words > 0
    return place, Weights(meaning, words) if sound else None


def _escaped(root: str) -> str:
    return root.replace("\\", "\\\\").replace("\n", "\\n").replace("\r", "\\r")


def _unescaped(text: str) -> str:
    parts = text.split("\\\\")
    return "\\".join(part.replace("\\n", "\n").replace("\\r", "\r") for part in parts)


def learned_in_use(kb: KnowledgeBase, profile: str | None, weights: Mapping[str, float] | None) -> Weights | None:
    """The learned weights, if a search with these is weighed by them; None if a person says otherwise."""
    default = profile_named(profile or kb.settings.knowledge_profile) is DEFAULT
    given = {"words", "meaning"} & set(weights or ())
    learned = None if given or not default or settings_weights(kb.settings) else kb.learned_weights()
    return Weights(**learned) if learned else None
