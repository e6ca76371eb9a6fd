"""What a person types: several lines in one question, completion, and a history that is theirs alone."""

from __future__ import annotations

import asyncio
import os
import stat
from pathlib import Path

import pytest
from prompt_toolkit.completion import CompleteEvent, DummyCompleter
from prompt_toolkit.document import Document
from prompt_toolkit.input import create_pipe_input
from prompt_toolkit.output import DummyOutput

from co_cli.chat.conversation import ToolCall
from co_cli.chat.prompt import HISTORY, CommandCompleter, LineHistory, confirm, new_prompt, read_line
from co_cli.chat.session import approval_question
from co_cli.knowledge_base import KnowledgeBase
from co_cli.tools import Toolbox
from tests.vault import Vault

ENTER, ALT_ENTER, CTRL_C, CTRL_D = "\r", "\x1b\r", "\x03", "\x04"


def typed(keys: str, data_dir: Path, keep: bool = True, lines: int = 1) -> list[str]:
    """What the prompt gives back for these keys."""
    with create_pipe_input() as keyboard:
        history = LineHistory(str(data_dir), keep)
        prompt = new_prompt(history, DummyCompleter(), input=keyboard, output=DummyOutput())
        keyboard.send_text(keys)
        return [read_line(prompt) for _ in range(lines)]


@pytest.mark.parametrize(
    ("keys", "line"),
    [
        ("hello" + ENTER, "hello"),
        ("one" + ALT_ENTER + "two" + ENTER, "one\ntwo"),
    ],
)
def test_enter_sends_unless_the_line_goes_on(tmp_path: Path, keys: str, line: str) -> None:
    assert typed(keys, tmp_path) == [line]


def test_ctrl_c_on_an_empty_line_and_ctrl_d_are_told_apart(tmp_path: Path) -> None:
    with pytest.raises(KeyboardInterrupt):
        typed(CTRL_C, tmp_path)
    with pytest.raises(EOFError):
        typed(CTRL_D, tmp_path)


def test_the_next_chat_remembers_the_lines_of_the_last(tmp_path: Path) -> None:
    typed("first" + ENTER + "one" + ALT_ENTER + "two" + ENTER, tmp_path, lines=2)

    assert list(LineHistory(str(tmp_path), keep=True).load_history_strings()) == ["one\ntwo", "first"]
    assert stat.S_IMODE(os.stat(tmp_path / HISTORY).st_mode) == 0o600


def test_a_history_that_others_could_read_is_closed_to_them(tmp_path: Path) -> None:
    (tmp_path / HISTORY).write_text("")
    (tmp_path / HISTORY).chmod(0o644)
    typed("hello" + ENTER, tmp_path)

    assert stat.S_IMODE(os.stat(tmp_path / HISTORY).st_mode) == 0o600


def test_a_line_that_begins_with_a_space_is_not_kept(tmp_path: Path) -> None:
    history = LineHistory(str(tmp_path), keep=True)
    history.append_string("open")
    history.append_string(" secret")

    assert history.get_strings() == ["open"]
    assert "secret" not in (tmp_path / HISTORY).read_text()
    assert typed(" secret" + ENTER, tmp_path) == [" secret"]
    assert "secret" not in (tmp_path / HISTORY).read_text()


def test_without_history_nothing_is_written(tmp_path: Path) -> None:
    assert typed("hello" + ENTER, tmp_path / "data", keep=False) == ["hello"]
    assert not (tmp_path / "data").exists()


def test_a_folder_that_cannot_be_written_to_is_no_reason_not_to_talk(tmp_path: Path) -> None:
    (tmp_path / "data").write_text("a file where the folder should be")

    assert typed("hello" + ENTER, tmp_path / "data") == ["hello"]


@pytest.mark.parametrize(
    ("before", "words"),
    [
        ("/re", ["/recall", "/remember", "/restore"]),
        ("/forget mem", ["memory:blue", "memory:tea"]),
        ("/forget bl", ["memory:blue"]),
        ("/notes k", ["kitchen"]),
        ("/recall bl", []),
        ("what is /re", []),
    ],
)
@pytest.mark.usefixtures("notes")
def test_commands_and_their_arguments_are_completed(kb: KnowledgeBase, before: str, words: list[str]) -> None:
    kb.sync()
    found = CommandCompleter(kb).get_completions(Document(before), CompleteEvent(completion_requested=True))

    assert [completion.text for completion in found] == words


@pytest.mark.parametrize(
    ("keys", "answer"), [("y" + ENTER, True), ("Yes" + ENTER, True), (ENTER, False), (CTRL_C, False), (CTRL_D, False)]
)
def test_only_a_yes_is_a_yes(keys: str, answer: bool) -> None:
    with create_pipe_input() as keyboard:
        keyboard.send_text(keys)
        assert asyncio.run(confirm("Forget it?", input=keyboard, output=DummyOutput())) is answer


@pytest.mark.parametrize(
    "arguments",
    [
        {"ref": "memory:precious"},
        {"note": "memory:precious", "slug": "memory:junk"},
        {"uri": "co://memory/precious"},
        {"ref": None, "memory_id": "precious"},
    ],
)
def test_the_person_is_asked_about_the_note_that_would_be_forgotten(
    kb: KnowledgeBase, vault: Vault, arguments: dict[str, object]
) -> None:
    vault.write("memories/precious.md", "---\ntitle: Precious\n---\nKeep it.")
    vault.write("memories/junk.md", "---\ntitle: Junk\n---\nThrow it away.")
    kb.sync()

    question = approval_question(kb, ToolCall("1", "forget_memory", dict(arguments)))
    Toolbox(kb).call("forget_memory", arguments)

    assert question == "Forget memory:precious (Precious)?"
    assert vault.notes() == ["memories/junk.md"]
