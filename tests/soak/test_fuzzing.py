"""A few rounds of the fuzzing soak; `python -m tests.soak fuzz` is the long version."""

from __future__ import annotations

from pathlib import Path

import pytest

from co_cli.notes import refs
from tests.soak import fuzzing
from tests.soak.contract import Trial


def test_no_mutation_of_a_note_a_query_or_a_ref_makes_anything_crash(tmp_path: Path) -> None:
    trial = Trial("fuzz", tmp_path, seed=20261115, rounds=2)

    fuzzing.run(trial)

    assert trial.faults == []
    assert trial.counts["texts read"] == 2 * fuzzing.TEXTS


def test_a_crash_is_a_fault_whose_bytes_are_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """So that the soak is known to see faults."""
    trial = Trial("fuzz", tmp_path, seed=1, rounds=1)

    def broken(title: str) -> str:
        raise ZeroDivisionError(title[:1])

    monkeypatch.setattr(fuzzing, "slugify", broken)
    fuzzing.run(trial)

    assert refs.slugify("Oak") == "oak"
    assert trial.faults[0].startswith("round 1: reading raised ZeroDivisionError")
    assert list(tmp_path.rglob("fault-1.bin"))


def test_the_same_seed_makes_the_same_mutations() -> None:
    seeds = [b"---\ntitle: Oak\n---\nOaks live long.\n"]

    def some(seed: int) -> list[bytes]:
        chance = Trial("fuzz", Path(), seed=seed, rounds=1).chance
        return [fuzzing.mutated(chance, seeds) for _ in range(20)]

    assert some(1) == some(1) != some(2)
