"""A rebuild reads all files again, also where some of them cannot be read."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.command import Co
from tests.folder import Vault


@pytest.fixture
def handbook(co: Co, vault: Vault, tmp_path: Path) -> Path:
    folder = tmp_path / "handbook"
    folder.mkdir()
    (folder / "deploy.md").write_text("# Deploy\n\nBlue takes the traffic first. See [[refunds]].\n\n## Then\n\nGreen.")
    (folder / "refunds.md").write_text("---\naliases: [money back]\n---\nRefunds over fifty need approval.")
    vault.write("memories/oak.md", "Oaks live long.")
    assert co("add", str(folder)).code == 0
    return folder


def refs(co: Co, query: str) -> dict[str, bool]:
    return {hit["ref"].partition("#")[0]: hit["missing"] for hit in co("search", query, "--json").json["hits"]}


def test_a_folder_that_is_away_during_a_rebuild_is_indexed_when_it_is_back(co: Co, handbook: Path) -> None:
    away = handbook.rename(handbook.with_name("unmounted"))

    assert co("index", "rebuild").code == 0
    assert refs(co, "oaks")["memory:oak"] is False
    away.rename(handbook)

    assert refs(co, "blue traffic")["folder:handbook/deploy.md"] is False
    assert co("index", "verify").code == 0


BROKEN = "[[source]\nvault = 'x'\n"


def test_a_broken_list_of_sources_stops_neither_search_nor_doctor(co: Co, handbook: Path, data_dir: Path) -> None:
    file = data_dir / "sources.toml"
    was = file.read_text()
    file.write_text(BROKEN)

    found, nothing, doctor = co("search", "oaks"), co("search", "zebra", "--json"), co("doctor", "--json")

    assert found.code == 0
    assert "memory:oak" in found.out
    assert "note: linked sources were not searched: " in found.out.replace("\n", " ")
    assert nothing.json["state"] == "inconclusive"
    [finding] = [one for one in doctor.json if one["level"] == "error"]
    assert (doctor.code, finding["check"]) == (3, "sources")
    assert f"{file}:1" in finding["text"]
    assert co("remember", "Elms fall ill.").code == 0
    assert co("add", str(handbook)).code == 2  # nobody's line is overwritten
    assert file.read_text() == BROKEN
    assert co("index", "rebuild").code == 0  # while it is not known what stands beside the vault

    file.write_text(was)
    assert refs(co, "blue traffic")["folder:handbook/deploy.md"] is False
    assert co("index", "verify").code == 0
