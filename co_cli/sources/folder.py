"""A folder of documents, read in place: whatever text lies there, beside binary files that are listed only."""

from __future__ import annotations

from typing import TYPE_CHECKING

from co_cli.notes.dates import read_moment
from co_cli.notes.note import Note, read_note, version_of
from co_cli.sources.documents import is_binary_name, largest_size, missing_extra, read_document
from co_cli.sources.origin import ENDING, RARE_ENDINGS, Origin
from co_cli.values import BINARY

if TYPE_CHECKING:
    from co_cli.sources.walking import Exclusions

HEAVY = ("node_modules/", "__pycache__/", "venv/", "*.egg-info/", "*~", "#*#", "~$*", "*.part", "*.crdownload")
"""What tools leave behind, and files that somebody is writing just now."""
MARKDOWN = (ENDING, *RARE_ENDINGS)
LARGEST = 100_000_000
"""A PDF is larger than the text in it."""


class FolderKind:
    """Any folder. What git ignores there is left out; files that are gone stay until somebody drops them."""

    sources = ("folder",)
    keeps_missing = True

    def wants(self, name: str) -> bool:
        return True

    def unread(self, name: str) -> str | None:
        return BINARY if is_binary_name(name) else missing_extra(name)

    def largest(self, name: str, limit: int) -> int:
        return limit if name.endswith(MARKDOWN) else min(largest_size(name), max(limit, LARGEST))

    def exclusions(self, origin: Origin) -> Exclusions:
        return HEAVY, (".gitignore", ".coignore")

    def path(self, origin: Origin, rest: str) -> str:
        return rest

    def read(self, origin: Origin, path: str, data: bytes) -> Note:
        ref = f"{origin.label}/{path}"
        if path.endswith(MARKDOWN):
            return read_note(path, data)._replace(source="folder", ref=ref)
        name = path.rsplit("/", 1)[-1]
        document = read_document(name, data)
        plain = read_note(path, b"")
        return plain._replace(
            source="folder",
            ref=ref,
            title=document.title or name,
            body=document.text,
            metadata=document.metadata,
            created=read_moment(document.metadata.get("created")),
            updated=read_moment(document.metadata.get("updated")),
            problem=document.problem,
            sections=document.headings,
            version=version_of(data),
        )
