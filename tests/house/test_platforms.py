"""Nothing that only Unix has is used where Windows gets to, and every place that asks for the platform is known."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.house.package import tree
from tests.trouble.windows.unix_only import ALARMS, ARGUMENTS, CALLS, MODULES, OTHERS, SIGNALS

ROOT = Path(__file__).parents[2]
FILES = sorted((ROOT / "co_cli").rglob("*.py"))
BRANCHES = {
    "cli/editor.py _words_of": "backslashes in $EDITOR",
    "cli/embed_later.py embed_later": "a process is detached by a flag",
    "cli/embed_later.py main": "there is no nice",
    "cli/notes.py _open": "the program that opens a file",
    "cli/terminal.py takes_codes": "a console has to be asked for colours",
    "notes/git.py _kill": "there are no groups of processes",
    "ground/priority.py lower_priority": "only Linux has a priority for each thread",
    "hooks/clients.py _applications": "each system keeps settings in a folder of its own",
    "hooks/time_limit.py": "a child process needs fork",
    "hooks/time_limit.py end_after": "there is no alarm",
    "hooks/time_limit.py run_apart": "a thread, where there is no fork",
    "hooks/time_limit.py leave_behind": "a thread, where there is no fork",
    "hooks/time_limit.py read_within": "a pipe cannot be waited for",
    "index/sqlite/connection.py Database._writers_waiting": "a file that is open cannot be swapped",
    "notes/files.py": "locks",
    "notes/files.py _copy_attributes": "owners",
    "notes/files.py _lock": "locks",
    "notes/files.py open_private": "permissions",
    "notes/files.py _remove_unheld": "a file that is open cannot be removed",
    "notes/files.py _write": "a file that is open cannot be renamed",
    "notes/files.py create_exclusively": "rename refuses a name that is taken",
    "notes/files.py locked": "a folder cannot be locked",
    "notes/files.py patiently": "a file that is open cannot be renamed or removed",
    "notes/files.py rename_with": "calls of libc",
    "notes/files.py sweep_temporary": "what ctime means",
    "notes/files.py sync_folder": "a folder cannot be opened",
    "notes/store.py NoteStore.absolute": "names of devices",
    "notes/store.py reporting": "a file that is open cannot be changed",
    "ground/paths.py _origin": "the path of a file's URL",
    "ground/paths.py _pip": "where an environment has its programs",
    "ground/paths.py _xdg": "where settings and data are",
    "ground/paths.py is_yours": "owners",
    "ground/paths.py permission_cure": "there is no chmod",
    "ground/paths.py shell_line": "quotes of shells",
    "searching/freshness.py": "how folders are watched",
    "server/metrics.py _process": "the memory in use is in /proc; Windows and macOS have no such metric",
    "server/server_log.py _is_full": "there is no poll",
    "sources/walk.py _is_junction": "links to folders",
    "sources/worker.py": "how a process ends that took too long",
    "sources/worker.py _limit": "there is no alarm",
    "sources/worker.py _start": "groups of processes",
    "sources/worker.py _watch": "there is no alarm",
    "upkeep/about.py about_program": "it is shown",
    "vault/tiers.py _identity": "when a folder was created",
}
"""Each was reviewed, and tests/trouble/test_windows.py or its own test goes through it. Add yours with what differs."""


def asks_for_platform(node: ast.AST) -> bool:
    return any(
        isinstance(one, ast.Attribute)
        and isinstance(one.value, ast.Name)
        and (one.value.id, one.attr) in {("sys", "platform"), ("os", "name"), ("platform", "system")}
        for one in ast.walk(node)
    )


def protects(node: ast.AST) -> bool:
    """Whether what is below this node runs only on some platforms, or only where a name is there."""
    if isinstance(node, ast.With):
        header: list[ast.AST] = [item.context_expr for item in node.items]
    elif isinstance(node, ast.Try):
        header = [handler.type for handler in node.handlers if handler.type]
    elif isinstance(node, ast.If | ast.IfExp | ast.While):
        header = [node.test]
    elif isinstance(node, ast.For):
        header = [node.iter]
    else:
        header = [node] if isinstance(node, ast.BoolOp) else []
    names = {one.id for part in header for one in ast.walk(part) if isinstance(one, ast.Name)}
    return bool(names & {"hasattr", "ImportError", "AttributeError"}) or any(map(asks_for_platform, header))


def leaves(node: ast.AST) -> bool:
    """`if os.name == "nt": return`: what comes after it does not run there."""
    return isinstance(node, ast.If) and protects(node) and isinstance(node.body[-1], ast.Return | ast.Raise)


def unix_only(node: ast.AST) -> str:
    """What of this node only Unix has; empty if nothing."""
    if isinstance(node, ast.Import | ast.ImportFrom):
        names = [node.module or ""] if isinstance(node, ast.ImportFrom) else [one.name for one in node.names]
        return " ".join(name for name in names if name in MODULES)
    if isinstance(node, ast.Call):
        return " ".join(word.arg for word in node.keywords if word.arg in ARGUMENTS)
    if not isinstance(node, ast.Attribute) or not isinstance(node.value, ast.Name):
        return ""
    module, name = node.value.id, node.attr
    lacks = (
        (module == "os" and name in CALLS)
        or (module == "signal" and (name in ALARMS or (name.startswith("SIG") and name not in SIGNALS)))
        or name in OTHERS.get(module, ())
    )
    return f"{module}.{name}" if lacks else ""


def unprotected(node: ast.AST, safe: bool = False, functions: bool = True) -> Iterator[str]:
    """What only Unix has, with its line. Without `functions`, only what runs when the module is imported."""
    if not functions and isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda):
        safe = True
    found = "" if safe else unix_only(node)
    if found:
        yield f"line {getattr(node, 'lineno', 0)}: {found}"
    safe = safe or protects(node)
    for _, value in ast.iter_fields(node):
        later = safe
        for child in value if isinstance(value, list) else [value]:
            if isinstance(child, ast.AST):
                yield from unprotected(child, later, functions)
                later = later or leaves(child)


def branches(node: ast.AST, inside: tuple[str, ...] = ()) -> Iterator[str]:
    """The functions that ask for the platform; empty for the module itself."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            yield from branches(child, (*inside, child.name))
        elif isinstance(child, ast.Attribute) and asks_for_platform(child):
            yield ".".join(inside)
        else:
            yield from branches(child, inside)


