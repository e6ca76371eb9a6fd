"""Help fits a terminal, the reference names everything that exists, links lead somewhere, and the examples run."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, cast

import pytest

import co_cli
from benchmarks.__main__ import BENCHES
from co_cli.cli.parsing import COMMANDS, main_parser, make_parser, split_command
from co_cli.entrance.knowledge_base import KnowledgeBase
from co_cli.ground.settings import SETTINGS
from tests.command import Co
from tests.house.package import REPOSITORY, ROOT
from tests.importers.exports import write_peers

README = REPOSITORY / "README.md"
REFERENCE = REPOSITORY / "docs" / "reference"
PAGES = [page for page in (README, *sorted((REPOSITORY / "docs").rglob("*.md"))) if page.exists()]
BLOCK = re.compile(r"^```(\w+)[^\n]*\n(.*?)^```", re.MULTILINE | re.DOTALL)
LINK = re.compile(r"\]\(([^)\s]+)\)")
SHOWN = re.compile(r"(?:^|\| |&& | one ) *(?:[A-Z_]+=\S+ )*co ([^|<>&\n]+)", re.MULTILINE)
"""A command in a line of shell, also in a pipe or in a container."""
OPTION = re.compile(r"(?<![\w-])--[a-z][a-z-]+")
WITH_JSON = """
init | remember Blue first. | remember 'Blue first, then green.' | add handbook | source list | source tree | list
source refresh --all | search blue | note recall blue | note why blue memory:blue-first | show memory:blue-first
edit memory:blue-first --set importance=1 | note history memory:blue-first | forget memory:blue-first | list --trash
note restore memory:blue-first | note article add handbook/deploy.md | note context deploy blue first | note review
feedback give memory:blue-first good -q blue | feedback tune | feedback stats | index sync | index status | index verify
index reembed | config trust --list | doctor | skill | skill search deploy | data export --to out | data import co out
data backup | data restore | source remove folder:handbook | feedback stats --clear --yes
"""
NAMED_BY_DATA = frozenset("signals weights metadata tools notes counts rows front_ends files linked".split())
"""Keys of objects whose own keys are data."""
RUN_PAGES = """
import os, sys, traceback
failed = 0
for folder in sys.argv[1:]:
    os.environ["HOME"] = folder
    os.chdir(folder)
    for name in sorted(os.listdir(".example")):
        text = open(os.path.join(".example", name), encoding="utf-8").read()
        try:
            exec(compile(text, os.path.join(os.path.basename(folder), name), "exec"), {"__name__": "__main__"})
        except BaseException:
            failed += 1
            print(text, file=sys.stderr)
            traceback.print_exc()
