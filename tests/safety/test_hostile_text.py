"""The table of hostile strings, at every door: shown and never obeyed, whoever reads it."""

from __future__ import annotations

import html
import json
import os
import re
import subprocess
import sys
from argparse import Namespace
from collections.abc import Awaitable, Iterator
from pathlib import Path
from typing import Any

import anyio
import pytest
from mcp import Client, MCPError
from pydantic_ai import Agent, models

from co_cli.agent import Knowledge
from co_cli.cli.chat_commands import handle
from co_cli.cli.chat_screen import Output
from co_cli.cli.chat_session import ChatSession
from co_cli.cli.completion import SCRIPTS
from co_cli.entrance.knowledge_base import KnowledgeBase
from co_cli.mcp.server import VaultServer
from co_cli.sources.origin import Added, Origin, change_registry
from co_cli.tools import Toolbox
from tests.agent.scripted import Script
from tests.chat_server import ChatServer, calls, text
from tests.cli.screen import on_terminal
from tests.command import Co, Ran, write_script
from tests.folder import Vault
from tests.safety.hostile import HOSTILE, OBEYED, OURS, TOGETHER, FakeTerminal, assert_data, file_name, note, strings_in
from tests.sources.web_server import WebServer, article, response

ESCAPES = HOSTILE["a terminal's title"] + HOSTILE["eight-bit control"] + HOSTILE["text the other way round"]
STATUS_LINE = r"\r|\x1b\[(?:2K|1A|\?25[lh])"
MARKS = re.compile(r"</?(?:note|knowledge|notes|system|skill)\b")


@pytest.fixture(scope="module")
def attacked(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Co]:
    """A vault, a folder beside it and a repository that say every hostile thing wherever they can say something."""
    folder = tmp_path_factory.mktemp("attacked")
    home, vault = folder / "home", Vault(folder / "vault")
    home.mkdir()
    beside = folder / "fold\x1b]0;owned\x07er"
    beside.mkdir()
    for number, hostile in enumerate(HOSTILE.values()):
        vault.write(f"memories/m{number}.md", note(hostile))
        vault.write(f"articles/{file_name(hostile)}/{file_name(hostile)}.md", note(hostile))
        (beside / f"{file_name(hostile)}.md").write_text(note(hostile))
        vault.write(f".checkpoints/c{number}.md", note(hostile))
    vault.write("entities/zebra.md", note(HOSTILE["the end of a fence"]).replace("title:", "aliases: [zebra]\ntitle:"))
    vault.write("memories/broken\x1b[2J.md", "---\ntitle: [\x1b[2J\n---\nzebra")
    vault.write("memories/no-text\x1b[2J.md", b"\0\1\2\x1b[2J")
    skill = home / ".agents" / "skills" / "evil"
    skill.mkdir(parents=True)
    (skill / "SKILL.md").write_text(
        f"---\nname: evil\ndescription: {json.dumps('zebra ' + HOSTILE['a cleared screen'])}\n---\n"
    )
    committed = [
        "-c",
        "user.name=Ev\x1b]0;owned\x07il",
        "-c",
        "user.email=a@b.example",
        "commit",
        "-qm",
        "\x1b[2J\x9b31m",
    ]
    for command in (["init", "-q"], ["add", "-A"], committed):
        subprocess.run(["git", *command], cwd=vault.root, check=True, capture_output=True)
    with pytest.MonkeyPatch.context() as patch:
        for variable in [name for name in os.environ if name.startswith(("CO_", "XDG_"))]:
            patch.delenv(variable)
        patch.setenv("HOME", str(home))
        patch.setenv("CO_VAULT", str(vault.root))
        patch.setenv("CO_DATA_DIR", str(folder / "data"))
        co = Co(home)
        assert co("add", str(beside)).code == 0
        yield co


