"""A model's name becomes one that can be asked; what goes wrong with it is one line with the cure."""

from __future__ import annotations

import pytest

from co_cli.chat.models import UnusableModelError, full_name, load_model, ollama_address
from tests.chat_server import ChatServer, fails, text
from tests.command import Co


@pytest.mark.parametrize(
    ("name", "full"),
    [
        ("qwen3", "ollama:qwen3"),
        ("qwen3:8b", "ollama:qwen3:8b"),
        ("hf.co/someone/model:Q4", "ollama:hf.co/someone/model:Q4"),
        ("ollama:qwen3:8b", "ollama:qwen3:8b"),
        ("openai:gpt-5", "openai:gpt-5"),
        ("anthropic:claude-sonnet-4-5", "anthropic:claude-sonnet-4-5"),
    ],
)
def test_a_bare_name_is_one_of_ollamas(name: str, full: str) -> None:
    assert full_name(name) == full


@pytest.mark.parametrize(
    ("base", "host", "address"),
    [
        ("", "", "http://127.0.0.1:11434/v1"),
        ("http://box:1/v1", "other:2", "http://box:1/v1"),
        ("", "box", "http://box:11434/v1"),
        ("", "box:99", "http://box:99/v1"),
        ("", "https://box", "https://box:443/v1"),
        ("", "http://box:99/", "http://box:99/v1"),
        ("", "0.0.0.0:99", "http://127.0.0.1:99/v1"),
    ],
)
def test_ollama_is_found_as_its_own_tools_find_it(
    monkeypatch: pytest.MonkeyPatch, base: str, host: str, address: str
) -> None:
    monkeypatch.setenv("OLLAMA_BASE_URL", base)
    monkeypatch.setenv("OLLAMA_HOST", host)

    assert ollama_address() == address
    assert load_model("qwen3").base_url.rstrip("/") == address.replace(":443", "")


def test_a_missing_key_is_told_with_its_variable(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)

    with pytest.raises(UnusableModelError, match="Set the `OPENAI_API_KEY` environment variable") as refused:
        load_model("openai:gpt-5")
    assert len(str(refused.value)) < 120


@pytest.mark.parametrize(
    ("status", "cure"),
    [
        (404, "Ollama does not have qwen3: `ollama pull qwen3`"),
        (401, "ollama did not accept the key (401): check OLLAMA_API_KEY"),
        (400, "ollama:qwen3 answered with status 400: "),
    ],
)
def test_an_answer_with_an_error_is_one_line_with_the_cure(co: Co, server: ChatServer, status: int, cure: str) -> None:
    server.turns = [fails(status)]

    ran = co("chat", "hello")

    assert ran.code == 3
    assert ran.err.startswith(f"co: {cure}")
    assert ran.err.count("\n") == 1
    assert ran.out == ""


@pytest.mark.parametrize("status", [429, 500])
def test_a_temporary_error_is_retried_and_then_reported(co: Co, server: ChatServer, status: int) -> None:
    server.turns = [fails(status), fails(status), fails(status), text("too late")]

    ran = co("chat", "hello")

    assert (ran.code, ran.out) == (3, "")
    assert f"answered with status {status}: ask again later" in ran.err
    assert len(server.requests) == 3


def test_a_server_that_is_not_running_is_told_with_how_to_start_it(
    co: Co, server: ChatServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OLLAMA_BASE_URL", "http://127.0.0.1:1/v1")

    ran = co("chat", "hello")

    assert ran.code == 3
    assert ran.err.startswith("co: cannot reach ollama:qwen3 at http://127.0.0.1:1/v1: start it with `ollama serve`")


def test_an_empty_key_is_reported_with_its_variable(co: Co, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "")

    ran = co("chat", "--model", "openai:gpt-5", "Hello")

    assert ran.code == 2
    assert ran.err.startswith("co: openai:gpt-5 cannot be used: ")
    assert "`OPENAI_API_KEY`" in ran.err
    assert ran.err.count("\n") == 1
