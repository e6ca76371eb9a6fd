"""What the commands share: opening the vault that the options name, syncing first, filters, and printing results."""

from __future__ import annotations

import argparse
import json
import os
import re
import sys
import time
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from functools import partial
from typing import Any, TypeVar

from co_cli.cli.embed_later import embed_later
from co_cli.cli.terminal import ProgressBar, Screen, count_of, logbook, print_message, printable, reads_terminal
from co_cli.entrance.knowledge_base import KnowledgeBase
from co_cli.entrance.local import LocalKnowledgeBase, open_local
from co_cli.ground.errors import IndexUnavailableError, InvalidInputError, UnknownRefError
from co_cli.ground.reports import SyncReport
from co_cli.ground.settings import Settings, load_settings, this_process
from co_cli.ground.values import INVISIBLE, plain
from co_cli.index.filter_table import Group, options_in
from co_cli.index.indexed_notes import FEW
from co_cli.notes.files import open_private, read_json
from co_cli.notes.note import Note
from co_cli.searching.requests import close_tags, unused_tags
from co_cli.sources.origin import MARKDOWN
from co_cli.vault.vault import Opening, waits_for_pictures, waits_for_vectors

Opened = TypeVar("Opened", bound=KnowledgeBase)

INDEXED = "fts5"
"""A backend to sync for: the index must be fresh even if searches do not use it."""
USUAL_FILTERS = ("tag", "since")
"""What `--help` shows of the filters; the others are in `--help-all`, as all options in a group."""
FOREGROUND_SECONDS = 10.0
"""What takes longer goes on after `co add`."""
LAST_SEARCH = "last-search.json"
"""The refs that the last search showed, in the data folder, so that `co show 2` knows what 2 is."""


def settings_of(options: Any) -> Settings:
    return load_settings({"vault": options.vault, "data_dir": options.data_dir})


def open_anywhere(options: Any) -> KnowledgeBase:
    """Open the vault that the options name, in a folder or on a server."""
    return KnowledgeBase.connect(options.server) if options.server else open_knowledge_base(options)


def open_knowledge_base(
    options: Any, front_end: str = "cli", settings: Settings | None = None, **opening: Any
) -> LocalKnowledgeBase:
    """Open the vault that the options name, in a folder. Front ends other than commands are long-lived.

    `opening` are fields of Opening.
    """
    brief = front_end == "cli"
    opened_by = Opening(front_end, brief, on_set_aside=_warn if brief else None, **opening)  # servers log it
    kb = open_local(settings=settings or settings_of(options), opening=opened_by)
    this_process.chatty = this_process.verbose or kb.settings.log_level in ("info", "debug")
    log_info("vault %s, index %s", kb.root, kb.engine.path)
    return kb


def _warn(text: str) -> None:
    """Warn on stderr. With --verbose the log is printed there anyway."""
    if not this_process.verbose:
        print(f"co: {printable(text)}", file=sys.stderr)


def open_synced(options: Any, backend: str | None = None) -> LocalKnowledgeBase:
    """The same, after a sync, unless there is --no-sync."""
    return _synced(open_knowledge_base(options), options, backend)


def open_anywhere_synced(options: Any, backend: str | None = None) -> KnowledgeBase:
    return _synced(open_anywhere(options), options, backend)


def _synced(kb: Opened, options: Any, backend: str | None) -> Opened:
    try:
        if not getattr(options, "no_sync", False):
            sync_first(kb, backend)
    except BaseException:
        kb.close()
        raise
    return kb


def log_info(text: str, *values: object) -> None:
    """For co.log and `--verbose`. Never log what was asked or written."""
    if this_process.chatty:
        logbook().logger("cli").info(text, *values)


def sync_first(kb: KnowledgeBase, backend: str | None = None) -> SyncReport | None:
    """Sync, so that a file saved a second ago is found. Without a usable index the files are searched themselves."""
    if (backend or kb.settings.knowledge_search_backend) == "grep":
        return None
    try:
        with ProgressBar("indexing", unit="files") as bar:
            report = kb.sync(bar, seconds=0)
    except IndexUnavailableError as error:
        # a search that follows gets the same error, searches the files and says so
        if not kb.server and kb.local.index.notes.works():
            _warn(f"the index lacks the latest changes of your files: {error}")
        return None
    if not kb.server:
        embed_soon(kb.local)
    log_info("synced: %d files changed, %d unchanged", report.touched, report.unchanged)
    if report.kept:
        print(f"co: {kept_text(len(report.kept))}", file=sys.stderr)
    new = {*report.added, *report.changed}
    found = [f"{path}: {problem} (indexed anyway)" for path, problem in report.problems if path in new]
    if found:
        others = f"; and {len(found) - 1:,} more, which `co index status` lists" if len(found) > 1 else ""
        print(f"co: {printable(found[0])}{others}", file=sys.stderr)
    return report


