"""The order in which a note reaches the disk: its bytes, its name, its folder. A killed process cannot show that."""

from __future__ import annotations

import os
import stat
from collections.abc import Callable
from pathlib import Path

import pytest

from co_cli.notes.store import NoteStore


@pytest.fixture
def steps(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """What the operating system was asked to do, in order."""
    done: list[str] = []
    really_sync = os.fsync

    def fsync(handle: int) -> None:
        done.append("sync folder" if stat.S_ISDIR(os.fstat(handle).st_mode) else "sync file")
        really_sync(handle)

    def recording(name: str) -> Callable[..., None]:
        really = getattr(os, name)

        def call(*arguments: str) -> None:
            done.append(name)
            really(*arguments)

        return call

    monkeypatch.setattr(os, "fsync", fsync)
    for name in ("link", "replace", "rename"):
        monkeypatch.setattr(os, name, recording(name))
    return done


@pytest.fixture
def store(tmp_path: Path) -> NoteStore:
    (tmp_path / "memories").mkdir()
    return NoteStore(str(tmp_path))


@pytest.mark.skipif(os.name == "nt", reason="Windows has other calls for this")
def test_a_new_note_is_synced_before_it_has_its_name_and_its_folder_after(store: NoteStore, steps: list[str]) -> None:
    store.create("memories", "Oak", b"Oaks live long.")

    assert steps == ["sync file", "link", "sync folder"]


@pytest.mark.skipif(os.name == "nt", reason="Windows has other calls for this")
def test_a_changed_note_is_synced_before_it_takes_the_old_ones_place(store: NoteStore, steps: list[str]) -> None:
    path = store.create("memories", "Oak", b"Oaks live long.")
    steps.clear()
    store.replace(path, b"Oaks live very long.", based_on=b"Oaks live long.")

    assert steps == ["sync file", "replace", "sync folder"]


@pytest.mark.skipif(os.name == "nt", reason="Windows has other calls for this")
def test_forgetting_syncs_both_folders_and_restoring_writes_as_carefully(store: NoteStore, steps: list[str]) -> None:
    path = store.create("memories", "Oak", b"Oaks live long.")
    steps.clear()
    store.trash(path)
    made = ["sync folder"] * 3  # of .trash, of the moment, of memories: each is named in the one above it
    assert steps == [*made, "rename", "sync folder", "sync folder"]

    steps.clear()
    store.restore(path)
    assert steps == ["sync file", "link", "sync folder"]
