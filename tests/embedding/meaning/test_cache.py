"""A text is embedded once: renamed, restored, rebuilt or copied, its vector is there."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from co_cli.embedding.embedders import Embedders
from co_cli.embedding.space import Embedder, EmbedKind, Vector, VectorSpace
from co_cli.embedding.static import StaticEmbedder
from co_cli.knowledge_index import KnowledgeIndex
from tests.embedding.meaning.inside import Inside
from tests.folder import Vault


class CountingEmbedder:
    """Stands before the static model, with a space of its own; `texts` are the documents it was asked for."""

    def __init__(self) -> None:
        self.texts: list[str] = []
        self._model = StaticEmbedder()

    @property
    def space(self) -> VectorSpace:
        return self._model.space._replace(provider="counting")

    def embed(self, texts: Sequence[str], kind: EmbedKind, seconds: float | None = None) -> list[Vector | None]:
        if kind == "document":
            self.texts += texts
        return self._model.embed(texts, kind)


class CountingEmbedders(Embedders):
    """Chooses that embedder; its vectors are in `docs_vec_2`."""

    def __init__(self) -> None:
        super().__init__("static")
        self.counting = CountingEmbedder()
        self.space = self.counting.space

    def of(self, space: VectorSpace) -> Embedder | None:
        return self.counting if space.key == self.counting.space.key else super().of(space)


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


def test_what_was_embedded_before_is_not_embedded_again(
    vault: Vault, index: KnowledgeIndex, embedders: CountingEmbedders, inside: Inside
) -> None:
    vault.write("memories/oak.md", OAK)
    index.sync()
    assert embedders.counting.texts == ["Oaks\nOaks live for centuries."]
    before = {*inside.vectors(COUNTED).values()}

    def check(what: str) -> None:
        assert len(embedders.counting.texts) == 1, what
        assert set(inside.vectors(COUNTED)) == set(vault.notes()), what
        assert (set(inside.vectors(COUNTED).values()), inside.waiting) == (before, 0), what

    vault.write("memories/oak.md", OAK.replace("importance: 0.2", "importance: 0.9\nreviewed: yes"))
    index.sync()
    check("a field that is not searched")
    vault.path("memories/oak.md").rename(vault.path("memories/trees.md"))
    index.sync()
    check("a rename")
    vault.delete("memories/trees.md")
    index.sync()
    vault.write("memories/oak.md", OAK)
    index.sync()
    check("a deleted note that is restored")
    vault.write("memories/twin.md", OAK)
    index.sync()
    check("a copy")
    index.rebuild()
    check("a rebuild")
    index.reembed()
    check("reembed")


def test_what_is_embedded_is_embedded_again_when_it_changes(
    vault: Vault, index: KnowledgeIndex, embedders: CountingEmbedders, inside: Inside
) -> None:
    vault.write("memories/oak.md", OAK)
    index.sync()
    seen = {*inside.vectors(COUNTED).values()}
    changes = ("centuries", "decades"), ("title: Oaks", "title: Trees"), ("importance: 0.2", "tags: [forest]")

    for number, change in enumerate([*changes, ("importance: 0.2", "aliases: [Quercus]")], 2):
        vault.write("memories/oak.md", OAK.replace(*change))
        index.sync()

        assert len(embedders.counting.texts) == number, change
        seen |= {*inside.vectors(COUNTED).values()}
    assert len(seen) == 5


def test_what_is_around_a_passage_is_cut_between_words(
    vault: Vault, index: KnowledgeIndex, embedders: CountingEmbedders
) -> None:
    around = "context: Green follows after ten minutes"
    vault.write("memories/blue.md", f"---\ntitle: Deploys\ntags: [ops]\n{around}\n---\nBlue takes traffic.\n")
    vault.write("articles/name.md", f"---\ntitle: Names\n{around}\n---\nA body longer than the context around it.\n")
    vault.write(
        "memories/china.md", "---\ntitle: Pool\ncontext: \u84dd\u6c60\u5148\u63a5\u6d41\u91cf\n---\n\u5148\u84dd\n"
    )

    index.sync()

    assert sorted(embedders.counting.texts) == [
        "Deploys\nBlue takes traffic.\nops\nfollows after ten minutes",
        "Names\nA body longer than the context around it.\nGreen follows after ten minutes",
        "Pool\n\u5148\u84dd\n\u6d41\u91cf",
    ]
