"""Run a parser in another process, so that a file that hangs, crashes or bloats it costs only itself.

One process takes one request after the other: a line of JSON, then the bytes. It answers with a line of JSON for each
part that the parser yields, and one that says why there are no more. Its watchdog ends it if a part takes too long, and
if no request comes; the parts that arrived before are kept.
"""

from __future__ import annotations

import contextlib
import faulthandler
import json
import re
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Generator, Iterator
from importlib import import_module
from typing import Any, BinaryIO, NamedTuple

from co_cli.ground.errors import KnowledgeError
from co_cli.ground.paths import own_process
from co_cli.notes.encoding import NotTextError

SECONDS_A_PART = 20.0
SECONDS = 120.0
"""For all parts together."""
IDLE = 10.0
"""Seconds without a request after which the process ends itself. It gets no request after half of them."""
MEMORY, PATIENT_MEMORY = 1_500_000_000, 4_000_000_000
"""Bytes of address space, on systems that support such a limit; the second to read pictures."""
PATIENT_SECONDS = (180.0, 3_600.0)
"""For a part and for all, to read pictures."""
MOST_TEXT = 5_000_000
"""Characters of one document, about three thousand pages. The rest is left out, and `problem` says so."""
TOO_LONG = "it takes too long"
ENDED = (1,) if sys.platform == "win32" else (-signal.SIGALRM,)
"""The exit code of a process that its watchdog ended."""
OBJECT = re.compile(r"'?<[\w.]+ object at 0x[0-9a-f]+>'?")
"""What Python says of a file that has no name."""


class ParserLimits(NamedTuple):
    """Seconds for one part and for all of them, and the characters of their texts."""

    seconds_a_part: float
    seconds: float
    text: int


_lock = threading.Lock()
_process: subprocess.Popen[bytes] | None = None
_used = 0.0
_patient = False


def run_parser(
    parser: str, data: bytes, *arguments: Any, seconds: float | None = None, patient: bool = False
) -> tuple[list[Any], str]:
    """The parts that a parser (`module:function`) yields for these bytes, and why there are no more, if it failed.

    `seconds` limits the time for one part; a `patient` process has the time and memory to read pictures.
    """
    global _used
    most = PATIENT_SECONDS if patient else (seconds or SECONDS_A_PART, SECONDS)
    limits = ParserLimits(*most, MOST_TEXT)
    with _lock:
        try:
            *parts, failure = _ask(_worker(patient), parser, data, arguments, limits)
        except BaseException:  # the rest of an interrupted answer must not be taken for the next one
            end_worker()
            raise
        _used = time.monotonic()
    return parts, failure


def stream_parser(parser: str, *arguments: Any, limits: ParserLimits) -> Generator[Any]:
    """The parts as they come, from a process of their own, and finally why there are no more; empty if that was all."""
    process = _start()
    try:
        yield from _ask(process, parser, b"", arguments, limits)
    finally:
        _end(process)


def _ask(
    process: subprocess.Popen[bytes], parser: str, data: bytes, arguments: tuple[Any, ...], limits: ParserLimits
) -> Iterator[Any]:
    request = {"parser": parser, "arguments": arguments, "limits": limits, "size": len(data)}
    assert process.stdin
    assert process.stdout
    with contextlib.suppress(BrokenPipeError):
        process.stdin.write(json.dumps(request).encode() + b"\n" + data)
        process.stdin.flush()
    for line in process.stdout:
        answer: Any = json.loads(line)
        yield answer
        if isinstance(answer, str):
            return
    yield TOO_LONG if process.wait() in ENDED else "its reader crashed"


def _worker(patient: bool) -> subprocess.Popen[bytes]:
    global _process, _patient
    if _process and _patient == patient and _process.poll() is None and time.monotonic() - _used < IDLE / 2:
        return _process
    end_worker()
    _process, _patient = _start(patient), patient
    return _process


