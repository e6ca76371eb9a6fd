"""All errors, as one tree. A message names the problem and the fix.

Expected outcomes (nothing found, a duplicate) are return values, not errors. Front ends translate: the command line
prints the message on one line and exits with `exit_code`, an agent gets it as a retry, MCP as an error.
"""

from __future__ import annotations

import re
import shlex


class KnowledgeError(Exception):
    """Something that the user can act on."""

    exit_code = 2


class BrokenError(KnowledgeError):
    """Something that co needs is broken or away."""

    exit_code = 3


def error_kind(error: type[KnowledgeError]) -> str:
    """How the HTTP API names an error: `unknown_ref` for UnknownRefError."""
    return re.sub(r"(?<=.)([A-Z])", r"_\1", error.__name__.removesuffix("Error")).lower()


class SettingsError(KnowledgeError):
    """A setting that is unknown, malformed, or not allowed where it was found."""


class VaultError(KnowledgeError):
    """A vault that is missing, is not a folder, or cannot be written to."""


def empty_vault(root: str, notes: int) -> str:
    """The message for a vault that had notes and is an empty folder now."""
    known = "1 note was" if notes == 1 else f"{notes:,} notes were"
    return (
        f"the vault {root} is empty, and {known} read from it before: is its drive mounted? If you emptied it, "
        "`co index sync --drop-missing` forgets them"
    )


class UnknownRefError(KnowledgeError):
    """A ref that names no note, with the closest ones."""

    def __init__(self, ref: str, closest: list[str], message: str = "") -> None:
        self.ref, self.closest = ref, closest
        hint = f"did you mean {', '.join(closest)}?" if closest else "`co list` shows every ref"
        super().__init__(message or f"no note {ref!r}: {hint}")


class NoteForgottenError(UnknownRefError):
    """A note that is in the trash."""

    def __init__(self, ref: str) -> None:
        super().__init__(ref, [], f"{ref} was forgotten: `co note restore {shlex.quote(ref)}` restores it")


class NoteDeletedError(UnknownRefError):
    """A note whose file was deleted without co. The trash has a text that a change had replaced."""

    def __init__(self, ref: str, kept: str) -> None:
        problem = f"the file of {ref} was deleted outside of co"
        super().__init__(ref, [], f"{problem}: `co note restore {ref}` restores a copy that was kept {kept}")


class NoteMissingError(UnknownRefError):
    """A note whose file is gone, for example because a drive is not mounted."""

    exit_code = 3

    def __init__(self, ref: str, path: str, since: str) -> None:
        problem = f"{ref} has no file: {path} is missing since {since}; is its drive mounted?"
        super().__init__(ref, [], f"{problem} If it was deleted, `co index sync --drop-missing` forgets it")


class InvalidInputError(KnowledgeError):
    """Text, a date, a filter or a limit that is not valid."""


class KeyReusedError(InvalidInputError):
    """A key for one save that came with another one before."""

    def __init__(self) -> None:
        super().__init__("this Idempotency-Key was used for another save: send a new one for each save")


class SecretError(InvalidInputError):
    """New text that has a key, a token or a password in it."""


class FrontmatterError(KnowledgeError):
    """Frontmatter that cannot be edited without guessing."""

    def __init__(self, path: str, line: int, problem: str) -> None:
        self.path, self.line, self.problem = path, line, problem
        super().__init__(f"{path}:{line}: {problem}")


class NoteConflictError(KnowledgeError):
    """The note changed, or its name was taken, between reading and writing."""

    present: str | None = None
    """The text of a note that changed, for front ends that show both."""


class NoteFileError(BrokenError):
    """The file system refused to read or write a note."""


class DiskFullError(NoteFileError):
    """There is no room for a note or a file."""


class IndexUnavailableError(BrokenError):
    """search.db cannot be opened, created or used."""


class IndexDamagedError(IndexUnavailableError):
    """search.db is damaged. It was moved aside if possible; the next attempt makes a new one."""


class ActivityUnavailableError(BrokenError):
    """activity.db cannot be opened, or is newer than this program. Searching and saving work without it."""


class ServerUnavailableError(BrokenError):
    """A `co serve` that does not answer, or something else at its address."""


class EmbeddingError(BrokenError):
    """An embedder failed; search continues by words."""


class ModelMissingError(EmbeddingError):
    """A model that is not installed, or that a server does not have."""


class PageError(BrokenError):
    """A web page could not be fetched because of the network, the server or the page itself."""


class PageRefusedError(PageError):
    """A web address or response that is not accepted: its scheme, host, type or size."""

    exit_code = 2


class PageGoneError(PageError):
    """The server says that there is no such page (404, 410)."""

    exit_code = 1


class GitError(BrokenError):
    """A git command that failed or took too long, or git is not installed."""