def embed_soon(kb: LocalKnowledgeBase) -> None:
    """Make the vectors that wait after the answer; those of a few passages can wait for the next search."""
    if waits_for_vectors(kb.vault, FEW) or waits_for_pictures(kb.vault):
        this_process.afterwards = partial(embed_later, kb.settings)


def embed_now(kb: LocalKnowledgeBase, bar: ProgressBar) -> None:
    """Make all vectors that wait. The user may stop that: it is not what was asked for."""
    try:
        with bar:
            kb.embed(progress=bar)
    except KeyboardInterrupt:
        later = "the next command goes on in the background, `co index sync` here"
        print_message(f"co: stopped while {kb.waiting()} waited for vectors: searches work; {later}", sys.stderr)


def embed_added(kb: LocalKnowledgeBase, bar: ProgressBar) -> None:
    """Make the vectors of what was added: a few now, many in the background, after a line that says so."""
    waiting = kb.waiting()
    if waits_for_pictures(kb.vault):
        print_message("co: the text of pictures is read in the background (`co index sync` reads it now)", sys.stderr)
        embed_soon(kb)
    if waiting.seconds is None or waiting.seconds <= FOREGROUND_SECONDS:
        embed_now(kb, bar)
        return
    later = f"search by meaning gets better in the background: {waiting} (`co index sync` does it now)"
    print_message(f"co: searchable now; {later}", sys.stderr)
    embed_soon(kb)


def kept_text(count: int) -> str:
    """The warning about notes that are kept though their files are gone."""
    what = "the file of 1 note is" if count == 1 else f"the files of {count:,} notes are"
    return (
        f"{what} gone from the vault; is its drive mounted? They stay in the index, marked as missing: "
        "`co index sync --drop-missing` removes them"
    )


def problem_lines(problems: Sequence[tuple[str, str]]) -> list[str]:
    """What is wrong with notes of a source that are indexed. All but encodings is one line, with a count."""
    mistakes = [pair for pair in problems if pair[0].lower().endswith(MARKDOWN) and "UTF-" not in pair[1]]
    if len(mistakes) < 2:
        return [f"{path}: {problem} (indexed anyway)" for path, problem in problems]
    path, problem = mistakes[0]
    summed = f"{len(mistakes):,} notes have problems, such as {path}: {problem} (indexed anyway)"
    rest = [f"{path}: {problem} (indexed anyway)" for path, problem in problems if (path, problem) not in mistakes]
    return [f"{summed}; `co doctor` lists them", *rest]


def find_note(kb: KnowledgeBase, ref: str, track: bool = False) -> Note:
    """The note that a ref names, or the number of a result. If it is unknown, sync and try again: it may be new, and
    else the closest are suggested."""
    wanted = result_ref(kb, ref)
    try:
        return kb.note(wanted, track)
    except UnknownRefError:
        sync_first(kb)
    try:
        return kb.note(wanted, track)
    except UnknownRefError:
        if wanted.isdecimal() and (results := _last_results(kb)):
            shown = count_of(len(results), "result")
            raise InvalidInputError(f"no note {ref!r}, and the last search had {shown}") from None
        raise


def keep_results(kb: KnowledgeBase, refs: list[str]) -> None:
    """Keep what a search showed with numbers, for `result_ref`, and when: the query log has what was asked."""
    path = os.path.join(kb.settings.data_dir, LAST_SEARCH)
    with suppress(OSError), open(path, "w", encoding="utf-8", opener=open_private) as file:
        json.dump({"vault": kb.root, "refs": refs, "at": time.time()}, file)


def _last_results(kb: KnowledgeBase) -> list[str]:
    kept = read_json(os.path.join(kb.settings.data_dir, LAST_SEARCH))
    return kept["refs"] if kept.get("vault") == kb.root else []


def result_moment(kb: KnowledgeBase, ref: str) -> float | None:
    """When the search was over whose result this number is; None for a ref."""
    if result_ref(kb, ref) == ref:
        return None
    return read_json(os.path.join(kb.settings.data_dir, LAST_SEARCH)).get("at")


def result_ref(kb: KnowledgeBase, ref: str) -> str:
    """The ref of a result of this vault's last search, if a number was given; else the ref itself."""
    if not ref.isdecimal():
        return ref
    results = _last_results(kb)
    return next((result for number, result in enumerate(results, 1) if ref == str(number)), ref)


def add_filters(parser: argparse.ArgumentParser, group: Group = "filters") -> None:
    rest = parser.add_argument_group(group)
    for option in options_in(group).values():
        shown = parser if option.word in USUAL_FILTERS else rest
        shown.add_argument(*option.flags, dest=option.word, **ARGUMENTS[option.form], help=option.help)


def add_pairs(parser: Any, option: str, help: str) -> None:
    parser.add_argument(option, **ARGUMENTS["pairs"], help=help)


