"""Bundles of the Open Knowledge Format, version 0.2: notes as its concepts, with listings, and back.

Every field of a note stays, and so does every field of a concept. Added are those that OKF requires or knows under
another name: `type`, `generated`, `sources` and `stale_after`.
"""

from __future__ import annotations

import posixpath
from collections.abc import Iterator
from itertools import count

from co_cli.ground.errors import FrontmatterError
from co_cli.ground.values import OWN_SOURCES, moment_text
from co_cli.importers.archive import Export
from co_cli.importers.folders import read_obsidian
from co_cli.importers.items import Entry, first_text, skipped
from co_cli.notes.editing import set_fields
from co_cli.notes.encoding import UTF_16, decode
from co_cli.notes.frontmatter import read_frontmatter
from co_cli.notes.note import Note, generated_at, read_note
from co_cli.notes.refs import FOLDERS, name_key
from co_cli.sources.folder import BUNDLE_LISTINGS
from co_cli.version import __version__

VERSION = "0.2"
LISTING, LOG = BUNDLE_LISTINGS
NoteFile = tuple[str, bytes, float]


def bundle_of(files: Iterator[NoteFile], taken: set[str], failures: list[str]) -> Iterator[NoteFile]:
    """The files of a bundle: each note as a concept, a listing for each folder, and a log of what was created when.

    `taken` has the keys of the names of all notes. A note that cannot be a concept is added to `failures`.
    """
    folders: dict[str, list[Note]] = {"": []}
    latest = 0.0
    for path, data, modified in files:
        folder, name = posixpath.split(path)
        if data.startswith(UTF_16):
            data = decode(data)[0].encode()
        note = read_note(_free_path(path, taken) if name.lower() in BUNDLE_LISTINGS else path, data)
        try:
            concept = _concept(note, data, modified)
        except FrontmatterError as error:
            problem = error.problem.rpartition("; ")[0]
            failures.append(f"{path}: line {error.line}: {problem}; fix it, then export again")
            continue
        while folder not in folders:
            folders[folder] = []
            folder = posixpath.dirname(folder)
        folders[posixpath.dirname(path)].append(note)
        latest = max(latest, modified)
        yield note.path, concept, modified
    for folder in sorted(folders):
        below = sorted(name for name in folders if name and posixpath.dirname(name) == folder)
        yield posixpath.join(folder, LISTING), _listing(folder, folders[folder], below), latest
    yield LOG, _log([note for notes in folders.values() for note in notes]), latest


def _free_path(path: str, taken: set[str]) -> str:
    """Where a note goes whose name OKF keeps for its listings: a name that no other note has, in any case."""
    names = (f"{path[:-3]}-note{'' if number == 1 else f'-{number}'}.md" for number in count(1))
    free = next(name for name in names if name_key(name) not in taken)
    taken.add(name_key(free))
    return free


def _concept(note: Note, data: bytes, modified: float) -> bytes:
    known = note.metadata
    by = "human:owner" if note.provenance == "user" else f"co-cli/{__version__}"
    written = generated_at(known)
    edited = written is not None and note.updated is not None and note.updated > written
    changed = max(filter(None, (note.updated, note.created)), default=modified)
    fields: dict[str, object] = {"type": note.source, "generated": {"by": by, "at": moment_text(changed)}}
    if address := note.metadata.get("source_url") or note.metadata.get("url"):
        fields["sources"] = [{"resource": str(address), "title": note.title}]
    if (ends := note.valid[1]) and not note.deprecated:
        fields["stale_after"] = moment_text(ends)
    missing = {name: value for name, value in fields.items() if name not in known or (edited and name == "generated")}
    text = data.decode("utf-8", "surrogateescape")
    return set_fields(text, missing, note.path).encode("utf-8", "surrogateescape")


def _listing(folder: str, notes: list[Note], below: list[str]) -> bytes:
    lines = [] if folder else ["---", f'okf_version: "{VERSION}"', "---", ""]
    lines += [f"# {posixpath.basename(folder).capitalize() or 'Notes'}", ""]
    lines += [f"* [{posixpath.basename(name)}]({posixpath.basename(name)}/)" for name in below]
    for note in sorted(notes, key=lambda note: note.path):
        about = f" - {note.description}" if note.description else ""
        lines.append(f"* [{_plain(note.title)}](<{posixpath.basename(note.path)}>){about}")
    return "\n".join([*lines, ""]).encode()


def _log(notes: list[Note]) -> bytes:
    days: dict[str, list[str]] = {}
    for note in sorted(notes, key=lambda note: note.path):
        if note.created is not None:
            line = f"* **Creation**: [{_plain(note.title)}](</{note.path}>)"
            days.setdefault(moment_text(note.created)[:10], []).append(line)
    lines = ["# Log", ""]
    for day in sorted(days, reverse=True):
        lines += [f"## {day}", *days[day], ""]
    return "\n".join(lines).encode()


def _plain(title: str) -> str:
    return title.replace("[", "(").replace("]", ")")


def read_okf(export: Export) -> Iterator[Entry]:
    """Every concept, with all its fields: in a folder of the bundle's name, or where it was if a vault wrote it."""
    listings = [member for member in export.members if posixpath.basename(member.name).lower() in BUNDLE_LISTINGS]
    export.members = [member for member in export.members if member not in listings]
    for member in listings:
        yield skipped(member.name, "file", member.name, "a listing of the bundle")
    for file in read_obsidian(export):
        metadata = read_frontmatter(file.text).metadata
        kind = first_text(metadata, "type")
        place = file.id.partition("/")[2]
        home = next((kind for kind in OWN_SOURCES if place.startswith(f"{FOLDERS[kind]}/")), None)
        at = generated_at(metadata)
        file = file._replace(modified=file.modified if at is None else at)
        yield file._replace(path=place) if kind and kind == home else file
