"""Saves in a git repository: no commit has their temporary files, and git does not stumble over them."""

from __future__ import annotations

import os
import shutil
import subprocess
import time
from pathlib import Path

import pytest

from tests.command import Co, commit, git
from tests.folder import Vault


def add_all(folder: Path) -> list[str]:
    """What `git add -A` stages."""
    git(folder, "add", "-A")
    listed = subprocess.run(["git", "ls-files"], cwd=folder, check=True, capture_output=True, text=True).stdout
    return listed.splitlines()


@pytest.fixture(params=["repository", "folder of a repository", "worktree"])
def repository(request: pytest.FixtureRequest, vault: Vault, tmp_path: Path) -> Path:
    """Where the vault is in a git repository."""
    top = vault.root if request.param != "folder of a repository" else tmp_path
    vault.write("memories/oak.md", "Oaks live long.")
    if request.param == "worktree":
        main = Vault(tmp_path / "main")
        main.write("memories/oak.md", "Oaks live long.")
        git(main.root, "init", "-q")
        commit(main.root, "Begin")
        shutil.rmtree(vault.root)
        git(main.root, "worktree", "add", "-q", str(vault.root))
    else:
        git(top, "init", "-q")
        (top / ".git" / "info" / "exclude").write_text("/data\n/home\n")
    return top


def test_git_never_sees_a_temporary_file(
    co: Co, vault: Vault, repository: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    staged: list[list[str]] = []
    fsync = os.fsync

    def fsync_while_git_adds(handle: int) -> None:
        """Called when a temporary file is complete, before it gets its name."""
        staged.append(add_all(repository))
        fsync(handle)

    monkeypatch.setattr(os, "fsync", fsync_while_git_adds)
    for command in (
        ("remember", "Elms live long."),
        ("edit", "oak", "--set", "kind=tree"),
        ("edit", "oak", "--body", "Old."),
    ):
        assert co(*command).code == 0, command

    assert len(staged) > 3
    inside = os.path.relpath(vault.root, repository)
    notes = {os.path.normpath(f"{inside}/memories/{name}.md") for name in ("oak", "elms-live-long")}
    assert {path for paths in staged for path in paths if ".trash" not in path} == notes


def test_what_a_killed_writer_leaves_there_is_swept_to_the_trash(
    co: Co, vault: Vault, repository: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    co("remember", "Elms live long.")
    [hidden] = [folder for folder in (repository / ".git" / "co-tmp", repository / ".co-tmp") if folder.is_dir()]
    left = hidden / ".co-tmp-1f-2e3d4c-abcdef"
    left.write_text("An editor saved this.")
    now = time.time
    monkeypatch.setattr(time, "time", lambda: now() + 7200)

    assert co("index", "sync").code == 0

    assert not left.exists()
    assert [vault.read(path) for path in vault.files() if "recovered-" in path] == ["An editor saved this."]
