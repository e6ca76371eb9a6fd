"""Decide what to do with each item of an export, and write it.

`imported_from` and `import_id` identify an item in the next import; `import_hash` tells whether the person changed the
note since. With `write=False` the decisions are the same and nothing is written.
"""

from __future__ import annotations

import contextlib
import os
import time

from co_cli.errors import FrontmatterError, InvalidInputError, KnowledgeError, NoteConflictError, VaultError
from co_cli.importers.items import File, ImportOutcome, Item, Receipt, Text, bytes_hash, text_hash
from co_cli.knowledge_base import KnowledgeBase
from co_cli.notes.editing import set_fields
from co_cli.notes.files import create_exclusively, make_folders
from co_cli.notes.frontmatter import read_frontmatter
from co_cli.notes.note import Note, NotTextError, read_note
from co_cli.notes.refs import FOLDERS, name_key, source_ref
from co_cli.notes.secrets import count_masked, redact_line, reveals_secret, without_secrets
from co_cli.notes.similarity import fingerprint
from co_cli.service.saving import NewNote, change_file
from co_cli.values import Draft

ORIGIN, IDENTITY, HASH = "imported_from", "import_id", "import_hash"
OWN = "co"
"""The format of `co data export`: a note is identified by its path."""
OTHERS_WORDS = ("import", "web", "agent")
"""What a file may say of its provenance without claiming to be the person's own words."""
NO_HASH = "0" * 16
Result = tuple[ImportOutcome, str | None, str]
"""The outcome, the note's path in the vault, and a detail."""


class _StopError(Exception):
    """The item is not written, for this reason."""

    def __init__(self, outcome: ImportOutcome, detail: str, path: str | None = None) -> None:
        self.result: Result = (outcome, path, detail)


