"""Filters that leave nothing, an empty vault, and the tags there are."""

from __future__ import annotations

from pathlib import Path

from tests.command import Co
from tests.vault import Vault

BLUE = "---\ntitle: Blue first\ntags: [deploy]\n---\nBlue takes traffic first. #ops/pools\n"


def test_a_tag_that_no_note_has_is_named_with_the_one_that_may_be_meant(co: Co, vault: Vault) -> None:
    vault.write("memories/blue.md", BLUE)

    for command in (("search", "traffic"), ("note", "recall", "traffic"), ("list",)):
        ran = co(*command, "--tag", "deployment")
        assert ran.code == 1
        assert "No note has the tag deployment: did you mean deploy?" in ran.out, command


def test_what_a_search_has_without_its_filters_is_named_and_not_counted_as_found(co: Co, vault: Vault) -> None:
    vault.write("memories/blue.md", BLUE)

    for filters in (("--tag", "nope"), ("--category", "decision"), ("--since", "2090-01-01"), ("--source", "article")):
        ran = co("search", "traffic", *filters)
        assert ran.code == 1
        assert f"Without {filters[0]} there is Blue first (memory:blue)." in ran.out
    assert co("search", "traffic", "--tag", "nope", "--json").json["hits"] == []


def test_nothing_is_said_of_filters_where_there_is_nothing_without_them_either(co: Co, vault: Vault) -> None:
    vault.write("memories/blue.md", BLUE)

    ran = co("search", '"quarterly revenue"', "--tag", "ops")

    assert ran.out.startswith("Nothing found: 1 note searched")
    assert len(ran.out.splitlines()) == 1


def test_a_list_that_a_filter_empties_does_not_say_that_there_are_no_notes(co: Co, vault: Vault) -> None:
    vault.write("memories/blue.md", BLUE)

    assert co("list", "--since", "2090-01-01").out == "No notes with --since.\n"
    assert co("list", "article").out == "No notes.\n"


def test_a_search_in_an_empty_vault_says_how_to_begin(co: Co, vault: Vault) -> None:
    ran = co("search", "anything")

    assert ran.code == 1
    assert "there are no notes here yet. `co remember TEXT`" in ran.out


def test_tags_are_listed_with_their_notes_the_most_used_first(co: Co, vault: Vault) -> None:
    vault.write("memories/blue.md", BLUE)
    vault.write("memories/oak.md", "---\ntags: [deploy, trees]\n---\nOaks.\n")
    vault.write("articles/elm.md", "# Elm\n\nTall. #trees #deploy\n")

    assert co("note", "tags").out.splitlines() == ["#deploy  3 notes", "#trees  2 notes", "#ops/pools  1 note"]
    assert co("note", "tags", "article", "--json").json == {"deploy": 1, "trees": 1}


def test_without_any_tag_it_is_said_how_to_give_one(co: Co, vault: Vault) -> None:
    vault.write("memories/oak.md", "Oaks.")

    ran = co("note", "tags")

    assert (ran.code, ran.out.split(":")[0]) == (1, "No tags")


def test_a_vault_without_notes_says_what_its_sources_have(co: Co, vault: Vault, tmp_path: Path) -> None:
    (tmp_path / "animals").mkdir()
    (tmp_path / "animals" / "zebra.md").write_text("Zebras have stripes.")
    co("add", str(tmp_path / "animals"))

    ran = co("search", "zebra stripes", "--source", "memory")

    assert "no notes here yet" not in ran.out
    assert "Without --source there is Zebra (folder:animals/zebra.md" in ran.out


def test_the_tags_of_a_vault_that_was_never_read_are_not_said_to_be_none(co: Co, vault: Vault) -> None:
    vault.write("memories/oak.md", "Oaks live long. #trees")

    ran = co("note", "tags", "--no-sync")

    assert (ran.code, "`co index sync`" in ran.out, "No tags" in ran.out) == (1, True, False)
    assert "#trees" in co("note", "tags").out
