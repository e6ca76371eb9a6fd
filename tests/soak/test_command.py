"""`python -m tests.soak`: a table, an exit code, a way to repeat a fault, and nothing left behind."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from co_cli.notes import files, store
from tests.house.package import REPOSITORY
from tests.soak.__main__ import main
from tests.soak.catalogue import SOAKS
from tests.soak.contract import MOST_FAULTS, Trial

SYSTEM = tempfile.gettempdir()


@pytest.fixture(autouse=True)
def temporary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where it may write: whatever it leaves behind is seen."""
    folder = tmp_path / "temporary"
    folder.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(folder))
    return folder


@pytest.fixture
def a_short_name() -> Iterator[Path]:
    """In a folder with a long name there is no server of processes, which leaves things behind of its own."""
    with tempfile.TemporaryDirectory(prefix="co-", dir=SYSTEM, ignore_cleanup_errors=True) as folder:
        yield Path(folder)


def test_it_prints_a_table_and_removes_its_folder(temporary: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code = main(["names", "--rounds", "60", "--seed", "4"])

    head, row, *more = capsys.readouterr().out.splitlines()
    assert code == 0
    assert head.split() == ["soak", "rounds", "seconds", "faults", "done"]
    assert row.split()[:2] == ["names", "60"]
    assert "60 cuts" in row
    assert all(len(line) <= 80 for line in (head, row, *more))
    assert list(temporary.iterdir()) == []


@pytest.mark.skipif(os.name == "nt", reason="Windows syncs no folder")
def test_faults_are_exit_code_3_with_the_command_that_repeats_them(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for place in (files, store):
        monkeypatch.setattr(place, "sync_folder", lambda folder: None)
    assert main(["names", "--rounds", "300", "--seed", "4"]) == 3

    out = capsys.readouterr().out
    assert "was acknowledged" in out
    again = next(line for line in out.splitlines() if "again: " in line).partition("again: ")[2].split()
    assert again[:6] == ["python", "-m", "tests.soak", "names", "--seed", "4"]
    assert main(again[3:]) == 3


def test_json_has_the_seed_and_every_soak(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["names", "--seconds", "0.2", "--json"]) == 0

    found = json.loads(capsys.readouterr().out)
    assert found["stopped"] is False
    assert isinstance(found["seed"], int)
    (soak,) = found["soaks"]
    assert (soak["name"], soak["faults"]) == ("names", [])
    assert 0 < soak["counts"]["cuts"] == soak["rounds"] < SOAKS["names"].rounds


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["flood"], "there is no soak 'flood': kill, power"),
        (["names", "--rounds", "0"], "--rounds must be more than 0"),
        (["names", "--seconds", "-1"], "--seconds must be more than 0"),
    ],
)
def test_wrong_usage_is_refused(arguments: list[str], message: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as stopped:
        main(arguments)

    assert stopped.value.code == 2
    assert message in capsys.readouterr().err


def test_a_soak_that_found_enough_ends(tmp_path: Path) -> None:
    trial = Trial("kill", tmp_path, seed=1, rounds=1_000)
    for _ in trial.rounds():
        trial.fault("again")

    assert len(trial.faults) == trial.verdict().rounds == MOST_FAULTS


def test_a_round_is_decided_alike_whichever_was_the_first(tmp_path: Path) -> None:
    whole, late = (Trial("kill", tmp_path, seed=1, rounds=5, first=first) for first in (1, 4))
    drawn = {number: whole.chance.random() for number in whole.rounds()}

    assert {number: late.chance.random() for number in late.rounds() if number in drawn} == {
        number: drawn[number] for number in (4, 5)
    }


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no SIGINT to send")
@pytest.mark.parametrize("moment", ["co-soak-*", "co-soak-*/kill-1", "co-soak-*/kill-1/vault/memories/*.md"])
def test_ctrl_c_at_any_moment_shows_what_was_done_and_leaves_no_folder_and_no_process(
    moment: str, a_short_name: Path
) -> None:
    temporary = a_short_name
    code = (
        "import signal; signal.signal(signal.SIGINT, signal.default_int_handler);"
        "from tests.soak.__main__ import run; run()"
    )
    process = subprocess.Popen(
        [sys.executable, "-c", code, "kill", "--rounds", "100000"],
        cwd=REPOSITORY,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "TMPDIR": str(temporary)},
        start_new_session=True,
    )
    waited = time.monotonic()
    while not list(temporary.glob(moment)) and time.monotonic() - waited < 60:
        time.sleep(0.02)
    os.killpg(process.pid, signal.SIGINT)  # all of them hear it, as in a terminal
    os.killpg(process.pid, signal.SIGINT)
    out, err = process.communicate(timeout=60)

    assert process.returncode == 130, f"{out}\n{err}"
    assert out.splitlines()[1:2] == [] or out.splitlines()[1].split()[0] == "kill"
    told = [line for line in err.splitlines() if not line.startswith("kill ")]  # how far it is, on a slow machine
    assert told == ["stopped; all temporary files are removed"]
    assert list(temporary.iterdir()) == []
    with pytest.raises(ProcessLookupError):
        waited = time.monotonic()
        while time.monotonic() - waited < 30:  # the last of its own session has ended
            os.killpg(process.pid, 0)
            time.sleep(0.05)
