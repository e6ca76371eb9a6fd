"""Decide what to do with each item of an export, and write it.

`imported_from` and `import_id` identify an item in the next import. `import_hash` has the hashes of what came and of
what was written: they tell whether the export changed, and whether the person changed the note. With `write=False` the
decisions are the same and nothing is written.
"""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Sequence
from functools import cached_property
from typing import NamedTuple

from co_cli.errors import FrontmatterError, InvalidInputError, KnowledgeError, NoteConflictError, VaultError
from co_cli.importers.items import File, ImportOutcome, ImportReceipt, Item, Text, bytes_hash, text_hash
from co_cli.knowledge_base import KnowledgeBase
from co_cli.notes.editing import set_fields
from co_cli.notes.files import create_exclusively, make_folders
from co_cli.notes.frontmatter import read_frontmatter
from co_cli.notes.new_note import NewNote
from co_cli.notes.note import Note, NotTextError, read_note
from co_cli.notes.refs import FOLDERS, name_key, source_ref
from co_cli.notes.secrets import count_masked, redact_line
from co_cli.notes.similarity import fingerprint
from co_cli.service.vault_writer import change_file
from co_cli.values import Draft

ORIGIN, IDENTITY, HASH = "imported_from", "import_id", "import_hash"
OWN = "co"
"""The format of `co data export`: a note is identified by its path."""
OTHERS_WORDS = ("import", "web", "agent")
"""What a file may say of its provenance without claiming to be the person's own words."""
NO_HASH = "0" * 16
WRITTEN = ("created", "updated")
Result = tuple[ImportOutcome, str | None, str]
"""The outcome, the note's path in the vault, and a detail."""


class ImportRequest(NamedTuple):
    """Exports of one format. Without `write` the report only says what would be done."""

    origin: str
    paths: Sequence[str]
    write: bool = False
    on_conflict: str = "skip"
    trust: bool = False
    """The files are the person's own words."""


class _StopError(Exception):
    """The item is not written, for this reason."""

    def __init__(self, outcome: ImportOutcome, detail: str, path: str | None = None) -> None:
        self.result: Result = (outcome, path, detail)


