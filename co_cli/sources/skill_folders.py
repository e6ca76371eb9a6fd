"""Where skills lie: folders of the project one stands in, of one's home, and those that settings name.

Earlier ones win: project, then user, then configured. Links are common here (`~/.claude/skills/pdf` into a checkout),
so a link to a folder is followed once, where the person made it; in a project, which may be a stranger's, only as far
as it stays in there.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from typing import Literal, NamedTuple

from co_cli.paths import PROJECT_FOLDER, find_project
from co_cli.sources.origin import Origin
from co_cli.sources.skill import HEAVY, SKILL_FILE

Level = Literal["project", "user", "configured"]

PLACES = (os.path.join(".agents", "skills"), os.path.join(".claude", "skills"))
ROOT_MARKS = (".git", PROJECT_FOLDER)
"""What the root of a project has."""


class SkillFolder(NamedTuple):
    """A folder of skills, or of one alone, and whose it is."""

    origin: Origin
    level: Level
    path: str
    """As people find it: before links are followed."""


class Places(NamedTuple):
    """The folders in their order of precedence, and those that are left out, each with the reason."""

    folders: list[SkillFolder]
    left_out: list[tuple[str, str]]


class Project(NamedTuple):
    """A project: its root, and the folders from where one stands up to there."""

    root: str
    folders: list[str]


def project_at(vault: str, start: str, home: str) -> Project | None:
    """The project that the vault lies in, else that of the folder `start`. Nobody's home is a project.

    A folder above `start` counts only up to the root of its project: somebody else may have written further up.
    """
    home, folder = os.path.realpath(home), os.path.realpath(start)
    root = os.path.realpath(find_project(vault) or home)
    if root == home:
        root = _root_above(folder, home)
    if root is None:
        return None
    if not is_inside(folder, root):
        return Project(root, [root])
    folders = [folder]
    while folder != root:
        folder = os.path.dirname(folder)
        folders.append(folder)
    return Project(root, folders)


def find_places(
    project: Project | None, home: str, configured: Sequence[str] = (), added: Sequence[Origin] = ()
) -> Places:
    """`configured` are paths of the settings, `added` what was made a source of this vault."""
    found = Places([], [])
    owners: tuple[tuple[Level, list[str]], ...] = (("project", project.folders if project else []), ("user", [home]))
    for level, folders in owners:
        for path in (os.path.join(folder, place) for folder in folders for place in PLACES):
            if os.path.isdir(path):
                _take(found, path, level, project)
    for path in configured:
        inside = project is not None and is_inside(os.path.realpath(path), project.root)
        if os.path.isdir(path):
            _take(found, path, "project" if inside else "configured", project)
        else:
            found.left_out.append((path, "the setting skill_folders names it, and it is not there"))
    for origin in added:
        if all(folder.origin.root != origin.root for folder in found.folders):
            found.folders.append(SkillFolder(origin, "configured", origin.root))
    order: tuple[Level, ...] = ("project", "user", "configured")
    return found._replace(folders=sorted(found.folders, key=lambda folder: order.index(folder.level)))


def _take(found: Places, path: str, level: Level, project: Project | None) -> None:
    """A folder, and what links in it lead to. The same folder by another way is not taken twice."""
    real = os.path.realpath(path)
    reason = _refused(real, level, project)
    if reason:
        found.left_out.append((path, reason))
        return
    if all(folder.origin.root != real for folder in found.folders):
        found.folders.append(SkillFolder(Origin("skill", real), level, path))
    for link in _links(path):
        target = os.path.realpath(link)
        reason = _refused(target, level, project)
        if reason:
            found.left_out.append((link, reason))
        elif not any(is_inside(target, folder.origin.root) for folder in found.folders):
            if os.path.isfile(os.path.join(target, SKILL_FILE)):
                found.folders.append(
                    SkillFolder(Origin("skill", target, os.path.basename(link), SKILL_FILE), level, link)
                )
            elif _has_skills(target):
                found.folders.append(SkillFolder(Origin("skill", target), level, link))


def _refused(real: str, level: Level, project: Project | None) -> str | None:
    if level == "project" and project is not None and not is_inside(real, project.root):
        return "a link out of the project, not followed"
    return None


def _links(path: str) -> Iterator[str]:
    try:
        with os.scandir(path) as entries:
            links = [entry for entry in entries if entry.is_symlink() and not entry.name.startswith(".")]
    except OSError:
        return  # the walk of it meets the same error, and reports it
    for entry in sorted(links, key=lambda entry: entry.name):
        if os.path.isdir(entry.path):
            yield entry.path


def _has_skills(folder: str) -> bool:
    """Is it a collection? A link to anything else, such as somebody's home, is not walked."""
    try:
        with os.scandir(folder) as entries:
            return any(os.path.isfile(os.path.join(entry.path, SKILL_FILE)) for entry in entries)
    except OSError:
        return False


def has_skill(origin: Origin) -> bool:
    """Is there a SKILL.md anywhere in it?"""
    for _, folders, names in os.walk(origin.root):
        if SKILL_FILE in names:
            return True
        folders[:] = [name for name in folders if not name.startswith(".") and f"{name}/" not in HEAVY]
    return False


def _root_above(start: str, home: str) -> str | None:
    """The nearest folder at or above that is the root of a project; without one `start` alone, if it has skills."""
    folder = start
    while folder != home:
        if any(os.path.exists(os.path.join(folder, mark)) for mark in ROOT_MARKS):
            return folder
        parent = os.path.dirname(folder)
        if parent == folder:
            break
        folder = parent
    alone = start != home and any(os.path.isdir(os.path.join(start, place)) for place in PLACES)
    return start if alone else None


def is_inside(path: str, folder: str) -> bool:
    return path == folder or path.startswith(folder.rstrip(os.sep) + os.sep)
