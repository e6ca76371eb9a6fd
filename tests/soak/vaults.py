"""Vaults that may come to harm: notes whose text tells whether it is whole, and no setting of the person's."""

from __future__ import annotations

import hashlib
import random
from pathlib import Path

from co_cli.knowledge_base import KnowledgeBase
from co_cli.notes.frontmatter import read_frontmatter
from co_cli.settings import Settings, load_settings

WORDS = (
    "anchor basil cedar dune ember fjord garnet heron ivory juniper kelp linden marsh nectar onyx pebble quartz raven "
    "saffron thistle umber violet walnut yarrow zephyr acorn bramble clover dahlia eider fennel ginger hazel iris"
).split()
SEAL = "sealed:"


def settings_of(place: Path, vault: str = "vault") -> Settings:
    """A vault and a data folder inside `place`, whatever the environment and the home of the person say."""
    flags = {"vault": str(place / vault), "data_dir": str(place / "data")}
    return load_settings(flags, environ={"HOME": str(place)}, start=str(place))


def open_vault(place: Path, vault: str = "vault") -> KnowledgeBase:
    """The vault in `place`, made if it is not there."""
    (place / vault).mkdir(parents=True, exist_ok=True)
    return KnowledgeBase(settings_of(place, vault))


def sealed_text(chance: random.Random, mark: str) -> str:
    """A text that no other is like, and that shows when a part of it is lost. `mark` stands in it as a word."""
    words = " ".join(chance.choices(WORDS, k=chance.choice((8, 20, 60)))) + " " + chance.randbytes(12).hex()
    text = f"{mark} {words}."
    return f"{text}\n\n{SEAL}{_digest(text)}"


def is_whole(data: bytes) -> bool:
    """Does a note hold all of the text that was sealed?"""
    text, found, digest = _body(data).rpartition(f"\n\n{SEAL}")
    return bool(found) and digest == _digest(text)


def mark_of(data: bytes) -> str:
    """The mark of a sealed text."""
    return _body(data).split(" ", 1)[0]


def _body(data: bytes) -> str:
    text = data.decode("utf-8", "replace")
    return text[read_frontmatter(text).body :].strip()


def _digest(text: str) -> str:
    return hashlib.blake2b(text.encode(), digest_size=12).hexdigest()
