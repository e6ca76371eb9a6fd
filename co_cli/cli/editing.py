"""Open a note in the person's editor, as a copy: what somebody else writes into the note meanwhile is not lost."""

from __future__ import annotations

import contextlib
import os
import shlex
import shutil
import signal
import subprocess
import tempfile
import time

from co_cli.cli.opening import sync_first
from co_cli.errors import InvalidInputError, KnowledgeError
from co_cli.knowledge_base import KnowledgeBase
from co_cli.notes.secrets import count_masked
from co_cli.paths import open_regular
from co_cli.service.writer import TextKeptError, require_version
from co_cli.values import Saved

AT_ONCE = 1.0
"""Seconds: an editor that comes back sooner, and changed nothing, may not have waited for its window."""


def edit_note(kb: KnowledgeBase, ref: str, version: str | None = None) -> Saved:
    """Let the person change a note. Written back only if the note is still the one that the editor opened."""
    path = kb.file_of(ref)
    before, masked = read_bytes(path), set[str]()
    require_version(path, before, version)
    folder = tempfile.mkdtemp(prefix="co-edit-")
    copy = os.path.join(folder, os.path.basename(path))
    try:
        with open(copy, "wb") as stream:
            stream.write(before)
        started = time.monotonic()
        open_editor(copy, path)
        after = read_bytes(copy)
        if before.strip() and not after.strip():
            raise InvalidInputError(
                f"the editor left no text; the note is as it was, and `co forget` takes it away: {path}"
            )
        if after == before:
            hint = _did_it_wait(started)
        else:
            hint = ""
            with count_masked() as masked:
                kb.writer.rewrite(path, after, before)
    except KeyboardInterrupt:
        if _is_work(copy, before):
            raise KnowledgeError(f"stopped; the note is as it was, and what you wrote is kept in {copy}") from None
        shutil.rmtree(folder, ignore_errors=True)
        raise
    except (KnowledgeError, OSError) as error:
        if isinstance(error, OSError):
            error = KnowledgeError(f"the editor left nothing to read ({error.strerror}); the note is as it was: {path}")
        if isinstance(error, TextKeptError) or not _is_work(copy, before):
            shutil.rmtree(folder, ignore_errors=True)
            raise error from None
        raise KnowledgeError(f"{error}; what you wrote is kept in {copy}") from error
    shutil.rmtree(folder, ignore_errors=True)
    sync_first(kb)
    note = kb.note(path)
    detail = f"{note.ref}, {note.problem}" if note.problem else hint and f"{note.ref}; {hint}"
    return Saved(note.ref, path, "unchanged" if after == before else "updated", detail, masked=len(masked))


def open_editor(copy: str, path: str) -> None:
    """Run the editor on a copy of the file `path`, and wait for it."""
    editor = os.environ.get("VISUAL") or os.environ.get("EDITOR")
    if not editor:
        raise InvalidInputError(f"set EDITOR, or open the file yourself: {path}")
    try:
        mine = signal.signal(signal.SIGINT, _leave_it)
        try:
            done = subprocess.run([*shlex.split(editor), copy], check=False)
        finally:
            signal.signal(signal.SIGINT, mine)
    except (OSError, ValueError) as error:
        raise InvalidInputError(f"the editor {editor!r} cannot be started: {error}") from None
    if done.returncode in (-signal.SIGINT, 128 + signal.SIGINT):
        raise KeyboardInterrupt
    if done.returncode:
        raise KnowledgeError(f"{editor} ended with {done.returncode}; the note is as it was: {path}")


def _leave_it(number: int, frame: object) -> None:
    """Ctrl-C is the editor's while it runs, as in git. To ignore it altogether would be inherited by the editor."""


def read_bytes(path: str) -> bytes:
    with open_regular(path) as file:
        return file.read()


def _is_work(copy: str, before: bytes) -> bool:
    """Did somebody write into the copy?"""
    with contextlib.suppress(OSError):
        return read_bytes(copy).strip() not in (before.strip(), b"")
    return False


def _did_it_wait(started: float) -> str:
    if time.monotonic() - started > AT_ONCE:
        return ""
    return "the editor came back at once; if it has a window, it must wait for it, as EDITOR='code --wait' does"
