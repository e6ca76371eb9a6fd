"""An Obsidian vault, read in place: its Markdown, without what Obsidian itself is told to leave out."""

from __future__ import annotations

import json
import os
from typing import TYPE_CHECKING, cast

from co_cli.notes.note import Note, read_note
from co_cli.notes.refs import ENDINGS, without_ending
from co_cli.sources.origin import THE_VAULT, Origin

if TYPE_CHECKING:
    from co_cli.sources.walking import Exclusions

APP_SETTINGS = os.path.join(".obsidian", "app.json")


class ObsidianKind:
    """Wikilinks, aliases, tags and embeds are read as in any note; excluded folders are those of its own settings."""

    sources = ("obsidian",)
    keeps_missing = True

    def wants(self, name: str) -> bool:
        return THE_VAULT.wants(name)

    def unread(self, name: str) -> str | None:
        return None

    def largest(self, name: str, limit: int) -> int:
        return limit

    def exclusions(self, origin: Origin) -> Exclusions:
        return _ignored(origin.root), (".coignore",)

    def path(self, origin: Origin, rest: str) -> str:
        return rest if rest.lower().endswith(ENDINGS) else f"{rest}.md"

    def read(self, origin: Origin, path: str, data: bytes) -> Note:
        ref = f"{origin.label}/{without_ending(path)}"
        return read_note(path, data)._replace(source="obsidian", ref=ref)


def _ignored(root: str) -> tuple[str, ...]:
    """What Obsidian calls excluded files: folders and files from the root. Its regular expressions are not read."""
    try:
        if not os.path.isfile(os.path.join(root, APP_SETTINGS)):
            raise FileNotFoundError(APP_SETTINGS)  # also for a link to something without end
        with open(os.path.join(root, APP_SETTINGS), encoding="utf-8") as stream:
            settings: object = json.load(stream)
    except (OSError, ValueError):
        return ()  # it has none, or writes them just now: then nothing is excluded
    filters = cast("dict[str, object]", settings).get("userIgnoreFilters") if isinstance(settings, dict) else None
    if not isinstance(filters, list):
        return ()
    texts = [text for text in cast("list[object]", filters) if isinstance(text, str) and text.strip("/")]
    return tuple(f"/{_literal(text)}" for text in texts if not (text.startswith("/") and text.endswith("/")))


def _literal(path: str) -> str:
    return "".join(f"\\{letter}" if letter in "*?[]!#\\ " else letter for letter in path)
