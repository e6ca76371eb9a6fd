"""Many processes at once: short versions of the soaks opening, crowd, twins, titles, readers and stay."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.soak import crowding, namesakes, opening, reading, staying, twins
from tests.soak.contract import Trial
from tests.soak.staying import Size, grown


def test_eight_processes_open_what_is_not_there_yet_480_times(tmp_path: Path) -> None:
    trial = Trial("opening", tmp_path, seed=1, rounds=60)
    opening.run(trial)

    assert trial.faults == []
    assert trial.counts["tries"] == 480


def test_eight_processes_write_and_search_two_vaults_in_one_search_db(tmp_path: Path) -> None:
    trial = Trial("crowd", tmp_path, seed=2, rounds=1)
    crowding.run(trial, steps=12)

    assert trial.faults == []
    assert trial.counts["saves"] >= 16
    assert trial.counts["searches"] > 0


def test_agents_that_save_the_same_fact_or_title_at_once_make_one_note_or_several_named_ones(tmp_path: Path) -> None:
    trial = Trial("twins", tmp_path, seed=1, rounds=9)
    twins.run(trial)

    assert trial.faults == []
    assert trial.counts["saves"] == 27


def test_notes_with_one_title_are_all_found_and_the_next_gets_the_next_name(tmp_path: Path) -> None:
    trial = Trial("titles", tmp_path, seed=1, rounds=1)
    namesakes.run(trial, notes=40)

    assert trial.faults == []
    assert (trial.counts["notes"], trial.counts["saves"]) == (40, 20)


def test_a_process_that_stays_holds_no_more_files_and_threads_with_time(tmp_path: Path) -> None:
    trial = Trial("stay", tmp_path, seed=1, rounds=10)
    staying.run(trial, notes=20)

    assert [fault for fault in trial.faults if "memory" not in fault] == []  # too few rounds for a plateau
    assert trial.counts["syncs"] == 10


def test_a_reader_is_measured_beside_a_writer_in_its_vault_and_in_another(tmp_path: Path) -> None:
    trial = Trial("readers", tmp_path, seed=1, rounds=1)
    reading.run(trial, notes=20, searches=10)

    assert trial.faults == []
    assert trial.counts["searches"] == 20


@pytest.mark.parametrize(
    ("last", "problems"),
    [
        (Size(100, 5, 2), []),
        (Size(109, 5, 2), []),
        (Size(120, 5, 2), ["memory grew from 0.0 to 0.0 MB"]),
        (Size(100, 6, 2), ["open files grew from 5 to 6"]),
        (Size(100, 5, 3), ["open threads grew from 2 to 3"]),
    ],
)
def test_growth_after_the_early_plateau_is_told(last: Size, problems: list[str]) -> None:
    assert grown([Size(100, 5, 2)] * 10 + [last] * 40) == problems
