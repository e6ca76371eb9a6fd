"""The modules of the package, and which of them each one imports."""

from __future__ import annotations

import ast
import functools
from collections.abc import Iterator
from pathlib import Path

import co_cli

ROOT = Path(co_cli.__file__).parent
REPOSITORY = ROOT.parent


@functools.cache
def modules() -> dict[str, Path]:
    """Every module of co_cli by its dotted name."""
    names = {file: ("co_cli", *file.relative_to(ROOT).with_suffix("").parts) for file in sorted(ROOT.rglob("*.py"))}
    return {".".join(part for part in parts if part != "__init__"): file for file, parts in names.items()}


@functools.cache
def imports(module: str) -> dict[str, bool]:
    """The modules of co_cli that a module imports, and whether it does so when it is imported itself."""
    found: dict[str, bool] = {}
    for name, at_once in _imports(ast.parse(modules()[module].read_text("utf-8")).body, True):
        if name.split(".")[0] == "co_cli":
            name = name if name in modules() else name.rpartition(".")[0]
            found[name] = found.get(name, False) or at_once
    return found


def _imports(body: list[ast.stmt], at_once: bool) -> Iterator[tuple[str, bool]]:
    for node in body:
        if isinstance(node, ast.Import):
            yield from ((alias.name, at_once) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield from ((f"{node.module}.{alias.name}", at_once) for alias in node.names)
        later = isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) or (
            isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING"
        )
        for name in ("body", "orelse", "finalbody", "handlers", "cases"):
            for child in getattr(node, name, []):
                inner = [child] if isinstance(child, ast.stmt) else child.body
                yield from _imports(inner, at_once and not later)