class NoteImporter:
    """Writes the items of one import to the vault."""

    def __init__(self, kb: KnowledgeBase, request: ImportRequest) -> None:
        self.kb, self.store, self.index, self.request = kb, kb.store, kb.index, request
        self.disowned = 0
        """Files that claimed to be the person's own words, or to belong in every prompt."""
        self._places: dict[str, str] = {}
        self._names: set[str] = set()

    def put(self, item: Item) -> ImportReceipt:
        """Decide about one item, and write it if this is not a dry run."""
        if isinstance(item, ImportReceipt):
            return item
        masked = set[str]()
        try:
            with count_masked() as masked, self.store.lock() if self.request.write else contextlib.nullcontext():
                outcome, path, detail = self._put(item)
        except _StopError as stop:
            outcome, path, detail = stop.result
        except NoteConflictError as error:
            if self.request.on_conflict == "error":
                raise NoteConflictError(f"{item.place}: {error}") from None
            outcome, path, detail = "skipped", None, str(error)
        except KnowledgeError as error:
            outcome, path, detail = "failed", None, str(error)
        ref, full = (source_ref(path), self.store.absolute(path)) if path else (None, None)
        count = len(masked) if outcome in WRITTEN else 0
        if outcome in WRITTEN and isinstance(item, File) and not self.request.trust:
            self.disowned += bool(claims_renamed(read_frontmatter(_text(item)).metadata))
        title, text = (item.title, item.text) if isinstance(item, Text) else (item.path.rsplit("/", 1)[-1], "")
        place = item.place
        if self.store.secrets != "allow":
            place, title = redact_line(place, text), redact_line(title, text)
        return ImportReceipt(place, item.noun, outcome, title, ref, full, detail, count)

    def _put(self, item: Text | File) -> Result:
        self._refuse_repeat(item.id, item.place, "it appears twice in the export, first as {}")
        if self.request.origin == OWN:
            path = item.id if os.path.lexists(self.store.absolute(item.id)) else None
        else:
            path = self._known.get(item.id)
        if path is not None:
            return self._update(item, path)
        if item.id in self._forgotten:
            ref = source_ref(self._forgotten[item.id])
            raise _StopError("forgotten", f"you forgot it here; `co note restore {ref}` brings it back")
        return self._create_note(item) if isinstance(item, Text) else self._create_file(item)

    def _update(self, item: Text | File, path: str) -> Result:
        here = self.store.read(path)
        data = self._checked(
            item.text.encode("utf-8", "replace") if isinstance(item, Text) else self._stamped(item, here), here
        )
        note = read_note(path, here)
        came, _, written = str(note.metadata.get(HASH)).partition("-")
        if isinstance(item, Text):
            same, edited = came == text_hash(item.text), written != text_hash(note.body)
        elif self.request.origin == OWN:
            same = here in (item.data, data)
            edited = not same
        else:
            blank = here.replace(f"{came}-{written}".encode(), f"{came}-{NO_HASH}".encode(), 1)
            same, edited = came == bytes_hash(item.data), written != bytes_hash(blank)
        overwrite = edited and self.request.on_conflict == "overwrite"
        if same and not overwrite:
            return "unchanged", path, ""
        if edited and not overwrite:
            hint = "`--on-conflict overwrite` takes the version of the export and puts a copy of yours in the trash"
            raise NoteConflictError(f"{source_ref(path)} was changed here, and differs in the export; {hint}")
        if not self.request.write:
            return "updated", path, ""
        detail = f"your version is in {self.store.keep_copy(path)}" if edited else ""
        if isinstance(item, Text):
            text = data.decode()
            fields: dict[str, object] = {HASH: f"{text_hash(item.text)}-{text_hash(text)}", "provenance": "import"}
            fields |= {"updated": item.dates[1]} if item.dates[1] else {}
            change_file(self.store, path, here, text, fields)
        else:
            self.store.replace(path, data, based_on=here)
        return "updated", path, detail

    def _create_note(self, item: Text) -> Result:
        if item.source == "memory":
            self._refuse_twin(item)
        fields = {"created": item.dates[0], "updated": item.dates[1]}
        fields |= {ORIGIN: self.request.origin, IDENTITY: item.id, HASH: NO_HASH}
        given = {**{key: value for key, value in fields.items() if value}, **item.fields}
        draft = NewNote(Draft(item.text, item.title, item.tags, item.category, "import", item.source, given))
        draft.remove_secrets(self.store.secrets)
        draft.fields[HASH] = f"{text_hash(item.text)}-{text_hash(draft.content)}"
        data = self._checked(draft.render(time.time()))
        if not self.request.write:
            return "created", None, ""
        folder = f"{FOLDERS[item.source]}/{item.folder}".rstrip("/")
        path = self.store.create(folder, draft.title, data, self._taken)
        self._names.add(name_key(path))
        return "created", path, ""

    def _create_file(self, item: File) -> Result:
        if not item.data.strip():
            raise _StopError("skipped", "it is empty")
        data = self._checked(self._stamped(item))
        self.store.refuse_name(item.path)
        full = self.store.absolute(item.path)
        if self._taken(item.path) or os.path.lexists(full):
            raise _StopError("skipped", f"there is another note at {item.path} already; rename one of the two")
        self._names.add(name_key(item.path))
        if not self.request.write:
            return "created", None, ""
        try:
            make_folders(os.path.dirname(full))
            if not create_exclusively(full, data):
                raise NoteConflictError(f"another program just wrote {item.path}; import again")
            if item.modified is not None:
                os.utime(full, (item.modified, item.modified))  # the date of a note that gives none itself
        except OSError as error:
            raise VaultError(f"cannot write {item.path}: {error.strerror or error}; check the disk") from None
        return "created", item.path, ""

    def _stamped(self, item: File, here: bytes = b"") -> bytes:
        """The file with fields that identify it, and with claims to be trusted moved to other names."""
        text, came, origin = _text(item), bytes_hash(item.data), self.request.origin
        stamp: dict[str, object] = (
            {} if origin == OWN else {ORIGIN: origin, IDENTITY: item.id, HASH: f"{came}-{NO_HASH}"}
        )
        mark = {} if self.request.trust else {"provenance": "import"}
        metadata = read_frontmatter(text).metadata
        fields = {**stamp, **({} if "provenance" in metadata else mark)}
        try:
            text = set_fields(text, fields if self.request.trust else {**fields, **claims_renamed(metadata)})
        except (FrontmatterError, InvalidInputError):
            text = set_fields("", {**stamp, **mark}) + text  # broken frontmatter becomes text, where it claims nothing
        data = self.store.safe(text.encode("utf-8", "surrogateescape"), here)
        return data.replace(f"{came}-{NO_HASH}".encode(), f"{came}-{bytes_hash(data)}".encode(), 1)

    def _checked(self, data: bytes, here: bytes = b"") -> bytes:
        """With secrets masked or refused; too large a note is refused."""
        largest = self.kb.settings.knowledge_max_note_bytes
        if len(data) > largest:
            limit = f"the limit is {largest:,} (setting knowledge_max_note_bytes)"
            raise _StopError("failed", f"{len(data):,} bytes are too long for a note; {limit}")
        return self.store.safe(data, here)

    def _refuse_repeat(self, key: str, place: str, why: str) -> None:
        if key in self._places:
            raise _StopError("skipped", why.format(self._places[key]))
        self._places[key] = place

    def _refuse_twin(self, item: Text) -> None:
        """Skip a memory that another one says word for word."""
        said = fingerprint(item.text)
        self._refuse_repeat(f"says {said}", item.place, "{} says the same")
        for path in self.index.exact_twins("memory", said):
            note = self._note(path)
            if note and fingerprint(note.body) == said:
                raise _StopError("skipped", f"{source_ref(path)} says the same", path)

    @cached_property
    def _forgotten(self) -> dict[str, str]:
        """Where notes in the trash were, by their ids."""
        if self.request.origin == OWN:
            return {home: home for _, home in self.store.trashed()}
        notes = [(self._note(kept), home) for kept, home in self.store.trashed()]
        mine = [pair for pair in notes if pair[0] and pair[0].metadata.get(ORIGIN) == self.request.origin]
        return {str(note.metadata.get(IDENTITY)): home for note, home in reversed(mine) if note}

    @cached_property
    def _known(self) -> dict[str, str]:
        """Paths of the notes from the same origin by id. The index may be outdated, so the files are read."""
        known: dict[str, str] = {}
        origins = self.index.field_values(ORIGIN)
        for path, identity in self.index.field_values(IDENTITY).items():
            if origins.get(path) == self.request.origin and identity not in known:
                note = self._note(path)
                if note and note.metadata.get(IDENTITY) == identity:
                    known[identity] = path
        return known

    def _note(self, path: str) -> Note | None:
        try:
            return read_note(path, self.store.read(path)) if self.store.exists(path) else None
        except (NotTextError, KnowledgeError):
            return None

    def _taken(self, path: str) -> bool:
        return name_key(path) in self._names or self.index.taken(path)


def _text(item: File) -> str:
    return item.data.decode("utf-8", "surrogateescape")


def claims_renamed(metadata: dict[str, object]) -> dict[str, object]:
    """Fields that keep under other names what only the person may say: their own words, part of every prompt."""
    fields: dict[str, object] = {}
    speaker = metadata.get("provenance")
    if speaker is not None and not (isinstance(speaker, str) and speaker.strip().casefold() in OTHERS_WORDS):
        fields = {"provenance": "import", "imported_provenance": speaker}
    if "loading" in metadata:
        fields |= {"loading": None, "imported_loading": metadata["loading"]}
    return fields
