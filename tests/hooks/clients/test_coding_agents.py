"""Real coding agents with co in them: what their models are sent, and what is kept of what they say."""

from __future__ import annotations

import sys
import time
from pathlib import Path

import pytest

from tests.chat_server import calls, text
from tests.folder import Vault
from tests.hooks.clients.agents import PROGRAMS, Agent
from tests.hooks.clients.conftest import HARBOUR
from tests.hooks.clients.model_server import ModelServer

pytestmark = [pytest.mark.slow, pytest.mark.clients]

QUESTION = "Where does our boat sleep in winter?"
GEMINI_OWN = {".gemini/gemini-credentials.json", ".gemini/installation_id"}
"""What Gemini CLI writes by itself when it installs any extension."""
KEPT = [client for client in PROGRAMS if client != "copilot"]
"""Clients whose conversations can be kept."""
TRIES = 5
"""A hook that is late on a busy machine gives nothing, and clients do not wait for our server: it is asked again."""


def test_a_prompt_brings_the_note_that_answers_it_and_small_talk_brings_none(agent: Agent, model: ModelServer) -> None:
    agent.co("setup", agent.client)

    agent.ask("Thank you very much, that looks great to me!")
    small_talk = model.asked()
    for _ in range(TRIES):
        agent.ask(QUESTION)
        if HARBOUR in model.asked():
            break

    assert HARBOUR not in small_talk
    assert "recall_memory" in small_talk, "its model knows our tools"
    assert HARBOUR in model.asked()
    assert "green tea" not in model.asked()


@pytest.mark.parametrize(
    ("agent", "options"),
    [("qwen", ("--continue",)), ("gemini", ("--resume", "latest")), ("copilot", ("--continue",))],
    indirect=["agent"],
)
def test_a_resumed_session_has_its_start_its_first_prompt_and_its_note(
    agent: Agent, model: ModelServer, notes: Vault, options: tuple[str, ...]
) -> None:
    notes.write("memories/mara.md", "---\nloading: always\n---\nMara steers.\n")
    agent.co("setup", agent.client)

    for _ in range(TRIES):
        agent.ask(QUESTION)
        if HARBOUR in model.asked():
            break
    model.requests.clear()
    agent.ask("Which two colours does a flag have?", *options)

    assert [text for text in ("Mara steers.", QUESTION, HARBOUR) if text not in model.asked()] == []


@pytest.mark.parametrize("agent", ["opencode", "qwen"], indirect=True)
def test_the_model_is_told_of_the_skill(agent: Agent, model: ModelServer) -> None:
    agent.co("setup", agent.client)

    agent.ask("Thank you very much, that looks great to me!")

    assert "long-term memory (co). Use it before you answer" in model.asked()


def test_what_the_model_saves_is_a_file(agent: Agent, model: ModelServer, notes: Vault) -> None:
    agent.co("setup", agent.client)
    save = {"content": "The pilot of Sol is called Odalys."}
    wait, name = [], "save_memory"
    if agent.client == "codex":  # it asks its model before our server has started, and shows it no tools of servers
        wait, name = [calls(("exec_command", {"cmd": "sleep 10"}))], "mcp__co::save_memory"

    for _ in range(TRIES):
        model.play(*wait, calls((name, save)), text("Saved."))
        agent.ask("Remember that the pilot of Sol is called Odalys.")
        saved = [notes.read(path) for path in notes.notes() if path.startswith("memories/")]
        if any(save["content"] in note for note in saved):
            break

    assert sum(save["content"] in note for note in saved) == 1


@pytest.mark.parametrize("agent", KEPT, indirect=True)
def test_a_conversation_is_kept_once_and_without_what_co_added(agent: Agent, model: ModelServer, notes: Vault) -> None:
    agent.co("setup", agent.client)
    model.play(text("It sleeps in Sol."))

    agent.ask(QUESTION)

    kept = _conversation(notes, "It sleeps in Sol.")
    assert kept.count(QUESTION) == 1
    assert kept.count("It sleeps in Sol.") == 1
    assert HARBOUR not in kept
    assert "recall_memory" not in kept


def test_the_prompt_goes_through_where_the_vault_is_gone(agent: Agent, model: ModelServer, notes: Vault) -> None:
    agent.co("setup", agent.client)
    notes.root.rename(notes.root.with_name("elsewhere"))
    model.play(text("I do not know."))

    assert "I do not know." in agent.ask(QUESTION)


@pytest.mark.parametrize("program", ["missing", "of a version without hooks"])
def test_the_prompt_goes_through_with_a_co(agent: Agent, model: ModelServer, program: str) -> None:
    own = agent.home / "bin" / "co"
    own.parent.mkdir()
    own.write_text(f"#!{sys.executable}\nimport sys\nfrom co_cli.cli.app import main\n\nsys.exit(main())\n")
    own.chmod(0o755)
    agent.co("setup", agent.client, program=own)
    if program == "missing":
        own.unlink()
    else:
        own.write_text("#!/bin/sh\nexit 2\n")
    model.play(text("I do not know."))

    assert "I do not know." in agent.ask(QUESTION)


def test_undo_leaves_every_file_of_the_client_as_it_was(agent: Agent, model: ModelServer) -> None:
    agent.ask("Begin, please.")  # the client writes its files
    before = _files(agent.home)

    agent.co("setup", agent.client)
    between = _files(agent.home)
    agent.co("setup", agent.client, "--undo")

    assert between != before
    after = _files(agent.home)
    assert {path: after.get(path) for path in before} == before
    assert after.keys() - before.keys() <= GEMINI_OWN


@pytest.mark.parametrize("agent", ["claude-code", "gemini"], indirect=True)
def test_the_client_finds_nothing_wrong_with_the_plugin(agent: Agent) -> None:
    agent.co("setup", agent.client)
    folder = agent.home / ".local" / "share" / "co-cli" / "coding-agents" / agent.client
    words = {"claude-code": ("plugin", "validate"), "gemini": ("extensions", "validate")}[agent.client]

    ran = agent.run(*words, str(folder))

    assert ran.returncode == 0, ran.stdout + ran.stderr


def _conversation(notes: Vault, until: str) -> str:
    """The one conversation, once it has this text: it is written after the client has ended."""
    for _ in range(600):
        texts = [notes.read(path) for path in notes.notes() if path.startswith("conversations/")]
        if any(until in kept for kept in texts):
            assert len(texts) == 1
            return texts[0]
        time.sleep(0.1)
    raise AssertionError(f"{until!r} is in no conversation")


def _files(home: Path) -> dict[str, bytes]:
    """What is in the home, without the data folder of co."""
    return {
        name: path.read_bytes()
        for path in sorted(home.rglob("*"))
        if path.is_file() and not (name := str(path.relative_to(home))).startswith(".local/share/co-cli/")
    }
