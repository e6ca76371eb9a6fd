"""co.log: one JSON object a line, bounded, whole whoever writes, without anything that a person wrote."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.command import Co, run_together
from tests.folder import Vault
from tests.mcp.talking import Place

KEY = "sk-proj-" + "a1B2c3D4e5F6g7H8" * 2


def entries(data_dir: Path) -> list[dict[str, Any]]:
    file = data_dir / "co.log"
    return [json.loads(line) for line in file.read_text().splitlines()] if file.exists() else []


def test_at_level_info_each_command_is_one_line_that_never_says_what_was_asked_or_written(
    co: Co, vault: Vault, data_dir: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CO_LOG_LEVEL", "info")
    co("remember", "The zebra lives in the cellar.")
    ran = co("search", "where is the zebra")

    assert "co.log" not in ran.out + ran.err
    ends = [entry for entry in entries(data_dir) if "code" in entry]
    assert [(entry["command"], entry["code"], entry["level"]) for entry in ends] == [
        ("remember", 0, "info"),
        ("search", 0, "info"),
    ]
    assert all({"at", "from", "pid", "text"} <= set(entry) for entry in entries(data_dir))
    assert "zebra" not in (data_dir / "co.log").read_text()
    assert (data_dir / "co.log").stat().st_mode & 0o777 == 0o600


CRASH = "import co_cli.cli.index as index\ndef broken(options): raise {error}\nindex.run_status = broken\n"
RUN = "from co_cli.cli.app import run\nrun()\n"


def crash(co: Co, error: str, *options: str, env: dict[str, str] | None = None) -> subprocess.CompletedProcess[str]:
    """A bug of ours in `co index status`, in a process of its own."""
    code = CRASH.format(error=error) + RUN
    return subprocess.run(
        [sys.executable, "-c", code, "index", "status", *options],
        capture_output=True,
        text=True,
        cwd=co.folder,
        env={**os.environ, **(env or {})},
        check=False,
    )


@pytest.mark.medium
def test_a_crash_leaves_one_line_and_the_path_of_the_log_which_has_the_traceback(co: Co, data_dir: Path) -> None:
    ran = crash(co, "ValueError('no such thing')")

    assert (ran.returncode, ran.stdout) == (3, "")
    assert ran.stderr == f"co: unexpected ValueError: no such thing; the traceback is in {data_dir / 'co.log'}\n"
    [entry] = entries(data_dir)
    assert (entry["level"], entry["error"]) == ("error", "ValueError: no such thing")
    assert entry["trace"][-1].endswith("in broken")
    assert any("in _run_reporting" in line for line in entry["trace"])


@pytest.mark.medium
def test_a_crash_without_a_place_for_a_log_is_one_line_all_the_same(co: Co, data_dir: Path) -> None:
    data_dir.write_text("in the way")

    ran = crash(co, "KeyError('x')")

    assert (ran.returncode, len(ran.stderr.splitlines())) == (3, 1)


@pytest.mark.medium
def test_what_an_error_quotes_and_what_looks_like_a_key_is_not_logged(co: Co, data_dir: Path) -> None:
    note = "Dear diary, today I met somebody whom I shall not name here."
    ran = crash(co, f"RuntimeError('cannot parse ' + repr({note!r}) + ' with {KEY}') from OSError({note * 20!r})")

    text = (data_dir / "co.log").read_text() + ran.stderr
    assert KEY not in text
    assert "whom I shall" not in ran.stderr
    assert len(entries(data_dir)) == 1
    assert len(text) < 6_000
    assert "cannot parse" in text


WRITER = """
import logging, sys
from co_cli.notes.logbook import CommandLog
from co_cli.ground.settings import this_process
this_process.command, this_process.data_dir = "test", sys.argv[1]
log = CommandLog(max_bytes=6_000, backups=200)
sys.stdin.readline()
for number in range(100):
    log.emit(logging.makeLogRecord({"msg": f"{sys.argv[2]} {number}", "levelno": logging.ERROR}))
"""


@pytest.mark.slow
def test_processes_that_write_and_rotate_at_once_tear_and_lose_no_line(tmp_path: Path) -> None:
    run_together(WRITER, *((tmp_path, number) for number in range(4)))

    files = [path for path in tmp_path.glob("co.log*") if path.suffix != ".lock"]
    lines = [json.loads(line)["text"] for path in files for line in path.read_text().splitlines()]
    assert len(files) > 3
    assert max(path.stat().st_size for path in files) <= 6_000
    assert sorted(lines) == sorted(f"{writer} {number}" for writer in range(4) for number in range(100))


@pytest.mark.medium
def test_a_crash_in_a_tool_reaches_the_mcp_client_as_one_line_with_the_path_of_the_log(tmp_path: Path) -> None:
    place = Place(tmp_path)
    place.vault.write("memories/oak.md", "Oaks live long.")
    (tmp_path / "sitecustomize.py").write_text(
        "import co_cli.tools.toolbox as toolbox\n"
        "def broken(self, name, arguments): raise LookupError('out of reach')\n"
        "toolbox.Toolbox.call = broken\n"
    )
    server = place.start(PYTHONPATH=str(tmp_path))
    server.initialise()
    answer = server.call("recall_memory", query="oaks")
    server.end()

    assert answer["isError"]
    text = answer["content"][0]["text"]
    assert "unexpected LookupError: out of reach" in text
    [log] = list(tmp_path.rglob("co.log"))
    assert f"the traceback is in {log}" in text
    entry = [json.loads(line) for line in log.read_text().splitlines()][-1]
    assert (entry["command"], entry["error"]) == ("mcp", "LookupError: out of reach")
