"""A text is embedded once: renamed, restored, rebuilt or copied to another vault, its vector is there."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from co_cli.index.cache import evict
from co_cli.index.connection import Database, vector_extension
from co_cli.index.knowledge_index import KnowledgeIndex
from tests.command import Co
from tests.meaning.conftest import Open
from tests.meaning.counting import CountingEmbedders
from tests.meaning.inside import Inside
from tests.meaning.servers import TurnedOllama
from tests.vault import Vault

COUNTED = "docs_vec_2"
"""The table of the space that is cached; the first is the embedded model's."""
OAK = "---\ntitle: Oaks\nimportance: 0.2\n---\nOaks live for centuries.\n"


@pytest.fixture
def embedders() -> CountingEmbedders:
    return CountingEmbedders()


@pytest.fixture
def database(data_dir: Path) -> Iterator[Database]:
    opened = Database(str(data_dir / "search.db"), vector_extension())
    yield opened
    opened.close()


@pytest.fixture
def index(database: Database, vault: Vault, embedders: CountingEmbedders) -> KnowledgeIndex:
    return KnowledgeIndex(database, str(vault.root), embedders=embedders)


def rename(vault: Vault, index: KnowledgeIndex) -> None:
    vault.path("memories/oak.md").rename(vault.path("memories/trees.md"))
    index.sync()


def make_important(vault: Vault, index: KnowledgeIndex) -> None:
    vault.write("memories/oak.md", OAK.replace("0.2", "0.9").replace("---\nOaks live", "reviewed: yes\n---\nOaks live"))
    index.sync()


def delete_and_restore(vault: Vault, index: KnowledgeIndex) -> None:
    vault.delete("memories/oak.md")
    index.sync()
    vault.write("memories/oak.md", OAK)
    index.sync()


def rebuild(vault: Vault, index: KnowledgeIndex) -> None:
    index.rebuild()


def reembed(vault: Vault, index: KnowledgeIndex) -> None:
    index.reembed()


def copy(vault: Vault, index: KnowledgeIndex) -> None:
    vault.write("memories/twin.md", OAK)
    index.sync()


@pytest.mark.parametrize("change", [rename, make_important, delete_and_restore, rebuild, reembed, copy])
def test_what_was_embedded_before_is_not_embedded_again(
    vault: Vault,
    index: KnowledgeIndex,
    embedders: CountingEmbedders,
    inside: Inside,
    change: Callable[[Vault, KnowledgeIndex], None],
) -> None:
    vault.write("memories/oak.md", OAK)
    index.sync()
    assert embedders.counting.texts == ["Oaks\nOaks live for centuries."]
    [before] = inside.vectors(COUNTED).values()

    change(vault, index)

    assert len(embedders.counting.texts) == 1
    assert set(inside.vectors(COUNTED)) == set(vault.notes())
    assert set(inside.vectors(COUNTED).values()) == {before}
    assert inside.waiting == 0


@pytest.mark.parametrize(
    "text",
    [
        OAK.replace("centuries", "decades"),
        OAK.replace("title: Oaks", "title: Trees"),
        OAK.replace("importance: 0.2", "tags: [forest]"),
        OAK.replace("importance: 0.2", "aliases: [Quercus]"),
    ],
    ids=["body", "title", "tags", "aliases"],
)
def test_what_is_embedded_is_embedded_again_when_it_changes(
    vault: Vault, index: KnowledgeIndex, embedders: CountingEmbedders, inside: Inside, text: str
) -> None:
    vault.write("memories/oak.md", OAK)
    index.sync()
    [before] = inside.vectors(COUNTED).values()

    vault.write("memories/oak.md", text)
    index.sync()

    assert len(embedders.counting.texts) == 2
    assert list(inside.vectors(COUNTED).values()) != [before]


def test_the_same_text_in_a_second_vault_is_not_embedded_again(
    vault: Vault,
    index: KnowledgeIndex,
    database: Database,
    embedders: CountingEmbedders,
    inside: Inside,
    tmp_path: Path,
) -> None:
    vault.write("memories/oak.md", OAK)
    index.sync()
    other = Vault(tmp_path / "other")
    other.write("memories/elsewhere.md", OAK)

    KnowledgeIndex(database, str(other.root), embedders=embedders).sync()

    assert len(embedders.counting.texts) == 1
    assert len(inside.vectors(COUNTED)) == 2


