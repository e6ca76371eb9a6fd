"""`co skill`: list, find and show the skills that agents can use here."""

from __future__ import annotations

import argparse
import os
import textwrap
from typing import Any

from co_cli.cli.opening import at_least_1, open_knowledge_base, print_result
from co_cli.cli.terminal import Screen, count_of, printable
from co_cli.errors import InvalidInputError
from co_cli.knowledge_base import KnowledgeBase
from co_cli.service.skills import Skill

LONGEST_LISTED = 150
"""Characters of a description in a list; `co skill show` has all of it."""


def add_skill(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "action", nargs="?", default="list", choices=("list", "search", "show"), help="list (default), search or show"
    )
    parser.add_argument("words", nargs="*", metavar="WORD", help="a task to find a skill for, or the name of one")
    parser.add_argument(
        "-n", "--limit", type=at_least_1, metavar="N", help="search: maximum number of results (default 3)"
    )
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
    wrong = {"--limit": options.limit and action != "search", "--all": options.all and action != "list"}
    for option in (option for option, given in wrong.items() if given):
        raise InvalidInputError(f"{option} is not for `co skill {action}`")
    if action == "list" and words:
        raise InvalidInputError(f"`co skill list` takes no words; `co skill search {words}` looks for one")
    if action != "list" and not words:
        raise InvalidInputError(f"say which: co skill {action} {'TASK' if action == 'search' else 'NAME'}")
    with open_knowledge_base(options) as kb:
        run = {"list": _list, "search": _search, "show": _show}[action]
        return run(kb, words, options)


def _list(kb: KnowledgeBase, _: str, options: argparse.Namespace) -> int:
    found, left_out = kb.skills.all(), kb.skills.folders()[1]
    listed = [one for one in found if options.all or one.state in ("offered", "manual")]

    def show(screen: Screen) -> None:
        for one in sorted(listed, key=lambda one: one.name):
            about = one.level if one.state == "offered" else f"{one.level}, {one.state}"
            screen.entry(one.name, screen.paint(about, "dim"))
            screen.wrapped(textwrap.shorten(one.description, LONGEST_LISTED, placeholder=" …"), "  ")
            screen.wrapped(one.detail, "  ", style="yellow")
        for path, reason in left_out:
            screen.wrapped(f"{path}: {reason}", style="yellow")
        if len(found) > len(listed):
            screen.line(f"{count_of(len(found) - len(listed), 'skill')} not offered: `co skill list --all` says why")
        elif not found:
            screen.wrapped("No skills here: put folders with a SKILL.md into .agents/skills, here or in your home.")

    rows = [{"path": path, "reason": reason} for path, reason in left_out]
    return print_result(options, {"skills": list(map(_row, listed)), "left_out": rows}, show, 0 if listed else 1)


def _search(kb: KnowledgeBase, query: str, options: argparse.Namespace) -> int:
    found, result = kb.skills.search(query, options.limit or 3)
    kb.track(result)

    def show(screen: Screen) -> None:
        if not found:
            screen.line(f"No skill is about that: {count_of(result.searched.notes, 'skill')} searched.")
        elif result.state != "found":
            screen.line("No skill clearly fits. The nearest:")
        for one, score in found:
            screen.entry(one.name, screen.paint(f"{one.level}, {score:.2f}", "dim"))
            screen.wrapped(one.description, "  ")
        for reason in result.degraded:
            screen.wrapped(f"note: {reason}", style="yellow")

    rows = [{**_row(one), "score": score} for one, score in found]
    about = {name: getattr(result, name) for name in ("query", "state", "degraded", "backend", "confidence", "took_ms")}
    return print_result(options, {**about, "searched": result.searched.notes, "skills": rows}, show, 0 if found else 1)


def _show(kb: KnowledgeBase, name: str, options: argparse.Namespace) -> int:
    one, note, files, more = kb.skills.open(kb.skills.find(name))
    fields = {key: value for key, value in note.metadata.items() if key != "provenance"}

    def show(screen: Screen) -> None:
        screen.entry(one.name, screen.paint(one.level, "dim"))
        screen.line(screen.paint(printable(one.path), "dim"))
        screen.wrapped("" if one.state == "offered" else f"{one.state}: {one.detail}", style="yellow")
        screen.wrapped(one.description)
        for key in ("license", "compatibility", "allowed-tools"):
            screen.wrapped(f"{key}: {fields[key]}" if fields.get(key) else "", style="dim")
        listed = ["", "files:", *(f"  {path}" for path in files), *(["  ..."] if more else [])]
        for line in ["", *note.body.strip().splitlines(), *(listed if files else [])]:
            screen.line(printable(line))

    return print_result(
        options, {**_row(one), "fields": fields, "body": note.body, "files": files, "more_files": more}, show
    )


def _row(one: Skill) -> dict[str, Any]:
    row = {key: getattr(one, key) for key in ("name", "description", "level", "state", "detail", "path")}
    return {**row, "folder": os.path.dirname(one.path)}
