"""What a knowledge base can do, one module for each part.

A module is imported when it is first used as an attribute of this package, so that `co search` starts fast.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from types import ModuleType

    from co_cli.service import checkpoints as checkpoints
    from co_cli.service import doctor as doctor
    from co_cli.service import history as history
    from co_cli.service import lookup as lookup
    from co_cli.service import origins as origins
    from co_cli.service import server_client as server_client
    from co_cli.service import skills as skills
    from co_cli.service import vault_writer as vault_writer
    from co_cli.service import vaults as vaults
    from co_cli.service import web_pages as web_pages

LAZY = (
    "checkpoints",
    "doctor",
    "history",
    "lookup",
    "origins",
    "server_client",
    "skills",
    "vault_writer",
    "vaults",
    "web_pages",
)


def __getattr__(name: str) -> ModuleType:
    if name not in LAZY:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return import_module(f"{__name__}.{name}")
