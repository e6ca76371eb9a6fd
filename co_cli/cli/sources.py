"""`co add` and `co source list|refresh|remove|tree`."""

from __future__ import annotations

import argparse
import os
import re
import shlex
import sys
from collections import Counter
from collections.abc import Generator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from co_cli.cli.opening import open_knowledge_base, print_json, sync_first
from co_cli.cli.terminal import ProgressBar, Screen, count_of, printable
from co_cli.errors import InvalidInputError, SettingsError
from co_cli.values import BINARY, ON_CONFLICT, masked_text

if TYPE_CHECKING:
    from co_cli.service.origins import SourceReceipt
    from co_cli.service.web_pages import Loader, PageReceipt
    from co_cli.settings import Settings

Row = dict[str, Any]
"""One result, as JSON prints it."""
INDEXED = "fts5"
"""The index knows which pages are kept, also if searches do not use it."""
SOURCE = re.compile(r"(?:folder|obsidian|skill):[^/]+")
TEXTS = (".md", ".markdown", ".txt")
TROUBLE = ("missing", "failed")
MOST_SHOWN = 10


def add_add(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("origin", nargs="+", metavar="URL|PATH", help="web pages, files or folders")
    parser.add_argument("-t", "--tag", action="append", metavar="TAG", help="a tag for the pages (repeatable)")
    parser.add_argument(
        "--as", dest="kind", choices=("folder", "obsidian", "skill"), help="the kind of a folder (default: detected)"
    )
    parser.add_argument("--name", help="its name in refs: folder:NAME/file.md")
    parser.add_argument("--prompt-addition", default="", metavar="TEXT", help="more instructions for the loading agent")
    _add_on_conflict(parser, "something that was added before")
    parser.epilog = (
        "The main text of a web page is saved as an article, with its address. Only\n"
        "public addresses are fetched (the setting web_allow lists exceptions).\n"
        "Files and folders are indexed in place: co never copies or changes them.\n"
        "`co note article add` copies files into the vault instead.\n\n"
        "examples:\n  co add https://example.org/guide\n  co add ~/handbook --name handbook\n"
        "  co add ~/Obsidian/brain report.pdf\n"
    )
    parser.set_defaults(run=add)


def add_refresh(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("ref", nargs="*", metavar="REF", help="sources, articles from web pages, or addresses")
    parser.add_argument("--all", action="store_true", help="all sources and all saved pages")
    parser.add_argument("--drop-missing", action="store_true", help="remove notes whose file is gone")
    _add_on_conflict(parser, "a text that you changed")
    parser.epilog = (
        "Only changes are written. Notes whose file or page is gone stay searchable and\n"
        "are reported. A text that you changed is not overwritten unless you say so.\n\n"
        "examples:\n  co source refresh --all\n  co source refresh folder:handbook --drop-missing\n"
        "  co source refresh article:guide --on-conflict overwrite\n"
    )
    parser.set_defaults(run=refresh)


def add_sources(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--no-sync", action="store_true", help="use the last sync; do not check the files")
    parser.epilog = "`co add` adds a source, `co source remove` removes it, and `co source tree`\nshows its files.\n"
    parser.set_defaults(run=sources)


def add_remove(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("source", nargs="+", metavar="SOURCE", help="a source such as folder:handbook, or its path")
    parser.epilog = (
        "Removes sources from the index. Their files are left alone, and `co add` adds\n"
        "them again. `co forget` removes a note of the vault.\n\n"
        "example:\n  co source remove folder:handbook\n"
    )
    parser.set_defaults(run=remove)


def add_tree(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("source", nargs="?", metavar="SOURCE", help="only this source, such as folder:handbook")
    parser.add_argument("--depth", type=int, metavar="N", help="maximum depth of folders")
    parser.add_argument("--no-sync", action="store_true", help="use the last sync; do not check the files")
    parser.epilog = "Files that are not indexed are shown with the reason.\n"
    parser.set_defaults(run=tree)


def _add_on_conflict(parser: argparse.ArgumentParser, what: str) -> None:
    parser.add_argument("--on-conflict", choices=ON_CONFLICT, help=f"{what}: leave it (default), replace it, or stop")


def add(options: argparse.Namespace) -> int:
    from co_cli.sources.web.addresses import looks_like_url

    urls = [origin for origin in options.origin if looks_like_url(origin)]
    paths = [origin for origin in options.origin if origin not in urls]
    _check_options(options, urls, paths)
    with open_knowledge_base(options) as kb:
        if urls:
            sync_first(kb, INDEXED)
        results = Results(options.json, "adding")
        on_conflict = options.on_conflict or "skip"
        for path in paths:
            receipt = kb.sources.add(path, options.kind, options.name, on_conflict, results.bar)
            results(_row_of_source(receipt))
            _print_files(results, receipt)
        if urls:
            with _loader(kb.settings, options.prompt_addition) as loader:
                pages = kb.web_pages(loader=loader)
                for number, url in enumerate(urls):
                    results.bar(number, len(urls))
                    page = pages.add(url, on_conflict, options.tag)
                    results(_row_of_page(page), page.exit_code)
    return results.end("Nothing was added.")


def refresh(options: argparse.Namespace) -> int:
    if bool(options.ref) == options.all:
        raise InvalidInputError("name what to refresh, or give --all" + (" alone" if options.all else ""))
    with open_knowledge_base(options) as kb:
        results = Results(options.json, "reading")
        origins = kb.sources.all()
        names = {name for origin in origins for name in (origin.label, origin.name)}
        given = [ref for ref in options.ref if ref in names or options.drop_missing or SOURCE.fullmatch(ref)]
        labels = [origin.label for origin in (origins if options.all else map(kb.sources.find, given))]
        refs = [ref for ref in options.ref if ref not in given]
        for label in labels:
            receipt = kb.sources.refresh(label, options.drop_missing, results.bar)
            results(_row_of_source(receipt), 3 if receipt.outcome == "missing" else 0)
            _print_files(results, receipt)
        if refs or options.all:
            sync_first(kb, INDEXED)
            with _loader(kb.settings) as loader:
                pages = kb.web_pages(loader=loader)
                paths = pages.paths(refs or None)
                for number, path in enumerate(paths):
                    results.bar(number, len(paths))
                    page = pages.refresh(path, options.on_conflict or "skip")
                    results(_row_of_page(page), page.exit_code)
    return results.end("Nothing was added here yet: `co add` adds web pages, files and folders.")


def remove(options: argparse.Namespace) -> int:
    with open_knowledge_base(options) as kb:
        labels = list(dict.fromkeys(kb.sources.find(name).label for name in options.source))
        results = Results(options.json, "removing")
        for label in labels:
            results(_row_of_source(kb.sources.remove(label)))
    return results.end("Nothing was removed.")


def sources(options: argparse.Namespace) -> int:
    with open_knowledge_base(options) as kb:
        if not options.no_sync:
            sync_first(kb, INDEXED)
        states = [*kb.sources.states(), *kb.skills.states()]
        orphaned = kb.sources.orphaned()
    if options.json:
        print_json([state._asdict() for state in states])
        return 0 if states else 1
    screen = Screen()
    for state in states:
        about = [count_of(state.notes, "note")]
        counted = ((state.binary, "binary"), (state.skipped, "skipped"), (state.missing, "missing"))
        about += [f"{count:,} {word}" for count, word in counted if count]
        about += [] if state.there else ["not there now"]
        screen.line(f"{screen.paint(printable(state.source), 'cyan')}  {', '.join(about)}")
        screen.line(f"  {screen.paint(printable(state.path), 'dim')}")
    if not states:
        screen.line("No notes and no sources yet: `co remember` saves a note, `co add` adds a source.")
    if orphaned:
        command = f"co index move {shlex.quote(orphaned[0])} {shlex.quote(kb.root)}"
        screen.line(printable(f"{orphaned[0]} had sources, too, and is gone: if it moved here, `{command}`"))
    return 0 if states else 1


def tree(options: argparse.Namespace) -> int:
    from co_cli.service.overview import trees

    if options.depth is not None and options.depth < 1:
        raise InvalidInputError(f"--depth is at least 1, not {options.depth}")
    with open_knowledge_base(options) as kb:
        if not options.no_sync:
            sync_first(kb, INDEXED)
        shown = trees(kb, options.source)
    if options.json:
        print_json([one._asdict() for one in shown])
        return 0 if any(one.files for one in shown) else 1
    screen = Screen()
    for number, one in enumerate(shown):
        if number:
            screen.line()
        screen.line(f"{screen.paint(printable(one.source), 'cyan')}  {screen.paint(printable(one.path), 'dim')}")
        for line in one.lines(options.depth):
            screen.line(printable(line))
    return 0 if any(one.files for one in shown) else 1


@contextmanager
def _loader(settings: Settings, prompt_addition: str = "") -> Generator[Loader | None]:
    """The loading agent of the settings; None if they name none."""
    model, servers = settings.loading_model, settings.loading_servers
    if bool(model) != bool(servers):
        given, missing = ("loading_model", "loading_servers") if model else ("loading_servers", "loading_model")
        raise SettingsError(f"{settings.origins[given]}: {given} is set but {missing} is not: set both or neither")
    if not model or not servers:
        yield None
        return
    from co_cli.agent.loading import LoadingAgent, read_servers  # imports pydantic-ai and mcp
    from co_cli.chat.models import load_model

    seconds, max_bytes = settings.loading_seconds, settings.web_max_bytes
    with LoadingAgent(load_model(model), read_servers(servers), seconds, max_bytes, prompt_addition) as loader:
        yield loader


def _check_options(options: argparse.Namespace, urls: list[str], paths: list[str]) -> None:
    if "-" in paths:
        raise InvalidInputError(
            "standard input is for `co note article add -`; this takes addresses, files and folders"
        )
    if paths and options.tag:
        raise InvalidInputError(f"--tag: only for web pages; {paths[0]} is read as it is")
    given = [f"--{name}" for name, value in (("as", options.kind), ("name", options.name)) if value]
    if urls and given:
        raise InvalidInputError(f"{' and '.join(given)}: only for files and folders, not for {urls[0]}")
    if options.name and len(paths) > 1:
        raise InvalidInputError("--name: one name is for one file or folder")
    for path in paths:
        if not os.path.exists(os.path.expanduser(path)):  # before anything is fetched
            raise InvalidInputError(_not_there(path))


def _not_there(path: str) -> str:
    if not path.strip():
        return "an address, a file or a folder is missing: the name is empty"
    host = path.partition("/")[0]
    ending = os.path.splitext(host)[1]
    page = ending and ending.lower() not in TEXTS and not path.startswith((".", "~"))
    return f"{path}: there is no such file or folder" + (f"; a web page is https://{path}" if page else "")


def _print_files(results: Results, receipt: SourceReceipt) -> None:
    """The first changed files, and the first that could not be read as text."""
    if results.as_json or receipt.report is None:
        return
    report = receipt.report
    seen = [("new", path) for path in report.added] if receipt.outcome != "created" else []
    seen += [("changed", path) for path in report.changed]
    seen += [("moved", f"{old} to {new}") for old, new in report.moved]
    seen += [("missing", path) for path in report.gone]
    seen += [("left out", path) for path in report.excluded]
    for word, item in seen[:MOST_SHOWN]:
        print(f"  {word} {printable(item)}")
    if len(seen) > MOST_SHOWN:
        print(f"  and {count_of(len(seen) - MOST_SHOWN, 'more file')}; --json lists them all")
    for path, problem in report.problems[:MOST_SHOWN]:
        print(f"  {printable(path)}: {printable(problem)} (indexed all the same)", file=sys.stderr)
    skipped = [(path, reason) for path, reason in receipt.report.skipped if reason != BINARY]
    for path, reason in skipped[:MOST_SHOWN]:
        print(f"  skipped {printable(path)}: {printable(reason)}", file=sys.stderr)
    if len(skipped) > MOST_SHOWN:
        more = count_of(len(skipped) - MOST_SHOWN, "more file")
        print(f"  and {more}; `co source tree {printable(receipt.label)}` shows them", file=sys.stderr)


class Results:
    """Prints each result as soon as it is known; JSON at the end."""

    def __init__(self, as_json: bool, verb: str) -> None:
        self.as_json, self.rows = as_json, list[Row]()
        self.code = 0
        self.bar = ProgressBar(verb)

    def __call__(self, row: Row, code: int = 0) -> None:
        self.rows.append(row)
        self.code = max(self.code, code)
        self.bar.done()
        if self.as_json:
            return
        outcome, detail = row["outcome"], row["detail"]
        if outcome in TROUBLE:
            print(printable(f"{outcome}: {detail}"), file=sys.stderr, flush=True)
            return
        name = f"{outcome} {row['ref']}" if row["ref"] else outcome
        told = f": {detail}" if detail else ""
        told += f" ({masked_text(row['masked'])})" if row.get("masked") else ""
        print(printable(f"{row['origin']}  {name}{told}"), flush=True)

    def end(self, nothing: str) -> int:
        self.bar.done()
        if self.as_json:
            print_json(self.rows)
        elif not self.rows:
            print(nothing)
        elif len(self.rows) > 10:
            counts = Counter(row["outcome"] for row in self.rows)
            print(f"{count_of(len(self.rows), 'result')}: " + ", ".join(f"{n:,} {name}" for name, n in counts.items()))
        return self.code if self.rows else 1


def _row_of_page(receipt: PageReceipt) -> Row:
    values = receipt._asdict()
    shown = {key: values[key] for key in ("outcome", "ref", "path", "title", "detail", "masked")}
    return {"origin": receipt.url or receipt.ref or "", **shown}


def _row_of_source(receipt: SourceReceipt) -> Row:
    label, path, outcome, detail, report = receipt
    row: Row = {"origin": path, "outcome": outcome, "ref": label, "path": path, "title": "", "detail": detail}
    if report is None:
        return row
    skipped = [{"path": path, "reason": reason} for path, reason in report.skipped]
    seen = {"added": report.added, "changed": report.changed, "moved": report.moved, "missing": report.gone}
    return {**row, **seen, "excluded": report.excluded, "unchanged": report.unchanged, "skipped": skipped}
