"""Hints for searches whose filters match nothing, and `co note tags`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from co_cli.cli.opening import open_knowledge_base, print_json, sync_first
from co_cli.cli.terminal import Screen, count_of, printable
from co_cli.knowledge_base import KnowledgeBase
from co_cli.service.searching import close_tags, unused_tags
from co_cli.values import SearchResult

if TYPE_CHECKING:
    import argparse


def say_unused(screen: Screen, kb: KnowledgeBase, tags: list[str] | None) -> None:
    """A line for each tag that no note has."""
    known = list(kb.tags()) if tags else []
    for tag in unused_tags(tags, known):
        close = ", ".join(close_tags(tag, known))
        cure = f"did you mean {close}?" if close else "`co note tags` lists all tags"
        screen.wrapped(printable(f"No note has the tag {tag}: {cure}"), style="yellow")


def say_without_filters(wider: SearchResult, filters: str) -> None:
    """The best match without the filters, if there is one."""
    if wider.state == "found":
        Screen().wrapped(f"Without {filters} there is {wider.hits[0].title} ({wider.hits[0].ref}).")


def add_tags(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "source", nargs="?", metavar="SOURCE", help="memory, article, or a source that `co source list` lists"
    )
    parser.add_argument("--no-sync", action="store_true", help="do not look for changed files first")
    parser.epilog = (
        "The tags of everything that is searched, in frontmatter and as #words in the\n"
        "text, with the number of notes that have each; the most used first.\n\n"
        "examples:\n  co note tags\n  co note tags memory --json\n"
    )
    parser.set_defaults(run=tags)


def tags(options: argparse.Namespace) -> int:
    with open_knowledge_base(options) as kb:
        if not options.no_sync:
            sync_first(kb)
        counted = kb.tags(options.source)
        synced = kb.index.counts().synced_at is not None
    if options.json:
        print_json(counted)
        return 0 if counted else 1
    screen = Screen()
    for tag, count in counted.items():
        screen.line(f"{screen.paint('#' + printable(tag), 'cyan')}  {screen.paint(count_of(count, 'note'), 'dim')}")
    if not counted and not synced:
        screen.line("The vault was never indexed: run `co index sync`, or leave out --no-sync.")
    elif not counted:
        screen.line("No tags: `co remember TEXT --tag TAG` gives one, and so does #tag in a text.")
    return 0 if counted else 1
