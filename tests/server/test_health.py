"""The health page: what works, where everything comes from, and two ways to rank side by side."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from starlette.testclient import TestClient

from co_cli.entrance.knowledge_base import KnowledgeBase
from co_cli.ground.settings import load_settings
from co_cli.index.embed import SLOW_BATCH
from co_cli.server.access_tokens import AccessTokens
from co_cli.server.health_api import CHANGEABLE
from co_cli.vault.vault import Opening
from tests.embedding.loopback import SLOW_SECONDS
from tests.embedding.meaning.servers import TurnedOllama
from tests.folder import Vault
from tests.server.api import ask
from tests.server.browser import inspect, until, wait_for
from tests.server.conftest import Server, client, serving, token

TOKEN = "ghp_aB3dE5fG7hI9jK1lM3nO5pQ7rS9tU1vW3xY5"


NOTES = 100


class HeldOllama(TurnedOllama):
    """Embeds the first notes at once, and the others when it is released."""

    def vectors(self, texts: Sequence[str], dimensions: int) -> list[list[float]]:
        if len({*self.documents}) > SLOW_BATCH + 1:  # and what the doctor asks
            self.released.wait(SLOW_SECONDS)
        return super().vectors(texts, dimensions)


@pytest.fixture
def ollama() -> Iterator[HeldOllama]:
    server = HeldOllama()
    yield server
    server.close()


def examined(api: TestClient, path: str = "/doctor") -> list[dict[str, Any]]:
    """What the doctor finds, when it is done."""
    ask(api, "POST", path)
    wait_for(lambda: ask(api, "GET", "/doctor")["job"]["state"] != "running")
    answer = ask(api, "GET", "/doctor")
    assert answer["job"]["state"] == "done"
    return answer["findings"]


@pytest.mark.medium
def test_the_doctor_runs_in_the_background_and_fixes_what_it_may(api: TestClient, sample: KnowledgeBase) -> None:
    (Path(sample.root) / "memories" / "new.md").write_text("A new note.\n")
    assert ask(api, "GET", "/doctor")["job"]["state"] == "none"

    before = {one["check"]: one for one in examined(api)}
    fixed = {one["check"]: one for one in examined(api, "/doctor/fix")}

    assert before["freshness"]["fix"] == "co index sync"
    assert fixed["freshness"]["fixed"]
    assert sample.note("memory:new")
    assert [one for one in examined(api) if one["level"] == "error"] == []


def test_sources_say_how_fresh_they_are(api: TestClient, sample: KnowledgeBase, tmp_path: Path) -> None:
    handbook = tmp_path / "handbook"
    handbook.mkdir()
    (handbook / "rules.md").write_text("# Rules\n\nBe kind.\n")
    sample.sources.add(str(handbook))
    (handbook / "more.md").write_text("# More\n\nBe on time.\n")

    health = ask(api, "GET", "/health")

    rows = {one["source"]: one for one in health["sources"]}
    assert (rows["folder:handbook"]["notes"], rows["folder:handbook"]["there"]) == (1, True)
    assert health["waiting"] == {sample.root: 0, str(handbook): 1}
    assert health["status"]["notes"]["memory"] == rows["memory"]["notes"]


def test_the_state_is_computed_once_until_the_index_changes(api: TestClient, sample: KnowledgeBase) -> None:
    """Nothing watches the files here; a server notices a change and updates the index."""
    first = api.get("/api/v1/health")
    (Path(sample.root) / "memories" / "new.md").write_text("A new note.\n")
    assert api.get("/api/v1/health").content == first.content

    sample.sync()
    after = ask(api, "GET", "/health")["status"]["notes"]["memory"]
    assert after == first.json()["status"]["notes"]["memory"] + 1


def test_a_setting_says_where_it_comes_from(
    sample: KnowledgeBase, api: TestClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CO_KNOWLEDGE_PROFILE", "fresh")
    settings = load_settings({"vault": sample.root, "data_dir": sample.settings.data_dir})
    sample.vault = replace(sample.vault, settings=settings)

    settings = ask(api, "GET", "/health")["settings"]

    assert (settings["knowledge_profile"]["value"], settings["knowledge_profile"]["origin"]) == (
        "fresh",
        "CO_KNOWLEDGE_PROFILE",
    )
    assert settings["half_life_days"]["origin"] == "default"
    assert settings["vault"]["origin"] == "--vault"


def test_a_setting_is_written_to_the_user_s_file_and_nothing_else_in_it_changes(
    api: TestClient, sample: KnowledgeBase, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = Path(ask(api, "GET", "/settings")["file"])
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text('# mine\ncapture = "keep" # for a while\nlearn = "off"\n')
    monkeypatch.setenv("CO_QUERY_LOG", "no-text")
    monkeypatch.delenv("CO_KNOWLEDGE_EMBEDDING_PROVIDER", raising=False)

    before = {one["name"]: one for one in ask(api, "GET", "/settings")["settings"]}
    after = {one["name"]: one for one in ask(api, "PUT", "/settings/capture", value="propose")["settings"]}

    assert (before["capture"]["value"], before["capture"]["origin"]) == ("keep", f"{file}:2")
    assert (after["capture"]["value"], after["capture"]["in_use"], after["capture"]["fixed"]) == (
        "propose",
        "off",
        False,
    )
    assert file.read_text() == '# mine\ncapture = "propose" # for a while\nlearn = "off"\n'
    assert (after["query_log"]["value"], after["query_log"]["origin"]) == ("no-text", "CO_QUERY_LOG")
    for name, value, problem in (
        ("capture", "always", "capture must be one of off, keep, propose, save, not 'always'"),
        ("context_tokens", "many", "context_tokens must be a number, not 'many'"),
        ("knowledge_embedding_provider", "delphi", "delphi"),
        ("query_log", "on", "query_log is set by CO_QUERY_LOG, which comes before your own file"),
        ("web_allow", "*", "the page does not change web_allow"),
    ):
        message = ask(api, "PUT", f"/settings/{name}", 400, value=value)["error"]["message"]
        assert problem in message
        assert "\n" not in message
    ask(api, "PUT", "/settings/capture", value=None)
    assert file.read_text() == '# mine\nlearn = "off"\n'


def test_a_team_s_server_shows_settings_and_changes_none(vault: Vault, kb: KnowledgeBase) -> None:
    with serving(kb, AccessTokens.of(kb.vault)) as server, client(server, token(kb, "admin")) as http:
        shown = http.get("/api/v1/settings").json()
        refused = http.put("/api/v1/settings/capture", json={"value": "save"})

    assert shown["may_change"] is False
    assert (refused.status_code, "co config set" in refused.json()["error"]["message"]) == (400, True)
    assert not Path(shown["file"]).exists()


@pytest.mark.medium
def test_two_rankings_of_one_query_are_compared(api: TestClient) -> None:
    both = ask(
        api,
        "POST",
        "/compare",
        q="what went wrong with the bells",
        left={"backend": "fts5"},
        right={"profile": "agent", "weights": {"meaning": 1, "words": 0}, "reader": "on"},
        limit=5,
    )

    assert both["left"]["backend"] == "fts5"
    weights = both["right"]["meta"]["weights"]
    assert weights["meaning"] == pytest.approx(1 / 2.2, abs=1e-4), "beside the reader"
    assert both["right"]["meta"]["read"] > 0
    assert both["left"]["meta"].get("read", 0) == 0
    assert len(both["left"]["hits"]) == len(both["right"]["hits"]) == 5


def test_a_weight_that_makes_no_sense_is_refused(api: TestClient) -> None:
    refused = ask(api, "POST", "/compare", 400, q="bells", left={"weights": {"luck": 1}})

    assert "luck" in refused["error"]["message"]


@pytest.mark.slow
def test_a_user_sees_what_is_wrong_and_compares_two_rankings(page: Any, server: Server, sample: KnowledgeBase) -> None:
    (Path(sample.root) / "memories" / "bot.md").write_text(f"The bot uses {TOKEN} at night.\n")
    (Path(sample.root) / "memories" / "broken.md").write_text("---\ntitle: [a\n---\nText.\n")
    sample.sync()  # the doctor may be faster than who watches the files
    page.goto(f"{server.url}/health")
    page.wait_for_selector("text=memories/bot.md:1 holds")
    assert page.get_attribute(".check:has-text('memories/broken.md') a", "href") == "/note/memories/broken.md?edit=1"
    assert TOKEN not in page.inner_text("main")
    inspect(page, "health", lambda: page.evaluate("scrollTo(0, 0)"))
    page.click("nav a:has-text('Settings')")
    page.click("summary:has-text('Advanced')")
    page.fill("[aria-label=Question]", "what went wrong with the bells")
    page.select_option("fieldset >> nth=1 >> select >> nth=1", "fresh")
    page.fill("fieldset >> nth=1 >> input", "words=1 meaning=0")
    page.keyboard.press("Enter")
    page.wait_for_selector(".ranked >> nth=1")
    assert "words 1" in page.inner_text(".pair[aria-live] > div >> nth=1")
    tops = page.evaluate("[...document.querySelectorAll('.ranked')].map((one) => one.getBoundingClientRect().top)")
    assert tops[0] == tops[1], "side by side"
    inspect(page, "settings-advanced")
    page.click("text=Show all")
    assert "CO_KNOWLEDGE_READER" in page.inner_text("tr:has-text('knowledge_reader')")


def test_a_user_changes_a_setting_and_takes_it_back(
    page: Any, server: Server, sample: KnowledgeBase, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CO_QUERY_LOG", "no-text")
    page.goto(f"{server.url}/settings")
    page.wait_for_selector("text=Keep conversations")
    file = Path(page.inner_text(".settings code >> nth=0"))
    shown = page.evaluate("[...document.querySelectorAll('.setting label')].map((one) => one.htmlFor)")
    assert {*shown} == {*CHANGEABLE, "theme"}
    assert page.is_disabled("#query_log")
    assert "Fixed by CO_QUERY_LOG: a variable comes before" in page.inner_text(".setting:has(#query_log)")

    page.select_option("#capture", "propose")
    page.wait_for_selector("co-toast:has-text('Keep conversations: propose')")
    assert file.read_text() == 'capture = "propose"\n'
    assert "this page when co web starts again" in page.inner_text(".setting:has(#capture)")
    page.click("co-toast:has-text('Keep conversations') button:has-text('Undo')")
    until(page, "document.querySelector('#capture').value === 'off'")
    assert file.read_text() == ""
    page.fill("#context_tokens", "plenty")
    page.keyboard.press("Tab")
    page.wait_for_selector(".setting:has(#context_tokens) .problem:has-text('must be a number')")
    assert file.read_text() == ""
    page.problems.clear()  # Chromium logs the 400
    page.fill("#context_tokens", "1000")
    page.keyboard.press("Tab")
    until(page, "!document.querySelector('.setting .problem')")
    assert page.evaluate("getComputedStyle(document.documentElement).accentColor") == "rgb(15, 118, 110)"
    page.fill("#context_tokens", "1500")
    page.keyboard.press("Tab")
    page.wait_for_selector("co-toast:has-text('Room for notes in a prompt: 1500')")
    until(page, "!document.querySelector('.setting .problem')")
    inspect(page, "settings")
    page.click("#count_use")
    page.wait_for_selector("co-toast:has-text('Count use: off')")
    page.click("co-toast:has-text('Count use') button:has-text('Undo')")
    until(page, "document.querySelector('#count_use').checked")
    page.click("[aria-label='Reset: Room for notes in a prompt']")
    until(page, "document.querySelector('#context_tokens').value === '1000'")
    assert file.read_text() == ""


@pytest.mark.slow
def test_a_user_sees_how_far_the_vectors_of_another_model_are(
    vault: Vault, data_dir: Path, ollama: HeldOllama, open_page: Callable[[str], Any]
) -> None:
    for number in range(NOTES):
        vault.write(f"memories/{number}.md", f"Order {number} is shipped from shelf {number * 7} of the warehouse.")
    chosen = {"vault": str(vault.root), "data_dir": str(data_dir)}
    with KnowledgeBase.open(settings=load_settings(chosen)) as kb:
        kb.sync()
    names = {"provider": "ollama", "model": "shown-on-the-page", "host": ollama.url}
    chosen |= {f"knowledge_embedding_{name}": value for name, value in names.items()}

    with KnowledgeBase.open(settings=load_settings(chosen), opening=Opening("web")) as kb, serving(kb) as server:
        page = open_page(server.address)
        page.wait_for_selector("#top:not([inert])")
        deadline = time.monotonic() + 60
        while kb.waiting().passages != NOTES - SLOW_BATCH and time.monotonic() < deadline:
            time.sleep(0.05)  # the first batch is made when the server starts
        page.goto(f"{server.url}/health")
        page.wait_for_selector(f"dt:has-text('Waiting') + dd:has-text('{NOTES - SLOW_BATCH} passages')")
        assert "static:" in page.inner_text("dt:has-text('Vectors') + dd"), "the old ones are used until then"

        ollama.released.set()

        page.wait_for_selector("dt:has-text('Vectors') + dd:has-text('ollama:shown-on-the-page')")
        page.wait_for_selector("dt:has-text('Waiting') + dd:has-text('0 passages')")
        page.close()  # it would miss the server


@pytest.mark.slow
def test_a_user_adds_a_folder_sees_what_is_not_read_and_removes_it(page: Any, server: Server, tmp_path: Path) -> None:
    handbook = tmp_path / "handbook"
    handbook.mkdir()
    (handbook / "rules.md").write_text("# Rules\n\nBe kind.\n")
    (handbook / "broken.docx").write_bytes(b"no zip")
    page.goto(f"{server.url}/sources")
    page.fill("[aria-label='Folder, file or address']", str(tmp_path / "nowhere"))
    page.click("button:text-is('Add')")
    page.wait_for_selector("[role=alert]:has-text('there is no such file or folder')")

    page.fill("[aria-label='Folder, file or address']", str(handbook))
    page.click("button:text-is('Add')")
    page.wait_for_selector(".source:has-text('folder:handbook'):has-text('1 note')")
    assert server.kb.search("be kind", read=False).hits
    page.click(".source:has-text('handbook') button:has-text('1 file not read')")
    page.wait_for_selector(".skipped li:has-text('broken.docx')")
    inspect(page, "sources")
    (handbook / "more.md").write_text("# More\n\nBe on time.\n")
    page.click("[aria-label='Refresh folder:handbook']")
    page.wait_for_selector(".source:has-text('folder:handbook'):has-text('2 notes')")
    page.click("[aria-label='Remove folder:handbook']")
    page.wait_for_selector("co-toast:has-text('files stay')")
    until(page, "!document.querySelector('main').innerText.includes('folder:handbook')")
    assert (handbook / "rules.md").exists()
