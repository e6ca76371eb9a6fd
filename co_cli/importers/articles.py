"""Copy files into the vault as articles, byte for byte.

Except for two claims that only the person can make: that a note belongs in every prompt (`loading`), and that it is
their own words (`provenance: user`). Those are kept under other names.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from typing import NamedTuple

from co_cli.errors import KnowledgeError
from co_cli.importers.archive import Export, Member
from co_cli.importers.note_importer import claims_renamed
from co_cli.knowledge_base import KnowledgeBase
from co_cli.notes.editing import set_fields
from co_cli.notes.note import NotTextError, read_note
from co_cli.notes.refs import ref_of, slugify
from co_cli.notes.secrets import count_masked
from co_cli.notes.similarity import fingerprint
from co_cli.values import Saved

TEXTS = (".md", ".markdown", ".txt", ".text")


class Imported(NamedTuple):
    """One file that was asked for: its receipt, or why it was left out."""

    origin: str
    saved: Saved | None
    skipped: str = ""


def import_articles(
    kb: KnowledgeBase, paths: Sequence[str], progress: Callable[[int, int], None] | None = None
) -> list[Imported]:
    """Copy each file, and every text of a folder."""
    done: list[Imported] = []
    for export in [Export(path, kb.settings.knowledge_max_note_bytes) for path in paths]:
        with export:
            members = [one for one in export.members if export.single or _is_text(one.name)]
            for number, member in enumerate(members, 1):
                data = export.read(member)
                if data is not None:
                    done.append(_import_one(kb, member, data))
                if progress:
                    progress(number, len(members))
            for failure in export.failures:
                origin = failure.origin if export.single else os.path.join(export.path, failure.origin)
                if export.single or _is_text(origin):
                    done.append(Imported(origin, None, failure.detail))
    return done


def _is_text(name: str) -> bool:
    return name.lower().endswith(TEXTS)


def _import_one(kb: KnowledgeBase, member: Member, data: bytes) -> Imported:
    origin, store, index = member.where, kb.store, kb.index
    try:
        note = read_note(f"articles/{member.base}", data)
        if not note.body.strip():
            return Imported(origin, None, "the file is empty")
        if claims := claims_renamed(note.metadata):
            text = set_fields(data.decode("utf-8", "surrogateescape"), claims, note.path)
            data = text.encode("utf-8", "surrogateescape")
        folder, name = os.path.split(member.name)
        folder = "/".join(["articles", *(slugify(part) for part in folder.split("/") if part)])
        with store.lock(), count_masked() as masked:
            for path in filter(store.exists, index.exact_twins("article", fingerprint(note.body))):
                ref = ref_of(path, "article")
                return Imported(origin, Saved(ref, store.absolute(path), "duplicate", f"{ref} says this already"))
            store.refuse_name(member.name)
            path = store.create(folder, slugify(os.path.splitext(name)[0]), data, index.taken)
            index.index_file(None, path)
    except (NotTextError, KnowledgeError) as error:
        return Imported(origin, None, str(error))
    ref = index.ref_of(path) or ref_of(path, "article")
    return Imported(origin, Saved(ref, store.absolute(path), "created", masked=len(masked)))
