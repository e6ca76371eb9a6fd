"""Search a vault as it was at a moment, if git knows.

The files of its last commit before that are written to a folder below the data folder and indexed there; neither the
vault nor its repository is touched. The last few states are kept.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import time
from dataclasses import replace

from co_cli.ground.errors import GitError
from co_cli.ground.hits import Hit, SearchResult
from co_cli.notes.files import locked, read_bytes
from co_cli.notes.git import LOG_SECONDS, Repository, repository_around
from co_cli.notes.note import Note, read_note
from co_cli.retrieval.request import SearchRequest
from co_cli.searching.requests import find
from co_cli.sources.origin import IGNORE_FILE, THE_VAULT
from co_cli.vault.vault import Vault, open_vault, sync_vault

FOLDER = "as-of"
KEPT = 5
IN_USE = 3_600.0
"""Seconds after a search in which its files are not removed."""
LARGEST = 500_000_000


def search_as_of(vault: Vault, request: SearchRequest) -> tuple[SearchResult | None, str | None]:
    """Search the vault as it was committed by `as_of`, and what could not be searched. None if git does not know."""
    try:
        then = _open_as_of(vault, request.filters.as_of or 0.0)
    except (GitError, OSError) as error:
        return None, f"the files as they were then could not be read: {error}"
    if then is None:
        return None, None
    with contextlib.closing(then):
        sync_vault(then, seconds=0)
        with then.engine.reading() as snapshot:
            indexed = [stored.origin for stored in snapshot.origins() if stored.notes]
        for origin in indexed:
            if not os.path.isdir(origin.root):
                then.index.of(origin).drop_all()
        found = find(then.index, request)
    others = ", ".join(origin.label for origin in vault.index.linked)
    return found, f"only the vault itself was searched as of that time, not {others}" if others else None


def note_then(vault: Vault, hit: Hit) -> Note | None:
    """The note of a hit as it was, if it was found among the files of a commit."""
    folder = os.path.join(os.path.realpath(vault.settings.data_dir), FOLDER, "")
    if not hit.path.startswith(folder):
        return None
    path = hit.path.removeprefix(folder).replace(os.sep, "/").partition("/")[2]
    return read_note(path, read_bytes(hit.path))


def _open_as_of(vault: Vault, moment: float) -> Vault | None:
    """A copy of the vault at its last commit before this moment, with an index of its own."""
    repository = repository_around(vault.root)
    if repository is None or repository.head() is None:
        return None
    last = ("log", "--max-count=1", "--format=%H %ct", f"--before={int(moment)}", "HEAD", "--", ".")
    commit, _, committed = repository.run(*last, seconds=LOG_SECONDS).stdout.decode().strip().partition(" ")
    if not commit:
        return None
    tree = repository.run("rev-parse", "--verify", "--end-of-options", f"{commit}:./").stdout.decode().strip()
    data = os.path.join(vault.settings.data_dir, FOLDER)
    folder = os.path.join(data, tree)
    if not os.path.isdir(folder):
        _write_files(folder, _read_files(repository, tree), float(committed))
    os.utime(folder)
    set_by = {**vault.settings.set_by, "vault": f"commit {commit[:12]}"}
    settings = replace(vault.settings, vault=folder, data_dir=data, engine="sqlite", set_by=set_by)
    return open_vault(settings, replace(vault.opening, record=False))  # a temporary copy has no history


def _read_files(repository: Repository, tree: str) -> dict[str, bytes]:
    """The notes of a tree and its ignore file, as they are stored: no filter of the repository runs."""
    files = repository.files(tree)
    wanted = [name for name in files if name == IGNORE_FILE or THE_VAULT.wants(os.path.basename(name))]
    total = sum(files[name].size for name in wanted)
    if total > LARGEST:
        raise GitError(f"{total:,} bytes are too many to unpack")
    texts = repository.texts(files[name].blob for name in wanted)
    return {name: texts[files[name].blob] for name in wanted}


def _write_files(folder: str, files: dict[str, bytes], committed: float) -> None:
    """Write the files of a commit, with its time; the folder appears only when it is complete."""
    parent = os.path.dirname(folder)
    os.makedirs(parent, exist_ok=True)
    with locked(parent):
        if os.path.isdir(folder):
            return
        partial = f"{folder}.partial"
        shutil.rmtree(partial, ignore_errors=True)
        os.makedirs(partial)
        for name, data in files.items():
            path = os.path.join(partial, *name.split("/"))
            os.makedirs(os.path.dirname(path), exist_ok=True)
            with open(path, "wb") as file:
                file.write(data)
            os.utime(path, (committed, committed))
        os.rename(partial, folder)
        folders = [entry for entry in os.scandir(parent) if entry.is_dir()]
        for entry in sorted(folders, key=lambda entry: entry.stat().st_mtime)[:-KEPT]:
            if entry.stat().st_mtime < time.time() - IN_USE:
                shutil.rmtree(entry.path, ignore_errors=True)
