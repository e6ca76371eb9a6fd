"""The limit of watched folders, in a Linux namespace of its own."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

NAMESPACE = ("unshare", "--user", "--map-root-user")
SCRIPT = """
import os, sys, time
from co_cli.entrance.knowledge_base import KnowledgeBase
from co_cli.searching import freshness
from co_cli.searching.freshness import Batch, Watcher

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


@pytest.mark.medium
def test_beyond_the_system_s_limit_of_watched_folders_files_are_polled(tmp_path: Path) -> None:
    if sys.platform != "linux" or not shutil.which("unshare"):
        pytest.skip("only Linux has namespaces, and `unshare` to make them")
    made = subprocess.run([*NAMESPACE, "true"], capture_output=True, check=False)
    if made.returncode:
        pytest.skip(f"this machine does not let people make namespaces: {made.stderr.decode().strip()}")
    (tmp_path / "vault").mkdir()

    words = [*NAMESPACE, sys.executable, "-c", SCRIPT, str(tmp_path / "vault"), str(tmp_path / "data")]
    ran = subprocess.run(words, capture_output=True, text=True, timeout=300, check=False)

    assert ran.returncode == 0, ran.stderr
