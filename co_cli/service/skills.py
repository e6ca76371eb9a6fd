"""Skills: find out which there are, find the one for a task, and load it. They are a source of their own.

Each folder of skills is an origin in search.db, synced when somebody asks: a walk when nothing changed. An ordinary
search does not see them, so that a thousand skills do not drown a person's notes. Of two skills of one name the one of
the project comes before the user's, and that before those of configured folders; one that breaks a rule of the format
is listed with the rule and never offered to an agent.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Literal, NamedTuple

from co_cli.errors import IndexUnavailableError, InvalidInputError, VaultError
from co_cli.knowledge_index import KnowledgeIndex
from co_cli.notes.note import Note, NotTextError
from co_cli.notes.store import NoteStore
from co_cli.retrieval.pipeline import SearchRequest
from co_cli.service.grep import read_origin
from co_cli.service.origins import SourceState
from co_cli.service.searching import Options, find, read_request
from co_cli.sources.origin import Origin, kind_of
from co_cli.sources.registry import origins_beside
from co_cli.sources.skill import HEAVY, SKILL_FILE, folder_name
from co_cli.sources.skill_folders import Level, Places, SkillFolder, find_places, has_skill, project_at
from co_cli.values import Filters, Searched, SearchResult

if TYPE_CHECKING:
    from co_cli.knowledge_base import KnowledgeBase

State = Literal["offered", "manual", "shadowed", "invalid"]

PREFIX = "skill:"
MANUAL = "disable-model-invocation"
"""A field that some agents know: its author keeps the skill for people to call."""
EMBEDDING = 5.0
"""Seconds that a slow embedding provider may take for skills that are new; the next call goes on."""
MOST_HITS = 1_000
WIDER, ALIKE = 4, 0.6
"""How many times what is wanted is looked at, and the share of words from which on two descriptions say the same."""
MOST_FILES = 100
"""Files of a skill that are listed."""


class Skill(NamedTuple):
    """One skill, and whether agents are offered it."""

    name: str
    description: str
    level: Level
    path: str
    """Its SKILL.md, as people find it."""
    state: State
    detail: str
    """Why it is not offered; nothing if it is."""
    origin: Origin
    inside: str
    """The path of its SKILL.md in that origin."""

    @property
    def file(self) -> str:
        """Its SKILL.md, with links followed."""
        return os.path.join(self.origin.root, *self.inside.split("/"))


class FoundSkills(NamedTuple):
    """What a search among skills says."""

    skills: list[tuple[Skill, float]]
    """Each with its score, best first."""
    result: SearchResult
    """How much was searched, and how sure it is."""


class LoadedSkill(NamedTuple):
    """A skill as its file says it now, with the names of its other files."""

    skill: Skill
    note: Note
    files: list[str]
    """Inside its folder, at most MOST_FILES."""
    more_files: bool


class Seen(NamedTuple):
    """A SKILL.md in one of the folders."""

    inside: str
    description: str
    problem: str | None
    manual: bool


class Skills:
    """The skills within reach of one knowledge base. Safe to share between threads."""

    def __init__(self, kb: KnowledgeBase, home: str | None = None) -> None:
        """`home` is the person's own, if nothing else is said. The project is that of the vault or of this folder."""
        self._kb = kb
        self._home = os.path.expanduser("~") if home is None else home
        try:
            start = os.getcwd() if home is None else home
        except FileNotFoundError:
            start = kb.root
        self._project = project_at(kb.root, start, self._home)

    def places(self) -> Places:
        """Where they lie now."""
        settings = self._kb.settings
        added = [one for one in origins_beside(settings.data_dir, self._kb.root) if one.kind == "skill"]
        return find_places(self._project, self._home, settings.skill_folders, added)

    def there(self) -> bool:
        """Is there any at all? Looks for files only."""
        return any(has_skill(folder.origin) for folder in self.places().folders)

    def offered(self) -> list[Skill]:
        """Those that agents may find and load."""
        return [skill for skill in self.all() if skill.state == "offered"]

    def all(self) -> list[Skill]:
        """Every skill by precedence and name, also those that are not offered."""
        return self._all()[0]

    def _all(self) -> tuple[list[Skill], IndexUnavailableError | None]:
        """The same, and why the index does not know all of them."""
        found: list[Skill] = []
        unsynced: IndexUnavailableError | None = None
        files: set[str] = set()
        first: dict[str, Skill] = {}
        for folder in self.places().folders:
            seen, problem = self._seen(folder)
            unsynced = unsynced or problem
            inside_of = {one.inside.rpartition("/")[0] for one in seen}
            for one in sorted(seen, key=lambda one: one.inside):
                skill = _skill(folder, one, first)
                if skill.file in files or _is_part(one.inside, inside_of):
                    continue
                files.add(skill.file)
                found.append(skill)
                if skill.state in ("offered", "manual"):
                    first[skill.name] = skill
        return found, unsynced

    def states(self) -> list[SourceState]:
        """A row of `co source list` for each folder that holds any; one that was added has a row there already."""
        added = set(origins_beside(self._kb.settings.data_dir, self._kb.root))
        found: dict[Origin, list[Skill]] = {}
        for skill in [skill for skill in self.all() if skill.origin not in added]:
            found.setdefault(skill.origin, []).append(skill)
        rows: list[SourceState] = []
        for origin, skills in found.items():
            broken = sum(skill.state == "invalid" for skill in skills)
            rows.append(SourceState("skill", origin.root, len(skills) - broken, 0, 0, broken, 0, None, True))
        return rows

    def search(self, query: str, limit: int = 3) -> FoundSkills:
        """Skills for a task, best first."""
        if not 1 <= limit <= MOST_HITS:
            raise InvalidInputError(f"limit is between 1 and {MOST_HITS}, not {limit}")
        request = read_request(self._kb, query, Options(limit=min(limit * WIDER, MOST_HITS), sources=("skill",)))
        offered, result = self._search(request)
        found = [(offered[hit.path], hit.score) for hit in result.hits if hit.score > 0]
        return FoundSkills(_one_a_kind(found)[:limit], result._replace(hits=result.hits[:limit]))

    def search_sources(self, request: SearchRequest) -> SearchResult:
        """A search of several sources, skills among them; of these the offered ones only."""
        return self._search(request)[1]

    def _search(self, request: SearchRequest) -> tuple[dict[str, Skill], SearchResult]:
        """Offered skills by their file, and what the search says."""
        kb, (skills, unsynced) = self._kb, self._all()
        offered = {skill.file: skill for skill in skills if skill.state == "offered"}
        origins = list(dict.fromkeys(skill.origin for skill in skills))
        alone = all(source == "skill" for source in request.filters.sources)
        if not alone:
            origins = [kb.index.origin, *kb.index.beside, *origins]
        if not origins:
            nothing = Searched(0, 0, None)
            return offered, SearchResult(request.query, "absent", [], request.backend, nothing, [], 0.0)
        # skills that are not offered are found, too, and left out
        most = min(request.limit + len(skills) - len(offered), MOST_HITS)
        index = self._index(origins[0], origins[1:], () if alone else kb.settings.knowledge_exclude)
        # nobody synced one of the folders, or the vault: then the files know better
        unsynced = unsynced or (None if alone else kb.unsynced)
        result, _ = find(kb, index, replace(request, limit=most), unsynced)
        result = result._replace(
            hits=[hit for hit in result.hits if hit.source != "skill" or hit.path in offered][: request.limit]
        )
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
        """A skill by its name or its ref: the one that is offered, if any of that name is."""
        wanted = name.strip().removeprefix(PREFIX).split("#", 1)[0].strip().lower().replace("_", "-").replace(" ", "-")
        skills = sorted(self.all(), key=lambda skill: skill.state != "offered")
        for skill in skills:
            if skill.name == wanted or skill.name.lower() == wanted:
                return skill
        from rapidfuzz import fuzz, process

        names = list(dict.fromkeys(skill.name for skill in skills if skill.state == "offered"))
        close = [found for found, *_ in process.extract(wanted, names, scorer=fuzz.WRatio, limit=3, score_cutoff=60)]
        known = f"did you mean {', '.join(close)}?" if close else "`co skill` lists those there are"
        raise InvalidInputError(f"there is no skill {name.strip()!r}: {known}")

    def open(self, skill: Skill) -> LoadedSkill:
        """Read a skill from its file."""
        try:
            data = NoteStore(skill.origin.root).read(skill.inside)
            note = kind_of(skill.origin).read(skill.origin, skill.inside, data)
        except NotTextError as error:
            raise InvalidInputError(f"{skill.path} is no skill: {error}") from None
        files = _files(os.path.dirname(skill.file))
        listed = [path for path, _ in zip(files, range(MOST_FILES), strict=False)]
        return LoadedSkill(skill, note, listed, next(files, None) is not None)

    # -- the index --------------------------------------------------------------------------------------------------

    def _seen(self, folder: SkillFolder) -> tuple[list[Seen], IndexUnavailableError | None]:
        """What lies in a folder now: from the index, which a sync brings up to date, else from the files, and why."""
        reason: IndexUnavailableError | None = None
        try:
            return self._indexed(self._index(folder.origin)), None
        except IndexUnavailableError as error:
            reason = error
        except VaultError as error:
            return [Seen(SKILL_FILE, "", f"line 1: {error}", False)], None
        except Exception as error:
            reason = self._kb.index.damage_behind(error)
            if reason is None:
                raise
        read = read_origin(folder.origin, (), self._kb.settings.knowledge_max_note_bytes)
        return [
            Seen(note.path, note.description, note.problem, note.metadata.get(MANUAL) is True) for note, _ in read
        ], reason

    def _indexed(self, index: KnowledgeIndex) -> list[Seen]:
        report = index.sync(seconds=EMBEDDING)
        problems = dict(index.reported()[1])
        manual = {row.path for row in index.docs(Filters(fields=((MANUAL, "true"),)))}
        seen = [
            Seen(row.path, row.description, problems.get(row.path), row.path in manual)
            for row in index.docs()
            if row.missing is None
        ]
        return seen + [Seen(path, "", reason, False) for path, reason in report.skipped]

    def _index(self, origin: Origin, beside: Sequence[Origin] = (), exclude: Sequence[str] = ()) -> KnowledgeIndex:
        kb = self._kb
        limit = kb.settings.knowledge_max_note_bytes
        index = KnowledgeIndex(kb.engine, origin, embedders=kb.embedders, exclude=exclude, max_note_bytes=limit)
        index.beside = beside
        return index


