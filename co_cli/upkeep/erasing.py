"""Erase a note for good: its file, its copies, and what every file of the data folder has about it.

A text in a log is about the note if it names it, or has one of its own words: those that no other note has. Turns of
conversations were said by people, so they lose a text only if most of it is about the note.
"""

from __future__ import annotations

import contextlib
import glob
import json
import os
import re
import shutil
from collections.abc import Collection, Iterable, Sequence
from dataclasses import replace
from typing import Any, NamedTuple, cast

from co_cli.activity.backup import backups
from co_cli.activity.database import FILE_NAME
from co_cli.activity.traces import earlier_paths, erase_traces
from co_cli.ground.errors import ActivityUnavailableError, GitError, InvalidInputError, NoteFileError, UnknownRefError
from co_cli.ground.paths import shell_line
from co_cli.ground.saves import Erased
from co_cli.index.sqlite.database_files import set_aside_before
from co_cli.index.tokens import STOP_WORDS
from co_cli.notes.encoding import NotTextError
from co_cli.notes.files import change_json, locked, read_bytes
from co_cli.notes.files import replace as replace_file
from co_cli.notes.git import repository_around
from co_cli.notes.note import Note, read_note
from co_cli.notes.properties import properties_of
from co_cli.notes.refs import lines_of, path_of, source_ref, without_ending
from co_cli.notes.store import TRASH
from co_cli.notes.transcripts import ERASED, SpokenTurn, read_turns
from co_cli.saving.writer import opened_tier
from co_cli.searching.as_of import FOLDER as AS_OF
from co_cli.vault.lookup import Lookup
from co_cli.vault.vault import Vault, sync_origin

WORD = re.compile(r"[^\W_]+")
SHORTEST = 3
"""Letters of a word that can be a note's own."""
ESCAPE = re.compile(r"\\u([0-9a-f]{4})")
WITH_LINES = ("co.log*", "chat-history", "sessions/*")
WITH_ENTRIES = ("answered-saves.json", "review.json")
REMOVED = ("last-search.json", "chat-conversation.json")
"""Files of the data folder that may have refs or texts: some lose lines, some lose entries, and the rest is deleted."""
ELSEWHERE = (
    "co cannot erase copies that you or coding agents made: delete exports and transcripts yourself, and replace "
    "backups in other folders with `co data backup FILE --overwrite`"
)


class Traces(NamedTuple):
    """What tells that a text is about a note."""

    names: re.Pattern[str]
    """Its refs and paths."""
    words: frozenset[str]
    """Words that no other note has."""
    texts: tuple[str, ...]
    """What it said, as words."""

    def has_name(self, text: str) -> bool:
        return bool(self.names.search(text))

    def has_words(self, text: str) -> bool:
        return not self.words.isdisjoint(words_in(text))

    def is_in(self, text: str) -> bool:
        text = ESCAPE.sub(lambda found: chr(int(found[1], 16)), text)
        return self.has_name(text) or self.has_words(text)

    def is_subject(self, text: str) -> bool:
        """Whether a text says what the note says, or has half of its words or consists of them by half."""
        said = [word for word in words_in(text) if len(word) >= SHORTEST and word not in STOP_WORDS]
        own = self.words.intersection(said)
        quoted = any(known in " ".join(words_in(text)) for known in self.texts if known.count(" ") >= SHORTEST)
        return quoted or (bool(own) and 2 * len(own) >= min(len(self.words), len(set(said))))


def words_in(text: str) -> list[str]:
    return WORD.findall(text.casefold())


def erase_note(vault: Vault, ref: str) -> Erased:
    """Erase a note of this vault or of another tier's, whether it is there or in the trash."""
    if vault.authority:
        raise InvalidInputError(
            "the notes of a team's vault are in git and on its servers: `co forget` the note, and then remove its file "
            "from the repository with `git filter-repo --invert-paths --path FILE`"
        )
    lookup = Lookup(vault)
    try:
        elsewhere = lookup.in_other_tier(ref)
        path, source = "", ""
        if elsewhere is None:
            note = lookup.open_own(ref, "erased")
            path, source = note.path, str(note.metadata.get("source") or "")
    except UnknownRefError as unknown:
        tier, _, rest = ref.partition(":")
        elsewhere = (tier, rest) if any(origin.tier == tier for origin in vault.linked) else None
        path, source = ("", "") if elsewhere else (_in_trash(lookup, ref, unknown), "")
    if elsewhere is not None:
        tier, ref = elsewhere
        with opened_tier(vault, tier) as other:
            gone = erase_note(other, ref)
        return replace(gone, ref=f"{tier}:{gone.ref}")
    return _erase(vault, path, source)


