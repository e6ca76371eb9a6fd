"""The generated folder keeps what its manifest says, for other tests rely on it."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest

from co_cli.notes.note import NotTextError, read_note
from co_cli.sources.documents import is_binary_name, largest_size, read_document
from tests.sources.mixed_folder import delete_some, edit_some, make_mixed_folder


def text_of(path: str, data: bytes) -> str:
    if path.endswith(".md"):
        return read_note(path, data).body
    return read_document(path, data).text


def test_every_file_is_what_the_manifest_says(tmp_path: Path) -> None:
    root = tmp_path / "mixed"
    manifest = make_mixed_folder(root, files=400)

    there = {
        os.path.relpath(os.path.join(folder, name), root).replace(os.sep, "/")
        for folder, folders, names in os.walk(root)
        for name in [*names, *(inner for inner in folders if os.path.islink(os.path.join(folder, inner)))]
    }
    assert there == set(manifest)
    assert len(manifest) == 400
    for path, expected in manifest.items():
        full = root / path
        if expected.outcome == "binary":
            assert is_binary_name(path), path
        elif expected.outcome == "indexed":
            assert not is_binary_name(path), path
            assert all(word in text_of(path, full.read_bytes()) for word in expected.words), path
        elif expected.outcome in ("skipped: no text", "skipped: generated"):
            with pytest.raises(NotTextError):
                text_of(path, full.read_bytes())
        elif expected.outcome == "skipped: too large":
            assert full.stat().st_size > largest_size(path)
            assert full.stat().st_blocks * 512 < 1_000_000 if hasattr(os.stat_result, "st_blocks") else True
        else:
            assert expected.outcome in ("ignored", "skipped: symbolic link")


def test_the_same_number_gives_the_same_folder_and_quickly(tmp_path: Path) -> None:
    started = time.process_time()
    first = make_mixed_folder(tmp_path / "one", files=2_000)
    took = time.process_time() - started
    second = make_mixed_folder(tmp_path / "two", files=2_000)

    assert took < 4  # about one; a busy machine is no bug
    assert first == second
    assert len(first) == 2_000
    words = [word for expected in first.values() for word in expected.words]
    assert len(words) == len(set(words)) > 1_500
    some = [path for path, expected in first.items() if expected.outcome == "indexed"][::50]
    assert all((tmp_path / "one" / path).read_bytes() == (tmp_path / "two" / path).read_bytes() for path in some)


def test_editing_and_deleting_touch_different_files(tmp_path: Path) -> None:
    root = tmp_path / "mixed"
    manifest = make_mixed_folder(root, files=400)
    before = {path: (root / path).read_bytes() for path, expected in manifest.items() if expected.outcome == "indexed"}

    edited = edit_some(root, manifest, 10)
    gone = delete_some(root, manifest, 5)

    assert (len(edited), len(gone)) == (10, 5)
    assert not set(edited) & set(gone)
    assert not any((root / path).exists() for path in gone)
    changed = [path for path in before if path not in gone and (root / path).read_bytes() != before[path]]
    assert changed == [path for path in before if path in edited]
    assert all(words.words[0] in text_of(path, (root / path).read_bytes()) for path, words in edited.items())
    assert len({path.rsplit(".", 1)[1] for path in edited}) > 3
