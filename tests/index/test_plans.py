"""Statements that run for every sync or search find their rows by key, however large the tables are."""

from __future__ import annotations

import apsw
import apsw.ext
import pytest

from co_cli.activity.heads import HEADS
from co_cli.index.cache import LOOK
from co_cli.index.connection import Database
from co_cli.index.knowledge_index import EXACT_TWINS, LISTINGS, PATHS_LIKE, REF_OF_PATH, KnowledgeIndex
from co_cli.index.names import FIND_CALLED, IS_NAME
from co_cli.index.reader import COUNTS, DATED, OPEN_PASSAGES
from co_cli.index.rows import DROP_NAMES, DROP_PASSAGES, FIND_DOC
from co_cli.index.sync import KNOWN, NOW_LISTED, RETIME
from co_cli.index.vault_database import TO_REPORT
from co_cli.index.words import FIND_WORDS
from tests.vault import Vault

STATEMENTS = {
    "cached vectors": LOOK,
    "files to report": TO_REPORT,
    "known files": KNOWN,
    "now listed": NOW_LISTED,
    "touched files": RETIME,
    "listings": LISTINGS,
    "counts": COUNTS,
    "dates of candidates": DATED,
    "a note by path": FIND_DOC,
    "a ref by path": REF_OF_PATH,
    "a note by its key": PATHS_LIKE,
    "exact twins": EXACT_TWINS,
    "passages of a search": OPEN_PASSAGES,
    "passages to drop": DROP_PASSAGES,
    "names to drop": DROP_NAMES,
    "is it a name": IS_NAME.format(vaults="1, 2"),
    "notes by name": FIND_CALLED.format(vaults="1, 2", filters="docs.vault_id in (1, 2)"),
    "heads of saved notes": HEADS,
    "words": FIND_WORDS.format(filters="docs.vault_id = :vault"),
}


@pytest.mark.parametrize("statement", STATEMENTS.values(), ids=STATEMENTS)
def test_no_table_is_read_from_end_to_end(
    vault: Vault, index: KnowledgeIndex, database: Database, statement: str
) -> None:
    vault.write("memories/oak.md", "Oaks live long.")
    index.sync()

    with database.reading() as connection:
        names = dict.fromkeys(names_in(connection, statement))
        plan = [str(row[3]) for row in connection.execute(f"explain query plan {statement}", names)]

    scans = [step for step in plan if step.startswith("SCAN") and "VIRTUAL TABLE" not in step]
    assert plan
    assert scans == []


def test_a_save_looks_up_its_own_note_and_no_other(index: KnowledgeIndex, database: Database, vault: Vault) -> None:
    vault.write("memories/oak.md", "Oaks live long.")
    index.sync()

    with database.reading() as connection:
        rows = connection.execute(f"explain query plan {HEADS}", {"paths": "[]", "vault": 1})
        plan = [str(row[3]) for row in rows]

    assert any("docs" in step and "vault_id=? AND path=?" in step for step in plan), plan


def names_in(connection: apsw.Connection, statement: str) -> tuple[str, ...]:
    """The parameters of a statement."""
    return tuple(name for name in apsw.ext.query_info(connection, statement).bindings_names if name)
