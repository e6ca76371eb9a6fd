"""Imports point downwards only and never form a cycle, and only engines and the activity log know SQL."""

from __future__ import annotations

import ast
import functools
import re
from collections import Counter

from tests.house.package import ROOT, imports, modules, tree

LAYERS = (
    ("ground", "version"),
    ("notes", "http"),
    ("sources", "embedding"),
    ("index",),
    ("retrieval", "activity"),
    ("knowledge_index",),
    ("vault",),
    ("searching", "saving"),
    ("conversations", "upkeep", "importers", "evaluation"),
    ("entrance",),
    ("tools",),
    ("agent", "hooks"),
    ("mcp",),
    ("server",),
    ("cli",),
    ("__main__",),
)
"""From the lowest to the highest; none imports another of its own layer. AGENTS.md explains them."""
LAYER_OF = {f"co_cli.{name}": number for number, names in enumerate(LAYERS) for name in names}
DATABASES = ("co_cli.index.sqlite", "co_cli.index.postgres", "co_cli.index.tables", "co_cli.activity")
DATABASES += ("co_cli.vault.team",)
DATABASES += ("co_cli.importers.claude_mem",)  # reads the database of another program
SQL = re.compile(r"""["']\s*(?:select\s[^"']+\sfrom|insert into|update \w+ set|delete from|create table)\s""")
CLASS = re.compile(r"^class (\w+)", re.MULTILINE)
IMPORT = re.compile(r"^\s*(?:import|from) (?:apsw|sqlite3|psycopg)\b", re.MULTILINE)
LONGEST_CHAIN = 38


def room_of(module: str) -> str:
    return ".".join(module.split(".")[:2])


def test_the_layers_are_the_modules_and_packages_that_exist() -> None:
    assert {room_of(module) for module in modules()} - {"co_cli"} == set(LAYER_OF)
    assert len(LAYERS) <= 16
    assert sum(file.parent == ROOT for file in modules().values()) <= 6


def test_imports_point_downwards_only() -> None:
    upwards = {
        f"{module} imports {imported}"
        for module in modules()
        for imported in imports(module)
        if "co_cli" not in (module, imported)
        and room_of(imported) != room_of(module)
        and LAYER_OF[room_of(imported)] >= LAYER_OF[room_of(module)]
    }
    assert upwards == set()


def test_imports_form_no_cycle_and_no_long_chain() -> None:
    """Imports inside functions and those for type checkers count, too."""
    above: list[str] = []

    @functools.cache
    def height(module: str) -> int:
        assert module not in above, " imports ".join((*above[above.index(module) :], module))
        above.append(module)
        found = 1 + max(map(height, imports(module) - {"co_cli"}), default=0)
        above.pop()
        return found

    assert max(map(height, modules())) <= LONGEST_CHAIN


def test_no_two_modules_share_a_name() -> None:
    names = Counter(module.rpartition(".")[2] for module, file in modules().items() if file.name != "__init__.py")

    assert [name for name, times in names.items() if times > 1] == []


def test_only_the_engine_and_the_activity_log_know_a_database() -> None:
    others = {name: file.read_text("utf-8") for name, file in modules().items() if not name.startswith(DATABASES)}

    assert [name for name, text in others.items() if SQL.search(text)] == []
    assert [name for name, text in others.items() if IMPORT.search(text)] == [
        "co_cli.index.tokens"
    ]  # SQLite's tokenizer


def test_no_two_classes_share_a_name() -> None:
    defined = Counter(name for file in modules().values() for name in CLASS.findall(file.read_text("utf-8")))

    assert [name for name, times in defined.items() if times > 1] == []


def test_no_module_is_called_utils() -> None:
    names = {part for module in modules() for part in module.split(".")}

    assert not names & {"utils", "util", "helpers", "common", "base", "misc"}


def test_names_say_what_they_hold() -> None:
    """`one` is for what has no better name."""
    trees = [tree(file) for file in modules().values()]
    names = [getattr(node, "id", getattr(node, "arg", None)) for tree in trees for node in ast.walk(tree)]

    assert names.count("one") <= 10


def test_the_page_has_short_lines_and_stays_small() -> None:
    page = ROOT / "server/page"
    files = [file for file in page.rglob("*.*") if file.suffix in (".js", ".css") and file.parent.name != "vendor"]
    lines = [(file.name, line) for file in files for line in file.read_text("utf-8").splitlines() if line]

    assert [line for line in lines if len(line[1]) > 120] == []
    assert len(lines) <= 5_500
