"""`sources.toml`: what was added to which vault."""

from __future__ import annotations

from pathlib import Path

from co_cli.ground.errors import SettingsError
from co_cli.sources.origin import Added, Origin, added_sources, change_registry, read_registry, registry_file

HANDBOOK = Origin("folder", "/srv/handbook", "handbook")


def test_origins_are_read_as_they_were_written(tmp_path: Path) -> None:
    assert read_registry(str(tmp_path / "nowhere")) == []
    odd = Origin("folder", '/srv/a "b" \\ c\n\x7f/ünï', "odd", 'x" .pdf')
    entries = [Added("/vault", HANDBOOK, "2026-11-15T08:00:00Z"), Added("/other", odd)]

    change_registry(str(tmp_path), lambda before: [*before, *entries])

    assert read_registry(str(tmp_path)) == entries
    assert 'source = "folder"' in Path(registry_file(str(tmp_path))).read_text()
    assert [entry.origin for entry in added_sources(str(tmp_path), ["/vault"])] == [HANDBOOK]


def test_mistakes_name_the_file_and_what_is_wrong(tmp_path: Path) -> None:
    source = '[[source]]\nvault = "/v"\nsource = "folder"\nname = "x"\npath = "/x"\n'
    expected = {
        "[[source]\n": ":1: not valid TOML",
        "source = 'x'\n": "begins with [[source]]",
        '[[source]]\nvault = "/v"\nsource = "folder"\n': "lacks name and path",
        source.replace('"folder"', '"vault"'): "not 'vault'",
        source.replace('"/v"', "7"): "lacks vault",
        source.replace('"/x"', '"x"'): "absolute",
        source.replace('"x"', '"a/b"'): "a word such as handbook",
    }
    said: dict[str, str] = {}
    for text in expected:
        Path(registry_file(str(tmp_path))).write_text(text)
        try:
            read_registry(str(tmp_path))
        except SettingsError as error:
            said[text] = str(error)

    wrong = {text: said.get(text) for text, words in expected.items() if words not in said.get(text, "")}
    assert wrong == {}
    assert all(registry_file(str(tmp_path)) in line for line in said.values())
