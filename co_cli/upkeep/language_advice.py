"""Recommend a model for the languages that notes are in, where the one in use does not know them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import NamedTuple

from co_cli.embedding.embedders import LOCAL_SPACES, Embedders
from co_cli.embedding.languages_weights import INSTALL, is_installed
from co_cli.embedding.multilingual import KNOWN_LANGUAGES
from co_cli.embedding.space import LANGUAGES
from co_cli.ground.hits import Filters
from co_cli.notes.language import guess_language
from co_cli.vault.vault import Vault

FEWEST, SHARE = 3, 0.2
"""How many passages, and which share of those whose language can be told, must be in languages that are not known."""
MOST_NOTES = 300
CHOOSE = "co config set knowledge_embedding_provider"


class Advice(NamedTuple):
    """What searches miss, and the commands that change it."""

    text: str
    fix: str

    @property
    def line(self) -> str:
        return f"{self.text}; by meaning, too, after `{self.fix}`"


def advise(texts: Iterable[str], embedders: Embedders) -> Advice | None:
    """What to use for the languages of these texts; None if the model in use knows them, or is a server's."""
    space = embedders.space
    if space is None or space.provider not in LOCAL_SPACES:
        return None
    counts = Counter(language for language in map(guess_language, texts) if language)
    known = KNOWN_LANGUAGES if space.provider == LANGUAGES.provider else {"en"}
    missed = Counter({language: count for language, count in counts.items() if language not in known})
    if missed.total() < max(FEWEST, SHARE * counts.total()):
        return None
    named = ", ".join(language for language, _ in missed.most_common(3))
    text = f"notes in other languages ({named}) are found by their words only"
    if missed.most_common(1)[0][0] not in KNOWN_LANGUAGES:
        return Advice(text, f"ollama pull embeddinggemma && {CHOOSE} ollama")
    steps = [] if is_installed() else [INSTALL.strip("`")]
    steps += [f"{CHOOSE} {LANGUAGES.provider}"] if embedders.chosen else []
    return Advice(text, " && ".join(steps))


def indexed_texts(vault: Vault) -> list[str]:
    """Passages of the newest notes, of linked sources, too."""
    with vault.engine.reading() as snapshot:
        notes = snapshot.list_notes(vault.index.notes.view(snapshot, Filters()).scope, MOST_NOTES)
        return [passage.body for passage in snapshot.passages(notes=[note.id for note in notes]).values()]
