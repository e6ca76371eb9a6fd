"""Save, change, forget and restore notes, in this vault or in another tier's.

Saving an exact repeat is a duplicate; everything else is a new note that names related memories. A change is based on
what its author read. If the note was changed since, either nothing is written and the caller gets a NoteConflictError,
or the replaced text is kept in the trash: no text is ever lost.
"""

from __future__ import annotations

import contextlib
import os
import re
import time
from collections.abc import Callable, Generator, Sequence
from dataclasses import replace
from typing import TypeVar

from co_cli.activity import record_refs
from co_cli.ground.errors import (
    IndexUnavailableError,
    InvalidInputError,
    KnowledgeError,
    NoteConflictError,
    SecretError,
)
from co_cli.ground.paths import path_inside
from co_cli.ground.saves import ON_RELATED, Change, Draft, Forgotten, Related, Saved
from co_cli.ground.values import OWN_SOURCES, to_utf8
from co_cli.index.embed import embed_ahead
from co_cli.index.names import fold_name
from co_cli.index.stored import ReadyVectors
from co_cli.knowledge_index import KnowledgeIndex
from co_cli.notes.editing import Tags
from co_cli.notes.encoding import NotTextError
from co_cli.notes.files import make_folders
from co_cli.notes.new_note import NewNote, clean_tags, guess_category, one_or_list, require_readable
from co_cli.notes.note import Note, read_note
from co_cli.notes.refs import ENDINGS, FOLDERS, ref_of, slugify, source_ref
from co_cli.notes.revision import change_file, require_version
from co_cli.notes.secrets import count_masked, find_secrets
from co_cli.notes.store import NoteStore
from co_cli.notes.subjects import title_from
from co_cli.saving.kept_answers import KeptAnswers
from co_cli.saving.related import find_twin, related_notes
from co_cli.saving.relocation import move_note, names_in_use
from co_cli.sources.origin import IGNORE_FILE, VAULT, Origin
from co_cli.sources.walk import ignore_rules, may_list
from co_cli.vault.lookup import Lookup
from co_cli.vault.tiers import place_of, tier_of
from co_cli.vault.vault import Vault, open_vault, sync_origin

Answer = TypeVar("Answer")
UNUSABLE = re.compile(r'[\x00-\x1f\x7f:*?"<>|#^\[\]]|//|[ .](?:/|$)')
"""In a path that a caller chose: what some file system, or a link in Obsidian, cannot hold."""


class TextKeptError(NoteConflictError):
    """A text that could not be written to its note and was kept elsewhere."""


