"""A server over a copy of the sample vault, a client with its token, and a signed-in browser page."""

from __future__ import annotations

import asyncio
import shutil
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, cast

import anyio
import httpx2
import pytest
from starlette.testclient import TestClient

from co_cli.entrance.knowledge_base import KnowledgeBase
from co_cli.entrance.local import LocalKnowledgeBase
from co_cli.ground.access import Role
from co_cli.ground.paths import sample_vault
from co_cli.http.http_server import listen, make_server
from co_cli.server.access_tokens import AccessTokens
from co_cli.server.clip_api import clip_token
from co_cli.server.open_id import OpenId
from co_cli.server.team_site import TeamAccess, TeamSite
from co_cli.server.web_app import OWNER, Access, Site
from co_cli.vault.vault import Opening
from tests.folder import Vault
from tests.server.browser import DESKTOP, PATIENCE, chromium, wait_for


class Server:
    """A server on this machine, in a thread."""

    def __init__(self, kb: KnowledgeBase, team: AccessTokens | None = None, open_id: OpenId | None = None) -> None:
        """With the tokens of a `team`, as `co serve` starts it; else as `co web` does."""
        self.kb, self.listening = kb, listen("127.0.0.1", 0)
        self.access = TeamAccess(team, open_id) if team else Access(clip_token=clip_token(kb.settings.data_dir))
        self.host = f"127.0.0.1:{self.listening.getsockname()[1]}"
        self.url = f"http://{self.host}"
        make = TeamSite if team else Site
        self.serve(make(kb, cast("Any", self.access), [self.host]))

    def serve(self, site: Site) -> None:
        """Serve this app, before it is started."""
        self.site = site
        self._server = make_server(site, site.events.stop_streams)
        self._thread = threading.Thread(target=anyio.run, args=(self._server.serve, [self.listening]))

    @property
    def address(self) -> str:
        """What `co web` opens: it has a code that works once."""
        return f"{self.url}/#code={self.access.code}"

    def client(self, **headers: str) -> httpx2.Client:
        """A client with the token; other headers replace it."""
        sent = {"Authorization": f"Bearer {self.access.token}", **headers}
        sent = {name: value for name, value in sent.items() if value}
        # loading certificates takes time
        return httpx2.Client(base_url=self.url, headers=sent, verify=False, timeout=PATIENCE)

    def speak_tls(self, certificate: Path) -> None:
        """As a proxy in front of it would."""
        self._server.config.ssl_certfile = str(certificate)
        self.url = f"https://{self.host}"

    def start(self) -> None:
        self._thread.start()
        wait_for(lambda: self._server.started)

    def close(self) -> None:
        self._server.should_exit = True
        self._thread.join(PATIENCE)
        assert not self._thread.is_alive()
        self.listening.close()


def token(kb: KnowledgeBase, role: Role = "write", name: str = "mara") -> str:
    """A new token for the vault of a team."""
    return AccessTokens.of(kb.vault).create(role, name)[0]


def client(server: Server, secret: str) -> httpx2.Client:
    """A client with this token, or with none."""
    return server.client(Authorization=f"Bearer {secret}" if secret else "")


def signed_in(site: Site) -> TestClient:
    """A client of the routes themselves, for the person who started the server."""
    client = TestClient(site.inner)
    client.app_state["caller"] = OWNER
    return client


@contextmanager
def serving(kb: KnowledgeBase, team: AccessTokens | None = None, open_id: OpenId | None = None) -> Iterator[Server]:
    server = Server(kb, team, open_id)
    server.start()
    try:
        yield server
    finally:
        server.close()


@pytest.fixture
def kb(vault: Vault, data_dir: Path) -> Iterator[LocalKnowledgeBase]:
    with KnowledgeBase.open(vault.root, data_dir, opening=Opening("web")) as opened:
        yield opened


@pytest.fixture(scope="session")
def indexed_sample(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of the sample vault in `vault`, and its index in `data`, made once."""
    folder = tmp_path_factory.mktemp("sample")
    shutil.copytree(sample_vault(), folder / "vault")
    with KnowledgeBase.open(folder / "vault", folder / "data") as kb:
        kb.sync()
    return folder


@pytest.fixture
def sample(tmp_path: Path, indexed_sample: Path) -> Iterator[KnowledgeBase]:
    """A copy of the sample vault that the test may change, opened and synced.

    It is always in the same folder: there the index knows its notes.
    """
    vault, data = indexed_sample / "vault", tmp_path / "sample-data"
    shutil.rmtree(vault)
    shutil.copytree(sample_vault(), vault)
    shutil.copytree(indexed_sample / "data", data)
    with KnowledgeBase.open(vault, data, opening=Opening("web")) as kb:
        kb.sync()
        yield kb


@pytest.fixture
def api(sample: KnowledgeBase) -> TestClient:
    """The API over the sample vault, without a network and without sign-in: `api.get("/api/v1/session")`."""
    return signed_in(Site(sample, Access(), []))


@pytest.fixture
def server(sample: KnowledgeBase) -> Iterator[Server]:
    """A real server over the sample vault, which watches its files."""
    with serving(sample) as server:
        yield server


@pytest.fixture(scope="session")
def launched() -> Iterator[tuple[Any, asyncio.AbstractEventLoop]]:
    """One Chromium for all tests of a worker, and playwright's event loop."""
    path = chromium()
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        browser, loop = (
            playwright.chromium.launch(executable_path=path, args=["--no-sandbox"]),
            asyncio.get_running_loop(),
        )
        asyncio._set_running_loop(None)
        yield browser, loop
        asyncio._set_running_loop(loop)
        browser.close()


@pytest.fixture
def browser(launched: tuple[Any, asyncio.AbstractEventLoop]) -> Iterator[Any]:
    """Chromium. Playwright's loop counts as running between its calls, and other tests of the worker need their own."""
    browser, loop = launched
    asyncio._set_running_loop(loop)
    yield browser
    asyncio._set_running_loop(None)


@pytest.fixture
def open_page(browser: Any) -> Iterator[Callable[[str], Any]]:
    """Opens an address in a browser of its own. Errors in the page's console and requests elsewhere fail the test."""
    contexts: list[Any] = []
    problems: list[str] = []

    def open_address(address: str) -> Any:
        context = browser.new_context(viewport=DESKTOP, color_scheme="light", reduced_motion="reduce", locale="en-GB")
        contexts.append(context)
        context.set_default_timeout(PATIENCE * 1000)
        origin = "/".join(address.split("/")[:3])
        here = (f"{origin}/", f"blob:{origin}/")
        page = context.new_page()
        page.problems = problems
        page.on("pageerror", lambda error: problems.append(str(error)))
        page.on("console", lambda said: problems.append(_described(said)) if said.type == "error" else None)
        page.on("dialog", lambda shown: (problems.append(shown.message), shown.dismiss()))
        page.on("request", lambda asked: None if asked.url.startswith(here) else problems.append(asked.url))
        page.goto(address)
        return page

    yield open_address
    for context in contexts:
        context.close()
    assert problems == []


def _described(said: Any) -> str:
    return f"{said.text} {said.location['url']}"


@pytest.fixture
def page(server: Server, open_page: Callable[[str], Any]) -> Any:
    """A page that is signed in to the sample vault. `page.goto(server.url + "/activity")` opens others."""
    page = open_page(server.address)
    page.wait_for_selector("#top:not([inert])")
    return page


@pytest.fixture
def empty(vault: Vault, kb: KnowledgeBase) -> Iterator[Server]:
    """A server over an empty vault."""
    with serving(kb) as server:
        yield server
