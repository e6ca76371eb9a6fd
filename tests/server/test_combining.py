"""`co note review` proposes one article for the memories on one subject, and saves it only when somebody says so."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pexpect
import pytest
from starlette.testclient import TestClient

from co_cli.entrance.knowledge_base import KnowledgeBase
from co_cli.server.web_app import Access, Site
from tests.chat_server import ChatServer, fails, text
from tests.cli.screen import terminal
from tests.command import Co
from tests.folder import Vault
from tests.server.api import ask
from tests.server.browser import held, inspect, until, wait_for
from tests.server.conftest import serving, signed_in

TIDELOG = {
    "min": "Tidelog supports iOS 16 and up.",
    "sync": "Tidelog syncs with CloudKit; we decided against a server of our own.",
    "price": "Tidelog costs 14.99 a year.\n\n- No trial.\n- No `family` sharing.",
    "look": "For Tidelog, I prefer dark screenshots.",
}
ARTICLE = """\
## Decisions

Tidelog syncs with CloudKit; we decided against a server of our own.

(memory:sync, 2026-03-02)

## Facts

Tidelog supports iOS 16 and up.

(memory:min, 2026-03-01)

Tidelog costs 14.99 a year.

- No trial.
- No `family` sharing.

(memory:price, 2026-03-03)

## Preferences

For Tidelog, I prefer dark screenshots.

