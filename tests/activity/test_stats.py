"""`co feedback stats`: what is asked for and what comes of it, within 80 columns; and how it is cleared."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.command import Co
from tests.folder import Vault


@pytest.fixture(autouse=True)
def notes(vault: Vault) -> None:
    vault.write("memories/oak.md", "---\ntitle: Oaks live long\n---\nOaks live for centuries.")
    vault.write("memories/kettle.md", "---\ntitle: The kettle\n---\nIt whistles in the kitchen.")
    vault.write("articles/deploy.md", "# Deploys\n\nThe blue pool takes traffic first.")


def test_searches_of_the_command_line_are_counted(co: Co) -> None:
    co("search", "oaks")
    co("search", "Oaks", "--json")
    co("note", "recall", "zygomorphic quasar", "--backend", "fts5")

    found = co("feedback", "stats", "--json").json

    assert (found["searches"], found["unanswered"], found["logged"], found["front_ends"]) == (3, 1, 3, {"cli": 3})
    assert [(one["text"], one["times"]) for one in found["common"]] == [("oaks", 2), ("zygomorphic quasar", 1)]
    assert [one["text"] for one in found["found_nothing"]] == ["zygomorphic quasar"]
    assert [one["backend"] for one in found["slow"] if one["text"] == "zygomorphic quasar"] == ["fts5"]
    assert {one["ref"]: one["recalls"] for one in found["most_recalled"]}["memory:oak"] == 2
    assert len(found["days"]) == 30
    assert found["days"][-1]["searches"] == 3


def test_a_note_that_was_found_and_opened_often_ranks_higher_where_use_has_weight(co: Co, vault: Vault) -> None:
    for name in ("ash", "elm"):
        vault.write(f"memories/{name}.md", "A tree in the park.")
    for _ in range(3):
        co("search", "tree in the park path:elm")
        co("show", "memory:elm")

    hits = co("search", "tree in the park", "--weights", "use=0.5", "--json").json["hits"]

    assert [hit["ref"] for hit in hits][:2] == ["memory:elm", "memory:ash"]
    assert hits[0]["signals"]["use"] > hits[1]["signals"].get("use", 0.0)


def test_a_note_that_was_opened_is_younger_in_the_next_command(co: Co, vault: Vault, data_dir: Path) -> None:
    for name in ("ash", "elm"):
        vault.write(f"memories/{name}.md", "---\ncreated: 2024-01-01\n---\nA tree in the park.")
    co("index", "sync")
    co("show", "memory:elm")
    spool = data_dir / "activity.spool"
    spooled = spool.read_bytes() + b'["o", "/", "when?", {}]\n["o"]\n["new", 1]\n["s"'
    spool.write_bytes(spooled)

    hits = co("search", "tree in the park", "--profile", "agent", "--json").json["hits"]

    recency = {hit["ref"]: hit["signals"]["recency"] for hit in hits}
    assert recency["memory:elm"] > recency["memory:ash"]
    assert spool.read_bytes().startswith(spooled)  # it is read, and not moved


def test_the_setting_keeps_words_out_of_every_file(co: Co, data_dir: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for setting, counted in (("off", 0), ("no-text", 1)):
        monkeypatch.setenv("CO_QUERY_LOG", setting)
        co("search", "oaks of my secret garden")

        found = co("feedback", "stats", "--json").json

        assert (found["common"], found["searches"]) == ([], counted), setting
        assert not any(b"secret garden" in path.read_bytes() for path in data_dir.iterdir()), setting


def test_clearing_leaves_no_word_in_any_file_and_keeps_history_and_counts(co: Co, data_dir: Path) -> None:
    for number in range(8):
        co("search", f"oaks of my secret garden {number}")
    co("feedback", "stats")
    co("search", "oaks of my secret garden, spooled")

    ran = co("feedback", "stats", "--clear", "--yes", "--json")

    assert (ran.code, ran.json) == (0, {"cleared": 9})
    found = co("feedback", "stats", "--json").json
    assert (found["searches"], found["logged"], found["common"]) == (0, 0, [])
    assert found["most_recalled"][0]["recalls"] == 9
    assert co("note", "history", "oak", "--json").json["changes"]
    assert [path.name for path in data_dir.iterdir() if b"secret garden" in path.read_bytes()] == []
