"""Change a note only if it still says what the change was based on; otherwise nobody's words are lost.

Whoever names the version that they read gets a conflict when the note is another one by now. Whoever gives a whole new
text without one may not know what was there: then the old text is kept in the trash.
"""

from __future__ import annotations

import contextlib

from co_cli.errors import KnowledgeError, NoteConflictError, SecretError
from co_cli.notes.note import NotTextError, read_note, version_of
from co_cli.notes.secrets import counting, find_secrets
from co_cli.notes.store import NoteStore
from co_cli.service.saving import change, title_from


class TextKeptError(NoteConflictError):
    """A text that could not go where it should have gone, and is safe elsewhere."""


def change_note(
    store: NoteStore, path: str, content: str | None, fields: dict[str, object], version: str | None
) -> tuple[bool, str, int]:
    """Give a note another text or other fields. Whether that changed it, where an old text is kept, and how many
    secrets were masked.
    """
    with counting() as masked, store.lock():
        data = store.read(path)
        require_version(path, data, version)
        if content is not None:
            store.safe(content.encode("utf-8", "surrogateescape"), data)  # refused by a line of what was given
            fields = {**_title_with(path, data, content), **fields}
        kept = ""
        if content is not None and version is None and _loses_words(path, data, content):
            kept = store.keep(path, data)
        try:
            changed = change(store, path, data, content, fields)
        except BaseException:
            with contextlib.suppress(KnowledgeError):  # a note that cannot be read now: then the copy stays
                if kept and store.read(path) == data:  # it has it still; Ctrl-C may come after it was replaced
                    store.drop_kept(kept)
            raise
        return changed, kept and f"the text that it had is in {kept}{_still_there(data, content)}", len(masked)


def write_over(store: NoteStore, path: str, data: bytes, based_on: bytes, keep: bool) -> None:
    """Put what an editor made of a note into its file. A text that cannot go there is kept in the trash, if `keep`."""
    try:
        with store.lock():
            store.replace(path, data, based_on)
    except KnowledgeError as error:
        if not keep or isinstance(error, SecretError):  # the trash is a place on disk, too
            raise
        kept = store.keep(path, store.safe(data, based_on))  # if that is refused too, whoever has the text keeps it
        raise TextKeptError(
            f"{path} was changed or moved meanwhile and is as it was left; your text is kept in {kept} ({error})"
        ) from error


def require_version(name: str, data: bytes, version: str | None) -> None:
    """Raise NoteConflictError if these bytes are not of the version that somebody read."""
    now = version_of(data)
    if version is not None and version.strip().casefold() != now:
        raise NoteConflictError(
            f"{name} was changed meanwhile: it is version {now} now, not {version}. Nothing was written; read it "
            "again, then repeat the change"
        )


def _title_with(path: str, data: bytes, content: str) -> dict[str, object]:
    """A memory whose title was the first sentence of its old text gets that of the new one: it would say what no longer
    holds. An article's title is its name.
    """
    try:
        note = read_note(path, data)
    except NotTextError:
        return {}
    title = note.metadata.get("title")
    ours = note.source == "memory" and bool(note.body.strip()) and title == title_from(note.body)
    return {"title": title_from(content)} if ours and title_from(content) else {}


def _still_there(data: bytes, content: str | None) -> str:
    """That a key which was taken out of a note is not gone from the disk."""
    left = {secret.shown for secret in find_secrets(content or "")}
    gone = [one for one in find_secrets(data.decode("utf-8", "replace")) if one.shown not in left]
    return f", which holds {gone[0].what}: delete it there, too" if gone else ""


def _loses_words(path: str, data: bytes, content: str) -> bool:
    """Whether the old text, but for white space and its full stop, is not part of the new one."""
    try:
        old = " ".join(read_note(path, data).body.split()).rstrip(".")
        return old not in " ".join(content.split())
    except NotTextError:
        return True
