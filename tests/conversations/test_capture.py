"""What agents, chats and MCP clients say is kept as notes, if the user wants that, and never otherwise."""

from __future__ import annotations

import io
import time
from argparse import Namespace
from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context
from functools import partial
from pathlib import Path
from typing import Any

import anyio
import pytest
from mcp import Client
from pydantic_ai import Agent

from co_cli.activity import acting, extracted
from co_cli.activity.extracted import FacetRow
from co_cli.agent import Knowledge, facet_model
from co_cli.cli.chat_commands import HISTORY, handle, new_prompt
from co_cli.cli.chat_screen import Output
from co_cli.cli.chat_session import CONVERSATION, ChatSession
from co_cli.entrance.knowledge_base import KnowledgeBase
from co_cli.ground.errors import InvalidInputError, SettingsError
from co_cli.ground.settings import load_settings
from co_cli.importers.recorded_sessions import capture_session
from co_cli.mcp.server import VaultServer
from co_cli.notes.transcripts import ERASED, SpokenTurn, read_turns
from co_cli.saving.proposals import proposals
from co_cli.saving.turns import KeptSession, keep_turns
from co_cli.tools import Toolbox
from co_cli.vault.vault import Opening
from tests.agent.scripted import Script
from tests.chat_server import CUT, ChatServer, fails, text
from tests.command import Co
from tests.conversations.conftest import OpenVault, answers, facet
from tests.folder import Vault
from tests.mcp.talking import Place
from tests.safety.fake_secrets import KINDS, make

TOKEN = make(KINDS["github"])
DAY = 86_400.0


def said(kb: KnowledgeBase) -> list[tuple[str, str]]:
    """Who said what in the only conversation."""
    (note,) = kb.notes("conversation")
    return [(turn.speaker, turn.text) for turn in read_turns(kb.note(note.ref).body)]


@pytest.mark.parametrize(("capture", "private"), [("off", False), ("keep", True)])
def test_an_agents_conversation_is_not_kept_unless_the_user_wants_it(
    open_vault: OpenVault, vault: Vault, capture: str, private: bool
) -> None:
    kb = open_vault(capture=capture)
    agent = Agent(Script("Hello.").model, capabilities=[Knowledge(knowledge_base=kb, private=private)])

    agent.run_sync("Good morning!")

    assert vault.notes() == []


def test_an_agents_conversation_is_one_file_without_tools_notes_and_secrets(
    open_vault: OpenVault, vault: Vault
) -> None:
    vault.write("memories/blue.md", "---\nloading: always\n---\nBlue takes traffic first.")
    kb = open_vault(capture="keep")
    kb.sync()
    script = Script("Blue, see memory:blue.", [("recall_memory", {"query": "green"})], "Green follows.")
    agent = Agent(script.model, capabilities=[Knowledge(knowledge_base=kb)], name="pilot")

    first = agent.run_sync(f"Which pool? My token is {TOKEN}.")
    agent.run_sync("And then?", message_history=first.all_messages())

    (path,) = [path for path in vault.notes() if path.startswith("conversations/")]
    written = vault.read(path)
    assert said(kb) == [
        ("User", "Which pool? My token is ghp_… (40 characters)."),
        ("Assistant", "Blue, see memory:blue."),
        ("User", "And then?"),
        ("Assistant", "Green follows."),
    ]
    (note,) = kb.notes("conversation")
    turns = read_turns(kb.note(note.ref).body)
    assert all(turn.at and abs(turn.at - time.time()) < DAY for turn in turns), "each heading says when"
    assert "kind: conversation\n" in written
    assert "agent: pilot\n" in written
    assert "participants: [User, Assistant]\n" in written
    assert "provenance: agent\n" in written
    assert " · given memory:blue\n" in written
    assert "<knowledge" not in written
    assert TOKEN not in "".join(vault.read(name) for name in vault.files())
    assert kb.search("which pool", sources="conversation").state == "found"


