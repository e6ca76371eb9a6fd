"""Compare the listings of the last sync with those of now: which files to look at, and which are gone. Pure.

A file that was written as recently as it was looked at may change again without its size and time showing it, so its
entry is stored with a `?` and never equals a new one: it is read again next time, as git does.
"""

from __future__ import annotations

from typing import NamedTuple

from co_cli.sources.vault import Entry, entries_of, read_entry

RACY_NS = 2_000_000_000
"""The coarsest clock of a file system in use (FAT)."""


class Changes(NamedTuple):
    """What a sync has to do."""

    look: list[Entry]
    gone: list[str]
    folders: list[str]
    """Folders whose stored listing is out of date."""

    @property
    def none(self) -> bool:
        return not self.look and not self.gone and not self.folders


def compare(stored: dict[str, bytes], seen: dict[str, bytes]) -> Changes:
    look: list[Entry] = []
    gone: list[str] = []
    folders: list[str] = []
    for folder in stored.keys() | seen.keys():
        before, now = stored.get(folder, b""), seen.get(folder, b"")
        if before == now:
            continue
        folders.append(folder)
        old, new = entries_of(folder, before), entries_of(folder, now)
        look += [read_entry(folder, text) for name, text in new.items() if old.get(name) != text]
        prefix = f"{folder}/" if folder else ""
        gone += [prefix + name for name in old.keys() - new.keys()]
    look.sort()
    gone.sort()
    return Changes(look, gone, folders)


def settled(folder: str, listing: bytes, unread: set[str], now_ns: int) -> bytes:
    """The listing to store: entries too young to be trusted, and those that could not be read, are marked."""
    prefix = f"{folder}/" if folder else ""
    marked: list[str] = []
    for name, text in entries_of(folder, listing).items():
        racy = abs(now_ns - int(text.split("/", 3)[2])) < RACY_NS
        marked.append(f"{text}?" if racy or prefix + name in unread else text)
    return "\0".join(marked).encode("utf-8", "surrogateescape")
