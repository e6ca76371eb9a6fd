"""CoDeps: what tools of your own need to work with a vault. Knowledge bases are opened once per process."""

from __future__ import annotations

import os
import threading
from dataclasses import dataclass
from typing import ClassVar

from co_cli.entrance.knowledge_base import KnowledgeBase
from co_cli.ground.errors import InvalidInputError
from co_cli.ground.settings import Settings, load_settings
from co_cli.knowledge_index import KnowledgeIndex
from co_cli.vault.vault import Opening

PathLike = str | os.PathLike[str]

_open: dict[tuple[object, ...], KnowledgeBase] = {}
_lock = threading.Lock()


@dataclass(frozen=True, init=False)
class CoDeps:
    """Dependencies for an agent whose own tools work with a vault.

    `Knowledge` uses the same knowledge base unless it names another, so each run can have the vault of its user.
    """

    knowledge_base: KnowledgeBase
    _index: ClassVar[KnowledgeIndex | None] = None

    def __init__(  # dataclasses that extend this one have fields of their own after the knowledge base
        self, knowledge_base: KnowledgeBase | None = None, *, knowledge_index: KnowledgeIndex | None = None
    ) -> None:
        """With an index, the knowledge base is that of its folder, with the data next to its database."""
        if knowledge_base is None:
            if knowledge_index is None:
                raise InvalidInputError("CoDeps needs a knowledge_base or a knowledge_index")
            knowledge_base = open_once(knowledge_index.root, os.path.dirname(knowledge_index.engine.path))
        vars(self).update(knowledge_base=knowledge_base, _index=knowledge_index)

    @classmethod
    def open(cls, vault: PathLike | None = None, data_dir: PathLike | None = None, *, create: bool = False) -> CoDeps:
        """The vault that these arguments, settings and the current folder name, open until the process ends.

        `create` makes it if it does not exist. For vaults that come and go, pass a `KnowledgeBase` and close it
        yourself.
        """
        return cls(open_once(vault, data_dir, create))

    @property
    def knowledge_index(self) -> KnowledgeIndex:
        return self._index or self.knowledge_base.local.index

    @property
    def settings(self) -> Settings:
        return self.knowledge_base.settings


def open_once(vault: PathLike | None = None, data_dir: PathLike | None = None, create: bool = False) -> KnowledgeBase:
    """The knowledge base of these settings: shared within this process, never with its parent."""
    flags = {"vault": vault and os.fspath(vault), "data_dir": data_dir and os.fspath(data_dir)}
    settings = load_settings(flags)
    values = {name: value for name, value in vars(settings).items() if name != "set_by"}
    key = (os.getpid(), *values.values())
    with _lock:
        if key not in _open:
            _open[key] = KnowledgeBase.open(settings=settings, create=create, opening=Opening("agent"))
        return _open[key]
