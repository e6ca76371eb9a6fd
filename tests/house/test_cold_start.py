"""A search of an unchanged vault imports nothing slow."""

from __future__ import annotations

import os
import re
import subprocess
import sys

import pytest

import co_cli
from tests.command import Co, Ran
from tests.folder import Vault

SLOW = frozenset("pydantic pydantic_ai mcp rich lxml onnxruntime numpy yaml httpx ollama asyncio logging".split())


def slow(modules: set[str]) -> list[str]:
    return sorted(name for name in modules if name in SLOW or name.split(".")[0] in SLOW)


def imported(ran: Ran) -> set[str]:
    return set(re.findall(r"^import time:.*\|\s*(\S+)$", ran.err, re.MULTILINE))


@pytest.mark.parametrize("backend", ["fts5", "hybrid"])
def test_a_cold_search_imports_nothing_slow(co: Co, vault: Vault, backend: str) -> None:
    vault.write("memories/oak.md", "---\ntitle: Oaks\ntags: [tree]\n---\nOaks live long.")
    vault.write("articles/park.md", "# Park\n\nThe park has oaks.")
    co("index", "sync")

    ran = co.process("search", "how old do oaks get", "--no-sync", "--backend", backend, python=("-X", "importtime"))

    assert ran.code == 0
    assert "memory:oak" in ran.out
    seen = imported(ran)
    assert "co_cli.entrance.knowledge_base" in seen
    assert slow(seen) == []


def test_with_the_encoder_saves_and_searches_by_words_load_no_model(co: Co, vault: Vault) -> None:
    vault.write("memories/oak.md", "Oaks live long.")
    encoder = {"CO_KNOWLEDGE_EMBEDDING_PROVIDER": "encoder"}
    co.process("index", "sync", env=encoder)

    saved = co.process("remember", "Elms like water.", env=encoder, python=("-X", "importtime"))
    again = co.process("remember", "Ashes like chalk.", env=encoder, python=("-X", "importtime"))
    found = co.process("search", "oaks", "--backend", "fts5", env=encoder, python=("-X", "importtime"))

    assert "memory:oak" in found.out
    assert [imported(ran) & {"onnxruntime", "numpy"} for ran in (saved, again, found)] == [set()] * 3


def test_freshness_is_checked_without_a_parser(co: Co, vault: Vault) -> None:
    note = vault.write("memories/oak.md", "Oaks live long.")
    os.utime(note, ns=(10**18, 10**18))  # a file that was just written is read again
    co("index", "sync")

    ran = co.process("search", "oaks", python=("-X", "importtime"))

    assert ran.code == 0
    assert not imported(ran) & {"co_cli.notes.frontmatter", "co_cli.index.sync", "yaml"}


def test_import_co_cli_alone_imports_nothing_slow_and_no_module_of_ours() -> None:
    code = "import sys; before = set(sys.modules); import co_cli; print(*sorted(set(sys.modules) - before))"
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)

    seen = set(ran.stdout.split())
    assert slow(seen) == []
    assert {name for name in seen if name.startswith("co_cli")} == {"co_cli"}


WITHOUT_POSTGRES = """
import importlib, pkgutil, sys
sys.modules["psycopg"] = sys.modules["psycopg_pool"] = None  # importing them fails
import co_cli
for module in pkgutil.walk_packages(co_cli.__path__, "co_cli."):
    if not module.name.startswith(("co_cli.index.postgres.", "co_cli.vault.team.")):
        importlib.import_module(module.name)
from co_cli.cli.app import main
for command in ("remember Oaks", "index sync", "search oaks", "token create --role read", "index rebuild", "doctor"):
    assert main(command.split()) == 0, command
"""


@pytest.mark.slow
@pytest.mark.usefixtures("co")
def test_everything_but_a_team_s_part_works_without_the_packages_for_postgres(vault: Vault) -> None:
    vault.write("memories/elm.md", "Elms like water.")

    ran = subprocess.run([sys.executable, "-c", WITHOUT_POSTGRES], stderr=subprocess.PIPE, text=True, check=False)

    assert ran.returncode == 0, ran.stderr


def test_every_public_name_can_be_imported() -> None:
    for name in co_cli.__all__:
        assert getattr(co_cli, name) is not None
    with pytest.raises(AttributeError, match="no attribute 'Nonsense'"):
        _ = co_cli.Nonsense