def _in_trash(lookup: Lookup, ref: str, unknown: UnknownRefError) -> str:
    try:
        return lookup.trashed_copy(ref)[1]
    except (InvalidInputError, UnknownRefError):
        raise unknown from None


def _erase(vault: Vault, path: str, source: str) -> Erased:
    sync_origin(vault, vault.index.origin)
    backlinks = vault.index.notes.links(path)[1]
    with vault.activity.written().writing() as connection:
        paths = [path, *earlier_paths(connection, vault.root, path)]
    texts, files = _remove_files(vault, paths)
    own = _own_words(vault, texts, paths)
    refs = [name for known in paths for name in (known, source_ref(known))]
    names = "|".join(map(re.escape, refs))
    body = tuple(" ".join(words_in(note.body)) for note in texts if note.body.strip())
    traces = Traces(re.compile(rf"(?:{names})(?![\w-])"), own, body)
    turns, talks, others = _erase_turns(vault, traces, source)
    files += _remove_files(vault, talks)[1] if talks else 0
    sync_origin(vault, vault.index.origin)  # listings of folders have names of files
    vault.activity.written()
    rows, left = _erase_rows(vault, traces, [*paths, *talks])
    rows += _erase_in_data_folder(vault.settings.data_dir, traces)
    left += [*filter(None, [vault.engine.erase()]), *_in_git(vault.root, [*paths, *talks])]
    linking = sorted({link.ref for link in backlinks} - {source_ref(talk) for talk in talks})
    left += [f"links to it are in {', '.join(linking)}: `co edit` changes them"] if linking else []
    left += [f"words of it are in {', '.join(others)}: `co forget --erase` erases these, too"] if others else []
    return Erased(source_ref(path), files, rows, turns, (*left, ELSEWHERE))


def _remove_files(vault: Vault, paths: Collection[str]) -> tuple[list[Note], int]:
    """Remove the files at these paths and their copies in the trash. Returns what they were, and how many."""
    store = vault.store
    with store.lock():
        for path in paths:
            if store.exists(path):
                store.trash(path)
        copies = [(kept, path) for kept, path in store.trashed() if path in paths]
        notes: list[Note] = []
        for kept, path in copies:
            with contextlib.suppress(NotTextError):
                notes.append(read_note(path, store.read(kept)))
            store.drop_kept(kept)
        vault.index.forget_files(paths)
    for kept, _ in copies:
        if os.path.lexists(store.absolute(kept)):
            raise NoteFileError(f"cannot delete {store.absolute(kept)}: delete it yourself, then repeat the command")
    return notes, len(copies)


def _own_words(vault: Vault, notes: Iterable[Note], paths: Sequence[str]) -> frozenset[str]:
    """The words of a note that no other one has, except conversations."""
    said = {word for note in notes for word in words_in(f"{note.title} {note.body} {note.tags} {note.also_known_as}")}
    said |= {word for note in notes for value in properties_of(note.metadata).values() for word in words_in(value)}
    said |= {word for path in paths for word in words_in(without_ending(path).rpartition("/")[2])}
    said = {word for word in said if len(word) >= SHORTEST and word not in STOP_WORDS}
    with vault.engine.reading() as snapshot:
        for origin in (vault.index.origin, *vault.linked):
            known = [note for note in vault.index.of(origin).notes.all() if note.source != "conversation"]
            for note in known:
                said.difference_update(words_in(f"{note.title} {note.ref} {note.frontmatter_json}"))
            for passage in snapshot.passages(notes=[note.id for note in known]).values():
                said.difference_update(words_in(passage.body))
    return frozenset(said)


def _erase_turns(vault: Vault, traces: Traces, source: str) -> tuple[int, list[str], list[str]]:
    """Blank the turns of conversations that are about a note, or that it was made from. Lines keep their numbers.

    Returns how many, the conversations of which nothing else is left or whose title is about the note, and those in
    which other turns have words of it.
    """
    count, whole, others = 0, list[str](), list[str]()
    made_from, lines = path_of(source), lines_of(source) or (0, -1)
    found = [note.path for note in vault.index.notes.all() if note.source == "conversation"]
    for path in (path for path in found if vault.store.exists(path)):
        with vault.store.lock():
            data = vault.store.read(path)
            note = read_note(path, data)
            turns = read_turns(note.body, note.body_line)
            gone = [
                turn
                for turn in turns
                if traces.is_subject(turn.text)
                or any(map(traces.has_name, (*turn.given, turn.text)))
                or (path == made_from and turn.line <= lines[1] and turn.last >= lines[0])
            ]
            count += len(gone)
            if traces.is_subject(note.title) or (gone and len(gone) == len(turns)):
                whole.append(path)
            elif gone:
                vault.store.replace(path, _blanked(data, gone), data)
                vault.index.index_file(None, path, embed=False)
        if path not in whole and any(traces.has_words(turn.text) for turn in turns if turn not in gone):
            others.append(source_ref(path))
    return count, whole, others


