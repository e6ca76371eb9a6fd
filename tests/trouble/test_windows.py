"""What differs on Windows, in processes that lack what it lacks, and with its own rules for paths and consoles.

`windows/sitecustomize.py` changes the system's calls, and nothing of ours.
"""

from __future__ import annotations

import ctypes
import ntpath
import os
import subprocess
import sys
import time
import types
from collections.abc import Callable
from pathlib import Path

import pytest

from co_cli.cli import editor, terminal
from co_cli.ground.errors import VaultError
from co_cli.ground.paths import is_inside, path_inside, permission_cure, shell_line
from co_cli.ground.values import moment_text
from co_cli.notes.refs import is_taken_by_windows, slugify
from co_cli.notes.store import NoteStore
from co_cli.sources.walk import JUNCTION, scan_origin
from tests.command import Co, Ran
from tests.folder import Vault
from tests.sources.document_files import word

SIMULATION = Path(__file__).with_name("windows")
HOLD = "import sys, time; held = open(sys.argv[1], 'rb'); print('held', flush=True); time.sleep(float(sys.argv[2]))"

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="it is simulated with what /proc tells")
Command = Callable[..., Ran]


@pytest.fixture
def windows(co: Co, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Command:
    """`co` in a process that takes this machine for Windows, with a console of the West."""
    for variable in ("HOME", "XDG_CONFIG_HOME", "XDG_DATA_HOME", "CO_VAULT", "CO_DATA_DIR"):
        monkeypatch.delenv(variable)
    folders = {"USERPROFILE": "profile", "LOCALAPPDATA": "local", "APPDATA": "roaming"}
    environment = {name: str(tmp_path / folder) for name, folder in folders.items()}
    environment |= {"PYTHONPATH": str(SIMULATION), "PYTHONIOENCODING": "cp1252", "PYTHONWARNDEFAULTENCODING": "1"}

    def run(*arguments: str, code: int = 0, stdin: str = "") -> Ran:
        ran = co.process(*arguments, env=environment, stdin=stdin)
        assert ran.code == code, f"co {' '.join(arguments)}: {ran.out}{ran.err}"
        assert "unexpected" not in ran.err
        return ran

    return run


@pytest.fixture
def nt_paths(monkeypatch: pytest.MonkeyPatch) -> None:
    """Paths as Windows writes and compares them, until the end of the test."""
    monkeypatch.setattr(os, "path", ntpath)
    monkeypatch.setattr(os, "sep", "\\")
    monkeypatch.setattr(os, "name", "nt")


@pytest.mark.slow
def test_notes_index_activity_and_documents_work_without_what_windows_lacks(windows: Command, tmp_path: Path) -> None:
    folder = tmp_path / "handbook"
    folder.mkdir()
    (folder / "pool.docx").write_bytes(word(("The blue pool takes traffic first.", "")))
    (folder / "onboarding.md").write_text("# Onboarding\n\nNew colleagues get a laptop.\n")
    notes = tmp_path / "local" / "co-cli" / "knowledge" / "memories"

    windows("remember", "The kettle stands in the kitchen. \u90e8\u7f72", "--title", "Kettle", "--tag", "home")
    windows("edit", "kettle", "--body", "The kettle stands in the hall.")
    windows("forget", "kettle")
    windows("note", "restore", "kettle")
    windows("add", str(folder))
    assert "folder:handbook/pool.docx" in windows("search", "blue pool traffic").out
    assert "\ufffd" not in windows("search", "kettle hall", "--json").json["hits"][0]["snippet"]
    windows("index", "rebuild")
    windows("feedback", "give", "kettle", "good", "--query", "where is the kettle")
    windows("data", "backup", str(tmp_path / "copy.db"))
    windows("data", "restore", str(tmp_path / "copy.db"))
    assert [change["what"] for change in windows("note", "history", "kettle", "--json").json["changes"]] == [
        "restored",
        "removed",
        "updated",
        "created",
    ]
    windows("config", "set", "count_use", "off")
    windows("hook", "claude-code", stdin='{"hook_event_name": "UserPromptSubmit", "prompt": "where is the kettle"}')
    problems = [line for line in windows("doctor", "--fix").out.splitlines() if line.startswith(("!!", "XX"))]
    assert [line.partition(" was moved aside")[0] for line in problems] == ["!!  activity.db"]  # by the restore
    assert "win32" in windows("--version", "--verbose").out
    assert b"\r" not in (notes / "kettle.md").read_bytes()
    assert sorted(path.name for path in tmp_path.joinpath("local", "co-cli").glob(".co-tmp-*")) == []


@pytest.mark.slow
def test_a_file_that_a_scanner_looks_at_is_written_when_it_is_done(windows: Command, tmp_path: Path) -> None:
    windows("remember", "The kettle stands in the kitchen.", "--title", "Kettle")
    note = tmp_path / "local" / "co-cli" / "knowledge" / "memories" / "kettle.md"

    for seconds, code in ((0.8, 0), (60.0, 3)):
        scanner = subprocess.Popen([sys.executable, "-c", HOLD, note, str(seconds)], stdout=subprocess.PIPE)
        assert scanner.stdout
        assert scanner.stdout.readline() == b"held\n"
        ran = windows("edit", "kettle", "--body", f"It was held for {seconds} seconds.", code=code)
        scanner.kill()
        scanner.communicate()

    assert ran.err.startswith("co: cannot write memories/kettle.md: another program has it open, or you have")
    assert "It was held for 0.8 seconds." in note.read_text("utf-8")
    assert [path.name for path in note.parent.iterdir()] == ["kettle.md"]


@pytest.mark.slow
def test_an_index_that_another_process_has_open_is_not_swapped_and_that_is_one_line(
    windows: Command, tmp_path: Path
) -> None:
    windows("remember", "The kettle stands in the kitchen.", "--title", "Kettle")
    with open(tmp_path / "local" / "co-cli" / "search.db", "rb"):
        ran = windows("index", "rebuild", code=3)

    assert "is in use by another program; close it and try again" in ran.err
    assert "kettle" in windows("search", "kettle").out
    windows("index", "rebuild")


def test_no_title_makes_a_name_that_windows_takes_for_something_else() -> None:
    for title in ("CON", "nul", "Lpt1", "a: b?", "ends with a dot.", 'say "hi" <now>', "C:\\Windows\\notepad"):
        assert not is_taken_by_windows(f"{slugify(title)}.md"), title


def test_names_of_devices_and_streams_lead_to_no_file(vault: Vault, monkeypatch: pytest.MonkeyPatch) -> None:
    store = NoteStore(str(vault.root))
    monkeypatch.setattr(os, "name", "nt")

    for path in (
        "con.md",
        "memories/NUL",
        "com1.tar.md",
        "oak.md:stream",
        "oak.md.",
        "oak ",
        "a\\b.md",
        "C:x",
    ):
        with pytest.raises(VaultError, match="on Windows"):
            store.absolute(path)
    assert store.absolute("memories/console.md").endswith("console.md")


@pytest.mark.usefixtures("nt_paths")
def test_drives_cases_and_long_paths_are_compared_as_windows_does() -> None:
    assert path_inside("C:\\Notes\\memories\\Oak.md", "c:\\notes") == "memories/Oak.md"
    assert path_inside("D:\\notes\\oak.md", "C:\\notes") is None
    assert path_inside("\\\\?\\C:\\notes\\oak.md", "\\\\?\\C:\\notes") == "oak.md"
    assert path_inside("\\\\server\\share\\notes\\a.md", "\\\\server\\share\\notes") == "a.md"
    assert path_inside("C:\\notes", "C:\\notes\\") == ""
    assert is_inside("C:\\x", "C:\\")
    assert not is_inside("C:\\notes-of-others\\a.md", "C:\\notes")


@pytest.mark.usefixtures("nt_paths")
def test_commands_that_are_shown_can_be_typed_into_cmd_and_powershell(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("USERNAME", "mara b")

    assert shell_line("co", "add", "C:\\My notes") == 'co add "C:\\My notes"'
    assert permission_cure("C:\\notes\\oak.md", write=True) == 'icacls C:\\notes /grant "mara b":F'
    assert terminal.note_url("C:\\My notes\\oak.md") == "file:///C:/My%20notes/oak.md"


def test_an_editor_is_found_by_a_path_with_backslashes_and_blanks(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    program = tmp_path / "My Editor.exe"
    program.touch()
    monkeypatch.setattr(os, "name", "nt")
    monkeypatch.setattr(editor.shutil, "which", {"code": "C:\\bin\\code.cmd"}.get)

    for chosen, words in (
        (str(program), [str(program)]),
        ('"C:\\My Editor\\e.exe" --wait', ["C:\\My Editor\\e.exe", "--wait"]),
        ("C:\\bin\\e.exe -w", ["C:\\bin\\e.exe", "-w"]),
        ("code --wait", ["C:\\bin\\code.cmd", "--wait"]),
    ):
        assert editor._words_of(chosen) == words


def test_a_junction_is_not_followed(vault: Vault, monkeypatch: pytest.MonkeyPatch) -> None:
    vault.write("articles/back/oak.md", "Oaks live long.")
    listed = os.scandir

    class Entry:
        """A folder, as Windows lists a junction: it claims to be a folder, and no link."""

        def __init__(self, entry: os.DirEntry[str]) -> None:
            self._entry = entry
            for call in ("is_dir", "is_file", "is_symlink", "name", "path"):
                setattr(self, call, getattr(entry, call))

        def stat(self, **given: bool) -> object:
            tag = JUNCTION if self.name == "back" else 0  # type: ignore[attr-defined]
            found = self._entry.stat(**given)
            times = {"st_mtime_ns": found.st_mtime_ns, "st_ctime_ns": found.st_ctime_ns}
            return types.SimpleNamespace(st_reparse_tag=tag, st_size=found.st_size, st_ino=0, **times)

    class Listing:
        def __init__(self, folder: str) -> None:
            self._entries = listed(folder)

        def __enter__(self) -> list[Entry]:
            with self._entries as entries:
                return [Entry(entry) for entry in entries]

        def __exit__(self, *_: object) -> None: ...

    assert scan_origin(str(vault.root)).paths == ["articles/back/oak.md"]
    monkeypatch.setattr(os, "scandir", Listing)
    monkeypatch.setattr(os, "name", "nt")

    assert scan_origin(str(vault.root)).paths == []


@pytest.mark.parametrize("obeys", [True, False])
def test_colours_are_used_only_where_the_console_obeys_codes(obeys: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    set_to: list[int] = []

    def get_mode(console: int, mode: object) -> int:
        mode._obj.value = 3  # type: ignore[attr-defined]
        return 1

    def set_mode(console: int, mode: int) -> int:
        set_to.append(mode)
        return int(obeys)

    kernel = types.SimpleNamespace(GetConsoleMode=get_mode, SetConsoleMode=set_mode)
    monkeypatch.setattr(ctypes, "windll", types.SimpleNamespace(kernel32=kernel), raising=False)
    monkeypatch.setitem(sys.modules, "msvcrt", types.SimpleNamespace(get_osfhandle=lambda handle: handle))
    monkeypatch.setattr(sys, "platform", "win32")
    console = types.SimpleNamespace(isatty=lambda: True, fileno=lambda: 1)

    assert terminal.use_colour(console) is obeys  # type: ignore[arg-type]
    assert terminal.ProgressBar("indexing", console).visible is obeys  # type: ignore[arg-type]
    assert set_to == [7, 7]


def test_moments_before_1970_are_written_where_the_system_knows_none(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(seconds: float) -> object:
        raise OSError(22, "Invalid argument")

    monkeypatch.setattr(time, "gmtime", refuse)

    assert moment_text(-86_400.5) == "1969-12-30T23:59:59Z"
    assert moment_text(1_763_368_200.9) == "2025-11-17T08:30:00Z"