@pytest.fixture(autouse=True)
def there(attacked: Co, home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The environment of the attacked vault, whatever this test's own home is."""
    folder = attacked.folder.parent
    monkeypatch.setenv("HOME", str(attacked.folder))
    monkeypatch.setenv("CO_VAULT", str(folder / "vault"))
    monkeypatch.setenv("CO_DATA_DIR", str(folder / "data"))


def assert_inert(ran: Ran) -> None:
    found = OBEYED.search(ran.out + ran.err)
    assert found is None, (ran.out + ran.err)[max(0, found.start() - 80) : found.end() + 20]
    assert "Traceback" not in ran.err


SHOWN = """
    search zebra -n 80|search zebra -n 80 --backend fts5|search zebra -n 80 --backend grep|note recall zebra -n 80|list
    list --tag nobody-has-it|note tags|source tree|source list|index status|feedback stats|doctor|note review --list
    note context zebra|skill|skill search zebra|note history memory:m0|feedback give zebra memory:m0|index sync
    config completion --words show|config show|config trust --list|show entities/zebra|checkpoint list
    checkpoint list zebra|checkpoint show c1|checkpoint show c7
"""


@pytest.mark.slow
def test_what_is_stored_is_shown_and_not_obeyed(attacked: Co) -> None:
    for command in SHOWN.strip().replace("\n", "|").split("|"):
        assert_inert(attacked(*command.split()))
        assert_inert(attacked(*command.split(), "--json"))


@pytest.mark.slow
@pytest.mark.parametrize("hostile", [*TOGETHER, HOSTILE["an option"], HOSTILE["a bare sign"]])
def test_what_is_said_to_a_command_is_text(attacked: Co, hostile: str) -> None:
    here = "memory:m1"
    for command in (
        ["search", "--", hostile],
        ["show", "--", hostile],
        ["show", here],
        ["note", "why", hostile, here],
        ["list", "--tag", hostile, "--where", f"x={hostile}"],
        ["list", "--where", hostile],
        ["search", "zebra", "--since", hostile],
        ["add", "--", hostile],
        ["data", "import", "obsidian", "--", hostile],
        ["config", "show", "--", hostile],
        ["--vault", hostile, "list", "--verbose"],
        [hostile],
        ["remember", "--title", hostile, "--tag", hostile, "--", f"quagga {hostile}"],
    ):
        assert_inert(attacked(*command))
    assert list(attacked.folder.parent.rglob("owned")) == []


def test_a_terminal_sees_our_colours_and_nothing_else(attacked: Co) -> None:
    drawn = on_terminal(attacked.folder, "search", "zebra", "-n", "80")

    assert OURS.search(drawn)
    assert OBEYED.search(OURS.sub("", drawn)) is None
    assert "\x1b[31mred" not in drawn


@pytest.mark.slow
@pytest.mark.parametrize("command", ["show --raw", "data export --to -", "data export --format jsonl --to -"])
def test_a_terminal_gets_no_file_as_it_is_and_a_pipe_does(attacked: Co, command: str) -> None:
    refs = [f"memory:m{number}" for number in range(len(HOSTILE))] if "--raw" in command else []

    drawn = on_terminal(attacked.folder, *command.split(), *refs)

    assert OBEYED.search(OURS.sub("", drawn)) is None
    assert "zebra text" in drawn
    assert HOSTILE["marks that nobody sees"] in attacked(*command.split(), *refs).out


def test_a_name_is_never_run_by_a_shell_that_completes(attacked: Co, tmp_path: Path) -> None:
    vault = Path(os.environ["CO_VAULT"])
    (vault / "memories" / "a$(touch owned)`touch owned`.md").write_text("zebra")
    (vault / "memories" / "plain-name.md").write_text("zebra")
    attacked("index", "sync")
    write_script(tmp_path / "co", f'exec {sys.executable} -m co_cli "$@"')
    script = SCRIPTS["bash"] + 'COMP_WORDS=(co show memory:); COMP_CWORD=2; _co; printf "%s\\n" "${COMPREPLY[@]}"\n'

    ran = subprocess.run(
        ["bash", "-c", script],
        cwd=attacked.folder,
        env={**os.environ, "PATH": f"{tmp_path}:{os.environ['PATH']}"},
        capture_output=True,
        text=True,
        check=True,
    )

    assert "memory:plain-name" in ran.stdout.splitlines()
    assert not re.search(r"[$`;|&]", ran.stdout)
    assert list(attacked.folder.parent.rglob("owned")) == []


TOOLS: list[tuple[str, dict[str, object]]] = [
    ("search_knowledge", {"query": "zebra", "limit": 50}),
    ("recall_memory", {"query": "zebra", "limit": 50}),
    ("list_memories", {}),
    ("list_memories", {"tags": ["nobody-has-it"]}),
    ("recall_memory", {"query": "zebra", "limit": 50, "tags": ["nobody-has-it"], "category": "none"}),
    ("read_note", {"ref": "memory:m21"}),
    ("read_note", {"ref": "entity:zebra"}),
    ("recall_memory", {"query": "what do you know about zebra"}),
    ("read_note", {"ref": HOSTILE["the end of a fence"]}),
    ("search_knowledge", {"query": HOSTILE["the end of a fence"], "tags": [HOSTILE["a chat template"]]}),
]


def test_a_model_gets_it_as_data(attacked: Co) -> None:
    script = Script([*TOOLS, ("find_checkpoint", {"query": "zebra", "limit": 10})], "Yes.")
    with KnowledgeBase.open() as kb:
        knowledge = Knowledge(knowledge_base=kb, tools=["default", "find_checkpoint"])
        Agent(script.model, capabilities=[knowledge]).run_sync("What is there?")

    told = script.told
    assert_data(told)
    assert "checkpoint:c" in told
    assert "Named in other notes:" in told
    for inside in re.findall(r"<note [^>]*>\n(.*?)\n</note>", told, re.DOTALL):
        assert not MARKS.search(html.unescape(inside).replace("&lt;", "")) or "&lt;" in inside


def test_an_export_and_an_import_carry_it_and_change_nothing(attacked: Co, tmp_path: Path) -> None:
    assert_inert(attacked("data", "export", "--to", str(tmp_path / "out")))
    assert_inert(attacked("data", "export", "--to", str(tmp_path / "out.jsonl")))
    Vault(tmp_path / "new")

    ran = attacked("--vault", str(tmp_path / "new"), "data", "import", "co", str(tmp_path / "out"), "--yes")

    assert_inert(ran)
    assert len(Vault(tmp_path / "new").notes()) > len(HOSTILE)


@pytest.mark.slow
def test_a_chat_shows_it_and_sends_it_as_data(attacked: Co, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(models, "ALLOW_MODEL_REQUESTS", True)  # of a server of ours on loopback
    monkeypatch.setenv("CO_MODEL", "ollama:qwen3")
    everything = "\n\n".join(HOSTILE.values())
    looking = calls(
        *((tool, arguments) for tool, arguments in TOOLS),
        ("recall_memory", {"query": everything}),
        (HOSTILE["a cleared screen"], {}),
        ("forget_memory", {"ref": HOSTILE["the end of a fence"]}),
        ("recall_memory", "{ broken \x1b[2J"),
    )
    with ChatServer() as server:
        monkeypatch.setenv("OLLAMA_BASE_URL", server.url)
        for more in ([], ["--json"]):
            server.play(looking, text(*HOSTILE.values()))
            ran = attacked("chat", *more, "what about zebra?")

            assert ran.code == 0, ran.err
            assert_inert(ran)
            assert "harbour" in ran.out  # it is shown, in a form that nobody obeys
            assert_data(server.said("tool"))


@pytest.mark.slow
def test_a_chat_on_a_terminal_steers_nothing(
    attacked: Co, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("TERM", "xterm-256color")
    answer = "\n\n".join(HOSTILE.values())
    turns = [[(tool, arguments) for tool, arguments in TOOLS], answer]
    screen = FakeTerminal()

    async def refuse(question: str) -> bool:
        return False

    with KnowledgeBase.open() as kb:
        options = Namespace(vault=None, data_dir=None)
        session = ChatSession(kb, Script(*turns).model, Output(screen, screen, markdown=True), refuse)
        refs = [f"/show memory:m{number}" for number in range(len(HOSTILE))]
        for line in (
            "What about zebra?",
            "/why",
            "/recall zebra",
            "/notes",
            f"/remember {answer}",
            f"/recall {answer}",
            f"/model {ESCAPES}",
            *refs,
            *(f"{command} {one}" for one in HOSTILE.values() for command in ("/notes", "/show", "/restore", "/")),
        ):
            handle(session, line, options)
    drawn = screen.getvalue()
    said = capsys.readouterr()

    assert "harbour" in drawn
    assert OBEYED.search(re.sub(STATUS_LINE, "", OURS.sub("", drawn))) is None
    assert "\x1b[31mred" not in drawn
    assert_inert(Ran(0, said.out, said.err))


async def answers_of_a_server(kb: KnowledgeBase) -> list[str]:
    """Every string that a client is sent for resources and prompts; errors too."""
    sent: list[str] = []

    async def ask(asked: Awaitable[Any]) -> Any:
        try:
            answer = await asked
        except MCPError as error:
            sent.extend(strings_in([error.message, error.data]))
            return None
        sent.extend(strings_in(answer.model_dump(mode="json", by_alias=True)))
        return answer

    async with Client(VaultServer(Toolbox(kb))) as client:
        for resource in (await ask(client.list_resources())).resources:
            await ask(client.read_resource(resource.uri))
        await ask(client.list_prompts())
        for hostile in TOGETHER:
            await ask(client.get_prompt("what_do_you_know", {"topic": hostile}))
            await ask(client.get_prompt("remember_conversation", {"focus": hostile}))
            await ask(client.get_prompt(hostile, {hostile: hostile}))
            await ask(client.call_tool(hostile, {hostile: hostile}))
            await ask(client.list_resources(cursor=hostile))
            for address in (hostile, f"co://memory/{hostile}"):
                await ask(client.read_resource(address))
    return sent


@pytest.mark.slow
def test_resources_and_prompts_carry_it_as_data(attacked: Co) -> None:
    with KnowledgeBase.open() as kb:
        kb.sync()
        sent = anyio.run(answers_of_a_server, kb)

    assert len(sent) > 10 * len(HOSTILE)
    for one in sent:
        assert_data(one)


def test_names_in_the_list_of_sources_are_shown_and_not_obeyed(co: Co, vault: Vault, data_dir: Path) -> None:
    entries: list[Added] = []
    for number, hostile in enumerate(TOGETHER):
        folder = vault.root.parent / f"beside{number}"
        folder.mkdir()
        (folder / "note.md").write_text("A zebra.")
        origin = Origin("folder", str(folder), re.sub("[/:]", "_", hostile))
        entries.append(Added(str(vault.root), origin, hostile))
    change_registry(str(data_dir), lambda _: entries)
    for command in ("index sync", "search zebra -n 80", "list", "source list", "source tree", "index status", "doctor"):
        assert_inert(co(*command.split()))
        assert_inert(co(*command.split(), "--json"))
    assert_inert(co("source", "refresh", "--all"))
    assert len(co("source", "list", "--json").json) >= len(TOGETHER)
    for broken in ("name", "source", "path"):
        table = {"vault": str(vault.root), "source": "folder", "name": "x", "path": "/x", broken: f":{ESCAPES}"}
        said = "".join(f"{key} = {json.dumps(value)}\n" for key, value in table.items())
        (data_dir / "sources.toml").write_text(f"[[source]]\n{said}")
        ran = co("source", "list")
        assert_inert(ran)
        assert (ran.code, ran.out) == (2, "")


def test_titles_of_web_pages_are_shown_and_not_obeyed(co: Co, vault: Vault, data_dir: Path, server: WebServer) -> None:
    for number, hostile in enumerate(TOGETHER):
        said = html.escape(hostile)
        line = re.sub(r"[\r\n\x0b\x0c\x85\u2028\u2029]", " ", hostile).encode().decode("latin-1")
        server.page(f"/{number}", article(f"{said} {number}", f"A zebra, {said}."), etag=line, last_modified=line)
        server.routes[f"/gone{number}"] = response(b"", status=f"404 {line}", content_type=line, location=line)
        server.redirect(f"/away{number}", line)
    for kind in ("", "gone", "away"):
        assert_inert(co("add", *(f"{server.url}/{kind}{number}" for number in range(len(TOGETHER)))))
    assert len(vault.notes()) == len(TOGETHER)
    assert_inert(co("source", "refresh", "--all"))
    for command in ("list", "search zebra -n 80", "note context zebra", "source tree", "list --json"):
        assert_inert(co(*command.split()))
    for row in co("list", "--json").json:
        assert_inert(co("show", row["ref"]))
    script = Script([("search_knowledge", {"query": "zebra", "limit": 50, "detail": "full"})], "Yes.")
    with KnowledgeBase.open() as kb:
        Agent(script.model, capabilities=[Knowledge(knowledge_base=kb)]).run_sync("What is there?")
    assert 'provenance="web"' in script.told
    assert_data(script.told)
