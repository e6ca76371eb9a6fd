"""A month of a coder's prompts: which of them are given notes by `co hook`, whether those are right, and what it costs.

hook_notes.jsonl is the vault of one person. hook_prompts.jsonl has prompts of four kinds: questions that notes answer
(ask), orders for which notes matter (task), other questions and orders, and small talk. `fit` chose the floor and the
way of comparing. `report` was looked at when `NEARLY` of searching/context.py was chosen. `fresh` was written after
that, and nothing was changed because of it: its figures are the ones to report. A day has eight prompts in one session.
Processes are timed with generated notes beside those of the person.
"""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from statistics import median
from typing import Any, NamedTuple

from benchmarks.corpus import write_corpus
from benchmarks.measuring import BenchRow
from benchmarks.vaults import Bar
from co_cli.cli.hook import SECONDS
from co_cli.entrance.local import LocalKnowledgeBase
from co_cli.ground.settings import load_settings
from co_cli.hooks.given_notes import text_for
from co_cli.hooks.hook_events import read_event
from co_cli.notes.new_note import render_note
from co_cli.notes.refs import FOLDERS
from co_cli.tools.budget import estimate_tokens

FOLDER = Path(__file__).parent
A_DAY = 8
CLIENT = "claude-code"
PROCESSES = 25
NEEDED, SMALL_TALK = 0.8, 0.05
"""What we promise: the least share of right notes, and the most of small talk that gets any."""


class Given(NamedTuple):
    """A prompt, and what its model was given."""

    kind: str
    wanted: frozenset[str]
    refs: tuple[str, ...]
    tokens: int


def bench_hooks(notes: int, progress: Bar) -> list[BenchRow]:
    prompts = _read("hook_prompts.jsonl")
    random.Random(36).shuffle(prompts)  # the days of a month are mixed
    rows: list[BenchRow] = []
    with tempfile.TemporaryDirectory(prefix="co-bench-", ignore_cleanup_errors=True) as work:
        own = _write_vault(Path(work) / "vault")
        settings = load_settings({"vault": f"{work}/vault", "data_dir": f"{work}/data"})
        with LocalKnowledgeBase(settings) as kb:
            kb.sync()
            for part in ("fit", "report", "fresh"):
                asked = [prompt for prompt in prompts if prompt["part"] == part]
                given = [_ask(kb, prompt, f"{part} {place // A_DAY}") for place, prompt in enumerate(asked)]
                rows += [row._replace(name=f"{part}: {row.name}") for row in _rows(given)]
            write_corpus(f"{work}/vault", max(0, notes - own))
            kb.sync(progress)
        rows += _times(work, [prompt["prompt"] for prompt in prompts[:PROCESSES]], progress)
    progress.done()
    return rows


def _ask(kb: LocalKnowledgeBase, prompt: dict[str, Any], session: str) -> Given:
    event = read_event(CLIENT, _event(prompt["prompt"], session))
    text = text_for(kb, event) if event else ""
    refs = [line[2:].partition(" ")[0] for line in text.splitlines() if line.startswith("| memory:")]
    slugs = tuple(ref.removeprefix("memory:") for ref in refs)
    return Given(prompt["kind"], frozenset(prompt["notes"]), slugs, estimate_tokens(text))


def _rows(asked: list[Given]) -> list[BenchRow]:
    refs = [(ref, prompt) for prompt in asked for ref in prompt.refs]
    right = sum(ref in prompt.wanted for ref, prompt in refs) / max(len(refs), 1)
    talk = [prompt for prompt in asked if prompt.kind == "talk"]
    noise = _share(talk)
    wanting = [prompt for prompt in asked if prompt.wanted]
    served = sum(bool(prompt.wanted & {*prompt.refs}) for prompt in wanting) / len(wanting)
    return [
        BenchRow("tokens given a day", sum(prompt.tokens for prompt in asked) * A_DAY / len(asked), "tokens"),
        BenchRow("prompts that got notes", _share(asked), "of 1"),
        BenchRow("notes that were wrong", 1 - right, "of 1", 1 - right, 1 - NEEDED),
        BenchRow("small talk that got notes", noise, "of 1", noise, SMALL_TALK),
        BenchRow("other prompts without a note that got one", _share([p for p in asked if p.kind == "other"]), "of 1"),
        BenchRow("prompts with a note that got it", served, "of 1"),
    ]


def _share(asked: list[Given]) -> float:
    return sum(bool(prompt.refs) for prompt in asked) / len(asked)


def _times(work: str, prompts: list[str], progress: Bar) -> list[BenchRow]:
    """Whole processes: the hook, `co search` for the same words, and a bare start of Python for comparison."""
    commands = {"co hook": ["hook", CLIENT], "co search": ["search"], "python": []}
    seconds: dict[str, list[float]] = {name: [] for name in commands}
    env = {**os.environ, "CO_VAULT": f"{work}/vault", "CO_DATA_DIR": f"{work}/data"}
    for number, prompt in enumerate(prompts):
        progress(number, len(prompts))
        for name, words in commands.items():
            asked = [prompt] if name == "co search" else []
            command = [sys.executable, *(["-m", "co_cli", *words, *asked] if words else ["-c", ""])]
            started = time.perf_counter()
            ran = subprocess.run(command, input=_event(prompt, str(number)), env=env, capture_output=True, check=False)
            if ran.returncode > 1:  # 1: nothing was found
                raise SystemExit(f"{name} ended with {ran.returncode}: {ran.stderr.decode()[-300:]}")
            seconds[name].append(time.perf_counter() - started)
    bare = median(seconds.pop("python"))
    late = sum(took >= SECONDS for took in seconds["co hook"])
    return [
        BenchRow("co hook that gave up at its deadline", late, f"of {len(prompts)}"),
        *(
            BenchRow(f"{name}, {label}", 1000 * value, "ms", value / bare)
            for name, took in seconds.items()
            for label, value in (("p50", median(took)), ("p95", sorted(took)[int(0.95 * len(took))]))
        ),
    ]


def _event(prompt: str, session: str) -> bytes:
    return json.dumps({"hook_event_name": "UserPromptSubmit", "session_id": session, "prompt": prompt}).encode()


def _write_vault(root: Path) -> int:
    """Write the person's notes; how many."""
    folder = root / FOLDERS["memory"]
    folder.mkdir(parents=True)
    notes = _read("hook_notes.jsonl")
    for note in notes:
        (folder / f"{note['slug']}.md").write_text(render_note({"title": note["title"]}, note["text"]), "utf-8")
    return len(notes)


def _read(name: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (FOLDER / name).read_text("utf-8").splitlines()]
