"""Slash commands, and what a person types: they act on the vault, whether there is a model or not."""

from __future__ import annotations

import io
import os
import stat
from argparse import Namespace
from collections.abc import Callable
from pathlib import Path

import pytest
from prompt_toolkit.application import create_app_session
from prompt_toolkit.completion import CompleteEvent
from prompt_toolkit.document import Document
from prompt_toolkit.input import create_pipe_input
from prompt_toolkit.output import DummyOutput

from co_cli.cli.chat_commands import HISTORY, CommandCompleter, LineHistory, handle, new_prompt
from co_cli.cli.chat_screen import Output
from co_cli.cli.chat_session import ChatSession
from co_cli.entrance.knowledge_base import KnowledgeBase
from tests.folder import Vault

ENTER, ALT_ENTER, CTRL_C, CTRL_D = "\r", "\x1b\r", "\x03", "\x04"
Chat = Callable[[str], str]


@pytest.fixture
def session(notes: Vault, kb: KnowledgeBase) -> ChatSession:
    """A session without a model."""

    async def refuse(question: str) -> bool:
        return False

    return ChatSession(kb, None, Output(io.StringIO(), io.StringIO(), markdown=False), refuse)


@pytest.fixture
def chat(session: ChatSession, vault: Vault, data_dir: Path, capsys: pytest.CaptureFixture[str]) -> Chat:
    """`chat("/notes")` is what it printed."""
    options = Namespace(vault=str(vault.root), data_dir=str(data_dir), no_history=False)

    def run(line: str) -> str:
        assert handle(session, line, options)
        said = capsys.readouterr()
        return said.out + said.err

    return run


def test_notes_are_searched_saved_shown_listed_forgotten_and_restored(chat: Chat, vault: Vault) -> None:
    assert "memory:blue" in chat("/recall how are releases rolled out")
    assert chat("/remember Paul bakes bread. #kitchen") == "created memory:paul-bakes-bread\n"
    assert "Paul bakes bread" in vault.read("memories/paul-bakes-bread.md")
    assert "Blue takes traffic first" in chat("/show memory:blue")
    assert "memory:blue" in chat("/notes")
    assert "memory:blue" in chat("/list")
    assert "memory:blue" in chat("/search who takes traffic first")
    assert "memory:blue" not in chat("/notes kitchen")
    assert "memory:tea" in chat("/notes #kitchen")
    assert "forgotten memory:tea" in chat("/forget tea")
    assert "memories/tea.md" not in vault.notes()
    assert chat("/restore memory:tea").startswith("restored memory:tea, forgotten 20")
    assert "memories/tea.md" in vault.notes()


def test_a_mistake_is_one_line_with_the_fix_and_the_chat_goes_on(chat: Chat, session: ChatSession) -> None:
    for line, fix in (
        ("/zzz", "did you mean /help?"),
        ("/re", "did you mean /recall or /remember or /restore?"),
        ("/recall", "the query is empty"),
        ("/forget", "missing ref"),
        ("/forget nothing-like-it", "no note 'nothing-like-it'"),
        ("/model", "`ollama pull qwen3`"),
        ("a question without a model", "`ollama pull qwen3`"),
        ("/usr/bin is full, why?", "no model is configured"),
    ):
        said = chat(line)
        assert fix in said, line
        assert said.count("\n") == 1, line
    assert [line for line in ("/quit", "/QUIT", "/q", "/exit") if handle(session, line, Namespace())] == []


def typed(keys: str, session: ChatSession) -> str:
    """What the prompt returns for these keys."""
    with create_pipe_input() as keyboard, create_app_session(keyboard, DummyOutput()):
        keyboard.send_text(keys)
        return new_prompt(session).prompt()


def test_enter_sends_and_alt_enter_starts_another_line(session: ChatSession) -> None:
    assert typed("one" + ALT_ENTER + "two" + ENTER, session) == "one\ntwo"
    with pytest.raises(KeyboardInterrupt):
        typed(CTRL_C, session)
    with pytest.raises(EOFError):
        typed(CTRL_D, session)


def test_the_next_chat_remembers_the_lines_of_the_last(session: ChatSession, data_dir: Path) -> None:
    session.kb.sync()  # makes the folder
    session.keep = True
    typed("first" + ENTER, session)
    typed(" a secret" + ENTER, session)
    typed("one" + ALT_ENTER + "two" + ENTER, session)

    file = data_dir / HISTORY
    assert list(LineHistory(session).load_history_strings()) == ["one\ntwo", "first"]
    assert stat.S_IMODE(os.stat(file).st_mode) == 0o600


@pytest.mark.usefixtures("notes")
def test_commands_and_refs_are_completed(kb: KnowledgeBase) -> None:
    kb.sync()
    for before, words in (
        ("/re", ["/recall", "/remember", "/restore"]),
        ("/forget bl", ["memory:blue"]),
        ("/recall bl", []),
        ("what is /re", []),
    ):
        found = CommandCompleter(kb).get_completions(Document(before), CompleteEvent(completion_requested=True))
        assert [completion.text for completion in found] == words, before