(memory:look, 2026-03-04)"""
OWNER = "Tidelog got its name from Bex."


def write(vault: Vault, memories: Mapping[str, str] = TIDELOG, *fields: str) -> None:
    for day, (name, said) in enumerate(memories.items(), 1):
        head = "\n".join((f"created: 2026-03-{day:02}", *fields))
        vault.write(f"memories/{name}.md", f"---\n{head}\n---\n{said}\n")


def numbered(subject: str, *texts: str) -> dict[str, str]:
    return {f"{subject}-{number}": text for number, text in enumerate(texts)}


def proposals(co: Co) -> dict[str, list[str]]:
    """The refs by title."""
    return {one["title"]: one["refs"] for one in findings(co)}


def findings(co: Co) -> list[dict[str, Any]]:
    ran = co("note", "review", "--only", "combine", "--json")
    assert ran.code == 0, ran.err
    return ran.json["findings"]


@pytest.fixture
def app(vault: Vault) -> Vault:
    """Four memories about one app, whose name its own memories write in the middle of a sentence, too."""
    write(vault)
    vault.write("memories/bex.md", "Bex asked about Tidelog.\n")
    return vault


def test_memories_on_one_subject_make_an_article_with_their_texts_by_kind_and_their_sources(co: Co, app: Vault) -> None:
    before = {path: app.read(path) for path in app.notes()}

    [found] = findings(co)

    assert found["title"] == "About Tidelog"
    assert found["refs"] == ["memory:min", "memory:sync", "memory:price", "memory:look"]
    assert found["proposed"] == ARTICLE
    assert found["actions"] == ["accept", "keep"]
    assert {path: app.read(path) for path in app.notes()} == before
    listed = co("note", "review", "--only", "combine", "--list").out
    assert "4 memories are about Tidelog" in listed
    assert "CloudKit" not in listed


@pytest.mark.parametrize(
    "memories",
    [
        pytest.param(dict(itertools.islice(TIDELOG.items(), 3)), id="three are too few"),
        pytest.param(
            numbered("t", *(f"Tidelog has part {number}." for number in range(13)), OWNER), id="a whole project"
        ),
        pytest.param(
            numbered("m", *(f"Ask Mara about {thing}." for thing in ("tea", "ropes", "oars", "sails", "knots"))),
            id="only mentioned",
        ),
        pytest.param(
            numbered("m", *(f"{name} walk at {hour}." for name in ("Otis and Pickle",) for hour in range(5))),
            id="about two at once",
        ),
        pytest.param(
            numbered("d", *(f"Der Hund frisst {was} und schläft." for was in ("Reis", "Brot", "Fleisch", "Fisch"))),
            id="a language in which every noun has a capital",
        ),
        pytest.param(numbered("w", *(f"The report for week {n} is late." for n in range(5))), id="no name"),
    ],
)
def test_what_is_no_single_subject_is_not_proposed(co: Co, vault: Vault, memories: dict[str, str]) -> None:
    write(vault, memories)

    assert proposals(co) == {}


def test_a_tag_is_a_subject_if_most_of_its_memories_say_it(co: Co, vault: Vault) -> None:
    named = ("The cottage has a stove.", "Leave the cottage key with Mrs Urwin.", "Logs come from the farm.")
    write(vault, numbered("c", *named, "Bins at the cottage: Friday."), "tags: [cottage]")
    write(vault, numbered("o", "Tea is green.", "The bus is late.", "Bo is tall.", "Ropes wear."), "tags: [ops]")
    write(vault, numbered("h", *(f"Two harbours need {n} cables." for n in range(4))), "tags: [harbours]")

    assert list(proposals(co)) == ["About cottage"]


def test_two_projects_are_never_mixed(co: Co, vault: Vault) -> None:
    for project in ("heron", "otter"):
        gateway = (f"The gateway of {project} listens on 80.", "The gateway needs a restart.", "Staging is slow.")
        write(vault, numbered(project, *gateway, f"Pay {project} in May."), f"tags: [{project}]")
    write(vault, {"both": "The heron gateway calls that of otter."})
    vault.write("entities/gateway.md", "---\ntitle: Gateway\n---\nIt is in front.\n")
    vault.write("entities/ana.md", "---\ntitle: Ana Holm\naliases: [the boss]\n---\nLeads.\n")
    vault.write("entities/bo.md", "---\ntitle: Bo Lund\naliases: [the boss]\n---\nLeads.\n")
    write(
        vault, numbered("boss", "The boss is late.", "The boss likes tea.", "The boss is in room 4.", "The boss rows.")
    )

    found = proposals(co)

    assert sorted(found) == ["About heron", "About otter"]
    assert all(ref.startswith(f"memory:{title[6:]}-") for title, refs in found.items() for ref in refs)


def test_what_a_person_has_four_memories_about_is_proposed_under_the_title_of_the_entity(co: Co, vault: Vault) -> None:
    vault.write("entities/mara.md", "---\ntitle: Mara Lind\naliases: [the skipper]\n---\nLeads the bridge team.\n")
    said = ("Mara wants reviews before noon.", "The skipper drinks tea.", "Mara's birthday is 4 May.", "Mara rows.")
    write(vault, numbered("m", *said))
    vault.write("memories/titled.md", "---\ntitle: Mara Lind\ncreated: 2026-04-01\n---\nIs allergic to nuts.\n")

    [found] = findings(co)

    assert (found["title"], len(found["refs"])) == ("About Mara Lind", 5)
    assert "### Mara Lind\n\nIs allergic to nuts.\n\n(memory:titled, 2026-04-01)" in found["proposed"]


@pytest.mark.parametrize(
    "field",
    [
        "superseded_by: memory:bex",
        "valid_until: 2999-01-01",
        "valid_until: 2025-01-01",
        "loading: always",
        "provenance: web",
        "kind: article",
    ],
)
def test_a_memory_that_would_lose_something_is_left_out(co: Co, app: Vault, field: str) -> None:
    app.write("memories/look.md", f"---\n{field}\n---\n{TIDELOG['look']}\n")

    assert proposals(co) == {}


def test_memories_of_a_linked_folder_are_left_out(co: Co, app: Vault, tmp_path: Path) -> None:
    app.delete("memories/look.md")
    (tmp_path / "theirs").mkdir()
    (tmp_path / "theirs" / "look.md").write_text(f"---\nkind: memory\n---\n{TIDELOG['look']}\n")
    assert co("add", str(tmp_path / "theirs")).code == 0

    assert proposals(co) == {}


def test_a_secret_is_not_copied(co: Co, app: Vault) -> None:
    app.write("memories/look.md", "Tidelog uses ghp_aB3dE5fG7hI9jK1lM3nO5pQ7rS9tU1vW3xY5 at night.\n")

    assert proposals(co) == {}


@pytest.mark.medium
def test_a_terminal_saves_the_article_and_forgetting_it_brings_the_memories_back(
    co: Co, app: Vault, kb: KnowledgeBase
) -> None:
    before = {path: app.read(path) for path in app.notes()}
    with terminal(co.folder, "note", "review", "--only", "combine") as child:
        child.expect_exact("## Decisions")
        child.expect_exact("[a] accept  [k] dismiss  [n] next")
        child.sendline("a")
        child.expect_exact("created article:about-tidelog")
        child.expect(pexpect.EOF)

    kb.sync()
    article = kb.note("article:about-tidelog")
    assert article.body.strip() == ARTICLE
    assert article.supersedes == ("memory:min", "memory:sync", "memory:price", "memory:look")
    assert {path: app.read(path) for path in before} == before
    assert "article:about-tidelog" in co("search", "which iOS does Tidelog support").out
    assert proposals(co) == {}

    assert co("forget", "article:about-tidelog").code == 0
    assert list(proposals(co)) == ["About Tidelog"]


def test_a_subject_that_has_its_article_or_was_dismissed_does_not_come_back(
    co: Co, app: Vault, client: TestClient
) -> None:
    [found] = reviewed(client)
    ask(client, "POST", "/review/decisions", key=found["key"], action="keep")
    app.write("memories/more.md", "Tidelog is Danish.\n")
    assert proposals(co) == {}
    ask(client, "DELETE", f"/review/decisions/{found['key']}")
    assert list(proposals(co)) == ["About Tidelog"]

    app.write("articles/about-tidelog.md", "# About Tidelog\n\nAn app.\n")

    assert proposals(co) == {}


@pytest.fixture
def client(app: Vault, kb: KnowledgeBase) -> TestClient:
    return signed_in(Site(kb, Access(), []))


def reviewed(client: TestClient) -> Sequence[dict[str, Any]]:
    ask(client, "POST", "/review")
    wait_for(lambda: ask(client, "GET", "/review")["job"]["state"] != "running")
    return ask(client, "GET", "/review", kind="combine")["findings"]


def test_over_http_it_is_saved_with_another_text_and_undone(client: TestClient, app: Vault) -> None:
    before = {path: app.read(path) for path in app.notes()}
    [found] = reviewed(client)

    done = ask(client, "POST", "/review/decisions", key=found["key"], action="accept", text="Tidelog is an app.")

    assert "Tidelog is an app." in app.read("articles/about-tidelog.md")
    assert "memory:min" in app.read("articles/about-tidelog.md")
    assert not ask(client, "GET", "/review")["changed"]
    assert ask(client, "GET", "/review", kind="combine")["findings"] == []
    ask(client, "POST", "/review/rewrite", 400, key=found["key"])
    ask(client, "DELETE", f"/review/decisions/{done['key']}")
    assert {path: app.read(path) for path in app.notes()} == before
    assert ask(client, "GET", "/review", kind="combine")["findings"] == [found]
    assert reviewed(client) == [found]


def test_without_a_model_the_answer_says_how_to_get_one(client: TestClient) -> None:
    [found] = reviewed(client)

    refused = ask(client, "POST", "/review/rewrite", 400, key=found["key"])

    assert "no model is configured" in refused["error"]["message"]


def test_nothing_is_saved_if_a_memory_has_changed_since(client: TestClient, app: Vault) -> None:
    [found] = reviewed(client)
    app.write("memories/look.md", "Tidelog is green.\n")

    refused = ask(client, "POST", "/review/decisions", 409, key=found["key"], action="accept")

    assert refused["error"]["kind"] == "note_conflict"
    assert "articles/about-tidelog.md" not in app.notes()


@pytest.fixture
def model(monkeypatch: pytest.MonkeyPatch) -> Iterator[ChatServer]:
    with ChatServer([text("Tidelog is an app for iOS 16 (memory:min, 2026-03-01).")]) as server:
        monkeypatch.setenv("OLLAMA_BASE_URL", server.url)
        monkeypatch.setenv("CO_MODEL", "ollama:qwen3")
        yield server


@pytest.mark.slow
@pytest.mark.medium
def test_a_model_rewrites_the_draft_only_when_asked_and_shows_what_differs_first(
    co: Co, app: Vault, model: ChatServer
) -> None:
    before = app.notes()
    with terminal(co.folder, "note", "review", "--only", "combine") as child:
        child.expect_exact("[w] rewrite")
        assert model.requests == []
        child.sendline("w")
        child.expect_exact("-Tidelog supports iOS 16 and up.")
        child.expect_exact("+Tidelog is an app for iOS 16 (memory:min, 2026-03-01).")
        child.expect_exact("[w] rewrite")
        assert app.notes() == before
        child.sendline("a")
        child.expect_exact("created article:about-tidelog")
        child.expect(pexpect.EOF)

    assert "Tidelog is an app for iOS 16" in app.read("articles/about-tidelog.md")
    assert "memory:look" in app.read("articles/about-tidelog.md")


def test_over_http_a_model_rewrites_the_draft_and_saves_nothing(
    model: ChatServer, vault: Vault, data_dir: Path
) -> None:
    write(vault, {**TIDELOG, "mail": "Bex writes about Tidelog."})
    with KnowledgeBase.open(vault.root, data_dir) as kb:
        client = signed_in(Site(kb, Access(), []))
        [found] = reviewed(client)
        assert found["actions"] == ["accept", "rewrite", "keep"]
        before = vault.notes()

        answer = ask(client, "POST", "/review/rewrite", key=found["key"])

        assert answer == {"text": "Tidelog is an app for iOS 16 (memory:min, 2026-03-01)."}
        assert vault.notes() == before
        [asked] = model.requests
        assert "<note" in str(asked["messages"][-1]["content"])


@pytest.mark.slow
@pytest.mark.medium
def test_a_model_that_fails_leaves_the_draft_as_it_is(co: Co, app: Vault, model: ChatServer) -> None:
    model.turns[:] = [fails(500)]
    with terminal(co.folder, "note", "review", "--only", "combine") as child:
        child.expect_exact("[w] rewrite")
        child.sendline("w")
        child.expect_exact("500")
        child.expect_exact("[w] rewrite")
        child.sendline("a")
        child.expect(pexpect.EOF)

    assert ARTICLE in app.read("articles/about-tidelog.md")


@pytest.mark.slow
def test_a_page_shows_the_article_and_what_a_model_changed_saves_it_and_undoes_that(
    model: ChatServer, vault: Vault, data_dir: Path, open_page: Callable[[str], Any]
) -> None:
    write(vault, {**TIDELOG, "mail": "Bex writes about Tidelog."})
    before = vault.notes()
    with KnowledgeBase.open(vault.root, data_dir) as kb, serving(kb) as server:
        page = open_page(server.address)
        page.click("nav a:has-text('Review')")
        page.click(".kind button:has-text('To combine')")
        page.click(".finding:has-text('About Tidelog') .fold")
        page.wait_for_selector(".detail:has-text('supersede') .article:has-text('we decided')")
        assert page.inner_text(".detail .article") == ARTICLE
        inspect(page, "combine")
        model.play(text("Late."), text("Tidelog is an app for iOS 16 (memory:min, 2026-03-01)."))
        with page.expect_response("**/review/rewrite"), held(page, "**/review/rewrite"):
            page.keyboard.press("w")
            page.keyboard.press("e")
            page.fill(".detail textarea", "Typed.")
        page.wait_for_selector("nav a:has-text('Review')")
        assert page.input_value(".detail textarea") == "Typed."
        page.keyboard.press("Escape")
        page.keyboard.press("Escape")
        page.wait_for_selector(".detail textarea", state="detached")
        page.keyboard.press("w")
        page.wait_for_selector(".detail mark:has-text('app')")
        assert page.inner_text(".detail .article >> nth=0") == ARTICLE
        assert page.inner_text(".detail .article >> nth=1").startswith("Tidelog is an app for iOS 16")
        inspect(page, "combine-rewritten")
        assert vault.notes() == before
        page.keyboard.press("e")
        page.fill(".detail textarea", "Tidelog is an app of ours.")
        page.keyboard.press("Control+Enter")
        page.wait_for_selector("co-toast:has-text('Saved: About Tidelog')")
        assert "Tidelog is an app of ours." in vault.read("articles/about-tidelog.md")
        page.keyboard.press("u")
        page.wait_for_selector(".detail .article")
        wait_for(lambda: vault.notes() == before)
        page.keyboard.press("a")
        page.wait_for_selector("co-toast:has-text('Saved: About Tidelog')")
        until(page, "!document.querySelector('.finding')")
        page.close()
    assert "memory:look" in vault.read("articles/about-tidelog.md")
