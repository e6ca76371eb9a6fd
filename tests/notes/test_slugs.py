"""Any title becomes a file name that is readable, portable and inside the vault."""

from __future__ import annotations

import os
import unicodedata
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from co_cli.notes.refs import LONGEST, LONGEST_BYTES, name_key, slugify
from co_cli.notes.store import NoteStore

WINDOWS_FORBIDS = set('<>:"/\\|?*') | {chr(code) for code in range(32)}
RESERVED = {"con", "prn", "aux", "nul", *(f"{port}{digit}" for port in ("com", "lpt") for digit in "0123456789¹²³")}


def test_a_title_becomes_a_readable_name() -> None:
    names = {
        "Deploys go through the blue pool first": "deploys-go-through-the-blue-pool-first",
        "../../x": "x",
        "..\\..\\x": "x",
        "/etc/passwd": "etc-passwd",
        ".hidden": "hidden",
        "...": "note",
        "": "note",
        "CON": "con-note",
        "COM¹": "com1-note",
        "🚤⚓️🌊": "note",
        "Ship it 🚀 now": "ship-it-now",
        "Don't panic": "dont-panic",
        "Crème brûlée": "creme-brulee",
        "Straße": "strasse",
        "日本語のメモ": "日本語のメモ",
        "a\0b\nc\u202ed": "a-b-c-d",
        "--rf -- x": "rf-x",
        "x" * 300: "x" * LONGEST,
    }

    assert {title: slugify(title) for title in names} == names


@given(title=st.text(max_size=400))
def test_any_title_gives_a_portable_name(title: str) -> None:
    slug = slugify(title)

    assert slug
    assert not set(slug) & WINDOWS_FORBIDS
    assert slug not in RESERVED
    assert len(slug) <= LONGEST + len("-note")
    assert len(slug.encode()) <= LONGEST_BYTES + len("-note")
    assert slug == name_key(slug)
    assert not slug.startswith((".", "-"))
    assert not slug.endswith((".", " ", "-"))


@given(
    titles=st.lists(st.text(max_size=40) | st.sampled_from(["../../x", "/x", "X", "x", "CON"]), min_size=1, max_size=4)
)
def test_any_title_yields_a_path_inside_the_vault(titles: list[str], tmp_path_factory: pytest.TempPathFactory) -> None:
    root = tmp_path_factory.mktemp("vault")
    store = NoteStore(str(root))

    paths = [store.create("memories", title, str(number).encode()) for number, title in enumerate(titles)]

    for number, path in enumerate(paths):
        real = Path(os.path.realpath(store.absolute(path)))
        assert real.parent == (root / "memories").resolve()
        assert real.read_bytes() == str(number).encode()
    assert sorted(file.name for file in root.rglob("*") if file.is_file()) == sorted(
        path.split("/")[1] for path in paths
    )


def test_a_name_that_differs_in_case_or_composition_only_is_taken(tmp_path: Path) -> None:
    store = NoteStore(str(tmp_path))
    (tmp_path / "memories").mkdir()
    for name in ("Oak.md", unicodedata.normalize("NFD", "한글.md")):
        (tmp_path / "memories" / name).write_text("somebody's own")

    assert store.create("memories", "oak", b"ours") == "memories/oak-2.md"
    assert store.create("memories", unicodedata.normalize("NFC", "한글"), b"ours") == "memories/한글-2.md"
    assert (tmp_path / "memories" / "Oak.md").read_text() == "somebody's own"
