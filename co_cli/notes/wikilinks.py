"""Find the links in a note, and the note that each means, as Obsidian resolves it: by name, in any folder.

An exact path from the root comes first, then a path that ends in the target: below the linking note's folder before
elsewhere, shorter before longer. `./` and `../` are relative to that folder, `/` is the root. Case is ignored. A link
that is no path to a file means the note with this title, else the one with this alias.
"""

from __future__ import annotations

import os
import posixpath
import re
from collections.abc import Collection, Sequence

from co_cli.notes.markdown import CODE, LINK
from co_cli.notes.refs import ENDINGS, name_key

WIKILINK = re.compile(r"\[\[([^\[\]|\n]+)(?:\|([^\[\]\n]*))?\]\]")
NOT_A_NOTE = r"(?i)[a-z][a-z0-9+.-]*:|#|//"


def find_links(body: str) -> tuple[str, ...]:
    """The targets of `[[wikilinks]]` and of Markdown links to other files, in order, once each."""
    if "](" not in body and "[[" not in body:
        return ()
    text = re.sub(CODE, " ", body)
    targets = [found[1].split("#")[0].strip() for found in WIKILINK.finditer(text)]
    for found in re.finditer(LINK, text):
        if not re.match(NOT_A_NOTE, found[1]):
            targets.append(_unquoted(found[1].split("#")[0]))
    return tuple(dict.fromkeys(target for target in targets if target))


def link_key(target: str) -> str:
    """What a link target and the path of its note have in common: the name without folders and `.md`."""
    return name_key(_bare(target).rsplit("/", 1)[-1])


def resolve_link(target: str, linking: str, namesakes: Sequence[str]) -> str | None:
    """The path that a link in the note `linking` means, among `namesakes` with its key; None if there is none."""
    asked = _bare(target)
    folder = posixpath.dirname(linking)
    if asked.startswith(("./", "../")):
        return _exact(posixpath.normpath(posixpath.join(folder, asked)), namesakes)
    if asked.startswith("/"):
        return _exact(asked.lstrip("/"), namesakes)
    exact = _exact(asked, namesakes)
    if exact is not None:
        return exact
    tail = "/" + name_key(asked)
    ending = [path for path in namesakes if name_key("/" + _bare(path)).endswith(tail)]
    return _nearest(ending, linking)


class LinkTargets:
    """The notes that links may mean: by file name, else by title, else by alias."""

    def __init__(self) -> None:
        self._files: dict[str, set[str]] = {}
        self._titles: dict[str, set[str]] = {}
        self._aliases: dict[str, set[str]] = {}

    def add(self, path: str, title: str, aliases: Sequence[str]) -> None:
        self._files.setdefault(link_key(path), set()).add(path)
        self._titles.setdefault(name_key(title.strip()), set()).add(path)
        for alias in aliases:
            self._aliases.setdefault(name_key(alias.strip()), set()).add(path)

    def resolve(self, target: str, linking: str) -> str | None:
        """The path that a link in the note `linking` means; None if there is none."""
        path = resolve_link(target, linking, sorted(self._files.get(link_key(target), ())))
        if path is not None or target.lower().endswith(ENDINGS) or target.startswith(("./", "../", "/")):
            return path
        name = name_key(_bare(target))
        return _nearest(self._titles.get(name) or self._aliases.get(name) or (), linking)


class Attachments:
    """The files of a folder that notes may link to: pictures, PDFs, drawings. The folder is walked when needed."""

    def __init__(self, root: str) -> None:
        self._root = root
        self._names: dict[str, str] | None = None

    def find(self, target: str, linking: str) -> str | None:
        """The path that a link in the note `linking` means: from its folder, from the root, or by name."""
        target = target.replace("\\", "/").strip("/")
        if not target or "\0" in target:
            return None
        places = (os.path.join(os.path.dirname(linking), target), target)
        found = next(filter(self._inside, map(os.path.normpath, places)), None)
        return self._all().get(name_key(target)) if found is None and "/" not in target else found

    def has(self, target: str, linking: str) -> bool:
        return self.find(target, linking) is not None

    def _inside(self, path: str) -> bool:
        return not path.startswith(("..", os.sep)) and os.path.exists(os.path.join(self._root, path))

    def _all(self) -> dict[str, str]:
        """Every file by its name; of several the one nearest to the root."""
        if self._names is None:
            self._names = {}
            for folder, folders, files in os.walk(self._root):
                folders[:] = sorted(name for name in folders if not name.startswith("."))
                for name in files:
                    path = os.path.relpath(os.path.join(folder, name), self._root)
                    known = self._names.setdefault(name_key(name), path)
                    if path.count(os.sep) < known.count(os.sep):
                        self._names[name_key(name)] = path
        return self._names


def _nearest(paths: Collection[str], linking: str) -> str | None:
    folder = posixpath.dirname(linking)
    inside = f"{folder}/" if folder else ""
    return min(paths, key=lambda path: (not path.startswith(inside), len(path), path), default=None)


def _exact(asked: str, namesakes: Sequence[str]) -> str | None:
    wanted = name_key(asked)
    return next((path for path in sorted(namesakes) if name_key(_bare(path)) == wanted), None)


def _bare(path: str) -> str:
    """Without the file ending, and without the heading or block of a link."""
    path = path.partition("#")[0].strip()
    for ending in ENDINGS:
        if path.lower().endswith(ending):
            return path[: -len(ending)]
    return path


def _unquoted(target: str) -> str:
    if "%" not in target:
        return target
    from urllib.parse import unquote  # rare, and slow to import

    return unquote(target)
