"""What an index holds, in a form in which two indexes of the same files are equal: no ids, no times of syncing."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from co_cli.embedding.embedders import Embedders
from co_cli.index.engine import Engine
from co_cli.index.sqlite.sqlite_engine import SqliteEngine
from co_cli.index.stored import Scope
from co_cli.knowledge_index import KnowledgeIndex
from co_cli.sources.origin import Origin
from tests.folder import Vault


def contents(engine: Engine, root: Path) -> dict[str, Any]:
    """Everything of one vault; fails by itself if counts or the word index do not fit the passages."""
    assert engine.problem() is None
    with engine.reading() as reader:
        stored = reader.origin(Origin("vault", str(root)))
        if stored is None:
            return {}
        vault = stored.id
        notes = reader.list_notes(Scope(((vault, "memory"), (vault, "article"))))
        passages = list(reader.passages(notes=[note.id for note in notes]).values())
        assert (stored.notes, stored.passages) == (len(notes), len(passages))
        return {
            "files": reader.files(vault),
            "notes": sorted(note._replace(id=0, origin_id=0) for note in notes),
            "passages": sorted((one._replace(id=0, note=0, origin_id=0) for one in passages), key=repr),
            "names": {note.path: reader.find_notes(vault, "name", [note.title.lower()]) != [] for note in notes},
            "terms": reader.term_counts([vault]),
        }


def contents_from_scratch(vault: Vault, folder: Path) -> dict[str, Any]:
    """The same of an index that is made now, in a folder of its own."""
    engine = SqliteEngine(str(folder / "search.db"))
    try:
        KnowledgeIndex(engine, vault.root, embedders=Embedders("none")).sync()
        return contents(engine, vault.root)
    finally:
        engine.close()
