"""Output for people: colour only on a terminal, lines that fit, ages in words, and no raw control characters."""

from __future__ import annotations

import io
import itertools
import os
import re
import sys
import threading
import time
import unicodedata
from collections.abc import Generator, Iterator
from contextlib import AbstractContextManager, contextmanager, redirect_stdout
from datetime import datetime
from typing import TextIO

from co_cli.ground.values import INVISIBLE, about
from co_cli.notes.dates import is_bare_date, local_day

OBEY_CODES = 4
"""A mode of consoles on Windows, which old ones do not have."""
CODES = {"bold": "1", "dim": "2", "red": "31", "green": "32", "yellow": "33", "cyan": "36"}
NARROWEST, WIDEST = 40, 100
SCREEN_LINES = 24
"""Of a terminal that does not say how many it has."""
LONG_WORK = 100
"""How many files are worth a bar before the first one is read."""
SNIPPET_LINES, CODE_LINES = 2, 4
"""Lines of a snippet on a terminal, and of one with code."""
LINKING = (
    "VTE_VERSION", "KITTY_WINDOW_ID", "WEZTERM_PANE", "KONSOLE_VERSION", "ITERM_SESSION_ID", "WT_SESSION",
    "ALACRITTY_WINDOW_ID", "GHOSTTY_RESOURCES_DIR", "VSCODE_INJECTION",
)  # fmt: skip
"""Set by terminals that show links (OSC 8)."""


def printable(text: str) -> str:
    """Escape what controls a terminal or cannot be seen, so that the terminal shows it instead of obeying it."""
    if text.isascii() and text.isprintable():
        return text
    return re.sub(f"\n|{INVISIBLE}", lambda found: "".join(map(_escape, found[0])), text)


def _escape(letter: str) -> str:
    code = ord(letter)
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"


def columns(text: str) -> int:
    """The width of a text in a terminal: Chinese letters and emoji take two columns, combining marks none."""
    if text.isascii() and text.isprintable():
        return len(text)
    return sum(map(_columns_of, printable(text)))


def _columns_of(letter: str) -> int:
    if unicodedata.combining(letter) or unicodedata.category(letter) in ("Mn", "Me", "Cf"):
        return 0
    return 2 if unicodedata.east_asian_width(letter) in "WF" else 1


def use_colour(stream: TextIO) -> bool:
    if os.environ.get("NO_COLOR"):
        return False
    if os.environ.get("CLICOLOR_FORCE", "0") != "0" or os.environ.get("FORCE_COLOR", "0") not in ("0", ""):
        return True
    return takes_codes(stream)


def takes_codes(stream: TextIO) -> bool:
    """Whether a stream is a terminal that obeys codes, such as those for colours. Windows has to be asked for that."""
    if not stream.isatty() or os.environ.get("TERM") == "dumb":
        return False
    if sys.platform != "win32":
        return True
    import ctypes  # slow to import
    import msvcrt

    console, mode = msvcrt.get_osfhandle(stream.fileno()), ctypes.c_ulong()
    found = ctypes.windll.kernel32.GetConsoleMode(console, ctypes.byref(mode))
    return bool(found and ctypes.windll.kernel32.SetConsoleMode(console, mode.value | OBEY_CODES))


def note_url(path: str) -> str:
    """What opens a file: `obsidian://` in an Obsidian vault, else `file://`."""
    folder = os.path.dirname(path)
    while folder != os.path.dirname(folder):
        if os.path.isdir(os.path.join(folder, ".obsidian")):
            return f"obsidian://open?path={_quoted(path).replace('/', '%2F')}"
        folder = os.path.dirname(folder)
    drive, rest = os.path.splitdrive(path)
    return f"file://{f'/{drive}' if drive else ''}{_quoted(rest.replace(os.sep, '/'))}"


def _quoted(path: str) -> str:
    return re.sub(rb"[^A-Za-z0-9/._~-]", lambda found: b"%%%02X" % found[0][0], os.fsencode(path)).decode()


