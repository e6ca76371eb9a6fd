"""`co note article add`."""

from __future__ import annotations

import argparse
import sys

from co_cli.cli.opening import open_knowledge_base, print_json, sync_first
from co_cli.cli.terminal import ProgressBar, count_of, printable
from co_cli.errors import InvalidInputError
from co_cli.importers.articles import import_articles


def add_article(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("action", choices=("add",), help="add: copy texts into the vault's articles/")
    parser.add_argument("path", nargs="+", help="files, folders, or - for standard input")
    parser.add_argument("--title", help="the title, for standard input")
    parser.add_argument("-t", "--tag", action="append", metavar="TAG", help="a tag, for standard input (repeatable)")
    parser.add_argument("--category", help="a category, for standard input")
    parser.epilog = (
        "Files are copied byte for byte; a folder keeps its subfolders.\n"
        "What is there already is not added twice.\n\n"
        "examples:\n  co note article add design.md notes/\n"
        "  curl -s example.org/a.md | co note article add - --title 'A page'\n"
    )
    parser.set_defaults(run=article)


def article(options: argparse.Namespace) -> int:
    files = [path for path in options.path if path != "-"]
    given = [f"--{name}" for name in ("title", "tag", "category") if getattr(options, name)]
    if files and given:
        raise InvalidInputError(f"{', '.join(given)} go with standard input (-); {files[0]} is copied as it is")
    with open_knowledge_base(options) as kb:
        sync_first(kb)
        bar = ProgressBar("adding")
        imported = [(one.origin, one.saved, one.skipped) for one in import_articles(kb, files, bar)]
        bar.done()
        if "-" in options.path:
            if sys.stdin is None or sys.stdin.isatty():
                raise InvalidInputError("there is nothing to read: pipe the text in")
            text = sys.stdin.buffer.read().decode("utf-8", "replace")
            saved = kb.remember(text, options.title, options.tag, options.category, "import", source="article")
            imported.append(("-", saved, ""))
    code = 0 if any(saved for _, saved, _ in imported) else 1
    if options.json:
        print_json([{"origin": o, "saved": s and s._asdict(), "skipped": why or None} for o, s, why in imported])
        return code
    for origin, saved, why in imported:
        outcome = saved._replace(detail="").summary if saved else f"skipped: {why}"
        print(printable(f"{origin}  {outcome}"))
    if not imported:
        print("No texts there (.md, .markdown, .txt).")
    elif len(imported) > 10:
        created = sum(saved is not None and saved.outcome == "created" for _, saved, _ in imported)
        print(f"{count_of(created, 'article')} added, {len(imported) - created:,} not")
    return code
