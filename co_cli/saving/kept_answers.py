"""What saves with a client's key were answered, on one machine: a repeated request gets the same answer.

A file in the data folder, for a day. It is written after the note: if the power is cut in between, the repeated text is
a duplicate of the first.
"""

from __future__ import annotations

import os
import time
from typing import Any

from co_cli.ground.saves import Saved, SaveKey
from co_cli.ground.values import DAY
from co_cli.notes.files import change_json, read_json

NAME = "answered-saves.json"
MOST = 1_000
"""Answers that are kept."""


class KeptAnswers:
    """The answers to saves in one vault. Used inside its lock."""

    def __init__(self, data_dir: str, root: str) -> None:
        self._file, self._root = os.path.join(data_dir, NAME), root

    def answer_to(self, key: SaveKey) -> Saved | None:
        """What a save with this key was answered. Raises KeyReusedError if that was another one."""
        found = read_json(self._file).get(f"{self._root}\t{key.key}")
        if not isinstance(found, list) or found[2] < time.time() - DAY:
            return None
        request, answer, _ = found  # pyright: ignore[reportUnknownVariableType]
        return key.read(str(request), str(answer))  # pyright: ignore[reportUnknownArgumentType]

    def keep_answer(self, key: SaveKey, saved: Saved) -> None:
        now, name = time.time(), f"{self._root}\t{key.key}"

        def keep(state: dict[str, Any]) -> None:
            newest = sorted(state.items(), key=lambda item: item[1][2])[1 - MOST :]
            state.clear()
            state.update((other, kept) for other, kept in newest if kept[2] >= now - DAY)
            state[name] = [key.request, key.write(saved), now]

        change_json(self._file, keep)
