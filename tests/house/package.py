"""The modules of the package, and which of them each one imports."""

from __future__ import annotations

import ast
import functools
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
def tree(file: Path) -> ast.Module:
    """A parsed file: a worker's tests read the same hundreds of them."""
    return ast.parse(file.read_text("utf-8"))


@functools.cache
def imports(module: str) -> set[str]:
    """The modules of co_cli that a module imports: at once, in a function, or only for type checkers."""
    found: set[str] = set()
    for node in ast.walk(tree(modules()[module])):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            found |= {f"{node.module}.{alias.name}" for alias in node.names}
    ours = {name for name in found if name.split(".")[0] == "co_cli"}
    return {name if name in modules() else name.rpartition(".")[0] for name in ours}
