"""A file that is still being written is not indexed before it is complete."""

from __future__ import annotations

import os
import time
from itertools import pairwise

import pytest

from co_cli.knowledge_base import KnowledgeBase
from co_cli.service import watching
from tests.vault import Vault
from tests.watching.conftest import Heard, Watch


def test_a_file_that_is_written_slowly_is_indexed_once_and_whole(
    vault: Vault, kb: KnowledgeBase, watch: Watch, heard: Heard
) -> None:
    watch(kb, heard)
    early: list[str] = []
    moments: list[float] = []
    vault.write("memories/other.md", "Another note is saved meanwhile.")

    path, started = vault.path("articles/book.md"), time.monotonic()
    while time.monotonic() - started < 2.5:
        with path.open("a") as stream:
            stream.write(f"Chapter {len(moments)} is about zqx{len(moments)}.\n" + "Long ago. " * 500 + "\n\n")
        moments.append(time.monotonic())
        early.extend(hit.ref for hit in kb.search("zqx0", backend="fts5").hits)
        time.sleep(watching.QUIET / 5)
    heard.until(lambda: "articles/book.md" in heard.touched("added"))
    if max(later - sooner for sooner, later in pairwise(moments)) > watching.QUIET / 2:
        pytest.skip("the machine is so busy that the writer itself paused")

    assert early == [], "parts of it were indexed while it was written"
    assert heard.touched().count("articles/book.md") == 1
    assert "memories/other.md" in heard.touched("added")
    for number in (0, len(moments) - 1):
        assert kb.search(f"zqx{number}", backend="fts5").hits


def test_a_file_that_never_stops_changing_is_indexed_after_a_while(
    vault: Vault, kb: KnowledgeBase, watch: Watch, heard: Heard, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(watching, "LONGEST_HOLD", 0.5)
    watch(kb, heard)
    path = vault.write("memories/log.md", "Line zqx.")

    end = time.monotonic() + 60
    while "memories/log.md" not in heard.touched("added"):
        assert time.monotonic() < end
        os.utime(path)
        time.sleep(watching.QUIET / 10)

    assert kb.search("zqx", backend="fts5").hits
