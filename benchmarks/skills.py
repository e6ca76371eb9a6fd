"""What 1,000 skills cost a prompt, listed or found on demand, and how often the right one is found."""

from __future__ import annotations

import json
import tempfile
import time
from pathlib import Path
from statistics import mean, median

from benchmarks.measuring import BenchRow
from benchmarks.skill_set import put_skills, tasks
from benchmarks.vaults import Bar
from co_cli.entrance.knowledge_base import KnowledgeBase
from co_cli.ground.settings import load_settings
from co_cli.tools import Toolbox
from co_cli.tools.budget import estimate_tokens
from co_cli.tools.skill_tools import ALSO, FOUND, SKILL_TOOLS
from co_cli.tools.tool import Tool
from co_cli.vault.vault import Opening


def bench_skills(progress: Bar) -> list[BenchRow]:
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder)
        (root / "notes").mkdir()
        skills = put_skills(root / "skills")
        flags = {"vault": str(root / "notes"), "data_dir": str(root / "data"), "skill_folders": [str(root / "skills")]}
        settings = load_settings(flags, start=folder)
        opening = Opening(home=folder)  # not the skills of whoever runs this
        with KnowledgeBase.open(settings=settings, opening=opening) as kb:
            listing = "\n".join(f"- {skill.name}: {skill.description}" for skill in skills)
            return [*_rows(Toolbox(kb, with_skills=True), estimate_tokens(listing), progress)]


def _rows(toolbox: Toolbox, listed: int, progress: Bar) -> list[BenchRow]:
    places, answers, loads, seconds = list[int](), list[int](), list[int](), list[float]()
    wanted = tasks()
    toolbox.call("find_skills", {"query": "anything"})  # the first call reads the files
    for number, task in enumerate(wanted):
        progress(number, len(wanted))
        started = time.perf_counter()
        found = toolbox.call("find_skills", {"query": task.task})
        seconds.append(time.perf_counter() - started)
        named = [*(skill["name"] for skill in found.data["skills"]), *found.data["also"]]
        places.append(named.index(task.skill) + 1 if task.skill in named else FOUND + ALSO + 1)
        answers.append(estimate_tokens(found.text))
        loads.append(estimate_tokens(toolbox.call("load_skill", {"name": task.skill}).text))
    progress.done()
    tools = sum(map(_schema_tokens, SKILL_TOOLS))
    once = tools + mean(answers)
    return [
        BenchRow("1,000 skills listed, in every request", listed, "tokens"),
        BenchRow("two tools instead, in every request", tools, "tokens", tools / listed, 0.05),
        BenchRow("an answer of find_skills, once a task", mean(answers), "tokens", mean(answers) / listed),
        BenchRow("both together, in a task's first request", once, "tokens", once / listed, 0.05),
        BenchRow("a skill of this set loaded, either way", mean(loads), "tokens"),
        BenchRow("tasks whose skill is described first", _share(places, 1), "of 1"),
        BenchRow(f"... is among the {FOUND} described", _share(places, FOUND), "of 1"),
        BenchRow(f"... is named in the answer ({FOUND + ALSO})", _share(places, FOUND + ALSO), "of 1"),
        BenchRow("one find_skills, files looked at", median(seconds) * 1000, "ms"),
    ]


def _share(places: list[int], most: int) -> float:
    return sum(place <= most for place in places) / len(places)


def _schema_tokens(tool: Tool) -> int:
    """As a model gets to see it."""
    return estimate_tokens(json.dumps([tool.name, tool.description, tool.parameters]))
