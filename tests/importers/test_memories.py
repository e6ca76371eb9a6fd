"""mem0's memories in the shapes in which it exports them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.command import Co
from tests.folder import Vault
from tests.importers.conftest import ImportData

TEA: dict[str, Any] = {
    "id": "892db2ae",
    "memory": "Prefers green tea",
    "user_id": "anna",
    "role": "user",
    "metadata": {"type": "taste", "provenance": "user", "loading": "always"},
    "categories": ["food", "personal details"],
    "created_at": "2026-02-25T11:00:00-08:00",
    "updated_at": None,
    "expiration_date": "2026-08-01",
}
NOTE = "memories/prefers-green-tea.md"


def test_every_shape_gives_the_same_memory(import_data: ImportData, vault: Vault, tmp_path: Path) -> None:
    for value, name in (
        ({"count": 1, "results": [TEA]}, "a.json"),
        ([TEA], "b.json"),
        (TEA, "c.json"),
        (TEA, "d.jsonl"),
    ):
        (tmp_path / name).write_text(json.dumps(value) + "\n\n", "utf-8")

        ran = import_data("mem0", tmp_path / name)

        assert (ran.code, ran.err) == (0, "")
        assert vault.notes() == [NOTE]
        assert vault.read(NOTE).startswith(
            "---\ntitle: Prefers green tea\nkind: memory\ncreated: 2026-02-25T19:00:00Z\n"
            "tags: [food, personal-details]\ncategory: food\nprovenance: import\n"
        )
        vault.delete(NOTE)


def test_metadata_cannot_pass_for_fields_of_ours(import_data: ImportData, co: Co) -> None:
    import_data("mem0", [TEA])

    shown = co("show", NOTE, "--json").json["metadata"]
    assert (shown["provenance"], shown["valid_until"]) == ("import", "2026-08-01T00:00:00Z")
    assert "loading" not in shown
    assert shown["import_metadata"] == {
        "user_id": "anna",
        "role": "user",
        "type": "taste",
        "provenance": "user",
        "loading": "always",
    }


@pytest.mark.parametrize(
    ("created", "updated"),
    [
        ({"created": 1_700_000_000_000}, {"updated": 1_700_003_600_000}),
        ({"created_timestamp": 1_700_000_000}, {"updated": "2023-11-14T23:13:20Z"}),
    ],
)
def test_dates_are_read_in_milliseconds_and_under_other_names(
    import_data: ImportData, vault: Vault, tmp_path: Path, created: dict[str, object], updated: dict[str, object]
) -> None:
    (tmp_path / "a.json").write_text(json.dumps([{"id": "1", "memory": "Likes tea", **created, **updated}]), "utf-8")

    import_data("mem0", tmp_path / "a.json")

    text = vault.read("memories/likes-tea.md")
    assert "created: 2023-11-14T22:13:20Z" in text
    assert "updated: 2023-11-14T23:13:20Z" in text
