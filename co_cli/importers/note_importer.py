"""Import exports of other services: decide what to do with each item, and write it.

`imported_from` and `import_id` identify an item in the next import. `import_hash` has the hashes of the item, of the
text that was written, and of each field: they tell what changed in the export, and what the person changed here. An
update replaces the text and the fields that changed only in the export. A dry run makes the same decisions and writes
nothing; `on_conflict="error"` begins with one, to find every conflict before a file is touched.
"""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Callable, Sequence
from typing import NamedTuple

from co_cli.ground.errors import (
    FrontmatterError,
    IndexUnavailableError,
    InvalidInputError,
    KnowledgeError,
    NoteConflictError,
)
from co_cli.ground.paths import is_inside
from co_cli.ground.reports import Progress
from co_cli.ground.saves import ON_CONFLICT, Draft
from co_cli.importers.archive import reason
from co_cli.importers.items import ImportOutcome, ImportReceipt, Item, failed
from co_cli.importers.reading import IMPORTERS, ExportStream
from co_cli.notes.editing import set_fields
from co_cli.notes.encoding import UTF_16
from co_cli.notes.files import create_exclusively, locked, make_folders
from co_cli.notes.frontmatter import read_frontmatter
from co_cli.notes.new_note import NewNote
from co_cli.notes.note import read_note
from co_cli.notes.refs import FOLDERS, name_key, source_ref
from co_cli.notes.secrets import count_masked, redact_line
from co_cli.notes.similarity import body_hash, fingerprint
from co_cli.notes.subjects import title_from
from co_cli.vault.vault import Vault, sync_origin

TRUSTABLE = ("obsidian", "basic-memory", "co")  # formats whose files may be the person's own words
OWN = "co"  # of `co data export`: a note is identified by its path, and compared and replaced as a whole
ORIGIN, IDENTITY, HASH = "imported_from", "import_id", "import_hash"
NO_HASH = "0" * 16
WIDE = tuple(mark.decode("utf-8", "surrogateescape") for mark in UTF_16)
OTHERS_WORDS = ("import", "web", "agent")  # provenance that does not claim to be the person's own words
CLAIMS = ("loading", "supersedes", "conflict_with", "decay_protected")
"""That a note belongs in every prompt, replaces another or conflicts with it, or is pinned."""
WRITTEN = ("created", "updated")
Result = tuple[ImportOutcome, str | None, str]
"""The outcome, the note's path in the vault, and a detail."""


class ImportRequest(NamedTuple):
    """Exports of one format. Without `write` the receipts only say what would be done."""

    origin: str
    paths: Sequence[str]
    write: bool = False
    on_conflict: str = "skip"
    trust: bool = False  # the files are the person's own words


def import_export(
    vault: Vault, request: ImportRequest, stages: Callable[[str], Progress] | None = None
) -> list[ImportReceipt]:
    """Import exports, or say what would be done. `stages` returns the progress bar of a stage, given its verb."""
    if request.origin not in IMPORTERS:
        raise InvalidInputError(f"the format must be one of {', '.join(IMPORTERS)}, not {request.origin!r}")
    if request.on_conflict not in ON_CONFLICT:
        raise InvalidInputError(f"on_conflict must be one of {', '.join(ON_CONFLICT)}, not {request.on_conflict!r}")
    if request.trust and request.origin not in TRUSTABLE:
        raise InvalidInputError(f"trust only {', '.join(TRUSTABLE)}: what {request.origin} wrote is not your own words")
    for path in request.paths:
        real = os.path.realpath(path)
        if is_inside(real, vault.root) or is_inside(vault.root, real):
            raise InvalidInputError(f"{path} is the vault, a folder in it, or a folder around it: nothing to import")
    try:
        data_dir = vault.settings.data_dir
        os.makedirs(data_dir, exist_ok=True)
        with locked(os.path.join(data_dir, "import.lock")):  # a second import sees what the first one wrote
            sync_origin(vault, vault.index.origin, stages and stages("indexing"))
            if not request.write or request.on_conflict == "error":
                receipts = _run(vault, request._replace(write=False), stages and stages("reading"))
                if not request.write:
                    return receipts
            receipts = _run(vault, request, stages and stages("importing"))
            if any(receipt.outcome in WRITTEN for receipt in receipts):
                sync_origin(vault, vault.index.origin, stages and stages("indexing"))
            return receipts
    except OSError as error:
        where = vault.settings.data_dir
        raise IndexUnavailableError(f"the import stopped: {error}; check {where} and the disk") from None


