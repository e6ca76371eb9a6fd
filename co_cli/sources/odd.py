"""What lies in a vault, or in a folder beside it, and is not read: links, pipes, devices, names that are no text.

For those who wonder why a note is not found. A sync needs less of it, and stays quick.
"""

from __future__ import annotations

import os
from collections.abc import Sequence

from co_cli.sources.origin import Origin
from co_cli.sources.walking import entries_of, folders_of, path_of, scan_origin
from co_cli.values import to_utf8

NO_TEXT = "its name is not valid UTF-8; rename it"
LINKED_FOLDER = "symbolic link to a folder, not followed"


def odd_entries(origin: Origin, exclude: Sequence[str] = ()) -> list[tuple[str, str]]:
    """Each by its path there, with the reason. Raises VaultError if the folder is away."""
    scan = scan_origin(origin, exclude)
    found = dict(scan.odd)
    for folder, listing in scan.listings.items():
        for name in entries_of(listing):
            path = path_of(folder, name)
            if to_utf8(path) != path:
                found[path] = NO_TEXT
    for folder in [] if origin.only else folders_of(origin, exclude)[0]:
        inside = os.path.relpath(folder, origin.root).replace(os.sep, "/")
        for name in _linked_folders(folder):
            path = path_of("" if inside == "." else inside, name)
            if path not in found and not (scan.excluded and scan.excluded(path, True)):
                found[path] = LINKED_FOLDER
    return sorted(found.items())


def _linked_folders(folder: str) -> list[str]:
    try:
        with os.scandir(folder) as entries:
            links = [one for one in entries if one.name[0] != "." and one.is_symlink()]
            return [one.name for one in links if os.path.isdir(one.path)]  # says no to a loop, and raises nothing
    except OSError:
        return []  # gone meanwhile, or closed to us: the scan says so
