"""A vault as its files were at a moment, where it is kept in git: the last commit before then, indexed beside.

The files of that commit are written to a folder of our own, below the data folder, and searched there; nothing of the
vault or its repository is touched. The last few moments asked for are kept.
"""

from __future__ import annotations

import io
import os
import shutil
import tarfile
from typing import TYPE_CHECKING, NamedTuple

from co_cli.notes.files import locked
from co_cli.service.git import GitError, in_repository, run_git
from co_cli.sources.origin import THE_VAULT

if TYPE_CHECKING:
    from co_cli.settings import Settings

FOLDER = "as-of"
KEPT = 5
SECONDS = 30.0
LARGEST = 500_000_000


class Then(NamedTuple):
    """A vault as it was."""

    settings: Settings
    """Those of now, with the vault of then and a data folder of its own."""
    commit: str


def vault_as_of(settings: Settings, root: str, moment: float) -> tuple[Then | None, str | None]:
    """The vault as it was committed by then, and what was in the way; neither if it is not kept in git that long."""
    if not in_repository(root):
        return None, None
    try:
        last = ["log", "--max-count=1", "--format=%H %ct", f"--before={int(moment)}", "HEAD", "--", "."]
        commit, _, committed = run_git(root, last).decode().strip().partition(" ")
        if not commit:
            return None, None
        folder = os.path.join(settings.data_dir, FOLDER, commit)
        if not os.path.isdir(folder):
            _write(folder, run_git(root, ["archive", "--format=tar", commit], SECONDS), float(committed))
    except GitError as error:
        return None, f"the files as they were then could not be read: {error}"
    os.utime(folder)
    origins = {**settings.origins, "vault": f"commit {commit[:12]}"}
    data = os.path.join(settings.data_dir, FOLDER)
    return Then(settings._replace(vault=folder, data_dir=data, origins=origins), commit), None


def _write(folder: str, archive: bytes, committed: float) -> None:
    """The notes of a commit into a folder that is there only when it is complete.

    A note that has no date of its own counts from the commit.
    """
    if len(archive) > LARGEST:
        raise GitError(f"{len(archive):,} bytes are more than is unpacked")
    parent = os.path.dirname(folder)
    os.makedirs(parent, exist_ok=True)
    with locked(parent):
        if os.path.isdir(folder):
            return
        half = f"{folder}.half"
        shutil.rmtree(half, ignore_errors=True)
        os.makedirs(half)
        with tarfile.open(fileobj=io.BytesIO(archive)) as packed:
            for member in packed:
                parts = member.name.split("/")
                note = packed.extractfile(member) if member.isfile() and THE_VAULT.wants(parts[-1]) else None
                if note is not None and not {"", ".", ".."} & set(parts):
                    path = os.path.join(half, *parts)
                    os.makedirs(os.path.dirname(path), exist_ok=True)
                    with open(path, "wb") as file:
                        file.write(note.read())
                    os.utime(path, (committed, committed))
        os.rename(half, folder)
        folders = [entry for entry in os.scandir(parent) if entry.is_dir()]
        for entry in sorted(folders, key=lambda entry: entry.stat().st_mtime)[:-KEPT]:
            shutil.rmtree(entry.path, ignore_errors=True)