class VaultWriter:
    """Writes notes of one knowledge base. A note is searchable when a method returns, if the index can be used."""

    def __init__(self, vault: Vault) -> None:
        self._vault, self.store, self.lookup = vault, vault.store, Lookup(vault)
        self._answers = vault.authority or KeptAnswers(vault.settings.data_dir, vault.root)

    def save(self, draft: Draft) -> Saved:
        if draft.on_related not in ON_RELATED:
            raise InvalidInputError(f"on_related must be one of {', '.join(ON_RELATED)}, not {draft.on_related!r}")
        if draft.source not in OWN_SOURCES:
            raise InvalidInputError(f"the kind of a note must be one of {', '.join(OWN_SOURCES)}, not {draft.source!r}")
        superseded = [draft.supersedes] if isinstance(draft.supersedes, str) else list(draft.supersedes)
        if draft.tier is not None and draft.tier != tier_of(self._vault.settings):
            refs = [self._ref_in_tier(draft.tier, ref) for ref in superseded]
            with opened_tier(self._vault, draft.tier) as other:
                return _prefixed(VaultWriter(other).save(replace(draft, tier=None, supersedes=refs)), draft.tier)
        new = NewNote(draft)
        self._require_size(new.content)
        new.supersede([self.lookup.open_own(ref, "superseded").ref for ref in superseded])
        return self._save(new, draft)

    def related(self, content: str, title: str | None = None) -> list[Related]:
        """Memories similar to a text, as `save` would name them."""
        return self._related(NewNote(Draft(content, title))) if content.strip() else []

    def update(self, ref: str, change: Change) -> Saved:
        elsewhere = self.lookup.in_other_tier(ref)
        if elsewhere is not None:
            tier, ref = elsewhere
            with opened_tier(self._vault, tier) as other:
                return _prefixed(VaultWriter(other).update(ref, change), tier)
        if change.content is not None and not change.content.strip():
            raise InvalidInputError("the new text is empty: nothing was changed; `co forget` removes a note")
        require_readable(change.fields or {})
        content = None if change.content is None else to_utf8(change.content).replace("\0", "")
        self._require_size(content or "")
        note = self.lookup.open_own(ref, "changed")
        path, size = note.path, len((content or "").strip())
        if note.limit and size > note.limit:
            raise InvalidInputError(
                f"{note.ref}: {size:,} characters, and its limit is {note.limit:,}; nothing was changed"
            )
        target = self._target(note.source, change.path, path) if change.path else path
        linked, alias = self._names_kept(self._vault.index.origin, note, change)
        with count_masked() as masked:
            changed, ref, kept = self._apply(path, content, change, alias)
        details = [*filter(None, (linked, kept))]
        if target != path:
            linking = move_note(self._vault, self.store, note, target)
            details.append(f"moved from {note.ref}")
            details += [f"links updated in {', '.join(map(source_ref, linking))}"] if linking else []
            changed, path, ref = True, target, read_note(target, self.store.read(target)).ref
        self._vault.index.embed_saved()
        outcome = "updated" if changed else "unchanged"
        detail = "; ".join((ref, *details)) if details else ""
        return Saved(ref, self.store.absolute(path), outcome, detail, masked=len(masked), seq=self.store.last_seq)

    def _names_kept(self, origin: Origin, note: Note, change: Change) -> tuple[str, str]:
        """What to say about links to a note that gets another title, and the old title if it has to become an alias."""
        if change.title in (None, "", note.title) or "aliases" in (change.fields or {}) or not self.lookup.index:
            return "", ""
        sync_origin(self._vault, origin)
        count, by_title = names_in_use(self._vault.index.of(origin), note)
        links = f"{count:,} notes link to it" if count > 1 else "1 note links to it" if count else ""
        said = [links, "its old title is an alias now" if by_title else ""]
        return "; ".join(filter(None, said)), note.title if by_title else ""

    def _target(self, source: str, chosen: str, now: str) -> str:
        """The path that a note moves to. A folder keeps the file's name."""
        path = f"{chosen}{now.rpartition('/')[2]}" if chosen.endswith("/") else chosen
        path = self._path_in_home(source, path)
        path += "" if path.lower().endswith(ENDINGS) else ".md"
        if path != now:
            self._require_included(path)
            self.store.refuse_name(path)
            if self.store.exists(path) and not os.path.samefile(*map(self.store.absolute, (path, now))):
                raise NoteConflictError(f"{path} exists already; nothing was moved or changed")
            make_folders(os.path.dirname(self.store.absolute(path)))
        return path

    def create_in(self, origin: Origin, path: str, text: str) -> None:
        """Write a new file into the vault or an added folder, in a place that its owner uses, and index it."""
        store = self._store_of(origin)
        with store.lock():
            if origin == self._vault.index.origin:
                self._vault.require_room()
            store.create_at(path, to_utf8(text).replace("\0", "").encode())
            record_refs(source_ref(path))
            if origin == self._vault.index.origin:
                self._index(path)
        if origin != self._vault.index.origin:
            sync_origin(self._vault, origin)
        self._vault.index.of(origin).embed_saved()

    def rewrite(self, ref: str, data: bytes, based_on: bytes) -> None:
        """Replace a note's file (a ref or an absolute path), if it still has the content `based_on`.

        Otherwise the new bytes are kept in the trash, and TextKeptError says where.
        """
        inside = path_inside(os.path.normpath(ref), self._vault.root) if os.path.isabs(ref) else None
        if not inside:
            origin, path = self.lookup.locate(ref)
        else:  # a file of this vault, which may be gone by now
            origin, path = self._vault.index.origin, inside
        own, store = origin == self._vault.index.origin, self._store_of(origin)
        try:
            with store.lock():
                store.replace(path, data, based_on)
                if own:
                    self._index(path)
        except KnowledgeError as error:
            if isinstance(error, SecretError) or origin.source != VAULT:  # a linked folder has no trash of ours
                raise
            with store.lock():
                kept = store.keep(path, store.safe(data, based_on))
            raise TextKeptError(f"{path} was changed or moved since; your text is kept in {kept} ({error})") from error
        if own:
            self._vault.index.embed_saved()

    def update_linked(self, ref: str, change: Change) -> Saved:
        """Change a note of a linked folder, for its owner. Replaced text is not kept, so a new one needs a version."""
        origin, path = self.lookup.locate(ref)
        if not path.lower().endswith(ENDINGS):
            raise InvalidInputError(f"{ref} is not Markdown, so it has no fields: edit it without options")
        if change.content is not None and (change.version is None or not change.content.strip()):
            raise InvalidInputError(f"{ref} is not in a vault, where the old text would be kept: give --based-on, too")
        require_readable(change.fields or {})
        content = None if change.content is None else to_utf8(change.content).replace("\0", "")
        store = self._store_of(origin)
        linked, alias = self._names_kept(origin, self.lookup.open(ref)[1], change)
        with count_masked() as masked, store.lock():
            data = store.read(path)
            require_version(path, data, change.version)
            fields = _changed_fields(change) | _aliases_after(path, data, change, alias)
            changed = change_file(store, path, data, content, fields)
        sync_origin(self._vault, origin)
        self._vault.index.of(origin).embed_saved()
        detail = f"{ref}; {linked}" if linked else ""
        return Saved(ref, store.absolute(path), "updated" if changed else "unchanged", detail, masked=len(masked))

    def forget(self, ref: str) -> Forgotten:
        """Move a note to the trash."""
        elsewhere = self.lookup.in_other_tier(ref)
        if elsewhere is not None:
            tier, ref = elsewhere
            with opened_tier(self._vault, tier) as other:
                gone = VaultWriter(other).forget(ref)
            valid = tuple(f"{tier}:{again}" for again in gone.valid_again)
            return replace(gone, ref=f"{tier}:{gone.ref}", valid_again=valid)
        note = self.lookup.open_own(ref, "forgotten")
        superseded = self._superseded_by(note)
        before = self.lookup.outdated(superseded)
        with self.store.lock():
            kept = self.store.trash(note.path)
            self._vault.index.forget_files([note.path])
        after = self.lookup.outdated(superseded)
        valid = tuple(old.ref for old, was, why in zip(superseded, before, after, strict=True) if was and not why)
        return Forgotten(note.ref, note.path, kept, valid)

    def _superseded_by(self, note: Note) -> list[Note]:
        """The notes of this vault that a note says it supersedes, each once."""
        found: dict[str, Note] = {}
        for name in note.supersedes:
            with contextlib.suppress(KnowledgeError):  # gone, or a name that several notes have
                old = self.lookup.open_own(name, "found")
                found[old.ref] = old
        return list(found.values())

    def restore(self, ref: str) -> Saved:
        """Move the newest copy of a note back from the trash, or the one with this path there.

        In a team vault, a note that a force-push dropped is written again.
        """
        tier, _, rest = ref.partition(":")
        if any(origin.tier == tier for origin in self._vault.index.linked):
            with opened_tier(self._vault, tier) as other:
                return _prefixed(VaultWriter(other).restore(rest), tier)
        with self.store.lock():
            self._vault.require_room()
            kept, path = self.lookup.trashed_copy(ref)
            dropped = self.lookup.dropped_text(kept)
            if dropped is None:
                self.store.restore(kept, path)
            else:
                self.store.create_at(path, dropped)
            others = sum(home == path for _, home in self.store.trashed())
            self._index(path)
            note = read_note(path, self.store.read(path))
        record_refs(note.ref)
        self._vault.index.embed_saved()
        when, copy = self.store.trashed_at(kept) if dropped is None else ("", False)
        detail = f"a copy kept {when}, which is not its last text" if copy else f"forgotten {when}".rstrip()
        detail = detail if dropped is None else f"which a force-push dropped after {kept[:10]}"
        detail += f"; copies left in the trash: {others}" if others else ""
        return Saved(note.ref, self.store.absolute(path), "restored", detail, seq=self.store.last_seq)

    def _save(self, new: NewNote, draft: Draft) -> Saved:
        """Write and index a note. Without an index it is still written; the next sync finds it.

        Related memories are searched for and vectors are made before the lock is taken, or after it is free if a
        server makes them: other writers must not wait for either.
        """
        with count_masked() as masked:
            new.remove_secrets(self.store.secrets)
            related = self._related(new) if draft.on_related != "keep" else []
            ready = self._ask_index(lambda index: self._embed_ahead(index, new), list[ReadyVectors]())
            with self.store.lock():
                answered = self._answers.answer_to(draft.key) if draft.key else None
                if answered:
                    return replace(answered, path=self.store.absolute(answered.path))
                twin = self._ask_index(lambda index: find_twin(self.store, index, new), None)
                if twin:
                    waits, saved = self._repeat(new, *twin)
                else:
                    detail = _supersede(new, related) if draft.on_related == "supersede" else ""
                    waits, saved = self._create(new, ready)
                    related = () if detail else tuple(related)
                    saved = replace(saved, related=related, detail=f"{saved.ref}; {detail}" if detail else "")
                saved = replace(saved, masked=len(masked))
                if draft.key:  # servers have the vault in different places
                    inside = os.path.relpath(saved.path, self.store.root).replace(os.sep, "/")
                    self._answers.keep_answer(draft.key, replace(saved, path=inside))
        record_refs(saved.ref)
        if waits:
            self._vault.index.embed_saved()
        return replace(saved, seq=self.store.last_seq)

    def _embed_ahead(self, index: KnowledgeIndex, new: NewNote) -> list[ReadyVectors]:
        data = self.store.safe(new.render(time.time()))
        return embed_ahead(index.origin, index.embedders, f"{FOLDERS[new.source]}/new.md", data)

    def _related(self, new: NewNote) -> list[Related]:
        threshold = self._vault.settings.knowledge_duplicate_threshold
        return self._ask_index(lambda index: related_notes(self.store, index, new, threshold), list[Related]())

    def _create(self, new: NewNote, ready: Sequence[ReadyVectors]) -> tuple[bool, Saved]:
        """Whether something waits for a vector, and the receipt."""
        self._vault.require_room()
        path = self._write(new)
        waits = self._index(path, ready)  # before another writer asks whether this is a repeat
        return waits, Saved(ref_of(path, new.source), self.store.absolute(path), "created")

    def _write(self, new: NewNote) -> str:
        """Write the file of a new note, where it says or named after its title. Returns its path."""
        home, data = FOLDERS[new.source], new.render(time.time())
        taken = self._taken if self.lookup.index else None
        if not new.path.strip("/").removeprefix(f"{home}/"):
            self._require_included(f"{home}/{slugify(new.title)}.md")
            return self.store.create(home, new.title, data, taken)
        path = self._path_in_home(new.source, new.path)
        if new.path.endswith("/"):
            self._require_included(f"{path}/{slugify(new.title)}.md")
            return self.store.create(path, new.title, data, taken)
        path += "" if path.lower().endswith(ENDINGS) else ".md"
        self._require_included(path)
        if taken and taken(path):
            raise NoteConflictError(f"{path} exists already; nothing was written")
        self.store.create_at(path, data)
        return path

    def _taken(self, path: str) -> bool:
        return self._ask_index(lambda index: index.notes.taken(path), False)

    def _path_in_home(self, source: str, chosen: str) -> str:
        """A path that a caller chose, in the folder of a kind of notes."""
        home = FOLDERS[source]
        inside = chosen.strip("/").removeprefix(f"{home}/")
        path = f"{home}/{inside}"
        if not inside or UNUSABLE.search(inside) or not may_list(self._vault.root, path, None):
            raise InvalidInputError(f"{chosen!r} cannot be a path in {home}/: choose one such as people/mara.md")
        return path

    def _require_included(self, path: str) -> None:
        """Refuse a path that is excluded: no search would find the note."""
        index = self._vault.index
        rules = ignore_rules(index.origin, index.exclude)
        if rules and not may_list(index.root, path, rules):
            raise InvalidInputError(f"{path} is excluded (knowledge_exclude or {IGNORE_FILE}): nothing was written")

    def _repeat(self, new: NewNote, note: Note, data: bytes) -> tuple[bool, Saved]:
        """Write nothing, unless the repeat supersedes a note: a caller who was shown related notes decides so."""
        path, detail = self.store.absolute(note.path), f"{note.ref} says this already"
        superseded = [ref for ref in new.supersedes if ref not in note.supersedes]
        if not superseded:
            return False, Saved(note.ref, path, "duplicate", detail)
        fields = {"supersedes": one_or_list([*note.supersedes, *superseded])}
        change_file(self.store, note.path, data, None, fields)
        waits = self._index(note.path)
        return waits, Saved(note.ref, path, "updated", f"{detail}; it supersedes {', '.join(superseded)} now")

    def _apply(self, path: str, content: str | None, change: Change, alias: str) -> tuple[bool, str, str]:
        """Whether a change made a difference, the ref of the note then, and where the replaced text is kept."""
        store, fields, version = self.store, _changed_fields(change), change.version
        with store.lock():
            data = store.read(path)
            require_version(path, data, version)
            fields |= _aliases_after(path, data, change, alias)
            if content is not None:
                store.safe(content.encode("utf-8", "surrogateescape"), data)  # names a line of the given text
                fields = {**_derived_anew(path, data, content), **fields}
            kept = ""
            if content is not None and (change.keep or version is None) and _loses_words(path, data, content):
                kept = store.keep(path, data)
            try:
                changed = change_file(store, path, data, content, fields)
            except BaseException:
                with contextlib.suppress(KnowledgeError):
                    if kept and store.read(path) == data:
                        store.drop_kept(kept)
                raise
            self._index(path)
            ref = read_note(path, store.read(path)).ref
            return changed, ref, kept and f"the previous text is in {kept}{_secret_left(data, content)}"

    def _store_of(self, origin: Origin) -> NoteStore:
        if origin == self._vault.index.origin:
            return self.store
        return NoteStore(origin.root, secrets=self._vault.settings_of(origin.root).secrets)

    def _ref_in_tier(self, tier: str, ref: str) -> str:
        if ref.startswith(f"{tier}:"):
            return ref.removeprefix(f"{tier}:")
        elsewhere = self.lookup.in_other_tier(ref)
        if elsewhere is None or elsewhere[0] != tier:
            raise InvalidInputError(f"{ref} is not in the {tier} vault: save the new note where the old one is")
        return elsewhere[1]

    def _require_size(self, content: str) -> None:
        size, limit = len(content.encode()), self._vault.settings.knowledge_max_note_bytes
        if size > limit:
            raise InvalidInputError(
                f"{size:,} bytes are too long for a note; the limit is {limit:,} (knowledge_max_note_bytes)"
            )

    def _index(self, path: str, ready: Sequence[ReadyVectors] = ()) -> bool:
        """Index a file inside the lock that it was written in. If that is not possible now, the next sync does it.

        Returns whether something waits for a vector.
        """
        return self._ask_index(lambda index: index.index_file(None, path, embed=False, ready=ready), False)

    def _ask_index(self, question: Callable[[KnowledgeIndex], Answer], otherwise: Answer) -> Answer:
        """What the index answers, or `otherwise`: whatever fails in it, the note is written."""
        try:
            return question(self.lookup.index) if self.lookup.index else otherwise
        except IndexUnavailableError:
            return otherwise
        except KnowledgeError:
            raise
        except Exception as error:
            from co_cli.notes.logbook import logger  # imports logging, 20 ms, which a save rarely needs

            logger("index").error("a note was saved without the index", exc_info=error)
            return otherwise


