"""A note's ref from its path, and back: `memory:slug`, `article:guides/deploy`, and `article:/inbox/x` elsewhere.

The part after the colon is the path below the source's own folder without `.md`; a note that lies anywhere else is
named from the root of the vault, with a leading `/`. So a ref is unique, and opens a file without asking the index.
"""

from __future__ import annotations

import re
import unicodedata

FOLDERS = {"memory": "memories", "article": "articles"}
ENDINGS = (".md", ".markdown")
REF = re.compile(r"([a-z]+):(.*?)(?:#L(\d+)(?:-L?(\d+))?)?\Z", re.S)


def stem_of(path: str) -> str:
    return without_ending(path.rsplit("/", 1)[-1])


def without_ending(path: str) -> str:
    """`.md` goes, unless what is left would be read as another file, or as lines. Other endings stay visible."""
    short = path[:-3] if path.endswith(".md") else path
    unclear = short.lower().endswith(ENDINGS) or re.search(r"#L\d+(?:-L?\d+)?\Z", short)
    return path if unclear or not short or short.endswith("/") else short


def ref_of(path: str, source: str) -> str:
    home = FOLDERS[source] + "/"
    if path.startswith(home):
        return f"{source}:{without_ending(path[len(home) :])}"
    return f"{source}:/{without_ending(path)}"


def source_ref(path: str) -> str:
    """The ref of a file whose frontmatter is not at hand: its folder says what it is."""
    return ref_of(path, "memory" if path.startswith("memories/") else "article")


def path_of(ref: str) -> str | None:
    """The path a ref stands for, or None if it is no ref at all."""
    parsed = REF.match(ref)
    if parsed is None or parsed[1] not in FOLDERS or not parsed[2].strip("/"):
        return None
    name = parsed[2]
    path = name[1:] if name.startswith("/") else f"{FOLDERS[parsed[1]]}/{name}"
    return path if path.lower().endswith(ENDINGS) else path + ".md"


def lines_of(ref: str) -> tuple[int, int] | None:
    """The lines that a ref such as `article:x#L10-24` points at."""
    found = re.search(r"#L(\d+)(?:-L?(\d+))?\Z", ref)
    if found is None:
        return None
    first = int(found[1])
    return first, int(found[2] or first)


def without_lines(ref: str) -> str:
    return re.sub(r"#L\d+(?:-L?\d+)?\Z", "", ref)


def name_key(name: str) -> str:
    """Two names with the same key are one name on some file system."""
    return unicodedata.normalize("NFC", unicodedata.normalize("NFC", name).casefold())
