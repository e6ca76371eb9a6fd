"""What only shows when `co` is a process of its own: pipes, signals, shells and start-up."""

from __future__ import annotations

import os
import shlex
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from co_cli.cli.completion import SCRIPTS, suggestions
from tests.command import Co, write_script
from tests.folder import Vault

COMPLETED = {
    "se": "search setup serve",
    "--v": "--version --vault",
    "search --no-s": "--no-sync",
    "search --backend ": "grep fts5 hybrid",
    "search --source art": "article",
    "search --tag ": "deploy tree/old",
    "source tree fol": "folder:trees",
    "list ": "memory article conversation entity resource folder:trees",
    "config completion b": "bash",
    "config show knowledge_s": "knowledge_search_backend",
    "show memory:o": "memory:oak",
    "show folder:": "folder:trees",
    "show folder:trees/": "folder:trees/ash.txt",
    "note why age memory:e": "memory:elm",
    "remember Oaks --supersedes memory:e": "memory:elm",
    "source refresh ": "folder:trees memory:elm memory:oak",
    "show --raw memory:": "memory:elm memory:oak",
    "note restore ": "article:trees/yew",
    "index re": "rebuild reembed",
    "nonsense ": "",
}


@pytest.mark.medium
def test_python_m_and_the_co_script_are_one_command(co: Co, vault: Vault) -> None:
    vault.write("memories/oak.md", "Oaks live long.")
    script = Path(sys.executable).with_name("co")
    if not script.exists():
        pytest.skip("co is not installed next to this Python")

    by_script = subprocess.run([script, "list"], capture_output=True, text=True, check=True)

    assert by_script.stdout == co.process("list").out != ""


@pytest.mark.medium
def test_a_reader_that_goes_away_is_no_error(co: Co, vault: Vault) -> None:
    vault.write("memories/oak.md", "Oaks live long.\n" * 100_000)

    process = subprocess.Popen(
        [sys.executable, "-m", "co_cli", "show", "oak"], stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    assert process.stdout
    assert process.stderr
    process.stdout.readline()
    process.stdout.close()  # as head does

    assert process.wait(120) == 0
    assert process.stderr.read() == b""


@pytest.mark.medium
def test_ctrl_c_is_one_line_and_exit_code_130(
    co: Co, vault: Vault, tmp_path: Path, editor: Callable[[str], None]
) -> None:
    vault.write("memories/oak.md", "Oaks.")
    ready = tmp_path / "ready"
    editor(f"echo > '{ready}'\nsleep 30")
    process = subprocess.Popen(
        [sys.executable, "-m", "co_cli", "edit", "oak"],
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    assert process.stderr
    while not ready.exists():
        assert process.poll() is None
        time.sleep(0.01)
    os.killpg(process.pid, signal.SIGINT)

    assert process.wait(120) == 130
    assert process.stderr.read() == "co: stopped; nothing is broken, run it again to finish\n"


@pytest.mark.medium
def test_a_terminal_that_cannot_show_a_letter_gets_a_question_mark(co: Co, vault: Vault) -> None:
    vault.write("memories/oak.md", "---\ntitle: 桜 🎉\n---\nOaks.")

    ran = co.process("list", env={"PYTHONIOENCODING": "ascii", "PYTHONUTF8": "0", "LC_ALL": "C"})

    assert (ran.code, ran.err) == (0, "")
    assert "memory:oak  ? ?" in ran.out


def test_completion_suggests_what_may_follow(co: Co, vault: Vault, monkeypatch: pytest.MonkeyPatch) -> None:
    for path in ("memories/oak.md", "memories/elm.md", "articles/trees/yew.md"):
        vault.write(path, path)
    vault.write("memories/oak.md", "---\ntags: [tree/old, deploy]\n---\nOaks live long.")
    (co.folder / "trees").mkdir()
    (co.folder / "trees" / "ash.txt").write_text("Ash.")
    co("add", str(co.folder / "trees"))
    co("index", "sync")
    co("forget", "trees/yew")

    assert {line: " ".join(suggestions(line.split(" "))) for line in COMPLETED} == COMPLETED
    monkeypatch.delenv("CO_VAULT")
    assert suggestions(["--vault", str(vault.root), "show", "memory:o"]) == ["memory:oak"]
    assert suggestions(["--vault", str(vault.root / "nowhere"), "show", "memory:"]) == []


@pytest.mark.medium
def test_completion_takes_titles_aliases_paths_and_refs_with_spaces(co: Co, vault: Vault, tmp_path: Path) -> None:
    vault.write("My Notes/blue pool.md", "---\ntitle: Blue pool first\naliases: [Azure one]\n---\nBlue first.")
    co("index", "sync")
    write_script(tmp_path / "co", f'exec {sys.executable} -m co_cli "$@"')
    ref, spaced = "article:/My Notes/blue pool", "article:/My\\ Notes/blue\\ pool"
    expected = {
        ("show", ""): [spaced],
        ("edit", "article:/My\\ No"): [spaced],
        ("show", "'article:/My No"): [ref],
        ("show", '"Blue p'): ["Blue pool first"],
        ("edit", "Blue"): ["Blue\\ pool\\ first"],
        ("edit", "Azu"): ["Azure\\ one"],
        ("open", "My"): ["My\\ Notes/blue\\ pool.md"],
    }

    found: dict[tuple[str, str], list[str]] = {}
    for words in expected:
        given = " ".join(map(shlex.quote, words))
        script = f'{SCRIPTS["bash"]}COMP_WORDS=(co {given}); COMP_CWORD=2; _co; printf "%s\\n" "${{COMPREPLY[@]}}"'
        environ = {**os.environ, "PATH": f"{tmp_path}:{os.environ['PATH']}"}
        ran = subprocess.run(["bash", "-c", script], env=environ, capture_output=True, text=True, check=True)
        found[words] = ran.stdout.splitlines()
    assert found == expected
    co("forget", "Azure one")
    assert suggestions(["note", "restore", "Blue"]) == ["Blue pool first"]
    assert suggestions(["note", "restore", ""]) == [ref]


def test_every_shell_accepts_its_script(co: Co) -> None:
    for shell in ("bash", "zsh", "fish"):
        script = co("config", "completion", shell).out
        assert "co config completion --words" in script
        if program := shutil.which(shell):
            checked = subprocess.run([program, "-n"], input=script, text=True, capture_output=True, check=False)
            assert (checked.returncode, checked.stderr) == (0, "")
