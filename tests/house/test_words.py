"""One word for one thing, in names, too: where names may have words that are easily used for something else."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from typing import NamedTuple

import pytest

from tests.house.package import ROOT


class Word(NamedTuple):
    """A word with one meaning, and the modules whose names may have it: beginnings of their paths."""

    word: str
    meaning: str
    modules: tuple[str, ...]


WORDS = (
    Word(
        "reader",
        "the model that reads the first hits",
        (
            *("cli/search.py", "embedding/", "ground/settings.py", "retrieval/request.py", "retrieval/rerank.py"),
            *("server/health_api.py", "server/metrics.py", "vault/vault.py"),
        ),
    ),
    Word(
        "context",
        "the notes that are added to an agent's prompt",
        (
            *("agent/capability.py", "cli/agent_context.py", "ground/settings.py", "mcp/server.py"),
            *("searching/context.py", "server/context_api.py", "tools/context_tools.py", "tools/guidance.py"),
            *("sources/web/fetch.py", "upkeep/review_checks.py"),  # `ssl_context` is httpcore's, `context_tokens` ours
        ),
    ),
)
OF_VAULTS = {"VaultAuthority", "is_vault"}
"""What `index/` knows about vaults. All else there is about origins: the vault, or a folder that is linked to it."""


def names_with(word: str, folder: str = "") -> Iterator[tuple[str, str]]:
    """The paths of modules, and the names with a word that they give to classes, functions, variables and so on."""
    for file in sorted((ROOT / folder).rglob("*.py")):
        for node in ast.walk(ast.parse(file.read_text("utf-8"))):
            match node:
                case (
                    ast.ClassDef(name=name)
                    | ast.FunctionDef(name=name)
                    | ast.AsyncFunctionDef(name=name)
                    | ast.arg(arg=name)
                    | ast.Name(id=name, ctx=ast.Store())
                    | ast.Attribute(attr=name, ctx=ast.Store())
                ):
                    parts = re.findall(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])", name)
                    if word in {part.lower().removesuffix("s") for part in parts}:
                        yield file.relative_to(ROOT).as_posix(), name
                case _:
                    pass


@pytest.mark.parametrize("word", WORDS, ids=lambda word: word.word)
def test_a_word_has_one_meaning_in_names(word: Word) -> None:
    elsewhere = {(path, name) for path, name in names_with(word.word) if not path.startswith(word.modules)}

    assert elsewhere == set(), f"{word.word} means {word.meaning}"


def test_the_index_stores_origins() -> None:
    assert {name for _, name in names_with("vault", "index")} == OF_VAULTS