def print_message(text: str, stream: TextIO | None = None) -> None:
    """Print a text, on a terminal in lines of whole words. A command in backticks counts as one."""
    text, stream = printable(text), stream or sys.stdout
    if stream is not None and stream.isatty():  # pyright: ignore[reportUnnecessaryComparison]
        import textwrap  # not for a search in a pipe

        whole = re.sub("`[^`]*`", lambda command: command[0].replace(" ", "\0"), text)
        indent = " " * len(re.findall(r"^ *(?:\S{2}  )?", text)[0])  # of `ok  text` and of `    fix: text`
        lines = textwrap.wrap(
            whole, terminal_width(), subsequent_indent=indent, break_long_words=False, break_on_hyphens=False
        )
        text = "\n".join(lines).replace("\0", " ")
    print(text, file=stream, flush=True)


@contextmanager
def paged() -> Generator[None]:
    """Show what is printed in $PAGER, or in less, if this is a terminal with fewer lines."""
    if not sys.stdout.isatty() or os.environ.get("TERM") == "dumb":
        yield
        return
    with redirect_stdout(io.StringIO()) as printed:
        yield
    text, width = printed.getvalue(), terminal_width()
    if sum(1 + len(line) // width for line in text.splitlines()) < (os.get_terminal_size().lines or SCREEN_LINES):
        print(text, end="")
        return
    import pydoc  # 30 ms, and only for a long text on a terminal
    import shutil  # slow to import

    os.environ.setdefault("LESS", "FRX")  # as git does: colours, and no pager for less than a screen
    os.environ.pop("MANPAGER", None)  # pydoc prefers it, and it may expect the codes of a manual page
    program = next((word for word in os.environ.get("PAGER", "").split() if "=" not in word), "")
    if not shutil.which(program):
        os.environ.pop("PAGER", None)  # otherwise the text is lost
    pydoc.pager(text)


class Screen:
    """Standard output for people."""

    def __init__(self) -> None:
        self.colour = use_colour(sys.stdout)
        self.interactive = sys.stdout.isatty()
        self.links = self.colour and self.interactive and any(name in os.environ for name in LINKING)
        self.width = terminal_width()

    def paint(self, text: str, *styles: str) -> str:
        if not self.colour or not text:
            return text
        return f"\x1b[{';'.join(CODES[style] for style in styles)}m{text}\x1b[0m"

    def line(self, text: str = "") -> None:
        print(text)

    def fits(self, *texts: str) -> bool:
        """Whether these fit on one line. When not on a terminal, always."""
        return not self.interactive or sum(map(columns, texts)) + 2 * (len(texts) - 1) <= self.width

    def entry(self, name: str, about: str) -> None:
        """The name of something, highlighted, and text about it that is printable already."""
        self.line(f"{self.paint(printable(name), 'cyan')}  {about}")

    def text(self, text: str, indent: str = "") -> None:
        """A text of several lines, each wrapped."""
        for line in text.splitlines():
            self.wrapped(line, indent) if line else self.line()

    def titled(self, title: str, ref: str, path: str = "", indent: str = "  ") -> None:
        """A title and its ref, on one line if they fit. The title links to the file, if the terminal can."""
        url = note_url(path) if self.links and os.path.exists(path) else ""  # a server's files are not here
        lines = self._lines(title, self.width - len(indent))
        shown = [self._linked(self.paint(printable(title[start:end]), "bold"), url) for start, end in lines]
        if self.fits(title, ref):
            self.line(f"{shown[0] if shown else ''}  {self.paint(printable(ref), 'cyan')}")
        else:
            first, *more = (*shown, self.paint(printable(ref), "cyan"))
            self.line(first)
            for line in more:
                self.line(indent + line)

    def wrapped(self, text: str, indent: str = "", style: str = "") -> None:
        """Print a text in lines that fit, or on one line when not on a terminal."""
        for start, end in self._lines(text, self.width - len(indent)):
            line = printable(text[start:end])
            self.line(indent + (self.paint(line, style) if style else line))

    def snippet(self, text: str, indent: str, marks: tuple[tuple[int, int], ...]) -> None:
        """Print a snippet, in which code has its own lines. On a terminal, only the lines with the most matches."""
        lines: list[tuple[int, int]] = []
        start = 0
        for part in text.split("\n"):
            width = self.width - len(indent) - 2  # an ellipsis before and after what is shown
            lines += [(start + first, start + last) for first, last in self._lines(part, width)]
            start += len(part) + 1
        if self.interactive:
            most = CODE_LINES if "\n" in text else SNIPPET_LINES
            counts = [sum(start <= first < end for first, _ in marks) for start, end in lines]
            best = max(range(max(1, len(lines) - most + 1)), key=lambda place: sum(counts[place : place + most]))
            lines = lines[best : best + most]
        for start, end in lines:
            head = "…" if start == lines[0][0] and text[:start].strip("…") else ""
            tail = "…" if end == lines[-1][1] and text[end:].strip("…") else ""
            self.line(f"{indent}{head}{self._marked(text, start, end, marks)}{tail}")

    def _linked(self, text: str, url: str) -> str:
        return f"\x1b]8;;{url}\x1b\\{text}\x1b]8;;\x1b\\" if url else text

    def _lines(self, text: str, width: int) -> Iterator[tuple[int, int]]:
        """Where each line of a text begins and ends."""
        start = 0
        while start < len(text):
            end = self._line_end(text, start, width)
            yield start, end
            start = end + 1 if end < len(text) and text[end] == " " else end

    def _line_end(self, text: str, start: int, width: int) -> int:
        """Where a line that starts at `start` ends: before the last word that would not fit."""
        if not self.interactive:
            return len(text)
        end, used = start, 0
        while end < len(text) and used + columns(text[end]) <= width:
            used += columns(text[end])
            end += 1
        blank = text.rfind(" ", start, end + 1)
        return end if end == len(text) or blank <= start else blank

    def _marked(self, text: str, start: int, end: int, marks: tuple[tuple[int, int], ...]) -> str:
        parts: list[str] = []
        place = start
        for first, last in marks:
            first, last = max(first, place), min(last, end)
            if first >= last:
                continue
            parts += [printable(text[place:first]), self.paint(printable(text[first:last]), "bold", "yellow")]
            place = last
        parts.append(printable(text[place:end]))
        return "".join(parts)


def is_title(text: str, title: str) -> bool:
    """Whether a text says nothing but the title above it, as that of a short memory does."""
    plain, shown = (" ".join(part.split()).rstrip(".!?").casefold() for part in (text, title))
    return plain == shown


def age(moment: str, now: float) -> str:
    """`2026-11-14T09:12:00Z` as `today`, `3 days ago`, `in 2 months`. Days are local ones, as in a search for them."""
    try:
        stored = datetime.fromisoformat(moment).timestamp()
    except ValueError:
        return moment
    passed = round((local_day(now) - (stored if is_bare_date(stored) else local_day(stored))) / 86_400)
    if abs(passed) < 2:
        return ("today", "yesterday", "tomorrow")[passed]
    days = abs(passed)
    size, name = next(unit for unit in ((365, "year"), (30, "month"), (7, "week"), (1, "day")) if days >= unit[0])
    words = f"{days // size} {name}{'s' * (days // size > 1)}"
    return f"{words} ago" if passed > 0 else f"in {words}"


def count_of(number: int, noun: str) -> str:
    """`1 note`, `2,000 notes`."""
    plural = noun[:-1] + "ies" if noun.endswith(("ry", "ty")) else noun + ("es" if noun.endswith("ch") else "s")
    return f"{number:,} {noun if number == 1 else plural}"


def size_of(count: int) -> str:
    size = float(count)
    for unit in ("bytes", "KB", "MB"):
        if size < 1000:
            return f"{size:.0f} {unit}" if unit == "bytes" else f"{size:.1f} {unit}"
        size /= 1000
    return f"{size:.1f} GB"


class ProgressBar(AbstractContextManager["ProgressBar"]):
    """A bar on stderr for much work, or work that takes over 0.4 s, if stderr is a terminal that can erase it.

    Elsewhere a line when it is clear that it takes ten seconds, and then one every ten seconds: a log or an agent shows
    that something goes on, and short work says nothing.
    """

    def __init__(self, verb: str, stream: TextIO | None = None, unit: str = "") -> None:
        """`unit` is what is counted, such as `files`."""
        self.verb, self.stream, self.unit = verb, stream or sys.stderr, unit
        self.visible = takes_codes(self.stream)
        self.started = self.shown = time.monotonic()
        self.stage: tuple[str, int] | None = None
        self.last = 0
        self.drawn = self.said = False

    def __call__(self, done: int, total: int) -> None:
        self._show(done, total, self.verb, self.unit)

    def passages(self, done: int, total: int) -> None:
        """The second stage of a sync, in which a slow model makes vectors."""
        self._show(done, total, "meaning:", "passages", "; Ctrl-C is fine" if self.visible else "")

    def _show(self, done: int, total: int, verb: str, unit: str, remark: str = "") -> None:
        now = time.monotonic()
        if self.stage != (verb, total) or done < self.last:  # another one, with another speed
            self.started, self.said = now if self.stage else self.started, False
            self.stage = verb, total
        self.last = done
        passed = now - self.started
        left = (total - done) * passed / done if done and passed > 1.0 else None  # the first one opens files and models
        if self.visible:
            pause = 0.1 if self.said else 0.0
        else:
            pause = 10.0 if self.said or left is None or left < 10.0 or passed < 2.0 else 0.0
        if now - self.shown < pause or (passed < 0.4 and (done or total < LONG_WORK)):
            return
        self.shown, self.drawn, self.said = now, self.visible, True
        time_left = f", {about(left)} left" if left is not None else ""
        text = f"{verb} {done:,} of {total:,} {unit}".rstrip() + time_left + remark
        size = max(4, min(24, terminal_width() - len(text) - 3))
        filled = size * done // max(total, 1)
        bar = f"[{'#' * filled}{'.' * (size - filled)}] {text}"
        self.stream.write(f"\r\x1b[K{bar[: terminal_width()]}" if self.visible else f"{text}\n")
        self.stream.flush()

    def __exit__(self, *error: object) -> None:
        self.done()

    def done(self) -> None:
        """Erase the bar."""
        if self.drawn:
            self.stream.write("\r\x1b[K")
            self.stream.flush()


@contextmanager
def spinner(text: str) -> Generator[None]:
    """Turns on stderr while something takes longer than 0.15 s, if that is a terminal that can erase it."""
    if not takes_codes(sys.stderr):
        yield
        return
    done = threading.Event()

    def turn() -> None:
        pause = 0.15
        for sign in itertools.cycle("|/-\\"):
            if done.wait(pause):
                break
            sys.stderr.write(f"\r\x1b[K{sign} {text}")
            sys.stderr.flush()
            pause = 0.1
        sys.stderr.write("\r\x1b[K" if pause < 0.15 else "")

    turning = threading.Thread(target=turn, name="co-spinner", daemon=True)
    turning.start()
    try:
        yield
    finally:
        done.set()
        turning.join()


def terminal_width() -> int:
    try:
        columns = int(os.environ.get("COLUMNS") or 0) or os.get_terminal_size().columns
    except (ValueError, OSError):
        columns = 0
    return max(NARROWEST, min(columns or 80, WIDEST))  # a terminal may report 0


def reads_terminal() -> bool:
    """Whether standard input is a terminal. It is None if the parent process closed it."""
    return sys.stdin is not None and sys.stdin.isatty()  # pyright: ignore[reportUnnecessaryComparison]


def read_key(prompt: str, allowed: str) -> str:
    """Wait for one of these letters and Enter. The end of input counts as q."""
    while True:
        print(prompt, flush=True)
        line = sys.stdin.readline()
        pressed = line.strip().lower()[:1]
        if not line or (pressed and pressed in allowed):
            return pressed or "q"


def logbook():
    from co_cli.notes import logbook  # imports logging, 13 ms, which a search does without

    return logbook
