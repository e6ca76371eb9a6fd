"""System limits, and drives that come and go: each in a Linux namespace of its own."""

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
    until(lambda: kb.search("oaks", backend="fts5").hits and watcher.synced.is_set())
    run("umount", "--lazy", vault)
    until(lambda: any(report.kept for one in news for _, report in one.reports))
    assert os.listdir(vault) == []
    time.sleep(0.5)
    assert kb.search("oaks", backend="fts5").hits, "what was indexed is kept"
    write(f"{drive}/memories/elm.md", "Elms.")
    run("mount", "--bind", drive, vault)
    until(lambda: kb.search("elms", backend="fts5").hits)
    write(f"{vault}/memories/birch.md", "Birches.")
    until(lambda: kb.search("birches", backend="fts5").hits)
"""


@pytest.fixture(scope="module")
def namespace() -> tuple[str, ...]:
    """Where one is root over limits and mounts of one's own."""
    words = ("unshare", "--user", "--map-root-user", "--mount")
    if sys.platform != "linux" or not shutil.which("unshare"):
        pytest.skip("only Linux has namespaces, and `unshare` to make them")
    made = subprocess.run([*words, "sh", "-c", "mount -t tmpfs none /mnt"], capture_output=True, check=False)
    if made.returncode:
        pytest.skip(f"this machine does not let people make namespaces: {made.stderr.decode().strip()}")
    return words


@pytest.mark.parametrize("script", [TOO_MANY_FOLDERS, UNMOUNTED], ids=["folders", "drive"])
def test_the_index_keeps_up_all_the_same(namespace: tuple[str, ...], tmp_path: Path, script: str) -> None:
    vault = tmp_path / "vault"
    vault.mkdir()
    words = [*namespace, sys.executable, "-c", SETUP + script, str(vault), str(tmp_path / "data")]

    ran = subprocess.run(words, capture_output=True, text=True, timeout=60, check=False)

    assert ran.returncode == 0, ran.stderr
