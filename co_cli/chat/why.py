"""What an answer stood on: the notes that were in the prompt, and those that tools returned, with their scores."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from co_cli.chat.turn import ToolCall, Turn, answered, asked
from co_cli.cli.terminal import Screen, printable
from co_cli.notes.refs import without_lines

REASONS = {
    "always": "it is marked loading: always",
    "contextual": "it is marked loading: contextual and has to do with the question",
    "recalled": "it has much to do with the question",
}


def explain(turn: Turn, screen: Screen) -> None:
    """For a person, on the screen."""
    if turn.injected:
        screen.line("In the prompt before the model was asked:")
        for note in turn.injected:
            evidence = f"evidence {note.evidence:.2f}" if note.evidence is not None else ""
            reasons = [REASONS.get(note.why, note.why), evidence, _named(note.ref, turn)]
            _note(screen, note.title, note.ref, reasons)
    if turn.cut:
        screen.wrapped(f"Left out of it for lack of room: {', '.join(turn.cut)}")
    for call in turn.calls:
        screen.line(printable(f"{asked(call)} → {answered(call)}"))
        for note in _returned(call):
            score = note.get("score")
            told = _score(score if isinstance(score, int | float) else None, note.get("signals") or {})
            _note(screen, str(note.get("title", "")), str(note["ref"]), [told, _named(str(note["ref"]), turn)])
    if not turn.injected and not turn.calls:
        screen.line("On no note: the model answered by itself.")


def _returned(call: ToolCall) -> Iterable[Mapping[str, Any]]:
    """The notes that a tool showed to the model."""
    if "outcome" in call.data or "trash" in call.data:
        return []
    if "hits" in call.data:
        return call.data["hits"]
    return [call.data] if "ref" in call.data else []


def _note(screen: Screen, title: str, ref: str, about: list[str]) -> None:
    words = " ".join(part for part in (printable(title), screen.paint(printable(ref), "cyan")) if part)
    screen.line(f"  {words}")
    told = " · ".join(part for part in about if part)
    if told:
        screen.wrapped(told, "    ", style="dim")


def _score(score: float | None, signals: Mapping[str, float]) -> str:
    if score is None:
        return ""
    reasons = " ".join(f"{name} {value:.2f}" for name, value in signals.items())
    return f"{score:.2f} ({reasons})" if reasons else f"{score:.2f}"


def _named(ref: str, turn: Turn) -> str:
    return "named in the answer" if without_lines(ref) in turn.answer else ""
