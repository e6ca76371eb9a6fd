"""Compare every row of an origin with what its files give now: the files are read and taken apart once more, into a
scratch database by the code that a sync uses, and each note's rows are laid beside those of search.db.
"""

from __future__ import annotations

import hashlib
import math
import os
import tempfile
from array import array
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

import apsw

from co_cli.embedding.embedders import Embedders
from co_cli.index.cache import look_up, text_hash
from co_cli.index.connection import Database, fetch
from co_cli.index.knowledge_index import KnowledgeIndex
from co_cli.index.meaning import embedding_text
from co_cli.index.packing import pack
from co_cli.index.rows import IndexedFile, put_files
from co_cli.index.sync import Unreadable, read_file
from co_cli.index.vault_database import VaultDatabase
from co_cli.index.vectors import AT, StoredSpace, ids_text, is_vec0, space_state

BATCH = 200
ROUNDING = 1e-4
"""Between two ways to compute one vector."""
Progress = Callable[[int, int], None]

FILES = "select path, hash, skipped from knowledge_files where vault_id = :vault"
DOCS = "select * from docs where vault_id = :vault and path in (select value from json_each(:paths))"
ALL_DOCS = "select path, hash, missing from docs where vault_id = :vault"
OF_DOC = {
    "passages": """
        select first_line, last_line, title, heading, body, tags, aliases, grams, context
        from passages where doc_id = :doc order by id
    """,
    "names": "select name, kind from names where doc_id = :doc order by name",
    "links": "select target from links where doc_id = :doc order by target",
    "supersessions": "select name from supersessions where doc_id = :doc order by name",
}
COUNTS = """
select coalesce(sum(notes), 0), coalesce(sum(passages), 0),
    (select count(*) from docs where vault_id = :vault),
    (select count(*) from passages join docs on docs.id = passages.doc_id where docs.vault_id = :vault)
from vaults where id = :vault
"""
ORPHANS = """
select (select count(*) from passages where doc_id not in (select id from docs))
    + (select count(*) from names where doc_id not in (select id from docs))
    + (select count(*) from links where doc_id not in (select id from docs))
"""
TEXTS = """
select passages.id, docs.path, passages.title, heading, body, passages.tags, aliases, context
from passages join docs on docs.id = passages.doc_id
where docs.vault_id = :vault and passages.id > :after order by passages.id limit :limit
"""
UNCOMPARED = ("id", "vault_id", "mtime", "created", "missing")
"""Columns that are not of the content; what a note says itself about `created` stands in its frontmatter too."""


class Difference(NamedTuple):
    """One file, or the index of an origin as a whole, and what is not as it should be."""

    path: str
    what: str


class Compared(NamedTuple):
    """What was seen of one origin."""

    files: int
    """That were read."""
    bytes: int
    notes: int
    passages: int
    skipped: int
    """Files that are known and not indexed, each for a reason."""
    missing: int
    """Notes that are kept though their file is gone."""
    by_model: int
    """Notes that a model may have cut: their passages are not compared."""
    of_files: str
    """One hash over the path and the content's hash of every note, from the files."""
    of_index: str
    """The same from the index."""
    vectors: int
    """That were compared with what their text gives."""
    differing: list[Difference]


def compare(
    index: KnowledgeIndex, embedders: Embedders, progress: Progress | None = None, by_model: bool = False
) -> Compared:
    """`by_model`: a model may have proposed where passages are cut. Raises VaultError if the folder is away."""
    paths = index.files()
    differing: list[Difference] = []
    known, kept = _known(index.rows)
    seen: dict[str, str] = {}
    size = skipped = cut_elsewhere = 0
    with tempfile.TemporaryDirectory(prefix="co-verify-") as folder:
        scratch = Database(os.path.join(folder, "scratch.db"))
        try:
            for done, batch in _batches(paths):
                files: list[IndexedFile] = []
                before = len(differing)
                for path in batch:
                    try:
                        files.append(read_file(index.origin, path, index.limit, None))
                        size += os.path.getsize(os.path.join(index.root, path))
                    except (Unreadable, OSError) as error:
                        if path in known and known[path][1] is None:
                            differing.append(Difference(path, f"indexed, but it {error}"))
                for file in files:
                    row = known.get(file.path)
                    if file.note is None:
                        skipped += 1
                        if row is None or row[1] is None:
                            differing.append(Difference(file.path, f"is not to be indexed: {file.skipped}"))
                        continue
                    seen[file.path] = file.hash
                    if row is None or row[1] is not None:
                        differing.append(Difference(file.path, "is not in the index"))
                    elif row[0] != file.hash or kept.get(file.path, ("", None))[0] != file.hash:
                        differing.append(Difference(file.path, "has another content than the index knows"))
                there = [file for file in files if file.note is not None and file.path in kept]
                told = {one.path for one in differing[before:]}
                for path, what in _rows_that_differ(index.rows, VaultDatabase(scratch, index.origin), there):
                    if what == "passages" and by_model:
                        cut_elsewhere += 1
                    elif path not in told:
                        differing.append(Difference(path, f"its {what} in the index are not those of the file"))
                if progress:
                    progress(done, len(paths))
        finally:
            scratch.close()
    gone = {*known, *kept} - set(paths)
    missing = {path for path in gone if kept.get(path, ("", None))[1] is not None}
    for path in sorted(gone - missing):
        differing.append(Difference(path, "is in the index, but there is no such file"))
    with index.rows.reading() as (connection, vault):
        notes, passages, real_notes, real_passages = connection.execute(COUNTS, {"vault": vault}).get or (0, 0, 0, 0)
        orphans = connection.execute(ORPHANS).get
    if (notes, passages) != (real_notes, real_passages):
        told = f"{notes:,} notes and {passages:,} passages are counted, {real_notes:,} and {real_passages:,} are there"
        differing.append(Difference("", told))
    if orphans:
        differing.append(Difference("", f"{orphans:,} rows belong to no note"))
    vectors, wrong = _vectors_that_differ(index.rows, embedders, progress)
    differing += [Difference(path, "has a vector that is not that of its text") for path in wrong]
    rows = {path: held for path, (held, gone_since) in kept.items() if gone_since is None}
    counts = (len(seen), size, real_notes, real_passages, skipped, len(missing), cut_elsewhere)
    return Compared(*counts, _digest(seen), _digest(rows), vectors, differing)


