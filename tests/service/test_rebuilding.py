"""A rebuild takes from the files what they give, and carries over what they do not."""

from __future__ import annotations

from pathlib import Path

import apsw
import pytest

from tests.command import Co
from tests.vault import Vault


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


def test_notes_whose_file_is_gone_survive_a_rebuild_as_missing(co: Co, handbook: Path) -> None:
    (handbook / "refunds.md").unlink()
    co("sync")

    for _ in range(2):
        assert co("rebuild").code == 0
        assert refs(co, "refunds over fifty")["folder:handbook/refunds.md"] is True
        assert refs(co, "money back")["folder:handbook/refunds.md"] is True
        assert refs(co, "blue traffic")["folder:handbook/deploy.md"] is False
    assert co("verify").code == 0
    co("refresh", "folder:handbook", "--drop-missing")
    assert "folder:handbook/refunds.md" not in refs(co, "refunds over fifty")


def test_a_folder_that_is_away_keeps_its_notes_through_a_rebuild(co: Co, handbook: Path) -> None:
    away = handbook.rename(handbook.with_name("unmounted"))

    assert co("rebuild").code == 0
    assert refs(co, "blue traffic")["folder:handbook/deploy.md"] is False
    assert refs(co, "refunds")["folder:handbook/refunds.md"] is False

    away.rename(handbook)
    (handbook / "deploy.md").write_text("Green takes the traffic first.")
    assert co("sync").code == 0
    assert refs(co, "green traffic")["folder:handbook/deploy.md"] is False
    ran = co("verify", "--json")
    assert (ran.code, [part["notes"] for part in ran.json["origins"]]) == (0, [1, 2])


def test_an_empty_mount_point_is_not_taken_for_an_emptied_folder(co: Co, handbook: Path) -> None:
    away = handbook.rename(handbook.with_name("unmounted"))
    handbook.mkdir()

    co("rebuild")

    assert refs(co, "blue traffic")["folder:handbook/deploy.md"] is True
    handbook.rmdir()
    away.rename(handbook)
    co("sync")
    assert refs(co, "blue traffic")["folder:handbook/deploy.md"] is False


def test_what_an_older_search_db_lacks_is_no_obstacle(co: Co, handbook: Path, data_dir: Path) -> None:
    connection = apsw.Connection(str(data_dir / "search.db"))
    connection.execute("drop table supersessions; create table supersessions (other text)")
    connection.close()
    (handbook / "refunds.md").unlink()

    assert co("rebuild").code == 0
    assert refs(co, "oaks")["memory:oak"] is False


NAMES_AS_TEXT = """
create table text_names as select vault_id, 'money back' as name, doc_id, kind from names where kind = 'alias';
drop table names; alter table text_names rename to names
"""


def test_names_that_an_older_search_db_has_as_text_are_carried_over(co: Co, handbook: Path, data_dir: Path) -> None:
    connection = apsw.Connection(str(data_dir / "search.db"))
    connection.execute(NAMES_AS_TEXT)
    connection.close()
    away = handbook.rename(handbook.with_name("unmounted"))

    assert co("rebuild").code == 0
    [hit] = co("search", "Money-Back", "--json", "--limit", "1").json["hits"]
    assert hit["ref"].startswith("folder:handbook/refunds.md")
    assert "exact" in hit["signals"]
    away.rename(handbook)


BROKEN = "[[source]\nvault = 'x'\n"


def test_a_broken_list_of_sources_stops_neither_search_nor_doctor(co: Co, handbook: Path, data_dir: Path) -> None:
    file = data_dir / "sources.toml"
    was = file.read_text()
    file.write_text(BROKEN)

    found, nothing, doctor = co("search", "oaks"), co("search", "zebra", "--json"), co("doctor", "--json")

    assert found.code == 0
    assert "memory:oak" in found.out
    assert "note: only the vault was searched: " in found.out.replace("\n", " ")
    assert nothing.json["state"] == "inconclusive"
    [finding] = [one for one in doctor.json if one["level"] == "error"]
    assert (doctor.code, finding["check"]) == (3, "sources")
    assert f"{file}:1" in finding["text"]
    assert co("remember", "Elms fall ill.").code == 0
    assert co("add", str(handbook)).code == 2  # nobody's line is overwritten
    assert file.read_text() == BROKEN
    assert co("rebuild").code == 0  # while it is not known what stands beside the vault

    file.write_text(was)
    assert refs(co, "blue traffic")["folder:handbook/deploy.md"] is False
    assert co("verify").code == 0
