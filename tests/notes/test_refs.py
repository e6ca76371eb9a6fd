"""A ref opens exactly one file, and every file has one ref."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from co_cli.notes.refs import lines_of, path_of, ref_of, without_lines

NAMES = st.text(
    st.characters(codec="utf-8", exclude_characters="/\\\0", exclude_categories=["Cs"]), min_size=1, max_size=20
)
ENDINGS = st.sampled_from([".md", ".markdown", ".MD"])


def test_a_ref_names_the_source_and_the_place() -> None:
    for path, source, ref in (
        ("memories/oak.md", "memory", "memory:oak"),
        ("articles/trees/oak.md", "article", "article:trees/oak"),
        ("inbox/oak.md", "article", "article:/inbox/oak"),
        ("README.md", "article", "article:/README"),
        ("articles/oak.md", "memory", "memory:/articles/oak"),
        ("articles/c#.md", "article", "article:c#"),
        ("memories/oak.markdown", "memory", "memory:oak.markdown"),
    ):
        assert ref_of(path, source) == ref
        assert path_of(ref) == path


@pytest.mark.slow
@given(folders=st.lists(NAMES, max_size=3), name=NAMES, ending=ENDINGS, source=st.sampled_from(["memory", "article"]))
def test_every_path_comes_back_from_its_ref(folders: list[str], name: str, ending: str, source: str) -> None:
    path = "/".join([*folders, name + ending])

    assert path_of(ref_of(path, source)) == path


def test_a_ref_may_point_at_lines() -> None:
    for ref, lines in (
        ("article:oak#L10-24", (10, 24)),
        ("article:oak#L10-L24", (10, 24)),
        ("article:oak#L7", (7, 7)),
        ("article:oak", None),
    ):
        assert lines_of(ref) == lines
        assert path_of(ref) == "articles/oak.md"
        assert without_lines(ref) == "article:oak"


@pytest.mark.parametrize("text", ["oak", "", "memory:", "memory:/", "url:x", "https://x", "C:\\notes"])
def test_what_is_no_ref_names_no_path(text: str) -> None:
    assert path_of(text) is None
