"""The review for the page: proposals that wait, a job that finds what else to decide, decisions, and undoing them."""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import NamedTuple
from weakref import WeakKeyDictionary

from pydantic import BaseModel, Field

from co_cli.entrance.local import LocalKnowledgeBase
from co_cli.ground.errors import ActivityUnavailableError, InvalidInputError, KnowledgeError
from co_cli.server.jobs import Jobs, JobState, Report
from co_cli.server.routes import CALLER, route
from co_cli.tools.budget import estimate_tokens
from co_cli.upkeep.decisions import (
    Action,
    Decision,
    ask_again,
    decide,
    dismiss_all,
    look_again,
    require_unchanged,
    undo,
)
from co_cli.upkeep.review import Review, proposed, review
from co_cli.upkeep.review_checks import KINDS, Kind, ReviewItem

URGENT: tuple[Kind, ...] = ("proposed", "conflict", "secret", "possible-conflict")
"""What is listed first and counted in the menu; the rest can wait."""
ORDER: tuple[Kind, ...] = (*URGENT, *(kind for kind in KINDS if kind not in URGENT))


class ListFindings(BaseModel):
    """Which findings to list."""

    kind: Kind | None = None
    offset: int = Field(default=0, ge=0)
    limit: int = Field(default=50, ge=0)


class Decide(BaseModel):
    """What to do about one finding, about several, or about all of a kind."""

    key: str | None = None
    keys: Sequence[str] = ()
    kind: Kind | None = None
    """All of these can only be kept as they are."""
    action: Action
    text: str | None = None
    """What an accepted proposal or article says instead."""


class FindingKey(BaseModel):
    key: str


class RewrittenDraft(NamedTuple):
    """The draft of an article as a model writes it. Nothing is saved until it is accepted, with this as its text."""

    text: str


class FoundKind(NamedTuple):
    """How many findings there are of a kind."""

    kind: Kind
    text: str
    undecided: int
    urgent: bool


class Decided(NamedTuple):
    """A decision that can be undone, about one finding or several."""

    key: str
    """Of the first of them."""
    kind: Kind
    action: Action
    refs: tuple[str, ...]
    title: str
    """Of the first of them: its title, or what was proposed."""
    total: int = 1
    problem: str | None = None
    """Why it stopped before the last of them."""


class ReviewAnswer(NamedTuple):
    """The state of the review, and findings that are not decided yet."""

    job: JobState
    notes: int = 0
    """How many were read."""
    dismissed: int = 0
    degraded: Sequence[str] = ()
    kinds: Sequence[FoundKind] = ()
    findings: Sequence[ReviewItem] = ()
    decided: Sequence[Decided] = ()
    """Since the review, newest first."""
    changed: bool = False
    """Whether notes have changed since, other than by these decisions."""


@dataclass(slots=True)
class Reviewed:
    """A finished review, or none yet, and what was decided since."""

    review: Review = field(default_factory=lambda: Review([], 0, 0, []))
    seen: dict[str, str] = field(default_factory=dict[str, str])
    """The hashes of all files at the time, by path."""
    decisions: dict[str, list[Decision]] = field(default_factory=dict[str, list[Decision]])
    """Each by the key of its first finding, the newest last."""
    lock: threading.Lock = field(default_factory=threading.Lock)

    def undecided(self, waiting: Iterable[ReviewItem]) -> list[ReviewItem]:
        """What to decide, with the proposals that wait now, the urgent kinds first."""
        done = [decision for batch in self.decisions.values() for decision in batch]
        keys = {decision.item.key for decision in done}
        forgotten = {ref for decision in done for ref in decision.item.lost(decision.action)}
        superseded = {decision.item.refs[0] for decision in done if decision.action == "supersede"}
        superseded |= {ref for decision in done if decision.saved for ref in decision.item.refs}
        found = [
            item
            for item in self.review.items
            if item.key not in keys
            and item.kind != "proposed"
            and not forgotten & {*item.refs}
            and not (len(item.refs) > 1 and superseded & {*item.refs})
        ]
        return sorted([*waiting, *found], key=lambda item: ORDER.index(item.kind))

    def look_again(self, kb: LocalKnowledgeBase, decisions: Sequence[Decision]) -> None:
        """What a decision did to its files is no change by others, and other versions are compared with it."""
        paths = [path for decision in decisions for path in decision.paths]
        hashes = kb.index.notes.hashes() if paths else {}
        for path in paths:
            self.seen.pop(path, None)
            self.seen.update({path: hashes[path]} if path in hashes else {})
        refs = {ref for decision in decisions for ref in decision.item.refs}
        waiting = {item.key for item in self.undecided(()) if item.is_version and refs & {*item.refs}}
        for place, item in enumerate(self.review.items):
            if item.key in waiting:
                with suppress(KnowledgeError):  # its copy is gone: to decide about it says so
                    self.review.items[place] = look_again(kb.vault, item)


