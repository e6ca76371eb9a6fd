"""Print an answer: Markdown on a terminal, plain text to a pipe, and one line for each tool call.

On a terminal, a block of Markdown is printed when it is complete, so nothing is ever redrawn. Model output must not
control the terminal: it is escaped before Markdown is parsed, and again afterwards because a link can hide `%1b`.
"""

from __future__ import annotations

import re
import sys
from typing import TYPE_CHECKING, Any, TextIO

from co_cli.cli.terminal import Screen, count_of, printable, terminal_width, use_colour
from co_cli.notes.refs import without_lines
from co_cli.values import masked_text

if TYPE_CHECKING:
    from rich.status import Status

    from co_cli.chat.conversation import ToolCall, Turn

FENCE = re.compile(r"\s*(`{3,}|~{3,})[^`]*$")
MAX_WORDS = 48
MAX_REFS = 3
REASONS = {
    "always": "marked loading: always",
    "contextual": "marked loading: contextual, and related to the question",
    "recalled": "closely related to the question",
}


def safe(text: str) -> str:
    """Escape control characters and direction marks, but keep the lines."""
    return "\n".join(printable(line) for line in text.replace("\r", "").split("\n"))


class Output:
    """Prints nothing, for `--json`."""

    def status(self, text: str) -> None:
        """Say what is going on, until something is printed."""

    def text(self, piece: str) -> None:
        """The next piece of the answer."""

    def line(self, text: str, style: str = "dim") -> None:
        """A line about a tool call or about the notes in the prompt."""

    def finish(self) -> None:
        """Print what is left of the text and remove the status."""


class PipeOutput(Output):
    """Prints the answer to stdout as the model wrote it, and lines about tool calls to stderr."""

    def __init__(self) -> None:
        self._at_line_start = True

    def text(self, piece: str) -> None:
        self._at_line_start = piece.endswith("\n")
        sys.stdout.write(safe(piece))
        sys.stdout.flush()

    def line(self, text: str, style: str = "dim") -> None:
        self.finish()
        print(printable(text), file=sys.stderr)

    def finish(self) -> None:
        if not self._at_line_start:
            self.text("\n")


class TerminalOutput(Output):
    """Prints each block of Markdown with rich as soon as the block is complete."""

    def __init__(self, stream: TextIO | None = None) -> None:
        from markdown_it import MarkdownIt
        from rich.console import Console

        self._console = Console(file=stream, color_system="auto" if use_colour(stream or sys.stdout) else None)
        self._parser = MarkdownIt("commonmark", {"html": False}).enable(["strikethrough", "table"])
        self._status: Status | None = None
        self._lines: list[str] = []
        self._rest = ""
        self._fence = ""
        self._gap = False

    def status(self, text: str) -> None:
        from rich.text import Text

        shown = Text(printable(text), style="dim")
        if self._status:
            self._status.update(shown)
        else:
            self._status = self._console.status(shown)
            self._status.start()

    def text(self, piece: str) -> None:
        *lines, self._rest = (self._rest + piece).split("\n")
        for line in lines:
            self._add(line)
        if self._block_ends_before(self._rest):
            self._print_block()
        self.status("writing …")

    def line(self, text: str, style: str = "dim") -> None:
        self._print_rest()
        self._console.print(printable(text), style=style, soft_wrap=True, markup=False, highlight=False, emoji=False)
        self._gap = True

    def finish(self) -> None:
        self._print_rest()
        if self._status:
            self._status.stop()
        self._status, self._gap = None, False

    def _add(self, line: str) -> None:
        if self._block_ends_before(line):
            self._print_block()
        fence = FENCE.match(line)
        if fence and not self._fence:
            self._fence = fence[1]
        elif fence and fence[1].startswith(self._fence) and line.strip() == fence[1]:
            self._fence = ""
        self._lines.append(line)

    def _block_ends_before(self, line: str) -> bool:
        """A blank line outside a code block ends a block, unless the next line is indented: it may continue a list."""
        after_blank = bool(self._lines) and not self._lines[-1].strip()
        return after_blank and not self._fence and bool(line[:1].strip())

    def _print_rest(self) -> None:
        self._add(self._rest)
        self._print_block()
        self._rest = self._fence = ""

    def _print_block(self) -> None:
        from rich.markdown import Markdown
        from rich.text import Text

        block, self._lines = safe("\n".join(self._lines)), []
        if not block.strip():
            return
        markdown = Markdown(block, code_theme="ansi_dark", hyperlinks=False)
        markdown.parsed = self._parser.parse(block)  # by default, rich drops everything that looks like HTML
        options = self._console.options.update(width=terminal_width())
        lines: list[Text] = []
        for parts in self._console.render_lines(markdown, options, pad=False):
            lines.append(Text.assemble(*((safe(part.text), part.style or "") for part in parts)))
            lines[-1].rstrip()  # rich fills lines with spaces, which are in the way when text is copied or reflowed
        while lines and not lines[0]:
            del lines[0]
        shown = Text("\n").join(lines)
        shown.rstrip()
        self._console.print(*([Text()] if self._gap else []), shown, sep="\n", soft_wrap=True)
        self._gap = True