def _run(vault: Vault, request: ImportRequest, progress: Progress | None) -> list[ImportReceipt]:
    importer, stream = (
        NoteImporter(vault, request),
        ExportStream(request.origin, vault.settings.knowledge_max_note_bytes),
    )
    receipts: list[ImportReceipt] = []
    for path in request.paths:
        before = len(receipts)
        try:
            with contextlib.closing(stream.read(path)) as parts:
                for part in parts:
                    receipts += [importer.put(part.item)] if part.item else []
                    receipts += [part.receipt] if part.receipt else []
                    if progress:
                        progress(part.done, part.size)
        except InvalidInputError as error:  # the export is refused as a whole
            if not receipts:
                raise
            receipts.append(failed(path, str(error)))
        if len(receipts) == before:
            receipts.append(failed(path, f"there is nothing in it that `co data import {request.origin}` can read"))
    return receipts


class NoteImporter:
    """Writes the items of one import to the vault."""

    def __init__(self, vault: Vault, request: ImportRequest) -> None:
        self._vault, self.store, self.index, self.request = vault, vault.store, vault.index, request
        self._known: dict[str, str] | None = None
        self._forgotten: dict[str, str] | None = None
        self._kept: dict[str, str] | None = None
        self._places: dict[str, str] = {}  # where an id, or the text of a memory, is in the export
        self._names: set[str] = set()
        self._notes = vault.index.notes.state().notes  # with those that were created since

    def put(self, item: Item) -> ImportReceipt:
        """Decide about one item, and write it if this is not a dry run."""
        masked = set[str]()
        place, title = item.place, item.title or title_from(item.text or "untitled")
        if self.store.secrets != "allow":
            text = item.text.strip()  # as the note will have it: a text is searched for secrets once, if twice in a row
            place, title = redact_line(place, text), redact_line(title, text)
        try:
            with count_masked() as masked, self.store.lock() if self.request.write else contextlib.nullcontext():
                outcome, path, detail = self._put(item)
        except NoteConflictError as error:
            if self.request.on_conflict == "error":
                raise NoteConflictError(f"{item.place}: {error}") from None
            outcome, path, detail = "skipped", None, str(error)
        except (KnowledgeError, OSError) as error:
            outcome, path, detail = "failed", None, reason(error)
        ref, full = (source_ref(path), self.store.absolute(path)) if path else (None, None)
        receipt = ImportReceipt(place, item.noun, outcome, title, ref, full, detail)
        if outcome not in WRITTEN:
            return receipt
        claims = item.path and not self.request.trust and claims_renamed(read_frontmatter(item.text).metadata)
        return receipt._replace(masked=len(masked), disowned=bool(claims))

    def _put(self, item: Item) -> Result:
        if not item.text.strip() and self.request.origin != OWN:
            return "skipped", None, "it is empty"
        if item.id in self._places:
            return "skipped", None, f"it appears twice in the export, first as {self._places[item.id]}"
        self._places[item.id] = item.place
        here = self.request.origin == OWN and os.path.lexists(self.store.absolute(item.id))
        path = item.id if here else self._read_known().get(item.id)
        if path is not None:
            return self._update(item, path)
        if home := self._read_forgotten().get(item.id):
            ref = source_ref(home)
            return "forgotten", None, f"you forgot it here; `co note restore {ref}` restores it"
        if item.source == "conversation" and (path := self._read_kept().get(item.id)):
            return "skipped", None, f"{source_ref(path)} was kept while it went on"
        return self._create(item)

    def _update(self, item: Item, path: str) -> Result:
        here = self.store.read(path)
        data = self._render(item, here)
        fields, body = _split(here)
        came, written, front = [*str(fields.get(HASH)).split("-"), "", ""][:3]
        same, edited = came == body_hash(item.text), written != body_hash(body)
        if self.request.origin == OWN:
            same = here in (item.text.encode("utf-8", "surrogateescape"), data)
            edited = not same
        overwrite = edited and self.request.on_conflict == "overwrite"
        if same and not overwrite:
            return "unchanged", path, ""
        if edited and not overwrite:
            hint = "`--on-conflict overwrite` takes the version of the export and puts a copy of yours in the trash"
            raise NoteConflictError(f"{source_ref(path)} was changed here, and differs in the export; {hint}")
        details = list(filter(None, [_became_text(item, data)]))
        new, body = _split(data)
        taken = {key: new[key] for key in (HASH, "kind", "provenance", "updated") if key in new}
        keep_fields = self.request.origin != OWN
        if front and keep_fields:
            if item.path:
                keep_fields = front != _hash_fields(fields)
            elif not item.fields.get("created") and "created" in fields:
                new["created"] = fields["created"]  # when it was imported first
            merged, kept = _merge(front, fields, new)
            taken = {**merged, **taken}
            if kept := [key for key in kept if key not in taken]:
                details.append(f"your frontmatter stays; the export has another {', '.join(kept)}")
        if not self.request.write:
            return "updated", path, "; ".join(details)
        if edited:
            details.append(f"your version is in {self.store.keep_copy(path)}")
        if keep_fields:
            text = set_fields(here.decode("utf-8", "surrogateescape"), taken, path)
            data = (text[: read_frontmatter(text).body] + body).encode("utf-8", "surrogateescape")
        self.store.replace(path, data, based_on=here)
        return "updated", path, "; ".join(details)

    def _create(self, item: Item) -> Result:
        if item.source == "memory":  # skip one that another memory says word for word
            said = fingerprint(item.text)
            twin = next(map(source_ref, self.index.notes.exact_twins("memory", said)), None) or self._places.get(said)
            if twin:
                return "skipped", None, f"{twin} says the same"
            self._places[said] = item.place
        self._vault.require_room(self._notes)
        data, path = self._render(item), item.path
        if path:
            self.store.refuse_name(path)
            full = self.store.absolute(path)
            taken = self.request.origin != OWN and self._taken(path)  # its names stood next to each other before
            if taken or os.path.lexists(full):
                return "skipped", None, f"there is another note at {path} already; rename one of the two"
            self._names.add(name_key(path))
            if self.request.write:
                make_folders(os.path.dirname(full))
                self.store.touch(path)
                if not create_exclusively(full, data):
                    raise NoteConflictError(f"another program just wrote {path}; import again")
                if item.modified is not None:
                    os.utime(full, (item.modified, item.modified))  # the date of a note that gives none itself
        elif self.request.write:
            folder = f"{FOLDERS[item.source]}/{item.folder}".rstrip("/")
            path = self.store.create(folder, read_note("note.md", data).title, data, self._taken)
            self._names.add(name_key(path))
        self._notes += 1
        return "created", path if self.request.write else None, _became_text(item, data)

    def _render(self, item: Item, here: bytes = b"") -> bytes:
        """The note to write: with the fields that identify it, secrets masked. `here` is the one it would replace."""
        unhashed = f"{body_hash(item.text)}-{NO_HASH}"
        stamp: dict[str, object] = {ORIGIN: self.request.origin, IDENTITY: item.id, HASH: unhashed}
        if item.path:
            text = self._stamped(item.text, {} if self.request.origin == OWN else stamp)
            data, checked = text.encode("utf-8", "surrogateescape"), b""
        else:
            fields = {**item.fields, **stamp}
            draft = NewNote(Draft(item.text, item.title, item.tags, item.category, "import", item.source, fields))
            # nobody can take a password out of what was said: a conversation is kept without it
            masks = item.source == "conversation" and self.store.secrets == "refuse"
            draft.remove_secrets("redact" if masks else self.store.secrets)
            data, checked = draft.render(time.time()), f"{draft.content}\n".encode("utf-8", "replace")
        largest = self._vault.settings.knowledge_max_note_bytes
        if len(data) > largest:
            raise InvalidInputError(f"it has more than {largest:,} bytes (setting knowledge_max_note_bytes)")
        data = self.store.safe(data.removesuffix(checked), here) + checked
        fields, body = _split(data)
        written = f"{body_hash(body)}-{_hash_fields(fields)}"
        return data.replace(unhashed.encode(), unhashed.replace(NO_HASH, written).encode(), 1)

    def _stamped(self, text: str, stamp: dict[str, object]) -> str:
        """A file with these fields, and with claims to be trusted moved to other names."""
        if not self.request.trust and text.startswith(WIDE):
            raise InvalidInputError("UTF-16, which hides what it claims; save it as UTF-8 there, or use --trust")
        mark: dict[str, object] = {} if self.request.trust else {"provenance": "import"}
        metadata = read_frontmatter(text).metadata
        claims = {} if self.request.trust else claims_renamed(metadata)
        try:
            return set_fields(text, {**stamp, **({} if metadata.get("provenance") else mark), **claims})
        except (FrontmatterError, InvalidInputError):
            return set_fields("", {**stamp, **mark}) + text  # broken frontmatter becomes text, where it claims nothing

    def _read_known(self) -> dict[str, str]:
        """Paths of the notes from the same origin by id."""
        if self._known is None:
            origins = self.index.notes.field_values(ORIGIN)
            found = self.index.notes.field_values(IDENTITY).items()
            self._known = {identity: path for path, identity in found if origins.get(path) == self.request.origin}
        return self._known

    def _read_kept(self) -> dict[str, str]:
        """Paths of the conversations that were not imported, by the ids of their sessions."""
        if self._kept is None:
            imported = self.index.notes.field_values(IDENTITY)
            sessions = self.index.notes.field_values("session")
            self._kept = {session: path for path, session in sessions.items() if path not in imported}
        return self._kept

    def _read_forgotten(self) -> dict[str, str]:
        """Where notes in the trash were, by their ids."""
        if self._forgotten is not None:
            return self._forgotten
        found: dict[str, str] = {}
        for kept, home in self.store.trashed():
            with contextlib.suppress(KnowledgeError):
                fields, _ = _split(self.store.read(kept))
                if self.request.origin in (OWN, fields.get(ORIGIN)):
                    found.setdefault(home if self.request.origin == OWN else str(fields.get(IDENTITY)), home)
        self._forgotten = found
        return found

    def _taken(self, path: str) -> bool:
        return name_key(path) in self._names or self.index.notes.taken(path)