def _skill(folder: SkillFolder, seen: Seen, first: dict[str, Skill]) -> Skill:
    path = os.path.join(folder.path, *seen.inside.split("/"))
    name = folder_name(folder.origin, seen.inside)
    state: State = "offered"
    detail = ""
    before = first.get(name)
    if seen.problem:
        state, detail = "invalid", _with_line(path, seen.problem)
    elif before:
        state, detail = "shadowed", f"{before.path} comes first ({before.level} before {folder.level})"
    elif seen.manual:
        state, detail = "manual", f"`{MANUAL}: true` keeps it for people to call"
    return Skill(name, seen.description, folder.level, path, state, detail, folder.origin, seen.inside)


def _with_line(path: str, problem: str) -> str:
    """`…/SKILL.md:2: what is wrong`."""
    numbered = re.match(r"line (\d+): (.*)", problem, re.DOTALL)
    return f"{path}:{numbered[1]}: {numbered[2]}" if numbered else f"{path}: {problem}"


def _one_a_kind(found: list[tuple[Skill, float]]) -> list[tuple[Skill, float]]:
    """Those that say nearly the same as a better one wait behind: one job for forty products is one answer."""
    first: list[tuple[Skill, float]] = []
    waiting: list[tuple[Skill, float]] = []
    words: list[set[str]] = []
    for one in found:
        said = set(re.findall(r"\w+", one[0].description.casefold()))
        if any(len(said & others) >= ALIKE * len(said | others) for others in words):
            waiting.append(one)
        else:
            first.append(one)
            words.append(said)
    return first + waiting


def _is_part(inside: str, folders: set[str]) -> bool:
    """Does it lie in the folder of another skill, as an example of one may?"""
    folder = inside.rpartition("/")[0]
    while folder:
        folder = folder.rpartition("/")[0]
        if folder in folders:
            return True
    return False


def _files(folder: str) -> Iterator[str]:
    """The other files of a skill, without hidden ones; links are not followed."""
    for place, folders, names in os.walk(folder):
        folders[:] = sorted(name for name in folders if not name.startswith(".") and f"{name}/" not in HEAVY)
        for name in sorted(names):
            path = os.path.relpath(os.path.join(place, name), folder).replace(os.sep, "/")
            if not name.startswith(".") and path != SKILL_FILE:
                yield path
