"""A search of a synced vault starts like grep: what is slow to import is not imported."""

from __future__ import annotations

import os
import re
import subprocess
import sys

import pytest

import co_cli
from tests.command import Co, Ran
from tests.vault import Vault

SLOW = frozenset(
    """
    pydantic pydantic_ai numpy rich yaml frontmatter dataclasses pathlib rapidfuzz sqlite_vec tomllib importlib.metadata
    asyncio httpx ollama onnxruntime pathspec subprocess tempfile logging
    """.split()
)


PLAIN = frozenset("__future__ _operator _struct apsw gc itertools math struct".split())
"""All that a query without options imports beside our own modules and what every Python has: each more is a choice."""
MOST_OF_OURS = 59
"""Modules: each costs a fifth of a millisecond, and all of them a Python start."""


def slow(modules: set[str]) -> list[str]:
    return sorted(name for name in modules if name in SLOW or name.split(".")[0] in SLOW)


def imported(ran: Ran) -> set[str]:
    return set(re.findall(r"^import time:.*\|\s*(\S+)$", ran.err, re.MULTILINE))


@pytest.mark.parametrize("backend", ["fts5", "hybrid"])
def test_a_cold_search_imports_nothing_slow(co: Co, vault: Vault, backend: str) -> None:
    vault.write("memories/oak.md", "---\ntitle: Oaks\ntags: [tree]\n---\nOaks live long.")
    vault.write("articles/park.md", "# Park\n\nThe park has oaks.")
    co("sync")

    ran = co.process("search", "how old do oaks get", "--no-sync", "--backend", backend, python=("-X", "importtime"))

    assert ran.code == 0
    assert "memory:oak" in ran.out
    seen = imported(ran)
    assert "co_cli.knowledge_base" in seen
    assert slow(seen) == []


def test_freshness_is_checked_without_a_parser(co: Co, vault: Vault) -> None:
    os.utime(
        vault.write("memories/oak.md", "Oaks live long."), ns=(10**18, 10**18)
    )  # long ago: nothing racy to read again
    co("sync")

    ran = co.process("search", "oaks", python=("-X", "importtime"))

    assert ran.code == 0
    assert not imported(ran) & {"co_cli.notes.note", "co_cli.notes.frontmatter", "co_cli.index.sync", "yaml"}


@pytest.mark.parametrize("query", ["oaks", "what soothes a furious purchaser"])
def test_a_query_without_options_imports_hardly_more_than_our_own_modules(co: Co, vault: Vault, query: str) -> None:
    for number in range(60):  # so many that meaning decides where words do not tell
        os.utime(vault.write(f"memories/oak-{number}.md", f"Oaks live long: {number}."), ns=(10**18, 10**18))
    co("sync")

    def modules(code: str, *arguments: str) -> set[str]:
        command = [sys.executable, "-X", "importtime", "-c", code, *arguments]
        ran = subprocess.run(command, cwd=co.folder, capture_output=True, text=True)
        assert ran.returncode in (0, 1)  # 1: nothing was found
        return imported(Ran(0, ran.stdout, ran.stderr))

    seen = modules("from co_cli.cli.app import run; run()", "search", query) - modules("pass")

    assert {name for name in seen if not name.startswith("co_cli")} <= PLAIN
    more = {"co_cli.retrieval.apart", "co_cli.index.spread"}  # where words do not tell
    assert len([name for name in seen - more if name.startswith("co_cli")]) <= MOST_OF_OURS


def test_import_co_cli_alone_imports_nothing_slow_and_no_module_of_ours() -> None:
    code = "import sys; before = set(sys.modules); import co_cli; print(*sorted(set(sys.modules) - before))"
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)

    seen = set(ran.stdout.split())
    assert slow(seen) == []
    assert {name for name in seen if name.startswith("co_cli")} == {"co_cli"}


def test_every_public_name_can_be_imported() -> None:
    for name in co_cli.__all__:
        assert getattr(co_cli, name) is not None
    with pytest.raises(AttributeError, match="no attribute 'Nonsense'"):
        _ = co_cli.Nonsense
