"""Imports run downwards only, and never in a circle."""

from __future__ import annotations

import pytest

from tests.house.package import imports, modules

FLOORS = (
    ("record", "typed", "errors", "values", "settings", "settings_file", "places", "regular", "processes", "sample"),
    ("notes", "logbook"),
    ("sources",),
    ("index", "embedding", "activity"),
    ("retrieval",),
    ("service", "knowledge_base", "exchange", "evaluation"),
    ("tools",),
    ("agent",),
    ("chat", "mcp", "mcp_server", "cli", "__main__"),
)
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
    assert upwards == []


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


def test_notes_and_retrieval_know_no_database() -> None:
    for module, file in modules().items():
        if module.startswith(("co_cli.notes", "co_cli.sources", "co_cli.retrieval")):
            assert "import apsw" not in file.read_text("utf-8"), module


def test_no_drawer_is_called_utils() -> None:
    names = {part for module in modules() for part in module.split(".")}

    assert not names & {"utils", "util", "helpers", "common", "base", "misc"}
