"""`co remember`, `list`, `show`, `open`, `edit`, `forget` and `co note restore`."""

from __future__ import annotations

import argparse
import contextlib
import os
import subprocess
import sys
import time
from collections.abc import Callable
from typing import Any, cast

from co_cli.cli.editor import edit_note, new_text
from co_cli.cli.opening import (
    ARGUMENTS,
    add_filters,
    add_limit,
    add_no_sync,
    add_pairs,
    confirm,
    filters_of,
    filters_text,
    find_note,
    open_anywhere,
    open_anywhere_synced,
    open_knowledge_base,
    print_json,
    print_result,
    read_stdin,
    result_ref,
    show_unused_tags,
)
from co_cli.cli.terminal import Screen, age, count_of, is_title, note_url, paged, printable, read_key, reads_terminal
from co_cli.entrance.knowledge_base import KnowledgeBase
from co_cli.ground.errors import InvalidInputError, KnowledgeError
from co_cli.ground.paths import shell_line
from co_cli.ground.saves import NOTE_FIELDS, ON_RELATED, NoteField, NoteFields, OnRelated, make_change
from co_cli.ground.summaries import NoteSummary
from co_cli.ground.values import OWN_SOURCES, SOURCES, fields_of, kind_named
from co_cli.notes.editing import require_field_name
from co_cli.notes.excerpts import excerpt
from co_cli.notes.files import read_bytes
from co_cli.notes.frontmatter import read_frontmatter
from co_cli.notes.new_note import PROVENANCE, clean_tags
from co_cli.notes.note import Note, own_tags
from co_cli.notes.properties import properties_of
from co_cli.notes.refs import ENDINGS
from co_cli.sources.documents.formats import OPENED
from co_cli.vault.tiers import TIERS

SORTS: dict[str, Callable[[NoteSummary], Any]] = {
    "oldest": lambda note: note.created,
    "changed": lambda note: -os.stat(note.path).st_mtime if os.path.exists(note.path) else 0,
    "title": lambda note: note.title.casefold(),
    "ref": lambda note: note.ref,
}
"""The orders of `co list --sort`."""
USUAL_FIELDS = ("tag", "category")
"""What `--help` shows of the fields; the others are in `--help-all`."""
SHOWN_FIRST = ("url", "category", "auto_category")
"""Properties that `co show` shows next to the tags."""
NO_NOTES = "No notes yet: `co remember TEXT` saves one, and `co add DIR` makes a folder searchable."