# -- what tools did, in one line --------------------------------------------------------------------------------------


def request_summary(call: ToolCall) -> str:
    """`recall_memory "deploy"`: the call with its most important argument."""
    names = ("query", "q", "ref", "title", "content")
    words = " ".join(str(next((call.arguments[name] for name in names if call.arguments.get(name)), "")).split())
    if len(words) > MAX_WORDS:
        words = words[: MAX_WORDS - 1].rstrip() + "…"
    quoted = words if words.startswith(("memory:", "article:")) else f'"{words}"'
    return f"{call.name} {quoted}" if words else call.name


def result_summary(call: ToolCall) -> str:
    """`3 notes, memory:blue-pool-first …`: what came back."""
    data = call.data
    if call.outcome == "interrupted":
        return "stopped"
    if call.outcome == "denied":
        return "not allowed"
    if call.outcome != "success":
        return " ".join(call.text.split()) or "failed"
    if "trash" in data:
        return f"forgotten; /restore {data.get('ref')} brings it back"
    if "outcome" in data:
        return _receipt(data)
    if "hits" in data:
        refs = [str(hit["ref"]) for hit in data["hits"]]
        if data.get("state") == "absent":
            return f"nothing there; nearest: {short_list(refs)}" if refs else "nothing there"
        found = _counted(len(refs) + len(data.get("cut", ())), "note", refs)
        return f"{found} (not everything could be searched)" if data.get("degraded") else found
    if "notes" in data:
        return _counted(len(data["notes"]), "memory", [str(note["ref"]) for note in data["notes"]])
    if "ref" in data:
        return str(data.get("title") or data["ref"])
    return " ".join(call.text.split())[:MAX_WORDS] or "done"


def print_call(output: Output, call: ToolCall) -> None:
    """`· recall_memory "deploy" → 3 notes, memory:blue-pool-first`"""
    output.line(f"· {request_summary(call)} → {result_summary(call)}", "green" if call.saved else "dim")


def short_list(refs: list[str]) -> str:
    return " ".join(refs[:MAX_REFS]) + (" …" if len(refs) > MAX_REFS else "")


def _counted(count: int, noun: str, refs: list[str]) -> str:
    return ", ".join([count_of(count, noun), *([short_list(refs)] if refs else [])])


def _receipt(data: dict[str, Any]) -> str:
    doubts = ["the file says something else"] if data.get("read_back") is False else []
    doubts += ["not found by search yet"] if data.get("found_again") is False else []
    doubts += [masked_text(int(data["masked"]))] if data.get("masked") else []
    receipt = (
        f"{'already known:' if data['outcome'] == 'duplicate' else data['outcome']} {data.get('ref', '')}".rstrip()
    )
    return f"{receipt} ({'; '.join(doubts)})" if doubts else receipt


# -- /why -------------------------------------------------------------------------------------------------------------


def explain(turn: Turn) -> None:
    """Print what an answer is based on: the notes in the prompt and those that tools returned, with their scores."""
    screen = Screen()

    def print_note(title: str, ref: str, *details: str) -> None:
        screen.line("  " + " ".join(filter(None, (printable(title), screen.paint(printable(ref), "cyan")))))
        named = "named in the answer" if without_lines(ref) in turn.answer else ""
        screen.wrapped(" · ".join(filter(None, (*details, named))), "    ", style="dim")

    if turn.injected:
        screen.line("In the prompt:")
    for note in turn.injected:
        evidence = f"evidence {note['evidence']:.2f}" if note["evidence"] is not None else ""
        print_note(note["title"], note["ref"], REASONS[note["why"]], evidence)
    if turn.cut:
        screen.wrapped(f"Left out for lack of space: {', '.join(turn.cut)}")
    for call in turn.calls:
        screen.line(printable(f"{request_summary(call)} → {result_summary(call)}"))
        for hit in call.returned:
            signals = " ".join(f"{name} {value:.2f}" for name, value in hit.get("signals", {}).items())
            score = f"{hit['score']:.2f}" if "score" in hit else ""
            print_note(str(hit.get("title", "")), str(hit["ref"]), f"{score} ({signals})" if signals else score)
    if not turn.injected and not turn.calls:
        screen.line("The answer is not based on any note.")
