"""What a search may see: the vault, those beside it, and of each only the sources that were asked for."""

from __future__ import annotations

from pathlib import Path

import pytest

from co_cli.index.filters import reach_of
from co_cli.knowledge_base import KnowledgeBase
from co_cli.sources.origin import Origin
from tests.vault import Vault

VAULT = Origin("vault", "/v")
YOURS = Origin("vault", "/u", tier="user")
ZOO = Origin("folder", "/zoo", "zoo")
BOOK = Origin("folder", "/book", "book")
ORIGINS = [(1, VAULT), (2, YOURS), (3, ZOO), (4, BOOK)]


@pytest.mark.parametrize(
    ("wanted", "parts"),
    [
        ((), [(1, "memory"), (1, "article"), (2, "memory"), (2, "article"), (3, "folder"), (4, "folder")]),
        (("memory",), [(1, "memory"), (2, "memory")]),
        (("folder",), [(3, "folder"), (4, "folder")]),
        (("folder:zoo",), [(3, "folder")]),
        (("user",), [(2, "memory"), (2, "article")]),
        (("article", "folder:book"), [(1, "article"), (2, "article"), (4, "folder")]),
        (("memory", "user"), [(1, "memory"), (2, "memory"), (2, "article")]),
        (("skill",), []),
    ],
)
def test_a_reach_has_exactly_the_wanted_parts(wanted: tuple[str, ...], parts: list[tuple[int, str]]) -> None:
    assert list(reach_of(ORIGINS, wanted).parts) == parts


def test_the_condition_keeps_exactly_the_wanted_notes(vault: Vault, data_dir: Path, tmp_path: Path) -> None:
    vault.write("memories/zebra.md", "Zebra one.")
    vault.write("articles/zebra.md", "Zebra two.")
    folder = tmp_path / "zoo"
    folder.mkdir()
    (folder / "zebra.txt").write_text("Zebra three.")
    with KnowledgeBase.open(vault.root, data_dir) as kb:
        kb.add_source(str(folder))
        kb.sync()

        def refs(*sources: str) -> set[str]:
            return {hit.ref.split("#")[0] for hit in kb.search("zebra", sources=sources).hits}

        assert refs() == {"memory:zebra", "article:zebra", "folder:zoo/zebra.txt"}
        assert refs("memory", "folder") == {"memory:zebra", "folder:zoo/zebra.txt"}
        assert refs("article") == {"article:zebra"}


@pytest.mark.parametrize("resident", [False, True], ids=["vec0", "numpy"])
def test_a_search_over_memories_reads_no_other_vectors(
    vault: Vault, data_dir: Path, tmp_path: Path, resident: bool
) -> None:
    vault.write("memories/zebra.md", "Zebras have stripes.")
    vault.write("articles/zoo.md", "Stripes of every kind.")
    folder = tmp_path / "zoo"
    folder.mkdir()
    (folder / "list.txt").write_text("Striped animals.")
    with KnowledgeBase.open(vault.root, data_dir) as kb:
        kb.add_source(str(folder))
        kb.sync()
        if resident:
            from co_cli.index.resident import ResidentVectors

            kb.index._resident = ResidentVectors()
        asked: list[object] = []

        def note(_: object, statement: str, bindings: object) -> bool:
            if "docs_vec" in statement and isinstance(bindings, dict) and "part" in bindings:
                asked.append(bindings["part"])
            return True

        with kb.index.snapshot() as (connection, number):
            connection.exec_trace = note
            hits = kb.search("striped animals", sources=["memory"]).hits
            connection.exec_trace = None

    assert [hit.ref for hit in hits] == ["memory:zebra"]
    assert set(asked) == {f"{number}/memory"}
