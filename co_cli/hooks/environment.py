"""The variables that count for a hook: those of the day it was set up, not those that a project brings.

Clients read variables from files of a project, such as `.env`, and pass them to hooks. A clone must not choose a vault
that way, nor the folder that has the list of trusted ones. So `co setup` writes the variables into the data folder and
names that folder in the command line, and a hook with such a command line takes no others.
"""

from __future__ import annotations

import json
import os

from co_cli.ground.settings import SETTINGS, Settings
from co_cli.notes.files import make_folders, read_json, replace

FOLDER = "coding-agents"
OURS = ("CO_", "XDG_")
MARKER = "CO_NO_HOOKS"
"""Set in every process that co starts for a hook: a client in there gets nothing, and starts nothing."""


def _file(data_dir: str) -> str:
    return os.path.join(data_dir, FOLDER, "environment.json")


def keep_environment(settings: Settings) -> None:
    """Write the variables that count now, for `restore_environment`."""
    chosen = [setting.environment for setting in SETTINGS if settings.set_by[setting.name] == setting.environment]
    kept = {name: os.environ[name] for name in os.environ if name in chosen or name.startswith("XDG_")}
    make_folders(os.path.join(settings.data_dir, FOLDER), private=True)
    replace(_file(settings.data_dir), json.dumps(kept, indent=1).encode(), private=True)


def restore_environment(data_dir: str) -> None:
    """Take those variables, and no others that could change where co looks."""
    kept = read_json(_file(data_dir))
    for name in [name for name in os.environ if name.startswith(OURS)]:
        del os.environ[name]
    os.environ.update({name: value for name, value in kept.items() if isinstance(value, str) and name.startswith(OURS)})
