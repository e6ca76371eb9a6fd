"""The map: notes by meaning, placed in the background, kept, and drawn."""

from __future__ import annotations

import math
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from starlette.testclient import TestClient

from benchmarks.layout import kept_neighbours
from co_cli.entrance.knowledge_base import KnowledgeBase
from co_cli.server.layout import arrange, main_components
from co_cli.server.map_api import mean_vectors
from tests.server.browser import PATIENCE, inspect, until
from tests.server.conftest import Server

IN_OTHER_LANGUAGES = ("memory:hoshino-lead-time-ja", "memory:saint-orvan-cloche")
"""Notes of the sample vault without a vector of the English model, and so without a place."""


def finished(api: TestClient) -> dict[str, Any]:
    """The map when nothing is computed any more."""
    end = time.monotonic() + PATIENCE
    while (answer := api.get("/api/v1/map").json())["working"]:
        assert time.monotonic() < end
        time.sleep(0.02)
    return answer


@pytest.mark.slow
@pytest.mark.medium
def test_the_layout_keeps_neighbours_together_and_changes_little_when_a_note_is_added(sample: KnowledgeBase) -> None:
    notes = sample.index.notes.docs()
    vectors = np.array(list(mean_vectors(sample, notes).values()))

    places = arrange(vectors)
    again = arrange(vectors, np.where(np.arange(len(vectors))[:, None] < 3, np.nan, places))

    by_components = kept_neighbours(vectors, main_components(vectors))
    assert len(notes) - len(IN_OTHER_LANGUAGES) == len(vectors)
    assert kept_neighbours(vectors, places) > 1.4 * by_components
    assert kept_neighbours(vectors, again) > 1.4 * by_components
    assert np.abs(again - places)[3:].mean() < 0.1 * np.abs(places).mean()


@pytest.mark.medium
@pytest.mark.parametrize("count", [0, 2, 20])
def test_every_number_of_notes_has_a_layout_even_if_they_say_the_same(count: int) -> None:
    places = arrange(np.full((count, 256), 1 / 16))

    assert places.shape == (count, 2)
    assert np.isfinite(places).all()


@pytest.mark.slow
@pytest.mark.medium
def test_places_are_computed_once_and_again_when_notes_change(sample: KnowledgeBase, api: TestClient) -> None:
    first = api.get("/api/v1/map").json()
    assert first["working"]
    assert all(note["place"] is None for note in first["notes"])

    placed = finished(api)["notes"]
    assert {note["ref"] for note in placed} == {note["ref"] for note in first["notes"]}
    assert {note["ref"] for note in placed if note["place"] is None} == {*IN_OTHER_LANGUAGES}
    assert all(len(note["place"]) == 2 for note in placed if note["place"])
    assert not api.get("/api/v1/map").json()["working"]
    kept = Path(sample.settings.data_dir, "map.json").read_text("utf-8")
    assert not any(note["ref"].partition(":")[2] in kept for note in placed)  # a forgotten note leaves no name there

    placed_at = Path(sample.settings.data_dir, "map.json")
    placed_at.rename(placed_at.with_suffix(".away"))
    assert not api.get("/api/v1/map").json()["working"], "it is the same answer as long as no note changes"
    placed_at.with_suffix(".away").rename(placed_at)

    saved = sample.remember("The lighthouse keeper has a spare key for the boat shed.")
    between = api.get("/api/v1/map").json()
    assert between["working"]
    assert {note["ref"] for note in between["notes"] if note["place"] is None} == {*IN_OTHER_LANGUAGES, saved.ref}
    assert {note["ref"] for note in finished(api)["notes"] if note["place"] is None} == {*IN_OTHER_LANGUAGES}


ARRANGED = "!document.querySelector('.map .state')?.innerText && document.querySelector('.map li a') && 1"
PAINTED = """() => {
    const area = document.querySelector("canvas"), ink = area.getContext("2d"), box = area.getBoundingClientRect();
    const paint = getComputedStyle(document.querySelector(".legend i")).backgroundColor.match(/\\d+/g).map(Number);
    const data = ink.getImageData(0, 0, area.width, area.height).data;
    for (let at = 0; at < data.length; at += 4)
        if (data[at + 3] > 200 && paint.every((value, place) => Math.abs(value - data[at + place]) < 9))
            return [box.left + (at / 4) % area.width, box.top + Math.floor(at / 4 / area.width)];
}"""
"""Where the first point is drawn that has the first colour and is not dimmed."""


