"""No door lets a secret into the vault: it is refused, or masked if a person says so, before the first byte."""

from __future__ import annotations

import json
import os
import re
import shutil
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import anyio
import apsw
import pytest
from pydantic_ai import Agent, ModelRetry

from co_cli.agent import Knowledge
from co_cli.agent.anthropic_memory import MemoryToolProtocol
from co_cli.agent.harness import VaultMemoryStore
from co_cli.entrance.knowledge_base import KnowledgeBase
from co_cli.ground.errors import SecretError
from co_cli.tools import Toolbox
from tests.agent.protocols import harness_types as harness_types
from tests.agent.scripted import Script
from tests.command import Co
from tests.folder import Vault
from tests.safety.fake_secrets import make
from tests.sources.web_server import WebServer, article

TOKEN = make("ghp_{A36}")
TEXT = f"The bot of the harbour signs in with {TOKEN} on Mondays."
OLD = "---\ntitle: The bot\n---\nThe bot of the harbour signs in.\n"


def holding(secret: str, *folders: Path) -> list[str]:
    """Every file below these that has the secret, or a good part of it, in its bytes or its name."""
    part = secret[4:24]
    files = [path for folder in folders for path in folder.rglob("*") if path.is_file()]
    return [str(path) for path in files if part in path.name or part.encode() in path.read_bytes()]


def opened(co: Co) -> KnowledgeBase:
    return KnowledgeBase.open(os.environ["CO_VAULT"], os.environ["CO_DATA_DIR"])


def by_tool(tool: str, **arguments: Any) -> Callable[[Co, Path, WebServer], str]:
    def call(co: Co, outside: Path, server: WebServer) -> str:
        with opened(co) as kb:
            kb.sync()
            script = Script([(tool, arguments)], "Done.")
            Agent(script.model, capabilities=[Knowledge(knowledge_base=kb)]).run_sync("Go on.")
        return script.told

    return call


def by_memory_tool(**command: Any) -> Callable[[Co, Path, WebServer], str]:
    def call(co: Co, outside: Path, server: WebServer) -> str:
        with opened(co) as kb:
            return MemoryToolProtocol(kb).answer(command).text

    return call


def by_command(*arguments: str) -> Callable[[Co, Path, WebServer], str]:
    def call(co: Co, outside: Path, server: WebServer) -> str:
        ran = co(*(argument.replace("OUTSIDE", str(outside)) for argument in arguments))
        return ran.out + ran.err

    return call


def add_a_page(co: Co, outside: Path, server: WebServer) -> str:
    ran = co("add", server.page("/bot", article("The bot", TEXT)))
    return ran.out + ran.err


def by_the_harness(co: Co, outside: Path, server: WebServer) -> str:
    with opened(co) as kb:
        write = VaultMemoryStore(knowledge_base=kb).write
        try:
            return str(anyio.run(partial(write, "main/new.md", TEXT, expected_version=None)))
        except ModelRetry as error:
            return str(error)


DOORS: dict[str, Callable[[Co, Path, WebServer], str]] = {
    "co remember": by_command("remember", TEXT),
    "co remember, in its title": by_command("remember", "The bot signs in on Mondays.", "--title", TEXT),
    "co remember, as a tag": by_command("remember", "The bot signs in on Mondays.", "--tag", TOKEN),
    "co remember, in a field": by_command("remember", "The bot signs in.", "--set", f"note={TOKEN}"),
    "co edit": by_command("edit", "memory:bot", "--body", TEXT),
    "co edit, a field": by_command("edit", "memory:bot", "--set", f"note={TOKEN}"),
    "co note article add": by_command("note", "article", "add", "OUTSIDE/file.md"),
    "co data import obsidian": by_command("data", "import", "obsidian", "OUTSIDE/obsidian", "--yes"),
    "co data import mem0": by_command("data", "import", "mem0", "OUTSIDE/mem0.json", "--yes"),
    "co data import co": by_command("data", "import", "co", "OUTSIDE/notes", "--yes"),
    "co add": add_a_page,
    "save_memory": by_tool("save_memory", content=TEXT),
    "save_article": by_tool("save_article", content=TEXT, title="The bot"),
    "update_memory": by_tool("update_memory", ref="memory:bot", content=TEXT),
    "memory tool, create": by_memory_tool(command="create", path="/memories/new.md", file_text=TEXT),
    "memory tool, replace": by_memory_tool(
        command="str_replace", path="/memories/bot.md", old_str="signs in", new_str=TOKEN
    ),
    "memory tool, insert": by_memory_tool(command="insert", path="/memories/bot.md", insert_line=4, insert_text=TOKEN),
    "harness": by_the_harness,
}
NAMES: dict[str, Callable[[Co, Path, WebServer], str]] = {
    "memory tool, name": by_memory_tool(command="create", path=f"/memories/{TOKEN}.md", file_text="x"),
    "memory tool, rename": by_memory_tool(
        command="rename", old_path="/memories/bot.md", new_path=f"/memories/{TOKEN}.md"
    ),
}


