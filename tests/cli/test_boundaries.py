"""`co index sync` asks the model of the setting `boundaries_model` where to cut, over HTTP; a search does not."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest

from tests.chat_server import ChatServer, calls, text
from tests.command import Co
from tests.folder import Vault

LINES = [f"Line {number} says something about oaks and the weather of that year." for number in range(1, 61)]
ANSWER = calls(
    ("final_result", {"response": [{"first": 1, "last": 30}, {"first": 31, "last": 57}, {"first": 58, "last": 60}]})
)


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch, vault: Vault) -> Iterator[ChatServer]:
    """The model is a server of ours on loopback."""
    vault.write("articles/oaks.md", "\n".join(LINES))
    with ChatServer() as server:
        monkeypatch.setenv("OLLAMA_BASE_URL", server.url)
        monkeypatch.setenv("CO_BOUNDARIES_MODEL", "ollama:qwen3")
        yield server


def lines_of(co: Co) -> list[int]:
    return json.loads(co("search", "line 59", "--json", "--no-sync").out)["hits"][0]["lines"]


def test_a_document_is_cut_where_the_model_says_and_is_not_asked_about_again(co: Co, server: ChatServer) -> None:
    server.play(ANSWER)

    assert co("index", "sync").code == 0

    assert lines_of(co) == [58, 60]
    assert "60| Line 60" in server.said("user")
    assert co("index", "rebuild").code == 0
    assert lines_of(co) == [58, 60]
    assert len(server.requests) == 1


def test_a_search_asks_no_model(co: Co, server: ChatServer) -> None:
    assert co("search", "line 59").code == 0
    assert server.requests == []


def test_documents_that_a_weak_model_cannot_cut_are_cut_without_it_and_reported(
    co: Co, vault: Vault, server: ChatServer
) -> None:
    for number in range(5):
        vault.write(f"articles/elms-{number}.md", "\n".join([f"Elms, part {number}.", *LINES]))
    server.play(*[text("I'm a helpful assistant.")] * 20)

    ran = co("index", "sync")

    assert (ran.code, ran.out) == (0, "6 added\n")
    model = "cut without the model ollama:qwen3"
    failed, given_up = ran.err.splitlines()
    assert failed.startswith(f"co: 3 documents {model}: ollama:qwen3 gave no complete answer: ")
    assert given_up == f"co: 3 documents {model}: it failed 3 times in a row and is not asked again"
    assert lines_of(co)[1] >= 60, "every line is in a passage"
