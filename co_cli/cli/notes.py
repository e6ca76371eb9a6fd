"""`co remember`, `list`, `show`, `edit`, `forget`, `restore`."""

from __future__ import annotations

import argparse
import shlex
import sys
import time
from typing import Any

from co_cli.cli.editing import edit_note, read_bytes
from co_cli.cli.opening import (
    add_filters,
    assignments,
    filters_of,
    find_note,
    narrowed_by,
    open_knowledge_base,
    print_json,
    sync_first,
)
from co_cli.cli.terminal import Screen, age, count_of, printable
from co_cli.errors import IndexUnavailableError, InvalidInputError
from co_cli.index.links import Link
from co_cli.knowledge_base import KnowledgeBase
from co_cli.notes.note import Note, excerpt, own_tags
from co_cli.notes.refs import ENDINGS, lines_of
from co_cli.notes.wikilinks import Attachments
from co_cli.service.lookup import Trashed
from co_cli.service.saving import clean_tags
from co_cli.service.tiers import TIERS
from co_cli.values import ON_RELATED, NoteSummary, OnRelated, Saved, moment_text


def add_remember(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("text", nargs="*", help="what to remember; - or nothing reads standard input")
    parser.add_argument("--title", help="a title (else the first sentence)")
    parser.add_argument("-t", "--tag", action="append", metavar="TAG", help="a tag (repeatable)")
    parser.add_argument("--category", help="preference, fact, decision, correction, procedure, ...")
    parser.add_argument("--provenance", default="user", help="who said it: user, agent, web, import (default user)")
    parser.add_argument("--tier", choices=TIERS, help="whose vault it goes to (default: this one)")
    parser.add_argument("--importance", type=float, metavar="0-1", help="how much it matters")
    parser.add_argument("--set", action="append", metavar="KEY=VALUE", help="any other frontmatter key (repeatable)")
    parser.add_argument("--supersedes", action="append", metavar="REF", help="a note that it replaces (repeatable)")
    parser.add_argument(
        "--on-related",
        choices=ON_RELATED,
        help="similar memories: name them, do not look for them, or supersede them (default tell)",
    )
    parser.add_argument("--ask", action="store_true", help="ask whether to supersede similar memories")
    parser.epilog = (
        'examples:\n  co remember "Blue takes traffic first." --tag deploy --category decision\n'
        "  pbpaste | co remember - --title 'Release checklist'\n"
    )
    parser.set_defaults(run=remember)


def remember(options: argparse.Namespace) -> int:
    fields = assignments("--set", options.set)
    if options.importance is not None:
        if not 0 <= options.importance <= 1:
            raise InvalidInputError(f"--importance is between 0 and 1, not {options.importance:g}")
        fields["importance"] = options.importance
    content = _text(options.text)
    with open_knowledge_base(options) as kb:
        sync_first(kb)
        on_related = options.on_related or _ask(options, kb, content) or "tell"
        saved = kb.remember(
            content,
            title=options.title,
            tags=options.tag,
            category=options.category,
            provenance=options.provenance,
            fields=fields,
            tier=options.tier,
            supersedes=options.supersedes or (),
            on_related=on_related,
        )
    code = _receipt(options, saved)
    if not options.json:
        _print_related(saved, options.tier)
    return code


def _ask(options: argparse.Namespace, kb: KnowledgeBase, content: str) -> OnRelated | None:
    """What to do about similar memories; None if there are none, or nobody is to be asked."""
    if not options.ask or options.json:
        return None
    if not (sys.stdin and sys.stdin.isatty() and sys.stdout.isatty()):
        raise InvalidInputError("--ask needs a terminal: use --on-related keep or --on-related supersede instead")
    found = kb.writer.related(content, options.title)
    if not found:
        return None
    screen = Screen()
    for one in found:
        screen.wrapped(f"related: {printable(one.ref)} ({one.why}): {printable(one.title)}")
    choices: dict[str, OnRelated] = {"s": "supersede", "k": "keep"}
    while True:
        print("[s] supersede  [k] keep both: ", end="", flush=True)
        line = sys.stdin.readline()
        if not line:
            raise InvalidInputError("nothing was saved: no answer")
        if line.strip().lower()[:1] in choices:
            return choices[line.strip().lower()[:1]]


def _print_related(saved: Saved, tier: str | None) -> None:
    """Each with the command that supersedes it."""
    for one in saved.related:
        old = shlex.quote(printable(one.ref.removeprefix(f"{tier}:")))
        command = f"co edit {shlex.quote(printable(saved.ref))} --set supersedes={old}"
        print(f"related: {printable(one.ref)} ({one.why}); to supersede it: {command}")


def add_list(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "source",
        nargs="?",
        metavar="SOURCE",
        help="memory, article, or a source that `co source list` lists",
    )
    parser.add_argument("-n", "--limit", type=int, metavar="N", help="maximum number of results (default: all)")
    parser.add_argument("--no-sync", action="store_true", help="do not look for changed files first")
    parser.add_argument("--trash", action="store_true", help="list what was forgotten instead")
    add_filters(parser)
    parser.epilog = "examples:\n  co list memory --tag deploy\n  co list --since 7d --json\n  co list --trash\n"
    parser.set_defaults(run=list_notes)


def list_notes(options: argparse.Namespace) -> int:
    with open_knowledge_base(options) as kb:
        if options.trash:
            given = ("source", "tag", "category", "since", "until", "where", "any_tag")
            ignored = [
                "source" if name == "source" else f"--{name.replace('_', '-')}"
                for name in given
                if getattr(options, name)
            ]
            if ignored:
                raise InvalidInputError(f"--trash lists everything that was forgotten; leave out {', '.join(ignored)}")
            return _list_trash(options, kb.lookup.trashed()[: options.limit])
        if not options.no_sync:
            sync_first(kb)
        notes = kb.notes(
            options.source,
            limit=options.limit,
            **filters_of(options),
        )
        if not notes and not options.json:
            return _say_none(kb, options)
    if options.json:
        print_json([note._asdict() for note in notes])
        return 0 if notes else 1
    screen = Screen()
    for note in notes:
        _print_row(screen, note)
    if screen.interactive:
        screen.line(screen.paint(count_of(len(notes), "note"), "dim"))
    return 0 if notes else 1


def _say_none(kb: KnowledgeBase, options: argparse.Namespace) -> int:
    from co_cli.cli.narrowing import say_unused

    screen, filters = Screen(), narrowed_by(options)
    if filters:
        screen.line(f"No notes with {filters}.")
        say_unused(screen, kb, options.tag)
    else:
        screen.line("No notes here: `co source list` lists what else is searched." if kb.index.linked else "No notes.")
    return 1


def add_show(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("ref", nargs="+", help="a ref such as memory:slug or article:slug#L10-24; a path will do")
    parser.add_argument("--raw", action="store_true", help="the file as it is, frontmatter included")
    parser.epilog = "examples:\n  co show memory:blue-pool-first\n  co show article:runbooks/deploy#L10-24\n"
    parser.set_defaults(run=show)


def show(options: argparse.Namespace) -> int:
    with open_knowledge_base(options) as kb:
        notes = [(ref, find_note(kb, ref, track=True)) for ref in options.ref]
        if options.json:
            shown = [
                {
                    **note._asdict(),
                    "body": "\n".join(excerpt(ref, note)) if lines_of(ref) else note.body,
                    "path": kb.file_of(ref),
                    "created": moment_text(note.created) if note.created is not None else None,
                    "updated": moment_text(note.updated) if note.updated is not None else None,
                    "outdated": kb.outdated(note),
                    **_links(kb, ref, note),
                }
                for ref, note in notes
            ]
            print_json(shown[0] if len(shown) == 1 else shown)
            return 0
        screen = Screen()
        for number, (ref, note) in enumerate(notes):
            if number:
                screen.line()
            if options.raw:
                sys.stdout.flush()
                sys.stdout.buffer.write(read_bytes(kb.file_of(ref)))
                continue
            screen.titled(note.title, note.ref)
            about = [" ".join(f"#{printable(tag)}" for tag in note.tags), printable(note.category or "")]
            screen.line(screen.paint(" · ".join(part for part in (*about, printable(kb.file_of(ref))) if part), "dim"))
            for remark in (kb.outdated(note), note.problem):
                if remark:
                    screen.wrapped(f"note: {remark}", style="yellow")
            screen.line()
            for line in excerpt(ref, note):
                screen.line(printable(line))
            for name, refs in _links(kb, ref, note).items():
                told = ", ".join(
                    one["ref"] or f"{one['target']}{'' if one['there'] else ' (not there)'}" for one in refs
                )
                if told:
                    screen.line()
                    screen.wrapped(f"{name.replace('_', ' ')}: {told}", style="dim")
    return 0


def _links(kb: KnowledgeBase, ref: str, note: Note) -> dict[str, list[dict[str, Any]]]:
    """What it links to, as its file says now, and what links here; without an index nobody knows that."""
    try:
        links, backlinks = kb.links(ref, note.links)
    except IndexUnavailableError:
        links, backlinks = [Link(target, None) for target in note.links], []
    file = kb.file_of(ref)
    files = Attachments(file[: len(file) - len(note.path)])

    def there(target: str) -> bool:
        """A file that the index does not know yet."""
        return any(files.has(target.partition("#")[0] + ending, note.path) for ending in ("", *ENDINGS))

    return {
        "links": [
            {"ref": one.ref, "target": one.target, "there": one.ref is not None or there(one.target)} for one in links
        ],
        "linked_from": [{"ref": one.ref, "title": one.title} for one in backlinks],
    }


def add_edit(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("ref", help="which note")
    parser.add_argument("--title", help="a new title")
    parser.add_argument("-t", "--tag", action="append", metavar="TAG", help="all its tags from now on (repeatable)")
    parser.add_argument("--add-tag", action="append", metavar="TAG", help="one tag more (repeatable)")
    parser.add_argument("--drop-tag", action="append", metavar="TAG", help="one tag less (repeatable)")
    parser.add_argument("--category", help="a new category")
    parser.add_argument(
        "--set", action="append", metavar="KEY=VALUE", help="any field; KEY= takes it away (repeatable)"
    )
    parser.add_argument("--body", metavar="TEXT", help="a new text; - reads standard input")
    parser.add_argument(
        "--based-on",
        metavar="VERSION",
        help="only if the note is still of this version, as `co show --json` tells it",
    )
    parser.epilog = (
        "Without options your editor opens ($VISUAL or $EDITOR).\n"
        "With them only those lines of the file change.\n"
        "What somebody else changes meanwhile is not overwritten: you are told, and\n"
        "both texts are kept. A text that --body replaces is kept in the trash.\n\n"
        "examples:\n  co edit memory:blue-pool-first\n  co edit blue-pool-first --set importance=0.9 --add-tag deploy\n"
    )
    parser.set_defaults(run=edit)


def edit(options: argparse.Namespace) -> int:
    given = (options.title, options.tag, options.add_tag, options.drop_tag, options.category, options.set, options.body)
    with open_knowledge_base(options) as kb:
        note = find_note(kb, options.ref)
        if any(value is not None for value in given):
            tags, version = _tags_after(options, note)
            saved = kb.update(
                options.ref,
                _text([options.body]) if options.body is not None else None,
                title=options.title,
                tags=tags,
                category=options.category,
                fields=assignments("--set", options.set),
                version=version,
            )
            return _receipt(options, saved)
        return _receipt(options, edit_note(kb, note.ref, options.based_on))


def _tags_after(options: argparse.Namespace, note: Note) -> tuple[list[str] | None, str | None]:
    """The tags that a note is to have, and the version that they were read of, so that nobody else's are lost."""
    if not options.add_tag and not options.drop_tag:
        return options.tag, options.based_on
    if options.tag:
        raise InvalidInputError("--tag gives all the tags: leave out --add-tag and --drop-tag, or --tag")
    tags = own_tags(note)
    for tag in clean_tags(options.drop_tag):
        left = [one for one in tags if clean_tags([one]) != [tag]]  # a file may say `Two Words`, as we would not
        if left == tags:
            where = "stands in its text: edit that" if tag in note.tags else "is none of its tags"
            raise InvalidInputError(f"{note.ref}: {tag} {where}")
        tags = left
    return [*tags, *clean_tags(options.add_tag)], options.based_on or note.version


def add_forget(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("ref", nargs="+", help="which notes")
    parser.epilog = "The file moves to the vault's trash; `co note restore REF` brings it back.\n"
    parser.set_defaults(run=forget)


def forget(options: argparse.Namespace) -> int:
    with open_knowledge_base(options) as kb:
        refs = dict.fromkeys(find_note(kb, ref).ref for ref in options.ref)  # all are there, or none is touched
        gone = [kb.forget(ref) for ref in refs]
    if options.json:
        print_json([one._asdict() for one in gone])
    else:
        for one in gone:
            print(f"forgotten {printable(one.ref)} (it is in {printable(one.trash)})")
    return 0


def add_restore(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("ref", nargs="+", help="which forgotten notes; `co list --trash` shows them")
    parser.set_defaults(run=restore)


def restore(options: argparse.Namespace) -> int:
    with open_knowledge_base(options) as kb:
        tiers = tuple(f"{origin.tier}:" for origin in kb.index.linked if origin.tier)
        paths = dict.fromkeys(  # all are there, or none comes
            ref if ref.startswith(tiers) else kb.lookup.trashed_path(ref) for ref in options.ref
        )
        back = [kb.restore(path) for path in paths]
    if options.json:
        print_json([saved._asdict() for saved in back])
    else:
        for saved in back:
            print(f"restored {printable(saved.ref)}")
    return 0


def _text(words: list[str]) -> str:
    if words and words != ["-"]:
        return " ".join(words)
    if sys.stdin is None or sys.stdin.isatty():
        raise InvalidInputError("there is nothing to read: give the text, or pipe it in")
    return sys.stdin.buffer.read().decode("utf-8", "replace")


def _receipt(options: argparse.Namespace, saved: Saved) -> int:
    if options.json:
        print_json({**saved._asdict(), "related": [one._asdict() for one in saved.related]})
    else:
        print(printable(saved.summary))
    return 0


def _print_row(screen: Screen, note: NoteSummary) -> None:
    tags = " ".join(f"#{tag}" for tag in note.tags)
    gone = "missing at its origin" if note.missing else ""
    about = " · ".join(part for part in (age(note.created, time.time()), gone, tags) if part)
    ref = screen.paint(printable(note.ref), "cyan")
    if screen.fits(note.ref, note.title, about):
        screen.line(f"{ref}  {printable(note.title)}  {screen.paint(printable(about), 'dim')}")
    else:
        screen.line(ref)
        screen.wrapped(note.title, "  ")
        screen.wrapped(about, "  ", style="dim")


def _list_trash(options: argparse.Namespace, trashed: list[Trashed]) -> int:
    if options.json:
        print_json([one._asdict() for one in trashed])
    else:
        for one in trashed:
            print(f"{printable(one.name)}  ({printable(one.trash)})")
        if not trashed:
            print("The trash is empty.")
    return 0 if trashed else 1
