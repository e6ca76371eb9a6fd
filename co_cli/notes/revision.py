"""Apply a change to the version of a note that it is based on."""

from __future__ import annotations

import time

from co_cli.ground.errors import FrontmatterError, InvalidInputError, NoteConflictError
from co_cli.ground.values import moment_text
from co_cli.notes.editing import set_body, set_fields
from co_cli.notes.encoding import UTF_16
from co_cli.notes.frontmatter import read_frontmatter
from co_cli.notes.note import version_of
from co_cli.notes.store import NoteStore


def change_file(store: NoteStore, path: str, data: bytes, body: str | None, fields: dict[str, object]) -> bool:
    """Apply a change to the content it is based on: another body, and these fields.

    Bytes that are not valid UTF-8 survive. False: it said so already. `updated` follows where the note has it, or where
    its text changes and it has frontmatter to put it in.
    """
    if data.startswith(UTF_16):
        raise FrontmatterError(path, 1, "UTF-16; save it as UTF-8, then change it")
    before = data.decode("utf-8", "surrogateescape")
    is_mixed = body is not None or not str(fields).isascii()  # would mix UTF-8 with another encoding
    if is_mixed and before != data.decode("utf-8", "replace"):
        raise InvalidInputError(f"{path} is not valid UTF-8: save it as UTF-8 in an editor, then change it")
    text = set_fields(before, fields, path)
    if body is not None:
        text = set_body(text, body)
    if text == before:
        return False
    front = read_frontmatter(text)
    dated = "updated" in front.metadata or (body is not None and bool(front.metadata))
    if dated and not front.problem and "updated" not in fields:
        text = set_fields(text, {"updated": moment_text(time.time())}, path)
    store.replace(path, text.encode("utf-8", "surrogateescape"), based_on=data)
    return True


def require_version(name: str, data: bytes, version: str | None) -> None:
    """Raise NoteConflictError if these bytes are not the version that the caller read."""
    now = version_of(data)
    if version is not None and version.strip().casefold() != now:
        raise NoteConflictError(
            f"{name} was changed meanwhile: it is version {now} now, not {version}. Nothing was written; read it "
            "again, then repeat the change"
        )
