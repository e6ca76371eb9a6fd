"""Checkpoints: conversations to continue from, each a note about it (`NAME.md`) beside its messages (`NAME.json`).

They are in `.checkpoints/` of the vault and not among its notes: no search and no prompt has them unless it asks for a
checkpoint. The messages are sent to a model as they were, without a fence. So they are only read from a vault that the
user trusts.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any, NamedTuple, cast

from co_cli.activity import extracted, judgements
from co_cli.ground.errors import (
    ActivityUnavailableError,
    IndexUnavailableError,
    InvalidInputError,
    KnowledgeError,
    NoteConflictError,
)
from co_cli.ground.values import moment_text
from co_cli.notes.editing import render_note
from co_cli.notes.encoding import NotTextError
from co_cli.notes.files import create_exclusively, make_folders
from co_cli.notes.note import Note
from co_cli.notes.refs import slugify, without_ending
from co_cli.notes.secrets import redact
from co_cli.notes.store import NoteStore
from co_cli.searching.requests import Options, build_request, find
from co_cli.sources.origin import CHECKPOINT, CHECKPOINTS, Origin, adapter_of
from co_cli.vault.lookup import locate_checkpoint
from co_cli.vault.tiers import vaults_for_prompts, why_untrusted
from co_cli.vault.vault import Vault

LISTS = ("keywords", "topics", "entities", "tools", "files")
LARGEST = 50_000_000
"""Bytes of messages."""
AS_THEY_ARE = ("data", "signature", "tool_call_id", "id", "provider_response_id", "provider_details", "timestamp")
"""Keys of messages whose values are no text: pictures, and what a provider compares with its own."""
MESSAGE_KINDS = ("request", "response", "binary")
"""Objects that have such keys, besides the parts of messages. In what a tool says, the same keys can hold anything."""
RATED = 0.1
"""What the ratings of a checkpoint add to its score at most, or take from it."""


class Checkpoint(NamedTuple):
    """What is known about a saved conversation."""

    ref: str
    title: str
    description: str
    created: str
    model: str
    messages: int
    keywords: tuple[str, ...]
    topics: tuple[str, ...]
    entities: tuple[str, ...]
    tools: tuple[str, ...]
    """The tools that were used, and the files that they were used on."""
    files: tuple[str, ...]
    quality: float | None
    """The share that is good of its ratings and of the feedback in its conversation; None if there is neither."""
    path: str
    score: float | None = None
    """How well it fits a query."""


class Checkpoints:
    """The checkpoints of one vault."""

    def __init__(self, vault: Vault) -> None:
        self._vault = vault
        self.origin = Origin(CHECKPOINT, os.path.join(vault.root, CHECKPOINTS))

    def save(self, title: str, body: str, messages: Sequence[Any], fields: Mapping[str, object]) -> Checkpoint:
        """Write the messages, as JSON values, and the note about them. Secrets are masked in both."""
        make_folders(self.origin.root, private=True)
        create_exclusively(
            os.path.join(self.origin.root, ".gitignore"), b"*\n"
        )  # what was said is no part of a project
        texts = json.dumps(_masked(messages), ensure_ascii=False, indent=1).encode("utf-8", "replace")
        title, fields = redact(title), {key: _masked(value) for key, value in fields.items()}
        note = render_note({"title": title, "kind": CHECKPOINT, **fields, "messages": len(messages)}, redact(body))
        slug = slugify(title)
        with self._store().lock():
            taken = {without_ending(name) for name in os.listdir(self.origin.root)}
            name = next(free for number in range(1, len(taken) + 2) if (free := _numbered(slug, number)) not in taken)
            for ending, data in ((".json", texts), (".md", note.encode("utf-8", "replace"))):
                if not create_exclusively(os.path.join(self.origin.root, f"{name}{ending}"), data):
                    raise NoteConflictError(f"{CHECKPOINTS}/{name}{ending} exists already; save it again")
        return self.get(name)

    def all(self) -> list[Checkpoint]:
        """Newest first."""
        ratings = self._ratings()
        return sorted(
            (self._about(note, ratings) for note in self._notes()),
            key=lambda checkpoint: checkpoint.created,
            reverse=True,
        )

    def latest(self) -> Note | None:
        """The newest, without how it was rated."""
        return max(self._notes(), key=lambda note: note.created or 0.0, default=None)

    def find(self, query: str, limit: int = 3) -> list[Checkpoint]:
        """Those that are about a task, the best first."""
        if not os.path.isdir(self.origin.root):
            return []
        index = self._vault.index.of(self.origin)
        index.sync(seconds=5.0)
        found = find(index, build_request(self._vault, query, Options(limit=limit)))
        known = {checkpoint.ref: checkpoint for checkpoint in self.all()}
        scored = {hit.ref.partition("#")[0]: hit.score for hit in found.hits} if found.state == "found" else {}
        ranked = [
            known[ref]._replace(score=round(score + _bonus(known[ref]), 4))
            for ref, score in scored.items()
            if ref in known
        ]
        return sorted(ranked, key=lambda checkpoint: checkpoint.score or 0.0, reverse=True)

    def get(self, name: str) -> Checkpoint:
        """One by its name or ref. Raises InvalidInputError with the names that there are."""
        return self._about(self.note(name), self._ratings())

    def note(self, name: str) -> Note:
        origin, path = locate_checkpoint(self._vault.root, name)
        return adapter_of(origin).read(origin, path, self._store().read(path))

    def messages(self, name: str) -> list[Any]:
        """The messages of a conversation. Raises InvalidInputError if the user does not trust the vault."""
        note, vault = self.note(name), self._vault
        if vault.root not in vaults_for_prompts(vault.settings, vault.root, ())[0]:
            raise InvalidInputError(f"{note.ref} is not loaded: {why_untrusted(vault.settings.data_dir, vault.root)}")
        path = f"{without_ending(note.path)}.json"
        try:
            return list(json.loads(NoteStore(self.origin.root, largest=LARGEST).read(path)))
        except (ValueError, TypeError, RecursionError) as error:
            raise InvalidInputError(f"{CHECKPOINTS}/{path} cannot be read ({error}): remove {note.ref}") from None

    def remove(self, name: str) -> list[str]:
        """Move the files of a checkpoint to the trash of their folder. Returns their paths in the vault now."""
        path = self.note(name).path
        with self._store().lock():
            files = [file for file in (path, f"{without_ending(path)}.json") if self._store().exists(file)]
            return [f"{CHECKPOINTS}/{self._store().trash(file)}" for file in files]

    def _store(self) -> NoteStore:
        return NoteStore(self.origin.root, secrets="redact")

    def _notes(self) -> list[Note]:
        found: list[Note] = []
        for name in sorted(os.listdir(self.origin.root)) if os.path.isdir(self.origin.root) else ():
            if name.endswith(".md"):
                with suppress(KnowledgeError, NotTextError):  # a folder, a link or something else that is no note
                    found.append(adapter_of(self.origin).read(self.origin, name, self._store().read(name)))
        return found

    def _ratings(self) -> dict[str, list[bool]]:
        """By ref, and what was understood as praise, or as the opposite, by the session of its conversation."""
        found: dict[str, list[bool]] = {}
        with suppress(ActivityUnavailableError, IndexUnavailableError):  # without the databases nothing is rated
            with self._vault.activity.written().reading() as connection:
                for row in judgements.read(connection, self._vault.root):
                    found.setdefault(row.ref, []).append(row.good)
                heard = extracted.facets(connection, self._vault.root, "noted")
            sessions = self._vault.index.notes.field_values("session") if heard else {}
            for facet in heard:
                session = sessions.get(facet.path, "")
                found.setdefault(session, []).append(facet.detail["feeling"] == "praise")
        return found

    def _about(self, note: Note, ratings: Mapping[str, Sequence[bool]]) -> Checkpoint:
        fields = note.metadata
        rated = [*ratings.get(note.ref, ()), *ratings.get(str(fields.get("session")), ())]
        named = [cast("list[object]", value) if isinstance(value := fields.get(key), list) else [] for key in LISTS]
        return Checkpoint(
            note.ref,
            note.title,
            note.description,
            moment_text(note.created or 0.0),
            str(fields.get("model") or ""),
            count if isinstance(count := fields.get("messages"), int) else 0,
            *(tuple(map(str, values)) for values in named),
            quality=round(sum(rated) / len(rated), 2) if rated else None,
            path=os.path.join(self.origin.root, note.path),
        )


def _bonus(checkpoint: Checkpoint) -> float:
    return 0.0 if checkpoint.quality is None else RATED * (2 * checkpoint.quality - 1)


def _numbered(slug: str, number: int) -> str:
    return slug if number == 1 else f"{slug}-{number}"


def _masked(value: Any) -> Any:
    """JSON values with the secrets in their texts masked."""
    if isinstance(value, str):
        return redact(value)
    if isinstance(value, Mapping):
        fields = cast("Mapping[str, Any]", value)
        kept = AS_THEY_ARE if "part_kind" in fields or fields.get("kind") in MESSAGE_KINDS else ()
        return {key: field if key in kept else _masked(field) for key, field in fields.items()}
    if isinstance(value, list | tuple):
        return [_masked(member) for member in value]  # pyright: ignore[reportUnknownVariableType]
    return value
