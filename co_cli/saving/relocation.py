"""Move a note's file inside its vault, or give it another title, so that links to it and from it keep their meaning.

Only links that would no longer mean the note are written anew: a link by name survives a move to another folder.
"""

from __future__ import annotations

import contextlib
import posixpath
import re
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from functools import partial
from typing import NamedTuple
from urllib.parse import quote, unquote

from co_cli.ground.errors import KnowledgeError, NoteConflictError
from co_cli.ground.values import members_of
from co_cli.index.engine import ReadTransaction
from co_cli.index.links import Targets
from co_cli.index.names import fold_name
from co_cli.knowledge_index import KnowledgeIndex
from co_cli.notes.frontmatter import read_frontmatter
from co_cli.notes.markdown import CODE, LINK
from co_cli.notes.new_note import one_or_list
from co_cli.notes.note import Note, read_note
from co_cli.notes.refs import ENDINGS, name_key, without_ending
from co_cli.notes.revision import change_file
from co_cli.notes.store import NoteStore
from co_cli.notes.wikilinks import WIKILINK, link_key
from co_cli.vault.vault import Vault, sync_origin


class LinkingNote(NamedTuple):
    """A note with the links that a move may break: each target, and the path of the note that it means."""

    path: str
    meant: dict[str, str]


def move_note(vault: Vault, store: NoteStore, note: Note, path: str) -> list[str]:
    """Move a note to another path. Returns the paths of other notes whose links were changed.

    Raises NoteConflictError if there is a note already.
    """
    linking, successor = _links_around(vault, note), _successor(vault, note)
    with store.lock():
        if not store.move(note.path, path):
            raise NoteConflictError(f"{path} exists already; nothing was moved")
        if vault.authority:
            vault.index.forget_files([note.path])
            vault.index.index_file(None, path, embed=False)
    if not vault.authority:
        sync_origin(vault, vault.index.origin)  # it recognises a moved file, which keeps its history
    after = _meant(vault.index, [path if found.path == note.path else found.path for found in linking])
    rewritten = [found.path for found in linking if _retarget(store, found, (note.path, path), after)]
    changed = [path if linking_path == note.path else linking_path for linking_path in rewritten]
    if successor is not None:
        moved = read_note(path, store.read(path))
        changed += [successor] if _supersede_moved(store, successor, note.ref, moved.ref) else []
    for other in dict.fromkeys(changed):
        vault.index.index_file(None, other, embed=False)
    return [other for other in dict.fromkeys(changed) if other != path]


def retitle_links(vault: Vault, store: NoteStore, note: Note, before: str, link: str) -> list[str]:
    """Let links to a note that name it by an earlier title be `link`. Returns the paths of the notes that changed."""
    wanted = name_key(before.strip())
    changed: list[str] = []
    for linking in _links_around(vault, note):
        meant = {target for target, path in linking.meant.items() if path == note.path and name_key(target) == wanted}
        with store.lock(), contextlib.suppress(KnowledgeError):  # of a note that is gone, or that cannot be written
            data = store.read(linking.path)
            text = data.decode("utf-8", "surrogateescape")
            start = read_frontmatter(text).body
            body = _outside_code(text[start:], partial(_relinked, meant=meant, link=link))
            if body != text[start:]:
                store.replace(linking.path, (text[:start] + body).encode("utf-8", "surrogateescape"), data)
                changed.append(linking.path)
    for path in changed:
        vault.index.index_file(None, path, embed=False)
    return changed


def _relinked(text: str, meant: Collection[str], link: str) -> str:
    def named(found: re.Match[str]) -> str:
        target = found[1].split("#")[0].strip()
        return found[0].replace(target, link, 1) if target in meant else found[0]

    return WIKILINK.sub(named, text)


def names_in_use(index: KnowledgeIndex, note: Note) -> tuple[int, bool]:
    """How many notes link to one, and whether a link, or the note that supersedes it, names it by its title."""
    linking = index.notes.find("ref", *(link.ref for link in index.notes.links(note.path)[1]))
    title, by = name_key(note.title.strip()), index.notes.successors({note.ref: None}, time.time())[note.ref]
    by_title = any(name_key(target) == title for found in linking for target in found.links)
    for found in index.notes.find("ref", by) if by else ():
        by_title |= fold_name(note.title) in map(fold_name, map(str, members_of(found.frontmatter.get("supersedes"))))
    return len(linking), by_title and link_key(note.title) != link_key(note.path)


