"""What a filter lets through does not depend on how it is written, nor on how JSON writes it."""

from __future__ import annotations

import pytest

from co_cli.knowledge_base import KnowledgeBase
from tests.vault import Vault

NOTES = {
    "street": "category: Straße\ntags: [größe/klein, 部署]\nplace: 'Straße 7'\nunit: 5 K\nweight: 0.70",
    "plain": "category: Decision\ntags: [Deploy/Blue, x1]\nplace: Main Street\ndone: true\nweight: 1000.0\n"
    "own-key.a: [Ann, Bob]",
    "quoted": 'category: other\ntags: ["it\'s", c++]\nplace: \'he said "so"\'\ndone: false\nweight: 12',
}


@pytest.fixture
def filtered(vault: Vault, kb: KnowledgeBase) -> KnowledgeBase:
    for name, frontmatter in NOTES.items():
        vault.write(f"memories/{name}.md", f"---\n{frontmatter}\n---\nOaks live long.\n")
    kb.sync()
    return kb


@pytest.mark.parametrize(
    ("category", "found"),
    [("STRASSE", "street"), ("straße", "street"), ("decision", "plain"), ("DECISION", "plain")],
)
def test_a_category_is_found_in_any_spelling(filtered: KnowledgeBase, category: str, found: str) -> None:
    assert [hit.ref for hit in filtered.search("oaks", category=category).hits] == [f"memory:{found}"]


@pytest.mark.parametrize(
    ("tag", "found"),
    [
        ("GRÖSSE", "street"),
        ("größe/klein", "street"),
        ("部署", "street"),
        ("deploy", "plain"),
        ("#Deploy/blue", "plain"),
        ("X1", "plain"),
        ("it's", "quoted"),
        ("C++", "quoted"),
    ],
)
def test_a_tag_is_found_in_any_spelling_and_by_what_is_above_it(filtered: KnowledgeBase, tag: str, found: str) -> None:
    assert [hit.ref for hit in filtered.search("oaks", tags=[tag]).hits] == [f"memory:{found}"]


@pytest.mark.parametrize(
    ("key", "value", "found"),
    [
        ("place", "STRASSE 7", "street"),
        ("unit", "5 k", "street"),
        ("weight", "0.70", "street"),
        ("place", "main street", "plain"),
        ("done", "TRUE", "plain"),
        ("weight", "1000.0", "plain"),
        ("own-key.a", "bob", "plain"),
        ("place", 'He said "SO"', "quoted"),
        ("done", "false", "quoted"),
        ("weight", "12", "quoted"),
    ],
)
def test_any_field_is_found_in_any_spelling(filtered: KnowledgeBase, key: str, value: str, found: str) -> None:
    assert [hit.ref for hit in filtered.search("oaks", fields={key: value}).hits] == [f"memory:{found}"]


@pytest.mark.parametrize(
    "narrowed",
    [{"category": "dec"}, {"tags": ["deplo"]}, {"fields": {"place": "main"}}, {"fields": {"plac": "main street"}}],
)
def test_what_only_begins_alike_is_another(filtered: KnowledgeBase, narrowed: dict[str, object]) -> None:
    assert not filtered.search("oaks", **narrowed).hits  # type: ignore[arg-type]
