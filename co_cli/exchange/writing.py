"""Put what an export holds into the vault: what is here already, what changed there, and whose words win.

A thing is known again by `imported_from` and `import_id`. `import_hash` is what it was when it came, so that a
person's own changes are seen and never overwritten unasked. What a person forgot is not brought back. With
`write=False` everything is decided in the same way and nothing is touched.
"""

from __future__ import annotations

import contextlib
import os
import time
from typing import Literal, NamedTuple

from co_cli.errors import KnowledgeError, NoteConflictError, VaultError
from co_cli.exchange.items import Copy, Left, Own, Text, bytes_hash, text_hash
from co_cli.exchange.stamping import HASH, IDENTITY, ORIGIN, came_as, claims, marked, stamped, still_as_written
from co_cli.knowledge_base import KnowledgeBase
from co_cli.notes.files import create_exclusively, make_folders
from co_cli.notes.note import Note, NotTextError, read_note
from co_cli.notes.refs import FOLDERS, name_key, source_ref
from co_cli.notes.secrets import counting, gives_away, redact_line, without_secrets
from co_cli.notes.twins import fingerprint
from co_cli.service.saving import Draft, change

ImportOutcome = Literal["created", "updated", "unchanged", "skipped", "forgotten", "failed"]
ENDINGS = (".md", ".markdown")


class Receipt(NamedTuple):
    """What became, or would become, of one thing."""

    origin: str
    noun: str
    outcome: ImportOutcome
    title: str = ""
    ref: str | None = None
    path: str | None = None
    detail: str = ""
    masked: int = 0
    """Secrets that were masked, or would be, before it is written."""


class _Conflict(Exception):
    """A text that would be lost."""


class _Left(Exception):
    """Nothing is done, for this reason."""

    def __init__(self, outcome: ImportOutcome, detail: str = "", path: str | None = None) -> None:
        self.outcome: ImportOutcome = outcome
        self.detail, self.path = detail, path


