"""The limit of watched folders, and a drive that is unmounted: each in a Linux namespace of its own."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

SETUP = """
import os, sys, time
from co_cli.knowledge_base import KnowledgeBase
from co_cli.service import freshness
from co_cli.service.freshness import Batch, Watcher

vault, data, news = sys.argv[1], sys.argv[2], []
def until(true):
    end = time.monotonic() + 120
    while not true():
        assert time.monotonic() < end, news
        time.sleep(0.02)
def events():
    return [one.event for one in news if not isinstance(one, Batch)]
def write(path, text):
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "w") as stream:
        stream.write(text)
"""

TOO_MANY_FOLDERS = """
for number in range(10):
    write(f"{vault}/articles/{number}/oak.md", "Oaks.")
write("/proc/sys/user/max_inotify_watches", "5")
freshness.SAFETY = 0.3
with KnowledgeBase.open(vault, data) as kb, Watcher(kb, news.append) as watcher:
    until(lambda: events() == ["polling"])
    assert "OS file watch limit reached" in news[0].text, news
    write(f"{vault}/articles/7/elm.md", "Elms.")
    until(lambda: kb.search("elms", backend="fts5").hits)
    assert events() == ["polling"], news
"""

UNMOUNTED = """
import subprocess
def run(*words):
    subprocess.run(words, check=True)
drive = vault + "-drive"
os.makedirs(drive)
run("mount", "-t", "tmpfs", "none", drive)
write(f"{drive}/memories/oak.md", "Oaks.")
run("mount", "--bind", drive, vault)
freshness.SAFETY = 0.2
with KnowledgeBase.open(vault, data) as kb, Watcher(kb, news.append) as watcher:
    watcher.synced.wait()
    run("umount", "--lazy", vault)
    until(lambda: any(report.kept for one in news if isinstance(one, Batch) for _, report in one.reports))
    syncs = watcher.syncs
    until(lambda: watcher.syncs > syncs)
    assert os.listdir(vault) == []
    assert kb.search("oaks", backend="fts5").hits, "what was indexed is kept"
    write(f"{drive}/memories/elm.md", "Elms.")
    run("mount", "--bind", drive, vault)
    until(lambda: kb.search("elms", backend="fts5").hits)
    freshness.SAFETY = 60
    write(f"{vault}/memories/birch.md", "Birches.")
    until(lambda: kb.search("birches", backend="fts5").hits)
"""


@pytest.fixture(scope="module")
def namespace() -> tuple[str, ...]:
    """Runs a command as root over limits and mounts of its own."""
    words = ("unshare", "--user", "--map-root-user", "--mount")
    if sys.platform != "linux" or not shutil.which("unshare"):
        pytest.skip("only Linux has namespaces, and `unshare` to make them")
    made = subprocess.run([*words, "mount", "-t", "tmpfs", "none", "/mnt"], capture_output=True, check=False)
    if made.returncode:
        pytest.skip(f"this machine does not let people make namespaces: {made.stderr.decode().strip()}")
    return words


def run_apart(namespace: tuple[str, ...], folder: Path, script: str) -> None:
    (folder / "vault").mkdir()
    words = [*namespace, sys.executable, "-c", SETUP + script, str(folder / "vault"), str(folder / "data")]
    ran = subprocess.run(words, capture_output=True, text=True, timeout=60, check=False)
    assert ran.returncode == 0, ran.stderr


def test_beyond_the_system_s_limit_of_watched_folders_files_are_polled(
    namespace: tuple[str, ...], tmp_path: Path
) -> None:
    run_apart(namespace, tmp_path, TOO_MANY_FOLDERS)


def test_the_notes_of_a_drive_that_is_unmounted_while_it_is_watched_are_kept(
    namespace: tuple[str, ...], tmp_path: Path
) -> None:
    run_apart(namespace, tmp_path, UNMOUNTED)
