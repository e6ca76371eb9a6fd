"""Slash commands act on the vault, whether there is a model or not."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from co_cli.chat.commands import COMMANDS, arguments_for, find_command, is_command, run_command
from co_cli.chat.conversation import ToolCall, Turn
from co_cli.chat.screen import Output
from co_cli.chat.session import Session
from co_cli.errors import InvalidInputError, UnknownRefError
from co_cli.knowledge_base import KnowledgeBase
from tests.vault import Vault


class Chat:
    """A session without a model; `chat("/notes")` is what it printed."""

    def __init__(self, kb: KnowledgeBase, capsys: pytest.CaptureFixture[str]) -> None:
        self.session = Session(kb, None, Output(), yes=False, interactive=False)
        self._capsys = capsys

    def __call__(self, line: str) -> str:
        self._capsys.readouterr()
        assert run_command(self.session, line)
        return self._capsys.readouterr().out


@pytest.fixture
def chat(notes: Vault, kb: KnowledgeBase, capsys: pytest.CaptureFixture[str]) -> Iterator[Chat]:
    made = Chat(kb, capsys)
    yield made
    made.session.close()


def test_recall_finds_by_meaning_and_sees_a_file_of_this_moment(chat: Chat, vault: Vault) -> None:
    assert "memory:blue" in chat("/recall how are releases rolled out")

    vault.write("memories/oak.md", "Oaks live for centuries.")
    chat.session.freshener._synced_at = None  # as if two seconds had passed
    assert "memory:oak" in chat("/recall centuries")


def test_remember_saves_and_says_what_it_joined(chat: Chat, vault: Vault) -> None:
    assert chat("/remember Paul bakes bread on Mondays. #kitchen") == "created memory:paul-bakes-bread-on-mondays\n"
    assert "Paul bakes bread" in vault.read("memories/paul-bakes-bread-on-mondays.md")
    assert chat("/remember Paul bakes bread on Mondays. #kitchen").startswith("duplicate: ")


def test_forget_and_restore(chat: Chat, vault: Vault) -> None:
    assert chat("/forget tea") == "forgotten memory:tea; /restore memory:tea brings it back\n"
    assert "memories/tea.md" not in vault.notes()
    assert arguments_for(chat.session.kb, "/restore") == ["memory:tea"]
    assert chat("/restore memory:tea") == "restored memory:tea\n"
    assert "memories/tea.md" in vault.notes()


def test_forget_touches_nothing_if_one_of_the_refs_is_unknown(chat: Chat, vault: Vault) -> None:
    with pytest.raises(UnknownRefError):
        chat("/forget memory:tea memory:nothing")
    assert "memories/tea.md" in vault.notes()


def test_notes_lists_the_newest_by_tag(chat: Chat) -> None:
    assert "memory:blue" in chat("/notes")
    assert "memory:blue" not in chat("/notes kitchen")
    assert "memory:tea" in chat("/notes #kitchen")
    assert chat("/notes nothing") == "No notes with #nothing.\n"


def test_show_opens_a_note(chat: Chat) -> None:
    assert "Blue takes traffic first" in chat("/show memory:blue")


def test_why_shows_what_the_last_answer_is_based_on(chat: Chat) -> None:
    assert chat("/why") == "There is no answer yet.\n"

    hit = {"ref": "memory:blue", "title": "Blue first", "score": 0.91, "signals": {"words": 0.8, "meaning": 1.0}}
    chat.session.last = Turn(
        "How do we deploy?",
        "ollama:qwen3",
        "Blue first (memory:blue).",
        [ToolCall("1", "recall_memory", {"query": "deploy"}, "success", "found", {"state": "found", "hits": [hit]})],
        [{"ref": "memory:tea", "title": "Tea", "why": "recalled", "evidence": 0.83}],
        ["article:long"],
    )
    assert chat("/why").splitlines() == [
        "In the prompt:",
        "  Tea memory:tea",
        "    closely related to the question · evidence 0.83",
        "Left out for lack of space: article:long",
        'recall_memory "deploy" → 1 note, memory:blue',
        "  Blue first memory:blue",
        "    0.91 (words 0.80 meaning 1.00) · named in the answer",
    ]
    chat.session.last = Turn("Hello", "ollama:qwen3", "Hello.")
    assert chat("/why") == "The answer is not based on any note.\n"


def test_model_says_that_there_is_none(chat: Chat) -> None:
    assert "/model ollama:qwen3 chooses one" in chat("/model")


def test_help_names_every_command(chat: Chat) -> None:
    told = chat("/help")

    assert [command.name for command in COMMANDS if command.name not in told] == []
    assert max(map(len, told.splitlines())) <= 80


@pytest.mark.parametrize("line", ["/quit", "/QUIT", "/q"])
def test_quit_ends_the_chat(chat: Chat, line: str) -> None:
    assert run_command(chat.session, line) is False


@pytest.mark.parametrize(
    ("name", "complaint"),
    [
        ("/recal1", "did you mean /recall?"),
        ("/zzz", "see /help"),
        ("/re", "did you mean /recall or /remember or /restore?"),
    ],
)
def test_an_unknown_command_is_told_with_the_closest(name: str, complaint: str) -> None:
    with pytest.raises(InvalidInputError) as refused:
        find_command(name)
    assert complaint in str(refused.value)


@pytest.mark.parametrize("line", ["/recall", "/remember", "/forget", "/restore", "/show"])
def test_a_command_without_what_it_needs_gives_an_example(chat: Chat, line: str) -> None:
    with pytest.raises(InvalidInputError, match="say what, as in: " + line):
        chat(line)


def test_a_path_is_no_command() -> None:
    assert is_command("/recall x")
    assert not is_command("/usr/bin is full, why?")
    assert not is_command("what is /recall?")


def test_a_mistake_is_one_line_and_the_chat_goes_on(chat: Chat, capsys: pytest.CaptureFixture[str]) -> None:
    assert chat.session.handle("/forget nothing-like-it")
    assert "no note 'nothing-like-it'" in capsys.readouterr().out
    assert chat.session.handle("a question without a model")
    assert "no model is configured" in capsys.readouterr().out
    assert not chat.session.handle("/quit")


def test_control_characters_of_a_note_are_not_obeyed(chat: Chat, vault: Vault) -> None:
    vault.write("memories/evil.md", '---\ntitle: "Evil \\e[31m"\ntags: ["\\e[1mt"]\n---\nzebra \x1b]0;owned\x07\n')
    chat.session.freshener._synced_at = None

    for line in ("/recall zebra", "/notes", "/show evil"):
        assert not {"\x1b", "\x07"} & set(chat(line)), line