def add_limit(parser: argparse.ArgumentParser, default: int | None, help: str = "maximum number of results") -> None:
    help = f"{help} (default {default})" if default else f"{help} (default: all)"
    parser.add_argument("-n", "--limit", type=at_least_1, default=default, metavar="N", help=help)


def add_no_sync(parser: argparse.ArgumentParser) -> None:
    rest = parser.add_argument_group("the index")
    rest.add_argument("--no-sync", action="store_true", help="do not look for changed files first")


def filters_of(options: Any, group: Group = "filters") -> dict[str, Any]:
    """What `add_filters` added, as a KnowledgeBase takes it."""
    given = {name: (option.form, getattr(options, option.word)) for name, option in options_in(group).items()}
    return {name: dict(value or ()) if form == "pairs" else value for name, (form, value) in given.items()}


def at_least_1(text: str) -> int:
    """The type of an option."""
    if not text.removeprefix("-").isdecimal():
        rule = "must be a number"
    elif len(text) > 9:
        rule = "must have at most 9 digits"
    elif int(text) < 1:
        rule = "must be at least 1"
    else:
        return int(text)
    raise argparse.ArgumentTypeError(f"{rule}, not {text}")


def _pair(text: str) -> tuple[str, str]:
    key, equals, value = text.partition("=")
    if not equals or not key.strip():
        raise argparse.ArgumentTypeError(f"must be KEY=VALUE, not {text!r}")
    return key.strip(), value.strip()


ARGUMENTS: dict[str, dict[str, Any]] = {
    "texts": {"action": "append"},
    "text": {},
    "share": {"type": float, "metavar": "0-1"},
    "switch": {"action": "store_true"},
    "start": {"metavar": "WHEN"},
    "end": {"metavar": "WHEN"},
    "pairs": {"action": "append", "type": _pair, "metavar": "KEY=VALUE"},
}
"""How argparse takes a value."""


def filters_text(options: Any) -> str:
    """The filters that were given: `--tag deploy, --since 7d`."""
    found: list[str] = []
    narrowing = [option for option in options_in("filters").values() if option.requires or option.compares]
    for flag, name in (("--source", "source"), *((option.flags[-1], option.word) for option in narrowing)):
        value: list[str | tuple[str, str]] | str | bool | None = getattr(options, name, None)
        if isinstance(value, list):
            found += [f"{flag} {member if isinstance(member, str) else '='.join(member)}" for member in value]
        elif value:
            found.append(flag if value is True else f"{flag} {value}")
    return ", ".join(found)


def show_unused_tags(screen: Screen, kb: KnowledgeBase, tags: list[str] | None) -> None:
    """A line for each tag of a filter that no note has."""
    known = list(kb.tags()) if tags else []
    for tag in unused_tags(tags, known):
        close = ", ".join(close_tags(tag, known))
        hint = f"did you mean {close}?" if close else "`co note tags` lists all tags"
        screen.wrapped(f"No note has the tag {tag}: {hint}", style="yellow")


def read_stdin(hint: str) -> str:
    """Standard input as text, unless it is a terminal."""
    if sys.stdin is None or sys.stdin.isatty():  # pyright: ignore[reportUnnecessaryComparison]
        raise InvalidInputError(f"nothing was given: {hint}")
    try:
        return sys.stdin.buffer.read().decode("utf-8-sig")
    except UnicodeDecodeError:
        raise InvalidInputError("stdin is not valid UTF-8: convert it, as with `iconv -f latin1 -t utf-8`") from None


def confirm(options: argparse.Namespace, question: str, flag: str = "--clear") -> bool:
    """Ask before an option deletes something, unless there is --yes."""
    if options.yes:
        return True
    if not reads_terminal():
        raise InvalidInputError(f"{flag} asks before it deletes, and there is no terminal: add --yes")
    print(f"{question} [y/N] ", end="", flush=True)
    yes = sys.stdin.readline().strip().lower() in ("y", "yes")
    if not yes:
        print("nothing was deleted")
    return yes


def print_result(options: Any, value: Any, shown: Iterable[str] | Callable[[Screen], None] = (), code: int = 0) -> int:
    """Print a result as JSON if the options say so, else these lines, or what the function shows. Returns `code`."""
    if options.json:
        print_json(value)
    elif callable(shown):
        shown(Screen())
    else:
        for line in shown:
            print_message(line)
    return code


def print_json(value: Any) -> None:
    print(json_text(value, indent=2))


def json_text(value: Any, indent: int | None = None) -> str:
    """JSON in which NamedTuples are objects and no character controls a terminal."""
    unicode = (sys.stdout.encoding or "").lower().replace("-", "") == "utf8"
    text = json.dumps(plain(value), ensure_ascii=not unicode, indent=indent, default=list)
    if not text.isascii():  # JSON itself escapes only some of what cannot be seen
        text = re.sub(INVISIBLE, lambda found: json.dumps(found[0])[1:-1], text)
    return text