def _blanked(data: bytes, turns: Iterable[SpokenTurn]) -> bytes:
    text = data.decode("utf-8", "surrogateescape").split("\n")
    for turn in turns:
        head = " · ".join(part for part in text[turn.line - 1].split(" · ") if not part.startswith("given "))
        text[turn.line - 1 : turn.last] = [head, "", ERASED, *[""] * (turn.last - turn.line - 2)]
    return "\n".join(text).encode("utf-8", "surrogateescape")


def _erase_rows(vault: Vault, traces: Traces, paths: Collection[str]) -> tuple[int, list[str]]:
    """Delete rows of activity.db, its backups and copies that were set aside. Returns how many, and what is left."""
    live = os.path.join(vault.settings.data_dir, FILE_NAME)
    count, left = 0, list[str]()
    for file in (live, *backups(vault.settings.data_dir), *set_aside_before(live)):
        try:
            count += erase_traces(file, vault.root, paths, traces.has_name, traces.has_words)
        except ActivityUnavailableError as error:
            left.append(f"{error}; it may have the note: `{shell_line('rm', file)}` deletes it")
    return count, left


def _erase_in_data_folder(data_dir: str, traces: Traces) -> int:
    """Take a note out of logs and small files. Returns how many lines and entries that were."""
    shutil.rmtree(os.path.join(data_dir, AS_OF), ignore_errors=True)  # copies of old commits
    count = 0
    with locked(os.path.join(data_dir, "co.log.lock")):
        for file in _files(data_dir, WITH_LINES):
            lines = read_bytes(file).decode("utf-8", "surrogateescape").splitlines(keepends=True)
            kept = [line for line in lines if not traces.is_in(line)]
            if len(kept) < len(lines):
                replace_file(file, "".join(kept).encode("utf-8", "surrogateescape"), private=True)
                count += len(lines) - len(kept)

    def drop(entries: dict[str, Any]) -> int:
        gone = [key for key, value in entries.items() if traces.is_in(key) or traces.is_in(_scalars(value))]
        for key in gone:
            del entries[key]
        return len(gone) + sum(
            drop(cast("dict[str, Any]", value)) for value in entries.values() if isinstance(value, dict)
        )

    for file in _files(data_dir, WITH_ENTRIES):
        change_json(file, drop)
    for file in _files(data_dir, REMOVED):
        if traces.is_in(read_bytes(file).decode("utf-8", "surrogateescape")):
            os.unlink(file)
    return count


def _scalars(value: object) -> str:
    return "" if isinstance(value, dict) else json.dumps(value)


def _files(data_dir: str, patterns: Sequence[str]) -> list[str]:
    found = [file for pattern in patterns for file in glob.glob(os.path.join(glob.escape(data_dir), pattern))]
    return [file for file in found if os.path.isfile(file) and not file.endswith(".lock")]


def _in_git(root: str, paths: Sequence[str]) -> list[str]:
    """Which commits have a note, with the command that removes it from them."""
    repository = repository_around(root)
    if repository is None:
        return []
    command = ("log", "--all", "--format=%x1e", "--name-only", "-z", "--", *paths, TRASH)
    try:
        listed = repository.run(*command).stdout.decode("utf-8", "surrogateescape")
    except GitError as error:
        return [f"git may have it, and was not asked: {error}"]
    commits = [re.split(r"[\0\n]+", block) for block in listed.split("\x1e")]
    mine = [[name for name in names if any(f"/{name}".endswith(f"/{path}") for path in paths)] for names in commits]
    names = dict.fromkeys(name for found in mine for name in found)
    if not names:
        return []
    command = shell_line("git", "filter-repo", "--invert-paths", *(word for name in names for word in ("--path", name)))
    count = sum(map(bool, mine))
    return [f"git has it in {count:,} commit{'s' * (count > 1)}: `{command}`, then push with --force and clone anew"]
