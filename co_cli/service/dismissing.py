"""What somebody decided to keep in a review, so that it does not come back: `review.json` in the data folder."""

from __future__ import annotations

import hashlib
import json
import os
from typing import Any

from co_cli.notes.files import create_exclusively, replace
from co_cli.values import moment_text


class Dismissals:
    """Of one vault. A file that is damaged has forgotten them, which costs a question and nothing else."""

    def __init__(self, data_dir: str, root: str) -> None:
        self._file, self._root = os.path.join(data_dir, "review.json"), root

    def keys(self) -> set[str]:
        return set(self._read().get(self._root, {}))

    def add(self, key: str, now: float) -> None:
        known = self._read()
        known.setdefault(self._root, {})[key] = moment_text(now)
        self._write(known)

    def adopt(self, old: str) -> None:
        """The vault stands elsewhere now: what was kept at the old place is kept here."""
        known = self._read()
        if old in known:
            known[self._root] = {**known.pop(old), **known.get(self._root, {})}
            self._write(known)

    def _write(self, known: dict[str, Any]) -> None:
        data = json.dumps(known, indent=1).encode()
        os.makedirs(os.path.dirname(self._file), exist_ok=True)
        if not create_exclusively(self._file, data):
            replace(self._file, data)

    def _read(self) -> dict[str, Any]:
        try:
            with open(self._file, encoding="utf-8") as stream:
                found: Any = json.load(stream)
        except (FileNotFoundError, ValueError):
            return {}
        return found if isinstance(found, dict) and all(isinstance(one, dict) for one in found.values()) else {}  # pyright: ignore[reportUnknownVariableType, reportUnknownMemberType, reportUnknownArgumentType]


def key_of(kind: str, refs: tuple[str, ...], about: str) -> str:
    """One finding, as long as it is about the same."""
    return hashlib.blake2b("\n".join((kind, *refs, about)).encode("utf-8", "replace"), digest_size=12).hexdigest()
