"""The page of `co web` in a browser: how soon it opens, answers a key and shows a changed file, and how large it is."""

from __future__ import annotations

import gzip
import shutil
import subprocess
import time
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from pathlib import Path
from statistics import median, quantiles
from typing import Any

from benchmarks.cold import CO
from benchmarks.measuring import BenchRow
from benchmarks.vaults import Bar, bench_vault, questions
from co_cli.ground.errors import KnowledgeError

PAGE = Path(__file__).parents[1] / "co_cli" / "server" / "page"
QUESTIONS, OPENINGS, CHANGES = 8, 9, 7
KEY_SECONDS = 0.12
"""Between two keys: a hundred words a minute."""
PATIENCE = 30.0
SCREENS, WHEEL = 60, 700
"""Turns of the wheel in the list of notes, and pixels of each."""
GOALS = {
    "median": 60.0,
    "p95": 120.0,
    "open": 500.0,
    "sent": 45.0,
    "size": 500.0,
    "change": 1000.0,
    "browse": 500.0,
    "frame": 8.0,
}
WATCH = """
    window.keys = [];  // [when, the text after it]
    window.painted = [];  // milliseconds from each key until what it asked for is on the screen
    const afterPaint = (fn) => requestAnimationFrame(() => {
        const { port1, port2 } = new MessageChannel();
        port1.onmessage = fn;
        port2.postMessage(0);
    });
    let pressed = 0;
    addEventListener("keydown", (event) => { pressed = event.timeStamp; }, true);
    addEventListener("input", (event) => { keys.push([pressed, event.target.value]); }, true);
    const answered = (text) => {
        const last = keys.findLastIndex(([, typed]) => typed === text);
        for (const [when] of keys.splice(0, last + 1)) painted.push(performance.now() - when);
    };
    const send = window.fetch;
    window.fetch = async (address, ...rest) => {
        const response = await send(address, ...rest), asked = new URL(address, location.href);
        if (!asked.pathname.endsWith("/search")) return response;
        const read = response.json.bind(response);
        response.json = async () => {
            const answer = await read();
            setTimeout(() => afterPaint(() => answered(asked.searchParams.get("q"))));
            return answer;
        };
        return response;
    };
    const look = new MutationObserver(() => {
        if (!document.querySelector("note-card a")) return;
        look.disconnect();
        afterPaint(() => { window.opened = performance.now(); });
    });
    look.observe(document, { childList: true, subtree: true });
"""


SENT = """performance.getEntriesByType("resource").filter((one) => one.name.includes("/page/"))
    .reduce((sum, one) => sum + one.encodedBodySize, 0)"""
FRAMES = """() => {
    window.frames_shown = 0;
    const next = () => { frames_shown++; requestAnimationFrame(next); };
    requestAnimationFrame(next);
}"""


def bench_web(notes: int, bar: Bar | None = None) -> list[BenchRow]:
    with bench_vault(notes, bar) as vault, serving(vault.environment, vault.folder) as address, opened() as browser:
        page = browser.new_page()
        requests: list[str] = []
        page.on("request", lambda request: requests.append(str(request.url)))  # pyright: ignore
        page.add_init_script(WATCH)
        page.goto(address)
        until(page, "window.opened")
        home = address.partition("#")[0]
        sent = page.evaluate(SENT)
        openings = [_open(page, home) for _ in range(OPENINGS)]
        keys = [took for question in questions(QUESTIONS) for took in _type(page, question)]
        changes = [_change(page, Path(vault.root, "memories"), number) for number in range(CHANGES)]
        browsing, frames = _browse(page, home)
        for link in page.eval_on_selector_all("nav a", "links => links.map((link) => link.href)"):
            page.goto(link)
            until(page, "document.querySelector('main h1') && 1")
            page.wait_for_timeout(500)
    foreign = [one for one in requests if one.startswith("http") and not one.startswith(home)]
    size = sum(len(gzip.compress(file.read_bytes(), 9)) for file in PAGE.rglob("*") if file.suffix in (".js", ".css"))
    return [
        _row(f"key to painted, {notes:,} notes, median of {len(keys)}", median(keys), "ms", "median"),
        _row("key to painted, 95th percentile", quantiles(keys, n=20)[-1], "ms", "p95"),
        _row(f"opening to the notes of the home page, median of {OPENINGS}", median(openings), "ms", "open"),
        _row(f"opening the list of {notes:,} notes", browsing, "ms", "browse"),
        _row("script a frame while the list scrolls", frames, "ms", "frame"),
        _row(f"changed file to the page, median of {CHANGES}", median(changes), "ms", "change"),
        _row("the first view, as sent", sent / 1000, "KB", "sent"),
        _row("all scripts and styles, compressed", size / 1000, "KB", "size"),
        BenchRow("requests to other hosts, all pages", len(foreign), "", float(len(foreign)), 0.0),
    ]


