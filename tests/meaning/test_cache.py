"""A text is embedded once: renamed, restored, rebuilt or copied to another vault, its vector is there."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from co_cli.knowledge_index import KnowledgeIndex
from tests.meaning.counting import CountingEmbedders
from tests.meaning.inside import Inside
from tests.vault import Vault

COUNTED = "docs_vec_2"
"""The table of the space that is cached; the first is the embedded model's."""
OAK = "---\ntitle: Oaks\nimportance: 0.2\n---\nOaks live for centuries.\n"


@pytest.fixture
def embedders() -> CountingEmbedders:
    return CountingEmbedders()


@pytest.fixture
def index(data_dir: Path, vault: Vault, embedders: CountingEmbedders) -> Iterator[KnowledgeIndex]:
    opened = KnowledgeIndex(data_dir / "search.db", vault.root, embedders=embedders)
    yield opened
    opened.close()


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
    embedders: CountingEmbedders,
    inside: Inside,
    tmp_path: Path,
) -> None:
    vault.write("memories/oak.md", OAK)
    index.sync()
    other = Vault(tmp_path / "other")
    other.write("memories/elsewhere.md", OAK)

    KnowledgeIndex(index.engine, other.root, embedders=embedders).sync()

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
    assert inside.value("select count(*) from embedding_cache where vector is null and space_id = 2") == 1
