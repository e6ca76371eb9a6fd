"""Write notes' rows into search.db, or take them out, inside the caller's transaction."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from typing import NamedTuple

import apsw

from co_cli.index.connection import fetch
from co_cli.index.links import DROP_LINKS, PUT_LINK, link_rows
from co_cli.index.names import LONGEST_NAME, fold_name, name_number
from co_cli.index.spaceless import grams
from co_cli.index.standing import DROP_SUPERSESSIONS, PUT_SUPERSESSION, supersession_rows
from co_cli.index.vectors import drop_vectors, let_wait
from co_cli.notes.note import Note
from co_cli.notes.refs import name_key, stem_of
from co_cli.notes.twins import fingerprint
from co_cli.values import Passage

FIND_DOC = "select id from docs where vault_id = :vault and path = :path"
FIND_DOCS = "select path from docs where vault_id = :vault and path in (select value from json_each(:paths))"
LAST_IDS = "select coalesce((select max(id) from docs), 0), coalesce((select max(id) from passages), 0)"

PUT_DOC = """
insert into docs (id, vault_id, source, path, path_key, ref, title, description, hash, fingerprint, mtime, created,
    tags, category, frontmatter, links, passages, valid_from, valid_until, superseded_by)
values (:id, :vault, :source, :path, :path_key, :ref, :title, :description, :hash, :fingerprint, :mtime, :created,
    :tags, :category, :frontmatter, :links, :passages, :valid_from, :valid_until, :superseded_by)
"""

PUT_PASSAGE = """
insert into passages (id, doc_id, first_line, last_line, title, heading, body, tags, aliases, grams, context)
values (:id, :doc, :first_line, :last_line, :title, :heading, :body, :tags, :aliases, :grams, :context)
"""

PUT_WORDS = """
insert into docs_fts (rowid, title, heading, body, tags, aliases, grams, context)
values (:id, :title, :heading, :body, :tags, :aliases, :grams, :context)
"""

# two names of one note may share a number: whoever writes the note can see to that
PUT_NAME = """
insert into names (vault_id, name, doc_id, kind) values (:vault, :name, :doc, :kind) on conflict do nothing
"""

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
PUT_ALL_UNLISTED = """
insert into unlisted (vault_id, path) select :vault, value from json_each(:paths) where true on conflict do nothing
"""
DROP_FILE = "delete from knowledge_files where vault_id = :vault and path = :path"


ENCODER = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"), default=str, allow_nan=True)
Row = dict[str, "apsw.SQLiteValue"]


class IndexedFile(NamedTuple):
    """A file as a sync read it: a note with its passages, or the reason why it is not indexed."""

    path: str
    hash: str
    mtime: float
    note: Note | None
    passages: list[Passage]
    skipped: str | None = None


def put_file(connection: apsw.Connection, vault_id: int, file: IndexedFile) -> None:
    put_files(connection, vault_id, [file])


def put_files(connection: apsw.Connection, vault_id: int, files: Sequence[IndexedFile]) -> None:
    """Write the rows of these files. Until a listing has them, they are noted as unlisted: their end is not missed.

    Many at once, a statement a table: one by one it takes a fifth longer.
    """
    paths = json.dumps([file.path for file in files])
    for (path,) in fetch(connection, FIND_DOCS, {"vault": vault_id, "paths": paths}):
        drop_note(connection, vault_id, path)
    connection.execute(PUT_ALL_UNLISTED, {"vault": vault_id, "paths": paths})
    connection.executemany(PUT_FILE, [_file_row(vault_id, file) for file in files])
    docs: list[Row] = []
    names: list[Row] = []
    links: list[Row] = []
    supersessions: list[Row] = []
    passages: list[Row] = []
    ((doc, passage),) = fetch(connection, LAST_IDS)
    for file in files:
        if file.note is None:
            continue
        doc += 1
        docs.append(_doc_row(vault_id, doc, file, file.note))
        names += [
            {"vault": vault_id, "name": name_number(name), "doc": doc, "kind": kind}
            for name, kind in names_of(file.note).items()
        ]
        links += link_rows(vault_id, doc, file.note.links)
        supersessions += supersession_rows(vault_id, doc, file.note.supersedes)
        for row in _passage_rows(doc, file.note, file.passages):
            passage += 1
            passages.append({**row, "id": passage})
    connection.executemany(PUT_DOC, docs)
    connection.executemany(PUT_NAME, names)
    connection.executemany(PUT_LINK, links)
    connection.executemany(PUT_SUPERSESSION, supersessions)
    connection.executemany(PUT_PASSAGE, passages)
    connection.executemany(PUT_WORDS, passages)
    let_wait(connection, vault_id, [int(str(row["id"])) for row in passages])
    connection.execute(COUNT, {"vault": vault_id, "notes": len(docs), "passages": len(passages)})


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


def _file_row(vault_id: int, file: IndexedFile) -> Row:
    problem = file.note.problem if file.note else None
    return {"vault": vault_id, "path": file.path, "hash": file.hash, "skipped": file.skipped, "problem": problem}


def _doc_row(vault_id: int, doc: int, file: IndexedFile, note: Note) -> Row:
    valid_from, valid_until = note.valid
    key = name_key(note.path)
    return {
        "id": doc,
        "vault": vault_id,
        "source": note.source,
        "path": note.path,
        "path_key": "" if key == note.path else key,
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
    }


def _passage_rows(doc: int, note: Note, passages: Sequence[Passage]) -> Iterator[Row]:
    tags, aliases = " ".join(note.tags), note.also_known_as
    around = note.context
    of_note: Row = {
        "doc": doc,
        "title": storable(note.title),
        "tags": storable(tags),
        "aliases": storable(aliases),
    }
    for passage in passages:
        yield {
            **of_note,
            "first_line": passage.first_line,
            "last_line": passage.last_line,
            "heading": storable(passage.heading),
            "body": storable(passage.text),
            "context": storable("\n".join(part for part in (passage.context, around) if part)),
            "grams": storable(grams(f"{note.title}\n{passage.heading}\n{passage.text}\n{tags}\n{aliases}")),
        }


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
    return storable(ENCODER.encode(value)) if value else "{}" if value == {} else "[]"
