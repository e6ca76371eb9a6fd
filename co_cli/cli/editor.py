"""Write and change notes in the user's editor: on a copy, so that what others write to a note meanwhile is not lost."""

from __future__ import annotations

import contextlib
import os
import shlex
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Generator

from co_cli.cli.opening import sync_first
from co_cli.cli.terminal import reads_terminal
from co_cli.entrance.local import LocalKnowledgeBase
from co_cli.ground.errors import InvalidInputError, KnowledgeError
from co_cli.ground.saves import Saved
from co_cli.notes.files import read_bytes
from co_cli.notes.secrets import count_masked
from co_cli.saving.writer import TextKeptError, require_version

DEFAULT_EDITORS = ("nano", "vi", "notepad")
MIN_SECONDS = 1.0
"""An editor that returns sooner without a change probably did not wait for its window."""


def edit_note(kb: LocalKnowledgeBase, ref: str, version: str | None = None) -> Saved:
    """Let the user change a note. It is written back only if nobody else changed it meanwhile."""
    path = kb.file_of(ref)
    if kb.lookup().in_linked_folder(ref):
        if b"\0" in read_bytes(path):
            raise InvalidInputError(f"{path} is not a text file: open it in its own program, as with `co open`")
    elif not kb.lookup().locate(ref)[0].tier:
        kb.lookup().open_own(ref, "changed")  # refuses skills and checkpoints
    before, masked = read_bytes(path), set[str]()
    require_version(path, before, version)
    folder = tempfile.mkdtemp(prefix="co-edit-")
    copy = os.path.join(folder, os.path.basename(path))
    try:
        with open(copy, "wb") as stream:
            stream.write(before)
        started = time.monotonic()
        open_editor(copy, f"open the file yourself: {path}", f"the note is unchanged: {path}")
        after = read_bytes(copy)
        if before.strip() and not after.strip():
            raise InvalidInputError(f"the editor left no text; the note is unchanged (`co forget` removes it): {path}")
        at_once = time.monotonic() - started < MIN_SECONDS
        if after != before:
            with count_masked() as masked:
                kb.writer().rewrite(path, after, before)
    except (KnowledgeError, OSError, KeyboardInterrupt) as error:
        if isinstance(error, OSError):
            error = KnowledgeError(f"the editor left nothing to read ({error.strerror}); the note is unchanged: {path}")
        if isinstance(error, TextKeptError) or not _has_new_text(copy, before):
            shutil.rmtree(folder, ignore_errors=True)
            raise error from None
        reason = str(error) or "stopped; the note is unchanged"
        raise KnowledgeError(f"{reason}; what you wrote is kept in {copy}") from error
    shutil.rmtree(folder, ignore_errors=True)
    sync_first(kb)
    note, outcome = kb.note(path), "unchanged" if after == before else "updated"
    detail = f"{note.ref}, {note.problem}" if note.problem else ""
    if outcome == "unchanged" and at_once and not detail:
        detail = f"{note.ref}; the editor returned at once; if it opens a window, make it wait: EDITOR='code --wait'"
    return Saved(note.ref, path, outcome, detail, masked=len(masked))


@contextlib.contextmanager
def new_text(begun: str = "") -> Generator[str]:
    """A text that the user writes in their editor, or goes on with. It is kept if it cannot be saved."""
    folder = tempfile.mkdtemp(prefix="co-remember-")
    file = os.path.join(folder, "memory.md")
    try:
        with open(file, "xb") as stream:
            stream.write(begun.encode("utf-8"))
        open_editor(file, 'give the text: co remember "TEXT"', "nothing was saved")
        text = read_bytes(file).decode("utf-8", "replace")
        if not text.strip():
            raise InvalidInputError("you wrote nothing, so nothing was saved")
        yield text
    except (KnowledgeError, KeyboardInterrupt) as error:
        if not _has_new_text(file, begun.encode("utf-8")):
            shutil.rmtree(folder, ignore_errors=True)
            raise
        reason = str(error) or "stopped; nothing was saved"
        raise KnowledgeError(f"{reason}; what you wrote is kept in {file}") from error
    shutil.rmtree(folder, ignore_errors=True)


def open_editor(file: str, instead: str, unchanged: str) -> None:
    """Run the editor on a file, and wait. The texts say what to do without an editor, and what its failure means."""
    editor = os.environ.get("VISUAL") or os.environ.get("EDITOR")
    if not editor and reads_terminal():  # a script would wait for it forever
        editor = next(filter(shutil.which, DEFAULT_EDITORS), None)
    if not editor:
        raise InvalidInputError(f"set EDITOR, or {instead}")
    try:
        mine = signal.signal(signal.SIGINT, _ignore)
        try:
            done = subprocess.run([*_words_of(editor), file], check=False)
        finally:
            signal.signal(signal.SIGINT, mine)
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or error
        raise InvalidInputError(f"the editor {editor!r} cannot be started ({reason}): set EDITOR to another") from None
    if done.returncode in (-signal.SIGINT, 128 + signal.SIGINT):
        raise KeyboardInterrupt
    if done.returncode:
        raise KnowledgeError(f"{editor} ended with {done.returncode}; {unchanged}")


def _words_of(editor: str) -> list[str]:
    """The words of $EDITOR. On Windows a backslash is part of a path, and `code` is the script code.cmd."""
    if os.name != "nt":
        return shlex.split(editor)
    if os.path.isfile(editor):  # such as C:\\Program Files\\Editor\\editor.exe, which nobody quotes
        return [editor]
    program, *options = (word.strip("\"'") for word in shlex.split(editor, posix=False))
    return [shutil.which(program) or program, *options]


def _ignore(number: int, frame: object) -> None:
    """While the editor runs, Ctrl-C is for it, as in git. It would inherit SIG_IGN, but not a handler."""


def _has_new_text(copy: str, before: bytes) -> bool:
    with contextlib.suppress(OSError):
        return read_bytes(copy).strip() not in (before.strip(), b"")
    return False
