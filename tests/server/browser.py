"""A real browser: Chromium without a window, driven by playwright."""

from __future__ import annotations

import os
import shutil
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

ARTIFACTS = Path(__file__).parents[2] / ".artifacts"
"""Screenshots of the last run."""
PATIENCE = 60.0
"""Seconds, for busy machines."""
PHONE = {"width": 390, "height": 844}
DESKTOP = {"width": 1440, "height": 900}


def chromium() -> str:
    """The path of Chromium; skips the test if there is none."""
    pytest.importorskip("playwright", reason="playwright is not installed: pip install --group dev")
    found = os.environ.get("CO_TEST_CHROMIUM") or shutil.which("chromium-headless-shell") or shutil.which("chromium")
    if not found:
        pytest.skip("Chromium is not installed: apt-get install chromium-headless-shell")
    return found


def wait_for(true: Callable[[], Any], what: Callable[[], object] = lambda: "") -> Any:
    end = time.monotonic() + PATIENCE
    while not (value := true()):
        assert time.monotonic() < end, what()
        time.sleep(0.02)  # a token has 60 requests a second
    return value


def until(page: Any, script: str) -> Any:
    """Wait until JavaScript is true. The page's policy forbids playwright's `wait_for_function`."""
    return wait_for(lambda: page.evaluate(script), lambda: f"never true: {script}\n{page.inner_text('body')}")


@contextmanager
def held(page: Any, pattern: str) -> Iterator[list[Any]]:
    """Requests to these addresses wait until the block ends. There must be one."""
    waiting: list[Any] = []
    page.route(pattern, lambda route: waiting.append(route))
    yield waiting
    wait_for(lambda: page.evaluate("true") and waiting, lambda: f"never asked: {pattern}")
    for one in waiting:
        one.continue_()
    page.unroute(pattern)


def visit(page: Any, path: str) -> None:
    """Go to another page as a link in the menu does, without loading the frame again."""
    page.evaluate(
        """(path) => {
        document.getElementById("main").replaceChildren();
        history.pushState(null, "", path);
        dispatchEvent(new PopStateEvent("popstate"));
    }""",
        path,
    )
    page.wait_for_selector("main h1", state="attached")


def axe(page: Any, *rules: str) -> list[str]:
    """What axe finds wrong with a page, by these rules or all: `rule: element`."""
    from axe_playwright_python.base import AXE_SCRIPT

    if not page.evaluate("'axe' in window"):
        page.evaluate(AXE_SCRIPT)
    only = {"type": "rule", "values": rules} if rules else ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "best-practice"]
    return page.evaluate(  # what fades in has no contrast yet
        """async (runOnly) => {
        const ending = document.getAnimations().filter((one) => one.effect.getComputedTiming().endTime !== Infinity);
        await Promise.allSettled(ending.map((one) => one.finished));
        return (await axe.run({ runOnly, resultTypes: ["violations"] })).violations.flatMap(
            (one) => one.nodes.map((node) => `${one.id}: ${node.html.slice(0, 160)}`));
        }""",
        only,
    )


def inspect(page: Any, name: str, prepare: Callable[[], object] = lambda: None) -> None:
    """Take screenshots of the page, large and as a phone, in light and dark, and expect that axe finds nothing in them.

    `prepare` is called after the window changed, for pages that draw by its size.
    """
    ARTIFACTS.mkdir(exist_ok=True)
    found: dict[str, list[str]] = {}
    for look, size in (("light", DESKTOP), ("dark", DESKTOP), ("dark", PHONE), ("light", PHONE)):
        page.emulate_media(color_scheme=look)
        page.set_viewport_size(size)
        prepare()
        kind = f"phone-{look}" if size is PHONE else look
        page.screenshot(path=ARTIFACTS / f"{name}-{kind}.png")
        found[kind] = axe(page, "color-contrast") if look == "dark" else axe(page)  # nothing else depends on colours
        wide = page.evaluate("document.documentElement.scrollWidth - innerWidth")
        found[kind] += [f"{wide} px wider than the window"] if wide > 0 else []
    page.emulate_media(color_scheme="light")
    page.set_viewport_size(DESKTOP)
    wrong = [f"{kind}: {one}" for kind, all_of_it in found.items() for one in all_of_it]
    assert not wrong, "\n".join(wrong)