_jobs: Jobs[Reviewed] = Jobs()
_before: WeakKeyDictionary[LocalKnowledgeBase, Reviewed] = WeakKeyDictionary()
"""What was decided while there was no review: about proposals, which need none."""


@route("POST", "/review", role="read")
def start_review(kb: LocalKnowledgeBase) -> ReviewAnswer:
    """Start a review of all notes.

    It runs in the background; if one runs already, this joins it.
    """

    def work(report: Report) -> Reviewed:
        kb.sync(seconds=0)
        seen = kb.index.notes.hashes()
        found = review(kb.vault, time.time(), estimate_tokens, progress=report)
        return Reviewed(found, seen)

    _jobs.start(kb, work)
    return show_review(kb, ListFindings())


@route("GET", "/review")
def show_review(kb: LocalKnowledgeBase, asked: ListFindings) -> ReviewAnswer:
    """Show how far the review is, and what it found. Proposals are listed before it is done, too."""
    job = _jobs.last(kb)
    state = job.state if job else JobState()  # read first: if it says "done", the result is there
    reviewed, waiting = _reviewed(kb), _waiting(kb)
    with reviewed.lock:
        items = reviewed.undecided(waiting)
        decided = [_decided(batch) for batch in reversed(reviewed.decisions.values())]
        changed = bool(reviewed.seen) and kb.index.notes.hashes() != reviewed.seen
    counts, may = Counter(item.kind for item in items), CALLER.get().may("write")
    listed = [item for item in items if asked.kind in (None, item.kind)]
    return ReviewAnswer(
        state,
        reviewed.review.notes,
        reviewed.review.dismissed,
        reviewed.review.degraded,
        [FoundKind(kind, KINDS[kind], counts[kind], kind in URGENT) for kind in ORDER],
        [item if may else item._replace(actions=[]) for item in listed[asked.offset : asked.offset + asked.limit]],
        decided,
        changed,
    )


@route("GET", "/review/count")
def count_findings(kb: LocalKnowledgeBase) -> dict[str, int]:
    """Count what is urgent: proposals that wait and, since the last review, conflicts and secrets."""
    reviewed, waiting = _reviewed(kb), _waiting(kb)
    with reviewed.lock:
        return {"count": sum(item.kind in URGENT for item in reviewed.undecided(waiting))}


@route("POST", "/review/decisions")
def decide_findings(kb: LocalKnowledgeBase, asked: Decide) -> Decided:
    """Accept proposals, combine memories, forget notes, supersede the older of two, or keep findings from coming back.

    Editing is a change of the note itself.
    """
    reviewed, waiting = _reviewed(kb), _waiting(kb)
    with reviewed.lock:
        items = _chosen(asked, reviewed.undecided(waiting))
        done: list[Decision] = []
        problem: str | None = None
        try:
            _decide(kb, reviewed, asked, items, done)
        except KnowledgeError as error:
            if not done:
                raise
            problem = str(error)
        reviewed.decisions[done[0].item.key] = done
        reviewed.look_again(kb, done)
    return _decided(done)._replace(problem=problem)


