"""Write one note's rows into search.db, or take them out, inside the caller's transaction."""

from __future__ import annotations

import json
from typing import NamedTuple

import apsw

from co_cli.index.links import DROP_LINKS, put_links
from co_cli.index.names import LONGEST_NAME, fold_name
from co_cli.index.spaceless import grams
from co_cli.index.standing import DROP_SUPERSESSIONS, put_supersessions
from co_cli.index.vectors import drop_vectors, let_wait
from co_cli.notes.note import Note
from co_cli.notes.refs import name_key, stem_of
from co_cli.notes.twins import fingerprint
from co_cli.values import Passage

FIND_DOC = "select id from docs where vault_id = :vault and path = :path"

PUT_DOC = """
insert into docs (vault_id, source, path, path_key, ref, title, description, hash, fingerprint, mtime, created, tags,
    category, frontmatter, links, passages, valid_from, valid_until, superseded_by)
values (:vault, :source, :path, :path_key, :ref, :title, :description, :hash, :fingerprint, :mtime, :created, :tags,
    :category, :frontmatter, :links, :passages, :valid_from, :valid_until, :superseded_by)
"""

PUT_PASSAGE = """
insert into passages (doc_id, first_line, last_line, title, heading, body, tags, aliases, grams, context)
values (:doc, :first_line, :last_line, :title, :heading, :body, :tags, :aliases, :grams, :context)
"""

PUT_WORDS = """
insert into docs_fts (rowid, title, heading, body, tags, aliases, grams, context)
values (:id, :title, :heading, :body, :tags, :aliases, :grams, :context)
"""

PUT_NAME = "insert into names (vault_id, name, doc_id, kind) values (:vault, :name, :doc, :kind)"

COUNT = "update vaults set notes = notes + :notes, passages = passages + :passages where id = :vault"

PASSAGES_OF = "select id from passages where doc_id = :doc"
DROP_WORDS = "delete from docs_fts where rowid in (select id from passages where doc_id = :doc)"
DROP_PASSAGES = "delete from passages where doc_id = :doc"
DROP_NAMES = "delete from names where doc_id = :doc"
MARK_MISSING = "update docs set missing = coalesce(missing, :since) where id = :doc"
DROP_DOC = "delete from docs where id = :doc"

PUT_FILE = """
insert into knowledge_files (vault_id, path, hash, skipped, problem)
values (:vault, :path, :hash, :skipped, :problem)
on conflict (vault_id, path) do update set hash = excluded.hash, skipped = excluded.skipped, problem = excluded.problem
"""
PUT_UNLISTED = "insert into unlisted (vault_id, path) values (:vault, :path) on conflict do nothing"
DROP_FILE = "delete from knowledge_files where vault_id = :vault and path = :path"


class IndexedFile(NamedTuple):
    """A file as a sync read it: a note with its passages, or the reason why it is not indexed."""

    path: str
    hash: str
    mtime: float
    note: Note | None
    passages: list[Passage]
    skipped: str | None = None


def put_file(connection: apsw.Connection, vault_id: int, file: IndexedFile) -> None:
    """Write a file's rows. Until a listing has it, it is noted as unlisted, so that its end is not missed."""
    drop_note(connection, vault_id, file.path)
    connection.execute(PUT_UNLISTED, {"vault": vault_id, "path": file.path})
    connection.execute(
        PUT_FILE,
        {
            "vault": vault_id,
            "path": file.path,
            "hash": file.hash,
            "skipped": file.skipped,
            "problem": file.note.problem if file.note else None,
        },
    )
    if file.note is not None:
        _put_note(connection, vault_id, file, file.note)


def drop_file(connection: apsw.Connection, vault_id: int, path: str) -> bool:
    """Forget a file. True if it was an indexed note."""
    dropped = drop_note(connection, vault_id, path)
    connection.execute(DROP_FILE, {"vault": vault_id, "path": path})
    return dropped


def mark_missing(connection: apsw.Connection, vault_id: int, path: str, since: float) -> bool:
    """Keep the rows of a file that is gone, and say so. True if it was an indexed note."""
    doc = connection.execute(FIND_DOC, {"vault": vault_id, "path": path}).get
    if doc is None:
        connection.execute(DROP_FILE, {"vault": vault_id, "path": path})
        return False
    connection.execute(MARK_MISSING, {"doc": doc, "since": since})
    return True


