"""mem0's memories in the shapes in which it gives them out."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import pytest

from tests.command import Co
from tests.exchange.exports import write_json, write_zip
from tests.vault import Vault

TEA: dict[str, Any] = {
    "id": "892db2ae-06d9-49e5-8b3e-585ef9b85b8e",
    "memory": "Prefers green tea",
    "user_id": "anna",
    "hash": "c3f1",
    "metadata": {"type": "taste", "provenance": "user", "loading": "always"},
    "categories": ["food", "personal details"],
    "created_at": "2026-02-25T11:00:00-08:00",
    "updated_at": None,
}
NOTE = "memories/prefers-green-tea.md"


@pytest.mark.parametrize("shape", ["results", "list", "one", "lines"])
def test_every_shape_gives_the_same_memory(co: Co, vault: Vault, tmp_path: Path, shape: str) -> None:
    path = tmp_path / ("memories.jsonl" if shape == "lines" else "memories.json")
    shapes: dict[str, Any] = {"results": {"count": 1, "results": [TEA]}, "list": [TEA], "one": TEA}
    path.write_text(json.dumps(shapes[shape]) if shape in shapes else json.dumps(TEA) + "\n\n", "utf-8")

    ran = co("import", "mem0", str(path), "--yes")

    assert (ran.code, ran.err) == (0, "")
    assert vault.read(NOTE).splitlines()[:9] == [
        "---",
        "title: Prefers green tea",
        "kind: memory",
        "created: 2026-02-25T19:00:00Z",
        "tags: [food, personal-details]",
        "category: food",
        "provenance: import",
        "imported_from: mem0",
        "import_id: 892db2ae-06d9-49e5-8b3e-585ef9b85b8e",
    ]


def test_metadata_is_kept_where_it_cannot_pose_as_a_field_of_ours(co: Co, vault: Vault, tmp_path: Path) -> None:
    co("import", "mem0", write_json(tmp_path / "m.json", [TEA]), "--yes")

    shown = co("show", NOTE, "--json").json["metadata"]
    assert shown["provenance"] == "import"
    assert "loading" not in shown
    assert shown["import_metadata"] == {"user_id": "anna", "type": "taste", "provenance": "user", "loading": "always"}


def test_the_zip_of_openmemory_is_read_once(co: Co, vault: Vault, tmp_path: Path) -> None:
    lines = [
        {"id": "1", "content": "Has a boat", "state": "active", "categories": ["boats"], "created_at": None},
        {"id": "2", "content": "Had a car", "state": "deleted", "categories": []},
    ]
    packed = gzip.compress("".join(json.dumps(line) + "\n" for line in lines).encode())
    whole = {"user": {}, "memories": [{"id": "1", "content": "Has a boat", "category_ids": []}]}

    ran = co(
        "import", "mem0", write_zip(tmp_path / "m.zip", {"memories.json": whole, "memories.jsonl.gz": packed}), "-y"
    )

    assert ran.code == 0
    assert "Had a car: it is deleted where it comes from" in ran.out
    assert vault.notes() == ["memories/has-a-boat.md"]
    assert "category: boats" in vault.read("memories/has-a-boat.md")


def test_an_expiry_date_ends_the_memory(co: Co, vault: Vault, tmp_path: Path) -> None:
    path = write_json(tmp_path / "m.json", [{"id": "1", "memory": "Is in Oslo", "expiration_date": "2026-08-01"}])

    co("import", "mem0", path, "--yes")

    assert "valid_until: 2026-08-01T00:00:00Z" in vault.read("memories/is-in-oslo.md")


def test_what_a_memory_here_says_already_is_not_said_twice(co: Co, vault: Vault, tmp_path: Path) -> None:
    co("remember", "Prefers green tea")
    before = vault.read(NOTE)

    ran = co("import", "mem0", write_json(tmp_path / "m.json", [TEA, {**TEA, "id": "2"}]), "--yes")

    assert "memory:prefers-green-tea says this already" in ran.out
    assert vault.notes() == [NOTE]
    assert vault.read(NOTE) == before


def test_a_summary_made_by_a_schema_holds_no_memories(co: Co, tmp_path: Path) -> None:
    ran = co("import", "mem0", write_json(tmp_path / "m.json", {"full_name": "Anna"}), "--yes")

    assert (ran.code, ran.out) == (2, "")
    assert ran.err.count("\n") == 1
    assert "m.json, item 1: no memory: an object without a text" in ran.err
