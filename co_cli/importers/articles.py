"""Copy files into the vault as articles: texts byte for byte, web pages and documents as the text that is in them.

Except for claims that only the person can make, such as that a note belongs in every prompt (`loading`), or that it is
their own words (`provenance: user`). Those are kept under other names.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Sequence

from co_cli.ground.reports import Progress
from co_cli.ground.saves import Saved
from co_cli.importers.archive import TEXTS, Export, Member
from co_cli.importers.note_importer import claims_renamed
from co_cli.notes.editing import render_note, set_fields
from co_cli.notes.note import read_note
from co_cli.notes.refs import ref_of, slugify
from co_cli.notes.secrets import count_masked
from co_cli.notes.similarity import fingerprint
from co_cli.sources.documents import read_document
from co_cli.sources.documents.formats import TEXT, format_of
from co_cli.vault.vault import Vault

PAGES = (".html", ".htm")
Imported = tuple[str, Saved | None, str]  # the path of a file, and its receipt or why it was left out


def import_articles(vault: Vault, paths: Sequence[str], progress: Progress | None = None) -> list[Imported]:
    """Copy each file, and every text of a folder."""
    done: list[Imported] = []
    for export in [Export(path, vault.settings.knowledge_max_note_bytes) for path in paths]:
        with contextlib.closing(export):
            for member in export.members:
                if export.single or member.name.lower().endswith((*TEXTS, *PAGES)):
                    with export.reporting(member.name):
                        done.append((member.where, _copy(vault, member, export.read(member)), ""))
                if progress:
                    progress(export.done, export.size)
            base = os.path.dirname(export.path) if export.single else export.path
            done += [(os.path.join(base, failure.origin), None, failure.detail) for failure in export.receipts]
    return done


def _copy(vault: Vault, member: Member, data: bytes) -> Saved:
    folder, name = os.path.split(member.name)
    if format_of(name) is not TEXT:
        document = read_document(name, data)
        title = document.title or name
        data = render_note({"title": title, "kind": "article", "provenance": "import"}, document.text).encode()
    note = read_note(f"articles/{name}", data)
    if not note.body.strip():
        raise ValueError("the file is empty")
    if claims := claims_renamed(note.metadata):
        text = set_fields(data.decode("utf-8", "surrogateescape"), claims, note.path)
        data = text.encode("utf-8", "surrogateescape")
    folder = "/".join(["articles", *(slugify(part) for part in folder.split("/") if part)])
    with vault.store.lock(), count_masked() as masked:
        for path in filter(vault.store.exists, vault.index.notes.exact_twins("article", fingerprint(note.body))):
            ref = ref_of(path, "article")
            return Saved(ref, vault.store.absolute(path), "duplicate", f"{ref} says this already")
        vault.require_room()
        vault.store.refuse_name(member.name)
        path = vault.store.create(folder, slugify(os.path.splitext(name)[0]), data, vault.index.notes.taken)
        vault.index.index_file(None, path)
    ref = vault.index.notes.ref_of(path) or ref_of(path, "article")
    return Saved(ref, vault.store.absolute(path), "created", masked=len(masked))