@pytest.mark.slow
def test_what_only_unix_has_is_used_only_where_windows_does_not_get_to() -> None:
    found = {str(file.relative_to(ROOT)): lines for file in FILES if (lines := list(unprotected(tree(file))))}
    assert found == {}


@pytest.mark.slow
def test_windows_can_import_every_test() -> None:
    found = {
        str(file.relative_to(ROOT)): lines
        for file in sorted((ROOT / "tests").rglob("*.py"))
        if file.parent.name != "windows"  # which runs on Linux, to play Windows
        and (lines := list(unprotected(tree(file), functions=False)))
    }
    assert found == {}


def test_every_place_that_asks_for_the_platform_was_reviewed() -> None:
    found = {
        f"{file.relative_to(ROOT / 'co_cli').as_posix()} {function}".strip()
        for file in FILES
        for function in branches(tree(file))
    }
    assert found == {*BRANCHES}


@pytest.mark.parametrize(
    ("source", "found"),
    [
        ("import fcntl", ["line 1: fcntl"]),
        ("from pwd import getpwnam", ["line 1: pwd"]),
        ("def f():\n    return os.geteuid()", ["line 2: os.geteuid"]),
        ("signal.signal(signal.SIGHUP, f)", ["line 1: signal.SIGHUP"]),
        ("subprocess.run(words, preexec_fn=f)", ["line 1: preexec_fn"]),
        ("os.open(path, os.O_RDONLY | os.O_DIRECTORY)", ["line 1: os.O_DIRECTORY"]),
        ("if sys.platform == 'win32':\n    f()\nos.sync()", ["line 3: os.sync"]),
        ("if sys.platform != 'win32':\n    os.sync()", []),
        ("def f():\n    if os.name == 'nt':\n        return\n    os.sync()", []),
        ("mine = os.name == 'nt' or os.getuid() == 0", []),
        ("with suppress(ImportError):\n    import resource", []),
        ("signal.signal(signal.SIGINT, f)", []),
    ],
)
def test_the_search_finds_what_has_no_guard(source: str, found: list[str]) -> None:
    assert list(unprotected(ast.parse(source))) == found
