"""What only shows when `co` is a process of its own: pipes, signals, shells, start-up."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from co_cli.cli.completion import suggestions
from tests.command import Co
from tests.vault import Vault

BASH = shutil.which("bash")


def test_python_m_and_the_co_script_are_one_command(co: Co, vault: Vault) -> None:
    vault.write("memories/oak.md", "Oaks live long.")
    script = Path(sys.executable).with_name("co")
    if not script.exists():
        pytest.skip("co is not installed beside this Python")

    by_script = subprocess.run([script, "list"], capture_output=True, text=True, check=True)

    assert by_script.stdout == co.process("list").out != ""


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


@pytest.mark.parametrize("wait_for", ["stdin", "editor"])
def test_ctrl_c_is_one_line_and_exit_code_130(co: Co, vault: Vault, tmp_path: Path, wait_for: str) -> None:
    vault.write("memories/oak.md", "Oaks.")
    ready = tmp_path / "ready"
    editor = tmp_path / "editor"
    editor.write_text(f"#!/bin/sh\necho > '{ready}'\nsleep 30\n")
    editor.chmod(0o755)
    code = (
        "import sys, signal; signal.signal(signal.SIGINT, signal.default_int_handler);"
        "from co_cli.cli.app import main; print('up', file=sys.stderr, flush=True); sys.exit(main(sys.argv[1:]))"
    )
    arguments = ["remember", "-"] if wait_for == "stdin" else ["edit", "oak"]
    process = subprocess.Popen(
        [sys.executable, "-c", code, *arguments],
        stdin=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "EDITOR": str(editor)},
        start_new_session=True,
    )
    assert process.stderr
    process.stderr.readline()
    while wait_for == "editor" and not ready.exists():
        assert process.poll() is None
    time.sleep(0.2)  # until it waits
    os.killpg(process.pid, signal.SIGINT)

    assert process.wait(120) == 130
    assert process.stderr.read() == "co: stopped; what was done so far is kept\n"


def test_a_terminal_that_cannot_show_a_letter_gets_a_question_mark(co: Co, vault: Vault) -> None:
    vault.write("memories/oak.md", "---\ntitle: 桜 🎉\n---\nOaks.")

    ran = co.process("list", env={"PYTHONIOENCODING": "ascii", "PYTHONUTF8": "0", "LC_ALL": "C"})

    assert (ran.code, ran.err) == (0, "")
    assert "memory:oak  ? ?" in ran.out


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (["se"], ["search"]),
        (["--v"], ["--version", "--vault"]),
        (["search", "--no-s"], ["--no-sync"]),
        (["search", "--backend", ""], ["grep", "fts5", "hybrid"]),
        (["search", "--source", "art"], ["article"]),
        (["search", "--tag", ""], []),
        (["source", "tree", "fol"], ["folder:trees"]),
        (["list", ""], ["memory", "article", "folder:trees"]),
        (["config", "completion", "b"], ["bash"]),
        (["config", "show", "knowledge_s"], ["knowledge_search_backend"]),
        (["show", "memory:o"], ["memory:oak"]),
        (["show", "--raw", "memory:"], ["memory:elm", "memory:oak"]),
        (["note", "restore", ""], ["article:trees/yew"]),
        (["index", "re"], ["rebuild", "reembed"]),
        (["nonsense", ""], []),
    ],
)
def test_completion_suggests_what_may_follow(co: Co, vault: Vault, words: list[str], expected: list[str]) -> None:
    for path in ("memories/oak.md", "memories/elm.md", "articles/trees/yew.md"):
        vault.write(path, path)
    (co.folder / "trees").mkdir()
    (co.folder / "trees" / "ash.txt").write_text("Ash.")
    co("add", str(co.folder / "trees"))
    co("index", "sync")
    co("forget", "trees/yew")

    assert suggestions(words) == expected


def test_completion_looks_into_the_vault_that_the_line_names(
    co: Co, vault: Vault, monkeypatch: pytest.MonkeyPatch
) -> None:
    vault.write("memories/oak.md", "Oaks.")
    co("index", "sync")
    monkeypatch.delenv("CO_VAULT")

    assert suggestions(["--vault", str(vault.root), "show", "memory:"]) == ["memory:oak"]
    assert suggestions(["--vault", str(vault.root / "nowhere"), "show", "memory:"]) == []


@pytest.mark.skipif(BASH is None, reason="there is no bash to complete in")
@pytest.mark.parametrize(
    ("line", "expected"),
    [("co se", ["search"]), ("co show memory:o", ["memory:oak"]), ("co search --backend h", ["hybrid"])],
)
def test_bash_really_completes(co: Co, vault: Vault, tmp_path: Path, line: str, expected: list[str]) -> None:
    vault.write("memories/oak.md", "Oaks.")
    co("index", "sync")
    co_script = tmp_path / "bin" / "co"
    co_script.parent.mkdir()
    co_script.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m co_cli "$@"\n')
    co_script.chmod(0o755)
    script = f"""
eval "$(co config completion bash)"
COMP_WORDS=({line}); COMP_CWORD=$(( ${{#COMP_WORDS[@]}} - 1 )); _co; printf '%s\\n' "${{COMPREPLY[@]}}"
"""

    ran = subprocess.run(
        [str(BASH), "--norc", "-c", script],
        capture_output=True,
        text=True,
        env={**os.environ, "PATH": f"{co_script.parent}:{os.environ['PATH']}"},
        check=True,
    )

    assert (ran.stdout.split(), ran.stderr) == (expected, "")


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_every_shell_accepts_its_script(co: Co, shell: str) -> None:
    script = co("config", "completion", shell).out
    assert "co config completion --words" in script
    program = shutil.which(shell)
    if program is None:
        pytest.skip(f"there is no {shell} to ask")
    checked = subprocess.run([program, "-n"], input=script, text=True, capture_output=True, check=False)
    assert (checked.returncode, checked.stderr) == (0, "")


def test_a_search_that_only_read_leaves_its_log_and_one_that_indexed_puts_it_away(
    co: Co, vault: Vault, data_dir: Path
) -> None:
    for name in ("oak", "elm"):
        os.utime(vault.write(f"memories/{name}.md", f"The {name} lives long."), ns=(10**18, 10**18))
    log = data_dir / "search.db-wal"

    assert co.process("search", "oak").code == 0
    assert not log.exists()
    assert co.process("search", "oak").code == 0
    assert log.stat().st_size == 0

    os.utime(vault.write("memories/ash.md", "The ash lives long."), ns=(10**18, 10**18))
    ran = co.process("search", "ash")

    assert "memory:ash" in ran.out
    assert not log.exists()
    assert co.process("doctor").code == 0