def _links_around(vault: Vault, note: Note) -> list[LinkingNote]:
    """The notes that link to a note, and the note itself with all of its links."""
    index = vault.working_index()
    if index is None:
        return []
    around = index.notes.find("ref", *(link.ref for link in index.notes.links(note.path)[1]))
    found: list[LinkingNote] = []
    for linking, meant in _meant(index, [*(other.path for other in around), note.path]).items():
        wanted = {target: path for target, path in meant.items() if note.path in (path, linking)}
        found.append(LinkingNote(linking, wanted))
    return found


def _meant(index: KnowledgeIndex, paths: Sequence[str]) -> dict[str, dict[str, str]]:
    """What the links of these notes mean: each target that is a note, and its path. One query for all of them."""
    notes = {note.path: note for note in index.notes.find("path", *paths)}

    def resolve(snapshot: ReadTransaction, origin_id: int) -> dict[str, dict[str, str]]:
        targets = Targets(snapshot, origin_id, [target for note in notes.values() for target in note.links])
        return {
            path: {target: found.path for target in note.links if (found := targets.resolve(target, path))}
            for path, note in notes.items()
        }

    return index.notes.read(resolve, dict[str, dict[str, str]]())


def _path(vault: Vault, ref: str) -> str | None:
    return next((note.path for note in vault.index.notes.find("ref", ref)), None)


def _retarget(
    store: NoteStore, linking: LinkingNote, move: tuple[str, str], meant: Mapping[str, Mapping[str, str]]
) -> bool:
    """Rewrite the links of a note that would mean something else now. False if there are none."""
    old, new = move
    here = new if linking.path == old else linking.path
    after = meant.get(here, {})
    wanted = {target: new if path == old else path for target, path in linking.meant.items()}
    # a file's path from the note's folder stays one, also where a search by name would find it: other programs read it
    lost = {
        target: path
        for target, path in wanted.items()
        if after.get(target) != path
        or (_joined(linking.path, target) == linking.meant[target] and _joined(here, target) != path)
    }
    if not lost:
        return False
    with store.lock(), contextlib.suppress(KnowledgeError):  # of a note that is gone, or that cannot be written
        data = store.read(here)
        text = data.decode("utf-8", "surrogateescape")
        start = read_frontmatter(text).body
        text = text[:start] + _rewritten(text[start:], lost, here)
        store.replace(here, text.encode("utf-8", "surrogateescape"), data)
        return True
    return False


def _joined(linking: str, target: str) -> str:
    return posixpath.normpath(posixpath.join(posixpath.dirname(linking), target))


def _rewritten(body: str, lost: Mapping[str, str], here: str) -> str:
    """The text with these targets replaced by paths: from the root in wikilinks, else from the note's folder."""

    def wiki(found: re.Match[str]) -> str:
        target = found[1].split("#")[0].strip()
        if target not in lost:
            return found[0]
        return found[0].replace(target, without_ending(lost[target]), 1)

    def markdown(found: re.Match[str]) -> str:
        target = found[1].split("#")[0]
        path = lost.get(unquote(target))
        return found[0] if path is None else found[0].replace(target, _relative(path, here, target), 1)

    return _outside_code(body, lambda part: re.sub(LINK, markdown, WIKILINK.sub(wiki, part)))


def _relative(path: str, here: str, target: str) -> str:
    found = quote(posixpath.relpath(path, posixpath.dirname(here)))
    return found if target.lower().endswith(ENDINGS) else without_ending(found)


def _outside_code(body: str, change: Callable[[str], str]) -> str:
    parts: list[str] = []
    at = 0
    for code in re.finditer(CODE, body):
        parts += [change(body[at : code.start()]), code[0]]
        at = code.end()
    return "".join((*parts, change(body[at:])))


def _successor(vault: Vault, note: Note) -> str | None:
    """The path of the note that supersedes one."""
    index = vault.working_index()
    by = index.notes.successors({note.ref: None}, time.time())[note.ref] if index else None
    return _path(vault, by) if by else None


def _supersede_moved(store: NoteStore, successor: str, old: str, new: str) -> bool:
    """Let the note that supersedes a moved one name it as it is called now."""
    if old not in read_note(successor, store.read(successor)).supersedes:
        return False  # by its title: an empty save would take the place of the move's number
    with store.lock():
        data = store.read(successor)
        names: Sequence[str] = read_note(successor, data).supersedes
        renamed = [new if name == old else name for name in names]
        return renamed != [*names] and change_file(store, successor, data, None, {"supersedes": one_or_list(renamed)})