def test_a_text_without_meaning_is_asked_for_once(
    vault: Vault, index: KnowledgeIndex, embedders: CountingEmbedders, inside: Inside
) -> None:
    vault.write("memories/party.md", "---\ntitle: 🎉\n---\n🎉🎉🎉\n")
    index.sync()
    index.rebuild()

    assert len(embedders.counting.texts) == 1
    assert inside.vectors(COUNTED) == {}
    assert inside.value("select count(*) from embedding_cache where vector is null") == 1


def test_reembed_with_fresh_does_not_ask_the_cache(
    vault: Vault, index: KnowledgeIndex, embedders: CountingEmbedders, inside: Inside
) -> None:
    vault.write("memories/oak.md", OAK)
    index.sync()

    index.reembed(fresh=True)

    assert len(embedders.counting.texts) == 2
    assert inside.value("select count(*) from embedding_cache") == 1


def test_two_spaces_cache_the_same_text_each_for_itself(
    open_kb: Open, vault: Vault, ollama: TurnedOllama, inside: Inside
) -> None:
    vault.write("memories/oak.md", OAK)
    for model in ("gemma", "nomic"):
        open_kb("ollama", model, ollama.url).sync()

    rows = inside.rows("select model, count(*) from embedding_cache join spaces on spaces.id = space_id group by 1")
    assert rows == [("gemma", 1), ("nomic", 1)]


def test_nothing_of_the_embedded_model_is_cached_and_nothing_of_an_older_search_db_is_carried_over(
    open_kb: Open, vault: Vault, inside: Inside
) -> None:
    """It makes a vector as fast as one is read, and a vector takes more than the note it is of."""
    vault.write("memories/oak.md", OAK)
    kb = open_kb()
    kb.sync()
    assert (len(inside.vectors()), inside.value("select count(*) from embedding_cache")) == (1, 0)

    inside.rows("insert into spaces values (7, 'ollama', 'gemma', 256, '1', 0.7, -1, 0, 0)")
    inside.rows("insert into embedding_cache values (1, x'01', x'02', 1), (7, x'01', x'02', 1)")
    kb.rebuild()

    assert inside.rows("select space_id from embedding_cache") == [(7,)]


def test_what_was_used_least_recently_is_evicted_first(
    vault: Vault, index: KnowledgeIndex, database: Database, embedders: CountingEmbedders, inside: Inside
) -> None:
    for name in ("oak", "elm", "yew"):
        vault.write(f"memories/{name}.md", f"The {name} is a tree.")
        index.sync()
    vault.path("memories/oak.md").rename(vault.path("articles/oak.md"))  # uses the oldest again
    index.sync()

    with database.writing() as connection:
        evict(connection, largest=2)
    assert inside.value("select count(*) from embedding_cache") == 2
    asked = len(embedders.counting.texts)
    index.reembed()

    assert embedders.counting.texts[asked:] == ["Elm\nThe elm is a tree."]


def test_a_full_cache_stays_at_its_bound_while_a_vault_is_embedded(
    vault: Vault, index: KnowledgeIndex, inside: Inside, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("co_cli.index.cache.LARGEST", 5)
    for number in range(12):
        vault.write(f"memories/{number}.md", f"Tree number {number}.")

    index.sync()

    assert inside.value("select count(*) from embedding_cache") == 5
    assert len(inside.vectors(COUNTED)) == 12


def test_status_shows_size_and_hit_rate(
    co: Co, vault: Vault, ollama: TurnedOllama, monkeypatch: pytest.MonkeyPatch, model: str
) -> None:
    for name, value in (("PROVIDER", "ollama"), ("MODEL", model), ("HOST", ollama.url)):
        monkeypatch.setenv(f"CO_KNOWLEDGE_EMBEDDING_{name}", value)
    vault.write("memories/oak.md", OAK)
    vault.write("memories/elm.md", "The elm is a tree.")
    vault.write("memories/yew.md", "The yew is a tree.")
    co("sync")
    first = co("status", "--json").json
    assert (first["cache_entries"], first["cache_bytes"], first["cache_hit_rate"]) == (3, 3 * 1024, 0.0)

    vault.path("memories/oak.md").rename(vault.path("memories/trees.md"))
    co("sync")

    assert co("status", "--json").json["cache_hit_rate"] == 0.25
    assert "3 vectors (3.1 KB), 25% of look-ups found" in " ".join(co("status").out.split())