@pytest.mark.slow
def test_notes_are_found_on_the_map_and_in_its_list(page: Any, server: Server) -> None:
    page.goto(f"{server.url}/map?colour=tag")
    until(page, ARRANGED)
    assert page.inner_text(".map section p") == "116 notes"
    assert page.locator(".legend button").all_inner_texts()[0] == "workshop"
    inspect(page, "map")

    page.keyboard.press("c")
    assert page.locator(".legend button").all_inner_texts() == ["memory", "article"]
    until(page, "location.search === '?colour=source'")  # playwright hears of it a moment later

    page.keyboard.press("f")
    page.keyboard.type("soup thurs")
    assert page.inner_text(".map li a") == "Soup on Thursdays"
    until(page, "document.querySelectorAll('.map li a').length > 1")  # what a search finds follows
    assert page.inner_text(".map li a") == "Soup on Thursdays"

    page.click(".map li a")
    until(page, "location.pathname == '/note/memory:thursday-soup'")
    page.go_back()
    until(page, "document.querySelector('.map input')?.value == 'soup thurs'")


@pytest.mark.slow
def test_the_map_shows_how_far_it_is_while_notes_are_arranged(page: Any, server: Server) -> None:
    waiting: list[Any] = []

    def ask_until_some_is_done(route: Any) -> None:
        if waiting:  # the next one waits until this one was looked at
            waiting.append(route)
            return
        waiting.append(None)
        answer = route.fetch()
        while (answer.json()["progress"] or {"done": 0})["done"] == 0 and answer.json()["working"]:
            answer = route.fetch()
        route.fulfill(response=answer)

    page.route("**/api/v1/map", ask_until_some_is_done)
    with page.expect_response("**/api/v1/map") as asked:
        page.goto(f"{server.url}/map")
    page.wait_for_selector(".map .state:has-text('Arranging your notes') progress")
    assert page.evaluate("document.querySelector('.map progress').value") == asked.value.json()["progress"]["done"] > 0
    for route in filter(None, waiting):
        route.continue_()
    page.unroute("**/api/v1/map")
    until(page, "!document.querySelector('.map progress') && document.querySelectorAll('.legend button').length > 3")


@pytest.mark.slow
def test_groups_have_names_and_their_notes_can_be_hidden(page: Any, server: Server) -> None:
    page.goto(f"{server.url}/map")
    until(page, ARRANGED)  # until then the legend has tags
    names = page.locator(".legend button").all_inner_texts()
    assert len({*names}) == len(names) == 8
    assert "firmware" in " ".join(names)

    for name in names[1:]:
        page.click(f".legend button:text-is('{name}')")
    shown = page.inner_text(".map section p")
    assert 5 < int(shown.partition(" of ")[0]) < 40
    assert page.get_attribute(f".legend button:text-is('{names[-1]}')", "aria-pressed") == "false"

    with page.expect_response("**/api/v1/notes/*"):
        page.hover(".map li a")  # its links are fetched, and drawn as lines
    until(page, "Number(document.querySelector('canvas').dataset.took) >= 0")
    page.mouse.click(*page.evaluate(PAINTED))
    until(page, "location.pathname.startsWith('/note/')")


@pytest.mark.slow
def test_groups_keep_their_colours_when_a_note_is_added(sample: KnowledgeBase, api: TestClient) -> None:
    before = finished(api)["groups"]
    sample.remember("The gull on the harbour wall is called Admiral.")
    after = finished(api)["groups"]

    def nearest(group: dict[str, Any]) -> int:
        return min(before, key=lambda one: math.dist(one["place"], group["place"]))["colour"]

    assert len({group["colour"] for group in after}) == len(after) == len(before)
    assert sum(nearest(group) == group["colour"] for group in after) >= len(after) - 1
