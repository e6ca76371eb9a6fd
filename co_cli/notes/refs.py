"""Names of notes: refs (`memory:slug`, `article:guides/deploy`) from paths and back, and file names from titles.

A ref is the path below the folder of its kind without `.md`. A note elsewhere is named from the root of the vault,
with a leading `/`: `article:/inbox/x`. So a ref is unique, and a file is opened without asking the index.
"""

from __future__ import annotations

import re
import unicodedata

from co_cli.ground.values import OWN_SOURCES, OwnSource

FOLDERS = {
    "memory": "memories",
    "article": "articles",
    "conversation": "conversations",
    "entity": "entities",
    "resource": "resources",
}
"""Where the notes of each kind are."""
ENDINGS = (".md", ".markdown")
LINES = re.compile(r"#L(\d+)(?:-L?(\d+))?(?:~([0-9a-z]{4}))?\Z")
"""At the end of a ref: lines of the file, and a mark of what they said when the ref was given."""
REF = re.compile(r"([a-z]+):(.*)", re.S)
LONGEST = 60
LONGEST_BYTES = 150
RESERVED = re.compile(r"(?:con|prn|aux|nul|com\d|lpt\d|clock\$|conin\$|conout\$)$")
"""Names of devices on Windows."""
UNUSABLE = re.compile(r'[<>:"\\|?*\x00-\x1f]|[. ]\Z')
"""What no name of a file has there: `a:b` is a part of the file `a`, and an ending of dots and blanks is dropped."""


def stem_of(path: str) -> str:
    return without_ending(path.rsplit("/", 1)[-1])


def without_ending(path: str) -> str:
    """Remove `.md`, unless the rest would be read as another file or as line numbers. Other endings stay."""
    short = path[:-3] if path.endswith(".md") else path
    unclear = short.lower().endswith(ENDINGS) or LINES.search(short)
    return path if unclear or not short or short.endswith("/") else short


def ref_of(path: str, source: str) -> str:
    home = FOLDERS[source] + "/"
    if path.startswith(home):
        return f"{source}:{without_ending(path[len(home) :])}"
    return f"{source}:/{without_ending(path)}"


def source_ref(path: str) -> str:
    """The ref of a file by its folder alone, without its frontmatter."""
    return ref_of(path, kind_in(path))


def kind_in(path: str) -> OwnSource:
    """The kind of a note that does not say: that of its folder, else article."""
    top = path.partition("/")[0]
    for kind in OWN_SOURCES:
        if FOLDERS[kind] == top:
            return kind
    return "article"


def path_of(ref: str) -> str | None:
    """The path of a ref; None if it is not a ref."""
    parsed = REF.match(without_lines(ref))
    if parsed is None or parsed[1] not in FOLDERS or not parsed[2].strip("/"):
        return None
    name = parsed[2]
    path = name[1:] if name.startswith("/") else f"{FOLDERS[parsed[1]]}/{name}"
    return path if path.lower().endswith(ENDINGS) else path + ".md"


def lines_of(ref: str) -> tuple[int, int] | None:
    """The lines that a ref such as `article:x#L10-24` names."""
    found = LINES.search(ref)
    if found is None:
        return None
    first = int(found[1])
    return first, int(found[2] or first)


def mark_of(ref: str) -> str:
    """The mark after the lines of a ref such as `article:x#L10-24~3k9a`; empty if there is none."""
    found = LINES.search(ref)
    return found[3] or "" if found else ""


def without_lines(ref: str) -> str:
    return LINES.sub("", ref)


def name_key(name: str) -> str:
    """Names with the same key are the same file on some file systems."""
    return unicodedata.normalize("NFC", unicodedata.normalize("NFC", name).casefold())


def is_taken_by_windows(name: str) -> bool:
    """Whether Windows understands a name of a file as something else. A device has its name with any ending."""
    return bool(UNUSABLE.search(name) or RESERVED.match(name.partition(".")[0].rstrip().casefold()))


def slugify(title: str) -> str:
    """A title as a readable, portable file name: lower-case words joined by hyphens, without accents."""
    letters: list[str] = []
    for letter in unicodedata.normalize("NFKD", title[: LONGEST * 8]):
        # drop accents of Latin letters, but not the marks of Thai, Hindi or kana
        if unicodedata.combining(letter) and letters and letters[-1].isascii():
            continue
        letters.append(letter)
    words = _words_only("".join(letters)).split()
    slug = ""
    for word in words:
        longer = f"{slug}-{word}" if slug else word
        if slug and (len(longer) > LONGEST or len(longer.encode()) > LONGEST_BYTES):
            break
        slug = longer
    slug = _cut(slug)
    if not slug:
        return "note"
    return f"{slug}-note" if RESERVED.match(slug) else slug


def _words_only(text: str) -> str:
    """Letters and digits, case-folded; blanks for the rest. Apostrophes vanish, so `don't` stays one word."""
    text = unicodedata.normalize("NFC", unicodedata.normalize("NFC", text).casefold())
    text = re.sub(r"(?<=\w)['\u2019](?=\w)", "", text)
    kept: list[str] = []
    for letter in text:
        kind = unicodedata.category(letter)[0]
        # a mark belongs to the letter before it; alone it would be invisible
        alone = kind == "M" and (not kept or kept[-1] == " ")
        kept.append(letter if kind in "LNM" and not alone else " ")
    return "".join(kept)


def _cut(slug: str) -> str:
    slug = slug[:LONGEST]
    while len(slug.encode("utf-8", "ignore")) > LONGEST_BYTES:
        slug = slug[:-1]
    return slug.encode("utf-8", "ignore").decode().strip("-")
