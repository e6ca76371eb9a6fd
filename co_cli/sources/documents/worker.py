"""Read a document in another process, so that a file that hangs, crashes or bloats its reader costs only itself.

One process reads the files that come one after the other. It receives a line with the ending and the length, then the
bytes; it answers with a line of JSON for each page, slide or sheet. Its watchdog ends it when a part takes too long,
and when nothing more comes; the parts that arrived before are kept.
"""

from __future__ import annotations

import contextlib
import faulthandler
import json
import os
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from typing import Any, BinaryIO

from co_cli.notes.note import NotTextError
from co_cli.sources.documents import MOST_TEXT, Document, reason_of
from co_cli.sources.documents.endings import LIBRARIES
from co_cli.sources.documents.office import read_sheets, read_slides, read_word
from co_cli.sources.documents.pdf import read_pdf

READERS = {"pypdfium2": read_pdf, "docx": read_word, "openpyxl": read_sheets, "pptx": read_slides}
SECONDS_A_PART = 20.0
SECONDS = 120.0
"""For a whole file."""
IDLE = 10.0
"""Seconds without a file after which the process ends itself; it gets no more files after half of them."""
MEMORY = 4_000_000_000
"""Bytes of address space, on systems that support such a limit."""

_lock = threading.Lock()
_process: subprocess.Popen[bytes] | None = None
_used = 0.0


def read_in_worker(ending: str, data: bytes) -> Document:
    """Raises NotTextError if no part of the file can be read."""
    if not data:
        raise NotTextError("empty file")
    with _lock:
        try:
            parts, problem = _ask(ending, data)
        except BaseException:  # an interrupted answer must not be taken for the next file's
            end_worker()
            raise
    text = "\n\n".join(part.text.strip("\n") for part in parts if part.text)
    if problem and not text:
        raise NotTextError(problem)
    problems = [*filter(None, [part.problem for part in parts]), *([f"read in part: {problem}"] if problem else [])]
    metadata = {key: value for part in parts for key, value in part.metadata.items()}
    title = next((part.title for part in parts if part.title), None)
    return Document(title, text + "\n" if text else "", metadata, "; ".join(problems) or None)


def _ask(ending: str, data: bytes) -> tuple[list[Document], str]:
    """The parts that were read, and why there are no more if the file was not finished."""
    global _used
    worker = _worker()
    assert worker.stdin
    assert worker.stdout
    parts: list[Document] = []
    with contextlib.suppress(BrokenPipeError):
        worker.stdin.write(f"{ending} {len(data)}\n".encode() + data)
        worker.stdin.flush()
    for line in worker.stdout:
        answer: Any = json.loads(line)
        if isinstance(answer, str):
            _used = time.monotonic()
            return parts, answer
        parts.append(Document(*answer))
    late = worker.wait() == 1  # the watchdog's exit code
    end_worker()
    return parts, "the rest takes too long" if late and parts else "it takes too long" if late else "its reader crashed"


def _worker() -> subprocess.Popen[bytes]:
    global _process
    if _process and _process.poll() is None and time.monotonic() - _used < IDLE / 2:
        return _process
    end_worker()
    options: dict[str, Any] = {"start_new_session": True}  # Ctrl-C in the terminal is not meant for it
    if sys.platform == "win32":
        options = {"creationflags": subprocess.CREATE_NEW_PROCESS_GROUP | subprocess.CREATE_NO_WINDOW}
    _process = subprocess.Popen[bytes](
        [sys.executable, "-P", "-B", "-m", __name__, str(SECONDS_A_PART)],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        **options,
    )
    return _process


def end_worker() -> None:
    """The next document starts another one."""
    global _process
    if _process:
        _process.kill()
        with contextlib.suppress(OSError):
            _process.communicate()
    _process = None


def serve(requests: BinaryIO, answers: BinaryIO, seconds: float) -> None:
    """The other side: answer until there are no more requests."""
    while True:
        _watch(IDLE)
        head = requests.readline().decode().split()
        if len(head) != 2:
            return
        data = requests.read(int(head[1]))
        until = time.monotonic() + SECONDS
        _watch(seconds)
        for answer in _answers(head[0], data):
            answers.write(json.dumps(answer).encode() + b"\n")
            answers.flush()
            _watch(max(0.01, min(seconds, until - time.monotonic())))


def _answers(ending: str, data: bytes) -> Iterator[Document | str]:
    """The parts, then why there are no more; empty if that was all."""
    length = 0
    try:
        for part in READERS[LIBRARIES[ending]](data):
            yield part
            length += len(part.text)
            if length > MOST_TEXT:
                break
        yield ""
    except NotTextError as error:
        yield str(error)
    except Exception as error:
        yield reason_of(error)


def _watch(seconds: float) -> None:
    """End this process after that time, whatever it does: faulthandler's thread needs no lock of Python's."""
    faulthandler.dump_traceback_later(seconds, exit=True)


def _limit() -> None:
    """Limit memory and forbid writing files, on systems that can."""
    with contextlib.suppress(ImportError):  # Windows
        import resource

        for limit, most in ((resource.RLIMIT_FSIZE, 0), (resource.RLIMIT_AS, MEMORY), (resource.RLIMIT_CORE, 0)):
            with contextlib.suppress(ValueError, OSError):  # macOS accepts only some of them
                resource.setrlimit(limit, (most, most))


if __name__ == "__main__":
    _limit()
    serve(sys.stdin.buffer, sys.stdout.buffer, float(sys.argv[1]))