@pytest.fixture
def outside(tmp_path: Path) -> Path:
    """Files that somebody wants brought in."""
    folder = tmp_path / "outside"
    (folder / "obsidian").mkdir(parents=True)
    (folder / "file.md").write_text(TEXT)
    (folder / "obsidian" / "bot.md").write_text(TEXT)
    (folder / "mem0.json").write_text(json.dumps([{"id": "1", "memory": TEXT}]))
    (folder / "notes" / "memories").mkdir(parents=True)
    (folder / "notes" / "memories" / "new.md").write_text(TEXT)
    return folder


def test_a_note_that_holds_one_already_can_still_be_mended(co: Co, vault: Vault) -> None:
    vault.write("memories/bot.md", f"---\ntitle: The bot\n---\n{TEXT}\n")

    assert co("edit", "memory:bot", "--tag", "mondays").code == 0
    assert TOKEN in vault.read("memories/bot.md")


def test_what_an_editor_wrote_is_refused_and_kept_where_only_the_person_reads_it(
    co: Co, vault: Vault, editor: Callable[[str], None]
) -> None:
    vault.write("memories/bot.md", OLD)
    editor(f"echo '{TOKEN}' >> \"$1\"")

    ran = co("edit", "memory:bot")

    assert (ran.code, vault.read("memories/bot.md")) == (2, OLD)
    assert "a github pat (line 5: ghp_… (40 characters))" in ran.err
    assert TOKEN not in ran.err
    [copy] = re.findall(r"what you wrote is kept in (\S+)", ran.err)
    assert TOKEN in Path(copy).read_text()
    assert Path(copy).parent.stat().st_mode & 0o077 == 0
    shutil.rmtree(Path(copy).parent)


def test_doctor_finds_those_in_notes_and_in_the_trash_and_shows_none(co: Co, vault: Vault) -> None:
    for path in ("memories/bot.md", "articles/other.md"):
        vault.write(path, f"---\ntitle: The bot\n---\n{TEXT}\n")
    co("index", "sync")
    there = co("doctor").out

    told = co("edit", "memory:bot", "--body", "The bot signs in with a key of its own.").out

    assert "holds a github pat, and 1 more notes hold one" in there
    assert "co note review --only secret" in there
    assert "which holds a github pat: delete it there, too" in told
    vault.delete("articles/other.md")
    [kept] = [path for path in vault.root.rglob("*.md") if ".trash" in path.parts]
    trashed = co("doctor").out
    assert f"{kept.relative_to(vault.root)}:4 holds a github pat" in trashed
    assert f"rm {kept}" in trashed
    assert TOKEN[4:24] not in there + told + trashed
    kept.unlink()
    assert "no note holds a key" in co("doctor").out


