"""Skills: where they are, which of them agents are offered, and how one is found and loaded.

Each folder of skills is an origin in search.db, synced whenever skills are used. An ordinary search leaves them out, so
that a thousand skills do not bury a person's notes. Of two skills of one name, the project's comes before the user's,
and that before those of configured folders. A skill that breaks a rule of the format is listed and never offered.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from difflib import get_close_matches
from itertools import islice, takewhile
from pathlib import Path
from typing import TYPE_CHECKING, Literal, NamedTuple

from co_cli.errors import IndexUnavailableError, InvalidInputError, VaultError
from co_cli.index.grep import read_origin
from co_cli.knowledge_index import KnowledgeIndex
from co_cli.notes.note import Note, NotTextError
from co_cli.notes.store import NoteStore
from co_cli.paths import PROJECT_FOLDER, find_project
from co_cli.retrieval.pipeline import SearchRequest
from co_cli.service.origins import SourceState
from co_cli.service.searching import LARGEST_LIMIT, Options, find, read_request
from co_cli.sources.origin import Origin, added_origins, kind_of
from co_cli.sources.skill_format import HEAVY, SKILL_FILE, folder_name
from co_cli.values import Filters, Searched, SearchResult

if TYPE_CHECKING:
    from co_cli.knowledge_base import KnowledgeBase

Level = Literal["project", "user", "configured"]
State = Literal["offered", "manual", "shadowed", "invalid"]

PLACES = (os.path.join(".agents", "skills"), os.path.join(".claude", "skills"))
ROOT_MARKS = (".git", PROJECT_FOLDER)
"""What the root of a project has."""
MANUAL = "disable-model-invocation"
"""A field that some agents know: its author keeps the skill for people to call."""
EMBEDDING = 5.0
"""Seconds that a slow embedding provider may take for new skills; the next call goes on."""
WIDER, ALIKE = 4, 0.6
"""How many times the limit is searched, and the share of words from which two descriptions count as the same."""
MAX_FILES = 100
"""Files of a skill that are listed."""


class SkillFolder(NamedTuple):
    """A folder of skills, or of one skill, and whose it is."""

    origin: Origin
    level: Level
    path: str
    """Before links are followed."""


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


class FoundSkills(NamedTuple):
    """Skills with their scores, best first; and how much was searched, and how sure the result is."""

    skills: list[tuple[Skill, float]]
    result: SearchResult


class LoadedSkill(NamedTuple):
    """A skill as its file is now, with the names of the other files in its folder."""

    skill: Skill
    note: Note
    files: list[str]
    more_files: bool


class SkillEntry(NamedTuple):
    """A SKILL.md in one of the folders."""

    inside: str
    description: str
    problem: str | None
    manual: bool


class Skills:
    """The skills that one knowledge base can use. Safe to share between threads."""

    def __init__(self, kb: KnowledgeBase, home: str | None = None) -> None:
        """The project is that of the vault or of the current folder; of `home`, if one is given."""
        self._kb = kb
        self._home = home or os.path.expanduser("~")
        try:
            start = home or os.getcwd()
        except FileNotFoundError:
            start = kb.root
        self._project = project_folders(kb.root, start, self._home)

    def folders(self) -> tuple[list[SkillFolder], list[tuple[str, str]]]:
        """Where skills are, by precedence; and paths that are left out, each with the reason."""
        settings, root = self._kb.settings, self._project[-1] if self._project else None
        found: list[SkillFolder] = []
        left_out: list[tuple[str, str]] = []
        wanted: list[tuple[Level, str]] = [
            *(("project", os.path.join(folder, place)) for folder in self._project for place in PLACES),
            *(("user", os.path.join(self._home, place)) for place in PLACES),
        ]
        for path in settings.skill_folders:
            wanted.append(("project" if _is_inside(os.path.realpath(path), root) else "configured", path))
            if not os.path.isdir(path):
                left_out.append((path, "the setting skill_folders names it, and it is not there"))
        order = ("project", "user", "configured")
        for level, path in sorted(wanted, key=lambda one: order.index(one[0])):
            if not os.path.isdir(path):
                continue
            outside = level == "project" and not _is_inside(os.path.realpath(path), root)
            for place in (path,) if outside else (path, *_links(path)):
                real = os.path.realpath(place)
                if level == "project" and not _is_inside(real, root):
                    left_out.append((place, "a link out of the project, not followed"))
                elif origin := _origin_at(real, place, place != path, found):
                    found.append(SkillFolder(origin, level, place))
        for origin in self._added():
            if all(folder.origin.root != origin.root for folder in found):
                found.append(SkillFolder(origin, "configured", origin.root))
        return found, left_out

    def there(self) -> bool:
        """Whether agents are offered any."""
        return any(skill.state == "offered" for skill in self.all())

    def all(self) -> list[Skill]:
        """Every skill by precedence and name, also those that are not offered."""
        return self._all()[0]

    def _all(self) -> tuple[list[Skill], IndexUnavailableError | None]:
        """The same, and why the index does not have all of them."""
        found: dict[str, Skill] = {}
        first: dict[str, Skill] = {}
        unsynced: IndexUnavailableError | None = None
        for folder in self.folders()[0]:
            entries, problem = self._entries(folder.origin)
            unsynced = unsynced or problem
            parents = {entry.inside.rpartition("/")[0] for entry in entries}
            for entry in sorted(entries):
                skill = _skill(folder, entry, first)
                part_of_another = any(str(parent) in parents for parent in Path(entry.inside).parents[1:-1])
                if skill.file in found or part_of_another:
                    continue
                found[skill.file] = skill
                if skill.state in ("offered", "manual"):
                    first[skill.name] = skill
        return list(found.values()), unsynced

    def states(self) -> list[SourceState]:
        """A row of `co source list` for each folder that has any; one that was added has a row there already."""
        skills = [skill for skill in self.all() if skill.origin not in self._added()]
        rows: list[SourceState] = []
        for origin in dict.fromkeys(skill.origin for skill in skills):
            broken = [skill.state == "invalid" for skill in skills if skill.origin == origin]
            notes = len(broken) - sum(broken)
            rows.append(SourceState("skill", origin.root, notes, 0, 0, sum(broken), 0, None, True))
        return rows

    def search(self, query: str, limit: int = 3) -> FoundSkills:
        """Skills for a task, best first."""
        wider = min(limit * WIDER, LARGEST_LIMIT)
        offered, result = self._search(read_request(self._kb, query, Options(limit=wider, sources=("skill",))))
        found = [(offered[hit.path], hit.score) for hit in result.hits if hit.score > 0]
        return FoundSkills(_varied(found)[:limit], result._replace(hits=result.hits[:limit]))

    def search_sources(self, request: SearchRequest) -> SearchResult:
        """A search of several sources, among them skills that are offered."""
        return self._search(request)[1]

    def _search(self, request: SearchRequest) -> tuple[dict[str, Skill], SearchResult]:
        """Offered skills by their file, and the result of the search."""
        kb, (skills, unsynced) = self._kb, self._all()
        offered = {skill.file: skill for skill in skills if skill.state == "offered"}
        origins = list(dict.fromkeys(skill.origin for skill in skills))
        alone = all(source == "skill" for source in request.filters.sources)
        if not alone:
            origins = [kb.index.origin, *kb.index.linked, *origins]
            unsynced = unsynced or kb.unsynced
        if not origins:
            return offered, SearchResult(request.query, "absent", [], request.backend, Searched(0, 0, None), [], 0.0)
        index = self._index(origins[0], origins[1:], () if alone else kb.settings.knowledge_exclude)
        # skills that are not offered are found, too, and left out
        limit = min(request.limit + len(skills) - len(offered), LARGEST_LIMIT)
        result, _ = find(kb, index, replace(request, limit=limit), unsynced)
        hits = [hit for hit in result.hits if hit.source != "skill" or hit.path in offered]
        result = result._replace(hits=hits[: request.limit])
        if alone:
            result = result._replace(searched=result.searched._replace(notes=len(offered), passages=len(offered)))
        return offered, result

    def load(self, name: str) -> LoadedSkill:
        """The skill of this name that agents are offered."""
        skill = self.find(name)
        if skill.state != "offered":
            raise InvalidInputError(f"the skill {skill.name} is not offered: {skill.detail}")
        return self.open(skill)

    def find(self, name: str) -> Skill:
        """A skill by its name or ref: the one that is offered, if there is one of that name."""
        wanted = name.strip().removeprefix("skill:").split("#", 1)[0].strip().lower()
        wanted = wanted.replace("_", "-").replace(" ", "-")
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

    def _entries(self, origin: Origin) -> tuple[list[SkillEntry], IndexUnavailableError | None]:
        """What is in a folder now: from the index after a sync; else from the files, and why."""
        try:
            index = self._index(origin)
            report = index.sync(seconds=EMBEDDING)
            problems = dict(index.reported()[1])
            manual = {row.path for row in index.docs(Filters(fields=((MANUAL, "true"),)))}
            rows = [row for row in index.docs() if row.missing is None]
            entries = [
                SkillEntry(row.path, row.description, problems.get(row.path), row.path in manual) for row in rows
            ]
            return entries + [SkillEntry(path, "", reason, False) for path, reason in report.skipped], None
        except VaultError as error:
            return [SkillEntry(SKILL_FILE, "", f"line 1: {error}", False)], None
        except Exception as error:
            reason = error if isinstance(error, IndexUnavailableError) else self._kb.index.damage_behind(error)
            if reason is None:
                raise
        read = read_origin(origin, (), self._kb.settings.knowledge_max_note_bytes)
        return [
            SkillEntry(note.path, note.description, note.problem, note.metadata.get(MANUAL) is True) for note, _ in read
        ], reason

    def _index(self, origin: Origin, linked: Sequence[Origin] = (), exclude: Sequence[str] = ()) -> KnowledgeIndex:
        kb = self._kb
        limit = kb.settings.knowledge_max_note_bytes
        index = KnowledgeIndex(kb.engine, origin, embedders=kb.embedders, exclude=exclude, max_note_bytes=limit)
        index.linked = linked
        index.on_change = kb.index.on_change  # a skill has versions like any other note
        return index

    def _added(self) -> list[Origin]:
        """Folders that `co add --as skill` made a source of this vault."""
        added = added_origins(self._kb.settings.data_dir, self._kb.root)
        return [origin for origin in added if origin.kind == "skill"]


def project_folders(vault: str, start: str, home: str) -> list[str]:
    """The folders from `start` up to the root of the project, which is last; none outside of a project.

    The project is that of the vault, else that of `start`. A home is not a project, and nothing above a root counts.
    """
    home, start = os.path.realpath(home), os.path.realpath(start)
    folders = [start, *map(str, Path(start).parents)]
    root = os.path.realpath(find_project(vault) or home)
    if root == home:
        below = takewhile(lambda folder: folder != home, folders)
        marked = (folder for folder in below if any(os.path.exists(os.path.join(folder, mark)) for mark in ROOT_MARKS))
        has_skills = start != home and any(os.path.isdir(os.path.join(start, place)) for place in PLACES)
        root = next(marked, start if has_skills else None)
    if root is None:
        return []
    return folders[: folders.index(root) + 1] if root in folders else [root]


def _origin_at(real: str, path: str, is_link: bool, found: Sequence[SkillFolder]) -> Origin | None:
    """A folder of skills, or what a link in one leads to: a skill or a collection that is not known yet."""
    if not is_link:
        return None if any(folder.origin.root == real for folder in found) else Origin("skill", real)
    if any(_is_inside(real, folder.origin.root) for folder in found):
        return None
    if os.path.isfile(os.path.join(real, SKILL_FILE)):
        return Origin("skill", real, os.path.basename(path), SKILL_FILE)
    return Origin("skill", real) if any(Path(real).glob(f"*/{SKILL_FILE}")) else None


def _links(path: str) -> list[str]:
    entries = [entry for entry in Path(path).glob("*") if entry.is_symlink() and entry.is_dir()]
    return sorted(str(entry) for entry in entries if not entry.name.startswith("."))


def _is_inside(path: str, folder: str | None) -> bool:
    return folder is not None and Path(path).is_relative_to(folder)


def _skill(folder: SkillFolder, entry: SkillEntry, first: dict[str, Skill]) -> Skill:
    path = os.path.join(folder.path, *entry.inside.split("/"))
    name = folder_name(folder.origin, entry.inside)
    state: State = "offered"
    detail = ""
    before = first.get(name)
    if entry.problem:
        line, _, problem = entry.problem.removeprefix("line ").partition(": ")
        numbered = entry.problem.startswith("line ") and line.isdigit()
        state, detail = "invalid", f"{path}:{line}: {problem}" if numbered else f"{path}: {entry.problem}"
    elif before:
        state, detail = "shadowed", f"{before.path} comes first ({before.level} before {folder.level})"
    elif entry.manual:
        state, detail = "manual", f"`{MANUAL}: true` keeps it for people to call"
    return Skill(name, entry.description, folder.level, path, state, detail, folder.origin, entry.inside)


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
