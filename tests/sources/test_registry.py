"""`sources.toml`: what was added to which vault."""

from __future__ import annotations

from pathlib import Path

import pytest

from co_cli.errors import SettingsError
from co_cli.sources.origin import Origin
from co_cli.sources.registry import Added, change_registry, origins_beside, read_registry, registry_file

HANDBOOK = Origin("folder", "/srv/handbook", "handbook")


def write(folder: Path, text: str) -> None:
    Path(registry_file(str(folder))).write_text(text, encoding="utf-8")


def test_what_is_written_is_read_again_whatever_its_letters(tmp_path: Path) -> None:
    odd = Origin("folder", '/srv/a "b" \\ c\n\x7f/ünï', "odd", 'x" .pdf')
    entries = [Added("/vault", HANDBOOK, "2026-11-15T08:00:00Z"), Added("/other", odd)]

    change_registry(str(tmp_path), lambda before: [*before, *entries])

    assert read_registry(str(tmp_path)) == entries
    assert origins_beside(str(tmp_path), "/vault") == [HANDBOOK]


def test_a_file_written_by_hand_in_another_way_is_read_all_the_same(tmp_path: Path) -> None:
    write(tmp_path, "[[source]]\nvault='/vault'\nkind = 'folder'\nname=\"handbook\"\npath = '/srv/handbook' # ours\n")

    assert origins_beside(str(tmp_path), "/vault") == [HANDBOOK]


def test_without_a_file_nothing_was_added(tmp_path: Path) -> None:
    assert read_registry(str(tmp_path / "nowhere")) == []


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("[[source]\n", ":1: not valid TOML"),
        ("source = 'x'\n", "begins with [[source]]"),
        ('[[source]]\nvault = "/v"\nkind = "folder"\n', "lacks name and path"),
        ('[[source]]\nvault = "/v"\nkind = "vault"\nname = "x"\npath = "/x"\n', "not 'vault'"),
        ('[[source]]\nvault = 7\nkind = "folder"\nname = "x"\npath = "/x"\n', "lacks vault"),
    ],
)
def test_a_mistake_names_the_file_and_what_is_wrong(tmp_path: Path, text: str, words: str) -> None:
    write(tmp_path, text)

    with pytest.raises(SettingsError) as caught:
        read_registry(str(tmp_path))

    assert registry_file(str(tmp_path)) in str(caught.value)
    assert words in str(caught.value)
