"""One question and its answer as plain values, and how each tool call is told on one line. No agent library here."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, NamedTuple

from co_cli.cli.terminal import count_of
from co_cli.values import masked_text

SHORT = 48
MOST_REFS = 3


@dataclass
class ToolCall:
    """What a model asked of a tool, and what came back."""

    id: str
    name: str
    arguments: dict[str, Any]
    outcome: str | None = None
    """`success`, `failed`, `denied`, `interrupted`, `retried`; None while it runs."""
    text: str = ""
    """What the model got to read."""
    data: dict[str, Any] = field(default_factory=dict[str, Any])
    """The same as plain values."""

    @property
    def saved(self) -> str | None:
        """The ref of the note that this call wrote."""
        written = self.outcome == "success" and self.data.get("outcome") in ("created", "updated")
        return str(self.data["ref"]) if written and "ref" in self.data else None


class Beside(NamedTuple):
    """These notes stand beside the question, though nobody asked for them."""

    refs: list[str]


class TextCame(NamedTuple):
    """The next piece of the answer."""

    text: str


class Thinking(NamedTuple):
    """The model is at work and says nothing yet."""


class CallBegan(NamedTuple):
    """A tool is being called."""

    call: ToolCall


class CallEnded(NamedTuple):
    """A tool answered."""

    call: ToolCall


Event = Beside | TextCame | Thinking | CallBegan | CallEnded


class Injected(NamedTuple):
    """A note that stood in the prompt without the model's asking, and why."""

    ref: str
    title: str
    why: str
    """`always`, `contextual` or `recalled`."""
    evidence: float | None
    """How strongly it had to do with the question; None for one that is always there."""


@dataclass
class Turn:
    """A question, its answer, and what the answer stood on."""

    question: str
    model: str
    answer: str = ""
    calls: list[ToolCall] = field(default_factory=list[ToolCall])
    injected: list[Injected] = field(default_factory=list[Injected])
    cut: list[str] = field(default_factory=list[str])
    """Refs that would have been injected, had there been room."""
    usage: dict[str, int] = field(default_factory=dict[str, int])
    stopped: bool = False
    problem: str | None = None
    """Why there is no answer, with the cure, on one line."""

    @property
    def saved(self) -> list[str]:
        return list(dict.fromkeys(call.saved for call in self.calls if call.saved))

    def as_object(self) -> dict[str, Any]:
        """For `--json`."""
        return {
            "question": self.question,
            "answer": self.answer,
            "model": self.model,
            "injected": [note._asdict() for note in self.injected],
            "cut": self.cut,
            "tool_calls": [
                {"name": call.name, "arguments": call.arguments, "outcome": call.outcome, "result": call.data}
                for call in self.calls
            ],
            "saved": self.saved,
            "usage": self.usage,
            "stopped": self.stopped,
        }


def asked(call: ToolCall) -> str:
    """`recall_memory "deploy"`: the call, by the argument that tells most about it."""
    told = next(
        (call.arguments[name] for name in ("query", "q", "ref", "title", "content") if call.arguments.get(name)), ""
    )
    words = " ".join(str(told).split())
    if len(words) > SHORT:
        words = words[: SHORT - 1].rstrip() + "…"
    return (
        f'{call.name} "{words}"'
        if words and not words.startswith(("memory:", "article:"))
        else f"{call.name} {words}".rstrip()
    )


def beside(refs: list[str]) -> str:
    """`beside the question: memory:tone`."""
    return "beside the question: " + " ".join(refs[:MOST_REFS]) + (" …" if len(refs) > MOST_REFS else "")


def answered(call: ToolCall) -> str:
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
            return f"nothing there; nearest: {' '.join(refs[:MOST_REFS])}" if refs else "nothing there"
        if not refs:
            return "nothing found, not everything could be asked"
        told = _refs(count_of(len(refs) + len(data.get("cut", ())), "note"), refs)
        return f"{told} (not everything could be asked)" if data.get("degraded") else told
    if "notes" in data:
        return _refs(count_of(len(data["notes"]), "memory"), [str(note["ref"]) for note in data["notes"]])
    if "ref" in data:
        return str(data.get("title") or data["ref"])
    return " ".join(call.text.split())[:SHORT] or "done"


def _receipt(data: dict[str, Any]) -> str:
    doubts = [
        words
        for name, words in (("read_back", "the file says something else"), ("found_again", "not found by search yet"))
        if data.get(name) is False
    ]
    masked = int(data.get("masked") or 0)
    doubts += [masked_text(masked)] if masked else []
    told = f"{'known already:' if data['outcome'] == 'duplicate' else data['outcome']} {data.get('ref', '')}".rstrip()
    return f"{told} ({'; '.join(doubts)})" if doubts else told


def _refs(count: str, refs: list[str]) -> str:
    more = " …" if len(refs) > MOST_REFS else ""
    return ", ".join([count, " ".join(refs[:MOST_REFS]) + more]) if refs else count