def _start(patient: bool = False) -> subprocess.Popen[bytes]:
    options: dict[str, Any] = {"start_new_session": True}  # Ctrl-C in the terminal is not meant for it
    if sys.platform == "win32":
        options = {"creationflags": subprocess.CREATE_NEW_PROCESS_GROUP | subprocess.CREATE_NO_WINDOW}
    command, env = own_process(__name__)
    return subprocess.Popen[bytes](
        [*command, str(PATIENT_MEMORY if patient else MEMORY)],
        env={**env, "PYTHONDONTWRITEBYTECODE": "1"},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        **options,
    )


def end_worker() -> None:
    """The next request starts another one."""
    global _process
    if _process:
        _end(_process)
    _process = None


def _end(process: subprocess.Popen[bytes]) -> None:
    process.kill()
    with contextlib.suppress(OSError):
        process.communicate()


def serve(requests: BinaryIO, answers: BinaryIO) -> None:
    """In the worker process: answer until there are no more requests."""
    while True:
        _watch(IDLE)
        line = requests.readline()
        if not line:
            return
        request: Any = json.loads(line)
        data = requests.read(request["size"])
        limits = ParserLimits(*request["limits"])
        left, started = limits.seconds, time.monotonic()
        _watch(max(0.01, min(limits.seconds_a_part, left)))
        for answer in _answers(request["parser"], data, request["arguments"], limits.text):
            _watch(0)  # the time of whoever reads the answers does not count
            left -= time.monotonic() - started
            answers.write(json.dumps(answer).encode() + b"\n")
            answers.flush()
            started = time.monotonic()
            _watch(max(0.01, min(limits.seconds_a_part, left)))


def _answers(parser: str, data: bytes, arguments: list[Any], most_text: int) -> Iterator[Any]:
    """The parts, then why there are no more; empty if that was all."""
    length = 0
    try:
        for part in load_parser(parser)(data, *arguments):
            yield part
            length += len(part.text)
            if length > most_text:
                break
        yield ""
    except (NotTextError, KnowledgeError) as error:
        yield str(error)
    except Exception as error:
        yield reason_of(error)


def load_parser(parser: str) -> Callable[..., Iterator[Any]]:
    """The function that a parser's name (`module:function`) names."""
    module, _, function = parser.partition(":")
    return getattr(import_module(module), function)


def reason_of(error: Exception) -> str:
    """One line about an exception of a parser, which can be anything for hostile input."""
    if isinstance(error, RecursionError):
        return "nested too deep to be read"
    if isinstance(error, MemoryError):
        return "it needs too much memory"
    said = OBJECT.sub("the file", f"{type(error).__name__}: {error}")
    reason = " ".join(said.split())[:200]
    return f"broken, or not what its name says ({reason}): open it and save it again"


def _watch(seconds: float) -> None:
    """End this process after that time, whatever it does; 0: never. Nobody handles the signal: no code has to run."""
    if sys.platform != "win32":
        signal.setitimer(signal.ITIMER_REAL, seconds)
    elif seconds:
        faulthandler.dump_traceback_later(seconds, exit=True)  # its thread does not need the GIL
    else:
        faulthandler.cancel_dump_traceback_later()


def _limit(memory: int) -> None:
    """Limit memory and forbid writing files, on systems that can; and do not inherit how a parent treats the alarm."""
    if sys.platform != "win32":
        import resource

        signal.signal(signal.SIGALRM, signal.SIG_DFL)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, [signal.SIGALRM])
        for limit, most in ((resource.RLIMIT_FSIZE, 0), (resource.RLIMIT_AS, memory), (resource.RLIMIT_CORE, 0)):
            with contextlib.suppress(ValueError, OSError):  # macOS accepts only some of them
                resource.setrlimit(limit, (most, most))


if __name__ == "__main__":
    _limit(int(sys.argv[1]))
    serve(sys.stdin.buffer, sys.stdout.buffer)