def _became_text(item: Item, data: bytes) -> str:
    """Why the frontmatter of a copied file is a part of the text that is written; empty if it is not."""
    front = read_frontmatter(item.text)
    if not item.path or not front.problem or read_frontmatter(data.decode("utf-8", "surrogateescape")).problem:
        return ""
    return f"line {front.problem_line}: {front.problem}; it stays in the text until you fix it there and import again"


def _split(data: bytes) -> tuple[dict[str, object], str]:
    """The frontmatter and the body of a note."""
    text = data.decode("utf-8", "surrogateescape")
    front = read_frontmatter(text)
    return front.metadata, text[front.body :]


def _hash_fields(fields: dict[str, object]) -> str:
    """Six digits for each field, whatever their order, without the field that holds this hash."""
    return "".join(sorted(_hash_field(*field) for field in fields.items() if field[0] != HASH))


def _hash_field(key: str, value: object) -> str:
    return body_hash(f"{key}: {value}")[:6]


def _merge(front: str, here: dict[str, object], new: dict[str, object]) -> tuple[dict[str, object], list[str]]:
    """The fields that changed in the export since `front`, and those that changed on both sides."""
    before = {front[at : at + 6] for at in range(0, len(front), 6)}
    taken: dict[str, object] = {}
    both: list[str] = []
    for key in {**here, **new}:
        mine = key in here and _hash_field(key, here[key]) not in before
        if key not in new:
            taken |= {} if mine else {key: None}
        elif new[key] != here.get(key) and _hash_field(key, new[key]) not in before:
            both += [key] if mine else []
            taken |= {} if mine else {key: new[key]}
    return taken, both


def claims_renamed(metadata: dict[str, object]) -> dict[str, object]:
    """Fields that keep under other names what only the person may say: their own words, and `CLAIMS`."""
    fields: dict[str, object] = {}
    speaker = metadata.get("provenance")
    if speaker is not None and not (isinstance(speaker, str) and speaker.strip().casefold() in OTHERS_WORDS):
        fields = {"provenance": "import", "imported_provenance": speaker}
    for name in filter(metadata.__contains__, CLAIMS):
        fields |= {name: None, f"imported_{name}": metadata[name]}
    return fields
