"""KnowledgeIndex as its users know it: files in, results out, and one search.db whose tables can be inspected."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import apsw
import pytest

from co_cli.ground.errors import InvalidInputError, KnowledgeError, NoteFileError
from co_cli.ground.hits import Filters
from co_cli.ground.values import OWN_SOURCES
from co_cli.index.sqlite.connection import vector_extension
from co_cli.knowledge_index import IndexSetup, KnowledgeIndex
from co_cli.sources.origin import Origin
from tests.folder import Vault

OAK = "---\ntitle: Oaks\ntags: [tree, tree/old]\ncategory: fact\n---\nOaks live for centuries.\n"


@pytest.fixture
def db_path(data_dir: Path) -> Path:
    return data_dir / "search.db"


@pytest.fixture
def index(db_path: Path, vault: Vault) -> Iterator[KnowledgeIndex]:
    vault.write("memories/oak.md", OAK)
    vault.write("memories/elm.md", "---\ntags: [tree]\n---\nThe elm in the park fell ill.\n")
    vault.write("articles/trees/guide.md", "# Guide\n\nHow to plant an oak.\n\n## Water\n\nA lot.\n")
    opened = KnowledgeIndex(db_path, vault.root)
    yield opened
    opened.close()


def found(index: KnowledgeIndex, query: str, source: str | None = None, tags: list[str] | None = None) -> list[str]:
    return [hit.path.removeprefix(f"{index.root}/") for hit in index.search(query, source, tags)]


def test_each_source_is_synced_and_counted_by_itself(vault: Vault, index: KnowledgeIndex) -> None:
    assert int(index.sync("memory")) == 2
    assert set(index.notes.hashes()) == {"memories/oak.md", "memories/elm.md"}
    assert int(index.sync("memory")) == 0
    assert int(index.sync("article")) == 1
    assert int(index.sync()) == 0
    assert "articles/trees/guide.md" in found(index, "oak")

    vault.write("memories/oak.md", "Oaks fall too.")
    vault.delete("articles/trees/guide.md")
    assert index.sync("article").removed == ["articles/trees/guide.md"]
    assert index.sync("memory").changed == ["memories/oak.md"]


def test_one_file_is_indexed_now_and_the_next_sync_finds_it_done(vault: Vault, index: KnowledgeIndex) -> None:
    index.sync()
    index.index_file("memory", vault.write("memories/yew.md", "The yew is poisonous."))
    vault.write("memories/fir.md", "The fir is evergreen.")
    index.index_file("memory", "memories/fir.md")

    assert (found(index, "poisonous")[0], found(index, "evergreen")[0]) == ("memories/yew.md", "memories/fir.md")
    assert index.sync().touched == 0


def test_remove_stale_forgets_the_notes_of_a_source_that_are_no_longer_there(
    vault: Vault, index: KnowledgeIndex
) -> None:
    index.sync()
    vault.delete("memories/elm.md")

    assert index.remove_stale("memory", [vault.path("memories/oak.md"), "memories/never.md"]) == 1
    assert index.remove_stale("memory", {"memories/oak.md"}) == 0
    assert sorted(index.notes.hashes()) == ["articles/trees/guide.md", "memories/oak.md"]
    assert index.remove_stale("article", []) == 1
    assert found(index, "plant", "article") == []


def test_paths_may_be_absolute_or_start_at_the_vault_or_at_the_current_folder(
    vault: Vault, index: KnowledgeIndex, monkeypatch: pytest.MonkeyPatch
) -> None:
    index.sync()
    before = index.notes.hashes()
    for folder in (vault.root.parent, vault.root, vault.path("memories"), vault.path("articles/trees")):
        monkeypatch.chdir(folder)
        here = Path(os.path.relpath(vault.root))
        for root in (here, vault.root, Path()):
            paths = {str(root / path) for path in before if path.startswith("memories/")}
            assert index.remove_stale("memory", paths) == 0
            index.index_file("memory", root / "memories/oak.md")
            index.index_files([str(root / "memories/elm.md")])
            assert index.notes.hashes() == before

    monkeypatch.chdir(vault.path("memories"))
    vault.write("memories/memories/elm.md", "Another elm.")
    vault.delete("memories/elm.md")
    assert index.forget_files(["oak.md", "memories/elm.md"]) == ["memories/elm.md", "memories/oak.md"]


def test_paths_of_which_none_is_a_known_note_empty_no_index(
    vault: Vault, index: KnowledgeIndex, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    index.sync()
    monkeypatch.chdir(tmp_path)

    with pytest.raises(InvalidInputError, match="none of the paths is a note of the source memory"):
        index.remove_stale("memory", {"copy/memories/oak.md", "copy/memories/elm.md"})
    assert index.notes.state().notes == 3


def test_wrong_arguments_say_what_is_wrong(vault: Vault, index: KnowledgeIndex, tmp_path: Path) -> None:
    index.sync()
    outside = tmp_path / "outside.md"
    outside.write_text("Secret.")

    for wrong, said in (
        (lambda: index.sync("memories"), "memory, article"),
        (lambda: index.search("oak", "web"), "memory, article"),
        (lambda: index.search("oak", limit=0), "at least 1"),
        (lambda: index.remove_stale("memories", []), "memory, article"),
        (lambda: index.remove_stale("memory", "memories/oak.md"), "a list of paths"),
        (lambda: index.index_file("memory", outside), "not inside"),
        (lambda: index.index_file("memory", "../outside.md"), "not a path inside"),
        (lambda: index.index_file("article", "memories/oak.md"), "of the source memory"),
    ):
        with pytest.raises(InvalidInputError, match=said):
            wrong()
    with pytest.raises(NoteFileError, match=r"memories/never\.md"):
        index.index_file("memory", "memories/never.md")
    assert issubclass(InvalidInputError, KnowledgeError)
    assert index.notes.state().notes == 3


def test_a_text_is_embedded_once_and_then_taken_from_the_cache(index: KnowledgeIndex) -> None:
    vector = index.embed("Oaks live for centuries.")
    before = index.notes.cache_state()

    again = index.embed("Oaks live for centuries.")

    after = index.notes.cache_state()
    assert len(vector) == 256
    assert sum(number * number for number in vector) == pytest.approx(1, abs=1e-3)
    assert again == vector
    assert (after.entries, after.misses) == (before.entries, before.misses)
    assert after.hits == before.hits + 1
    assert index.embed("🎉") == [0.0] * 256


@pytest.mark.skipif(vector_extension() is None, reason="sqlite-vec is not installed: pip install sqlite-vec")
def test_search_db_has_the_tables_that_are_documented(index: KnowledgeIndex, db_path: Path) -> None:
    index.sync()

    connection = apsw.Connection(str(db_path))
    tables = {str(name): str(sql) for name, sql in connection.execute("select name, sql from sqlite_master")}
    assert tables.keys() >= {"docs", "docs_fts", "docs_vec", "embedding_cache", "knowledge_files"}
    assert "fts5" in tables["docs_fts"]
    assert all(part in tables["docs_vec"] for part in ("vec0", "int8[256]", "distance_metric=cosine"))
    assert connection.execute("select count(*) from docs").get == 3
    assert connection.execute("select count(*) from knowledge_files").get == 3
    assert connection.execute("select count(*) from embedding_cache").get == 4
    connection.close()


YOURS, ZOO, BOOK = (
    Origin("vault", "/u", tier="user"),
    Origin("folder", "/zoo", "zoo"),
    Origin("folder", "/book", "book"),
)


SOURCES = {
    (): " ".join([*(f"{vault}/{kind}" for vault in ("vault", "u") for kind in OWN_SOURCES), "zoo/folder book/folder"]),
    ("memory",): "vault/memory u/memory",
    ("folder:zoo",): "zoo/folder",
    ("user",): " ".join(f"u/{kind}" for kind in OWN_SOURCES),
    ("article", "folder:book"): "vault/article u/article book/folder",
    ("skill",): "",
}


def test_a_search_sees_exactly_the_sources_it_asks_for(index: KnowledgeIndex) -> None:
    index = index.within(IndexSetup(linked=(YOURS, ZOO, BOOK)))
    with index.engine.writing() as writer:
        for origin in (index.origin, *index.linked):
            writer.add_origin(origin)

    with index.engine.reading() as reader:
        roots = {vault.id: vault.origin.root for vault in reader.origins()}
        views = {wanted: index.notes.view(reader, Filters(sources=wanted)).scope.parts for wanted in SOURCES}

    seen = {
        wanted: " ".join(f"{Path(roots[vault]).name}/{source}" for vault, source in parts)
        for wanted, parts in views.items()
    }
    assert seen == SOURCES