sys.exit(failed)
"""

pytestmark = pytest.mark.skipif(not README.exists(), reason="an installed package has no docs")


def blocks(page: Path, language: str) -> list[str]:
    return [text for name, text in BLOCK.findall(page.read_text("utf-8")) if name == language]


def page_name(page: Path) -> str:
    return page.relative_to(REPOSITORY).as_posix()


def test_the_readme_is_short_and_begins_with_ones_own_notes() -> None:
    lines = README.read_text("utf-8").splitlines()
    headings = [line for line in lines if line.startswith("## ")]
    own = [number for number, line in enumerate(lines, 1) if re.match("pipx install|co (add|search|web)", line)]

    assert len(lines) <= 150
    assert headings[0] == "## Your own notes"
    assert len(own) == 4
    assert own[-1] <= 25
    assert headings[-1] == "## Documentation"


def test_the_reference_has_every_command_and_exactly_the_options_there_are() -> None:
    text = (REFERENCE / "commands.md").read_text("utf-8")
    parsers = [main_parser(), *map(make_parser, COMMANDS)]
    actions = [action for parser in parsers for action in parser._actions if action.help != "==SUPPRESS=="]
    options = {option for action in actions for option in action.option_strings if option.startswith("--")}

    assert [command for command in COMMANDS if not re.search(rf"\bco {command}\b", text)] == []
    assert sorted(options ^ {*OPTION.findall(text)}) == []


def test_help_fits_into_80_columns(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    parsers = [main_parser(), *map(make_parser, COMMANDS)]
    texts = [parser.format_help(everything) for parser in parsers for everything in (False, True)]

    assert [line for text in texts for line in text.splitlines() if len(line) > 80] == []


def test_the_reference_has_every_setting_and_public_name() -> None:
    settings, python = ((REFERENCE / name).read_text("utf-8") for name in ("settings.md", "python.md"))

    assert [one.name for one in SETTINGS if f"`{one.name}`" not in settings] == []
    assert [name for name in co_cli.__all__ if not re.search(rf"\b{name}\b", python)] == []


def test_the_reference_says_which_settings_a_project_may_not_set_or_raise() -> None:
    text = (REFERENCE / "settings.md").read_text("utf-8")
    refused, limited = (
        re.findall(rf"^\| not {rule} \| (.+) \|$", text, re.MULTILINE) for rule in ("set", "go above .+")
    )

    assert {*re.findall(r"`(\w+)`", *refused)} == {one.name for one in SETTINGS if not one.project_may}
    assert {*re.findall(r"`(\w+)`", *limited)} == {one.name for one in SETTINGS if one.project_most}


def test_every_benchmark_that_the_docs_name_exists() -> None:
    text = (REPOSITORY / "docs" / "benchmarks.md").read_text("utf-8")
    named = re.findall(r"(?:python -m benchmarks|`\.\.\.) (\w+)", text)

    assert ({*named} - {*BENCHES}, len({*named}) > 15) == (set(), True)


def test_the_reference_has_every_json_key(co: Co) -> None:
    text = (REFERENCE / "json.md").read_text("utf-8")
    (co.folder / "handbook").mkdir()
    (co.folder / "handbook" / "deploy.md").write_text("See [[blue-first]].\n")
    unknown: list[str] = []
    for command in WITH_JSON.replace("\n", "|").split("|"):
        if words := shlex.split(command):
            ran = co(*words, "--json")
            unknown += [f"{command}: {key}" for key in keys_of(ran.json) if not re.search(rf"\b{key}\b", text)]
    assert unknown == []


def keys_of(value: Any) -> Iterator[str]:
    if isinstance(value, dict):
        for key, inner in cast("dict[str, Any]", value).items():
            yield key
            yield from keys_of(inner) if key not in NAMED_BY_DATA or isinstance(inner, list) else ()
    elif isinstance(value, list):
        for inner in cast("list[Any]", value):
            yield from keys_of(inner)


def test_the_docs_say_that_only_co_edit_changes_a_vault_that_was_added() -> None:
    pages = {page.name: " ".join(page.read_text(encoding="utf-8").split()) for page in PAGES}

    assert [name for name, text in pages.items() if "in place" in text and "never changes it" in text] == []
    assert all("nly `co edit`" in pages[name] for name in ("tour.md", "coming-from.md", "sources.md"))


def test_every_link_leads_to_a_file_and_a_heading() -> None:
    broken: list[str] = []
    for page in (*PAGES, *(REPOSITORY / f"{name}.md" for name in ("AGENTS", "CHANGELOG", "SECURITY"))):
        for link in LINK.findall(page.read_text("utf-8")):
            path, _, anchor = link.partition("#")
            target = (page.parent / path).resolve() if path else page
            if ":" not in path and not (target.exists() and (not anchor or anchor in anchors(target))):
                broken.append(f"{page_name(page)}: {link}")
    assert broken == []


def test_what_agents_md_says_about_changes_is_there() -> None:
    """The table of changes names modules, names in these modules, and pages that exist."""
    guide = (REPOSITORY / "AGENTS.md").read_text("utf-8")
    rows = re.findall(r"^\| (an? .+?) \| (.+) \| (.+) \|$", guide.partition("## Ten changes")[2], re.MULTILINE)
    missing: list[str] = []
    for change, where, pages in rows:
        named = re.findall(r"`(@?[\w/.]+)`", where)
        places = [ROOT / name for name in named if name.endswith((".py", "/"))]
        files = [file for place in places for file in (place.rglob("*.py") if place.is_dir() else [place])]
        text = "\n".join(file.read_text("utf-8") for file in files if file.exists())
        missing += [f"{change}: {place}" for place in places if not place.exists()]
        missing += [
            f"{change}: {page}" for page in re.findall(r"`(.+?)`", pages) if not (REFERENCE.parent / page).exists()
        ]
        names = [name for name in named if not name.endswith((".py", "/")) and not name.islower()]
        missing += [f"{change}: {name}" for name in names if not re.search(rf"\b{name}\b", text)]
    assert len(rows) == 10
    assert missing == []


def anchors(page: Path) -> set[str]:
    """The anchors of a page's headings, made as GitHub makes them."""
    headings = re.findall(r"^#+ (.+)$", page.read_text("utf-8"), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


def commands_of(block: str) -> list[tuple[str, list[str]]]:
    """The `$ ` lines of a console block, each with the output shown under it."""
    found: list[tuple[str, list[str]]] = []
    for line in block.splitlines():
        if line.startswith("$ "):
            found.append((line[2:], []))
        elif found:
            found[-1][1].append(line.rstrip())
    return found


@pytest.mark.parametrize("page", [page for page in PAGES if blocks(page, "console")], ids=page_name)
def test_the_console_examples_of_a_page_run(page: Path, co: Co, monkeypatch: pytest.MonkeyPatch) -> None:
    """All that begin with `co`, in order, in one home. Shown lines must be printed, except `...`."""
    monkeypatch.delenv("CO_VAULT")
    monkeypatch.delenv("CO_KNOWLEDGE_READER")  # as after an installation
    write_peers(co.folder)
    (co.folder / "handbook").mkdir()
    (co.folder / "handbook" / "deploy.md").write_text("The blue pool takes traffic before the green one does.\n")
    for command, shown in (pair for block in blocks(page, "console") for pair in commands_of(block)):
        words = shlex.split(command, comments=True)
        if words[:1] == ["co"]:
            ran = co(*map(os.path.expanduser, words[1:]))
            assert ran.code == 0, f"{command}: {ran.err}"
            printed = [line.rstrip() for line in ran.out.splitlines()]
            for line in shown:
                if line and not line.lstrip().startswith(("...", "…")):
                    assert line in printed, f"{command} does not print {line!r} but\n{ran.out}"


def test_every_command_that_the_docs_and_the_help_show_exists_with_its_options() -> None:
    """Those that are not run: in shell blocks of the pages, and in the examples of each `--help`."""
    texts = ["".join(re.split("\nexamples?:", make_parser(name).format_help())[1:]) for name in COMMANDS]
    texts += [block for page in PAGES for block in blocks(page, "sh")]
    shown = SHOWN.findall("\n".join(texts))
    wrong: list[str] = []
    for words in shown:
        name, rest = split_command(shlex.split(re.sub(r"\s{3,}.*", "", words), comments=True))
        try:
            make_parser(name).parse_args(rest)
        except (KeyError, SystemExit):
            wrong.append(words)
    assert (wrong, len(shown) > 100) == ([], True)


@pytest.mark.slow
def test_the_python_examples_of_all_pages_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """In one process; each page has an empty folder as its home, with a vault only if the page says how to make it."""
    monkeypatch.setenv("OLLAMA_BASE_URL", "http://127.0.0.1:9/v1")  # agents are made, but never run
    monkeypatch.delenv("XDG_DATA_HOME")
    monkeypatch.delenv("XDG_CONFIG_HOME")
    folders: list[Path] = []
    for page in PAGES:
        if examples := blocks(page, "python"):
            folders.append(tmp_path / page_name(page).replace("/", "."))
            (folders[-1] / ".example").mkdir(parents=True)
            for number, text in enumerate(examples):
                (folders[-1] / ".example" / f"{number:02}.py").write_text(text, "utf-8")
            if "`co init --vault notes`" in page.read_text("utf-8"):
                (folders[-1] / "notes").mkdir()
    assert folders

    command = [sys.executable, "-c", RUN_PAGES, *map(str, folders)]
    ran = subprocess.run(command, capture_output=True, text=True, check=False, timeout=120)

    assert ran.returncode == 0, ran.stderr


def test_the_reference_of_python_names_methods_that_exist(kb: KnowledgeBase) -> None:
    """Of `kb` itself, and of its parts: `| `kb.skills` | `all()`, `search(query)` |`."""
    text = (REFERENCE / "python.md").read_text("utf-8")
    missing: list[str] = []
    for name, called, methods in re.findall(r"^\| `kb\.(\w+)(\(.*?\))?` \| (.*) \|$", text, re.MULTILINE):
        part = getattr(kb, name)() if called else getattr(kb, name)
        missing += [f"{name}.{method}" for method in re.findall(r"`(\w+)\(", methods) if not hasattr(part, method)]
    own = re.findall(r"^\| `(\w+)\([^`]*`", text.partition("### Parts")[0], re.MULTILINE)
    missing += [name for name in own if not hasattr(kb, name)]

    assert len(own) > 15
    assert missing == []
