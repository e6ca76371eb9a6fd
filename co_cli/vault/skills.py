"""Skills: where they are, which of them agents are offered, and how one is found and loaded.

Each folder of skills is an origin in search.db, synced whenever skills are used. An ordinary search leaves them out, so
that a thousand skills do not bury a person's notes. Of two skills of one name, the project's comes before the user's,
and that before those of configured folders. A skill that breaks a rule of the format is listed and never offered.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from contextlib import suppress
from difflib import get_close_matches
from itertools import islice
from pathlib import Path
from typing import Literal, NamedTuple

from co_cli.ground.errors import IndexUnavailableError, InvalidInputError, VaultError
from co_cli.ground.hits import Filters
from co_cli.ground.paths import PROJECT_FOLDER, is_inside, is_yours, project_of
from co_cli.notes.encoding import NotTextError
from co_cli.notes.note import Note
from co_cli.notes.store import NoteStore
from co_cli.sources.origin import Origin, adapter_of
from co_cli.sources.skill_format import HEAVY, SKILL_FILE, folder_name
from co_cli.vault.origins import Origins
from co_cli.vault.vault import Vault

Level = Literal["project", "user", "configured"]
State = Literal["offered", "manual", "shadowed", "invalid"]

PLACES = (os.path.join(".agents", "skills"), os.path.join(".claude", "skills"))
MANUAL = "disable-model-invocation"
"""A field that some agents know: the skill is for people to call."""
MOST_FILES = 100


class Skill(NamedTuple):
    """One skill, and whether agents are offered it."""

    name: str
    description: str
    level: Level
    path: str
    """Its SKILL.md, before links are followed."""
    state: State
    detail: str
    """Why it is not offered; empty if it is."""
    origin: Origin
    inside: str
    """The path of its SKILL.md in that origin."""

    @property
    def file(self) -> str:
        """Its SKILL.md, with links followed."""
        return os.path.join(self.origin.root, *self.inside.split("/"))


class Skills:
    """The skills that one knowledge base can use. Safe to share between threads."""

    def __init__(self, vault: Vault) -> None:
        """The project is that of the vault, else that of the current folder; of `opening.home`, if one is given."""
        home = vault.opening.home
        self._vault, self._home, self._here = vault, home or os.path.expanduser("~"), home or "."

    def folders(self) -> list[tuple[Level, str, Origin]]:
        """Where skills are, by precedence: level, path and origin. Links out of a project are not followed."""
        home, here = os.path.realpath(self._home), os.path.realpath(self._here)
        project = _project_folders(self._vault.root, here, home)
        root = project[-1] if project else None
        added = {origin.root: origin for origin in Origins(self._vault).all() if origin.source == "skill"}
        named = self._vault.settings.skill_folders
        wanted: list[tuple[Level, str]] = [
            *(("project", os.path.join(folder, place)) for folder in project for place in PLACES),
            *(("project", path) for path in (*named, *added) if _is_inside(path, root)),
            *(("user", os.path.join(self._home, place)) for place in PLACES),
            *(("configured", path) for path in (*named, *added) if not _is_inside(path, root)),
        ]
        found: list[tuple[Level, str, Origin]] = []
        for level, path in wanted:
            for place in (path, *_links(path)):
                real = os.path.realpath(place)
                named_here = level != "project" or real in added
                allowed = os.path.isdir(real) and (named_here or (_is_inside(real, root) and is_yours(real)))
                if allowed and not any(_is_inside(real, origin.root) for _, _, origin in found):
                    is_skill = os.path.isfile(os.path.join(real, SKILL_FILE))
                    name = (os.path.basename(place), SKILL_FILE) if is_skill else ()
                    found.append((level, place, added.get(real) or Origin("skill", real, *name)))
        return found

    def there(self) -> bool:
        """Whether agents are offered any. Without a usable index there are none."""
        try:
            return any(skill.state == "offered" for skill in self.all())
        except IndexUnavailableError:
            return False

    def all(self) -> list[Skill]:
        """Every skill by precedence and path, also those that are not offered."""
        found: dict[str, Skill] = {}
        first: dict[str, Skill] = {}
        for level, place, origin in self.folders():
            skills = list(self._read_folder(level, place, origin))
            parents = {skill.inside.rpartition("/")[0] for skill in skills}
            for skill in skills:
                if skill.file in found or any(str(folder) in parents for folder in Path(skill.inside).parents[1:-1]):
                    continue  # found through another folder, or part of another skill
                if skill.state != "invalid":
                    before = first.setdefault(skill.name, skill)
                    if before is not skill:
                        detail = f"{before.path} comes first ({before.level} before {level})"
                        skill = skill._replace(state="shadowed", detail=detail)
                found[skill.file] = skill
        return list(found.values())

    def find(self, name: str, offered: bool = False) -> Skill:
        """A skill by its name or ref; of several, the one that is offered. `offered`: no other will do."""
        wanted = re.sub("[_ ]", "-", name.strip().removeprefix("skill:").partition("#")[0].strip().lower())
        skills = sorted(self.all(), key=lambda skill: skill.state != "offered")
        for skill in skills:
            if skill.name.lower() == wanted:
                if offered and skill.state != "offered":
                    raise InvalidInputError(f"the skill {skill.name} is not offered: {skill.detail}")
                return skill
        close = get_close_matches(wanted, [skill.name for skill in skills], cutoff=0.4)
        hint = f"did you mean {', '.join(dict.fromkeys(close))}?" if close else "`co skill` lists them"
        raise InvalidInputError(f"there is no skill {name.strip()!r}: {hint}")

    def open(self, skill: Skill) -> tuple[Note, list[str]]:
        """A skill as its file is now, and the other files in its folder (the first 100, without hidden ones)."""
        data = NoteStore(skill.origin.root).read(skill.inside)
        try:
            note = adapter_of(skill.origin).read(skill.origin, skill.inside, data)
        except NotTextError as error:
            raise InvalidInputError(f"{skill.path} is not a skill: {error}") from None
        return note, list(islice(_files(os.path.dirname(skill.file)), MOST_FILES))

    def _read_folder(self, level: Level, place: str, origin: Origin) -> Iterator[Skill]:
        """What is in a folder, by path: now, or when it could last be read."""
        index = self._vault.index.of(origin)
        with suppress(VaultError):
            index.sync(seconds=5.0)  # a slow embedding provider continues at the next call
        unread, broken = index.notes.reported()
        problems = dict(broken)
        manual = {row.path for row in index.notes.docs(Filters(fields=((MANUAL, "true"),)))}
        described = {row.path: row.description for row in index.notes.docs() if row.missing is None}
        problems |= {inside: reason for inside, reason in unread if inside not in described}  # binary, or too large
        for inside in sorted({*described, *problems}):
            name, path = folder_name(origin, inside), os.path.join(place, *inside.split("/"))
            state, detail = "offered", ""
            if inside in problems:
                state, detail = "invalid", f"{path}: {problems[inside]}"
            elif inside in manual:
                state, detail = "manual", f"`{MANUAL}: true` keeps it for people to call"
            yield Skill(name, described.get(inside, ""), level, path, state, detail, origin, inside)


def _project_folders(vault: str, start: str, home: str) -> list[str]:
    """The folders from `start` up to the root of the project, which is last; none in the home itself.

    The project is the vault's, as MCP clients start servers in any folder; else that of `start`.
    """
    above = [start, *map(str, Path(start).parents)]
    root = os.path.realpath(project_of(vault) or home)
    if root != home:
        return above[: above.index(root) + 1] if root in above else [root]
    folders: list[str] = []
    for folder in above:
        if folder == home:  # a home is not a project, and nothing above it is
            break
        folders.append(folder)
        if any(os.path.exists(os.path.join(folder, mark)) for mark in (".git", PROJECT_FOLDER)):
            return folders
    return folders[:1]


def _links(folder: str) -> list[str]:
    """Links in a folder of skills that lead to a skill or to another such folder."""
    links = (entry for entry in sorted(Path(folder).glob("[!.]*")) if entry.is_symlink())
    return [str(link) for link in links if any(any(link.glob(f"{depth}{SKILL_FILE}")) for depth in ("", "*/"))]


def _files(folder: str) -> Iterator[str]:
    """The other files of a skill, without hidden ones; links to folders are not followed."""
    for place, folders, names in os.walk(folder):
        folders[:] = sorted(name for name in folders if not name.startswith(".") and f"{name}/" not in HEAVY)
        for name in sorted(names):
            path = os.path.relpath(os.path.join(place, name), folder).replace(os.sep, "/")
            if not name.startswith(".") and path != SKILL_FILE:
                yield path


def _is_inside(path: str, folder: str | None) -> bool:
    return folder is not None and is_inside(os.path.realpath(path), folder)
