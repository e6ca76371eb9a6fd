"""Read one settings.toml into (setting, value, "file:line") triples.

Refuses broken TOML and unknown names, and in a project's file whatever would make a clone unsafe to open.
"""

from __future__ import annotations

import os
import re
import tomllib
from collections.abc import Iterator
from difflib import get_close_matches
from math import inf, isfinite
from typing import cast

from co_cli.errors import SettingsError
from co_cli.regular import open_regular
from co_cli.settings import BY_NAME, Setting

LARGEST = 1_000_000
OLD_NAMES = {name.removeprefix("knowledge_"): name for name in BY_NAME if name.startswith("knowledge_")}
"""Settings that were once named without the prefix of their variable, and their names now."""
CLOUD = re.compile(r"(?i)[-:]cloud$")
"""How Ollama calls models that it asks for elsewhere, with all that they are given."""


def read_settings_file(file: str, project: str | None) -> Iterator[tuple[Setting, object, str]]:
    """`project` is the folder the file belongs to, or None for the person's own file."""
    text = ""
    if project is not None and not os.path.realpath(file).startswith(os.path.realpath(project) + os.sep):
        raise SettingsError(f"{file} is a link that leads out of the project: put a file in its place")
    try:
        with open_regular(file) as stream:
            data = stream.read(LARGEST + 1)
        if len(data) > LARGEST:
            raise SettingsError(f"{file}: more than {LARGEST:,} bytes are no settings: look what it is, and mend it")
        text = data.decode("utf-8").replace("\r\n", "\n")
        table = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        place = re.search(r"\(at line (\d+)", str(error))
        line = place[1] if place else str(text.count("\n") + 1)
        raise SettingsError(f"{file}:{line}: not valid TOML: {error}") from None
    except UnicodeDecodeError:
        raise SettingsError(f"{file}:1: not UTF-8 text; save it as UTF-8") from None
    except OSError as error:
        raise SettingsError(f"{file}: cannot be read: {error.strerror}") from None

    for name, raw in table.items():
        origin = f"{file}:{_line_of(text, name)}"
        setting = BY_NAME.get(name)
        if setting is None:
            raise SettingsError(f"{origin}: {unknown_setting(name)}")
        if project is not None:
            _refuse_unsafe(setting, raw, origin, project)
        yield setting, raw, origin


def unknown_setting(name: str) -> str:
    if name in OLD_NAMES:
        return f"{name} is now called {OLD_NAMES[name]}"
    close = get_close_matches(name, [*BY_NAME, *OLD_NAMES], n=1)
    hint = f"did you mean {OLD_NAMES.get(close[0], close[0])}?" if close else "`co config show` lists them"
    return f"unknown setting {name!r}: {hint}"


def _number(raw: object) -> float:
    """A number however it is written, as the settings take it; what is none is for them to refuse."""
    try:
        number = float(raw) if isinstance(raw, int | float | str) else 0.0
    except ValueError:
        return 0.0
    except OverflowError:
        return inf
    return number if isfinite(number) else 0.0


def _refuse_unsafe(setting: Setting, raw: object, origin: str, project: str) -> None:
    if not setting.project_may:
        raise SettingsError(
            f"{origin}: a project may not set {setting.name}; put it in your own settings file or {setting.environment}"
        )
    if setting.project_choices and raw not in setting.project_choices:
        raise SettingsError(
            f"{origin}: a project may set {setting.name} to {', '.join(setting.project_choices)} only; "
            f"choose {raw!r} yourself with {setting.environment}"
        )
    if setting.project_most and _number(raw) > setting.project_most:
        raise SettingsError(
            f"{origin}: a project may set {setting.name} to {setting.project_most:,.0f} at most; "
            f"choose {raw!r} yourself with {setting.environment}"
        )
    if setting.name == "knowledge_embedding_model" and isinstance(raw, str) and CLOUD.search(raw.strip()):
        raise SettingsError(
            f"{origin}: a project may not choose a model that sends notes elsewhere; set {setting.environment} yourself"
        )
    if setting.kind in ("path", "paths"):
        root = os.path.realpath(project)
        for part in _parts(raw) if setting.kind == "paths" else (str(raw),):
            target = os.path.realpath(os.path.join(root, os.path.expanduser(part)))
            if os.path.commonpath([root, target]) != root:
                raise SettingsError(f"{origin}: a project may not point {setting.name} outside itself ({part})")


def _parts(raw: object) -> list[str]:
    """The members of a list, however it is written; what is no list at all is refused by whoever reads its value."""
    members: object = raw.split(",") if isinstance(raw, str) else raw
    return [str(part).strip() for part in cast("list[object]", members)] if isinstance(members, list) else []


def _line_of(text: str, name: str) -> int:
    found = re.search(rf"^[ \t]*(\[?\"?){re.escape(name)}\b", text, re.MULTILINE)
    return text.count("\n", 0, found.start()) + 1 if found else 1
