"""Long calls report progress to clients that ask for it, over stdio and over HTTP, in both protocols."""

from __future__ import annotations

import httpx2
import pytest

from tests.mcp.conftest import both_transports
from tests.mcp.talking import TOKEN, Place, Talk, http_server

ARTICLE = "".join(f"## Part {number}\n\nFerry {number} leaves the pier at noon.\n\n" for number in range(12_000))


@pytest.mark.slow
@both_transports
def test_a_long_save_reports_progress_to_a_client_that_asks_for_it(served: tuple[Place, Talk]) -> None:
    told: list[float] = []

    async def note(progress: float, total: float | None, message: str | None) -> None:
        assert message is not None
        assert message.startswith("save_article: ")
        told.append(progress)

    saved = served[1].call_tool("save_article", {"content": ARTICLE, "title": "Ferries"}, progress_callback=note)

    assert not saved.is_error, saved
    assert told == sorted(told)
    assert told, "it takes longer than half a second"


@pytest.mark.slow
def test_an_answer_is_a_stream_only_if_the_client_asks_for_progress_and_reads_streams(place: Place) -> None:
    arguments = {"name": "list_memories", "arguments": {}}
    with http_server(place) as (_, address):
        for asks, accepts, kind in (
            (True, "application/json, text/event-stream", "text/event-stream"),
            (True, "application/json", "application/json"),
            (False, "application/json, text/event-stream", "application/json"),
        ):
            params = {**arguments, **({"_meta": {"progressToken": 1}} if asks else {})}
            answer = httpx2.post(
                address,
                json={"jsonrpc": "2.0", "id": 5, "method": "tools/call", "params": params},
                headers={"Authorization": f"Bearer {TOKEN}", "Accept": accepts},
                timeout=60,
                verify=False,
            )

            assert answer.headers["content-type"].startswith(kind), (asks, accepts)
            assert "0 of 0 memories" in answer.text
