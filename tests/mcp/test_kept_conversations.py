"""Conversations that a client hands in stay apart, whatever it calls them, over stdio and over HTTP."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.mcp.talking import Place, Talk, http_server, over_http, over_stdio

Served = tuple[Place, Talk]
POOLS = ["Which pool goes first?", "Blue goes first.", "And then?", "Green, after ten minutes."]
TEAS = ["Do we have tea?", "Only green tea."]


@pytest.fixture(params=["stdio", "http"])
def keeping(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Served]:
    """A vault whose user keeps conversations, and a client of its server."""
    place = Place(tmp_path)
    place.environment["CO_CAPTURE"] = "keep"
    if request.param == "stdio":
        with over_stdio(place) as talk:
            yield place, talk
    else:
        with http_server(place) as (_, address), over_http(address) as talk:
            yield place, talk


def keep(talk: Talk, texts: list[Any], **about: Any) -> str:
    """Hand in these turns; the ref of the conversation."""
    turns = [{"role": ("user", "assistant")[place % 2], "text": text} for place, text in enumerate(texts)]
    answer = talk.call_tool("save_conversation", {"turns": turns, **about})
    assert not answer.is_error, answer
    found = re.fullmatch(r"kept \d turns? in (\S+); for more of this conversation pass session=(\S+)", _text(answer))
    assert found is not None, _text(answer)
    assert found[1] == found[2]
    return found[1]


def _text(answer: Any) -> str:
    return answer.content[0].text


def kept(place: Place, ref: str) -> list[str]:
    text = place.vault.read(f"conversations/{ref.removeprefix('conversation:')}.md")
    return [part.partition("\n\n")[2].strip() for part in re.split(r"^## ", text, flags=re.MULTILINE)[1:]]


@pytest.mark.slow
def test_two_conversations_with_one_invented_id_or_none_stay_apart(keeping: Served) -> None:
    place, talk = keeping
    for session in ({"session": "session-1"}, {"session": "conversation:invented"}, {}):
        pools, teas = keep(talk, POOLS[:2], **session), keep(talk, TEAS, **session)

        assert pools != teas
        assert (kept(place, pools), kept(place, teas)) == (POOLS[:2], TEAS)
        assert keep(talk, POOLS[2:], session=pools) == pools
        assert (kept(place, pools), kept(place, teas)) == (POOLS, TEAS)


@pytest.mark.slow
def test_a_unique_id_and_turns_that_go_on_from_what_was_kept_continue_a_conversation(keeping: Served) -> None:
    place, talk = keeping
    own = "0f8fad5b-d9cb-469f-a165-70867728950e"

    first = keep(talk, TEAS, session=own)
    assert keep(talk, POOLS[:2], session=own) == first, "a program that has ids of its own sends what is new"
    assert kept(place, first) == [*TEAS, *POOLS[:2]]
    invented = keep(talk, POOLS[:2], session="chat")
    assert keep(talk, POOLS, session="chat") == invented
    assert kept(place, invented) == POOLS


@pytest.mark.slow
def test_content_in_parts_is_kept_and_a_turn_without_time_gets_the_time_of_saving(keeping: Served) -> None:
    place, talk = keeping
    parts = [{"type": "text", "text": "Look at this."}, {"type": "image", "data": "aGk="}, "And say what it is."]
    turns = [{"role": "user", "content": parts}, {"role": "assistant", "content": "A heron.", "time": "2026-01-02"}]

    answer = talk.call_tool("save_conversation", {"turns": turns, "title": "Bird"})

    assert not answer.is_error, answer
    written = place.vault.read("conversations/bird.md")
    assert re.search(r"^## User · 20\d\d-\d\d-\d\dT[\d:]+Z\n\nLook at this\.\n\nAnd say what it is\.$", written, re.M)
    assert "## Assistant · 2026-01-02T00:00:00Z\n\nA heron." in written
