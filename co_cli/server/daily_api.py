"""Today's note: where the vault keeps its daily notes, opened or created there, and a line that is added to it.

Obsidian's settings for daily notes are read, of the vault itself or of an added folder, and never written. Without
them, today's note is next to the newest note that is named by its date.
"""

from __future__ import annotations

import json
import os
import posixpath
import re
from collections.abc import Callable, Mapping
from datetime import date
from typing import Any, NamedTuple, cast

from pydantic import BaseModel

from co_cli.entrance.local import LocalKnowledgeBase
from co_cli.ground.errors import InvalidInputError
from co_cli.ground.saves import Change
from co_cli.saving.writer import VaultWriter
from co_cli.server.routes import route
from co_cli.sources.origin import Origin

OBSIDIAN = os.path.join(".obsidian", "daily-notes.json")
DEFAULT_FOLDER, DEFAULT_FORMAT = "articles/daily", "YYYY-MM-DD"
DATED = re.compile(r"(?:^|/)\d{4}-\d{2}-\d{2}\.md$")
TOKENS: Mapping[str, Callable[[date], str]] = {
    "YYYY": lambda day: f"{day:%Y}",
    "YY": lambda day: f"{day:%y}",
    "GGGG": lambda day: f"{day:%G}",
    "MMMM": lambda day: f"{day:%B}",
    "MMM": lambda day: f"{day:%b}",
    "MM": lambda day: f"{day:%m}",
    "M": lambda day: str(day.month),
    "DD": lambda day: f"{day:%d}",
    "D": lambda day: str(day.day),
    "Do": lambda day: f"{day.day}{'th' if day.day in (11, 12, 13) else ENDINGS.get(day.day % 10, 'th')}",
    "dddd": lambda day: f"{day:%A}",
    "ddd": lambda day: f"{day:%a}",
    "dd": lambda day: f"{day:%a}"[:2],
    "WW": lambda day: f"{day:%V}",
    "W": lambda day: str(day.isocalendar().week),
}
ENDINGS = {1: "st", 2: "nd", 3: "rd"}
FORMAT = re.compile(
    r"\[([^\]]*)\]|(Y{1,6}|y{1,4}|N{1,5}|G{4}|g{4}|GG|gg|Mo|M{1,4}|DDDo|Do|D{1,4}|do|d{1,4}|[wWQ]o|ww|WW|LTS|LT|L{1,4}|l{1,4}"
    r"|[wWQeEaAxX]|[Hhkms]{1,2}|S{1,9}|[zZ]{1,2})"
)
"""A text in brackets, which stays as it is, or a token of Moment."""
KNOWN = ", ".join(f"`{token}`" for token in TOKENS) + " and texts in [brackets]"
LONGEST_TEMPLATE = 100_000


class Today(BaseModel):
    """Today, where the person is, and a line to be added."""

    day: date
    line: str = ""
    confirmed: bool = False
    """Whether a file may be created in an added folder."""


class DailyNote(NamedTuple):
    """Today's note."""

    ref: str
    path: str
    created: bool
    asks: str = ""
    """The added folder in which it would be created, if that is not confirmed: nothing was written."""


class DailyPlace(NamedTuple):
    origin: Origin
    path: str
    template: str


@route("POST", "/daily")
def open_today(kb: LocalKnowledgeBase, asked: Today) -> DailyNote:
    """Find today's note, or create it where the vault keeps its daily notes, and add a line to it."""
    place = _place_of(kb, asked.day)
    index, writer = kb.index.of(place.origin), VaultWriter(kb.vault)
    own = place.origin == kb.index.origin
    found = index.notes.find("path", place.path)
    if not found:
        if not own and not asked.confirmed:
            return DailyNote("", place.path, False, place.origin.label)
        title = os.path.splitext(os.path.basename(place.path))[0]
        writer.create_in(place.origin, place.path, _filled(place.template, title, asked.day) or f"# {title}\n")
        found = index.notes.find("path", place.path)
        if not found:
            raise InvalidInputError(f"{place.path} was created, and is excluded from the index")
        created = True
    else:
        created = False
    ref = found[0].ref
    if line := " ".join(asked.line.split()):
        note = kb.note(ref)
        lines = note.body.rstrip("\n").split("\n")
        gap = [] if lines[-1].startswith(("- ", "* ")) else [""]
        change = Change(content="\n".join([*lines, *gap, f"- {line}", ""]), version=note.version)
        (writer.update if own else writer.update_linked)(ref, change)
    return DailyNote(ref, place.path, created)


def _place_of(kb: LocalKnowledgeBase, day: date) -> DailyPlace:
    own = kb.index.origin
    for origin in (own, *(linked for linked in kb.index.linked if linked.source == "obsidian")):
        settings = _obsidian(origin.root)
        if settings is not None:
            folder, form = str(settings.get("folder") or ""), str(settings.get("format") or DEFAULT_FORMAT)
            name = _formatted(form, day)
            if name is None:
                raise InvalidInputError(f"the format of your daily notes in Obsidian is `{form}`; co knows {KNOWN}")
            path = os.path.normpath(os.path.join(folder.strip("/"), f"{name}.md"))
            if not os.path.isabs(path) and path.split(os.sep)[0] != os.pardir:
                return DailyPlace(origin, path.replace(os.sep, "/"), _template(origin.root, settings))
    dated = [path for path in kb.index.notes.hashes() if DATED.search(path)]
    folder = max(dated, key=posixpath.basename).rpartition("/")[0] if dated else DEFAULT_FOLDER
    return DailyPlace(own, f"{folder}/{day.isoformat()}.md".lstrip("/"), "")


def _obsidian(root: str) -> Mapping[str, Any] | None:
    """Obsidian's settings for daily notes; None if there are none that can be read."""
    try:
        with open(os.path.join(root, OBSIDIAN), encoding="utf-8") as file:
            settings: Any = json.load(file)
    except (OSError, ValueError):
        return None
    return cast("Mapping[str, Any]", settings) if isinstance(settings, dict) else None


def _template(root: str, settings: Mapping[str, Any]) -> str:
    """The text of the template for daily notes, if it is a file in this folder."""
    name = str(settings.get("template") or "").strip("/")
    path = os.path.realpath(os.path.join(root, name if name.endswith(".md") else f"{name}.md"))
    if not name or not path.startswith(os.path.realpath(root) + os.sep):
        return ""
    try:
        with open(path, encoding="utf-8") as file:
            return file.read(LONGEST_TEMPLATE)
    except (OSError, ValueError):
        return ""


def _filled(template: str, title: str, day: date) -> str:
    template = template.replace("{{title}}", title)
    dates = re.compile(r"{{date(?::([^}]+))?}}")
    return dates.sub(lambda found: _formatted(found[1] or DEFAULT_FORMAT, day) or found[0], template)


def _formatted(form: str, day: date) -> str | None:
    """A date in a format of Moment, such as `YYYY/MM-MMMM/YYYY-MM-DD-dddd`; None if it needs more than a date."""
    if any(found[2] and found[2] not in TOKENS for found in FORMAT.finditer(form)):
        return None
    return FORMAT.sub(lambda found: TOKENS[found[2]](day) if found[2] else found[1], form)
