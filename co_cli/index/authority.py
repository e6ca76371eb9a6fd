"""The contract of a vault that several servers share: who says what its files should be."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, NamedTuple, Protocol

if TYPE_CHECKING:
    from co_cli.ground.saves import Saved, SaveKey, SaveReceipt  # a search does without them
    from co_cli.notes.store import NoteStore


class SavedVersion(NamedTuple):
    """One save of a file, on any server."""

    moment: float
    who: str
    action: str
    """create, change or remove"""
    hash: str | None
    receipt: SaveReceipt | None


class DroppedText(NamedTuple):
    """A file as it was in commits that a force-push dropped."""

    path: str
    commit: str
    moment: float
    """When it was committed."""

    @property
    def name(self) -> str:
        """As git calls it."""
        return f"{self.commit}:{self.path}"


class AuthorityHealth(NamedTuple):
    """Whether what is saved gets where it belongs, with the fix if it does not."""

    about: str
    text: str
    fix: str = ""
    """Empty if all is well."""


class VaultAuthority(Protocol):
    """Says what the files of a vault should be, where several servers have copies of them."""

    def lock(self) -> AbstractContextManager[object]:
        """Inside, the files are as they should be, and nobody changes them."""
        ...

    def afterwards(self, call: Callable[[], object]) -> None:
        """Call a function now, or inside of `lock` when its changes are saved and others wait no longer."""
        ...

    def answer_to(self, key: SaveKey) -> Saved | None:
        """What a save with this key was answered, inside of `lock`. Raises KeyReusedError if that was another one."""
        ...

    def keep_answer(self, key: SaveKey, saved: Saved) -> None:
        """Keep the answer to a save, which is made or fails together with it."""
        ...

    def store(self) -> NoteStore:
        """The files, for changes inside of `lock`."""
        ...

    def catch_up(self) -> None:
        """Write what others saved to the files."""
        ...

    def differences(self) -> list[str]:
        """Files that are not as they should be."""
        ...

    def repair(self) -> None:
        """Make the files as they should be."""
        ...

    def history(self, path: str, limit: int) -> list[SavedVersion]:
        """Who created, changed or removed a file, newest first."""
        ...

    def dropped(self) -> list[DroppedText]:
        """The notes that force-pushes dropped and that are not there now, the latest text of each."""
        ...

    def dropped_text(self, text: DroppedText) -> bytes: ...

    def health(self) -> list[AuthorityHealth]: ...