def _supersede(new: NewNote, related: Sequence[Related]) -> str:
    """Let a new note supersede those related to it. Returns what the receipt says about it."""
    refs = [note.ref for note in related]
    new.supersede(refs)
    return f"it supersedes {', '.join(refs)}" if refs else ""


@contextlib.contextmanager
def opened_tier(vault: Vault, tier: str) -> Generator[Vault]:
    """The vault of another tier, by itself. Your own is created if it does not exist."""
    place = place_of(vault.settings, tier)
    if tier == "user":
        make_folders(place, private=True)
    settings = vault.settings_of(place)
    other = open_vault(replace(settings, set_by={**settings.set_by, "vault": tier}), vault.opening)
    try:
        yield other
    finally:
        other.close()


def _changed_fields(change: Change) -> dict[str, object]:
    fields: dict[str, object] = dict(change.fields or {})
    for name, value in (("title", change.title), ("category", change.category)):
        if value is not None:
            fields[name] = value or None
    if change.category is not None:
        fields.setdefault("auto_category", None)  # the user's own takes its place
    if change.tags is not None:
        fields["tags"] = Tags(clean_tags(change.tags)) or None
        if not fields["tags"]:
            fields.setdefault("tag", None)  # read where there are no `tags`
    return fields


def _aliases_after(path: str, data: bytes, change: Change, alias: str) -> dict[str, object]:
    """The aliases of a note with another title: the old one, if it has to be, and not the new one."""
    if not change.title or "aliases" in (change.fields or {}):
        return {}
    with contextlib.suppress(NotTextError):
        known = read_note(path, data).aliases
        aliases = [name for name in (*known, *filter(None, [alias])) if fold_name(name) != fold_name(change.title)]
        if aliases != [*known]:
            return {"aliases": aliases or None}
    return {}


