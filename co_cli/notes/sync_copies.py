"""Two versions of one note, as tools leave them when two machines change it: a copy beside it, or git's markers in it.

Syncthing, Dropbox and Nextcloud name their copies clearly. iCloud, Google Drive and OneDrive add a number or the name
of the machine, as people do, so such a file stays a note of its own: only the review asks about it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

CLEAR = re.compile(
    r"(?P<stem>.+?)"
    r"(?:\.sync-conflict-\d{8}-\d{6}-\w+| ?\((?:[^()]* )?(?:conflicted copy|case conflict)[^()]*\))"
    r"(?P<ending>\.\w+)",
    re.IGNORECASE,
)
VAGUE = re.compile(r"(?P<stem>.+?)(?: \d{1,3}| \(\d{1,3}\)|-[A-Z][A-Z0-9]*-?[A-Z0-9]{2,})(?P<ending>\.\w+)")
ALIKE = 0.6
"""The share of words in common that makes the review ask about a file with a vague name."""
OURS, MIDDLE, THEIRS = re.compile(r"<{7}( .*)?\r?\n?"), re.compile(r"={7}\r?\n?"), re.compile(r">{7}( .*)?\r?\n?")
BASE = re.compile(r"\|{7}( .*)?\r?\n?")


def copy_of(name: str, pattern: re.Pattern[str] = CLEAR) -> str | None:
    """The name of the file that this one is a copy of, by its own name, if a file of that name is beside it."""
    if pattern is CLEAR and "conflict" not in name.lower():  # nearly all names
        return None
    found = pattern.fullmatch(name)
    return found["stem"] + found["ending"] if found else None


def versions_in(text: str) -> tuple[str, str] | None:
    """Both texts of a file with git's conflict markers; None if it has none, or not all of them."""
    sides: dict[str, list[str]] = {"ours": [], "theirs": []}
    at, found = "", False
    for line in text.splitlines(keepends=True):
        if not at and OURS.fullmatch(line):
            at, found = "ours", True
        elif at == "ours" and BASE.fullmatch(line):
            at = "base"
        elif at in ("ours", "base") and MIDDLE.fullmatch(line):
            at = "theirs"
        elif at == "theirs" and THEIRS.fullmatch(line):
            at = ""
        else:
            for side in ("ours", "theirs"):
                if at in ("", side):
                    sides[side].append(line)
    return ("".join(sides["ours"]), "".join(sides["theirs"])) if found and not at else None


def merged(ours: str, theirs: str) -> str:
    """Both texts in one, with git's markers where they differ."""
    return "".join(_merged(ours.splitlines(keepends=True), theirs.splitlines(keepends=True)))


def _merged(ours: list[str], theirs: list[str]) -> Iterator[str]:
    import difflib  # 5 ms, and every walk imports this module

    for what, start, end, other_start, other_end in difflib.SequenceMatcher(None, ours, theirs).get_opcodes():
        if what == "equal":
            yield from ours[start:end]
            continue
        yield "<<<<<<< this version\n"
        yield from map(_whole, ours[start:end])
        yield "=======\n"
        yield from map(_whole, theirs[other_start:other_end])
        yield ">>>>>>> the other version\n"


def _whole(line: str) -> str:
    return line if line.endswith("\n") else f"{line}\n"
