"""A chat as a person has it: in a real terminal, with a model that streams over HTTP."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

from tests.chat_server import HOLD, ChatServer, calls, text
from tests.cli.chat.conftest import BLUE, TEA
from tests.command import Co
from tests.conftest import OUTSIDE
from tests.folder import Vault

pytest.importorskip("pexpect", reason="pexpect drives the terminal; there is none for Windows")
from tests.cli.chat.terminal import CTRL_C, CTRL_D, Terminal, drawn_on_a_terminal

pytestmark = pytest.mark.usefixtures("notes")


class Talking(NamedTuple):
    """A chat that waits for a question, the server behind its model, and its vault."""

    chat: Terminal
    server: ChatServer
    vault: Vault


@pytest.fixture(scope="module")
def a_chat(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Talking]:
    """One for all tests that only talk: importing the agent library takes seconds."""
    folder = tmp_path_factory.mktemp("talking")
    vault = Vault(folder / "vault")
    vault.write("memories/blue.md", BLUE)
    vault.write("memories/tea.md", TEA)
    places = {"HOME": folder, "CO_VAULT": vault.root, "CO_DATA_DIR": folder / "data", "CO_KNOWLEDGE_READER": "off"}
    places["CO_KNOWLEDGE_EMBEDDING_PROVIDER"] = "static"
    with pytest.MonkeyPatch.context() as patched, ChatServer() as server:
        for variable in [variable for variable in os.environ if variable.startswith(OUTSIDE)]:
            patched.delenv(variable)
        environ = {name: str(path) for name, path in places.items()}
        with Terminal(folder, CO_MODEL="ollama:qwen3", OLLAMA_BASE_URL=server.url, **environ) as chat:
            chat.prompt()
            yield Talking(chat, server, vault)
            chat.press(CTRL_D)
            assert chat.end() == 0


@pytest.fixture
def talking(a_chat: Talking) -> Talking:
    a_chat.chat.begin()
    return a_chat


def test_an_answer_is_shown_while_it_comes_with_what_tools_did_and_why(talking: Talking) -> None:
    chat, server, _ = talking
    server.play(
        calls(
            ("recall_memory", {"query": "how do we deploy"}),
            ("save_memory", {"content": "We deploy on Fridays."}),
            before=["Let me look. "],
        ),
        text("They go **blue first**.\n\nThat ", HOLD, "says memory:blue."),
    )
    chat.type("How do we deploy?")
    chat.see("Let me look.")
    chat.see("They go")
    chat.see("first")
    assert '· recall_memory "how do we deploy" → ' in chat.drawn
    assert '· save_memory "We deploy on Fridays." → created memory:we-deploy-on-fridays' in chat.drawn
    assert "says memory:blue" not in chat.drawn  # the rest of the answer is still to come
    server.release()
    chat.see("memory:blue.")
    chat.prompt()
    chat.type("/why")
    chat.see("Deploys go through the blue pool first: ")
    chat.prompt()
    assert "\x1b[1mblue first\x1b[0m" in chat.raw


def test_ctrl_c_stops_the_answer_and_not_the_chat(talking: Talking) -> None:
    chat, server, _ = talking
    server.play(text("First this,\n\nthen ", HOLD, "that."), text("Short."))
    chat.type("Talk.")
    chat.see("First this,")
    chat.press(CTRL_C + CTRL_C)  # an impatient person
    chat.see("stopped")
    chat.prompt()
    chat.type("Shorter.")
    chat.see("Short.")
    chat.prompt()
    chat.press(CTRL_C)
    chat.see("/quit or Ctrl-D ends the chat.")
    chat.prompt()

    assert "First this," in server.said("assistant")  # what was said before stays in the conversation
    assert server.said("user").endswith("Shorter.")


def test_the_person_is_asked_before_a_note_is_forgotten(talking: Talking) -> None:
    chat, server, vault = talking
    forget = calls(("forget_memory", {"ref": "memory:tea"}))
    server.play(forget, text("As you like."), forget, text("Gone."), text("One,\n\ntwo, ", HOLD, "three."))
    chat.type("Forget the tea.")
    chat.see("Forget memory:tea (Tea)? [y/N] ")
    chat.press("\r")
    chat.see("did not allow")
    chat.see("As you like.")
    assert "memories/tea.md" in vault.notes()

    chat.prompt()
    chat.type("Really forget it.")
    chat.see("? [y/N] ")
    chat.press("y\r")
    chat.see("forgotten memory:tea")
    chat.see("Gone.")
    assert "memories/tea.md" not in vault.notes()

    chat.prompt()
    chat.type("/restore memory:tea")
    chat.see("restored memory:tea")
    chat.prompt()
    chat.type("Count.")  # Ctrl-C still stops an answer after somebody else had the keyboard
    chat.see("One,")
    chat.press(CTRL_C)
    chat.see("stopped")
    chat.prompt()


@pytest.mark.medium
@pytest.mark.usefixtures("co")
def test_a_terminal_without_colours_gets_none(server: ChatServer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NO_COLOR", "1")
    for terminal in ("xterm", "dumb"):
        monkeypatch.setenv("TERM", terminal)
        server.play(calls(("recall_memory", {"query": "deploy"})), text("# Blue\n\n```python\nx = 1\n```\n"))

        code, raw = drawn_on_a_terminal(["chat", "how do we deploy?"])

        assert code == 0
        assert not re.search(r"\x1b\[[0-9;]*m", raw)
        assert "x = 1" in raw


@pytest.fixture
def tmux(tmp_path: Path) -> Iterator[list[str]]:
    if not shutil.which("tmux"):
        pytest.skip("tmux is not installed; it is the terminal whose scrollback can be read")
    command = ["tmux", "-S", str(tmp_path / "tmux"), "-f", "/dev/null"]
    yield command
    subprocess.run([*command, "kill-server"], check=False, capture_output=True)


@pytest.mark.slow
def test_an_answer_taller_than_the_screen_stands_in_the_scrollback_once(
    co: Co, server: ChatServer, tmux: list[str], tmp_path: Path
) -> None:
    parts = [f"## Part {number}\n\nSome **words** of it.\n\n- an item\n- another\n\n" for number in range(12)]
    server.turns = [text(*parts[:6], HOLD, *parts[6:], "The end.")]

    def run(*arguments: str) -> str:
        return subprocess.run([*tmux, *arguments], check=True, capture_output=True, text=True).stdout

    def wait_for(words: str) -> str:
        until = time.monotonic() + 60
        while words not in (seen := run("capture-pane", "-p", "-S", "-")):
            assert time.monotonic() < until, seen
            time.sleep(0.05)
        return seen

    run("new-session", "-d", "-x", "80", "-y", "24", f"{sys.executable} -m co_cli chat 'tell me all'; sleep 60")
    wait_for("Part 4")
    run("resize-window", "-x", "60", "-y", "15")
    server.release()
    seen = wait_for("The end.")

    lines = [line.strip() for line in seen.splitlines()]
    assert [line for line in lines if line.startswith("Part")] == [f"Part {number}" for number in range(12)]
    assert lines.count("• an item") == lines.count("• another") == 12