def _prefixed(saved: Saved, tier: str) -> Saved:
    related = tuple(replace(note, ref=f"{tier}:{note.ref}") for note in saved.related)
    return replace(saved, ref=f"{tier}:{saved.ref}", related=related)


def _derived_anew(path: str, data: bytes, content: str) -> dict[str, object]:
    """A memory's title if it was the first sentence of the old text, and an automatic category, from the new text."""
    try:
        note = read_note(path, data)
    except NotTextError:
        return {}
    title = note.metadata.get("title")
    derived = note.source == "memory" and bool(note.body.strip()) and title == title_from(note.body)
    fields: dict[str, object] = {"title": title_from(content)} if derived and title_from(content) else {}
    if note.guessed_category and note.category == guess_category(f"{note.title}\n{note.body}"):
        fields["auto_category"] = guess_category(f"{fields.get('title', note.title)}\n{content}")
    return fields


def _secret_left(data: bytes, content: str | None) -> str:
    """A warning that a secret removed from a note is still in the trash."""
    left = {secret.shown for secret in find_secrets(content or "")}
    gone = [secret for secret in find_secrets(data.decode("utf-8", "replace")) if secret.shown not in left]
    return f", which holds {gone[0].what}: delete it there, too" if gone else ""


def _loses_words(path: str, data: bytes, content: str) -> bool:
    """Whether the new text does not contain the old one, ignoring white space and the final full stop."""
    try:
        old = " ".join(read_note(path, data).body.split()).rstrip(".")
    except NotTextError:
        return True
    return old not in " ".join(content.split())
