"""Sources for the page: add a folder, a file or a web page, refresh and remove one, and what was skipped and why."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from pydantic import BaseModel

from co_cli.entrance.local import LocalKnowledgeBase
from co_cli.ground.errors import InvalidInputError
from co_cli.server.jobs import Jobs, JobState, Report
from co_cli.server.routes import is_owner, route
from co_cli.sources.web import looks_like_url


class SourceJob(NamedTuple):
    """How far the last addition or refresh is, and what came of it."""

    job: JobState
    result: str = ""
    ref: str | None = None
    """Of a web page: the article."""
    may_change: bool = False
    """Only in `co web`, by the person who started it: folders are those of the machine."""


class NewSource(BaseModel):
    """A folder or a file of this machine, or the address of a web page."""

    origin: str


class OneSource(BaseModel):
    """A source, such as `folder:handbook`; `vault` is the vault itself."""

    label: str


class SkippedFile(NamedTuple):
    path: str
    reason: str


class Outcome(NamedTuple):
    text: str
    ref: str | None = None


_jobs: Jobs[Outcome] = Jobs()


@route("GET", "/sources")
def show_source_job(kb: LocalKnowledgeBase) -> SourceJob:
    """Show how far the last addition or refresh of a source is, and what came of it."""
    job = _jobs.last(kb)
    result = (job.result if job else None) or Outcome("")
    return SourceJob(job.state if job else JobState(), *result, may_change=is_owner())


@route("POST", "/sources", role="admin")
def add_source(kb: LocalKnowledgeBase, asked: NewSource) -> SourceJob:
    """Make a folder or a file searchable, or save a web page as an article, as `co add` does, in the background."""
    _require_owner()
    origin = asked.origin.strip()
    if not origin:
        raise InvalidInputError("name a folder, a file or the address of a web page")

    def work(report: Report) -> Outcome:
        if looks_like_url(origin):
            page = kb.web_pages().add(origin)
            return Outcome(f"{page.outcome}: {page.title or origin}", page.ref)
        receipt = kb.sources.add(origin, progress=lambda done, total: report("read", done, total))
        return Outcome(f"{receipt.label}: {receipt.detail}")

    _jobs.start(kb, work)
    return show_source_job(kb)


@route("POST", "/sources/{label}/refresh", role="admin")
def refresh_source(kb: LocalKnowledgeBase, asked: OneSource) -> SourceJob:
    """Read what changed in a source, in the background."""
    _require_owner()

    def work(report: Report) -> Outcome:
        receipt = kb.sources.refresh(asked.label, progress=lambda done, total: report("read", done, total))
        return Outcome(f"{receipt.label}: {receipt.detail}")

    _jobs.start(kb, work)
    return show_source_job(kb)


@route("DELETE", "/sources/{label}", role="admin")
def remove_source(kb: LocalKnowledgeBase, asked: OneSource) -> Outcome:
    """Remove a source from the list and the index. Its files stay."""
    _require_owner()
    receipt = kb.sources.remove(asked.label)
    return Outcome(f"{receipt.label}: {receipt.detail}")


@route("GET", "/sources/{label}/skipped")
def list_skipped(kb: LocalKnowledgeBase, asked: OneSource) -> Sequence[SkippedFile]:
    """List the files of a source that are not indexed, or whose file is gone, each with the reason."""
    return [SkippedFile(*pair) for tree in kb.sources.trees(asked.label) for pair in tree.files.items() if pair[1]]


def _require_owner() -> None:
    if not is_owner():
        raise InvalidInputError("sources of `co serve` are changed where it runs: `co add`, `co source`")
