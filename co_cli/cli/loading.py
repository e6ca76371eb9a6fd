"""The loading agent that the settings describe."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from co_cli.errors import SettingsError
from co_cli.settings import Settings

if TYPE_CHECKING:
    from co_cli.service.loading import Loader


@contextmanager
def configured_loader(settings: Settings, prompt_addition: str = "") -> Generator[Loader | None]:
    """The loader for one command; None if the settings name none."""
    model, servers = settings.loading_model, settings.loading_servers
    if bool(model) != bool(servers):
        given, missing = ("loading_model", "loading_servers") if model else ("loading_servers", "loading_model")
        raise SettingsError(f"{settings.origins[given]}: {given} is set but {missing} is not: set both or neither")
    if not model or not servers:
        yield None
        return
    from co_cli.agent.loading import LoadingAgent, read_servers  # imports pydantic-ai and mcp
    from co_cli.chat.models import load_model

    seconds, max_bytes = settings.loading_seconds, settings.web_max_bytes
    with LoadingAgent(load_model(model), read_servers(servers), seconds, max_bytes, prompt_addition) as loader:
        yield loader
