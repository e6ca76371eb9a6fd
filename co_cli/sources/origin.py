"""Origins: folders whose files are searched. One is the vault, the others are read in place beside it.

What the files of an origin are to the index is for its kind to say: which are wanted, how their bytes become a note,
and by what ref that is opened. Each kind is one file; the vault's own stands here, because every search needs it.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from typing import Protocol

    from co_cli.notes.note import Note
    from co_cli.sources.walking import Exclusions

    class Kind(Protocol):
        """What one kind of origin is to the index."""

        @property
        def sources(self) -> tuple[str, ...]:
            """The sources that its notes are of."""
            ...

        @property
        def keeps_missing(self) -> bool:
            """True: a file that is gone stays searchable, is reported, and is dropped when somebody says so."""
            ...

        def wants(self, name: str) -> bool:
            """Is a file of this name listed at all?"""
            ...

        def unread(self, name: str) -> str | None:
            """Why a file of this name is listed and never read; None if it is read."""
            ...

        def largest(self, name: str, limit: int) -> int:
            """How many bytes such a file may have; `limit` is what the settings allow a note."""
            ...

        def exclusions(self, origin: Origin) -> Exclusions:
            """What lies there and is not looked at."""
            ...

        def path(self, origin: Origin, rest: str) -> str:
            """The path that a ref means by what follows the origin's label."""
            ...

        def read(self, origin: Origin, path: str, data: bytes) -> Note:
            """Bytes into a note. Raises NotTextError with the reason where there is no text in them."""
            ...

else:
    Protocol = object

VAULT = "vault"
REGISTRY = "sources.toml"
"""The file in the data folder that `registry` reads. Mostly there is none, and nobody needs to know how."""
NO_EXCLUSIONS = ((), (".coignore",))
ENDING = ".md"
RARE_ENDINGS = (".markdown", ".MD", ".Md", ".mD", ".Markdown", ".MARKDOWN")


class Origin(NamedTuple):
    """A folder, or one file of it, whose texts are searched."""

    kind: str
    root: str
    """The folder, as a real path."""
    name: str = ""
    """What it is called in refs: `folder:handbook/guides/deploy.md`. A vault needs none."""
    only: str = ""
    """The one file of the folder that was added, if it was a file."""
    tier: str = ""
    """Whose vault it is, if it is another one beside the vault: `user` or `team`. It stands before its refs."""

    @property
    def path(self) -> str:
        """What was added."""
        return os.path.join(self.root, self.only) if self.only else self.root

    @property
    def label(self) -> str:
        """As people write it: `folder:handbook`, or `user`."""
        if self.tier:
            return self.tier
        return f"{self.kind}:{self.name}" if self.name else self.kind


class VaultKind:
    """A vault: Markdown files, which are memories and articles."""

    sources = ("memory", "article")
    keeps_missing = False

    def wants(self, name: str) -> bool:
        return name.endswith(ENDING) or name.endswith(RARE_ENDINGS)

    def unread(self, name: str) -> str | None:
        return None

    def largest(self, name: str, limit: int) -> int:
        return limit

    def exclusions(self, origin: Origin) -> Exclusions:
        return NO_EXCLUSIONS

    def path(self, origin: Origin, rest: str) -> str:
        from co_cli.notes.refs import path_of  # who opens a note, not who searches

        return path_of(rest) or rest

    def read(self, origin: Origin, path: str, data: bytes) -> Note:
        from co_cli.notes.note import read_note  # a search of a vault in which nothing changed reads no file

        note = read_note(path, data)
        return note._replace(ref=f"{origin.tier}:{note.ref}") if origin.tier else note


THE_VAULT = VaultKind()
KINDS = (VAULT, "folder", "obsidian", "skill")


def kind_of(origin: Origin) -> Kind:
    match origin.kind:
        case "vault":
            return THE_VAULT
        case "folder":
            from co_cli.sources.folder import FolderKind

            return FolderKind()
        case "obsidian":
            from co_cli.sources.obsidian import ObsidianKind

            return ObsidianKind()
        case "skill":
            from co_cli.sources.skill import SkillKind

            return SkillKind()
        case other:
            raise ValueError(f"there is no kind of origin called {other!r}")


def origin_of(root: str | Origin) -> Origin:
    """A path alone is a vault."""
    return Origin(VAULT, root) if isinstance(root, str) else root