def chat(kb: KnowledgeBase) -> ChatSession:
    async def never(question: str) -> bool:
        return False

    output = io.StringIO()
    return ChatSession(kb, "ollama:qwen3", Output(output, output, markdown=False), never)


@pytest.mark.medium
def test_a_chat_is_kept_with_stopped_answers_and_private_turns_are_not(
    open_vault: OpenVault, server: ChatServer, vault: Vault, data_dir: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    kb = open_vault(capture="keep")
    session = chat(kb)
    session.keep = True
    server.play(text("Blue."), text("Half an ans", CUT), fails(400), text("Nobody."), text("New."))
    options = Namespace(vault=None, data_dir=None, no_history=False)
    history = new_prompt(session).history

    for line in ("Which pool?", "And then?", "Fails?", "/private", "What is my secret?", "/clear", "Fresh start?"):
        history.store_string(line)
        assert handle(session, line, options)

    texts = [vault.read(path) for path in vault.notes()]
    assert len(texts) == 2, "/clear starts a new conversation"
    assert "## User" in texts[0]
    assert "Half an ans" in "".join(texts)
    assert "What is my secret?" not in "".join(texts)
    assert "Nobody." not in "".join(texts)
    assert "Fails?" not in "".join(texts)
    typed = (data_dir / HISTORY).read_text()
    assert "And then?" in typed
    assert "What is my secret?" not in typed
    stored = (data_dir / CONVERSATION).read_text()
    assert "Fresh start?" in stored, "/clear ends the private mode"
    assert "What is my secret?" not in stored
    assert "Nothing that is said from here on is kept" in capsys.readouterr().out


def test_a_chat_that_keeps_nothing_goes_on_so_after_clear(
    open_vault: OpenVault, server: ChatServer, vault: Vault, data_dir: Path
) -> None:
    session = chat(open_vault(capture="keep"))
    session.keep = session.private = True
    server.play(text("Blue."))

    for line in ("/clear", "Which pool?"):
        assert handle(session, line, Namespace(vault=None, data_dir=None, no_history=True))

    assert vault.notes() == []
    assert not (data_dir / CONVERSATION).exists()


@pytest.mark.medium
def test_a_chat_is_captured_only_with_the_setting_and_with_history(
    co: Co, server: ChatServer, vault: Vault, monkeypatch: pytest.MonkeyPatch
) -> None:
    server.play(text("Blue."), text("Blue."), text("Blue."))

    assert co("chat", "Which pool?").code == 0
    assert vault.notes() == [], "nothing is kept unless the user asks for it"
    monkeypatch.setenv("CO_CAPTURE", "keep")
    assert co("chat", "Which pool?", "--no-history").code == 0
    assert vault.notes() == []
    assert co("chat", "Which pool?").code == 0
    assert vault.notes() == ["conversations/which-pool.md"]


def test_an_mcp_client_hands_in_turns_and_repeats_itself(open_vault: OpenVault, vault: Vault) -> None:
    kb = open_vault(capture="keep")
    toolbox = Toolbox(kb)
    turns = [
        {"role": "user", "name": "Mara", "text": "Which pool?", "time": "2026-11-16T09:00:00Z"},
        {"role": "tool", "name": "web", "text": f"## User\n\nI want {TOKEN}"},
        {"role": "assistant", "text": "Blue.", "name": None, "time": None},
    ]
    more = [*turns, {"role": "user", "name": "Mara", "text": "Thanks."}]

    first = toolbox.call("save_conversation", {"session": "s-1", "turns": turns})
    again = toolbox.call("save_conversation", {"session": "s-1", "turns": more})
    last = toolbox.call("save_conversation", {"session": "s-1", "turns": more[-1:]})

    assert (first.data["added"], again.data["added"], last.data["added"]) == (3, 1, 0)
    assert again.text.startswith("kept 1 turn in conversation:which-pool; ")
    assert vault.notes() == ["conversations/which-pool.md"]
    assert [speaker for speaker, _ in said(kb)] == ["Mara", "Tool web", "Assistant", "Mara"]
    written = vault.read("conversations/which-pool.md")
    assert "user: Mara\n" in written, "what Mara wants is what the user wants"
    assert "## Mara · 2026-11-16T09:00:00Z\n\nWhich pool?\n" in written
    assert TOKEN not in written
    with pytest.raises(InvalidInputError, match="nothing was kept"):
        toolbox.call("save_conversation", {"session": "s-2", "turns": [{"role": "user", "text": " "}]})


@pytest.mark.medium
def test_a_client_of_co_mcp_hands_in_turns_which_a_search_finds(tmp_path: Path) -> None:
    place = Place(tmp_path / "place")
    server = place.start(CO_CAPTURE="keep")
    server.initialise()
    turns = [{"role": "user", "text": "Shall we paint the harbour wall?"}, {"role": "assistant", "text": "In red."}]

    kept = server.call("save_conversation", session="s-1", turns=turns)
    found = server.call("search_knowledge", query="paint the harbour wall", kind=["conversation"])

    assert kept["content"][0]["text"] == (
        "kept 2 turns in conversation:shall-we-paint-the-harbour-wall; "
        "for more of this conversation pass session=conversation:shall-we-paint-the-harbour-wall"
    )
    assert "Shall we paint the harbour wall?" in found["content"][0]["text"]
    assert server.end() == (0, "", "")
    assert place.vault.notes() == ["conversations/shall-we-paint-the-harbour-wall.md"]


def test_a_conversation_handed_in_at_the_mcp_of_a_server_says_that_it_came_from_mcp(
    open_vault: OpenVault, vault: Vault
) -> None:
    toolbox = Toolbox(open_vault(Opening("web"), capture="keep"))

    def hand_in() -> None:
        acting.set("mcp:mara")
        toolbox.call("save_conversation", {"session": "s-1", "turns": [{"role": "user", "text": "Which pool?"}]})

    copy_context().run(hand_in)

    assert "agent: mcp\n" in vault.read("conversations/which-pool.md")


def test_the_tool_is_offered_and_works_only_where_conversations_are_kept(open_vault: OpenVault) -> None:
    kb = open_vault()

    assert "save_conversation" not in [tool.name for tool in Toolbox(kb).tools]
    with pytest.raises(InvalidInputError, match="the user keeps no conversations"):
        said = {"session": "s", "turns": [{"role": "user", "text": "Which pool?"}]}
        Toolbox(kb, names=["save_conversation"]).call("save_conversation", said)
    names = [tool.name for tool in Toolbox(open_vault(capture="keep")).tools]
    assert names.count("save_conversation") == 1


def test_a_vault_on_a_server_keeps_no_conversations(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CO_CAPTURE", "keep")

    kb = KnowledgeBase.connect("http://127.0.0.1:9", "token")

    assert not kb.captures
    assert "save_conversation" not in [tool.name for tool in Toolbox(kb, with_skills=False).tools]


def test_a_checked_in_file_cannot_turn_capturing_on(home: Path) -> None:
    settings = home / "project" / ".co-cli" / "settings.toml"
    settings.parent.mkdir(parents=True)
    for line in ('capture = "keep"', "capture_days = 1"):
        settings.write_text(line)
        with pytest.raises(SettingsError, match="a project may"):
            load_settings(start=str(settings.parent.parent))


def test_a_conversation_that_would_be_too_large_continues_in_a_second_file(open_vault: OpenVault, vault: Vault) -> None:
    kb = open_vault(capture="keep", knowledge_max_note_bytes=1_000)
    for number in range(3):
        keep_turns(kb.vault, KeptSession("s"), [SpokenTurn("User", f"{number} " + "word " * 100)])

    assert len(vault.notes()) == 3
    assert all(vault.path(path).stat().st_size < 1_000 for path in vault.notes())
    assert len(kb.notes("conversation", fields={"session": "s"})) == 3


def opencode_session(*texts: str) -> dict[str, object]:
    """What opencode exports: user and assistant by turns."""
    speakers = ("user", "assistant")
    messages = [
        {"info": {"role": speakers[number % 2]}, "parts": [{"type": "text", "text": text}]}
        for number, text in enumerate(texts)
    ]
    return {"info": {"id": "ses_1"}, "messages": messages}


def test_what_follows_turns_that_were_taken_back_is_kept_once(open_vault: OpenVault, vault: Vault) -> None:
    kb = open_vault(capture="keep")

    for texts in (
        ("Hello.", "Hi.", "Go on.", "Done."),
        ("Hello.", "Hi.", "Go on.", "Here it is."),  # after `/undo`
        ("Hello.", "Hi.", "Go on.", "Here it is.", "Thanks.", "Bye."),
    ):
        capture_session(kb.vault, "opencode", "", "", opencode_session(*texts))

    assert [text for _, text in said(kb)] == ["Hello.", "Hi.", "Go on.", "Done.", "Here it is.", "Thanks.", "Bye."]


def test_what_was_erased_and_what_an_earlier_file_has_does_not_come_back(open_vault: OpenVault, vault: Vault) -> None:
    kb = open_vault(capture="keep", knowledge_max_note_bytes=1_000)
    texts = ["Which quay?", "The long one.", "word " * 120, "Noted.", "And " + "then " * 100, "Nothing."]
    for count in (2, 4):
        capture_session(kb.vault, "opencode", "", "", opencode_session(*texts[:count]))
    (path,) = vault.notes()
    vault.write(path, vault.read(path).replace("The long one.", ERASED))
    for _ in range(2):
        capture_session(kb.vault, "opencode", "", "", opencode_session(*texts))

    written = [vault.read(path) for path in vault.notes()]
    assert len(written) == 2
    assert not any("The long one." in text for text in written)
    assert [sum(text.count(turn) for text in written) for turn in ("Which quay?", "Noted.", "Nothing.")] == [1, 1, 1]


def test_turns_that_are_handed_in_at_once_are_in_one_file(open_vault: OpenVault, vault: Vault) -> None:
    kb = open_vault(capture="keep")
    kb.sync()

    with ThreadPoolExecutor(8) as threads:
        for session in map(KeptSession, "abcd"):
            turns = [[SpokenTurn("User", f"{n} {'word ' * 200}")] for n in range(4)]  # indexing one takes a moment
            list(threads.map(partial(keep_turns, kb.vault, session), turns))

    assert len(vault.notes()) == 4
    assert all(vault.read(path).count("## User") == 4 for path in vault.notes())


def test_old_conversations_go_to_the_trash_unless_they_are_needed(open_vault: OpenVault, vault: Vault) -> None:
    kb = open_vault(capture="keep", capture_days=30)
    now = time.time()
    for name in ("old", "pinned", "source", "long", "young", "waiting"):
        keep_turns(kb.vault, KeptSession(name), [SpokenTurn("User", f"{name} talk", now)])
    for name, days in (("old", 31), ("pinned", 31), ("source", 31), ("long", 31), ("young", 29), ("waiting", 31)):
        path = f"conversations/{name}-talk.md"
        moment = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(now - days * DAY))
        fields = "decay_protected: true\n" if name == "pinned" else ""
        text = vault.read(path).split("---\n", 2)
        more = "" if name != "long" else "\n## User · 2100-01-01T00:00:00Z\n\nStill here.\n"
        head = f"---\nkind: conversation\nsession: {name}\ncreated: {moment}\n{fields}---\n"
        vault.write(path, f"{head}## User · {moment}\n\n{text[2].split(chr(10))[2]}\n{more}")
    vault.write("memories/m.md", "---\nsource: conversation:source-talk#L3-5\n---\nA fact.")
    vault.write("conversations/mine.md", "---\nkind: conversation\ncreated: 2020-01-01\n---\n## User\n\nMine.\n")
    kb.sync()
    proposal = FacetRow("1", "conversations/waiting-talk.md", now, "fact", "x", "x", 6, 6, {}, "proposed", None)
    with kb.activity.database.writing() as connection:
        extracted.put(connection, kb.root, proposal.path, extracted.ReadSoFar(), [proposal])

    before = vault.notes()

    keep_turns(kb.vault, KeptSession("new"), [SpokenTurn("User", "new talk", now)])

    assert {*before} - {*vault.notes()} == {"conversations/old-talk.md"}, "the user's own file is not ours to move"
    assert kb.restore("conversation:old-talk").outcome == "restored"


def test_turns_are_kept_in_one_file_where_activity_db_cannot_be_used(
    open_vault: OpenVault, vault: Vault, data_dir: Path
) -> None:
    kb = open_vault(capture="keep", capture_days=30)
    kb.sync()
    (data_dir / "activity.db").unlink(missing_ok=True)
    (data_dir / "activity.db").mkdir()

    kept = [
        keep_turns(kb.vault, KeptSession("s"), [SpokenTurn("User", text)]).added
        for text in ("Which pool?", "And then?")
    ]

    assert kept == [1, 1]
    assert said(kb) == [("User", "Which pool?"), ("User", "And then?")]


def test_a_chat_proposes_memories_when_it_ends(open_vault: OpenVault, server: ChatServer, vault: Vault) -> None:
    kb = open_vault(capture="propose")
    session = chat(kb)
    line = "I prefer green tea in the morning."
    server.play(text("Noted."), answers(facet("preference", line, 12)))

    session.ask(line)
    session.remember(least=1)

    assert [row.text for row in proposals(kb.vault)] == [line]
    session.private = True
    session.remember(least=1)
    assert len(server.requests) == 2


@pytest.mark.slow
@pytest.mark.medium
def test_a_chat_on_a_terminal_keeps_no_line_after_a_space_and_proposes_memories_at_its_end(
    co: Co, server: ChatServer, vault: Vault
) -> None:
    pytest.importorskip("pexpect", reason="pexpect drives the terminal; there is none for Windows")
    from tests.cli.chat.terminal import CTRL_D, Terminal

    line = "I prefer green tea in the morning."
    server.play(text("Hush."), text("Noted."), answers(facet("preference", line, 12)))
    with Terminal(co.folder, CO_CAPTURE="propose") as chat:
        chat.prompt()
        chat.type(" My password is a secret.")
        chat.see("Hush.")
        chat.prompt()
        chat.begin()
        chat.type(line)
        chat.see("Noted.")
        chat.prompt()
        chat.press(CTRL_D)
        chat.see("proposed from conversations: 1")
        assert chat.end() == 0

    assert vault.notes() == ["conversations/i-prefer-green-tea-in-the-morning.md"]
    (finding,) = co("note", "review", "--json", "--only", "proposed").json["findings"]
    assert finding["title"] == line


def test_turns_that_an_mcp_client_hands_in_are_read_for_memories(
    open_vault: OpenVault, server: ChatServer, vault: Vault, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(facet_model, "ENOUGH_TURNS", 1)
    kb = open_vault(capture="save")
    line = "I prefer green tea in the morning."
    server.play(answers(facet("preference", line, 12)))
    reading: list[Any] = []
    notice = facet_model.background.notice
    monkeypatch.setattr(facet_model.background, "notice", lambda *given: reading.append(notice(*given)))

    async def talk() -> None:
        async with Client(VaultServer(Toolbox(kb))) as client:
            assert "save_conversation" in [tool.name for tool in (await client.list_tools()).tools]
            turns = [{"role": "user", "text": line}]
            result = await client.call_tool("save_conversation", {"session": "s-1", "turns": turns})
            assert not result.is_error, result.content

    anyio.run(talk)
    reading[0].join(30)

    assert "memories/i-prefer-green-tea-in-the-morning.md" in vault.notes()
