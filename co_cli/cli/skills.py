"""`co skill list`, `search`, `show`."""

from __future__ import annotations

import argparse
import os
from typing import Any

from co_cli.cli.opening import open_knowledge_base, print_json
from co_cli.cli.terminal import Screen, count_of, printable
from co_cli.errors import InvalidInputError
from co_cli.service.skills import Skill, Skills

ACTIONS = ("list", "search", "show")
LONGEST_LISTED = 150
"""Letters of a description in a list; `co skill show` has all of it."""


def add_skills(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("action", nargs="?", default="list", choices=ACTIONS, help="list (default), search or show")
    parser.add_argument("words", nargs="*", metavar="WORD", help="a task to find a skill for, or the name of one")
    parser.add_argument("-n", "--limit", type=int, metavar="N", help="search: maximum number of results (default 3)")
    parser.add_argument("--all", action="store_true", help="list: also those that agents are not offered, and why")
    parser.epilog = (
        "A skill is a folder with a SKILL.md, in .agents/skills or .claude/skills of the\n"
        "project or of your home, or in a folder that the setting skill_folders names.\n"
        "Of two of one name the project's counts. Agents find them with find_skills and\n"
        "load_skill; `co search` does not see them, unless you ask with --source skill.\n\n"
        "examples:\n  co skill\n  co skill list --all\n"
        '  co skill search "turn this contract into a fillable form"\n  co skill show pdf-forms\n'
    )
    parser.set_defaults(run=skills)


def skills(options: argparse.Namespace) -> int:
    words = " ".join(options.words).strip()
    if options.limit is not None and options.action != "search":
        raise InvalidInputError(f"--limit: only for `co skill search`, not for `co skill {options.action}`")
    if options.all and options.action != "list":
        raise InvalidInputError(f"--all: only for `co skill list`, not for `co skill {options.action}`")
    if options.action == "list" and words:
        raise InvalidInputError(f"`co skill list` takes no words; `co skill search {words}` looks for one")
    if options.action == "search" and not words:
        raise InvalidInputError("say what is to be done: co skill search WORD ...")
    if options.action == "show" and len(options.words) != 1:
        raise InvalidInputError("name one skill: co skill show NAME (`co skill` lists them)")
    with open_knowledge_base(options) as kb:
        match options.action:
            case "search":
                return _search(kb.skills, words, 3 if options.limit is None else options.limit, options.json)
            case "show":
                return _show(kb.skills, words, options.json)
            case _:
                return _list(kb.skills, options.all, options.json)


def _list(known: Skills, everything: bool, as_json: bool) -> int:
    found, left_out = known.all(), known.places().left_out
    shown = [skill for skill in found if everything or skill.state in ("offered", "manual")]
    if as_json:
        rows = [_row(skill) for skill in shown]
        print_json({"skills": rows, "left_out": [{"path": path, "reason": reason} for path, reason in left_out]})
        return 0 if shown else 1
    screen = Screen()
    for skill in sorted(shown, key=lambda skill: skill.name):
        state = "" if skill.state == "offered" else f", {skill.state}"
        screen.line(f"{screen.paint(printable(skill.name), 'cyan')}  {screen.paint(skill.level + state, 'dim')}")
        if skill.description:
            screen.wrapped(_short(skill.description), "  ")
        if skill.detail:
            screen.wrapped(printable(skill.detail), "  ", style="yellow")
    for path, reason in left_out:
        screen.wrapped(f"{path}: {reason}", style="yellow")
    hidden = len(found) - len(shown)
    if hidden:
        screen.line(f"{count_of(hidden, 'skill')} not offered: `co skill list --all` says why")
    elif not found:
        screen.wrapped("No skills here: put folders with a SKILL.md into .agents/skills, here or in your home.")
    return 0 if shown else 1


def _search(known: Skills, query: str, limit: int, as_json: bool) -> int:
    found, result = known.search(query, limit)
    if as_json:
        rows = [{**_row(skill), "score": score} for skill, score in found]
        about = {name: result._asdict()[name] for name in ("query", "state", "degraded", "backend", "confidence")}
        print_json({**about, "searched": result.searched.notes, "skills": rows, "took_ms": result.took_ms})
        return 0 if found else 1
    screen = Screen()
    if found and result.state != "found":
        screen.line("No skill clearly fits. The nearest:")
    for skill, score in found:
        about = f"{skill.level}, {score:.2f}"
        screen.line(f"{screen.paint(printable(skill.name), 'cyan')}  {screen.paint(about, 'dim')}")
        screen.wrapped(skill.description, "  ")
    if not found:
        screen.line(f"No skill has to do with that: {count_of(result.searched.notes, 'skill')} searched.")
    for reason in result.degraded:
        screen.wrapped(f"note: {reason}", style="yellow")
    return 0 if found else 1


def _show(known: Skills, name: str, as_json: bool) -> int:
    skill, note, files, more = known.open(known.find(name))
    if as_json:
        fields = {key: value for key, value in note.metadata.items() if key != "provenance"}
        print_json({**_row(skill), "fields": fields, "body": note.body, "files": files, "more_files": more})
        return 0
    screen = Screen()
    screen.line(f"{screen.paint(printable(skill.name), 'cyan')}  {screen.paint(skill.level, 'dim')}")
    screen.line(screen.paint(printable(skill.path), "dim"))
    if skill.state != "offered":
        screen.wrapped(f"{skill.state}: {skill.detail}", style="yellow")
    screen.wrapped(skill.description)
    for key in ("license", "compatibility", "allowed-tools"):
        if note.metadata.get(key):
            screen.wrapped(f"{key}: {_text(note.metadata[key])}", style="dim")
    screen.line()
    for line in note.body.strip().splitlines():
        screen.line(printable(line))
    if files:
        screen.line()
        screen.line(screen.paint("files:", "dim"))
        for path in files:
            screen.line(f"  {printable(path)}")
        if more:
            screen.line("  ...")
    return 0


def _row(skill: Skill) -> dict[str, Any]:
    return {
        "name": skill.name,
        "description": skill.description,
        "level": skill.level,
        "state": skill.state,
        "detail": skill.detail,
        "path": skill.path,
        "folder": os.path.dirname(skill.path),
    }


def _text(value: object) -> str:
    return " ".join(map(str, value)) if isinstance(value, list) else str(value)  # type: ignore[reportUnknownArgumentType]


def _short(text: str) -> str:
    return text if len(text) <= LONGEST_LISTED else f"{text[:LONGEST_LISTED].rpartition(' ')[0]} …"
