"""Power cuts: 300 here; `python -m tests.soak power` and `names` run as many as you like."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from co_cli.index.sqlite.files import swap
from co_cli.notes import files, store
from tests.soak import names, power
from tests.soak.contract import Trial

pytestmark = pytest.mark.skipif(os.name == "nt", reason="Windows has other calls for files and folders")


def test_three_hundred_cuts_corrupt_no_index_and_lose_no_acknowledged_row(tmp_path: Path) -> None:
    trial = Trial("power", tmp_path, seed=3, rounds=300)
    power.run(trial)

    assert trial.faults == []
    assert trial.counts["cuts"] == 300
    assert trial.counts["rows acknowledged"] >= 10


def test_with_synchronous_off_the_same_cuts_corrupt_both_databases(tmp_path: Path) -> None:
    found: list[str] = []
    for seed in range(6):  # either may be missed by one seed
        folder = tmp_path / str(seed)
        folder.mkdir()
        trial = Trial("power", folder, seed=seed, rounds=150)
        power.run(trial, synchronous="off")
        found += trial.faults
        if any("search.db is" in fault for fault in found) and any("activity.db" in fault for fault in found):
            return
    raise AssertionError(f"a careless database was not found out: {found}")


def test_with_the_synchronous_of_search_db_activity_db_would_lose_acknowledged_rows(tmp_path: Path) -> None:
    trial = Trial("power", tmp_path, seed=1, rounds=150)
    power.run(trial, synchronous="normal")

    assert any("activity.db lost" in fault for fault in trial.faults)
    assert not any("search.db" in fault for fault in trial.faults)


def test_a_thousand_cuts_lose_no_acknowledged_note_and_leave_none_half_written(tmp_path: Path) -> None:
    trial = Trial("names", tmp_path, seed=5, rounds=1_000)
    names.run(trial)

    assert trial.faults == []
    assert trial.counts["saves acknowledged"] >= 20


def without_syncing_a_file(temporary: str, data: bytes) -> None:
    handle = os.open(temporary, os.O_CREAT | os.O_EXCL | os.O_WRONLY)
    os.write(handle, data)
    os.close(handle)


def without_syncing_a_folder(folder: str) -> None:
    pass


def without_syncing_new_folders(folder: str) -> None:
    os.makedirs(folder, exist_ok=True)


@pytest.mark.parametrize(
    ("step", "places", "careless", "fault"),
    [
        ("_write", (files,), without_syncing_a_file, "is half a note"),
        ("sync_folder", (files, store), without_syncing_a_folder, "was acknowledged"),
        ("make_folders", (store,), without_syncing_new_folders, "was acknowledged"),
    ],
)
def test_whoever_leaves_out_one_step_of_saving_is_found_out(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    step: str,
    places: tuple[object, ...],
    careless: Callable[..., None],
    fault: str,
) -> None:
    for place in places:
        monkeypatch.setattr(place, step, careless)
    trial = Trial("names", tmp_path, seed=5, rounds=1_000)
    names.run(trial)

    assert any(fault in found for found in trial.faults)


def test_the_old_log_is_gone_for_good_before_a_new_search_db_takes_its_place(tmp_path: Path) -> None:
    """A log that came back beside another file would be read into it."""
    for name in ("search.db", "search.db-wal", "search.db.new"):
        (tmp_path / name).write_text(name)
    heard: list[tuple[str, str]] = []
    with names.listening(str(tmp_path), lambda request: heard.append((request.what, request.path))):
        swap(str(tmp_path / "search.db.new"), str(tmp_path / "search.db"))

    assert heard == [
        ("unlink", "search.db"),
        ("unlink", "search.db-wal"),
        ("sync folder", ""),
        ("rename", "search.db.new"),
        ("sync folder", ""),
    ]
