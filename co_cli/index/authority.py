"""The contract of a vault that several servers share: who says what its files should be."""

from __future__ import annotations

from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, NamedTuple, Protocol

if TYPE_CHECKING:
    from co_cli.notes.store import NoteStore
    from co_cli.saves import SaveReceipt  # a search does without it


class SavedVersion(NamedTuple):
    """One save of a file, on any server."""

    moment: float
    who: str
    action: str
    """create, change or remove"""
    hash: str | None
    receipt: SaveReceipt | None


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

    def health(self) -> list[AuthorityHealth]: ...