def _chosen(asked: Decide, undecided: Sequence[ReviewItem]) -> list[ReviewItem]:
    """The findings that a decision is about. Raises InvalidInputError."""
    if asked.kind is not None and asked.action != "keep":
        raise InvalidInputError(f"{asked.action} needs the keys of findings: a whole kind can only be kept as it is")
    keys = {*asked.keys, *([asked.key] if asked.key else [])}
    items = [item for item in undecided if item.key in keys or (asked.kind is not None and item.kind == asked.kind)]
    if not items or len(items) < len(keys):
        raise InvalidInputError("this finding is decided already, or from an earlier review: run the review again")
    if asked.text is not None and len(items) > 1:
        raise InvalidInputError("a text is for one proposal: accept the others without it")
    return items


def _decide(
    kb: LocalKnowledgeBase, reviewed: Reviewed, asked: Decide, items: Sequence[ReviewItem], done: list[Decision]
) -> None:
    now = time.time()
    if asked.action == "keep":
        kept = [item for item in items if not item.keeping_acts]
        done += dismiss_all(kb.vault, kept, now) if kept else []
        items = [item for item in items if item.keeping_acts]
    for item in items:
        if asked.action in ("forget", "supersede") or item.kind == "combine" or item.is_version:
            require_unchanged(kb.vault, item, reviewed.seen)
        done.append(decide(kb.vault, item, asked.action, now, asked.text))


@route("POST", "/review/rewrite")
def rewrite_draft(kb: LocalKnowledgeBase, asked: FindingKey) -> RewrittenDraft:
    """Let the model (setting `model`) rewrite the draft of an article that combines memories. Nothing is saved."""
    from co_cli.agent.rewriting import rewrite  # imports pydantic-ai, which `co web` does not wait for

    reviewed, waiting = _reviewed(kb), _waiting(kb)
    with reviewed.lock:
        [item] = _chosen(Decide(key=asked.key, action="accept"), reviewed.undecided(waiting))
    if item.kind != "combine":
        raise InvalidInputError("only an article that combines memories can be rewritten")
    return RewrittenDraft(rewrite(kb.settings.model, item.title, item.proposed))


@route("DELETE", "/review/decisions/{key}")
def undo_decision(kb: LocalKnowledgeBase, asked: FindingKey) -> Decided:
    """Undo a decision: restore the note, its text, or the question."""
    reviewed = next(
        (state for state in (_reviewed(kb), _before.get(kb)) if state and asked.key in state.decisions), None
    )
    if reviewed is None:
        raise InvalidInputError("there is no such decision since the last review: `co list --trash` lists notes")
    with reviewed.lock:
        batch = reviewed.decisions[asked.key]
        kept = batch[0].action == "keep"
        ask_again(kb.vault, [decision for decision in batch if kept and not decision.item.keeping_acts])
        for decision in reversed([decision for decision in batch if not kept or decision.item.keeping_acts]):
            undo(kb.vault, decision)
        del reviewed.decisions[asked.key]
        reviewed.look_again(kb, batch)
    return _decided(batch)


def _decided(batch: Sequence[Decision]) -> Decided:
    first = batch[0]
    return Decided(first.item.key, first.item.kind, first.action, first.item.refs, first.item.title, len(batch))


def _reviewed(kb: LocalKnowledgeBase) -> Reviewed:
    job = _jobs.last(kb)
    if job is not None and job.result is not None:
        return job.result
    return _before.setdefault(kb, Reviewed())


def _waiting(kb: LocalKnowledgeBase) -> list[ReviewItem]:
    try:
        return proposed(kb.vault)
    except ActivityUnavailableError:  # the review says so
        return []