@pytest.mark.parametrize("door", [*DOORS, *NAMES])
def test_a_secret_is_refused_and_reaches_no_file_or_masked_if_the_person_says_so(
    co: Co,
    vault: Vault,
    data_dir: Path,
    home: Path,
    outside: Path,
    server: WebServer,
    door: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    vault.write("memories/bot.md", OLD)
    save = {**DOORS, **NAMES}[door]

    told = save(co, outside, server)

    assert "github pat" in told
    assert "nothing was saved" in told
    assert vault.read("memories/bot.md") == OLD
    if door in DOORS:
        monkeypatch.setenv("CO_SECRETS", "redact")
        masked = save(co, outside, server)
        assert "1 secret masked" in masked or door == "harness"
        assert "does not hold" not in masked
        assert re.search(r"ghp[\\_]…[ -]\(4[01][ -]characters\)", " ".join(map(vault.read, vault.notes())))
        told += masked
    assert TOKEN[4:24] not in told
    assert holding(TOKEN, vault.root, data_dir, home) == []


def test_env_lines_and_bot_tokens_are_refused_and_only_a_person_is_told_how_to_allow_them(co: Co, vault: Vault) -> None:
    for form in ("DB_PASSWORD={A16}", "export CLIENT_SECRET='{A32}'", "AWS_SECRET_ACCESS_KEY={b40}", "{d9}:AA{A33}"):
        line = make(form)
        with opened(co) as kb, pytest.raises(SecretError, match=r"nothing was saved: take it out$"):
            Toolbox(kb).call("save_memory", {"content": line})
        assert "set CO_SECRETS to redact or allow" in co("remember", line).err
    assert vault.files() == []


def test_an_import_shows_no_key_of_a_title_or_a_file_name(
    co: Co, vault: Vault, data_dir: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    said = [{"uuid": "2", "sender": "human", "text": f"Use {TOKEN} for the bot."}]
    chat = {"uuid": "1", "name": f"Use {TOKEN[:24]}", "created_at": "2026-01-01T00:00:00Z", "chat_messages": said}
    (tmp_path / "conversations.json").write_text(json.dumps([chat, {**chat, "uuid": "3", "name": f"With {TOKEN}"}]))
    (tmp_path / "brain").mkdir()
    (tmp_path / "brain" / f"n {TOKEN}.md").write_text("What a name.")
    for policy in ("refuse", "redact"):  # nobody can take a key out of what was said: it is masked
        monkeypatch.setenv("CO_SECRETS", policy)
        for more in ([], ["--yes"], ["--json"]):
            ran = co("data", "import", "claude", str(tmp_path / "conversations.json"), *more)
            assert TOKEN[4:12] not in ran.out + ran.err
        assert co("data", "import", "obsidian", str(tmp_path / "brain"), "--yes").code != 0
        assert co("note", "article", "add", str(tmp_path / "brain" / f"n {TOKEN}.md")).code != 0
        assert len(vault.notes()) == 2
        assert holding(TOKEN, vault.root, data_dir) == []  # nor in a heading, where `_` is taken for Markdown


def test_a_receipt_counts_what_was_masked(co: Co, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CO_SECRETS", "redact")
    other, third = make("glpat-{A20}"), make("ghp_{A36}", 3)

    assert co("remember", f"{TEXT} And {other}, not {TOKEN}.", "--tag", third, "--json").json["masked"] == 3
    assert co("remember", f"Elms: {TOKEN} and {other}.").out.endswith(" (2 secrets masked)\n")
    with opened(co) as kb:
        result = Toolbox(kb).call("save_memory", {"content": f"Ash: {TOKEN}.", "tags": [third]})
        assert (result.data["masked"], result.data["read_back"]) == (2, True)


def test_an_import_shows_no_key_and_takes_its_masks_for_no_edit(
    co: Co, vault: Vault, outside: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CO_SECRETS", "redact")
    arguments = ("data", "import", "obsidian", str(outside / "obsidian"))
    planned, written = co(*arguments), co(*arguments, "--yes")

    assert "1 secret to be masked in 1 note" in planned.out
    assert "1 secret masked in 1 note" in written.out
    assert TOKEN[4:12] not in planned.out + written.out
    again = co(*arguments, "--yes", "--json").json
    assert (again["counts"]["unchanged"], again["counts"]["updated"]) == (1, 0)
    (outside / "obsidian" / "bot.md").write_text(TEXT.replace("Mondays", "Tuesdays"))
    changed = co(*arguments, "--yes", "--json").json
    assert (changed["counts"]["updated"], changed["items"][0]["masked"]) == (1, 1)
    assert "Tuesdays" in vault.read(vault.notes()[0])
    assert [path for path in vault.root.rglob("*.md") if ".trash" in path.parts] == []


def test_a_query_that_holds_a_key_is_not_written_down(co: Co, vault: Vault, data_dir: Path, home: Path) -> None:
    vault.write("memories/bot.md", OLD)
    card = make("{card}")
    with KnowledgeBase.open(vault.root, data_dir) as kb:
        for query in (f"bot {TOKEN}", f"bot {card}", "the password is hunter2!x"):
            co("search", query)
            kb.search(query, track=True)
    co("feedback", "stats")

    files = [path.read_bytes() for path in data_dir.rglob("*") if path.is_file()]
    assert holding(TOKEN, data_dir, home) == []
    assert [data for data in files if card.encode() in data or b"hunter2!x" in data] == []
    connection = apsw.Connection(str(data_dir / "activity.db"))
    asked = {row[0] for row in connection.execute("select text from searches")}
    connection.close()
    assert asked == {
        "bot ghp_… (40 characters)",
        f"bot {card[:4]}… (19 characters)",
        "the password is h… (9 characters)",
    }


def test_neither_a_rating_nor_the_history_of_titles_keeps_a_secret(co: Co, vault: Vault, data_dir: Path) -> None:
    other = make("The door: DB_PASSWORD={A12}!{d2}")
    vault.write("memories/bot.md", OLD.replace("The bot", f"The bot {TOKEN}", 1))
    co("index", "sync")
    vault.write("memories/bot.md", OLD)
    co("index", "sync")

    told = co("feedback", "give", "memory:bot", "good", "--query", f"bot {TOKEN}").out
    with opened(co) as kb:
        tools = Toolbox(kb, names=["rate_memory"])
        rated = tools.call("rate_memory", {"ref": "memory:bot", "verdict": "bad", "query": other}).text

    connection = apsw.Connection(str(data_dir / "activity.db"))
    asked = {row[0] for row in connection.execute("select query from judgements")}
    titles = {row[0] for row in connection.execute("select title from versions")}
    connection.close()
    assert asked == {"bot ghp_… (40 characters)", "The door: DB_PASSWORD=" + f"{other[22]}… (15 characters)"}
    assert titles == {"The bot", "The bot ghp_… (40 characters)"}
    assert TOKEN[4:24] not in told + rated
    kept = holding(TOKEN, data_dir) + holding(other[18:], data_dir)
    assert [path for path in kept if "activity" in Path(path).name] == []


def test_a_text_that_meets_a_conflict_brings_no_secret_into_the_trash(kb: KnowledgeBase, vault: Vault) -> None:
    before = vault.write("memories/bot.md", OLD).read_bytes()
    vault.write("memories/bot.md", f"{OLD}Somebody else was here.\n")

    with pytest.raises(SecretError):
        kb.writer().rewrite(str(vault.path("memories/bot.md")), before + TEXT.encode(), before)

    assert holding(TOKEN, vault.root) == []
