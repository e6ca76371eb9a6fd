"""The loading agent that the settings describe, made when the first address needs it: its library is slow to import."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from co_cli.errors import SettingsError
from co_cli.settings import Settings

if TYPE_CHECKING:
    from co_cli.agent.loading import LoadingAgent
    from co_cli.service.loading import Answer


@contextmanager
def configured_loader(settings: Settings) -> Generator[ConfiguredLoader | None]:
    """A loader for the time of a command; None where none is configured."""
    model, servers = settings.loading_model, settings.loading_servers
    if bool(model) != bool(servers):
        given, missing = ("loading_model", "loading_servers") if model else ("loading_servers", "loading_model")
        raise SettingsError(f"{settings.origins[given]}: {given} is set, and {missing} is not: set both, or none")
    if not model or not servers:
        yield None
        return
    loader = ConfiguredLoader(model, servers, settings)
    try:
        yield loader
    finally:
        loader.close()


class ConfiguredLoader:
    """A loader whose model and servers the settings name. What is wrong with them is told by the first address."""

    def __init__(self, model: str, servers: str, settings: Settings) -> None:
        self._model, self._servers, self._settings = model, servers, settings
        self._agent: LoadingAgent | None = None

    def load(self, url: str, before: str = "") -> Answer:
        self._agent = self._agent or self._make()
        return self._agent.load(url, before)

    def close(self) -> None:
        if self._agent:
            self._agent.close()

    def _make(self) -> LoadingAgent:
        from co_cli.agent.loading_servers import read_servers

        servers = read_servers(self._servers)  # before a second is spent on importing
        from co_cli.agent.loading import Budget, LoadingAgent
        from co_cli.chat.models import load_model

        budget = Budget(seconds=self._settings.loading_seconds, most_bytes=self._settings.web_max_bytes)
        return LoadingAgent(load_model(self._model), servers, budget)
