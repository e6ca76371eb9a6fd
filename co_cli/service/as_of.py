"""A vault as its files were at a moment, where it is kept in git: the last commit before then, indexed beside.

The files of that commit are written to a folder of our own, below the data folder, and searched there; nothing of the
vault or its repository is touched. The last few moments asked for are kept, with their rows in a search.db there.
"""

from __future__ import annotations

import os
import shutil
import time
from typing import TYPE_CHECKING, NamedTuple

from co_cli.notes.files import locked
from co_cli.service.git import GitError, in_repository, run_git
from co_cli.sources.origin import IGNORE_FILE, THE_VAULT

if TYPE_CHECKING:
    from co_cli.knowledge_base import KnowledgeBase
    from co_cli.settings import Settings

FOLDER = "as-of"
KEPT = 5
IN_USE = 3_600.0
"""Seconds: what was asked for more recently may be in somebody's hands."""
SECONDS = 30.0
LARGEST = 500_000_000
LONGEST_HEAD = 200
"""Bytes: `HASH blob SIZE`, as `git cat-file` begins each file."""


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
        tree = run_git(root, ["rev-parse", "--verify", "--end-of-options", f"{commit}:./"]).decode().strip()
        folder = os.path.join(settings.data_dir, FOLDER, tree)  # the files alone: another vault has another tree
        if not os.path.isdir(folder):
            _write(folder, _notes_of(root, tree), float(committed))
        os.utime(folder)
    except (GitError, OSError) as error:
        return None, f"the files as they were then could not be read: {error}"
    origins = {**settings.origins, "vault": f"commit {commit[:12]}"}
    data = os.path.join(settings.data_dir, FOLDER)
    return Then(settings._replace(vault=folder, data_dir=data, origins=origins), commit), None


def bring_in(then: KnowledgeBase) -> None:
    """Index the files of that moment, and forget the rows of moments whose files were removed since.

    Nobody did anything there, so no history is kept of it.
    """
    then.index.on_change = None
    then.sync()
    with then.engine.reading() as reader:
        gone = [one for vault, one in reader.origins().items() if reader.counts([vault]).notes]
    for origin in gone:
        if not os.path.isdir(origin.root):
            then.index.of(origin).drop_all()


def _notes_of(root: str, tree: str) -> dict[str, bytes]:
    """The notes of a tree, and what says which of them are left out. As they are stored: no filter of anybody runs."""
    wanted: dict[str, str] = {}
    total = 0
    for line in run_git(root, ["ls-tree", "-r", "-z", "-l", "--full-tree", tree], SECONDS).split(b"\0"):
        about, _, name = line.decode("utf-8", "surrogateescape").partition("\t")
        mode, kind, blob, size = (*about.split(), "", "", "", "")[:4]
        parts = name.split("/")
        if kind != "blob" or mode == "120000" or {"", ".", "..", ".git"} & set(parts):
            continue
        if THE_VAULT.wants(parts[-1]) or name == IGNORE_FILE:
            wanted[name] = blob
            total += int(size)
    if total > LARGEST:
        raise GitError(f"{total:,} bytes are more than is unpacked")
    asked = "".join(f"{blob}\n" for blob in wanted.values()).encode()
    printed = run_git(root, ["cat-file", "--batch"], SECONDS, asked) if wanted else b""
    found: dict[str, bytes] = {}
    place = 0
    for name in wanted:
        head = printed[place : place + LONGEST_HEAD].partition(b"\n")[0]
        size = int(head.split()[2])
        place += len(head) + 1
        found[name] = printed[place : place + size]
        place += size + 1
    return found


def _write(folder: str, notes: dict[str, bytes], committed: float) -> None:
    """The notes of a commit into a folder that is there only when it is complete.

    A note that has no date of its own counts from the commit.
    """
    parent = os.path.dirname(folder)
    os.makedirs(parent, exist_ok=True)
    with locked(parent):
        if os.path.isdir(folder):
            return
        half = f"{folder}.half"
        shutil.rmtree(half, ignore_errors=True)
        os.makedirs(half)
        for name, data in notes.items():
            path = os.path.join(half, *name.split("/"))
            os.makedirs(os.path.dirname(path), exist_ok=True)
            with open(path, "wb") as file:
                file.write(data)
            os.utime(path, (committed, committed))
        os.rename(half, folder)
        folders = [entry for entry in os.scandir(parent) if entry.is_dir()]
        for entry in sorted(folders, key=lambda entry: entry.stat().st_mtime)[:-KEPT]:
            if entry.stat().st_mtime < time.time() - IN_USE:
                shutil.rmtree(entry.path, ignore_errors=True)
