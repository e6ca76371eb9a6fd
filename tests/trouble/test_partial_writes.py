"""Other programs write as they like: what is read in the middle of that is put right by the next sync, and no file of
theirs is touched.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from co_cli.knowledge_base import KnowledgeBase
from tests.vault import Vault

OLD, NEW = "Oaks live long, says Anselm.\n", "Oaks live long, says Bex, and elms fall ill.\n"


def says(kb: KnowledgeBase, word: str) -> list[str]:
    return [hit.ref for hit in kb.search(word, backend="fts5").hits]


def truncating(path: Path) -> Iterator[None]:
    with path.open("w") as stream:
        yield
        for letter in range(0, len(NEW), 9):
            stream.write(NEW[letter : letter + 9])
            stream.flush()
            yield


def moving_away(path: Path) -> Iterator[None]:
    """As vim does: the old one becomes a backup, a new one is written."""
    backup = path.with_name("oak.md~")
    path.rename(backup)
    yield
    path.write_text(NEW[:10])
    yield
    path.write_text(NEW)
    yield
    backup.unlink()


def replacing(path: Path) -> Iterator[None]:
    new = path.with_name(".oak.md.tmp")
    new.write_text(NEW)
    yield
    new.replace(path)


def deleting_first(path: Path) -> Iterator[None]:
    """As some that synchronise folders do."""
    path.unlink()
    yield
    shutil.copyfile(__file__, path)
    yield
    path.write_text(NEW)


def filling(path: Path) -> Iterator[None]:
    """As a download does that makes room first."""
    path.write_bytes(b"\0" * len(NEW))
    yield
    path.write_text(NEW)


@pytest.mark.parametrize("save", [truncating, moving_away, replacing, deleting_first, filling])
def test_a_sync_at_every_step_of_a_save_ends_with_the_whole_note(
    vault: Vault, kb: KnowledgeBase, save: Callable[[Path], Iterator[None]]
) -> None:
    path = vault.write("memories/oak.md", OLD)
    kb.sync()
    steps = 0
    for _ in save(path):
        before = {name: vault.path(name).read_bytes() for name in vault.files()}
        kb.sync()
        kb.search("oaks")
        assert {name: vault.path(name).read_bytes() for name in vault.files()} == before, "a file was touched"
        steps += 1

    kb.sync()

    assert steps
    assert says(kb, "bex elms") == ["memory:oak"]
    assert says(kb, "anselm") == []
    assert vault.files() == ["memories/oak.md"]
    assert path.read_text() == NEW
