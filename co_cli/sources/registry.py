"""Which origins stand beside which vault: `sources.toml` in the data folder, one table for each that was added.

It is a person's own file, as settings are, and may be edited by hand; nothing of it is in search.db alone. A project's
checked-in files have no say here: a clone must not make a folder outside of it searchable.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, NamedTuple

from co_cli.errors import SettingsError
from co_cli.sources.origin import KINDS, REGISTRY, VAULT, Origin

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

HEAD = "# What `co add` made searchable beside a vault. `co source list` lists it, `co source remove` takes one out.\n"
TABLE = "[[source]]"
FIELDS = ("vault", "kind", "name", "path", "only", "added")


class Added(NamedTuple):
    """One table of the file."""

    vault: str
    origin: Origin
    added: str = ""
    """When, as a moment."""


def registry_file(data_dir: str) -> str:
    return os.path.join(data_dir, REGISTRY)


def origins_beside(data_dir: str, vault: str) -> list[Origin]:
    """The origins that were added to a vault, in their order."""
    return [entry.origin for entry in read_registry(data_dir) if entry.vault == vault]


def read_registry(data_dir: str) -> list[Added]:
    file = registry_file(data_dir)
    try:
        with open(file, encoding="utf-8") as stream:
            text = stream.read()
    except (FileNotFoundError, NotADirectoryError):
        return []
    except UnicodeDecodeError:
        raise SettingsError(f"{file}:1: not UTF-8 text; save it as UTF-8") from None
    except OSError as error:
        raise SettingsError(f"{file}: cannot be read: {error.strerror}") from None
    tables = _as_we_write_it(text)
    return [_entry(table, file) for table in (_as_toml(text, file) if tables is None else tables)]


def change_registry(data_dir: str, change: Callable[[list[Added]], Sequence[Added]]) -> None:
    """Read the file, change what it says and write it, with nobody in between."""
    from co_cli.notes.files import create_exclusively, locked, make_folders, replace

    make_folders(data_dir)
    file = registry_file(data_dir)
    with locked(data_dir):
        data = _render(change(read_registry(data_dir))).encode()
        if not create_exclusively(file, data):
            replace(file, data)


def _as_we_write_it(text: str) -> list[dict[str, str]] | None:
    """The tables of a file that nobody wrote by hand in another way; None: a parser, slow to import, must be asked."""
    tables: list[dict[str, str]] = []
    for line in text.split("\n"):
        if not line or line[0] == "#":
            continue
        if line == TABLE:
            tables.append({})
            continue
        key, equals, value = line.partition(" = ")
        plain = len(value) > 1 and value[0] == value[-1] == '"' and value.count('"') == 2 and "\\" not in value
        if not tables or not equals or key not in FIELDS or not plain:
            return None
        tables[-1][key] = value[1:-1]
    return tables


def _as_toml(text: str, file: str) -> list[dict[str, str]]:
    import re
    import tomllib

    try:
        found: object = tomllib.loads(text).get("source", [])
    except tomllib.TOMLDecodeError as error:
        place = re.search(r"\(at line (\d+)", str(error))
        raise SettingsError(f"{file}:{place[1] if place else 1}: not valid TOML: {error}") from None
    if not isinstance(found, list):
        raise SettingsError(f"{file}: a source is a table that begins with {TABLE}")
    return [table if isinstance(table, dict) else {} for table in found]  # pyright: ignore[reportUnknownVariableType]


def _entry(table: dict[str, str], file: str) -> Added:
    lacking = [field for field in FIELDS[:4] if not isinstance(table.get(field), str) or not table[field]]
    if lacking:
        raise SettingsError(f"{file}: a source lacks {' and '.join(lacking)}; mend it or take it out")
    if table["kind"] not in KINDS or table["kind"] == VAULT:
        kinds = ", ".join(kind for kind in KINDS if kind != VAULT)
        raise SettingsError(f"{file}: a source is of one of the kinds {kinds}, not {table['kind']!r}")
    if not os.path.isabs(table["path"]):
        raise SettingsError(f"{file}: the path of a source is written out from the root, not {table['path']!r}")
    if "/" in table["name"] or ":" in table["name"]:
        raise SettingsError(f"{file}: the name of a source is a word such as handbook, not {table['name']!r}")
    origin = Origin(table["kind"], table["path"], table["name"], str(table.get("only", "")))
    return Added(table["vault"], origin, str(table.get("added", "")))


def _render(entries: Sequence[Added]) -> str:
    from json import dumps  # TOML's strings are JSON's, but for one character

    parts = [HEAD]
    for entry in entries:
        kind, root, name, only, _ = entry.origin
        values = (entry.vault, kind, name, root, only, entry.added)
        lines = [
            f"{field} = {dumps(value, ensure_ascii=False)}".replace("\x7f", "\\u007f")
            for field, value in zip(FIELDS, values, strict=True)
            if value
        ]
        parts.append("\n".join(("", TABLE, *lines, "")))
    return "".join(parts)
