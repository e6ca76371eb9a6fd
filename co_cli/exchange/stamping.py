"""What is put into an imported file so that it is known again, and so that it cannot say of itself that it is trusted.

The body and every line that stands in the frontmatter keep their bytes; a few lines join them. `provenance: user`, or
none at all, would make a stranger's words the person's own, and `loading` would put them beside every prompt: both are
kept under other names, unless the person says that the export is their own.
"""

from __future__ import annotations

from co_cli.errors import FrontmatterError, InvalidInputError
from co_cli.exchange.items import bytes_hash
from co_cli.notes.editing import set_fields
from co_cli.notes.frontmatter import read_frontmatter

ORIGIN, IDENTITY, HASH = "imported_from", "import_id", "import_hash"
OTHERS_WORDS = ("import", "web", "agent")
"""Whom a file may name as its speaker: nobody takes these for the person."""
UNKNOWN_YET = "0" * 16


def marked(text: str, more: dict[str, object] | None = None, trust: bool = False) -> str:
    """The text with these fields, and without a claim to be the person's own words."""
    front = read_frontmatter(text)
    fields: dict[str, object] = dict(more or {})
    if not trust:
        fields.update(_disowned(front.metadata))
    try:
        return text if not fields else set_fields(text, fields)
    except (FrontmatterError, InvalidInputError):
        # frontmatter that cannot be edited stands below ours from now on: as text, which claims nothing
        return set_fields("", {**(more or {}), **({} if trust else {"provenance": "import"})}) + text


def claims(data: bytes) -> bool:
    """Does this file say outright that it is the person's own words, or that it belongs beside every prompt?"""
    kept = _disowned(read_frontmatter(data.decode("utf-8", "surrogateescape")).metadata)
    return any(key.startswith("imported_") for key in kept)


def stamped(data: bytes, origin: str, identity: str, trust: bool) -> bytes:
    """A copied file that knows where it is from, what it was, and what it is now."""
    came = bytes_hash(data)
    fields: dict[str, object] = {ORIGIN: origin, IDENTITY: identity, HASH: f"{came}-{UNKNOWN_YET}"}
    text = marked(data.decode("utf-8", "surrogateescape"), fields, trust)
    written = bytes_hash(text.encode("utf-8", "surrogateescape"))
    return text.replace(f"{came}-{UNKNOWN_YET}", f"{came}-{written}", 1).encode("utf-8", "surrogateescape")


def came_as(stamp: object) -> str:
    """The hash of the file as it was at its origin."""
    return str(stamp).partition("-")[0]


def still_as_written(data: bytes, stamp: object) -> bool:
    """Is this the very file that we wrote?"""
    came, _, written = str(stamp).partition("-")
    before = data.decode("utf-8", "surrogateescape")
    blank = before.replace(f"{came}-{written}", f"{came}-{UNKNOWN_YET}", 1)
    return bytes_hash(blank.encode("utf-8", "surrogateescape")) == written


def _disowned(metadata: dict[str, object]) -> dict[str, object]:
    fields: dict[str, object] = {}
    speaker = metadata.get("provenance")
    if not (isinstance(speaker, str) and speaker.strip().casefold() in OTHERS_WORDS):
        fields["provenance"] = "import"
        if speaker is not None:
            fields["imported_provenance"] = speaker
    if "loading" in metadata:
        fields |= {"loading": None, "imported_loading": metadata["loading"]}
    return fields