def _row(name: str, value: float, unit: str, goal: str) -> BenchRow:
    """A budget: the ratio is to what we promise."""
    return BenchRow(name, round(value, 1), unit, value / GOALS[goal], 1.0)


def _open(page: Any, home: str) -> float:
    """Milliseconds from opening the page until its search box is painted."""
    page.goto(home)
    return until(page, "window.opened")


def _type(page: Any, question: str) -> list[float]:
    """Milliseconds from each key until its results are painted."""
    page.fill("input[type=search]", "")
    page.evaluate("keys.length = painted.length = 0")
    page.focus("input[type=search]")
    page.keyboard.type(question, delay=KEY_SECONDS * 1000)
    until(page, "keys.length == 0")
    until(page, "document.querySelector('.verdict .badge') && 1")  # the search after the pause is done, too
    return page.evaluate("painted")


def _browse(page: Any, home: str) -> tuple[float, float]:
    """Milliseconds until the list of all notes is there, and of script for each frame while it is scrolled."""
    page.goto(f"{home}notes")
    opened = until(page, "document.querySelector('.rows note-card a') && performance.now()")
    session = page.context.new_cdp_session(page)
    session.send("Performance.enable")
    page.evaluate(FRAMES)
    page.mouse.move(900, 500)
    before = _scripted(session)
    for _ in range(SCREENS):
        page.mouse.wheel(0, WHEEL)
        page.wait_for_timeout(16)
    until(page, f"scrollY >= {SCREENS * WHEEL * 0.9} && !document.querySelector('.coming-note')")
    return opened, (_scripted(session) - before) / page.evaluate("frames_shown")


def _scripted(session: Any) -> float:
    """Milliseconds of script until now."""
    metrics = session.send("Performance.getMetrics")["metrics"]
    return 1000 * next(one["value"] for one in metrics if one["name"] == "ScriptDuration")


def _change(page: Any, folder: Path, number: int) -> float:
    """Milliseconds from writing a file until the page shows it."""
    page.fill("input[type=search]", "")
    until(page, "!document.querySelector('.verdict')?.innerText")
    started = time.monotonic()
    Path(folder, f"written{number}.md").write_text(f"---\ntitle: Written zqx{number}\n---\nJust now.\n", "utf-8")
    until(page, f"document.getElementById('main').innerText.includes('zqx{number}')")
    return (time.monotonic() - started) * 1000


def until(page: Any, script: str) -> Any:
    """Wait until JavaScript is true, and return its value. The page's policy forbids `wait_for_function`."""
    end = time.monotonic() + PATIENCE
    while not (value := page.evaluate(script)):
        if time.monotonic() > end:
            raise KnowledgeError(f"the page did not get there within {PATIENCE:g} seconds: {script}")
        page.wait_for_timeout(5)
    return value


@contextmanager
def serving(environment: Mapping[str, str], folder: str) -> Generator[str]:
    """The address of `co web` in a process of its own, with its one-time code."""
    command = [*CO, "web", "--no-open", "--port", "0"]
    with subprocess.Popen(command, env=environment, cwd=folder, stderr=subprocess.PIPE, text=True) as server:
        try:
            assert server.stderr is not None
            said = server.stderr.readline()
            if "#code=" not in said:
                raise KnowledgeError(f"co web did not start: {said.strip()}")
            yield said.split()[-1]
        finally:
            server.terminate()


@contextmanager
def opened(**options: Any) -> Generator[Any]:
    """A browser without a window. Options are those of playwright's `new_context`."""
    try:
        from playwright.sync_api import sync_playwright  # only in the development environment
    except ImportError:
        raise KnowledgeError("playwright is not installed: pip install --group dev") from None
    found = shutil.which("chromium-headless-shell") or shutil.which("chromium")
    if found is None:
        raise KnowledgeError("Chromium is not installed: apt-get install chromium-headless-shell")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=found, args=["--no-sandbox"])
        try:
            yield browser.new_context(**options)
        finally:
            browser.close()
