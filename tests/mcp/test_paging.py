"""Long lists come in pages: resources by cursor, and what list_memories lists by offset."""

from __future__ import annotations

import pytest
from mcp import MCPError

from co_cli.mcp.server import LISTED
from tests.mcp.talking import Place, Talk

Served = tuple[Place, Talk]
NOTES = 2 * LISTED + 50


@pytest.fixture
def full(served: Served) -> Served:
    """A vault with more notes than two pages hold, many of them of the same second."""
    for number in range(NOTES):
        text = f"---\ntitle: Swan {number}\ncreated: 2026-01-01T10:{number // 60:02}:00Z\n---\nSwan {number} swims.\n"
        served[0].vault.write(f"memories/swan-{number}.md", text)
    return served


def test_the_pages_of_resources_hold_every_note_once_although_notes_come_and_go(full: Served) -> None:
    place, talk = full

    first = talk.list_resources()
    assert len(first.resources) == LISTED
    place.vault.write("memories/newer.md", "---\ncreated: 2026-02-01\n---\nA newer note.\n")
    place.vault.delete(f"memories/{first.resources[-1].name.removeprefix('memory:')}.md")
    listed = [resource.name for resource in first.resources]
    cursor = first.next_cursor
    while cursor:
        page = talk.list_resources(cursor=cursor)
        listed += [resource.name for resource in page.resources]
        cursor = page.next_cursor

    assert set(listed) == {f"memory:swan-{number}" for number in range(NOTES)}
    again = len(listed) - NOTES
    assert again < 60, "only those of the second of a note that is gone may come twice"


def test_a_cursor_that_no_page_gave_is_an_error(served: Served) -> None:
    _, talk = served
    for cursor in ("2", "", "nonsense", "💥", "bm90aGluZw==", "MjAyNi0wMS0wMQ==", "x" * 5_000):
        with pytest.raises(MCPError, match="first page") as raised:
            talk.list_resources(cursor=cursor)
        assert raised.value.code == -32602, cursor
    for listing in (talk.list_prompts, talk.list_resource_templates):
        with pytest.raises(MCPError, match="one page") as raised:
            listing(cursor="bm90aGluZw==")
        assert raised.value.code == -32602


def test_memories_are_listed_from_an_offset_and_since_a_day(full: Served) -> None:
    _, talk = full

    def listed(**arguments: object) -> str:
        answer = talk.call_tool("list_memories", arguments)
        assert not answer.is_error, answer
        return answer.content[0].text

    newest, later = listed(limit=2), listed(limit=2, offset=2)
    last = listed(limit=2, offset=10_000)
    titles = [line.split(" · ")[1] for line in (newest + "\n" + later).splitlines() if " · " in line]

    assert len(set(titles)) == 4
    assert "; offset=2 lists more." in newest
    assert "3-4 of " in later
    assert "; offset=4 lists more." in later
    assert "offset=10000 is past the last one" in last
    talk.call_tool("save_memory", {"content": "A heron came today."})
    recent = listed(since="1d")
    assert "A heron came today" in recent
    assert " changed since 1d, newest first" in recent
    assert talk.call_tool("list_memories", {"since": "whenever"}).is_error
