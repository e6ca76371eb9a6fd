"""`co skill`: list, find and show the skills that agents can use here."""

from __future__ import annotations

import argparse
import textwrap
from typing import Any

from co_cli.cli.opening import add_limit, open_knowledge_base, print_result
from co_cli.cli.terminal import count_of
from co_cli.entrance.local import LocalKnowledgeBase
from co_cli.ground.errors import InvalidInputError
from co_cli.vault.skills import Skill


def add_skill(parser: argparse.ArgumentParser) -> None:
    actions = ("list", "search", "show")
    parser.add_argument("action", nargs="?", default="list", choices=actions, help="list (default), search or show")
    parser.add_argument("words", nargs="*", metavar="WORD", help="a task to find a skill for, or the name of one")
    add_limit(parser, 3, "search: maximum number of results")
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
    words = " ".join(options.words).strip()
    if bool(words) == (options.action == "list"):
        raise InvalidInputError("write `co skill list`, `co skill search TASK` or `co skill show NAME`")
    with open_knowledge_base(options) as kb:
        return {"list": _list, "search": _search, "show": _show}[options.action](kb, words, options)


def _list(kb: LocalKnowledgeBase, _: str, options: argparse.Namespace) -> int:
    found = kb.skills.all()
    listed = [skill for skill in found if options.all or skill.state in ("offered", "manual")]
    lines: list[str] = []
    for skill in sorted(listed, key=lambda skill: skill.name):
        about = skill.level if skill.state == "offered" else f"{skill.level}, {skill.state}"
        lines += [f"{skill.name}  {about}", f"  {textwrap.shorten(skill.description, 150, placeholder=' …')}"]
        lines += [f"  {skill.detail}"] if skill.detail else []
    if len(found) > len(listed):
        lines.append(f"{count_of(len(found) - len(listed), 'skill')} not offered: `co skill list --all` says why")
    elif not found:
        lines.append("No skills here: put folders with a SKILL.md into .agents/skills, here or in your home.")
    return print_result(options, [_row(skill) for skill in listed], lines)


def _search(kb: LocalKnowledgeBase, query: str, options: argparse.Namespace) -> int:
    found, result = kb.search_skills(query, options.limit)
    kb.track(result)
    lines = [line for skill, n in found for line in (f"{skill.name}  {skill.level}, {n:.2f}", f"  {skill.description}")]
    if result.state != "found" or not found:
        lines.append(f"No skill clearly fits: {count_of(result.searched.notes, 'skill')} searched.")
    lines += [f"note: {reason}" for reason in result.degraded]
    about = {name: getattr(result, name) for name in ("query", "state", "degraded", "confidence", "took_ms")}
    rows = [{**_row(skill), "score": score} for skill, score in found]
    value = {**about, "searched": result.searched.notes, "skills": rows}
    return print_result(options, value, lines, 0 if found else 1)


def _show(kb: LocalKnowledgeBase, name: str, options: argparse.Namespace) -> int:
    skill = kb.skills.find(name)
    note, files = kb.skills.open(skill)
    fields = {key: value for key, value in note.metadata.items() if key not in ("name", "provenance")}
    lines = [f"{skill.name}  {skill.level}", skill.path]
    lines += [f"{skill.state}: {skill.detail}"] if skill.state != "offered" else []
    lines += [*(f"{key}: {value}" for key, value in fields.items()), "", *note.body.strip().splitlines()]
    lines += ["", "files:", *(f"  {path}" for path in files)] if files else []
    return print_result(options, {**_row(skill), "fields": fields, "body": note.body, "files": files}, lines)


def _row(skill: Skill) -> dict[str, Any]:
    return {key: getattr(skill, key) for key in ("name", "description", "level", "state", "detail", "path")}
