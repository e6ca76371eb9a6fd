"""The review for the page: a job that finds what to decide, decisions about its findings, and undoing them."""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from pydantic import BaseModel, Field

from co_cli.errors import InvalidInputError
from co_cli.local import LocalKnowledgeBase
from co_cli.server.jobs import Jobs, JobState, Report
from co_cli.server.routes import CALLER, route
from co_cli.tools.budget import estimate_tokens
from co_cli.upkeep.decisions import Action, Decision, decide, require_unchanged, undo
from co_cli.upkeep.review import Review, review
from co_cli.upkeep.review_checks import KINDS, Kind, ReviewItem


class ListFindings(BaseModel):
    """Which findings to list."""

    kind: Kind | None = None
    limit: int = Field(default=50, ge=0)


class Decide(BaseModel):
    """What to do about a finding."""

    key: str
    action: Action


class FindingKey(BaseModel):
    key: str


class ReviewFinding(NamedTuple):
    """One thing to decide, as in `co note review --json`."""

    kind: Kind
    refs: tuple[str, ...]
    """Of two, the older first."""
    title: str
    reason: str
    actions: list[str]
    """None with a token that may only read."""
    key: str
    proposed: str = ""
    """The memory that accepting it saves, and the text of the one that it replaces."""
    replaced: str = ""


class FoundKind(NamedTuple):
    """How many findings there are of a kind."""

    kind: Kind
    text: str
    undecided: int


class Decided(NamedTuple):
    """A decision that can be undone."""

    key: str
    kind: Kind
    action: Action
    refs: tuple[str, ...]


class ReviewAnswer(NamedTuple):
    """The state of the review, and findings that are not decided yet."""

    job: JobState
    notes: int = 0
    """How many were read."""
    dismissed: int = 0
    degraded: Sequence[str] = ()
    kinds: Sequence[FoundKind] = ()
    findings: Sequence[ReviewFinding] = ()
    decided: Sequence[Decided] = ()
    """Since the review, newest first."""
    changed: bool = False
    """Whether notes have changed since, other than by these decisions."""


@dataclass(slots=True)
class Reviewed:
    """A finished review, and what was decided since."""

    review: Review
    seen: dict[str, str]
    """The hashes of all files at the time, by path."""
    decisions: dict[str, Decision] = field(default_factory=dict[str, Decision])
    lock: threading.Lock = field(default_factory=threading.Lock)

    def undecided(self) -> list[ReviewItem]:
        done = self.decisions.values()
        forgotten = {decision.item.refs[0] for decision in done if decision.action == "forget"}
        superseded = {decision.item.refs[0] for decision in done if decision.action == "supersede"}
        return [
            item
            for item in self.review.items
            if item.key not in self.decisions
            and not forgotten & {*item.refs}
            and not (len(item.refs) > 1 and superseded & {*item.refs})
        ]

    def look_again(self, kb: LocalKnowledgeBase, decision: Decision) -> None:
        """What a decision did to its files is no change by others."""
        hashes = kb.index.notes.hashes()
        for path in decision.paths:
            self.seen.pop(path, None)
            self.seen.update({path: hashes[path]} if path in hashes else {})


_jobs: Jobs[Reviewed] = Jobs()


@route("POST", "/review", role="read")
def start_review(kb: LocalKnowledgeBase) -> ReviewAnswer:
    """Start a review of all notes.

    It runs in the background; if one runs already, this joins it.
    """

    def work(report: Report) -> Reviewed:
        kb.sync()
        seen = kb.index.notes.hashes()
        found = review(kb.vault, time.time(), estimate_tokens, progress=report)
        return Reviewed(found, seen)

    _jobs.start(kb, work)
    return show_review(kb, ListFindings())


@route("GET", "/review")
def show_review(kb: LocalKnowledgeBase, asked: ListFindings) -> ReviewAnswer:
    """Show how far the review is, or what it found."""
    job = _jobs.last(kb)
    state = job.state if job else JobState()  # read first: if it says "done", the result is there
    if job is None or job.result is None:
        return ReviewAnswer(state)
    reviewed = job.result
    with reviewed.lock:
        items = reviewed.undecided()
        decided = [
            Decided(key, decision.item.kind, decision.action, decision.item.refs)
            for key, decision in reversed(reviewed.decisions.items())
        ]
        changed = kb.index.notes.hashes() != reviewed.seen
    counts, may = Counter(item.kind for item in items), CALLER.get().may("write")
    return ReviewAnswer(
        state,
        reviewed.review.notes,
        reviewed.review.dismissed,
        reviewed.review.degraded,
        [FoundKind(kind, text, counts[kind]) for kind, text in KINDS.items()],
        [
            ReviewFinding(*item[:4], item.action_names if may else [], *item[5:])
            for item in items
            if asked.kind in (None, item.kind)
        ][: asked.limit],
        decided,
        changed,
    )


@route("POST", "/review/decisions")
def decide_finding(kb: LocalKnowledgeBase, asked: Decide) -> Decided:
    """Accept a proposal, forget a note, supersede the older of two, or keep a finding from coming back.

    Editing is a change of the note itself.
    """
    reviewed = _reviewed(kb)
    with reviewed.lock:
        item = next((finding for finding in reviewed.undecided() if finding.key == asked.key), None)
        if item is None:
            raise InvalidInputError("this finding is decided already, or from an earlier review: run the review again")
        if asked.action in ("forget", "supersede"):
            require_unchanged(kb.vault, item, reviewed.seen)
        decision = reviewed.decisions[item.key] = decide(kb.vault, item, asked.action, time.time())
        reviewed.look_again(kb, decision)
    return Decided(item.key, item.kind, asked.action, item.refs)


@route("DELETE", "/review/decisions/{key}")
def undo_decision(kb: LocalKnowledgeBase, asked: FindingKey) -> Decided:
    """Undo a decision: restore the note, its text, or the question."""
    reviewed = _reviewed(kb)
    with reviewed.lock:
        decision = reviewed.decisions.get(asked.key)
        if decision is None:
            raise InvalidInputError("there is no such decision since the last review: `co list --trash` lists notes")
        undo(kb.vault, decision)
        del reviewed.decisions[asked.key]
        reviewed.look_again(kb, decision)
    return Decided(asked.key, decision.item.kind, decision.action, decision.item.refs)


def _reviewed(kb: LocalKnowledgeBase) -> Reviewed:
    job = _jobs.last(kb)
    if job is None or job.result is None:
        raise InvalidInputError("the review is not finished: start it, and wait until it is done")
    return job.result