def drop_note(connection: apsw.Connection, vault_id: int, path: str) -> bool:
    doc = connection.execute(FIND_DOC, {"vault": vault_id, "path": path}).get
    if doc is None:
        return False
    # words first: FTS5 reads the text to forget from the passages that are still there
    passages = [int(str(row[0])) for row in connection.execute(PASSAGES_OF, {"doc": doc}).fetchall()]
    drop_vectors(connection, vault_id, passages)
    connection.execute(DROP_WORDS, {"doc": doc})
    connection.execute(DROP_PASSAGES, {"doc": doc})
    connection.execute(COUNT, {"vault": vault_id, "notes": -1, "passages": -len(passages)})
    connection.execute(DROP_NAMES, {"doc": doc})
    connection.execute(DROP_LINKS, {"doc": doc})
    connection.execute(DROP_SUPERSESSIONS, {"doc": doc})
    connection.execute(DROP_DOC, {"doc": doc})
    return True


def _put_note(connection: apsw.Connection, vault_id: int, file: IndexedFile, note: Note) -> None:
    valid_from, valid_until = note.valid
    connection.execute(
        PUT_DOC,
        {
            "vault": vault_id,
            "source": note.source,
            "path": note.path,
            "path_key": name_key(note.path),
            "ref": note.ref,
            "title": storable(note.title),
            "description": storable(note.description),
            "hash": file.hash,
            "fingerprint": fingerprint(note.body),
            "mtime": file.mtime,
            "created": note.created if note.created is not None else file.mtime,
            "tags": _json(note.tags),
            "category": note.category and storable(note.category),
            "frontmatter": _json(note.metadata),
            "links": _json(note.links),
            "passages": len(file.passages),
            "valid_from": valid_from,
            "valid_until": valid_until,
            "superseded_by": note.superseded_by and storable(note.superseded_by),
        },
    )
    doc = connection.last_insert_rowid()
    named = names_of(note).items()
    connection.executemany(
        PUT_NAME, [{"vault": vault_id, "name": name, "doc": doc, "kind": kind} for name, kind in named]
    )
    put_links(connection, vault_id, doc, note.links)
    put_supersessions(connection, vault_id, doc, note.supersedes)
    tags, aliases = " ".join(note.tags), note.also_known_as
    around = note.context
    written: list[int] = []
    for passage in file.passages:
        row: dict[str, apsw.SQLiteValue] = {
            "doc": doc,
            "first_line": passage.first_line,
            "last_line": passage.last_line,
            "title": storable(note.title),
            "heading": storable(passage.heading),
            "body": storable(passage.text),
            "tags": storable(tags),
            "aliases": storable(aliases),
            "context": storable("\n".join(part for part in (passage.context, around) if part)),
            "grams": storable(grams(f"{note.title}\n{passage.heading}\n{passage.text}\n{tags}\n{aliases}")),
        }
        connection.execute(PUT_PASSAGE, row)
        written.append(connection.last_insert_rowid())
        connection.execute(PUT_WORDS, {**row, "id": written[-1]})
    let_wait(connection, vault_id, written)
    connection.execute(COUNT, {"vault": vault_id, "notes": 1, "passages": len(file.passages)})


def names_of(note: Note) -> dict[str, str]:
    """What a note can be asked for by, folded, and which of its names that is."""
    called = [("title", note.title), *(("alias", alias) for alias in note.aliases)]
    called += [("slug", stem_of(note.path)), ("slug", note.ref.partition(":")[2]), ("ref", note.ref)]
    found: dict[str, str] = {}
    for kind, text in called:
        name = fold_name(storable(text))
        if name and len(name) <= LONGEST_NAME:
            found.setdefault(name, kind)
    return found


def storable(text: str) -> str:
    """Without lone surrogates, which YAML's escapes can make and SQLite cannot hold."""
    return text if text.isascii() else text.encode("utf-8", "replace").decode()


def _json(value: object) -> str:
    return storable(json.dumps(value, ensure_ascii=False, separators=(",", ":"), default=str, allow_nan=True))
