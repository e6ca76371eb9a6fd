"""Every command, setting and public name is documented, and the examples of README and docs run."""

from __future__ import annotations

import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

import co_cli
from co_cli.cli.app import COMMANDS
from co_cli.cli.parsing import make_parser
from co_cli.settings import SETTINGS, Setting
from tests.command import Co
from tests.house.package import REPOSITORY

README = REPOSITORY / "README.md"
REFERENCE = REPOSITORY / "docs" / "reference"
BLOCK = re.compile(r"^```(\w+)[^\n]*\n(.*?)^```", re.MULTILINE | re.DOTALL)
ONE_AFTER_THE_OTHER = """
import sys
for block in sys.argv[1:]:
    print(block, file=sys.stderr)
    exec(compile(block, "<the example above>", "exec"), {"__name__": "__main__"})
"""

pytestmark = pytest.mark.skipif(not README.exists(), reason="an installed package has no docs beside it")


def reference() -> str:
    return "\n".join(file.read_text("utf-8") for file in sorted(REFERENCE.glob("*.md")))


PAGES = [page for page in (README, *sorted((REPOSITORY / "docs").rglob("*.md"))) if page.exists()]


def blocks(page: Path, language: str) -> list[str]:
    return [text for name, text in BLOCK.findall(page.read_text("utf-8")) if name == language]


def page_name(page: Path) -> str:
    return page.relative_to(REPOSITORY).as_posix()


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_is_in_the_reference(command: str) -> None:
    assert re.search(rf"\bco {command}\b", reference())


@pytest.mark.parametrize("command", COMMANDS)
def test_every_option_of_a_command_is_in_the_reference(command: str) -> None:
    text = reference()
    actions = make_parser(command)._actions
    options = [option for action in actions if action.help != "==SUPPRESS==" for option in action.option_strings]

    assert [option for option in options if option.startswith("--") and option not in text] == []


@pytest.mark.parametrize("setting", SETTINGS, ids=lambda setting: setting.name)
def test_every_setting_is_in_the_reference(setting: Setting) -> None:
    text = reference()

    assert f"`{setting.name}`" in text
    assert setting.environment in text


@pytest.mark.parametrize("name", [name for name in co_cli.__all__ if not name.startswith("_")])
def test_every_public_name_is_in_the_reference(name: str) -> None:
    assert re.search(rf"\b{name}\b", reference())


def test_the_readme_has_examples_of_both_kinds() -> None:
    assert blocks(README, "console")
    assert blocks(README, "python")


def commands_of(block: str) -> list[tuple[str, list[str]]]:
    """The `$ ` lines of a console block, each with the output shown under it."""
    found: list[tuple[str, list[str]]] = []
    for line in block.splitlines():
        if line.startswith("$ "):
            found.append((line[2:], []))
        elif found:
            found[-1][1].append(line.rstrip())
    return found


@pytest.mark.parametrize("page", PAGES, ids=page_name)
def test_the_console_examples_of_a_page_run(page: Path, co: Co, monkeypatch: pytest.MonkeyPatch) -> None:
    """Those that begin with `co`, in order, in one folder with a handbook; a line that is no `...` must be printed."""
    monkeypatch.delenv("CO_VAULT")
    (co.folder / "handbook").mkdir()
    (co.folder / "handbook" / "deploy.md").write_text("Blue takes the traffic before green does.\n")
    for block in blocks(page, "console"):
        for command, shown in commands_of(block):
            words = shlex.split(command, comments=True)
            if words[:1] != ["co"]:
                continue
            ran = co(*words[1:])
            assert ran.code == 0, f"{command}: {ran.err}"
            printed = [line.rstrip() for line in ran.out.splitlines()]
            for line in shown:
                if line and not line.lstrip().startswith(("...", "…")):
                    assert line in printed, f"{command} does not print {line!r} but\n{ran.out}"


@pytest.mark.parametrize("page", PAGES, ids=page_name)
def test_the_python_examples_of_a_page_run(page: Path, home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """One after the other, in a folder that has nothing: a vault is there only if the page says how to make it."""
    monkeypatch.setenv("OLLAMA_BASE_URL", "http://127.0.0.1:9/v1")  # an agent is made, and never asked
    if "`co init --vault notes`" in page.read_text("utf-8"):
        (home / "notes").mkdir()
    if examples := blocks(page, "python"):
        ran = subprocess.run(
            [sys.executable, "-c", ONE_AFTER_THE_OTHER, *examples],
            capture_output=True,
            text=True,
            check=False,
            cwd=home,
        )
        assert ran.returncode == 0, ran.stderr
