"""Team vaults: a git repository is the truth, PostgreSQL holds what is not committed yet, every server has a clone.

Used where the setting `engine` names PostgreSQL and the vault is a git repository. A module is imported when it is
first used as an attribute of this package: PostgreSQL's packages are an extra.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from types import ModuleType

    from co_cli.team import git as git
    from co_cli.team import team_vault as team_vault


def __getattr__(name: str) -> ModuleType:
    if name not in ("git", "team_vault"):
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return import_module(f"{__name__}.{name}")
