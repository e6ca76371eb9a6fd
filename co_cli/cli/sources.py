"""`co add`, `co source list|refresh|remove|tree|skipped` and `co note article add`."""

from __future__ import annotations

import argparse
import os
import re
import sys
from collections import Counter
from collections.abc import Generator, Iterable, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from co_cli.agent.models import load_model
from co_cli.cli.opening import (
    INDEXED,
    add_no_sync,
    at_least_1,
    embed_added,
    open_knowledge_base,
    open_synced,
    print_json,
    print_result,
    problem_lines,
    read_stdin,
    settings_of,
    sync_first,
)
from co_cli.cli.terminal import ProgressBar, Screen, count_of, paged, print_message, printable
from co_cli.ground.errors import InvalidInputError, SettingsError
from co_cli.ground.paths import shell_line
from co_cli.ground.reports import BINARY, SyncReport
from co_cli.ground.saves import ON_CONFLICT, NoteFields, masked_text
from co_cli.ground.settings import Settings, load_settings
from co_cli.ground.values import fields_of
from co_cli.importers.articles import import_articles
from co_cli.sources.documents.formats import INSTALL_OCR, can_read_pictures, is_unread_picture
from co_cli.sources.folder import TEMPLATES
from co_cli.sources.origin import SOURCE_ADAPTERS, Origin, added_sources
from co_cli.sources.web import looks_like_url
from co_cli.upkeep.language_advice import advise, indexed_texts
from co_cli.vault.origins import Part, Tree, is_glob
from co_cli.vault.tiers import is_own_vault, tier_of, vault_for

if TYPE_CHECKING:
    from co_cli.saving.web_pages import Loader, PageReceipt  # imports lxml
    from co_cli.vault.origins import SourceReceipt

Row = dict[str, Any]
"""One result, as JSON prints it."""
SOURCE = re.compile(rf"(?:{'|'.join(SOURCE_ADAPTERS)}):[^/]+")
TROUBLE = ("missing", "failed")
MOST_SHOWN = 10


