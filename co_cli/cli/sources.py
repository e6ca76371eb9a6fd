"""`co add` and `co refresh`."""

from __future__ import annotations

import argparse
import os
import sys
from typing import TYPE_CHECKING, Any

from co_cli.cli.opening import open_knowledge_base, print_json, sync_first
from co_cli.cli.terminal import ProgressBar, count_of, printable
from co_cli.errors import InvalidInputError
from co_cli.values import ON_CONFLICT

if TYPE_CHECKING:
    from co_cli.service.importing import Imported
    from co_cli.service.web_pages import PageReceipt

Row = dict[str, Any]
"""What became of one thing, as JSON prints it."""
INDEXED = "fts5"
"""Which pages are here is for the index to say, also where searches do without it."""
TEXTS = (".md", ".markdown", ".txt")
TROUBLE = ("missing", "failed")


def add_add(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("origin", nargs="+", metavar="URL|PATH", help="web pages, files or folders")
    parser.add_argument("-t", "--tag", action="append", metavar="TAG", help="a tag for the pages (repeatable)")
    _add_on_conflict(parser, "a page that is kept already")
    parser.epilog = (
        "A page's main text is kept as an article in Markdown, with its address. Pages at\n"
        "public addresses only are fetched (the setting web_allow lists exceptions).\n"
        "Files and folders are copied into articles/, as `co article add` does.\n\n"
        "examples:\n  co add https://example.org/guide\n  co add https://example.org/a design.md notes/\n"
    )
    parser.set_defaults(run=add)


def add_refresh(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("ref", nargs="*", metavar="REF", help="articles that were web pages, or their addresses")
    parser.add_argument("--all", action="store_true", help="every page that was kept")
    _add_on_conflict(parser, "a text that was changed here")
    parser.epilog = (
        "Nothing is written for a page that did not change. A page that is gone stays,\n"
        "and is reported. A text that you changed is not overwritten unless you say so.\n\n"
        "examples:\n  co refresh --all\n  co refresh article:guide --on-conflict overwrite\n"
    )
    parser.set_defaults(run=refresh)


def _add_on_conflict(parser: argparse.ArgumentParser, what: str) -> None:
    parser.add_argument("--on-conflict", choices=ON_CONFLICT, help=f"{what}: leave it (default), replace it, or stop")


def add(options: argparse.Namespace) -> int:
    from co_cli.service.web_pages import make_fetcher  # what speaks HTTP is slow to import, and --help does without
    from co_cli.sources.fetching_url import looks_like_url

    urls = [origin for origin in options.origin if looks_like_url(origin)]
    paths = [origin for origin in options.origin if origin not in urls]
    _refuse_what_is_ignored(options, urls, paths)
    with open_knowledge_base(options) as kb:
        sync_first(kb, INDEXED)
        said = Said(options.json, "adding")
        if paths:
            bar = ProgressBar("adding")
            imported = kb.import_articles(paths, bar)
            bar.done()
            for one in imported:
                said(_row_of_file(one))
        fetcher = make_fetcher(kb.settings)
        for number, url in enumerate(urls):
            said.bar(number, len(urls))
            receipt = kb.add_page(url, options.on_conflict or "skip", tags=options.tag, fetcher=fetcher)
            said(_row_of_page(receipt), receipt.exit_code)
    return said.end("No texts there (.md, .markdown, .txt).")


def refresh(options: argparse.Namespace) -> int:
    if bool(options.ref) == options.all:
        raise InvalidInputError("name the pages to fetch again, or give --all" + (" alone" if options.all else ""))
    with open_knowledge_base(options) as kb:
        sync_first(kb, INDEXED)
        said = Said(options.json, "fetching")
        kb.refresh(
            options.ref or None,
            options.on_conflict or "skip",
            each=lambda receipt: said(_row_of_page(receipt), receipt.exit_code),
            progress=said.bar,
        )
    return said.end("No page was kept here yet: `co add URL` keeps one.")


def _refuse_what_is_ignored(options: argparse.Namespace, urls: list[str], paths: list[str]) -> None:
    if "-" in paths:
        raise InvalidInputError("standard input is for `co article add -`; this takes addresses, files and folders")
    given = [f"--{name.replace('_', '-')}" for name in ("tag", "on_conflict") if getattr(options, name)]
    if paths and given:
        raise InvalidInputError(f"{' and '.join(given)}: only for web pages; {paths[0]} is copied as it is")
    for path in paths:
        if not os.path.exists(path):  # before anything is fetched
            raise InvalidInputError(_not_there(path))


def _not_there(path: str) -> str:
    if not path.strip():
        return "an address, a file or a folder is missing: the name is empty"
    host = path.partition("/")[0]
    ending = os.path.splitext(host)[1]
    page = ending and ending.lower() not in TEXTS and not path.startswith((".", "~"))
    return f"{path}: there is no such file or folder" + (f"; a web page is https://{path}" if page else "")


class Said:
    """Tells what became of each thing as soon as it is known; for JSON, all at the end."""

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
        print(printable(f"{row['origin']}  {name}{told}"), flush=True)

    def end(self, nothing: str) -> int:
        self.bar.done()
        if self.as_json:
            print_json(self.rows)
        elif not self.rows:
            print(nothing)
        elif len(self.rows) > 10:
            counts = {row["outcome"]: 0 for row in self.rows}
            for row in self.rows:
                counts[row["outcome"]] += 1
            print(f"{count_of(len(self.rows), 'thing')}: " + ", ".join(f"{n:,} {name}" for name, n in counts.items()))
        return self.code if self.rows else 1


def _row_of_page(receipt: PageReceipt) -> Row:
    url, outcome, ref, path, title, detail, _ = receipt
    return _row(url or ref or "", outcome, ref, path, title, detail)


def _row_of_file(one: Imported) -> Row:
    if one.saved is None:
        return _row(one.origin, "skipped", detail=one.skipped)
    outcome = "skipped" if one.saved.outcome == "duplicate" else one.saved.outcome
    return _row(one.origin, outcome, one.saved.ref, one.saved.path, detail=one.saved.detail)


def _row(
    origin: str, outcome: str, ref: str | None = None, path: str | None = None, title: str = "", detail: str = ""
) -> Row:
    return {"origin": origin, "outcome": outcome, "ref": ref, "path": path, "title": title, "detail": detail}
