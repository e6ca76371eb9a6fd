"""Two versions of one note, as tools leave them when two machines change it: a copy beside it, or git's markers in it.

Syncthing, Dropbox and Nextcloud name their copies clearly. iCloud, Google Drive and OneDrive add a number or the name
of the machine, as people do: such a file is a copy only if it says nearly the same as the one that it is named after.
"""

from __future__ import annotations

import os
import re
from collections.abc import Collection, Iterator

from co_cli.ground.paths import open_regular
from co_cli.notes.similarity import likeness, words_of

CLEAR = re.compile(
    r"(?P<stem>.+?)"
    r"(?:\.sync-conflict-\d{8}-\d{6}-\w+| ?\((?:[^()]* )?(?:conflicted copy|case conflict)[^()]*\))"
    r"(?P<ending>\.\w+)",
    re.IGNORECASE,
)
VAGUE = re.compile(r"(?P<stem>.+?)(?: \d{1,3}| \(\d{1,3}\)|-[A-Z][A-Z0-9]*-?[A-Z0-9]{2,})(?P<ending>\.\w+)")
ALIKE = 0.6
"""The share of words in common that makes a file with a number in its name a copy."""
LARGEST = 200_000
"""Bytes of a file that is compared."""
OURS, MIDDLE, THEIRS = re.compile(r"<{7}( .*)?\r?\n?"), re.compile(r"={7}\r?\n?"), re.compile(r">{7}( .*)?\r?\n?")
BASE = re.compile(r"\|{7}( .*)?\r?\n?")


def copy_of(folder: str, name: str, names: Collection[str] | None = None) -> str | None:
    """The name of the file in a folder that this one is a copy of. `names` are those in the folder, if known."""
    if name.rpartition(".")[0][-1:].islower():  # nearly all names: no copy ends in a lower-case letter
        return None
    found, clear = CLEAR.fullmatch(name), True
    if found is None:
        found, clear = VAGUE.fullmatch(name), False
    if found is None:
        return None
    original = found["stem"] + found["ending"]
    there = original in names if names is not None else os.path.isfile(os.path.join(folder, original))
    files = (os.path.join(folder, original), os.path.join(folder, name))
    return original if there and (clear or _are_alike(*files)) else None


def _are_alike(*files: str) -> bool:
    texts: list[list[str]] = []
    for file in files:
        try:
            with open_regular(file, follow=False) as stream:
                texts.append(words_of(stream.read(LARGEST).decode("utf-8", "replace")))
        except OSError:
            return False
    return texts[0] == texts[1] or likeness(*texts, at_least=ALIKE) > 0


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