def add_add(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("origin", nargs="+", metavar="URL|PATH", help="web pages, files or folders")
    parser.add_argument("-t", "--tag", action="append", metavar="TAG", help="a tag for the pages (repeatable)")
    parser.add_argument(
        "--as", dest="source", choices=tuple(SOURCE_ADAPTERS), help="how to read a folder (default: detected)"
    )
    parser.add_argument("--name", help="its name in refs: folder:NAME/file.md")
    where = "add to this project's vault only, also a folder outside of the project"
    parser.add_argument("--project", action="store_true", help=where)
    rest = parser.add_argument_group("rules")
    rest.add_argument("--read-only", action="store_true", help="`co edit` must not change its files")
    rest.add_argument("--prompt-addition", default="", metavar="TEXT", help="more instructions for loading_model")
    _add_on_conflict(rest, "something that was added before")


def run_add(options: argparse.Namespace) -> int:
    """
    The main text of a web page is saved as an article, with its address. Only
    public addresses are fetched (the setting web_allow lists exceptions).
    Files and folders are read in place and not copied; only `co edit` changes them.
    `co note article add` copies files into the vault instead.
    From a project, a folder outside of it is added to your own vault, which is
    searched everywhere. --project adds it to the project's vault only.

    examples:
      co add https://example.org/guide
      co add ~/handbook --name handbook
      co add ~/Obsidian/brain report.pdf
    """
    urls = [origin for origin in options.origin if looks_like_url(origin)]
    paths = [origin for origin in options.origin if origin not in urls]
    _check_options(options, urls, paths)
    results = Results(options.json, "adding")
    settings = settings_of(options)
    if options.project and tier_of(settings) != "project":
        raise InvalidInputError("--project: this folder is not in a project; `co init` makes a vault here")
    places: dict[str, list[str]] = {settings.vault: []} if urls else {}
    for path in paths:
        here = options.project or _added_before(settings, path)
        places.setdefault(settings.vault if here else vault_for(settings, path), []).append(path)
    for vault, there in places.items():
        home = settings if vault == settings.vault else load_settings({"vault": vault, "data_dir": options.data_dir})
        _add_to(home, there, urls if vault == settings.vault else [], options, results)
        results.say_vault(vault, tier_of(settings) == "project")
    return results.end("Nothing was added.")


def _added_before(settings: Settings, path: str) -> bool:
    """Whether a vault has this folder or file already: it is read again there."""
    real = os.path.realpath(os.path.expanduser(path))
    known = added_sources(settings.data_dir, [os.path.realpath(settings.vault)])
    return any(entry.origin.path == real for entry in known)


def _add_to(
    settings: Settings, paths: Sequence[str], urls: Sequence[str], options: argparse.Namespace, results: Results
) -> None:
    with open_knowledge_base(options, settings=settings) as kb, results.bar:
        if urls:
            sync_first(kb, INDEXED)
        on_conflict = options.on_conflict or "skip"
        for path in paths:
            receipt = kb.sources.add(path, options.source, options.name, on_conflict, results.bar, options.read_only)
            results.add_source(receipt)
            if receipt.report:
                results.say_left_out(kb.sources.trees(receipt.label)[0], receipt.report)
        if paths:
            embed_added(kb, results.bar)
        if urls:
            with _loader(kb.settings, options.prompt_addition) as loader:
                pages = kb.web_pages(loader=loader)
                for number, url in enumerate(urls):
                    results.bar.unit = "pages"
                    results.bar(number, len(urls))
                    results.add_page(pages.add(url, on_conflict, options.tag))
        if not options.json and (advice := advise(indexed_texts(kb.vault), kb.vault.embedders)):
            print_message(advice.line)


def add_refresh(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "ref", nargs="*", metavar="REF", help="sources, files in them, saved pages, addresses, or globs"
    )
    parser.add_argument("--all", action="store_true", help="all sources and all saved pages")
    parser.add_argument("--drop-missing", action="store_true", help="remove notes whose file is gone")
    _add_on_conflict(parser, "a text that you changed")


def run_refresh(options: argparse.Namespace) -> int:
    """
    Only changes are written. A page that is gone stays searchable and is reported;
    so are the notes of a source most of whose files are gone at once, as when its
    drive is not mounted. A text that you changed is not overwritten unless you
    say so.

    examples:
      co source refresh --all
      co source refresh folder:handbook --drop-missing
      co source refresh ~/handbook/guides '*.html'
      co source refresh article:guide --on-conflict overwrite
    """
    if bool(options.ref) == options.all:
        raise InvalidInputError("name what to refresh, or give --all" + (" alone" if options.all else ""))
    results = Results(options.json, "reading")
    with open_knowledge_base(options) as kb, results.bar:
        origins: dict[Origin, list[Part]] = {origin: [] for origin in kb.sources.all()} if options.all else {}
        refs: list[str] = []
        for ref in options.ref:
            found = kb.sources.matching(ref)
            if not found and (options.drop_missing or SOURCE.fullmatch(ref)):
                kb.sources.find(ref)  # raises, with the sources that there are
            for origin, part in found.items():
                origins.setdefault(origin, []).append(part)
            refs += [] if found and not is_glob(ref) else [ref]
        for origin, parts in origins.items():
            results.add_source(kb.sources.refresh(origin.label, options.drop_missing, results.bar), parts)
        if origins:
            embed_added(kb, results.bar)
        if refs or options.all:
            sync_first(kb, INDEXED)
            with _loader(kb.settings) as loader:
                pages = kb.web_pages(loader=loader)
                paths = pages.paths(refs or None)
                if not paths and not origins and refs:
                    raise InvalidInputError(
                        f"no source or saved page is called {refs[0]!r}: `co source list` lists sources"
                    )
                for number, path in enumerate(paths):
                    results.bar.unit = "pages"
                    results.bar(number, len(paths))
                    results.add_page(pages.refresh(path, options.on_conflict or "skip"))
    return results.end("Nothing was added here yet: `co add` adds web pages, files and folders.")


def add_remove(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("source", nargs="+", metavar="SOURCE", help="a source such as folder:handbook, or its path")


def run_remove(options: argparse.Namespace) -> int:
    """
    Removes sources from the index. Their files are left alone, and `co add` adds
    them again. `co forget` removes a note of the vault.

    example:
      co source remove folder:handbook
    """
    with open_knowledge_base(options) as kb:
        labels = list(dict.fromkeys(kb.sources.find(name).label for name in options.source))
        results = Results(options.json, "removing")
        for label in labels:
            results.add_source(kb.sources.remove(label))
    return results.end("Nothing was removed.")


def add_sources(parser: argparse.ArgumentParser) -> None:
    add_no_sync(parser)


def run_sources(options: argparse.Namespace) -> int:
    """
    `co add` adds a source, `co source remove` removes it, and `co source tree`
    shows its files.
    """
    with open_synced(options, INDEXED) as kb:
        states = kb.sources.states()
        orphaned = kb.sources.orphaned()
    lines = [] if states else ["No notes and no sources yet: `co remember` saves a note, `co add` adds a source."]
    for state in states:
        counted = ((state.binary, "binary"), (state.skipped, "skipped"), (state.missing, "missing"))
        about = [count_of(state.notes, "note"), *(f"{count:,} {word}" for count, word in counted if count)]
        about += [] if state.there else ["not there now"]
        about += ["of your own vault"] if state.vault not in ("", kb.root) else []
        lines += [f"{state.source}  {', '.join(about)}", f"  {state.path}"]
    if orphaned:
        command = f"co index move {shell_line(orphaned[0])} {shell_line(kb.root)}"
        lines.append(f"{orphaned[0]} had sources, too, and is gone: if it moved here, `{command}`")
    return print_result(options, states, lines)


def add_tree(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("source", nargs="?", metavar="SOURCE", help="only this source, such as folder:handbook")
    parser.add_argument("--depth", type=at_least_1, metavar="N", help="maximum depth of folders")
    add_no_sync(parser)


def run_tree(options: argparse.Namespace) -> int:
    """
    Files that are not indexed are shown with the reason.

    example:
      co source tree folder:handbook --depth 2
    """
    with open_synced(options, INDEXED) as kb:
        shown = kb.sources.trees(options.source)
    lines = [line for tree in shown for line in ("", f"{tree.source}  {tree.path}", *tree.lines(options.depth))]
    return print_result(options, shown, lines[1:])


def add_skipped(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("source", nargs="?", metavar="SOURCE", help="only this source, such as folder:handbook")
    add_no_sync(parser)


def run_skipped(options: argparse.Namespace) -> int:
    """
    Groups the files by the reason, with what you can do about it if anything.

    example:
      co source skipped folder:handbook
    """
    with open_synced(options, INDEXED) as kb:
        rows = [
            {"source": tree.source, "path": path, "reason": reason}
            for tree in kb.sources.trees(options.source)
            for path, reason in tree.skipped().items()
        ]

    def show(screen: Screen) -> None:
        with paged():
            for reason, paths in _by_reason((f"{row['source']}/{row['path']}", row["reason"]) for row in rows).items():
                screen.wrapped(f"{reason}: {len(paths):,}")
                for path in paths:
                    screen.line(f"  {printable(path)}")
            if not rows:
                screen.line("Everything is searched.")
            pictures = sum(is_unread_picture(str(row["path"]), str(row["reason"])) for row in rows)
            if pictures:
                what = f"the text of {count_of(pictures, 'picture')} and scanned PDFs searchable"
                command = "`co index sync`" if can_read_pictures() else INSTALL_OCR
                screen.wrapped(f"{command} makes {what}")

    return print_result(options, rows, show)


def add_article(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("action", choices=("add",), help="add: copy texts into the vault's articles/")
    parser.add_argument("path", nargs="+", help="files, folders, or - for standard input")
    parser.add_argument("--title", help="the title, for standard input")
    parser.add_argument("-t", "--tag", action="append", metavar="TAG", help="a tag, for standard input (repeatable)")
    parser.add_argument("--category", help="a category, for standard input")


def run_article(options: argparse.Namespace) -> int:
    """
    Texts are copied byte for byte, and the text of web pages and documents is
    saved as Markdown. A folder keeps its subfolders. What is there already is not
    added twice.

    examples:
      co note article add design.md notes/
      curl -s example.org/a.md | co note article add - --title 'A page'
    """
    files = [path for path in options.path if path != "-"]
    given = [f"--{name}" for name in ("title", "tag", "category") if getattr(options, name)]
    if files and given:
        raise InvalidInputError(f"{', '.join(given)}: only for standard input (-); {files[0]} is copied as it is")
    with open_synced(options) as kb:
        with ProgressBar("adding") as bar:
            imported = import_articles(kb.vault, files, bar)
        if "-" in options.path:
            text = read_stdin("pipe the text in")
            about: NoteFields = {"tags": options.tag, "category": options.category}
            saved = kb.remember(text, options.title, provenance="import", source="article", **about)
            imported.append(("-", saved, ""))
    lines = [
        f"{origin}  {replace(saved, detail='').summary if saved else f'skipped: {reason}'}"
        for origin, saved, reason in imported
    ]
    if len(imported) > MOST_SHOWN:
        created = sum(saved is not None and saved.outcome == "created" for _, saved, _ in imported)
        lines.append(f"{count_of(created, 'article')} added, {len(imported) - created:,} not")
    rows = [{"origin": origin, "saved": saved, "skipped": reason or None} for origin, saved, reason in imported]
    code = 0 if any(saved for _, saved, _ in imported) else 1
    return print_result(options, rows, lines or ["No texts there (.md, .markdown, .txt, .html)."], code)


def _add_on_conflict(parser: Any, what: str) -> None:
    parser.add_argument("--on-conflict", choices=ON_CONFLICT, help=f"{what}: leave it (default), replace it, or stop")


@contextmanager
def _loader(settings: Settings, prompt_addition: str = "") -> Generator[Loader | None]:
    """The loading agent of the settings; None if they name none."""
    model, servers = settings.loading_model, settings.loading_servers
    if bool(model) != bool(servers):
        given, missing = ("loading_model", "loading_servers") if model else ("loading_servers", "loading_model")
        raise SettingsError(f"{settings.set_by[given]}: {given} is set but {missing} is not: set both or neither")
    if not model or not servers:
        yield None
        return
    from co_cli.agent.loading import LoadingAgent, read_servers  # imports pydantic-ai and mcp

    seconds, max_bytes = settings.loading_seconds, settings.web_max_bytes
    with LoadingAgent(load_model(model), read_servers(servers), seconds, max_bytes, prompt_addition) as loader:
        yield loader


def _check_options(options: argparse.Namespace, urls: list[str], paths: list[str]) -> None:
    """Before anything is fetched."""
    if "-" in paths:
        raise InvalidInputError("standard input is for `co note article add -`; this takes pages, files and folders")
    if paths and options.tag:
        raise InvalidInputError(f"--tag: only for web pages; {paths[0]} is read as it is")
    only = (("as", options.source), ("name", options.name), ("read-only", options.read_only))
    given = [f"--{name}" for name, value in only if value]
    if urls and given:
        raise InvalidInputError(f"{' and '.join(given)}: only for files and folders, not for {urls[0]}")
    if options.name and len(paths) > 1:
        raise InvalidInputError("--name: only for a single file or folder")
    for path in (path for path in paths if not os.path.exists(os.path.expanduser(path))):
        hint = "the address of a web page begins with https://"
        raise InvalidInputError(f"{path or 'an empty name'}: there is no such file or folder; {hint}")


class Results:
    """Prints each result as soon as it is known; JSON at the end."""

    def __init__(self, as_json: bool, verb: str) -> None:
        self.as_json, self.rows = as_json, list[Row]()
        self.code = 0
        self.bar = ProgressBar(verb, unit="files")

    def add_page(self, receipt: PageReceipt) -> None:
        values = fields_of(receipt)
        shown = {key: values[key] for key in ("outcome", "ref", "path", "title", "detail", "masked")}
        self._add({"origin": receipt.url or receipt.ref or "", **shown}, receipt.exit_code)

    def add_source(self, receipt: SourceReceipt, parts: Sequence[Part] = ()) -> None:
        """With what is wrong with its files, or only with those in some parts of it."""
        label, path, outcome, detail, report = receipt
        row: Row = {"origin": path, "outcome": outcome, "ref": label, "path": path, "title": "", "detail": detail}
        if report is not None:
            row |= {"added": report.added, "changed": report.changed, "moved": report.moved}
            row |= {"removed": report.gone, "missing": report.kept}
            skipped = [{"path": path, "reason": reason} for path, reason in report.skipped]
            row |= {"excluded": report.excluded, "unchanged": report.unchanged, "skipped": skipped}
            row["problems"] = [{"path": path, "problem": problem} for path, problem in report.problems]
        self._add(row, 1 if outcome == "missing" or (report is not None and report.kept) else 0)
        if report is not None and not self.as_json:
            _print_troubles(report, parts)

    def _add(self, row: Row, code: int) -> None:
        self.rows.append(row)
        self.code = max(self.code, code)
        self.bar.done()
        if self.as_json:
            return
        outcome, detail = row["outcome"], row["detail"]
        if outcome in TROUBLE:
            print_message(f"{outcome}: {detail}", sys.stderr)
            return
        text = f"{row['origin']}  {outcome}" + (f" {row['ref']}" if row["ref"] else "")
        text += f": {detail}" if detail else ""
        text += f" ({masked_text(row['masked'])})" if row.get("masked") else ""
        print_message(text)

    def say_left_out(self, tree: Tree, report: SyncReport) -> None:
        """What is excluded, such as templates, whose text is that of no note."""
        counts, read = Counter[str](), dict(report.skipped)
        for path, reason in tree.skipped().items():
            if path not in read:
                counts[reason] += _count_files(os.path.join(tree.path, path)) if reason == TEMPLATES else 1
        if counts and not self.as_json:
            text = ", ".join(f"{reason} ({count:,})" for reason, count in counts.most_common())
            print_message(f"  left out: {text}; `co source skipped {tree.source}` lists them")

    def say_vault(self, root: str, in_project: bool) -> None:
        """The vault that was added to since the last one, and where it is searched."""
        root = os.path.realpath(root)
        new = [row for row in self.rows if "vault" not in row]
        for row in new:
            row["vault"] = root
        text = f"in the vault {root}"
        if is_own_vault(root):
            text = f"in your own vault, {root}: searched from every folder and in every project"
            text += "; --project adds to this project alone" if in_project else ""
        elif in_project:
            text = f"in this project's vault, {root}: searched only here"
        if not self.as_json and any(row["outcome"] == "created" for row in new):
            print_message(text)

    def end(self, nothing: str) -> int:
        if self.as_json:
            print_json(self.rows)
        elif not self.rows:
            print(nothing)
        elif len(self.rows) > MOST_SHOWN:
            counts = Counter(row["outcome"] for row in self.rows)
            print(f"{count_of(len(self.rows), 'result')}: " + ", ".join(f"{n:,} {name}" for name, n in counts.items()))
        return self.code


def _count_files(path: str) -> int:
    return sum(len(names) for _, _, names in os.walk(path)) if path.endswith("/") else 1


def _print_troubles(report: SyncReport, parts: Sequence[Part]) -> None:
    """A line for each reason, with the file if it is one."""
    skipped = [pair for pair in report.skipped if pair[1] != BINARY and (not parts or any(p(pair[0]) for p in parts))]
    lines: list[str] = []
    for reason, paths in _by_reason(skipped).items():
        lines.append(f"skipped {f'{len(paths):,} files, such as ' if len(paths) > 1 else ''}{paths[0]}: {reason}")
    lines += problem_lines(
        [problem for problem in report.problems if not parts or any(part(problem[0]) for part in parts)]
    )
    for line in lines[:MOST_SHOWN]:
        print_message(f"  {line}", sys.stderr)
    if len(lines) > MOST_SHOWN:
        more = count_of(len(lines) - MOST_SHOWN, "more problem")
        print(f"  and {more}; `co source skipped` and `co doctor` list them", file=sys.stderr)


def _by_reason(skipped: Iterable[tuple[str, str]]) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for path, reason in skipped:
        found.setdefault(reason, []).append(path)
    return found
