"""Which note a link means, as Obsidian decides it."""

from __future__ import annotations

import pytest

from co_cli.notes.wikilinks import link_key, resolve_link

PATHS = ["Plan.md", "Work/Plan.md", "Work/Alpha/Plan.md", "Home/Plan.md", "Home/Garden/Plan.md"]


@pytest.mark.parametrize(
    ("target", "linking", "meant"),
    [
        ("Plan", "Index.md", "Plan.md"),
        ("plan", "Index.md", "Plan.md"),
        ("Plan.md", "Index.md", "Plan.md"),
        ("Plan#Budget", "Index.md", "Plan.md"),
        ("Plan#^block", "Index.md", "Plan.md"),
        ("Plan", "Work/Index.md", "Plan.md"),  # a path from the root comes first
        ("Alpha/Plan", "Index.md", "Work/Alpha/Plan.md"),
        ("work/plan", "Home/Index.md", "Work/Plan.md"),
        ("./Plan", "Work/Index.md", "Work/Plan.md"),
        ("../Plan", "Home/Garden/Index.md", "Home/Plan.md"),
        ("../../Plan", "Home/Garden/Index.md", "Plan.md"),
        ("/Home/Plan", "Work/Index.md", "Home/Plan.md"),
        ("Elsewhere/Plan", "Index.md", None),
        ("./Plan", "Elsewhere/Index.md", None),
        ("lan", "Index.md", None),
    ],
)
def test_a_link_means_what_it_means_in_obsidian(target: str, linking: str, meant: str | None) -> None:
    assert resolve_link(target, linking, PATHS) == meant


def test_without_one_at_the_root_the_own_folder_comes_first_and_then_the_shortest_path() -> None:
    paths = PATHS[1:]

    assert resolve_link("Plan", "Home/Index.md", paths) == "Home/Plan.md"
    assert resolve_link("Plan", "Home/Garden/Index.md", paths) == "Home/Garden/Plan.md"
    assert resolve_link("Plan", "Index.md", paths) == "Home/Plan.md"  # as long as Work/Plan.md, and first by name


def test_a_key_is_the_name_without_folders_ending_and_case() -> None:
    assert link_key("Work/Über Plan.md#Budget") == link_key("über plan") == "über plan"
    assert link_key("picture.png") == "picture.png"
