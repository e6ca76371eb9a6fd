"""Change one setting in a settings.toml: the other lines and all comments stay as they are."""

from __future__ import annotations

import contextlib
import json
import os
import re
import tomllib

from co_cli.embedding.embedders import space_of
from co_cli.ground.errors import SettingsError
from co_cli.ground.paths import user_settings_file
from co_cli.ground.settings import BY_NAME, Settings, load_settings, unknown_setting
from co_cli.notes.files import locked, make_folders, replace


def own_settings_file() -> str:
    """Where the user's settings are. Raises SettingsError if there is no home folder."""
    file = user_settings_file(os.environ)
    if file is None:
        raise SettingsError("your home folder is not known: set HOME")
    return file


def settings_now(started: Settings) -> Settings:
    """The settings as a process with the same flags would have them now."""
    flags = {name: getattr(started, name) for name, origin in started.set_by.items() if origin.startswith("--")}
    return load_settings(flags)


def read_value(name: str, text: str) -> object:
    """What somebody typed, as the setting's type. Raises SettingsError that says what is expected."""
    if name not in BY_NAME:
        raise SettingsError(unknown_setting(name))
    try:
        value = getattr(load_settings({name: text}), name)
    except SettingsError as error:
        raise SettingsError(str(error).partition(": ")[2]) from None
    if name == "knowledge_embedding_provider":
        space_of(value)
    return value


def write_setting(file: str, name: str, value: object) -> None:
    """Change one line of a settings.toml, or add or remove it."""
    file = os.path.realpath(file)  # it may be a link to a folder of dotfiles
    make_folders(os.path.dirname(file))
    with locked(os.path.dirname(file)):  # before it is read, so that no other change is lost
        replace(file, _edited(file, name, value), private=not os.path.exists(file))


def _edited(file: str, name: str, value: object) -> bytes:
    before = ""
    if os.path.exists(file):
        with open(file, encoding="utf-8", newline="") as stream:
            before = stream.read()
    listed: object = list(value) if isinstance(value, tuple) else value  # pyright: ignore[reportUnknownVariableType, reportUnknownArgumentType]
    found = re.search(rf"^[ \t]*{name}[ \t]*=.*(?:\n|\Z)", before, re.MULTILINE)
    comment = _comment_of(found[0]) if found else ""
    line = "" if value is None else f"{name} = {json.dumps(listed, ensure_ascii=False)}{comment}\n"
    start, end = found.span() if found else (len(before), len(before))
    gap = "\n" if not found and before and not before.endswith("\n") else ""
    after = before[:start] + gap + line + before[end:]
    expected: dict[str, object] = {**tomllib.loads(before), name: listed}
    if value is None:
        del expected[name]
    try:
        changed = tomllib.loads(after) == expected
    except tomllib.TOMLDecodeError:  # its value has several lines
        changed = False
    if not changed:
        raise SettingsError(f"{file}: {name} is written in a way that co cannot change: edit the file")
    return after.encode()


def _comment_of(line: str) -> str:
    """The comment after a value, and the blanks before it: the first # that does not belong to the value."""
    for mark in re.finditer(r"[ \t]*#", line):
        with contextlib.suppress(tomllib.TOMLDecodeError):
            tomllib.loads(line[: mark.start()])
            return line[mark.start() :].rstrip()
    return ""
