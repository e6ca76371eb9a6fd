"""Skills: where they are, which of them agents are offered, and how one is found and loaded.

Each folder of skills is an origin in search.db, synced whenever skills are used. An ordinary search leaves them out, so
that a thousand skills do not bury a person's notes. Of two skills of one name, the project's comes before the user's,
and that before those of configured folders. A skill that breaks a rule of the format is listed and never offered.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from dataclasses import replace
from difflib import get_close_matches
from itertools import islice, takewhile
from pathlib import Path
from typing import TYPE_CHECKING, Literal, NamedTuple

from co_cli.errors import IndexUnavailableError, InvalidInputError, VaultError
from co_cli.notes.note import Note, NotTextError
from co_cli.notes.store import NoteStore
from co_cli.paths import PROJECT_FOLDER, find_project
from co_cli.retrieval.pipeline import SearchRequest
from co_cli.service.origins import SourceState
from co_cli.service.searching import LARGEST_LIMIT, Options, find, read_request
from co_cli.sources.origin import Origin, kind_of
from co_cli.sources.skill_format import HEAVY, SKILL_FILE, folder_name
from co_cli.values import Filters, Searched, SearchResult

if TYPE_CHECKING:
    from co_cli.knowledge_base import KnowledgeBase

Level = Literal["project", "user", "configured"]
State = Literal["offered", "manual", "shadowed", "invalid"]

PLACES = (os.path.join(".agents", "skills"), os.path.join(".claude", "skills"))
ROOT_MARKS = (".git", PROJECT_FOLDER)
MANUAL = "disable-model-invocation"
MANUAL_DETAIL = f"`{MANUAL}: true` keeps it for people to call"
"""A field that some agents know."""
EMBEDDING = 5.0
"""Seconds that a slow embedding provider may take for new skills; the next call continues."""
WIDER, ALIKE = 4, 0.6
"""How many times the limit is searched, and the share of words from which two descriptions count as the same."""
MAX_FILES = 100


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


class LoadedSkill(NamedTuple):
    """A skill as its file is now, with the names of the other files in its folder."""

    skill: Skill
    note: Note
    files: list[str]
    more_files: bool


class Skills:
    """The skills that one knowledge base can use. Safe to share between threads."""

    def __init__(self, kb: KnowledgeBase, home: str | None = None) -> None:
        """The project is that of the vault or of the current folder; of `home`, if one is given."""
        self._kb = kb
        self._home = home or os.path.expanduser("~")
        self._project = _project_folders(kb.root, os.path.realpath(home or "."), os.path.realpath(self._home))

    def folders(self) -> tuple[list[tuple[Level, str, Origin]], list[tuple[str, str]]]:
        """Where skills are, by precedence: level, path and origin; and paths that are left out, with the reason."""
        root = self._project[-1] if self._project else None
        named, added = self._kb.settings.skill_folders, {origin.root: origin for origin in self._added()}
        wanted: list[tuple[Level, str]] = [
            *(("project", os.path.join(folder, place)) for folder in self._project for place in PLACES),
            *(("project", path) for path in named if _is_inside(path, root)),
            *(("user", os.path.join(self._home, place)) for place in PLACES),
            *(("configured", path) for path in (*named, *added) if not _is_inside(path, root)),
        ]
        found: list[tuple[Level, str, Origin]] = []
        missing = "the setting skill_folders names it, and it is not there"
        left_out = [(path, missing) for path in named if not os.path.isdir(path)]
        for level, path in wanted:
            for place in (path, *_links(path)):
                real = os.path.realpath(place)
                if level == "project" and not _is_inside(real, root):
                    left_out += [(place, "a link out of the project, not followed")] if os.path.isdir(real) else []
                elif os.path.isdir(real) and not any(_is_inside(real, origin.root) for _, _, origin in found):
                    found.append((level, place, added.get(real) or _origin_at(real, os.path.basename(place))))
        return found, left_out

    def there(self) -> bool:
        """Whether agents are offered any. Without a usable index there are none."""
        try:
            return any(skill.state == "offered" for skill in self.all())
        except IndexUnavailableError:
            return False

    def all(self) -> list[Skill]:
        """Every skill by precedence and name, also those that are not offered."""
        found: dict[str, Skill] = {}
        first: dict[str, Skill] = {}
        for level, place, origin in self.folders()[0]:
            skills = sorted(self._read_folder(level, place, origin), key=lambda skill: skill.inside)
            parents = {skill.inside.rpartition("/")[0] for skill in skills}
            for skill in skills:
                if skill.file in found or any(str(one) in parents for one in Path(skill.inside).parents[1:-1]):
                    continue  # found through another folder, or part of another skill
                before = first.get(skill.name)
                if before and skill.state != "invalid":
                    detail = f"{before.path} comes first ({before.level} before {level})"
                    skill = skill._replace(state="shadowed", detail=detail)
                elif skill.state != "invalid":
                    first[skill.name] = skill
                found[skill.file] = skill
        return list(found.values())

    def states(self) -> list[SourceState]:
        """A row of `co source list` for each folder that has any; one that was added has a row there already."""
        added, skills = self._added(), self.all()
        rows: list[SourceState] = []
        for origin in dict.fromkeys(skill.origin for skill in skills if skill.origin not in added):
            broken = [skill.state == "invalid" for skill in skills if skill.origin == origin]
            rows.append(SourceState("skill", origin.root, broken.count(False), 0, 0, sum(broken), 0, None, True))
        return rows

    def search(self, query: str, limit: int = 3) -> tuple[list[tuple[Skill, float]], SearchResult]:
        """Skills for a task with their scores, best first, and the search result that they come from."""
        options = Options(limit=min(limit * WIDER, LARGEST_LIMIT), sources=("skill",))
        offered, result = self._search(read_request(self._kb, query, options))
        found = [(offered[hit.path], hit.score) for hit in result.hits if hit.score > 0]
        return _varied(found)[:limit], result._replace(hits=result.hits[:limit])

    def search_sources(self, request: SearchRequest) -> SearchResult:
        """A search of several sources, among them skills that are offered."""
        return self._search(request)[1]

    def load(self, name: str) -> LoadedSkill:
        """The skill of this name that agents are offered."""
        skill = self.find(name)
        if skill.state != "offered":
            raise InvalidInputError(f"the skill {skill.name} is not offered: {skill.detail}")
        return self.open(skill)

    def find(self, name: str) -> Skill:
        """A skill by its name or ref: the one that is offered, if there is one of that name."""
        wanted = re.sub("[_ ]", "-", name.strip().removeprefix("skill:").partition("#")[0].strip().lower())
        skills = sorted(self.all(), key=lambda skill: skill.state != "offered")
        for skill in skills:
            if skill.name.lower() == wanted:
                return skill
        close = get_close_matches(wanted, {skill.name for skill in skills if skill.state == "offered"}, cutoff=0.4)
        hint = f"did you mean {', '.join(close)}?" if close else "`co skill` lists them"
        raise InvalidInputError(f"there is no skill {name.strip()!r}: {hint}")

    def open(self, skill: Skill) -> LoadedSkill:
        """Read a skill from its file."""
        try:
            data = NoteStore(skill.origin.root).read(skill.inside)
            note = kind_of(skill.origin).read(skill.origin, skill.inside, data)
        except NotTextError as error:
            raise InvalidInputError(f"{skill.path} is not a skill: {error}") from None
        files = list(islice(_files(os.path.dirname(skill.file)), MAX_FILES + 1))
        return LoadedSkill(skill, note, files[:MAX_FILES], len(files) > MAX_FILES)

    def _read_folder(self, level: Level, place: str, origin: Origin) -> list[Skill]:
        """What is in a folder now."""

        def skill(inside: str, description: str, problem: str | None, manual: bool = False) -> Skill:
            path = os.path.join(place, *inside.split("/"))
            state: State = "invalid" if problem else "manual" if manual else "offered"
            detail = f"{path}:{problem.removeprefix('line ')}" if problem else MANUAL_DETAIL if manual else ""
            return Skill(folder_name(origin, inside), description, level, path, state, detail, origin, inside)

        index = self._kb.index.of(origin)
        try:
            skipped = index.sync(seconds=EMBEDDING).skipped
        except VaultError as error:
            return [skill(SKILL_FILE, "", f"line 1: {error}")]
        problems = dict(index.reported()[1])
        manual = {row.path for row in index.docs(Filters(fields=((MANUAL, "true"),)))}
        rows = [row for row in index.docs() if row.missing is None]
        skills = [skill(row.path, row.description, problems.get(row.path), row.path in manual) for row in rows]
        return skills + [skill(path, "", f" {reason}") for path, reason in skipped]

    def _search(self, request: SearchRequest) -> tuple[dict[str, Skill], SearchResult]:
        """Offered skills by their file, and the result of the search."""
        kb, skills = self._kb, self.all()
        offered = {skill.file: skill for skill in skills if skill.state == "offered"}
        alone = all(source == "skill" for source in request.filters.sources)
        origins = [*dict.fromkeys(skill.origin for skill in skills), *([] if alone else [kb.index.origin])]
        if not origins:
            return offered, SearchResult(request.query, "absent", [], request.backend, Searched(0, 0, None), [], 0.0)
        index = kb.index.of(origins[0])
        index.linked = [*origins[1:], *([] if alone else kb.index.linked)]
        # skills that are not offered are found, too, and left out
        limit = min(request.limit + len(skills) - len(offered), LARGEST_LIMIT)
        result, _ = find(kb, index, replace(request, limit=limit), None if alone else kb.unsynced)
        hits = [hit for hit in result.hits if hit.source != "skill" or hit.path in offered]
        return offered, result._replace(hits=hits[: request.limit])

    def _added(self) -> list[Origin]:
        """Folders that `co add --as skill` made a source of this vault."""
        return [origin for origin in self._kb.sources.all() if origin.kind == "skill"]


def _project_folders(vault: str, start: str, home: str) -> list[str]:
    """The folders from `start` up to the root of the project, which is last; none in the home itself.

    The project is that of the vault, else that of `start`. A home is not a project, and nothing above a root counts.
    """
    folders = [start, *map(str, Path(start).parents)]
    root = os.path.realpath(find_project(vault) or home)
    if root == home:
        below = [*takewhile(lambda folder: folder != home, folders)]
        marked = (folder for folder in below if any(os.path.exists(os.path.join(folder, mark)) for mark in ROOT_MARKS))
        return below[: below.index(next(marked, start)) + 1] if below else []
    return folders[: folders.index(root) + 1] if root in folders else [root]


def _links(folder: str) -> list[str]:
    """Links in a folder of skills that lead to a skill or to another such folder."""
    links = (entry for entry in sorted(Path(folder).glob("[!.]*")) if entry.is_symlink())
    return [str(link) for link in links if any(any(link.glob(f"{depth}{SKILL_FILE}")) for depth in ("", "*/"))]


def _origin_at(real: str, name: str) -> Origin:
    is_skill = os.path.isfile(os.path.join(real, SKILL_FILE))
    return Origin("skill", real, name, SKILL_FILE) if is_skill else Origin("skill", real)


def _is_inside(path: str, folder: str | None) -> bool:
    return folder is not None and Path(os.path.realpath(path)).is_relative_to(folder)


def _varied(found: list[tuple[Skill, float]]) -> list[tuple[Skill, float]]:
    """Skills that say nearly the same as a better one go last: one job for forty products is one answer."""
    first: list[tuple[Skill, float]] = []
    last: list[tuple[Skill, float]] = []
    descriptions: list[set[str]] = []
    for one in found:
        words = set(re.findall(r"\w+", one[0].description.casefold()))
        if any(len(words & others) >= ALIKE * len(words | others) for others in descriptions):
            last.append(one)
        else:
            first.append(one)
            descriptions.append(words)
    return first + last


def _files(folder: str) -> Iterator[str]:
    """The other files of a skill, without hidden ones; links are not followed."""
    for place, folders, names in os.walk(folder):
        folders[:] = sorted(name for name in folders if not name.startswith(".") and f"{name}/" not in HEAVY)
        for name in sorted(names):
            path = os.path.relpath(os.path.join(place, name), folder).replace(os.sep, "/")
            if not name.startswith(".") and path != SKILL_FILE:
                yield path
