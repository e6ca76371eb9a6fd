"""The chat guide says what is so: its commands run, and it names every slash command."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest

from co_cli.chat.commands import COMMANDS
from tests.chat_server import ChatServer, text
from tests.command import Co

GUIDE = Path(__file__).resolve().parents[2] / "docs" / "guides" / "chat.md"

pytestmark = pytest.mark.skipif(not GUIDE.exists(), reason="an installed package has no docs beside it")


def test_the_commands_of_the_guide_run(co: Co, server: ChatServer) -> None:
    blocks = re.findall(r"^```sh\n(.*?)^```", GUIDE.read_text("utf-8"), re.MULTILINE | re.DOTALL)
    lines = [line for block in blocks for line in block.splitlines() if "co chat" in line]
    assert len(lines) >= 6
    for line in lines:
        before, _, after = line.partition("co chat")
        words = shlex.split(re.split(r" [|<>] ", after)[0])
        piped = "blue first\n" if before or "<" in after else ""
        if not piped and not any(not word.startswith("-") and ":" not in word for word in words):
            words.append("hello")  # a conversation: the same command, with a question
        server.turns = [text("Blue first.")]

        ran = co("chat", *words, stdin=piped)

        assert ran.code == 0, f"{line}: {ran.err}"
        assert "Blue first." in ran.out


def test_the_guide_names_every_slash_command_and_no_other() -> None:
    guide = GUIDE.read_text("utf-8")
    named = set(re.findall(r"^\| `(/[a-z]+)", guide, re.MULTILINE))

    assert named == {command.name for command in COMMANDS}
