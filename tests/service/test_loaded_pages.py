"""Pages that a loader gets: kept like any other page, and never replaced by what plain HTTP makes of their address."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

from co_cli.knowledge_base import KnowledgeBase
from co_cli.notes.note import Note, read_note
from co_cli.service.loading import Answer, Loaded, LoadFailed, UseHttp
from co_cli.service.web_pages import WebPages
from co_cli.sources.web.addresses import Exceptions
from co_cli.sources.web.extract import Page
from co_cli.sources.web.fetch import Fetcher, Limits
from tests.sources.web_server import WebServer, article
from tests.vault import Vault

LOGIN = article("Sign in", "You need an account to see this document. Please sign in, or ask its owner for access.")
PLAN = Loaded(Page("The plan", "# The plan\n\nWe moor at noon.\n"), "docs/read_document")
LATER = Loaded(Page("The plan", "# The plan\n\nWe moor at one.\n"), "docs/read_document")
PATH = "articles/the-plan.md"


class Ready:
    """A loader that has its answers ready, and remembers what it was asked."""

    def __init__(self, *answers: Answer) -> None:
        self.answers = list(answers)
        self.asked: list[tuple[str, str]] = []

    def load(self, url: str, before: str = "") -> Answer:
        self.asked.append((url, before))
        return self.answers.pop(0)


@pytest.fixture
def server() -> Iterator[WebServer]:
    opened = WebServer()
    yield opened
    opened.close()


@pytest.fixture
def pages(kb: KnowledgeBase) -> Callable[..., WebPages]:
    """The vault's pages, with a loader that gives these answers; without any there is no loader."""
    fetcher = Fetcher(Limits(seconds=5), Exceptions.read(["127.0.0.1"]))

    def made(*answers: Answer) -> WebPages:
        return WebPages(kb.store, kb.index, fetcher, 100_000, Ready(*answers) if answers else None)

    return made


def read(vault: Vault) -> Note:
    return read_note(PATH, vault.path(PATH).read_bytes())


def test_what_a_loader_got_is_kept_as_a_page_that_says_how_it_came(
    kb: KnowledgeBase, vault: Vault, server: WebServer, pages: Callable[..., WebPages]
) -> None:
    url = server.page("/plan", LOGIN)
    found = pages(PLAN)

    receipt = found.add(url, tags=["plans"])

    assert (receipt.outcome, receipt.ref, receipt.title, receipt.detail) == (
        "created",
        "article:the-plan",
        "The plan",
        "",
    )
    note = read(vault)
    assert list(note.metadata) == [
        *("title", "kind", "created", "tags", "provenance", "source_url", "fetched", "fetched_hash", "fetched_with"),
    ]
    assert (note.provenance, note.metadata["fetched_with"]) == ("web", "docs/read_document")
    assert note.body == "# The plan\n\nWe moor at noon.\n"
    assert kb.search("moor at noon").hits[0].ref.startswith("article:the-plan")
    assert isinstance(found.loader, Ready)
    assert found.loader.asked == [(url, "")]
    assert server.asked == []


def test_a_page_that_is_kept_already_costs_no_question(server: WebServer, pages: Callable[..., WebPages]) -> None:
    url = server.page("/plan", LOGIN)
    pages(PLAN).add(url)

    assert pages(LATER).add(url).outcome == "skipped"


def test_what_the_loader_leaves_is_fetched_and_trouble_is_told(
    vault: Vault, server: WebServer, pages: Callable[..., WebPages]
) -> None:
    oaks = server.page("/oaks", article("Oaks", "Oaks live for centuries and feed hundreds of kinds of insects."))
    elms = server.page("/elms", article("Elms", "Elms were common until a fungus took most of them away."))

    chosen = pages(UseHttp("an ordinary page")).add(oaks)
    forced = pages(UseHttp("no tool", "the MCP server docs cannot be started: there is no command docs-mcp")).add(elms)

    assert (chosen.outcome, chosen.detail) == ("created", "")
    assert forced.outcome == "created"
    assert forced.detail == (
        "by plain HTTP, because the MCP server docs cannot be started: there is no command docs-mcp"
    )
    assert "fetched_with" not in vault.read("articles/oaks.md")


def test_a_failure_is_the_receipt_and_nothing_is_fetched(
    vault: Vault, server: WebServer, pages: Callable[..., WebPages]
) -> None:
    url = server.page("/plan", LOGIN)
    why = f"{url}: Google says 403; share the document with the account of `docs`"

    receipt = pages(LoadFailed(why)).add(url)

    assert (receipt.outcome, receipt.detail, receipt.exit_code) == ("failed", why, 3)
    assert server.asked == []
    assert vault.notes() == []