class Writer:
    """Writes the items of one import to the vault."""

    def __init__(self, kb: KnowledgeBase, origin: str, write: bool, on_conflict: str, trust: bool) -> None:
        self.kb, self.store, self.index = kb, kb.store, kb.index
        self.origin, self.write, self.on_conflict, self.trust = origin, write, on_conflict, trust
        self.disowned = 0
        """Files that claimed to be the person's own words, or to belong in every prompt."""
        self._known = self._imported_before()
        self._forgotten: dict[str, str] | None = None
        self._places: dict[str, str] = {}
        self._names: set[str] = set()

    def put(self, item: Item) -> Receipt:
        """Decide about one item, and write it if this is not a dry run."""
        if isinstance(item, Receipt):
            return item
        masked = set[str]()
        try:
            with count_masked() as masked, self.store.lock() if self.write else contextlib.nullcontext():
                outcome, path, detail = self._put(self._redacted(item))
        except _StopError as stop:
            outcome, path, detail = stop.result
        except NoteConflictError as error:
            if self.on_conflict == "error":
                raise NoteConflictError(f"{item.place}: {error}") from None
            outcome, path, detail = "skipped", None, str(error)
        except KnowledgeError as error:
            outcome, path, detail = "failed", None, str(error)
        ref, full = (source_ref(path), self.store.absolute(path)) if path else (None, None)
        count = len(masked) if outcome in ("created", "updated") else 0
        title, text = (item.title, item.text) if isinstance(item, Text) else (item.path.rsplit("/", 1)[-1], "")
        if self.store.secrets != "allow":
            item, title = item._replace(place=redact_line(item.place, text)), redact_line(title, text)
        return Receipt(item.place, item.noun, outcome, title, ref, full, detail, count)

    def _redacted(self, item: Text | File) -> Text | File:
        """Mask secrets first, so that later comparisons see what was written."""
        if self.store.secrets != "redact":
            return item
        if isinstance(item, File):
            return item._replace(data=self.store.safe(item.data))
        title = "" if reveals_secret(item.title, item.text) else without_secrets(item.title, "redact")
        return item._replace(text=without_secrets(item.text, "redact"), title=title)

    def _put(self, item: Text | File) -> Result:
        self._refuse_repeat(item.id, item.place, "it appears twice in the export, first as {}")
        if self.origin == OWN:
            path = item.id if os.path.lexists(self.store.absolute(item.id)) else None
        else:
            path = self._known.get(item.id)
        if path is not None:
            return self._update(item, path)
        self._refuse_forgotten(item.id)
        return self._create_note(item) if isinstance(item, Text) else self._create_file(item)

    def _update(self, item: Text | File, path: str) -> Result:
        here = self.store.read(path)
        data = item.text.encode("utf-8", "replace") if isinstance(item, Text) else self._stamped(item)
        if self.origin == OWN and isinstance(item, File):
            same = here in (item.data, data)
            edited = not same
        else:
            note = read_note(path, here)
            came, _, written = str(note.metadata.get(HASH)).partition("-")
            if isinstance(item, Text):
                same, edited = came == text_hash(item.text), came != text_hash(note.body)
            else:
                blank = here.replace(f"{came}-{written}".encode(), f"{came}-{NO_HASH}".encode(), 1)
                same, edited = came == bytes_hash(item.data), written != bytes_hash(blank)
        overwrite = self.on_conflict == "overwrite"
        if same and not (edited and overwrite):
            return "unchanged", path, ""
        if edited and not overwrite:
            hint = "`--on-conflict overwrite` takes the version of the export and puts a copy of yours in the trash"
            raise NoteConflictError(f"{source_ref(path)} was changed here, and differs in the export; {hint}")
        self._refuse_large(data)
        data = self.store.safe(data, here)
        self._count_claims(item, data)
        if not self.write:
            return "updated", path, ""
        detail = f"your version is in {self.store.keep_copy(path)}" if edited else ""
        if isinstance(item, Text):
            fields: dict[str, object] = {HASH: text_hash(item.text), "provenance": "import"}
            if item.dates[1]:
                fields["updated"] = item.dates[1]
            change_file(self.store, path, here, item.text, fields)
        else:
            self.store.replace(path, data, based_on=here)
        return "updated", path, detail

    def _create_note(self, item: Text) -> Result:
        if item.source == "memory":
            self._refuse_twin(item)
        fields = {"created": item.dates[0], "updated": item.dates[1]}
        fields |= {ORIGIN: self.origin, IDENTITY: item.id, HASH: text_hash(item.text)}
        given = {**{key: value for key, value in fields.items() if value}, **item.fields}
        draft = NewNote(Draft(item.text, item.title, item.tags, item.category, "import", item.source, given))
        draft.clear(self.store.secrets)
        data = self.store.safe(draft.render(time.time()))
        self._refuse_large(data)
        if not self.write:
            return "created", None, ""
        folder = f"{FOLDERS[item.source]}/{item.folder}".rstrip("/")
        path = self.store.create(folder, draft.title, data, self._taken)
        self._names.add(name_key(path))
        return "created", path, ""

    def _create_file(self, item: File) -> Result:
        if not item.data.strip():
            raise _StopError("skipped", "it is empty")
        data = self._stamped(item)
        self._refuse_large(data)
        self.store.refuse_name(item.path)
        full = self.store.absolute(item.path)
        if self._taken(item.path) or os.path.lexists(full):
            raise _StopError("skipped", f"there is another note at {item.path} already; rename one of the two")
        self._names.add(name_key(item.path))
        self._count_claims(item, data)
        data = self.store.safe(data)
        if not self.write:
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

    def _stamped(self, item: File) -> bytes:
        """The file with fields that identify it, and with claims to be trusted moved to other names.

        Every other byte stays. `import_hash` is the hash of the file as it came and as we wrote it.
        """
        text = item.data.decode("utf-8", "surrogateescape")
        came = bytes_hash(item.data)
        stamp = {ORIGIN: self.origin, IDENTITY: item.id, HASH: f"{came}-{NO_HASH}"} if self.origin != OWN else {}
        claims = {} if self.trust else _without_claims(read_frontmatter(text).metadata)
        try:
            text = set_fields(text, {**stamp, **claims}) if stamp or claims else text
        except (FrontmatterError, InvalidInputError):
            # broken frontmatter becomes text below ours, where it claims nothing
            text = set_fields("", {**stamp, **({} if self.trust else {"provenance": "import"})}) + text
        data = text.encode("utf-8", "surrogateescape")
        return data.replace(f"{came}-{NO_HASH}".encode(), f"{came}-{bytes_hash(data)}".encode(), 1)

    def _count_claims(self, item: Text | File, data: bytes) -> None:
        if self.trust or isinstance(item, Text):
            return
        metadata = read_frontmatter(item.data.decode("utf-8", "surrogateescape")).metadata
        claims = any(key.startswith("imported_") for key in _without_claims(metadata))
        self.disowned += data != item.data if self.origin == OWN else claims

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

    def _refuse_forgotten(self, identity: str) -> None:
        if self._forgotten is None:
            self._forgotten = {}
            for kept, home in self.store.trashed():
                note = self._note(kept)
                if self.origin == OWN:
                    self._forgotten[home] = home
                elif note and note.metadata.get(ORIGIN) == self.origin:
                    self._forgotten.setdefault(str(note.metadata.get(IDENTITY)), home)
        if identity in self._forgotten:
            ref = source_ref(self._forgotten[identity])
            raise _StopError("forgotten", f"you forgot it here; `co note restore {ref}` brings it back")

    def _refuse_large(self, data: bytes) -> None:
        largest = self.kb.settings.knowledge_max_note_bytes
        if len(data) > largest:
            limit = f"the limit is {largest:,} (setting knowledge_max_note_bytes)"
            raise _StopError("failed", f"{len(data):,} bytes are too long for a note; {limit}")

    def _imported_before(self) -> dict[str, str]:
        """Paths of the notes from the same origin by id. The index may be outdated, so the files are read."""
        known: dict[str, str] = {}
        origins = self.index.field_values(ORIGIN)
        for path, identity in self.index.field_values(IDENTITY).items():
            if origins.get(path) == self.origin and identity not in known:
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


def _without_claims(metadata: dict[str, object]) -> dict[str, object]:
    """Fields that mark a file as imported and keep under other names what it claims of itself."""
    fields: dict[str, object] = {}
    speaker = metadata.get("provenance")
    if not (isinstance(speaker, str) and speaker.strip().casefold() in OTHERS_WORDS):
        fields["provenance"] = "import"
        if speaker is not None:
            fields["imported_provenance"] = speaker
    if "loading" in metadata:
        fields |= {"loading": None, "imported_loading": metadata["loading"]}
    return fields
