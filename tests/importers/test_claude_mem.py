"""claude-mem's database and exports, in the shape that its version 13.25 gives them."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import apsw
import pytest

from tests.folder import Vault
from tests.importers.conftest import ImportData
from tests.importers.exports import OBSERVATION, SUMMARY, claude_mem_database, insert, write_json, write_zip

MEMORY = "memories/claude-mem/harbour/deploys-go-to-the-blue-pool-first.md"
ARTICLE = "articles/claude-mem/harbour/find-why-friday-deploys-fail.md"


@pytest.fixture
def home(tmp_path: Path) -> Path:
    folder = tmp_path / ".claude-mem"
    folder.mkdir()
    write_json(folder / "settings.json", {"CLAUDE_MEM_MODEL": "haiku"})
    return folder


@pytest.fixture
def database(home: Path) -> Iterator[apsw.Connection]:
    connection = claude_mem_database(home / "claude-mem.db")
    yield connection
    connection.close()


def test_an_observation_becomes_a_memory_and_a_summary_an_article(
    import_data: ImportData, vault: Vault, database: apsw.Connection, home: Path
) -> None:
    database.close()

    ran = import_data("claude-mem", home)

    assert (ran.code, ran.err, sorted(vault.notes())) == (0, "", [ARTICLE, MEMORY])
    memory = vault.read(MEMORY)
    assert memory.startswith(
        "---\ntitle: Deploys go to the blue pool first\nkind: memory\ncreated: 2026-08-01T10:00:00Z\n"
        "tags: [deployment, trade-off]\ncategory: decision\nprovenance: import\n"
        "description: Traffic order of the pools\nproject: harbour\nfiles: [ops/deploy.py, ops/pools.yaml]\n"
    )
    assert memory.endswith(
        "The team chose blue because green holds the sessions.\n\n"
        "- Blue takes traffic first\n- Green follows after ten minutes\n"
    )
    assert vault.read(ARTICLE).endswith(
        "## Investigated\n\nThe pool script\n\n## Learned\n\nGreen holds the sessions\n\n"
        "## Next steps\n\nWrite a test\n"
    )


def test_an_export_from_another_machine_is_the_same_notes(
    import_data: ImportData, vault: Vault, database: apsw.Connection, home: Path, tmp_path: Path
) -> None:
    import_data("claude-mem", home / "claude-mem.db")
    elsewhere: dict[str, Any] = {
        "exportedAt": "2026-08-02T00:00:00.000Z",
        "query": "",
        "observations": [{**OBSERVATION, "id": 71, "narrative": "Corrected later."}],
        "sessions": [],
        "summaries": [{**SUMMARY, "id": 15}],
        "prompts": [{"id": 3, "prompt_text": "Why do deploys fail?"}],
    }

    ran = import_data("claude-mem", write_json(tmp_path / "all.json", elsewhere), "--json")

    assert [item["outcome"] for item in ran.json["items"]] == ["updated", "unchanged"]
    assert "Corrected later." in vault.read(MEMORY)
    assert len(vault.notes()) == 2


def test_a_database_in_use_is_read_with_its_newest_rows_and_nothing_is_written_there(
    import_data: ImportData, vault: Vault, database: apsw.Connection, home: Path
) -> None:
    insert(database, "observations", {**OBSERVATION, "id": 2, "title": "A moment ago", "facts": "[]"})
    before = {file.name: file.read_bytes() for file in home.iterdir()}
    assert before["claude-mem.db-wal"]

    ran = import_data("claude-mem", home)

    assert ran.code == 0
    assert "memories/claude-mem/harbour/a-moment-ago.md" in vault.notes()
    assert {file.name for file in home.iterdir()} == {*before}
    assert (home / "claude-mem.db-wal").read_bytes() == before["claude-mem.db-wal"]


def test_a_closed_database_gets_no_files_beside_it(
    import_data: ImportData, database: apsw.Connection, home: Path
) -> None:
    database.close()
    before = sorted(home.iterdir())

    assert import_data("claude-mem", home).code == 0
    assert sorted(home.iterdir()) == before


def test_the_rows_of_an_older_version_are_read(import_data: ImportData, vault: Vault, tmp_path: Path) -> None:
    old = apsw.Connection(str(tmp_path / "old.db"))
    old.execute(
        "create table observations (id integer primary key, sdk_session_id text, project text, text text, type text,"
        " created_at text, created_at_epoch integer)"
    )
    old.execute(
        "insert into observations values (1, 's', 'harbour', 'Blue first. Then green.', 'discovery', '2025-10-01', 1)"
    )
    old.close()

    assert import_data("claude-mem", tmp_path / "old.db").code == 0
    assert "Blue first. Then green." in vault.read("memories/claude-mem/harbour/blue-first.md")


def test_merged_projects_have_their_new_name_and_claude_mems_own_sessions_are_left_out(
    import_data: ImportData, vault: Vault, tmp_path: Path
) -> None:
    rows = [
        {**OBSERVATION, "merged_into_project": "port"},
        {**OBSERVATION, "title": "Observed", "project": "observer-sessions"},
    ]

    import_data("claude-mem", write_json(tmp_path / "all.json", {"observations": rows}))

    assert vault.notes() == ["memories/claude-mem/port/deploys-go-to-the-blue-pool-first.md"]


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        ("create table notes (a)", "no database of claude-mem"),
        ("create view observations as select 1 as id, 1 as created_at_epoch", "no database of claude-mem"),
        (None, "file is not a database"),
    ],
)
def test_another_database_is_refused_with_a_reason(
    import_data: ImportData, vault: Vault, tmp_path: Path, content: str | None, problem: str
) -> None:
    file = tmp_path / "claude-mem.db"
    file.write_bytes(b"" if content else b"no database " * 1000)
    if content:
        other = apsw.Connection(str(file))
        other.execute(content)
        other.close()

    ran = import_data("claude-mem", file)

    assert (ran.code, problem in ran.err, vault.notes()) == (2, True, [])


@pytest.mark.medium
def test_what_cannot_be_read_says_what_to_do(
    import_data: ImportData, database: apsw.Connection, home: Path, tmp_path: Path
) -> None:
    copy = tmp_path / "copy"
    copy.mkdir()
    for name in ("claude-mem.db", "claude-mem.db-wal"):
        (copy / name).write_bytes((home / name).read_bytes())
    zipped = write_zip(tmp_path / "home.zip", {"claude-mem.db": (home / "claude-mem.db").read_bytes()})
    other = write_json(tmp_path / "other.json", {"settings": json.dumps({})})

    assert "copy all three files" in import_data("claude-mem", copy).err
    assert "unpack it first" in import_data("claude-mem", zipped).err
    assert "it has no observations" in import_data("claude-mem", other).err
