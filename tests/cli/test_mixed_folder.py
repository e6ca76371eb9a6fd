"""A folder of two thousand files of every kind: what becomes of each, and what a second look sees."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from tests.command import Co
from tests.sources.mixed_folder import BINARY, IGNORED, INDEXED, SKIPPED, delete_some, edit_some, make_mixed_folder


def row_paths(row: dict[str, Any]) -> set[str]:
    return {*row["added"], *(one["path"] for one in row["skipped"])}


def of(manifest: dict[str, Any], outcome: str) -> set[str]:
    return {path for path, expected in manifest.items() if expected.outcome.split(":")[0] == outcome}


def test_two_thousand_mixed_files(co: Co, tmp_path: Path) -> None:
    folder = tmp_path / "mixed"
    manifest = make_mixed_folder(folder)

    ran = co("add", str(folder), "--json")

    assert ran.code == 0
    assert all(line.startswith("adding ") for line in ran.err.splitlines())
    added = co("source", "tree", "mixed", "--json").json[0]["files"]
    assert len(added) == len(row_paths(ran.json[0]))  # the summary leaves nothing out
    (row,) = ran.json
    skipped = {one["path"]: one["reason"] for one in row["skipped"]}
    assert set(row["added"]) == of(manifest, INDEXED)
    assert {path for path, reason in skipped.items() if reason == "binary"} == of(manifest, BINARY)
    assert {path for path, reason in skipped.items() if reason != "binary"} == of(manifest, SKIPPED)
    assert not of(manifest, IGNORED) & (set(row["added"]) | set(skipped))
    assert all(len(reason) > 5 for path, reason in skipped.items() if path in of(manifest, SKIPPED))

    again = co("add", str(folder), "--json").json[0]

    assert (again["outcome"], again["added"], again["changed"], again["missing"]) == ("skipped", [], [], [])
    assert again["unchanged"] == len(of(manifest, INDEXED))

    edited, deleted = edit_some(folder, manifest), delete_some(folder, manifest)
    seen = co("source", "refresh", "mixed", "--json").json[0]

    assert (seen["added"], set(seen["changed"]), set(seen["missing"])) == ([], set(edited), set(deleted))
    for path, expected in {**{path: manifest[path] for path in sorted(of(manifest, INDEXED))[::150]}, **edited}.items():
        hits = co("search", expected.words[0], "--json", "--no-sync", "--limit", "1").json["hits"]
        assert [hit["ref"].partition("#L")[0] for hit in hits] == [f"folder:mixed/{path}"]
