"""Compare the listings of the last sync with the current ones: which files to look at, and which are gone. Pure.

A file that was written just before it was read may change again without its size and time showing it. So its number is
stored inverted and never equals what a scan sees: it is read again next time, as git does.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from co_cli.ground.reports import BINARY
from co_cli.sources.documents.formats import BROKEN_PICTURE, NO_TEXT_SHOWN
from co_cli.sources.walk import entries_of, path_of, place_of, with_numbers

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from co_cli.index.stored import StoredFile

NO_TEXT = (
    BINARY,
    "not a text file",
    "empty file",
    "generated",
    "encoded or packed",
    "symbolic link",
    "not a regular file",
    NO_TEXT_SHOWN,
    BROKEN_PICTURE,
)
"""How the reasons begin for which a file is skipped because nothing in it could answer a question."""
RACY_SECONDS = 2.0
"""The coarsest clock of a file system in use (FAT)."""


class Changes(NamedTuple):
    """What a sync has to do."""

    look: list[str]
    gone: list[str]
    folders: dict[str, bytes]
    """Folders whose stored listing is out of date, with that listing."""
    unlisted: list[str]
    """Indexed files that no stored listing has."""

    @property
    def none(self) -> bool:
        return not self.look and not self.gone and not self.folders and not self.unlisted


def compare(
    stored: dict[str, bytes],
    seen: dict[str, bytes],
    unlisted: Sequence[str] = (),
    unread: Sequence[str] = (),
    recheck: bool = True,
) -> Changes:
    """`unread` are folders that could not be listed: nothing is known to have changed in them.

    Without `recheck`, a file that is only to be read again because it was too young does not count as changed.
    """
    look: list[str] = []
    gone: list[str] = []
    folders: dict[str, bytes] = {}
    for folder in stored.keys() | seen.keys():
        before, now = stored.get(folder, b""), seen.get(folder, b"")
        if before == now or _below(folder, unread):
            continue
        folders[folder] = before
        old, new = entries_of(before), entries_of(now)
        for name, number in new.items():
            before_number = old.get(name)
            if before_number != number and (recheck or before_number != ~number):
                look.append(path_of(folder, name))
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


def reported(files: Mapping[str, StoredFile]) -> tuple[list[tuple[str, str]], list[tuple[str, str]]]:
    """Files that are not indexed, and notes with a problem, each with the reason."""
    return (
        [(path, file.skipped) for path, file in files.items() if file.skipped is not None],
        [(path, file.problem) for path, file in files.items() if file.problem is not None],
    )


def hides_text(reason: str | None) -> bool:
    """Whether a file that was skipped for this reason may have text that no search can see."""
    return reason is not None and not reason.startswith(NO_TEXT)


def settled(listing: bytes, unsure: Sequence[str], into: bytes | None = None) -> bytes:
    """The listing to store: files too young to be trusted, and those that could not be read, are marked.

    `into`: only these are stored, in this other listing.
    """
    if not unsure:
        return listing if into is None else into
    numbers = entries_of(listing)
    marked = {name: ~numbers[name] for name in unsure if name in numbers}
    return with_numbers(listing if into is None else into, marked)


def _below(folder: str, tops: Sequence[str]) -> bool:
    return any(folder == top or folder.startswith(f"{top}/") for top in tops)
