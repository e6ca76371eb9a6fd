"""Imports run downwards only, and never in a circle."""

from __future__ import annotations

import re

import pytest

from tests.house.package import imports, modules

FLOORS = (
    ("record", "errors", "values", "settings", "paths", "event_loop"),
    ("notes", "logbook"),
    ("sources",),
    ("index", "embedding", "activity"),
    ("retrieval",),
    ("knowledge_index",),
    ("service", "knowledge_base", "importers", "evaluation"),
    ("tools",),
    ("agent",),
    ("chat", "mcp", "cli", "__main__"),
)
DATABASE_FLOORS = ("co_cli.index.sqlite", "co_cli.activity")
"""The only modules that know a database; one package for each engine."""
SQL = re.compile(r"""["']\s*(?:select\s[^"']+\sfrom|insert into|update \w+ set|delete from|create table)\s""")
IMPORT = re.compile(r"^\s*(?:import|from) (?:apsw|sqlite3)\b", re.MULTILINE)
FOR_ITS_TYPE = "co_cli.index.verify imports co_cli.knowledge_index"
"""It compares an index that is handed to it."""
FLOOR_OF = {f"co_cli.{name}": number for number, names in enumerate(FLOORS) for name in names}


def floor_of(module: str) -> int | None:
    return FLOOR_OF.get(".".join(module.split(".")[:2]))


def test_every_module_has_a_floor() -> None:
    assert [module for module in modules() if module != "co_cli" and floor_of(module) is None] == []


@pytest.mark.parametrize("everywhere", [False, True], ids=["at module level", "also inside functions"])
def test_imports_run_downwards_only(everywhere: bool) -> None:
    upwards: list[str] = []
    for module, file in modules().items():
        if module == "co_cli":
            continue  # the front door: it names what it opens
        for imported in imports(file, everywhere):
            if imported == "co_cli":
                continue
            if (floor_of(imported) or 0) > (floor_of(module) or 0):
                upwards.append(f"{module} imports {imported}")
    assert set(upwards) <= {FOR_ITS_TYPE}


def test_no_import_goes_in_a_circle() -> None:
    graph = {module: set(imports(file, everywhere=False)) for module, file in modules().items()}
    finished: set[str] = set()

    def visit(module: str, path: tuple[str, ...]) -> None:
        assert module not in path, " imports ".join((*path[path.index(module) :], module))
        if module not in finished:
            for imported in graph.get(module, ()):
                visit(imported, (*path, module))
            finished.add(module)

    for module in graph:
        visit(module, ())


def test_only_engines_and_the_activity_log_know_a_database() -> None:
    others = {name: file.read_text("utf-8") for name, file in modules().items() if not name.startswith(DATABASE_FLOORS)}

    assert [name for name, text in others.items() if SQL.search(text)] == []
    borrowing = [name for name, text in others.items() if IMPORT.search(text)]
    assert borrowing == ["co_cli.index.tokens"], "which borrows SQLite's tokenizer"


def test_no_drawer_is_called_utils() -> None:
    names = {part for module in modules() for part in module.split(".")}

    assert not names & {"utils", "util", "helpers", "common", "base", "misc"}
