"""The table of hostile strings, at every door: shown and never obeyed, whoever reads it."""

from __future__ import annotations

import html
import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from pydantic_ai import Agent, models

from co_cli.agent import Knowledge
from co_cli.cli.completion import SCRIPTS
from co_cli.knowledge_base import KnowledgeBase
from tests.agent.scripted import Script
from tests.cli.screen import on_terminal
from tests.command import Co, Ran
from tests.safety.hostile import HOSTILE, OBEYED, OURS, file_name, note
from tests.vault import Vault

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
    monkeypatch.setattr(models, "ALLOW_MODEL_REQUESTS", False)


def assert_inert(ran: Ran) -> None:
    found = OBEYED.search(ran.out + ran.err)
    assert found is None, (ran.out + ran.err)[max(0, found.start() - 80) : found.end() + 20]
    assert "Traceback" not in ran.err


SHOWN = [
    ["search", "zebra", "-n", "80"],
    ["search", "zebra", "-n", "80", "--backend", "fts5"],
    ["search", "zebra", "-n", "80", "--backend", "grep"],
    ["recall", "zebra", "-n", "80"],
    ["list"],
    ["tree"],
    ["sources"],
    ["status"],
    ["stats"],
    ["doctor"],
    ["review", "--list"],
    ["context", "zebra"],
    ["skills"],
    ["skills", "search", "zebra"],
    ["history", "memory:m0"],
    ["feedback", "zebra", "memory:m0"],
    ["completion", "--words", "show", ""],
    ["sync"],
    ["settings"],
    ["trust", "--list"],
]


@pytest.mark.parametrize("command", SHOWN, ids=" ".join)
def test_what_is_stored_is_shown_and_not_obeyed(attacked: Co, command: list[str]) -> None:
    for more in ([], *([["--json"]] if command[0] != "completion" else [])):
        assert_inert(attacked(*command, *more))


@pytest.mark.parametrize("kind", HOSTILE)
def test_what_is_said_to_a_command_is_text(attacked: Co, kind: str) -> None:
    hostile, number = HOSTILE[kind], list(HOSTILE).index(kind)
    here = f"memory:m{number}"
    for command in (
        ["search", "--", hostile],
        ["show", "--", hostile],
        ["show", here],
        ["show", f"articles/{file_name(hostile)}/{file_name(hostile)}.md"],
        ["why", hostile, here],
        ["list", "--tag", hostile, "--where", f"x={hostile}"],
        ["list", "--where", hostile],
        ["search", "zebra", "--since", hostile],
        ["add", "--", hostile],
        ["import", "obsidian", "--", hostile],
        ["settings", "--", hostile],
        ["--vault", hostile, "list"],
        [hostile],
        ["remember", "--title", hostile, "--tag", hostile, "--", f"quagga {number} {hostile}"],
    ):
        assert_inert(attacked(*command))
    assert list(attacked.folder.parent.rglob("owned")) == []


def test_a_terminal_sees_our_colours_and_nothing_else(attacked: Co) -> None:
    drawn = on_terminal(attacked.folder, "search", "zebra", "-n", "80")

    assert OURS.search(drawn)
    assert OBEYED.search(OURS.sub("", drawn)) is None
    assert "\x1b[31mred" not in drawn


def test_a_name_is_never_run_by_a_shell_that_completes(attacked: Co, tmp_path: Path) -> None:
    vault = Path(os.environ["CO_VAULT"])
    (vault / "memories" / "a$(touch owned)`touch owned`.md").write_text("zebra")
    (vault / "memories" / "plain-name.md").write_text("zebra")
    attacked("sync")
    co = tmp_path / "co"
    co.write_text(f'#!/bin/sh\nexec {sys.executable} -m co_cli "$@"\n')
    co.chmod(0o755)
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
    ("read_note", {"ref": "memory:m21"}),
    ("read_note", {"ref": HOSTILE["the end of a fence"]}),
    ("search_knowledge", {"query": HOSTILE["the end of a fence"], "tags": [HOSTILE["a chat template"]]}),
]


@pytest.mark.parametrize(("tool", "arguments"), TOOLS)
def test_a_model_gets_it_as_data(attacked: Co, tool: str, arguments: dict[str, object]) -> None:
    script = Script([(tool, arguments)], "Yes.")
    with KnowledgeBase.open() as kb:
        Agent(script.model, capabilities=[Knowledge(knowledge_base=kb)]).run_sync("What is there?")

    told = script.told
    opened, closed = told.count("<note "), told.count("</note>")
    assert opened == closed
    assert "<|im_start|>" not in told
    assert "[INST]" not in told
    assert "<system>" not in told
    assert not re.search("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069\U000e0000-\U000e007f]", told)
    for inside in re.findall(r"<note [^>]*>\n(.*?)\n</note>", told, re.DOTALL):
        assert not MARKS.search(html.unescape(inside).replace("&lt;", "")) or "&lt;" in inside


def test_an_export_and_an_import_carry_it_and_change_nothing(attacked: Co, tmp_path: Path) -> None:
    assert_inert(attacked("export", "--to", str(tmp_path / "out")))
    assert_inert(attacked("export", "--to", str(tmp_path / "out.jsonl")))
    Vault(tmp_path / "new")

    ran = attacked("--vault", str(tmp_path / "new"), "import", "co", str(tmp_path / "out"), "--yes")

    assert_inert(ran)
    assert len(Vault(tmp_path / "new").notes()) > len(HOSTILE)