def test_a_document_that_is_longer_than_a_note_is_refused(
    vault: Vault, server: WebServer, pages: Callable[..., WebPages]
) -> None:
    receipt = pages(Loaded(Page("Long", "x" * 100_001), "docs/read")).add(server.url + "/long")

    assert (receipt.outcome, receipt.exit_code) == ("failed", 2)
    assert "100,001 bytes of text; the limit is 100,000 (the setting knowledge_max_note_bytes)" in receipt.detail
    assert vault.notes() == []


def test_a_refresh_asks_the_loader_again_and_names_the_tool(
    vault: Vault, server: WebServer, pages: Callable[..., WebPages]
) -> None:
    url = server.page("/plan", LOGIN)
    pages(PLAN).add(url)
    before = vault.read(PATH)
    found = pages(PLAN, LATER)

    assert [receipt.outcome for receipt in found.refresh([PATH])] == ["unchanged"]
    assert vault.read(PATH) == before

    assert [receipt.outcome for receipt in found.refresh([PATH])] == ["updated"]
    assert read(vault).body == "# The plan\n\nWe moor at one.\n"
    assert isinstance(found.loader, Ready)
    assert found.loader.asked == [(url, "docs/read_document")] * 2
    assert server.asked == []


@pytest.mark.parametrize(
    ("answers", "why"),
    [
        ((), "no loading agent is configured (the settings loading_model and loading_servers)"),
        ((UseHttp("it looks public"),), "it looks public"),
        ((UseHttp("", "the MCP server docs did not answer within 30 seconds"),), "the MCP server docs did not answer"),
        ((LoadFailed("x: Google says 403; share it"),), "Google says 403"),
    ],
)
def test_plain_http_never_takes_the_place_of_a_tool_unasked(
    vault: Vault, server: WebServer, pages: Callable[..., WebPages], answers: tuple[Answer, ...], why: str
) -> None:
    url = server.page("/plan", LOGIN)
    pages(PLAN).add(url)

    (receipt,) = pages(*answers).refresh([PATH])

    assert (receipt.outcome, receipt.ref, receipt.exit_code) == ("failed", "article:the-plan", 3)
    assert why in receipt.detail
    assert server.asked == []
    assert read(vault).body == "# The plan\n\nWe moor at noon.\n"


def test_overwrite_takes_what_plain_http_gives_and_forgets_the_tool(
    vault: Vault, server: WebServer, pages: Callable[..., WebPages]
) -> None:
    url = server.page("/plan", article("Plan", "The plan is public now, and everybody may read it here at once."))
    pages(PLAN).add(url)

    (receipt,) = pages().refresh([PATH], "overwrite")

    assert receipt.outcome == "updated"
    assert "The plan is public now" in read(vault).body
    assert "fetched_with" not in read(vault).metadata


def test_a_page_that_came_by_plain_http_is_refreshed_without_the_loader(
    server: WebServer, pages: Callable[..., WebPages]
) -> None:
    url = server.page("/oaks", article("Oaks", "Oaks live for centuries and feed hundreds of kinds."), etag='"v1"')
    pages().add(url)
    found = pages(PLAN)

    assert [receipt.outcome for receipt in found.refresh(["articles/oaks.md"])] == ["unchanged"]
    assert isinstance(found.loader, Ready)
    assert found.loader.asked == []
    assert server.asked[-1].headers["if-none-match"] == '"v1"'


def test_adding_with_overwrite_lets_the_loader_find_a_better_way(
    vault: Vault, server: WebServer, pages: Callable[..., WebPages]
) -> None:
    url = server.page("/plan", LOGIN)
    pages().add(url)

    receipt = pages(PLAN).add(url, "overwrite")

    assert (receipt.outcome, receipt.ref) == ("updated", "article:sign-in")
    assert "fetched_with: docs/read_document" in vault.read("articles/sign-in.md")
    assert "We moor at noon." in vault.read("articles/sign-in.md")


def test_a_text_that_was_changed_here_stays(vault: Vault, server: WebServer, pages: Callable[..., WebPages]) -> None:
    pages(PLAN).add(server.page("/plan", LOGIN))
    vault.write(PATH, vault.read(PATH) + "\nMy remark.\n")

    assert [receipt.outcome for receipt in pages(LATER).refresh([PATH])] == ["skipped"]
    assert "My remark." in vault.read(PATH)
