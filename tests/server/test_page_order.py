"""What the page shows when answers are late, notes change between two requests, or something is pressed twice."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from co_cli.entrance.knowledge_base import KnowledgeBase
from co_cli.searching import freshness
from tests.folder import Vault
from tests.server.browser import held, until, wait_for
from tests.server.conftest import Server, serving
from tests.server.test_search_api import logged

REF, FILE = "memory:odalys-has-the-last-word", "memories/odalys-has-the-last-word.md"


@pytest.fixture
def page(page: Any) -> Any:
    """Chromium may let requests pass while `route` begins or ends, so one route is there from the first to the last."""
    page.route("**/not-asked-for", lambda route: route.abort())
    page.reload()
    page.wait_for_selector("#top:not([inert])")
    return page


def announce_changes(server: Server) -> None:
    """Say to all pages that any note may have changed."""
    wait_for(lambda: server.site.events.listening)
    server.site.events.publish("changed", {"refs": [], "many": True})


@pytest.mark.slow
def test_calls_while_something_runs_in_turn_share_one_more_run_and_only_its_error(page: Any) -> None:
    log, ended = page.evaluate("""async () => {
        const { inTurn } = await import(document.querySelector("link[href$='pieces.js']").href);
        const log = [], ends = [];
        const run = inTurn(async () => {
            log.push("begins");
            await new Promise((...settle) => ends.push(settle)).finally(() => log.push("ends"));
        });
        const twice = async (first, second) => {
            const calls = [run(), run(), run()];
            ends.pop()[first](new Error("first"));
            while (!ends.length) await new Promise((go) => setTimeout(go));
            ends.pop()[second](new Error("second"));
            return (await Promise.allSettled(calls)).map((one) => one.reason?.message ?? one.status);
        };
        return [log, [await twice(1, 0), await twice(0, 1)]];
    }""")

    assert log == ["begins", "ends"] * 4
    assert ended == [["fulfilled"] * 3, ["second"] * 3]


def test_a_note_that_is_saved_before_the_page_listens_is_shown(
    vault: Vault, empty: Server, open_page: Callable[[str], Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(freshness, "SAFETY", 3600.0)
    page = open_page(empty.address)
    page.wait_for_selector("text=There are no notes here yet")
    with held(page, "**/api/v1/events"):
        page.reload()
        page.wait_for_selector("text=There are no notes here yet")
        vault.write("memories/elms.md", "Elms live long.")
        wait_for(empty.kb.notes)
    assert page.wait_for_selector("note-card:has-text('Elms')")


@pytest.mark.medium
def test_the_stream_of_a_page_that_does_not_read_ends_and_no_change_is_left_out_of_it(empty: Server) -> None:
    with empty.client() as client, client.stream("GET", "/api/v1/events") as stream:
        lines = stream.iter_lines()
        assert next(lines).startswith(": connected")
        for number in range(300):
            empty.site.events.publish("changed", {"number": number, "text": "x" * 200_000})  # more than sockets hold
        told: list[int] = []
        for line in lines:
            assert line != ": quiet", "the stream goes on, and changes are missing"
            told += [json.loads(line.removeprefix("data: "))["number"]] if line.startswith("data: ") else []

    assert told == list(range(len(told)))
    assert len(told) < 300


@pytest.mark.slow
def test_a_filter_shows_its_own_entries_although_an_earlier_answer_is_late(page: Any, server: Server) -> None:
    for number in range(30):
        server.kb.search(f"bell {number}", track=True, read=False, backend="fts5")
    server.kb.remember("Oaks are planted in autumn.")
    page.goto(f"{server.url}/activity?view=log")
    page.wait_for_selector(".feed .asked")
    late = "**/api/v1/activity?kind=asked*"
    with page.expect_response(late), held(page, late) as asked:
        page.select_option("select[aria-label='Kind']", "asked")
        wait_for(lambda: page.evaluate("true") and asked)
        page.select_option("select[aria-label='Kind']", "saved")
    assert until(page, "!document.querySelector('.feed .asked') && document.querySelector('.feed .saved') && 1")


@pytest.mark.slow
def test_older_entries_stay_when_something_changes(page: Any, server: Server) -> None:
    for number in range(30):
        server.kb.search(f"bell {number}", track=True, read=False, backend="fts5")
    page.goto(f"{server.url}/activity?view=log")
    page.click("text=Show older")
    page.wait_for_selector("text=bell 0")

    with page.expect_response("**/api/v1/activity?*"):
        announce_changes(server)
    server.kb.search("quartz", track=True, read=False, backend="fts5")
    announce_changes(server)
    page.wait_for_selector(".entry:has-text('quartz')")
    assert page.query_selector("text=bell 0")


@pytest.mark.slow
def test_changes_do_not_ask_for_a_prompt_that_is_being_typed(page: Any, server: Server) -> None:
    page.goto(f"{server.url}/context")
    page.wait_for_selector(".given-notes >> text=loading: always")
    page.fill("textarea", "Who signs off")

    with page.expect_request("**/api/v1/given") as asked:
        announce_changes(server)

    assert asked.value.post_data_json["prompt"] == ""


@pytest.mark.slow
def test_a_page_that_could_not_be_opened_opens_when_the_server_is_back(page: Any, server: Server) -> None:
    page.route("**/api/v1/given", lambda route: route.fulfill(status=503, json={}))
    page.goto(f"{server.url}/context")
    page.wait_for_selector("[role=alert]:has-text('the server answered 503')")
    page.unroute("**/api/v1/given")
    announce_changes(server)
    assert page.wait_for_selector(".given-notes >> text=loading: always")
    page.problems.clear()  # Chromium logs the 503


@pytest.mark.slow
def test_a_page_opens_if_notes_change_while_its_first_request_fails(page: Any, server: Server) -> None:
    waiting: list[Any] = []
    page.route("**/api/v1/given", lambda route: waiting.append(route), times=1)
    page.click("nav a:has-text('Context')")
    wait_for(lambda: page.evaluate("true") and waiting)
    announce_changes(server)
    server.site.events.publish("notice", {"text": "The page was told."})
    page.wait_for_selector("#toasts >> text=The page was told.")
    waiting[0].fulfill(status=503, json={})
    assert page.wait_for_selector(".given-notes >> text=loading: always")
    page.problems.clear()  # Chromium logs the 503


@pytest.mark.slow
def test_the_map_can_be_scrolled_before_notes_have_places(page: Any, server: Server) -> None:
    placed: list[bool] = []

    def without_places(route: Any) -> None:
        answer = route.fetch()
        notes = answer.json()["notes"]
        unplaced = {**answer.json(), "notes": [{**note, "place": None} for note in notes], "working": True}
        route.fulfill(response=answer, json=answer.json() if placed else unplaced)

    page.route("**/api/v1/map", without_places)
    page.goto(f"{server.url}/map")
    page.wait_for_selector("text=Arranging your notes")
    page.hover("canvas", position={"x": 50, "y": 60})
    page.mouse.wheel(0, -300)
    page.mouse.down()
    page.mouse.move(300, 300)
    page.mouse.up()
    placed.append(True)
    until(page, "!document.querySelector('.map .state').innerText")

    painted = (
        "() => document.querySelector('canvas').getContext('2d').getImageData(0, 0, 2000, 2000).data.some(Boolean)"
    )
    assert page.evaluate(painted)


def test_enter_opens_the_best_hit_for_what_is_typed(page: Any) -> None:
    page.wait_for_selector("note-card")
    with held(page, "**/api/v1/search?*"):
        page.keyboard.type("who decides what ships")
        page.keyboard.press("Enter")
    assert page.wait_for_selector("h1:has-text('Odalys has the last word')")


@pytest.mark.slow
def test_notes_that_cannot_be_listed_are_a_problem_also_if_some_changed_meanwhile(page: Any, server: Server) -> None:
    page.wait_for_selector("note-card")
    wait_for(lambda: server.site.events.listening)
    page.click("nav a:has-text('Context')")
    page.wait_for_selector(".given-notes >> text=loading: always")
    waiting: list[Any] = []
    page.route("**/api/v1/browse?limit=*", lambda route: waiting.append(route))
    page.click("nav a:has-text('Home')")
    wait_for(lambda: page.evaluate("true") and waiting)
    announce_changes(server)
    server.site.events.publish("notice", {"text": "The page was told."})
    page.wait_for_selector("#toasts >> text=The page was told.")
    waiting.pop().fulfill(status=503, json={})
    wait_for(lambda: page.evaluate("true") and waiting)
    waiting.pop().fulfill(status=503, json={})
    assert page.wait_for_selector("[role=alert]:has-text('the server answered 503')")
    page.unroute("**/api/v1/browse?limit=*")
    page.problems.clear()  # Chromium logs the 503


@pytest.mark.slow
def test_an_answer_stays_if_it_cannot_be_updated(page: Any, server: Server) -> None:
    page.goto(f"{server.url}/?q=who+decides+what+ships")
    page.wait_for_selector(".verdict .badge.good")
    page.hover(".hit >> nth=1")
    page.wait_for_selector(".hit:nth-child(2)[aria-current]")
    page.route("**/api/v1/search?*", lambda route: route.fulfill(status=503, json={}))
    announce_changes(server)

    page.wait_for_selector("#toasts >> text=the server answered 503")
    assert page.query_selector(".hit >> nth=1").get_attribute("aria-current") == "true"
    page.unroute("**/api/v1/search?*")
    server.kb.remember("Odalys decides what ships, and who decides later is Ida.", "Ida")
    page.wait_for_selector(".hit:has-text('Ida')")
    assert page.locator(".hit[aria-current]").count() == 1
    page.problems.clear()  # Chromium logs the 503


@pytest.mark.slow
def test_an_answer_is_updated_by_the_same_search_and_logged_once(page: Any, server: Server) -> None:
    page.goto(f"{server.url}/?q=who+decides+what+ships")
    page.wait_for_selector(".verdict .badge.good")
    with page.expect_response(lambda answer: "track=false" in answer.url) as asked:
        announce_changes(server)

    assert "typing" not in asked.value.url, "a model reads the hits again"
    assert logged(server.kb) == [("who decides what ships", "web")]


@pytest.mark.slow
def test_coming_back_to_an_answer_shows_what_changed_meanwhile(page: Any, server: Server) -> None:
    page.goto(f"{server.url}/?q=who+decides+what+ships")
    page.wait_for_selector(".verdict .badge.good")
    page.click(".hit a >> nth=0")
    page.wait_for_selector(".note .prose p")
    Path(server.kb.root, FILE).write_text("Nobody decides what ships.\n")
    page.wait_for_selector(".note .prose :text('Nobody decides')")
    page.go_back()
    assert page.wait_for_selector(".hit:has-text('Nobody decides')")


@pytest.mark.slow
def test_a_note_that_is_forgotten_while_its_page_loads_can_be_restored(page: Any, server: Server) -> None:
    def forget_first(route: Any) -> None:
        server.kb.forget(REF)
        route.continue_()

    page.route("**/api/v1/history/**", forget_first, times=1)
    page.goto(f"{server.url}/note/{REF}")
    page.click("text=Restore it")
    assert page.wait_for_selector(".prose p")
    page.problems.clear()  # Chromium logs the 404


@pytest.mark.slow
def test_a_note_can_be_edited_before_its_history_is_read(page: Any, server: Server) -> None:
    with held(page, "**/api/v1/history/**"):
        page.goto(f"{server.url}/note/{REF}")
        page.click("button:text-is('Edit')")
        page.wait_for_selector("code-editor .cm-content:focus")
    page.click("button:has-text('Done')")
    page.wait_for_selector("h2:has-text('History')")
    assert page.url == f"{server.url}/note/{REF}"


@pytest.mark.slow
def test_leaving_the_page_does_not_keep_a_note_from_being_saved_or_forgotten(page: Any, server: Server) -> None:
    page.goto(f"{server.url}/note/{REF}?edit=1")
    page.fill("code-editor .cm-content", "Saved on the way out.")
    page.click("nav a:has-text('Home')")
    until(page, "!Object.keys(localStorage).some((key) => key.startsWith('co-draft'))")
    assert "Saved on the way out." in Path(server.kb.root, FILE).read_text()

    page.goto(f"{server.url}/note/{REF}")
    page.wait_for_selector("text=Saved on the way out.")
    with held(page, f"**/api/v1/notes/{REF}"):
        page.keyboard.press("f")
        page.keyboard.press("f")
        page.click("nav a:has-text('Home')")
        page.wait_for_selector(".search note-card")
    page.click("#toasts co-toast:has-text('Forgotten') >> text=Undo")
    page.wait_for_selector(".note .prose p")


@pytest.mark.slow
def test_a_change_elsewhere_appears_in_the_editor_if_nothing_is_unsaved(page: Any, server: Server) -> None:
    page.goto(f"{server.url}/note/{REF}?edit=1")
    page.wait_for_selector("code-editor .cm-content:focus")
    file = Path(server.kb.root, FILE)
    file.write_text(file.read_text() + "\nTheirs came first.\n")
    page.wait_for_selector(".edit .prose :text('Theirs came first.')")
    page.keyboard.type("Mine. ")
    page.wait_for_selector(".edit [role=status]:has-text('Saved')")

    assert "Mine." in file.read_text()
    assert "Theirs came first." in file.read_text()


@pytest.mark.slow
def test_a_note_that_changes_while_it_is_read_keeps_its_highlight(page: Any, server: Server) -> None:
    page.goto(f"{server.url}/note/article:people/who-does-what#L14")
    page.wait_for_selector("text=History")
    page.click(".outline button >> nth=-1")
    lit = page.get_attribute(".prose .lit", "data-line")

    with page.expect_response("**/api/v1/history/**"):
        announce_changes(server)

    assert page.get_attribute(".prose .lit", "data-line") == lit != "14"


def test_tasks_that_are_ticked_before_the_first_one_is_saved_are_all_ticked(page: Any, server: Server) -> None:
    file = Path(server.kb.root, "articles/ship.md")
    file.write_text("- [ ] Wind the bell\n- [ ] Update the table\n- [ ] Sleep\n")
    server.kb.sync()
    page.goto(f"{server.url}/note/article:ship")
    with held(page, "**/api/v1/tasks/**"):
        page.click("input[aria-label='Wind the bell']")
        announce_changes(server)
        page.click("input[aria-label='Sleep']")
    wait_for(lambda: file.read_text() == "- [x] Wind the bell\n- [ ] Update the table\n- [x] Sleep\n", file.read_text)
    page.wait_for_selector("h2:has-text('History') ~ ul li:has-text('updated')")
    assert [page.is_checked(f".prose li >> nth={place} >> input") for place in range(3)] == [True, False, True]


@pytest.mark.slow
@pytest.mark.parametrize(("path", "name", "done"), [("health", "doctor", "#checks"), ("review", "review", ".findings")])
def test_a_job_is_followed_to_its_end_although_a_request_fails(
    page: Any, server: Server, path: str, name: str, done: str
) -> None:
    answers: list[str] = []

    def answer(route: Any) -> None:
        if len(answers) == 1:
            route.fulfill(status=503, json={})
        elif answers:
            route.continue_()
        else:
            found = route.fetch()
            running = {**found.json()["job"], "state": "running"}
            route.fulfill(response=found, json={**found.json(), "job": running})
        answers.append(route.request.method)

    page.route(re.compile(f"/api/v1/{name}([?].*)?$"), answer)
    page.goto(f"{server.url}/{path}")

    wait_for(lambda: page.evaluate("true") and len(answers) > 2, lambda: f"asked {answers}")
    page.wait_for_selector(done)
    assert until(page, "!document.querySelector('progress')")
    page.problems.clear()  # Chromium logs the 503


@pytest.fixture
def trees(vault: Vault, kb: KnowledgeBase) -> KnowledgeBase:
    """Three notes, each with a broken link."""
    for name in ("ash", "elm", "oak"):
        vault.write(f"memories/{name}.md", f"The {name} stands. See [[no-{name}]].\n")
    kb.sync()
    return kb


@pytest.mark.slow
def test_keys_decide_about_the_finding_that_is_shown_while_the_list_loads_again(
    trees: KnowledgeBase, open_page: Callable[[str], Any]
) -> None:
    with serving(trees) as server:
        page = open_page(server.address)
        page.click("nav a:has-text('Review')")
        page.click(".kind button:has-text('Broken links')")
        page.wait_for_selector("[data-row='1'][aria-current]")
        with held(page, "**/api/v1/review?kind=*") as asked:
            announce_changes(server)
            wait_for(lambda: page.evaluate("true") and asked)
            for _ in range(2):
                with page.expect_response("**/api/v1/review/decisions"):
                    page.keyboard.press("d")
                page.keyboard.press("ArrowDown")
        assert until(page, "document.querySelectorAll('.finding').length === 1")
        page.close()  # it would miss the server


@pytest.mark.slow
def test_a_finding_stays_selected_when_others_are_decided_elsewhere(
    trees: KnowledgeBase, open_page: Callable[[str], Any]
) -> None:
    with serving(trees) as server, server.client() as client:
        page = open_page(server.address)
        page.click("nav a:has-text('Review')")
        page.click(".kind button:has-text('Broken links')")
        page.click(".finding >> nth=1 >> .fold")
        page.wait_for_selector("[data-row='2'][aria-current]")
        chosen = page.inner_text(".finding[aria-current] strong")
        first = client.get("/api/v1/review").json()["findings"][0]
        client.post("/api/v1/review/decisions", json={"key": first["key"], "action": "keep"})
        announce_changes(server)
        until(page, "document.querySelectorAll('.finding').length === 2")

        assert page.inner_text(".finding[aria-current] strong") == chosen
        page.close()  # it would miss the server
