"""Opening what may not be a file: in a process of its own, so that waiting for a pipe fails and does not hang."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from co_cli.ground.paths import open_regular
from co_cli.notes.files import open_private
from tests.command import Co
from tests.folder import Vault

OPEN = """
import sys
from co_cli.ground.paths import open_regular
try:
    open_regular(sys.argv[1], follow=sys.argv[2] == "follow").read(10)
except OSError as error:
    sys.exit(error.strerror)
"""
PATIENCE = 30
"""Seconds: a hundred times what it takes."""
pytestmark = pytest.mark.skipif(os.name == "nt", reason="Windows has no pipes and devices among its files")


def opened(path: Path, follow: str = "follow") -> str:
    """Why it was not opened; nothing if it was."""
    ran = subprocess.run(
        [sys.executable, "-S", "-c", OPEN, str(path), follow],
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        check=False,
        cwd=Path(__file__).parents[2],
    )
    return ran.stderr.strip()


def test_a_pipe_that_nobody_writes_to_is_refused_and_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "link").symlink_to(tmp_path / "pipe")

    assert opened(tmp_path / "pipe") == opened(tmp_path / "link") == "not a regular file"
    assert opened(tmp_path / "pipe", "itself") == "not a regular file"


def test_a_device_and_a_folder_are_refused() -> None:
    with pytest.raises(OSError, match="not a regular file"):
        open_regular("/dev/zero")
    with pytest.raises(IsADirectoryError, match="a folder"):
        open_regular("/")


def test_a_link_is_followed_only_if_that_is_wanted(tmp_path: Path) -> None:
    (tmp_path / "oak.md").write_text("Oaks live long.")
    (tmp_path / "link.md").symlink_to(tmp_path / "oak.md")

    with open_regular(str(tmp_path / "link.md")) as stream:
        assert stream.read() == b"Oaks live long."
    with pytest.raises(OSError, match=r"symbolic link|not a regular file"):
        open_regular(str(tmp_path / "link.md"), follow=False)


@pytest.mark.parametrize("umask", [0o000, 0o277], ids=["open to all", "closed to you"])
def test_what_co_keeps_about_you_is_yours_alone_whatever_the_umask(
    co: Co, vault: Vault, data_dir: Path, tmp_path: Path, umask: int
) -> None:
    vault.write("memories/oak.md", "Oaks live long.")
    (tmp_path / "more").mkdir()
    place = data_dir / "inside"
    before = os.umask(umask)
    try:
        for command in (
            ["index", "sync"],
            ["add", str(tmp_path / "more")],
            ["config", "trust", str(vault.root)],
            ["config", "set", "capture", "keep"],
            ["token", "create", "--role", "read"],
            ["data", "backup"],
            ["search", "oaks"],
        ):
            ran = co(*command, "--data-dir", str(place))
            assert ran.code == 0, ran.err
    finally:
        os.umask(before)
    files = [file for folder in (place, co.folder) for file in folder.rglob("*") if file.suffix != ".lock"]
    kept = {file.name: file.stat().st_mode & 0o777 for file in files if file.is_file()}
    assert {"activity.db", "activity.spool", "last-search.json", "settings.toml", "sources.toml", "trusted"} <= {*kept}
    assert {*kept.values()} == {0o600}, kept
    assert place.stat().st_mode & 0o777 == 0o700


def test_the_permissions_of_what_is_no_file_stay(tmp_path: Path) -> None:
    """A chat that keeps no history writes to /dev/null, which root could close to all others."""
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    pipe.chmod(0o666)

    os.close(open_private(pipe, os.O_RDWR))

    assert pipe.stat().st_mode & 0o777 == 0o666