class Writer:
    """The vault that one import writes to."""

    def __init__(
        self, kb: KnowledgeBase, origin: str, write: bool, on_conflict: str = "skip", trust: bool = False
    ) -> None:
        self.kb, self.store, self.index = kb, kb.store, kb.index
        self.origin, self.write, self.trust = origin, write, trust
        self.on_conflict = on_conflict
        self.disowned = 0
        """Files that called themselves the person's own words, or wanted to stand beside every prompt."""
        self._known = self._from_here()
        self._forgotten: dict[str, str] | None = None
        self._seen: dict[str, str] = {}
        self._said: dict[str, str] = {}
        self._names: set[str] = set()

    def put(self, entry: Text | Copy | Own | Left) -> Receipt:
        """Decide about one thing and, if that is wanted, write it."""
        if isinstance(entry, Left):
            return Receipt(entry.place, entry.noun, "skipped", entry.title, detail=entry.why)
        outcome: ImportOutcome
        path: str | None
        detail = ""
        masked = set[str]()
        try:
            with counting() as masked, self.store.lock() if self.write else contextlib.nullcontext():
                outcome, path, detail = self._put(self._clear(entry))
        except _Left as left:
            outcome, path, detail = left.outcome, left.path, left.detail
        except _Conflict as conflict:
            if self.on_conflict == "error":
                raise NoteConflictError(f"{entry.place}: {conflict}") from None
            hint = "`--on-conflict overwrite` takes the export's, and puts a copy of yours in the trash"
            outcome, path, detail = "skipped", None, f"{conflict}; {hint}"
        except KnowledgeError as error:
            outcome, path, detail = "failed", None, str(error)
        ref, full = (source_ref(path), self.store.absolute(path)) if path else (None, None)
        count = len(masked) if outcome in ("created", "updated") else 0
        place, title = self._shown(entry)
        return Receipt(place, entry.noun, outcome, title, ref, full, detail, count)

    def _clear(self, entry: Text | Copy | Own) -> Text | Copy | Own:
        """As it will stand here: masked first, so that what is compared later is what was written."""
        if self.store.secrets != "redact":
            return entry
        if isinstance(entry, Text):
            title = "" if gives_away(entry.title, entry.text) else without_secrets(entry.title, "redact")
            return entry._replace(text=without_secrets(entry.text, "redact"), title=title)
        return entry._replace(data=self.store.safe(entry.data))

    def _shown(self, entry: Text | Copy | Own) -> tuple[str, str]:
        """Where it stands and what a person knows it by, without the key that may be in it."""
        title = entry.title if isinstance(entry, Text) else entry.path.rsplit("/", 1)[-1]
        if self.store.secrets == "allow":
            return entry.place, title
        text = entry.text if isinstance(entry, Text) else ""
        return redact_line(entry.place, text), redact_line(title, text)

    def _put(self, entry: Text | Copy | Own) -> tuple[ImportOutcome, str | None, str]:
        identity = entry.path if isinstance(entry, Own) else entry.id
        if identity in self._seen:
            raise _Left("skipped", f"it stands twice in the export, first as {self._seen[identity]}")
        self._seen[identity] = entry.place
        if isinstance(entry, Text):
            return self._put_text(entry)
        return self._put_copy(entry) if isinstance(entry, Copy) else self._put_own(entry)

    # -- texts ------------------------------------------------------------------------------------------------------

    def _put_text(self, entry: Text) -> tuple[ImportOutcome, str | None, str]:
        came = text_hash(entry.text)
        path = self._known.get(entry.id)
        if path is not None:
            return self._renew_text(entry, path, came)
        self._refuse_forgotten(entry.id)
        dates: dict[str, object] = {"created": entry.created, "updated": entry.updated}
        fields = {key: value for key, value in dates.items() if value}
        fields |= {ORIGIN: self.origin, IDENTITY: entry.id, HASH: came, **entry.fields}
        draft = Draft(entry.text, entry.source, entry.title, entry.tags, entry.category, "import", fields)
        if entry.source == "memory":
            self._refuse_twins(entry)
        draft.clear(self.store.secrets)
        data = self.store.safe(draft.render(time.time()))
        self._refuse_large(data)
        if not self.write:
            return "created", None, ""
        folder = "/".join(part for part in (FOLDERS[entry.source], entry.folder) if part)
        path = self.store.create(folder, draft.title, data, self._taken)
        self._names.add(name_key(path))
        return "created", path, ""

    def _renew_text(self, entry: Text, path: str, came: str) -> tuple[ImportOutcome, str | None, str]:
        data = self.store.read(path)
        note = read_note(path, data)
        was = str(note.metadata.get(HASH))
        edited = text_hash(note.body) != was
        if came == was and not (edited and self.on_conflict == "overwrite"):
            raise _Left("unchanged", path=path)
        if edited and self.on_conflict != "overwrite":
            raise _Conflict(f"{note.ref} was changed here, and at its origin too")
        self._refuse_large(entry.text.encode("utf-8", "replace"))
        self.store.safe(entry.text.encode("utf-8", "replace"), data)
        detail = ""
        if self.write:
            if edited:
                detail = f"the text that was here is in {self.store.keep_copy(path)}"
            fields: dict[str, object] = {HASH: came, "provenance": "import"}
            if entry.updated:
                fields["updated"] = entry.updated
            change(self.store, path, data, entry.text, fields)
        return "updated", path, detail

    def _refuse_twins(self, entry: Text) -> None:
        """A memory that says the same, word for word, is enough."""
        said = fingerprint(entry.text)
        if said in self._said:
            raise _Left("skipped", f"{self._said[said]} says the same")
        self._said[said] = entry.place
        for path in self.index.exact_twins("memory", said):
            with contextlib.suppress(NotTextError):
                if self.store.exists(path) and fingerprint(read_note(path, self.store.read(path)).body) == said:
                    raise _Left("skipped", f"{source_ref(path)} says this already", path)

    # -- files ------------------------------------------------------------------------------------------------------

    def _put_copy(self, entry: Copy) -> tuple[ImportOutcome, str | None, str]:
        data = stamped(entry.data, self.origin, entry.id, self.trust)
        path = self._known.get(entry.id)
        if path is None:
            self._refuse_forgotten(entry.id)
            self._refuse_large(data)
            self._count(claims(entry.data))
            return self._create(entry.path, data, entry.modified)
        here = self.store.read(path)
        stamp = read_note(path, here).metadata.get(HASH)
        edited = not still_as_written(here, stamp)
        if came_as(stamp) == bytes_hash(entry.data) and not (edited and self.on_conflict == "overwrite"):
            raise _Left("unchanged", path=path)
        if edited and self.on_conflict != "overwrite":
            raise _Conflict(f"{source_ref(path)} was changed here, and at its origin too")
        self._count(claims(entry.data))
        return self._replace(path, here, data, keep=edited)

    def _put_own(self, entry: Own) -> tuple[ImportOutcome, str | None, str]:
        data = entry.data
        if not self.trust:
            data = marked(data.decode("utf-8", "surrogateescape")).encode("utf-8", "surrogateescape")
        if self._exists(entry.path):
            here = self.store.read(entry.path)
            if here in (entry.data, data):
                raise _Left("unchanged", path=entry.path)
            if self.on_conflict != "overwrite":
                raise _Conflict(f"{source_ref(entry.path)} says something else here")
            self._count(data != entry.data)
            return self._replace(entry.path, here, data, keep=True)
        if entry.path in self._trashed_homes():
            raise _Left("forgotten", f"it was forgotten here; `co restore {source_ref(entry.path)}` brings it back")
        self._refuse_large(data)
        self._count(data != entry.data)
        return self._create(entry.path, data, entry.modified)

    def _create(self, path: str, data: bytes, modified: float | None) -> tuple[ImportOutcome, str | None, str]:
        self.store.refuse_name(path)
        if self._taken(path) or self._exists(path):
            raise _Left("skipped", f"there is another note at {path} already; rename one of the two", None)
        self._names.add(name_key(path))
        data = self.store.safe(data)
        if not self.write:
            return "created", None, ""
        full = self.store.absolute(path)
        try:
            make_folders(os.path.dirname(full))
            made = create_exclusively(full, data)
            if made and modified is not None:
                os.utime(full, (modified, modified))  # what has no date of its own is as old as it was
        except OSError as error:
            raise VaultError(f"cannot write {path}: {error.strerror or error}; check the disk and its folder") from None
        if not made:
            raise _Left("skipped", f"there is another note at {path} already; rename one of the two")
        return "created", path, ""

    def _replace(self, path: str, here: bytes, data: bytes, keep: bool) -> tuple[ImportOutcome, str | None, str]:
        self._refuse_large(data)
        data = self.store.safe(data, here)
        if not self.write:
            return "updated", path, ""
        detail = f"the note that was here is in {self.store.keep_copy(path)}" if keep else ""
        self.store.replace(path, data, based_on=here)
        return "updated", path, detail

    # -- what is here -----------------------------------------------------------------------------------------------

    def _from_here(self) -> dict[str, str]:
        """What was imported from the same origin, by its id. The index proposes; only the file knows."""
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

    def _refuse_forgotten(self, identity: str) -> None:
        if self._forgotten is None:
            self._forgotten = {}
            for kept, home in self.store.trashed():
                note = self._note(kept) if home.lower().endswith(ENDINGS) else None
                if note and note.metadata.get(ORIGIN) == self.origin:
                    self._forgotten.setdefault(str(note.metadata.get(IDENTITY)), home)
        home = self._forgotten.get(identity)
        if home is not None:
            raise _Left("forgotten", f"it was forgotten here; `co restore {source_ref(home)}` brings it back")

    def _trashed_homes(self) -> dict[str, str]:
        if self._forgotten is None:
            self._forgotten = {home: kept for kept, home in self.store.trashed()}
        return self._forgotten

    def _exists(self, path: str) -> bool:
        return os.path.lexists(self.store.absolute(path))

    def _taken(self, path: str) -> bool:
        return name_key(path) in self._names or self.index.taken(path)

    def _refuse_large(self, data: bytes) -> None:
        largest = self.kb.settings.knowledge_max_note_bytes
        if len(data) > largest:
            limit = f"the limit is {largest:,} (the setting knowledge_max_note_bytes)"
            raise _Left("failed", f"{len(data):,} bytes are too long for a note; {limit}")

    def _count(self, disowned: bool) -> None:
        self.disowned += disowned and not self.trust
