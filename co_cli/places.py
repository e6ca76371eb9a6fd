"""Where things live when nobody says: the vault, the data folder, the settings files.

Strings and os.path on purpose: a cold search imports this, and pathlib costs a third of a Python start.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from co_cli.errors import SettingsError

if TYPE_CHECKING:
    from collections.abc import Mapping


class ThisProcess:
    """What a door of ours knows of the process that it began, for whoever writes the log. Nothing is opened for it."""

    command: str | None = None
    """None: somebody else's program, which uses the library."""
    vault: str | None = None
    data_dir: str | None = None
    """As the options name them."""
    verbose = False
    chatty = False
    """Does somebody want to hear of more than trouble?"""


this_process = ThisProcess()

PROJECT_FOLDER = ".co-cli"
SETTINGS_FILE = "settings.toml"
TEMPORARY = ".co-tmp-"
"""How the name of a file begins while it is being written."""


def find_project(start: str) -> str | None:
    """The nearest folder at or above `start` that has a `.co-cli` folder."""
    folder = os.path.abspath(start)
    while True:
        if os.path.isdir(os.path.join(folder, PROJECT_FOLDER)):
            return folder
        parent = os.path.dirname(folder)
        if parent == folder:
            return None
        folder = parent


def user_data_dir(environ: Mapping[str, str]) -> str:
    folder = _xdg(environ, "XDG_DATA_HOME", "LOCALAPPDATA", (".local", "share"))
    if folder is None:
        raise SettingsError("your home folder is not known: set HOME, or CO_DATA_DIR and CO_VAULT")
    return os.path.join(folder, "co-cli")


def user_settings_file(environ: Mapping[str, str]) -> str | None:
    """None where nobody has a home."""
    folder = _xdg(environ, "XDG_CONFIG_HOME", "APPDATA", (".config",))
    return None if folder is None else os.path.join(folder, "co-cli", SETTINGS_FILE)


def project_settings_file(project: str) -> str:
    return os.path.join(project, PROJECT_FOLDER, SETTINGS_FILE)


def project_vault(project: str) -> str:
    return os.path.join(project, PROJECT_FOLDER, "knowledge")


def _xdg(environ: Mapping[str, str], variable: str, windows: str, below_home: tuple[str, ...]) -> str | None:
    chosen = environ.get(variable, "")
    if os.path.isabs(chosen):  # the XDG specification: relative paths are to be ignored
        return chosen
    if os.name == "nt" and environ.get(windows):
        return environ[windows]
    home = environ.get("HOME") or os.path.expanduser("~")
    return os.path.join(home, *below_home) if os.path.isabs(home) else None
