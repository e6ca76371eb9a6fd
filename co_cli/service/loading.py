"""What a loader answers when it is asked for a web address: the page, leave it to plain HTTP, or why there is none.

A loader knows ways to a document that plain HTTP does not: a login, an interface of its own. Pages are kept here; how a
loader decides is its own affair (`co_cli.agent.loading` is one), and no floor below it knows.
"""

from __future__ import annotations

from typing import NamedTuple, Protocol

from co_cli.sources.extraction import Page


class Loaded(NamedTuple):
    """The whole document, ready to be kept."""

    page: Page
    fetched_with: str
    """Which tool it came by, as `server/tool`."""


class UseHttp(NamedTuple):
    """Nothing that the loader has is better than fetching the address."""

    reason: str
    trouble: str = ""
    """What kept the loader from doing its work, for the person to know; empty if it was its free choice."""


class LoadFailed(NamedTuple):
    """The loader knows who has the document, and cannot get it."""

    detail: str
    """What is in the way and what the person can do about it, on one line."""


Answer = Loaded | UseHttp | LoadFailed


class Loader(Protocol):
    """Is asked before an address is fetched. Raises KnowledgeError where it is configured wrongly."""

    def load(self, url: str, before: str = "") -> Answer:
        """`before` is the `server/tool` that this page came by the last time."""
        ...
