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
    for title, slug in (
        ("Deploys go through the blue pool first", "deploys-go-through-the-blue-pool-first"),
        ("../../x", "x"),
        ("..\\..\\x", "x"),
        ("/etc/passwd", "etc-passwd"),
        ("C:\\Windows\\system32", "c-windows-system32"),
        (".hidden", "hidden"),
        ("...", "note"),
        ("", "note"),
        ("CON", "con-note"),
        ("nul.txt", "nul-txt"),
        ("LPT1", "lpt1-note"),
        ("COM¹", "com1-note"),
        ("🎉🎉", "note"),
        ("🚤⚓️🌊", "note"),
        ("⚓️ Boats", "boats"),
        ("Ship it 🚀 now", "ship-it-now"),
        ("Don't panic", "dont-panic"),
        ("Crème brûlée", "creme-brulee"),
        ("Straße", "strasse"),
        ("日本語のメモ", "日本語のメモ"),
        ("ภาษาไทย", "ภาษาไทย"),
        ("a\0b\nc\u202ed", "a-b-c-d"),
        ("--rf -- x", "rf-x"),
        ("trailing dots...", "trailing-dots"),
        ("x" * 300, "x" * LONGEST),
        ("word " * 100, "-".join(["word"] * 12)),
    ):
        assert slugify(title) == slug


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


def test_names_that_differ_in_case_only_never_share_a_file(tmp_path: Path) -> None:
    store = NoteStore(str(tmp_path))
    (tmp_path / "memories").mkdir()
    (tmp_path / "memories" / "Oak.md").write_text("somebody's own")

    path = store.create("memories", "oak", b"ours")

    assert path == "memories/oak-2.md"
    assert (tmp_path / "memories" / "Oak.md").read_text() == "somebody's own"


def test_a_decomposed_file_name_is_taken_for_its_composed_twin(tmp_path: Path) -> None:
    store = NoteStore(str(tmp_path))
    (tmp_path / "memories").mkdir()
    (tmp_path / "memories" / unicodedata.normalize("NFD", "한글.md")).write_text("theirs")

    assert store.create("memories", unicodedata.normalize("NFC", "한글"), b"ours") == "memories/한글-2.md"
