"""What a loader answers when it is asked for a URL. `co_cli.agent.loading` is one; `service.web_pages` asks it."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple, Protocol

if TYPE_CHECKING:
    from co_cli.sources.web.extract import Page


class Loaded(NamedTuple):
    """The whole document, ready to be saved."""

    page: Page
    fetched_with: str
    """The tool it came from, as `server/tool`."""


class UseHttp(NamedTuple):
    """Fetch the page over plain HTTP instead."""

    reason: str
    trouble: str = ""
    """What the user should know: why the loader could not work. Empty if plain HTTP was its choice."""


class LoadFailed(NamedTuple):
    """The loader knows the right tool, but cannot get the document."""

    detail: str
    """What is wrong and what the user can do about it, on one line."""


Answer = Loaded | UseHttp | LoadFailed


class Loader(Protocol):
    """Asked before a URL is fetched. Raises KnowledgeError if it is configured wrongly."""

    def load(self, url: str, before: str = "") -> Answer:
        """`before` is the `server/tool` that this page came from last time."""
        ...
