"""A vault where there is none: its two folders, and a .gitignore that keeps the trash out of a repository."""

from __future__ import annotations

import contextlib
import os

from co_cli.errors import VaultError
from co_cli.notes.files import make_folders
from co_cli.notes.store import TRASH

FOLDERS = ("memories", "articles")


def make_vault(root: str) -> bool:
    """Make what is not there yet. Returns whether it was made; a vault that is there stays as it is."""
    made = not os.path.isdir(os.path.join(root, FOLDERS[0]))
    try:
        for name in FOLDERS:
            make_folders(os.path.join(root, name))
        if made:
            _keep_trash_out_of_git(root)
    except OSError as error:
        raise VaultError(f"{root} cannot be made: {error.strerror}") from None
    return made


def _keep_trash_out_of_git(root: str) -> None:
    """What was forgotten should not be committed with the rest; a .gitignore that is there already stays as it is."""
    with contextlib.suppress(FileExistsError), open(os.path.join(root, ".gitignore"), "x", encoding="utf-8") as stream:
        stream.write(f"{TRASH}/\n")
