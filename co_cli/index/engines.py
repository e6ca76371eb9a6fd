"""The engine that the setting `engine` names."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from co_cli.ground.errors import SettingsError
from co_cli.ground.paths import install_line
from co_cli.index.sqlite.sqlite_engine import SqliteEngine

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from co_cli.ground.settings import Settings
    from co_cli.index.engine import Engine


def engine_of(
    settings: Settings,
    roots: Mapping[str, str] | None = None,
    on_set_aside: Callable[[str], None] | None = None,
) -> Engine:
    """`roots` gives folders the names under which all servers of a team know them; `on_set_aside` is called with one
    line of text when an unusable file was moved aside, which is logged anyway."""
    if settings.engine == "sqlite":
        return SqliteEngine.at(os.path.join(settings.data_dir, "search.db"), on_set_aside)
    try:
        from co_cli.index.postgres.postgres_engine import PostgresEngine  # an extra, and 250 ms
    except ImportError as error:
        raise SettingsError(f"PostgreSQL needs {error.name}: `{install_line('postgres')}`") from None
    return PostgresEngine(settings.engine, roots=roots, replica=settings.engine_replica)
