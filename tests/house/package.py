"""What the package is made of: its modules, and who imports whom."""

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
    found: dict[str, Path] = {}
    for file in sorted(ROOT.rglob("*.py")):
        parts = ("co_cli", *file.relative_to(ROOT).with_suffix("").parts)
        found[".".join(part for part in parts if part != "__init__")] = file
    return found


def imports(file: Path, everywhere: bool) -> Iterator[str]:
    """The modules of co_cli that a file imports: at module level, or `everywhere`, in functions too."""
    known = modules()
    for node in _statements(ast.parse(file.read_text("utf-8")).body, everywhere):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names if alias.name.split(".")[0] == "co_cli")
        elif isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] == "co_cli":
            for alias in node.names:
                inner = f"{node.module}.{alias.name}"
                yield inner if inner in known else str(node.module)


def _statements(body: list[ast.stmt], everywhere: bool) -> Iterator[ast.stmt]:
    for node in body:
        yield node
        if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING" and not everywhere:
            continue
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and not everywhere:
            continue
        for name in ("body", "orelse", "finalbody", "handlers", "cases"):
            for child in getattr(node, name, []):
                yield from _statements([child] if isinstance(child, ast.stmt) else child.body, everywhere)
