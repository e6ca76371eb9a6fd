"""Vaults that come to harm, and what must be true of them afterwards."""

from __future__ import annotations

import hashlib
import random
from pathlib import Path
from typing import Any

from co_cli.entrance.knowledge_base import KnowledgeBase
from co_cli.ground.settings import Settings, load_settings
from co_cli.index.sqlite.connection import Database, fetch
from co_cli.index.sqlite.words import words_table
from co_cli.notes.files import TEMPORARY
from co_cli.notes.frontmatter import read_frontmatter
from co_cli.notes.store import TRASH
from co_cli.upkeep.verification import compare
from co_cli.vault.vault import Opening

WORDS = (
    "anchor basil cedar dune ember fjord garnet heron ivory juniper kelp linden marsh nectar onyx pebble quartz raven "
    "saffron thistle umber violet walnut yarrow zephyr acorn bramble clover dahlia eider fennel ginger hazel iris"
).split()
SEAL = "sealed:"
WRITES = ("remember", "update", "forget", "restore", "edit")
CHECK_WORDS = "insert into {table} ({table}) values ('integrity-check')"
ORPHANS = (
    "select count(*) from passages where doc_id not in (select id from docs)",
    "select count(*) from names where doc_id not in (select id from docs)",
    "select count(*) from links where doc_id not in (select id from docs)",
)

INCOMPLETE = {
    "a passage has no words": "passages.id not in (select rowid from {words})",
    "a passage has no vector": "passages.id not in (select rowid from docs_vec)",
    "the count of notes is wrong": "(select notes from vaults where id = :vault) != "
    "(select count(*) from docs where vault_id = :vault)",
}
FIND = "select count(*) from passages join docs on docs.id = passages.doc_id where docs.vault_id = :vault and "


def settings_of(place: Path, vault: str = "vault") -> Settings:
    """A vault and a data folder in `place`, whatever the environment says."""
    flags = {"vault": str(place / vault), "data_dir": str(place / "data")}
    return load_settings(
        flags,
        environ={"HOME": str(place), "CO_KNOWLEDGE_READER": "off", "CO_KNOWLEDGE_EMBEDDING_PROVIDER": "static"},
        start=str(place),
    )


def open_vault(place: Path, vault: str = "vault", opening: Opening | None = None) -> KnowledgeBase:
    """The vault in `place`, made if it is missing."""
    (place / vault).mkdir(parents=True, exist_ok=True)
    return KnowledgeBase.open(settings=settings_of(place, vault), opening=opening)


def sealed_text(chance: random.Random, mark: str) -> str:
    """A unique text with a checksum that shows when a part of it is lost. It starts with `mark`."""
    words = " ".join(chance.choices(WORDS, k=chance.choice((8, 20, 60))))
    text = f"{mark} {words} {chance.randbytes(12).hex()}."
    return f"{text}\n\n{SEAL}{_digest(text)}"


def is_whole(data: bytes) -> bool:
    text, found, digest = _body(data).rpartition(f"\n\n{SEAL}")
    return bool(found) and digest == _digest(text)


def mark_of(data: bytes) -> str:
    return _body(data).split(" ", 1)[0]


def _body(data: bytes) -> str:
    text = data.decode("utf-8", "replace")
    return text[read_frontmatter(text).body :].strip()


def _digest(text: str) -> str:
    return hashlib.blake2b(text.encode(), digest_size=12).hexdigest()


def files_of(root: Path) -> dict[str, bytes]:
    """Every file below a folder, by its path there."""
    return {file.relative_to(root).as_posix(): file.read_bytes() for file in root.rglob("*") if file.is_file()}


class Ledger:
    """What was acknowledged about the notes of one vault, and what was in progress."""

    def __init__(self) -> None:
        self.notes: dict[str, str] = {}
        """The mark of each note by its path."""
        self.trashed: set[str] = set()
        self.pending: tuple[str, str, str] | None = None
        self.verb = ""
        self.acknowledged = 0

    def hear(self, said: Any) -> None:
        """`("begin", verb, path, mark)` or `("done", verb, path, mark)`."""
        event, verb, path, mark = said
        if event == "begin":
            self.verb, self.pending = verb, (verb, path, mark)
            return
        self.pending = None
        self.acknowledged += verb in WRITES
        if verb == "forget":
            self.trashed.add(self.notes.pop(path))
        elif verb in WRITES:
            self.notes[path] = mark
            self.trashed.discard(mark)

    def check(self, files: dict[str, bytes]) -> list[str]:
        """What is wrong with these files of the vault."""
        names = {path.rsplit("/", 1)[-1] for path in files}
        problems = [f"{name} was left behind" for name in names if not name.endswith(".md") and TEMPORARY not in name]
        all_notes = {path: data for path, data in files.items() if path.endswith(".md")}
        problems += [f"{path} is half a note" for path, data in all_notes.items() if not is_whole(data)]
        notes = {path: mark_of(data) for path, data in all_notes.items() if not path.startswith(f"{TRASH}/")}
        trash = {mark_of(data) for path, data in all_notes.items() if path not in notes}
        verb, at, mark = self.pending or ("", "", "")
        for path, known in self.notes.items():
            now = notes.get(path)
            changed = path == at and now == mark and verb in ("update", "edit")
            forgotten = path == at and now is None and verb == "forget" and known in trash
            if now != known and not changed and not forgotten:
                problems.append(f"{path} was acknowledged with {known} and has {now}")
        for path in notes.keys() - self.notes.keys():
            if verb not in ("remember", "restore") or notes[path] != mark:
                problems.append(f"{path} is there and nobody saved it")
        lost = self.trashed - trash - ({mark} & set(notes.values()) if verb == "restore" else set())
        return problems + [f"{mark} was forgotten and is not in the trash" for mark in sorted(lost)]

    def settle(self, files: dict[str, bytes]) -> None:
        """Take what is there now as acknowledged."""
        notes = {path: mark_of(data) for path, data in files.items() if path.endswith(".md")}
        self.notes = {path: mark for path, mark in notes.items() if not path.startswith(f"{TRASH}/")}
        self.trashed = {mark for path, mark in notes.items() if path.startswith(f"{TRASH}/")}
        self.pending, self.verb, self.acknowledged = None, "", 0


def differences(kb: KnowledgeBase) -> list[str]:
    """Where a vault's index is unsound or differs from its files."""
    kb.index.drop_missing()  # an index that lost its tail may keep notes as missing
    problem = unsound(kb.engine.database)
    if problem:
        return [f"search.db is unsound: {problem}"]
    found: list[str] = []
    with kb.engine.database.reading() as connection:
        vault: Any = connection.execute("select id from vaults where root = :root", {"root": kb.root}).get
        for what, condition in INCOMPLETE.items() if vault else ():
            statement = FIND + condition.format(words=words_table(vault))
            found += [what] if connection.execute(statement, {"vault": vault}).get else []
    return found + [f"{path or 'index'}: {what}" for path, what in compare(kb.index).differing]


def unsound(database: Database) -> str | None:
    """What SQLite and FTS5 find wrong with search.db."""
    try:
        with database.writing() as connection:
            found = [str(row[0]) for row in connection.execute("pragma integrity_check(3)") if row[0] != "ok"]
            for (vault,) in fetch(connection, "select id from vaults") if not found else ():
                if connection.table_exists("main", words_table(vault)):
                    connection.execute(CHECK_WORDS.format(table=words_table(vault)))
            found = found or [statement for statement in ORPHANS if connection.execute(statement).get]
            return "; ".join(found) or None
    except Exception as error:
        return f"{type(error).__name__}: {error}"
