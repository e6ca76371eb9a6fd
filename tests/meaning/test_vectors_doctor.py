"""`co doctor` finds vectors that are lost or where they do not belong, and `--fix` puts it right."""

from __future__ import annotations

import pytest

from co_cli.index.vectors import add_space
from tests.command import Co
from tests.meaning.conftest import Open
from tests.meaning.inside import Inside
from tests.meaning.servers import TurnedOllama
from tests.vault import Vault

LOST = "delete from docs_vec where rowid = 2"
KEPT = "create temp table kept as select rowid as id, part, embedding from docs_vec where rowid = 1;"
PUT = "insert into docs_vec (rowid, part, embedding) "
ORPHAN = KEPT + PUT + "select 999, part, vec_int8(embedding) from kept"
OTHER_SOURCE = (
    KEPT + "delete from docs_vec where rowid = 1;" + PUT + "select id, ':elsewhere', vec_int8(embedding) from kept"
)


@pytest.fixture
def notes(vault: Vault) -> Vault:
    vault.write("memories/oak.md", "Oaks live for centuries.")
    vault.write("memories/elm.md", "The elm stands in the park.")
    vault.write("memories/party.md", "---\ntitle: 🎉\n---\n🎉🎉🎉\n")
    vault.write("articles/trees.md", "# Trees\n\nTrees are tall.\n\n# Bushes\n\nBushes are small.\n")
    return vault


@pytest.mark.parametrize(
    ("damage", "text"),
    [
        (LOST, "1 passages lack a vector, 0 vectors are in a wrong place"),
        (ORPHAN, "0 passages lack a vector, 1 vectors are in a wrong place"),
        (OTHER_SOURCE, "1 passages lack a vector, 1 vectors are in a wrong place"),
    ],
    ids=["a lost vector", "a vector of no passage", "a vector under another source"],
)
def test_damage_is_found_and_mended(co: Co, notes: Vault, inside: Inside, damage: str, text: str) -> None:
    co("sync")
    before, misses = inside.rows("select rowid, part, embedding from docs_vec order by rowid"), inside.misses
    elsewhere = inside.value("select part from docs_vec where part <> (select part from docs_vec where rowid = 1)")
    inside.rows(damage.replace(":elsewhere", elsewhere))

    ran = co("doctor", "--json")
    [finding] = [finding for finding in ran.json if finding["level"] != "ok"]
    assert (ran.code, finding["check"], finding["text"]) == (3, "vectors", text)
    assert finding["cure"] == "co doctor --fix"

    assert co("doctor", "--fix").code == 0

    assert co("doctor").code == 0
    assert inside.rows("select rowid, part, embedding from docs_vec order by rowid") == before
    assert inside.misses == misses


def test_a_vector_in_a_space_that_the_vault_does_not_have_is_found_and_dropped(
    open_kb: Open, notes: Vault, ollama: TurnedOllama, inside: Inside
) -> None:
    open_kb("ollama", host=ollama.url).sync()
    kb = open_kb()
    kb.sync()
    before = inside.vectors()
    inside.rows("insert into docs_vec_2 (rowid, part, embedding) select rowid, part, zeroblob(1024) from docs_vec")

    [finding] = [finding for finding in kb.doctor() if finding.level != "ok"]
    assert "4 vectors are in a wrong place" in finding.text

    kb.doctor(fix=True)

    assert inside.spaces() == {"static:co-static-256": 4, "ollama:embeddinggemma": 0}
    assert inside.vectors() == before
    assert [finding for finding in kb.doctor() if finding.level != "ok"] == []


def test_a_vector_lost_from_a_space_that_is_being_built_is_found(
    open_kb: Open, notes: Vault, ollama: TurnedOllama, inside: Inside, model: str
) -> None:
    ollama.faults = ["404"]
    kb = open_kb("ollama", model, ollama.url)
    kb.sync()
    inside.rows("delete from waiting where passage_id = 1")

    assert any(finding.level == "error" and finding.check == "vectors" for finding in kb.doctor())

    kb.doctor(fix=True)

    assert kb.status().space == f"ollama:{model}:256:1"
    assert len(inside.vectors("docs_vec_2")) >= 3
    assert [finding for finding in kb.doctor() if finding.level != "ok"] == []


def test_what_is_right_is_not_embedded_again_by_a_fix(
    open_kb: Open, notes: Vault, ollama: TurnedOllama, inside: Inside
) -> None:
    kb = open_kb("ollama", host=ollama.url)
    kb.sync()
    inside.rows("delete from embedding_cache")
    inside.rows("delete from docs_vec_2 where rowid = 2")
    asked = len(ollama.documents)

    kb.doctor(fix=True)

    assert len(ollama.documents) == asked + 1
    assert [finding for finding in kb.doctor() if finding.level != "ok"] == []


def test_a_space_without_a_table_is_no_damage(open_kb: Open, notes: Vault, inside: Inside) -> None:
    kb = open_kb()
    kb.sync()
    other = kb.embedders.space
    assert other is not None
    with kb.database.writing() as connection:
        add_space(connection, other._replace(model="another"), with_vec0=True)
        connection.execute("drop table docs_vec_2")

    assert [finding for finding in kb.doctor() if finding.level != "ok"] == []