def add_remember(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("text", nargs="*", help="what to remember (default: your editor opens, or standard input)")
    what = "what it is (default memory)"
    parser.add_argument("--kind", type=kind_named, choices=OWN_SOURCES, default="memory", help=what)
    parser.add_argument("--title", help="a title (default: the first sentence)")
    fields, others = map(parser.add_argument_group, ("fields", "other notes"))
    for field in NOTE_FIELDS.values():
        _add_field(parser, fields, field, field.help)
    who = "who said it: user, agent, web, import (default user)"
    fields.add_argument("--provenance", default="user", choices=PROVENANCE, metavar="PROVENANCE", help=who)
    parser.add_argument("--tier", choices=TIERS, help="whose vault to save it in (default: this one)")
    add_pairs(fields, "--set", "any other frontmatter key (repeatable)")
    others.add_argument("--supersedes", action="append", metavar="REF", help="a note that it replaces (repeatable)")
    similar = "similar memories: name them, do not look for them, or supersede them (default report)"
    others.add_argument("--on-related", choices=ON_RELATED, help=similar)
    others.add_argument("--ask", action="store_true", help="ask whether to supersede similar memories")


def _add_field(parser: Any, rest: Any, field: NoteField, help: str) -> None:
    """Add the option of a field to the parser if most people use it, else to the rest."""
    if field.flags:
        group = parser if field.word in USUAL_FIELDS else rest
        group.add_argument(*field.flags, dest=field.word, **ARGUMENTS[field.form], help=help)


def _named_fields(options: argparse.Namespace) -> NoteFields:
    """What `_add_field` added, as a KnowledgeBase takes it."""
    given = {name: getattr(options, field.word) for name, field in NOTE_FIELDS.items() if field.flags}
    return cast("NoteFields", given)


def run_remember(options: argparse.Namespace) -> int:
    """
    Without text your editor opens ($VISUAL or $EDITOR); - reads standard input.

    examples:
      co remember "Blue takes traffic first." --tag deploy --category decision
      pbpaste | co remember - --title 'Release checklist'
      co remember "Leads the bridge team." --kind entity --title Mara
      co remember "Explains vacuum best." --kind resource --url https://a.org/v
    """
    with (
        new_text() if not options.text and reads_terminal() else contextlib.nullcontext(_text(options.text)) as content,
        open_anywhere_synced(options) as kb,
    ):
        saved = kb.remember(
            content,
            title=options.title,
            provenance=options.provenance,
            source=options.kind,
            fields=_fields(options),
            tier=options.tier,
            supersedes=[result_ref(kb, ref) for ref in options.supersedes or ()],
            on_related=options.on_related or _ask(options, kb, content) or "report",
            **_named_fields(options),
        )
    lines = [saved.summary]
    for note in saved.related:
        old = shell_line(note.ref.removeprefix(f"{options.tier}:"))
        command = f"co edit {shell_line(saved.ref)} --set supersedes={old}"
        lines.append(f"related: {note.ref} ({note.why}); to supersede it: {command}")
    return print_result(options, saved, lines)


def _ask(options: argparse.Namespace, kb: KnowledgeBase, content: str) -> OnRelated | None:
    """Ask what to do about similar memories; None if there are none, or without --ask."""
    if not options.ask or options.json:
        return None
    if not (reads_terminal() and sys.stdout.isatty()):
        raise InvalidInputError("--ask needs a terminal: use --on-related keep or --on-related supersede instead")
    found = kb.local.writer().related(content, options.title)
    if not found:
        return None
    screen = Screen()
    for note in found:
        screen.wrapped(f"related: {note.ref} ({note.why}): {note.title}")
    key = read_key("[s] supersede  [k] keep both  [q] save nothing", "skq")
    if key == "q":
        raise InvalidInputError("nothing was saved")
    return "supersede" if key == "s" else "keep"


def add_list(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "first",
        nargs="?",
        metavar="SOURCE",
        help="memory, article, entity, or another one that `co source list` lists",
    )
    for name, help in (("--source", "the same as SOURCE (repeatable)"), ("--kind", argparse.SUPPRESS)):
        parser.add_argument(name, dest="source", action="append", metavar="SOURCE", help=help)
    add_limit(parser, None)
    add_no_sync(parser)
    parser.add_argument("--sort", choices=tuple(SORTS), help="the order (default: newest first)")
    parser.add_argument("--trash", action="store_true", help="list forgotten notes instead")
    add_filters(parser)


def run_list(options: argparse.Namespace) -> int:
    """
    examples:
      co list memory --tag deploy
      co list --since 7d --json
      co list --sort changed -n 10
      co list --trash
    """
    if options.trash:
        return _list_trash(options)
    if options.server and options.sort == "changed":
        raise InvalidInputError("--sort changed needs the files, which the server has: choose another order")
    with open_anywhere_synced(options) as kb:
        wanted = [*filter(None, [options.first]), *(options.source or ())] or SOURCES
        notes = kb.notes(wanted, limit=None if options.sort else options.limit, **filters_of(options))
        filters = filters_text(options)
        if options.sort:
            notes = sorted(notes, key=SORTS[options.sort])[: options.limit]

        def show(screen: Screen) -> None:
            if notes:
                with paged():
                    for note in notes:
                        _print_row(screen, note)
            else:
                screen.wrapped(f"No notes with {filters}." if filters else "No notes." if options.first else NO_NOTES)
                show_unused_tags(screen, kb, options.tag)

        return print_result(options, notes, show, 1 if (filters or options.first) and not notes else 0)


def _list_trash(options: argparse.Namespace) -> int:
    if filters := filters_text(options) or options.first or (options.sort and "--sort"):
        raise InvalidInputError(f"--trash lists everything that was forgotten; leave out {filters}")
    with open_anywhere(options) as kb:
        trashed = [*(lookup := kb.local.lookup()).trashed(), *lookup.dropped()][: options.limit]
    now = time.time()
    lines = [f"{note.ref}  {note.title}  {note.why} {age(note.forgotten, now)}  ({note.trash})" for note in trashed]
    if len({note.ref for note in trashed}) < len(trashed):
        lines.append("`co note restore REF` restores the first of several copies; a path in .trash/ restores that one.")
    return print_result(options, trashed, lines or ["The trash is empty."])


def _print_row(screen: Screen, note: NoteSummary) -> None:
    tags = " ".join(f"#{tag}" for tag in note.tags)
    gone = "file missing" if note.missing else note.outdated or ""
    about = " · ".join(part for part in (age(note.created, time.time()), gone, tags) if part)
    if screen.fits(note.ref, note.title, about):
        screen.entry(note.ref, f"{printable(note.title)}  {screen.paint(printable(about), 'dim')}")
    else:
        screen.line(screen.paint(printable(note.ref), "cyan"))
        screen.wrapped(note.title, "  ")
        screen.wrapped(about, "  ", style="dim")


def add_show(parser: argparse.ArgumentParser) -> None:
    which = "a ref such as memory:slug or article:slug#L10-24, a title, an alias, a path, or the number of a result"
    parser.add_argument("ref", nargs="+", help=which)
    parser.add_argument("--raw", action="store_true", help="the file as it is, frontmatter included")


def run_show(options: argparse.Namespace) -> int:
    """
    examples:
      co show memory:blue-pool-first
      co show "Blue pool first"
      co show article:runbooks/deploy#L10-24
      co show 2
    """
    with open_anywhere(options) as kb:
        notes = [(ref, find_note(kb, ref, track=True)) for ref in (result_ref(kb, asked) for asked in options.ref)]
        if options.json:
            shown = [kb.view(ref, note) for ref, note in notes]
            print_json(shown[0] if len(shown) == 1 else shown)
            return 0
        screen = Screen()
        with contextlib.nullcontext() if options.raw else paged():
            for number, (ref, note) in enumerate(notes):
                if number:
                    screen.line()
                if options.raw and screen.interactive:  # whose file it is, nobody knows: a pipe gets its bytes
                    for line in read_bytes(kb.local.file_of(ref)).decode("utf-8", "replace").splitlines():
                        screen.line(printable(line))
                elif options.raw:
                    sys.stdout.flush()
                    sys.stdout.buffer.write(read_bytes(kb.local.file_of(ref)))
                else:
                    _show(screen, kb, ref, note)
    return 0


def add_open(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("ref", help="a ref, a title, a path, or the number of a search result")


def run_open(options: argparse.Namespace) -> int:
    """
    Opens the file in the program that your system uses for it; a note of an
    Obsidian vault opens in Obsidian.

    examples:
      co open 2
      co open Atlas
    """
    with open_knowledge_base(options) as kb:
        note = find_note(kb, options.ref, track=True)
        file = kb.file_of(note.ref)
    if not file.lower().endswith((*ENDINGS, *OPENED)):  # an added folder may hold scripts, which some systems would run
        raise InvalidInputError(f"{note.ref} is not a document, and opening it could run it: `co show` prints it")
    url = note_url(file)
    for target in (url, file) if url.startswith("obsidian:") else (file,):
        with contextlib.suppress(OSError, subprocess.CalledProcessError):
            _open(target)
            return print_result(options, {"ref": note.ref, "path": file}, [f"opened {file}"])
    raise KnowledgeError(f"no program opens it: open {shell_line(file)} yourself, or use `co show` or `co edit`")


def _open(target: str) -> None:
    """Open a file or an address in the program that the system uses for it."""
    if sys.platform == "win32":
        os.startfile(target)
    else:
        opener = "open" if sys.platform == "darwin" else "xdg-open"
        subprocess.run([opener, target], check=True, stderr=subprocess.DEVNULL)


def _show(screen: Screen, kb: KnowledgeBase, ref: str, note: Note) -> None:
    screen.titled(note.title, note.ref)
    view = kb.view(ref, note)
    url = str(note.metadata.get("url") or "")
    category = f"{note.category} (automatic)" if note.guessed_category else note.category
    about = (url, " ".join(f"#{tag}" for tag in note.tags), category, view.path)
    screen.line(screen.paint(printable(" · ".join(filter(None, about))), "dim"))
    for name, value in properties_of(note.metadata).items():
        if name not in SHOWN_FIRST:
            screen.wrapped(f"{name}: {value}", style="dim")
    shown = excerpt(ref, note)
    for remark in filter(None, (view.outdated, note.problem, shown.remark)):
        screen.wrapped(f"note: {remark}", style="yellow")
    if not is_title("\n".join(shown.lines), note.title):
        screen.line()
        for line in shown.lines:
            screen.line(printable(line))
    targets = [link.ref or link.target + ("" if link.there else " (not there)") for link in view.links]
    for name, refs in (("links", targets), ("linked from", [link.ref for link in view.linked_from])):
        if refs:
            screen.line()
            screen.wrapped(f"{name}: {', '.join(refs)}", style="dim")
    for place, hit in enumerate(view.mentions):
        if place == 0:
            screen.line()
            screen.line(screen.paint(f"named in {count_of(len(view.mentions), 'note')}:", "bold"))
        screen.titled(hit.title, hit.ref, hit.path)
        screen.snippet(hit.snippet, "  ", hit.marks)


def add_edit(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("ref", help="a ref, a title, a path, or the number of a search result")
    parser.add_argument("--title", help="a new title")
    fields, other = map(parser.add_argument_group, ("fields", "programs"))
    for field in NOTE_FIELDS.values():
        _add_field(parser, fields, field, field.new_help or field.help)
    parser.add_argument("--add-tag", action="append", metavar="TAG", help="add a tag (repeatable)")
    parser.add_argument("--drop-tag", action="append", metavar="TAG", help="remove a tag (repeatable)")
    add_pairs(parser, "--set", "any field; KEY= removes it (repeatable)")
    parser.add_argument("--body", metavar="TEXT", help="a new text; - reads standard input")
    other.add_argument(
        "--based-on", metavar="VERSION", help="fail if the note has another version (see `co show --json`)"
    )


def run_edit(options: argparse.Namespace) -> int:
    """
    Without options your editor opens ($VISUAL or $EDITOR). With options, only
    those lines of the file change. If somebody else changes the note meanwhile,
    nothing is overwritten, and both texts are kept. --body keeps the old text in
    the trash. Notes of folders that you added are edited in place, unless they
    were added with --read-only.

    examples:
      co edit memory:blue-pool-first
      co edit blue-pool-first --set importance=0.9 --add-tag deploy
    """
    named = _named_fields(options)
    given = (options.title, options.add_tag, options.drop_tag, options.set, options.body, *named.values())
    with open_anywhere(options) as kb:
        note = find_note(kb, options.ref)
        if all(value is None for value in given):
            saved = edit_note(kb.local, note.ref, options.based_on)
        else:
            named["tags"], version = _tags_after(options, note)
            body = _text([options.body]) if options.body is not None else None
            change = make_change(
                body, {"title": options.title, "fields": _fields(options), "version": version, **named}
            )
            if kb.server is None and kb.local.lookup().in_linked_folder(note.ref):
                saved = kb.local.writer().update_linked(note.ref, change)
            else:
                saved = kb.update(note.ref, **fields_of(change))
    return print_result(options, saved, [saved.summary])


def _tags_after(options: argparse.Namespace, note: Note) -> tuple[list[str] | None, str | None]:
    """The new tags, and the version of the note they are based on, so that no tag added meanwhile is lost."""
    if not options.add_tag and not options.drop_tag:
        return options.tag, options.based_on
    if options.tag:
        raise InvalidInputError("--tag gives all the tags: leave out --add-tag and --drop-tag, or --tag")
    tags = own_tags(note)
    for tag in clean_tags(options.drop_tag):
        left = [written for written in tags if clean_tags([written]) != [tag]]  # a file may spell it `Two Words`
        if left == tags:
            where = "is in its text: edit that" if tag in note.tags else "is not one of its tags"
            raise InvalidInputError(f"{note.ref}: {tag} {where}")
        tags = left
    return [*tags, *clean_tags(options.add_tag)], options.based_on or note.version


def _fields(options: argparse.Namespace) -> dict[str, object]:
    """`--set key=value`, typed as YAML would read the value; an empty value removes the key."""
    found: dict[str, object] = {}
    for key, value in options.set or ():
        require_field_name(key)
        found[key] = read_frontmatter(f"---\n{key}: {value}\n---\n").metadata.get(key) if value else None
    return found


def _text(words: list[str]) -> str:
    if words and words != ["-"]:
        return " ".join(words)
    return read_stdin("give the text, or pipe it in")


def add_forget(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("ref", nargs="+", help="which notes, or their numbers in your last search")
    parser.add_argument("--erase", action="store_true", help="delete them for good, with copies, history and logs")
    parser.add_argument("-y", "--yes", action="store_true", help="with --erase: do not ask")


def run_forget(options: argparse.Namespace) -> int:
    """
    The file moves to the vault's trash; `co note restore REF` restores it. If it
    superseded another note, that one is valid again: name both to forget both.
    --erase deletes a note for good, also one in the trash: the file and its copies,
    its history, logged searches and prompts about it, turns of conversations,
    vectors, and what is left of deleted text in the databases and their backups.
    It names what remains, such as git commits, with the command that removes it.

    examples:
      co forget memory:blue-pool-first
      co forget memory:door-code-2222 memory:door-code-1111
      co forget --erase memory:door-code-2222
    """
    if options.yes and not options.erase:
        raise InvalidInputError("--yes is for --erase: without it, nothing is deleted")
    with open_anywhere(options) as kb:
        if options.erase:
            return _erase(options, kb)
        # if one is unknown, none is forgotten
        refs = dict.fromkeys(find_note(kb, ref).ref for ref in options.ref)
        gone = [kb.forget(ref) for ref in refs]
    lines = [
        f"forgotten {note.ref}; `co note restore {shell_line(note.ref)}` restores it, and "
        f"`co forget --erase {shell_line(note.ref)}` deletes it for good"
        for note in gone
    ]
    for old in (old for note in gone for old in note.valid_again if old not in refs):
        lines.append(f"valid again: {old}, which it superseded; `co forget {shell_line(old)}` forgets it, too")
    return print_result(options, gone, lines)


def _erase(options: argparse.Namespace, kb: KnowledgeBase) -> int:
    refs = [result_ref(kb.local, ref) for ref in options.ref]
    if not confirm(options, f"Delete {', '.join(refs)} for good? Nothing restores it.", "--erase"):
        return 1
    gone = [kb.local.erase(ref) for ref in refs]
    lines: list[str] = []
    for note in gone:
        counts = ((note.files, "file"), (note.rows, "log entry"), (note.turns, "turn of conversations"))
        parts = ", ".join(count_of(number, noun) for number, noun in counts if number)
        lines.append(f"erased {note.ref}: {parts}, and its words in the index")
    lines += dict.fromkeys(f"left: {where}" for note in gone for where in note.left)
    return print_result(options, gone, lines)


def add_restore(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("ref", nargs="+", help="which notes, or paths in .trash/; `co list --trash` lists them")


def run_restore(options: argparse.Namespace) -> int:
    """
    A ref, a title, an alias or a path restores the newest copy in the trash, and
    a path in .trash/ that copy. In a team vault, notes that a force-push dropped
    are restored as well.

    examples:
      co note restore memory:blue-pool-first
      co note restore "Blue pool first"
      co note restore .trash/20261116T101849Z-7/memories/blue-pool-first.md
    """
    with open_anywhere(options) as kb:
        refs: list[str] = options.ref
        if kb.server is None:  # if one is unknown, none is restored
            tiers = tuple(f"{origin.tier}:" for origin in kb.local.vault.linked if origin.tier)
            refs = [ref if ref.startswith(tiers) else kb.local.lookup().trashed_copy(ref)[0] for ref in refs]
        paths = dict.fromkeys(refs)
        restored = [kb.restore(path) for path in paths]
    return print_result(options, restored, [f"restored {saved.ref}, {saved.detail}" for saved in restored])
