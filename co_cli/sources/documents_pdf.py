"""A PDF into its text, with a heading for each page, so that a passage knows its page.

The extractor is pypdfium2 (Chrome's PDF library; an extra): on two manuals it read 540 pages a second where pypdf read
36, and it mends words that were divided at the end of a line. No such library is safe from every file, so it runs in a
process of its own, one for as many files as come one after the other; when a page takes too long that process is ended,
and the pages before it are kept.
"""

from __future__ import annotations

import atexit
import json
import os
import struct
import subprocess
import sys
import threading
import time
from typing import Any, cast

from co_cli.notes.note import NotTextError
from co_cli.sources import documents_pdf_worker
from co_cli.sources.documents import EXTRA, MOST_TEXT, Document, wants_extra
from co_cli.sources.documents_markdown import own_title, pdf_moment, plain

SECONDS_A_PAGE = 10.0
SECONDS = 120.0
"""For a whole file."""
IDLE = 5.0
"""Seconds without a file after which the process ends."""
MOST_PAGES = 5_000
LONGEST_ANSWER = 8_000_000
KEYS = {"Author": "author", "Subject": "subject", "Keywords": "keywords"}


def read_pdf(name: str, data: bytes) -> Document:
    if wants_extra(name):
        raise NotTextError(f"PDF needs: pip install '{EXTRA}'")
    if b"%PDF-" not in data[:1_024]:
        raise NotTextError("empty file" if not data else "broken: no PDF in it")
    with _lock:
        answers, ended = _ask(data)
    return _document(answers, ended)


def _document(answers: list[dict[str, Any]], ended: str) -> Document:
    if not answers:
        raise NotTextError(f"PDF: nothing of it can be read, {ended}")
    about, pages = answers[0], [answer for answer in answers[1:] if "text" in answer]
    if "error" in about:
        if about["error"] == "password":
            raise NotTextError("protected by a password: save a copy without one")
        raise NotTextError("broken PDF: open it and save or print it again")
    count = int(about["pages"])
    texts = [_lines(str(page["text"])) for page in pages]
    blocks = [f"## Page {place}\n\n{text}" for place, text in enumerate(texts, start=1) if text]
    problems = _problems(pages, count, ended)
    if not blocks:
        raise NotTextError(
            "; ".join(problems) or f"no text on its {_pages(count)} (scanned?): `ocrmypdf` adds the text that it shows"
        )
    said = cast("dict[str, str]", about["said"])
    metadata: dict[str, object] = {KEYS[key]: said[key] for key in KEYS if key in said}
    metadata |= {"created": pdf_moment(said.get("CreationDate", "")), "updated": pdf_moment(said.get("ModDate", ""))}
    problem = "; ".join(problems) or None
    return Document(own_title(said.get("Title")), "\n\n".join(blocks) + "\n", {**metadata, "pages": count}, problem)


def _problems(pages: list[dict[str, Any]], count: int, ended: str) -> list[str]:
    found: list[str] = []
    scanned = sum(1 for page in pages if page.get("picture"))
    broken = sum(1 for page in pages if page.get("broken"))
    if scanned and scanned < count:
        found.append(f"{scanned} of {_pages(count)} have no text (scanned?): `ocrmypdf` adds it")
    if broken:
        found.append(f"{broken} of {_pages(count)} cannot be read")
    if len(pages) < count:
        found.append(f"only {len(pages)} of {_pages(count)} are read, {ended}")
    return found


def _pages(count: int) -> str:
    return f"{count} page" if count == 1 else f"{count} pages"


def _lines(text: str) -> str:
    """U+FFFE stands where a word was divided at the end of a line: without it, it is whole again."""
    lines = text.replace("\ufffe", "").replace("\r\n", "\n").replace("\r", "\n").split("\n")
    return plain("\n".join(line.rstrip() for line in lines)).strip("\n")


def _start_worker() -> subprocess.Popen[bytes]:
    """The same Python and packages, in a session of its own: Ctrl-C in the terminal is not meant for it."""
    options: dict[str, Any] = {"start_new_session": True}
    if sys.platform == "win32":
        options = {"creationflags": subprocess.CREATE_NEW_PROCESS_GROUP | subprocess.CREATE_NO_WINDOW}
    ours = {"PYTHONPATH": os.pathsep.join(filter(None, sys.path)), "PYTHONIOENCODING": "utf-8"}
    return subprocess.Popen[bytes](
        [sys.executable, "-P", "-B", documents_pdf_worker.__file__],
        env={**os.environ, **ours},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        **options,
    )


class _Worker:
    """The process that reads, and a clock that ends it."""

    def __init__(self) -> None:
        self._process = _start_worker()
        self.late = False
        self._clock: threading.Timer | None = None

    @property
    def alive(self) -> bool:
        return self._process.poll() is None

    def send(self, data: bytes, seconds: float) -> None:
        self._wind(seconds)
        stream = self._process.stdin
        assert stream is not None
        stream.write(struct.pack(">Q", len(data)))
        stream.write(data)
        stream.flush()

    def answer(self, seconds: float) -> dict[str, Any] | None:
        """The next line; None if the process has ended."""
        self._wind(seconds)
        stream = self._process.stdout
        assert stream is not None
        line = stream.readline(LONGEST_ANSWER)
        return json.loads(line) if line.endswith(b"\n") else None

    def _wind(self, seconds: float) -> None:
        self.rest()
        self._clock = threading.Timer(max(seconds, 0.0), self._give_up)
        self._clock.daemon = True
        self._clock.start()

    def rest(self) -> None:
        if self._clock:
            self._clock.cancel()

    def _give_up(self) -> None:
        self.late = True
        self._process.kill()

    def end(self) -> None:
        self.rest()
        self._process.kill()
        for stream in (self._process.stdin, self._process.stdout):
            if stream:
                try:
                    stream.close()
                except OSError:  # what was not yet sent goes nowhere
                    continue
        self._process.wait()


_lock = threading.RLock()
_worker: _Worker | None = None
_idle: threading.Timer | None = None


def _ask(data: bytes) -> tuple[list[dict[str, Any]], str]:
    """All that the process says about a file, and why it says no more, if it was not finished."""
    global _worker
    _stay()
    if _worker is None or not _worker.alive:
        end_reader()
        try:
            _worker = _Worker()
        except OSError as error:
            raise NotTextError(f"PDF: its reader cannot be started ({error.strerror})") from None
    worker, until = _worker, time.monotonic() + SECONDS
    answers: list[dict[str, Any]] = []
    ended = "its reader ended there"
    length = 0
    try:
        worker.send(data, SECONDS)
        while answer := worker.answer(min(SECONDS_A_PAGE, until - time.monotonic())):
            if "end" not in answer:
                answers.append(answer)
                length += len(str(answer.get("text", "")))
            if "end" in answer or "error" in answer:
                ended = ""
                break
            if length > MOST_TEXT or len(answers) > MOST_PAGES:
                ended = "which is enough"
                break
    except OSError:  # it ended while we wrote
        answers = []
    finally:
        if worker.late:
            ended = "the next one takes too long"
        if ended:  # whatever it still says belongs to this file
            end_reader()
        else:
            worker.rest()
            _leave()
    return answers, ended


def end_reader() -> None:
    """End the process, if there is one; the next PDF starts another."""
    global _worker
    with _lock:
        if _worker:
            _worker.end()
        _worker = None


def _stay() -> None:
    if _idle:
        _idle.cancel()


def _leave() -> None:
    global _idle
    _idle = threading.Timer(IDLE, end_reader)
    _idle.daemon = True
    _idle.start()


atexit.register(end_reader)
