"""`co skill list`, `search` and `show`."""

from __future__ import annotations

import argparse
import os
import textwrap
from typing import Any

from co_cli.cli.opening import open_knowledge_base, print_json
from co_cli.cli.terminal import Screen, count_of, printable
from co_cli.errors import InvalidInputError
from co_cli.knowledge_base import KnowledgeBase
from co_cli.service.skills import Skill

LONGEST_LISTED = 150
"""Characters of a description in a list; `co skill show` has all of it."""
DEFAULT_LIMIT = 3


def add_skill(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "action", nargs="?", default="list", choices=("list", "search", "show"), help="list (default), search or show"
    )
    parser.add_argument("words", nargs="*", metavar="WORD", help="a task to find a skill for, or the name of one")
    parser.add_argument("-n", "--limit", type=int, metavar="N", help="search: maximum number of results (default 3)")
    parser.add_argument("--all", action="store_true", help="list: also those that agents are not offered, and why")


def run_skill(options: argparse.Namespace) -> int:
    """
    A skill is a folder with a SKILL.md, in .agents/skills or .claude/skills of the
    project or of your home, or in a folder that the setting skill_folders names.
    If two have the same name, the project's is used. Agents find them with
    find_skills and load_skill; `co search` leaves them out, unless you ask with
    --source skill.

    examples:
      co skill
      co skill list --all
      co skill search "turn this contract into a fillable form"
      co skill show pdf-forms
    """
    action, words = options.action, " ".join(options.words).strip()
    if options.limit is not None and action != "search":
        raise InvalidInputError(f"--limit: only for `co skill search`, not for `co skill {action}`")
    if options.all and action != "list":
        raise InvalidInputError(f"--all: only for `co skill list`, not for `co skill {action}`")
    if action == "list" and words:
        raise InvalidInputError(f"`co skill list` takes no words; `co skill search {words}` looks for one")
    if action != "list" and not words:
        raise InvalidInputError(f"say which: co skill {action} {'TASK' if action == 'search' else 'NAME'}")
    with open_knowledge_base(options) as kb:
        match action:
            case "search":
                return _search(kb, words, DEFAULT_LIMIT if options.limit is None else options.limit, options.json)
            case "show":
                return _show(kb, words, options.json)
            case _:
                return _list(kb, options.all, options.json)


def _list(kb: KnowledgeBase, everything: bool, as_json: bool) -> int:
    found, left_out = kb.skills.all(), kb.skills.folders()[1]
    shown = [one for one in found if everything or one.state in ("offered", "manual")]
    if as_json:
        rows = [{"path": path, "reason": reason} for path, reason in left_out]
        print_json({"skills": list(map(_row, shown)), "left_out": rows})
        return 0 if shown else 1
    screen = Screen()
    for one in sorted(shown, key=lambda one: one.name):
        screen.entry(
            one.name, screen.paint(one.level if one.state == "offered" else f"{one.level}, {one.state}", "dim")
        )
        screen.wrapped(textwrap.shorten(one.description, LONGEST_LISTED, placeholder=" …"), "  ")
        screen.wrapped(one.detail, "  ", style="yellow")
    for path, reason in left_out:
        screen.wrapped(f"{path}: {reason}", style="yellow")
    if len(found) > len(shown):
        screen.line(f"{count_of(len(found) - len(shown), 'skill')} not offered: `co skill list --all` says why")
    elif not found:
        screen.wrapped("No skills here: put folders with a SKILL.md into .agents/skills, here or in your home.")
    return 0 if shown else 1


def _search(kb: KnowledgeBase, query: str, limit: int, as_json: bool) -> int:
    found, result = kb.skills.search(query, limit)
    kb.track(result)
    if as_json:
        rows = [{**_row(one), "score": score} for one, score in found]
        about = {name: getattr(result, name) for name in ("query", "state", "degraded", "backend", "confidence")}
        print_json({**about, "searched": result.searched.notes, "skills": rows, "took_ms": result.took_ms})
        return 0 if found else 1
    screen = Screen()
    if not found:
        screen.line(f"No skill is about that: {count_of(result.searched.notes, 'skill')} searched.")
    elif result.state != "found":
        screen.line("No skill clearly fits. The nearest:")
    for one, score in found:
        screen.entry(one.name, screen.paint(f"{one.level}, {score:.2f}", "dim"))
        screen.wrapped(one.description, "  ")
    for reason in result.degraded:
        screen.wrapped(f"note: {reason}", style="yellow")
    return 0 if found else 1


def _show(kb: KnowledgeBase, name: str, as_json: bool) -> int:
    one, note, files, more = kb.skills.open(kb.skills.find(name))
    if as_json:
        fields = {key: value for key, value in note.metadata.items() if key != "provenance"}
        print_json({**_row(one), "fields": fields, "body": note.body, "files": files, "more_files": more})
        return 0
    screen = Screen()
    screen.entry(one.name, screen.paint(one.level, "dim"))
    screen.line(screen.paint(printable(one.path), "dim"))
    if one.state != "offered":
        screen.wrapped(f"{one.state}: {one.detail}", style="yellow")
    screen.wrapped(one.description)
    for key in ("license", "compatibility", "allowed-tools"):
        if note.metadata.get(key):
            screen.wrapped(f"{key}: {note.metadata[key]}", style="dim")
    listed = ["", "files:", *(f"  {path}" for path in files), *(["  ..."] if more else [])]
    for line in ["", *note.body.strip().splitlines(), *(listed if files else [])]:
        screen.line(printable(line))
    return 0


def _row(one: Skill) -> dict[str, Any]:
    row = {key: getattr(one, key) for key in ("name", "description", "level", "state", "detail", "path")}
    return {**row, "folder": os.path.dirname(one.path)}
