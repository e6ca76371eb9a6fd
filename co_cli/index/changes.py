"""Compare the listings of the last sync with those of now: which files to look at, and which are gone. Pure.

A file that was written as recently as it was looked at may change again without its size and time showing it, so its
number is stored inverted and never equals what a scan sees: it is read again next time, as git does.
"""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING, NamedTuple

from co_cli.sources.walk import entries_of, path_of, place_of, with_numbers

if TYPE_CHECKING:
    from collections.abc import Sequence

RACY_SECONDS = 2.0
"""The coarsest clock of a file system in use (FAT)."""


class Changes(NamedTuple):
    """What a sync has to do."""

    look: list[str]
    gone: list[str]
    folders: list[str]
    """Folders whose stored listing is out of date."""
    unlisted: list[str]
    """Indexed files that no stored listing has."""

    @property
    def none(self) -> bool:
        return not self.look and not self.gone and not self.folders and not self.unlisted


def compare(
    stored: dict[str, bytes], seen: dict[str, bytes], unlisted: Sequence[str] = (), unread: Sequence[str] = ()
) -> Changes:
    """`unread` are folders that could not be listed: nothing is known to have changed in them."""
    look: list[str] = []
    gone: list[str] = []
    folders: list[str] = []
    for folder in stored.keys() | seen.keys():
        before, now = stored.get(folder, b""), seen.get(folder, b"")
        if before == now or _below(folder, unread):
            continue
        folders.append(folder)
        old, new = entries_of(before), entries_of(now)
        look += [path_of(folder, name) for name, number in new.items() if old.get(name) != number]
        gone += [path_of(folder, name) for name in old.keys() - new.keys()]
    loose = [path for path in unlisted if not _below(place_of(path)[0], unread)]
    gone += missing(loose, seen)
    look.sort()
    return Changes(look, sorted(set(gone)), folders, loose)


def missing(paths: Sequence[str], listings: dict[str, bytes]) -> list[str]:
    """Those of these paths that the listings do not have."""
    names: dict[str, dict[str, int]] = {}
    found: list[str] = []
    for path in paths:
        folder, name = place_of(path)
        if folder not in names:
            names[folder] = entries_of(listings.get(folder, b""))
        if name not in names[folder]:
            found.append(path)
    return found


def unreadable(listings: dict[str, bytes]) -> list[str]:
    """Folders whose listing cannot be read."""
    found: list[str] = []
    for folder, listing in listings.items():
        try:
            entries_of(listing)
        except (ValueError, struct.error):
            found.append(folder)
    return found


def settled(listing: bytes, unsure: Sequence[str]) -> bytes:
    """The listing to store: files too young to be trusted, and those that could not be read, are marked."""
    if not unsure:
        return listing
    numbers = entries_of(listing)
    return with_numbers(listing, {name: ~numbers[name] for name in unsure if name in numbers})


def touched(stored: dict[str, bytes], seen: dict[str, bytes], unlisted: Sequence[str]) -> tuple[list[str], list[str]]:
    """Files that came or changed since the listings were stored, and those that went.

    What is only to be looked at again does not count. What `co` itself wrote since is among them: its row tells.
    """
    look: list[str] = []
    gone = set(missing(unlisted, seen))
    for folder in stored.keys() | seen.keys():
        old, new = entries_of(stored.get(folder, b"")), entries_of(seen.get(folder, b""))
        gone.update(path_of(folder, name) for name in old.keys() - new.keys())
        look += [path_of(folder, name) for name, number in new.items() if old.get(name) not in (number, ~number)]
    return look, sorted(gone)


def _below(folder: str, tops: Sequence[str]) -> bool:
    return any(folder == top or folder.startswith(f"{top}/") for top in tops)
