"""Proof that an operation was carried out, so that a caller who repeats it after a crash does not do it twice.

One small file an operation, beside search.db. It is written before the change and marked done after it; one that was
never marked counts if the change is there to be seen.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
from typing import NamedTuple

from co_cli.notes.files import create_exclusively, replace

MOST_KEPT = 2_000


class Receipt(NamedTuple):
    """What an operation did, or was about to do."""

    fingerprint: str
    path: str
    version: str | None
    """Of the file afterwards; None if it was deleted."""
    existed: bool
    done: bool


class Receipts:
    """The receipts of one vault. Wants the vault's lock to be held."""

    def __init__(self, data_dir: str, root: str) -> None:
        self._folder = os.path.join(data_dir, "memory-operations", _digest(root))

    def get(self, operation: str) -> Receipt | None:
        try:
            with open(self._file(operation), encoding="utf-8") as stream:
                return Receipt(*json.load(stream))
        except FileNotFoundError:
            return None
        except (ValueError, TypeError):  # damaged: the version that a caller names still guards the file
            return None

    def put(self, operation: str, receipt: Receipt) -> None:
        file, data = self._file(operation), json.dumps(receipt).encode()
        os.makedirs(self._folder, exist_ok=True)
        if not create_exclusively(file, data):
            replace(file, data)
        if not receipt.done:
            self._prune()

    def drop(self, operation: str) -> None:
        with contextlib.suppress(FileNotFoundError):
            os.unlink(self._file(operation))

    def _file(self, operation: str) -> str:
        return os.path.join(self._folder, f"{_digest(operation)}.json")

    def _prune(self) -> None:
        """Half of them go when there are too many: the oldest."""
        names = os.listdir(self._folder)
        if len(names) <= MOST_KEPT:
            return
        files = [os.path.join(self._folder, name) for name in names]
        for file in sorted(files, key=os.path.getmtime)[: len(files) // 2]:
            with contextlib.suppress(FileNotFoundError):
                os.unlink(file)


def _digest(text: str) -> str:
    return hashlib.blake2b(text.encode("utf-8", "surrogateescape"), digest_size=16).hexdigest()
