"""Compare the listings of the last sync with those of now: which files to look at, and which are gone. Pure.

A file that was written as recently as it was looked at may change again without its size and time showing it, so it
is stored without its inode and never equals what a scan sees: it is read again next time, as git does.
"""

from __future__ import annotations

from co_cli.record import Record
from co_cli.sources.vault import Entry, State, entries_of, entry_of, pack_listing

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

UNSURE = -1
"""In place of the inode of a file that must be looked at again."""
RACY_NS = 2_000_000_000
"""The coarsest clock of a file system in use (FAT)."""


class Changes(Record):
    """What a sync has to do."""

    look: list[Entry]
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
    look: list[Entry] = []
    gone: list[str] = []
    folders: list[str] = []
    for folder in stored.keys() | seen.keys():
        before, now = stored.get(folder, b""), seen.get(folder, b"")
        if before == now or _below(folder, unread):
            continue
        folders.append(folder)
        old, new = entries_of(before), entries_of(now)
        look += [entry_of(folder, name, state) for name, state in new.items() if old.get(name) != state]
        prefix = f"{folder}/" if folder else ""
        gone += [prefix + name for name in old.keys() - new.keys()]
    loose = [path for path in unlisted if not _below(_split(path)[0], unread)]
    gone += missing(loose, seen)
    look.sort()
    return Changes(look, sorted(set(gone)), folders, loose)


def missing(paths: Sequence[str], listings: dict[str, bytes]) -> list[str]:
    """Those of these paths that the listings do not have."""
    names: dict[str, dict[str, State]] = {}
    found: list[str] = []
    for path in paths:
        folder, name = _split(path)
        if folder not in names:
            names[folder] = entries_of(listings.get(folder, b""))
        if name not in names[folder]:
            found.append(path)
    return found


def settled(folder: str, listing: bytes, unread: set[str], now_ns: int) -> bytes:
    """The listing to store: files too young to be trusted, and those that could not be read, are marked."""
    prefix = f"{folder}/" if folder else ""

    def marked(name: str, state: State) -> State:
        racy = abs(now_ns - state.mtime_ns) < RACY_NS
        return state._replace(inode=UNSURE) if racy or prefix + name in unread else state

    return pack_listing({name: marked(name, state) for name, state in entries_of(listing).items()})


def waiting_files(stored: dict[str, bytes], seen: dict[str, bytes], unlisted: Sequence[str]) -> int:
    """How many files changed, came or went; what is only to be looked at again, or was just saved, does not count."""
    saved = set(missing(unlisted, stored))
    lost = missing(list(saved), seen)
    count = len(lost) - (len(saved) - len(lost))
    for folder in stored.keys() | seen.keys():
        old, new = entries_of(stored.get(folder, b"")), entries_of(seen.get(folder, b""))
        count += len(old.keys() - new.keys())
        for name, state in new.items():
            before = old.get(name)
            if before is not None and before.inode == UNSURE:
                before = before._replace(inode=state.inode)
            count += before != state
    return count


def _below(folder: str, tops: Sequence[str]) -> bool:
    return any(folder == top or folder.startswith(f"{top}/") for top in tops)


def _split(path: str) -> tuple[str, str]:
    """The folder a path is in, and its name there."""
    folder, _, name = path.rpartition("/")
    return folder, name
