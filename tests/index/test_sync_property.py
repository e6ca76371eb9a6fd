"""Whatever happened to the files, and whenever a sync was killed: the next sync equals an index made from scratch."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from co_cli.embedding.embedders import Embedders
from co_cli.index.sqlite.sqlite_engine import SqliteEngine
from co_cli.knowledge_index import KnowledgeIndex
from tests.folder import Vault
from tests.index.contents import contents, contents_from_scratch

PATHS = st.sampled_from(
    [
        "memories/oak.md",
        "memories/elm.md",
        "articles/oak.md",
        "articles/trees/ash.md",
        "inbox/ä.markdown",
        "root.md",
        ".hidden/x.md",
    ]
)
TEXTS = st.sampled_from(
    [
        b"Oaks live long.",
        b"Elms fall ill.",
        b"---\ntitle: Ash\ntags: [tree, wood/hard]\naliases: [esche]\n---\n# Ash\n\nText.\n\n## Leaves\n\nMany.\n",
        b"---\ntitle: [broken\n---\nStill a note.",
        b"---\nkind: memory\ncategory: fact\n---\nSmall.",
        "# 木\n\n東京の木は高い。".encode(),
        b"\0binary\0",
        b"",
    ]
)
OPERATIONS = st.one_of(
    st.tuples(st.just("write"), PATHS, TEXTS),
    st.tuples(st.just("write and settle"), PATHS, TEXTS),
    st.tuples(st.just("delete"), PATHS, st.none()),
    st.tuples(st.just("move"), PATHS, PATHS),
    st.tuples(st.just("index"), PATHS, st.none()),
    st.tuples(st.just("ignore"), st.just(".coignore"), st.sampled_from([b"articles/\n", b"*.markdown\n", b""])),
    st.tuples(st.just("sync"), st.none(), st.none()),
)


def apply(vault: Vault, index: KnowledgeIndex, verb: str, path: str | None, argument: str | bytes | None) -> None:
    if verb == "sync":
        index.sync()
        return
    assert path is not None
    file = vault.path(path)
    if verb in ("write", "write and settle", "ignore"):
        assert isinstance(argument, bytes)
        vault.write(path, argument)
        if verb == "write and settle":
            os.utime(file, (1_700_000_000, 1_700_000_000))
    elif verb == "move" and file.exists():
        assert isinstance(argument, str)
        vault.path(argument).parent.mkdir(parents=True, exist_ok=True)
        file.replace(vault.path(argument))
    elif verb == "delete" and file.exists():
        file.unlink()
    elif verb == "index" and file.exists() and not path.startswith("."):
        index.index_file(None, path)


@pytest.mark.slow
@pytest.mark.medium
@settings(max_examples=25, deadline=None)
@given(operations=st.lists(OPERATIONS, max_size=15))
def test_a_sync_after_any_sequence_of_changes_equals_an_index_made_from_scratch(
    operations: list[tuple[str, str | None, str | bytes | None]],
) -> None:
    with tempfile.TemporaryDirectory() as folder:
        vault = Vault(Path(folder).resolve() / "vault")
        engine = SqliteEngine(str(Path(folder, "data", "search.db")))
        index = KnowledgeIndex(engine, vault.root, embedders=Embedders("none"))
        for verb, path, argument in operations:
            apply(vault, index, verb, path, argument)

        report = index.sync()

        held = contents(engine, vault.root)
        assert held == contents_from_scratch(vault, Path(folder, "other"))
        assert len(held["notes"]) == report.unchanged + report.touched - len(report.removed)
        engine.close()


SYNC = """
import signal, sys
from co_cli.embedding.embedders import Embedders
from co_cli.knowledge_index import KnowledgeIndex
signal.setitimer(signal.ITIMER_PROF, float(sys.argv[3]))  # of its own time, however busy the machine is
KnowledgeIndex(sys.argv[1], sys.argv[2], embedders=Embedders("none")).sync()
"""


@pytest.mark.slow
@pytest.mark.skipif(os.name == "nt", reason="there is no signal that kills after some time")
def test_a_sync_that_was_killed_at_any_point_is_finished_by_the_next(vault: Vault, tmp_path: Path) -> None:
    chance = random.Random(3)
    path = tmp_path / "data" / "search.db"
    killed_midway = 0
    for number in range(600):
        vault.write(
            f"memories/{number // 150}/{number}.md", f"Note {number} about the {chance.choice(['oak', 'elm', 'ash'])}."
        )
    for round_ in range(4):
        if round_:
            for number in chance.sample(range(600), 300):
                file = vault.path(f"memories/{number // 150}/{number}.md")
                if number % 7 == 0 and file.exists():
                    file.unlink()
                else:
                    file.write_text(f"Note {number} in round {round_}.")
        seconds = chance.uniform(0.001, 0.15)
        ran = subprocess.run([sys.executable, "-c", SYNC, str(path), str(vault.root), str(seconds)], check=False)
        killed_midway += ran.returncode == -signal.SIGPROF
    assert killed_midway >= 2, "the kills came too late to prove anything"

    engine = SqliteEngine(str(path))
    KnowledgeIndex(engine, vault.root, embedders=Embedders("none")).sync()

    assert contents(engine, vault.root) == contents_from_scratch(vault, tmp_path / "other")
    engine.close()