def _known(rows: VaultDatabase) -> tuple[dict[str, tuple[str, str | None]], dict[str, tuple[str, float | None]]]:
    with rows.reading() as (connection, vault):
        files = {path: (held, why) for path, held, why in fetch(connection, FILES, {"vault": vault})}
        docs = {path: (held, since) for path, held, since in fetch(connection, ALL_DOCS, {"vault": vault})}
    return files, docs


def _batches(paths: Sequence[str]) -> Iterator[tuple[int, Sequence[str]]]:
    for start in range(0, len(paths), BATCH):
        yield min(start + BATCH, len(paths)), paths[start : start + BATCH]


def _rows_that_differ(
    rows: VaultDatabase, scratch: VaultDatabase, files: list[IndexedFile]
) -> Iterator[tuple[str, str]]:
    with scratch.writing() as (connection, vault):
        put_files(connection, vault, files)
        expected = _everything(connection, vault, files)
        for statement in ("docs", "passages", "names", "links", "supersessions"):
            connection.execute(f"delete from {statement}")
        connection.execute("insert into docs_fts (docs_fts) values ('rebuild')")
    with rows.reading() as (connection, vault):
        stored = _everything(connection, vault, files)
    for path, tables in expected.items():
        found = stored.get(path)
        if found is None:
            continue  # told already: it is not in the index
        for table, wanted in tables.items():
            if found[table] != wanted:
                yield path, "fields" if table == "docs" else table
                break


def _everything(connection: apsw.Connection, vault: int, files: list[IndexedFile]) -> dict[str, dict[str, Any]]:
    """By path, every row of these notes, without what is of this database only."""
    import json

    cursor = connection.execute(DOCS, {"vault": vault, "paths": json.dumps([file.path for file in files])})
    docs = cursor.fetchall()
    names = [str(column[1]) for column in connection.execute("pragma table_info(docs)")]
    found: dict[str, dict[str, Any]] = {}
    for doc in docs:
        row: dict[str, Any] = dict(zip(names, doc, strict=True))
        tables: dict[str, Any] = {"docs": {name: row[name] for name in row if name not in UNCOMPARED}}
        for table, statement in OF_DOC.items():
            tables[table] = fetch(connection, statement, {"doc": row["id"]})
        found[str(row["path"])] = tables
    return found


def _vectors_that_differ(rows: VaultDatabase, embedders: Embedders, progress: Progress | None) -> tuple[int, list[str]]:
    """How many vectors of the active space were compared, and the notes of those that are not as they should be.

    The embedded model computes them once more; those of another provider are compared with what the cache has of it.
    """
    with rows.reading() as (connection, vault):
        space = space_state(connection, vault).active
    if space is None:
        return 0, []
    embedder = embedders.of(space.space) if space.space.provider == "static" else None
    compared, wrong, after = 0, dict[str, None](), 0
    while True:
        with rows.reading() as (connection, vault):
            texts = fetch(connection, TEXTS, {"vault": vault, "after": after, "limit": BATCH})
            if not texts or is_vec0(connection, space.table) is None:
                return compared, list(wrong)
            stored = _stored(connection, space, [row[0] for row in texts])
            words = [embedding_text(*map(str, row[2:])) for row in texts]
            cached = {} if embedder else look_up(connection, space.id, [text_hash(text) for text in words])
        made = embedder.embed(words, "document") if embedder else []
        expected = [None if vector is None else pack([vector])[0] for vector in made] if space.packed else made
        for place, row in enumerate(texts):
            vector = stored.get(row[0])
            if vector is None:
                continue  # whether one is missing is another question
            compared += 1
            known = cached.get(place)
            wanted = expected[place] if embedder else known.vector if known else None
            if not (_same(vector, wanted, space.packed) if wanted is not None else _is_unit(vector)):
                wrong[str(row[1])] = None
        after = texts[-1][0]


def _stored(connection: apsw.Connection, space: StoredSpace, ids: list[int]) -> dict[int, bytes]:
    statement = AT.format(table=space.table, value="vectors.embedding")
    return {row: bytes(vector) for row, vector in fetch(connection, statement, {"ids": ids_text(ids)})}


def _same(one: bytes, other: bytes, packed: bool) -> bool:
    if len(one) != len(other):
        return False
    kind, rounding = ("b", 1) if packed else ("f", ROUNDING)
    pairs = zip(array(kind, one), array(kind, bytes(other)), strict=True)
    return one == other or all(abs(a - b) <= rounding for a, b in pairs)


def _is_unit(vector: bytes) -> bool:
    length = math.sqrt(sum(value * value for value in array("f", vector)))
    return abs(length - 1) < 1e-2


def _digest(hashes: dict[str, str]) -> str:
    digest = hashlib.sha256()
    for path in sorted(hashes):
        digest.update(f"{path}\0{hashes[path]}\n".encode("utf-8", "surrogateescape"))
    return digest.hexdigest()
