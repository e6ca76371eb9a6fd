"""Kinds of notes besides memories and articles: entities, resources and conversations, on the command line."""

from __future__ import annotations

import pytest

from tests.command import Co
from tests.folder import Vault


def test_each_kind_is_saved_to_a_folder_of_its_own(co: Co, vault: Vault) -> None:
    mara = co("remember", "Leads the bridge team.", "--kind", "entity", "--title", "Mara", "--set", "type=person")
    page = co(
        "remember", "Explains arches best.", "--kind", "resource", "--title", "Arches", "--url", "https://arch.es"
    )

    assert (mara.out, page.out) == ("created entity:mara\n", "created resource:arches\n")
    assert "kind: entity\n" in vault.read("entities/mara.md")
    assert "type: person\n" in vault.read("entities/mara.md")
    assert "url: https://arch.es\n" in vault.read("resources/arches.md")
    assert co("show", "arches").out.splitlines()[1].startswith("https://arch.es · ")
    assert (
        co("show", "entities/mara", "--json").json["ref"] == co("show", "Mara", "--json").json["ref"] == "entity:mara"
    )
    assert co("forget", "entity:mara").out.startswith("forgotten entity:mara;")
    assert co("note", "restore", "entity:mara").out.startswith("restored entity:mara,")
    assert co("remember", "Bridges sway.", "--kind", "note").out == "created memory:bridges-sway\n"
    wrong = co("remember", "x", "--kind", "poem")
    assert (wrong.code, "poem" in wrong.err) == (2, True)


def test_a_search_and_a_list_can_be_limited_to_kinds(co: Co, vault: Vault) -> None:
    vault.write("memories/bridge.md", "The bridge opens in May.")
    vault.write("entities/mara.md", "Mara builds the bridge.")
    vault.write("inbox/arch.md", "---\nkind: resource\nurl: https://arch.es\n---\nBridge arches explained.")
    vault.write("conversations/2026-11-02.md", "## Ben · 2026-11-02T09:00:00Z\n\nWhat about the bridge?\n")

    def found(*options: str) -> list[str]:
        return sorted(hit["ref"].partition("#")[0] for hit in co("search", "bridge", *options, "--json").json["hits"])

    everything = ["conversation:2026-11-02", "entity:mara", "memory:bridge", "resource:/inbox/arch"]
    assert found() == everything
    assert found("--kind", "entity") == found("--kind", "entity", "--backend", "grep") == ["entity:mara"]
    assert found("--kind", "resource", "--kind", "memory") == ["memory:bridge", "resource:/inbox/arch"]
    assert found("--kind", "note") == ["memory:bridge"]
    assert sorted(note["ref"] for note in co("list", "--json").json) == everything
    assert [note["ref"] for note in co("list", "note", "--json").json] == ["memory:bridge"]
    assert "1 conversation, 1 entity, 1 memory, 1 resource" in co("index", "status").out
    for listed in (co("list", "entity", "--json"), co("list", "--kind", "entity", "--json")):
        assert [note["ref"] for note in listed.json] == ["entity:mara"]
    both = co("list", "entity", "--kind", "memory", "--json").json
    assert sorted(note["ref"] for note in both) == ["entity:mara", "memory:bridge"]
    assert co("data", "export", "entity", "--to", "-").out.count("\n") == 1


OTHERS = {"memory:steel", "memory:marathon"}


def test_an_entity_lists_the_notes_that_name_it(co: Co, vault: Vault) -> None:
    vault.write("entities/mara-lind.md", "---\naliases: [ML]\n---\nLeads the bridge team. See [[arches]].")
    vault.write("memories/noon.md", "Mara Lind wants reviews before noon.")
    vault.write("memories/steel.md", "Ask ML about steel.")
    vault.write("memories/marathon.md", "A marathon of Mara's cousin.")
    vault.write("articles/arches.md", "# Arches\n\nSigned by mara lind.\n")

    shown = co("show", "Mara Lind").out.partition("named in 3 notes:")[2]

    assert {word for word in shown.split() if ":" in word} == {"article:arches#L1-3", "memory:noon", "memory:steel"}
    assert co("show", "memory:noon", "--json").json["mentions"] == []
    recalled = {hit["ref"].partition("#")[0] for hit in co("note", "recall", "Mara Lind", "--json").json["hits"]}
    assert {"entity:mara-lind", "memory:noon"} <= recalled <= {"entity:mara-lind", "memory:noon", *OTHERS}
    assert vault.read("entities/mara-lind.md").endswith("See [[arches]].")


def test_an_entity_that_many_notes_name_is_important_to_agents(co: Co, vault: Vault) -> None:
    for name in ("Ada", "Bea"):
        vault.write(f"entities/{name.lower()}.md", "Leads the bridge team.")
    for number in range(10):
        vault.write(
            f"articles/{number}.md",
            f"Day {number}: " + ("Bea called." if number % 2 else "see [them](../entities/bea.md)."),
        )

    def found(profile: str) -> dict[str, float]:
        hits = co("search", "bridge team", "--kind", "entity", "--profile", profile, "--json").json["hits"]
        return {hit["title"]: hit["signals"].get("importance", 0.0) for hit in hits}

    assert list(found("agent")) == ["Bea", "Ada"]
    assert found("agent") == pytest.approx({"Bea": 0.1, "Ada": 0.05}, abs=1e-4), "five mentions and five links"
    assert found("default") == {"Ada": 0.0, "Bea": 0.0}


def test_an_entity_of_the_same_name_is_reported(co: Co) -> None:
    co("remember", "Leads the bridge team.", "--kind", "entity", "--title", "Mara")
    co("remember", "Mara", "--title", "Mara")

    again = co("remember", "Sells steel.", "--kind", "entity", "--title", "mara", "--json").json

    assert [(one["ref"], one["why"]) for one in again["related"]] == [("entity:mara", "has the same name")]


def test_a_link_by_title_or_alias_means_the_note(co: Co, vault: Vault) -> None:
    vault.write("entities/mara-lind.md", "---\ntitle: Mara Lind\naliases: [Mara, ML]\n---\nLeads the bridge team.")
    vault.write("entities/second.md", "---\ntitle: Jonas\naliases: [Mara Lind]\n---\nA title comes before an alias.")
    vault.write("articles/ml.md", "A file name comes before an alias.")
    links = ("mara-lind", "Mara Lind", "mara", "Mara Lind#Phone|her", "ML", "mara.md", "Nobody")
    for number, link in enumerate(links):
        vault.write(f"memories/link-{number}.md", f"We asked about [[{link}]] on day {number}.")

    co("index", "sync")

    shown = [co("show", f"memory:link-{number}", "--json").json["links"][0]["ref"] for number in range(len(links))]
    linked_from = co("show", "entity:mara-lind", "--json").json["linked_from"]
    review = co("note", "review", "--only", "broken-link", "--json").json

    assert shown == [*["entity:mara-lind"] * 4, "article:ml", None, None]
    assert [one["ref"] for one in linked_from] == [f"memory:link-{number}" for number in range(4)]
    assert sorted(one["reason"] for one in review["findings"]) == [
        "[[Nobody]] does not exist",
        "[[mara.md]] does not exist",
    ]
