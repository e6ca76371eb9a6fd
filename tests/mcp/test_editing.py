"""Correcting, moving and forgetting notes."""

from __future__ import annotations

from typing import Any

from tests.mcp.talking import Place, Talk

Served = tuple[Place, Talk]


def call(talk: Talk, tool: str, **arguments: Any) -> str:
    answer = talk.call_tool(tool, arguments)
    assert not answer.is_error, answer.content
    return answer.content[0].text


def test_single_fields_of_an_entity_are_set_and_shown(served: Served) -> None:
    place, talk = served
    call(talk, "save_memory", content="Runs the harbour.", title="Ines Vale", kind="entity", type="person")

    call(talk, "update_memory", ref="entity:ines-vale", aliases=["The captain"], url="https://example.com/ines")
    call(talk, "update_memory", ref="entity:ines-vale", type="friend", valid_until="2031-01-01")

    text = place.vault.read("entities/ines-vale.md")
    assert "type: friend" in text
    assert "valid_until: 2031-01-01" in text
    assert "Runs the harbour." in text
    shown = call(talk, "read_note", ref="The captain")
    assert 'type="friend"' in shown
    assert 'aliases="The captain"' in shown
    assert 'url="https://example.com/ines"' in shown


def test_a_section_is_replaced_and_text_is_appended(served: Served) -> None:
    place, talk = served
    text = "# Kiln\n\nIt is old.\n\n## Tools\n\nA rake.\n\n### Gloves\n\nTwo.\n\n## Hours\n\nNine to five.\n"
    place.vault.write("articles/kiln.md", text)

    call(talk, "update_memory", ref="article:kiln", section="Tools", content="A shovel.")
    call(talk, "update_memory", ref="article:kiln", section="## hours", append="Not on Sundays.")
    call(talk, "update_memory", ref="article:kiln", append="The end.")
    wrong = talk.call_tool("update_memory", {"ref": "article:kiln", "section": "Doors", "content": "x"})

    body = "# Kiln\n\nIt is old.\n\n## Tools\n\nA shovel.\n\n## Hours\n\nNine to five.\n\nNot on Sundays.\n\nThe end.\n"
    assert place.vault.read("articles/kiln.md").endswith(f"---\n{body}")
    assert wrong.is_error
    assert "no section is called 'Doors'; the headings are: Kiln, Tools, Hours" in wrong.content[0].text


def test_a_moved_note_keeps_its_links_and_only_broken_ones_are_written_anew(served: Served) -> None:
    place, talk = served
    place.vault.write("memories/otter.md", "Otters swim. See [the pond](pond.md).\n")
    place.vault.write("memories/pond.md", "The pond is deep.\n")
    place.vault.write("memories/by-name.md", "Ask [[otter]] first.\n")
    place.vault.write(
        "memories/by-path.md", "Ask [[memories/otter|her]] and [x](otter.md), not `[[memories/otter]]`.\n"
    )

    moved = call(talk, "update_memory", ref="memory:otter", path="animals/")

    assert place.vault.read("memories/animals/otter.md") == "Otters swim. See [the pond](../pond.md).\n"
    assert place.vault.read("memories/by-name.md") == "Ask [[otter]] first.\n"
    by_path = "Ask [[memories/animals/otter|her]] and [x](animals/otter.md), not `[[memories/otter]]`.\n"
    assert place.vault.read("memories/by-path.md") == by_path
    assert moved.startswith("updated memory:animals/otter (")
    assert "moved from memory:otter; links updated in " in moved
    assert "memory:by-path" in moved

    call(talk, "update_memory", ref="memory:animals/otter", path="animals/sea-otter.md")
    assert place.vault.read("memories/by-name.md") == "Ask [[memories/animals/sea-otter]] first.\n"
    taken = talk.call_tool("update_memory", {"ref": "memory:pond", "path": "animals/sea-otter.md"})
    assert taken.is_error
    assert "exists already; nothing was moved" in taken.content[0].text


def test_what_a_note_superseded_stays_superseded_after_a_move(served: Served) -> None:
    _, talk = served
    call(talk, "save_memory", content="The gate code is 1111.", title="Gate 1")
    call(talk, "save_memory", content="The gate code is 2222.", title="Gate 2", supersedes=["memory:gate-1"])

    call(talk, "update_memory", ref="memory:gate-1", path="old/gate.md")

    assert 'outdated="superseded by memory:gate-2"' in call(talk, "read_note", ref="memory:old/gate")
    forgotten = call(talk, "forget_memory", ref="memory:gate-2")
    assert "Valid again, because it superseded them: memory:old/gate." in forgotten
    assert "call forget_memory with each" in forgotten


def test_an_argument_that_a_tool_does_not_know_is_named(served: Served) -> None:
    _, talk = served
    call(talk, "save_memory", content="Herons wait.", title="Heron")

    nothing = talk.call_tool("update_memory", {"ref": "memory:heron", "expires": "2031-01-01"})
    missing = talk.call_tool("update_memory", {"id": "memory:heron", "title": "Herons"})

    assert nothing.is_error
    assert (
        "nothing was changed of memory:heron, because only its ref was given. Call update_memory again"
        in nothing.content[0].text
    )
    assert "Not arguments of update_memory, ignored: expires" in nothing.content[0].text
    assert "update_memory needs ref, and has no argument 'id'" in missing.content[0].text


def test_empty_values_change_nothing(served: Served) -> None:
    place, talk = served
    text = "---\ntitle: Teal\ntags: [bird]\naliases: [Duck]\n---\nTeals are small.\n"
    place.vault.write("memories/teal.md", text)

    empty: dict[str, Any] = {"ref": "memory:teal", "tags": [], "aliases": [], "category": "", "url": ""}
    nothing = talk.call_tool("update_memory", empty)
    call(talk, "update_memory", **empty, append="They dabble.")

    assert nothing.is_error
    assert "An empty value changes nothing: `co edit memory:teal` removes a field" in nothing.content[0].text
    changed = place.vault.read("memories/teal.md")
    assert "tags: [bird]\naliases: [Duck]\n" in changed
    assert changed.endswith("Teals are small.\n\nThey dabble.\n")
