"""`co note review`: list findings about notes, or decide about each in a terminal, with a letter and Enter."""

from __future__ import annotations

import argparse
import difflib
import time
from collections.abc import Iterable
from contextlib import suppress
from typing import cast

from co_cli.cli.editor import edit_note, new_text
from co_cli.cli.opening import open_synced, print_json
from co_cli.cli.terminal import Screen, count_of, printable, read_key, reads_terminal
from co_cli.entrance.local import LocalKnowledgeBase
from co_cli.ground.errors import InvalidInputError, KnowledgeError
from co_cli.notes.sync_copies import merged
from co_cli.tools.budget import estimate_tokens
from co_cli.upkeep.decisions import Action, decide, look_again, require_unchanged
from co_cli.upkeep.review import Review, review
from co_cli.upkeep.review_checks import ACTIONS, KINDS, ReviewItem

SHOWN = 10
"""Findings of each kind that are listed; --json has all."""
WORDS = {**ACTIONS, "n": "next", "q": "quit"}
VERSION_WORDS = {
    **WORDS, "a": "take the other version", "f": "keep this version", "e": "merge in your editor", "k": "keep both",
}  # fmt: skip
LETTERS = {action: letter for letter, action in ACTIONS.items()}


def add_review(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--only", action="append", metavar="KIND", help=f"{', '.join(KINDS)} (repeatable)")
    parser.add_argument("--list", action="store_true", help="list the findings without asking")
    width = max(map(len, KINDS))
    kinds = "".join(f"  {name:<{width}}  {text}\n" for name, text in KINDS.items())
    parser.epilog = (
        f"Looks for:\n{kinds}\n"
        "In a terminal you decide about each: a accepts a proposed memory or article, w\n"
        "lets your model rewrite the article and shows what differs, f forgets a note\n"
        "(it goes to the trash), s marks the older of two as superseded by the newer,\n"
        "e opens your editor, k keeps it and never asks again, n skips it, q quits.\n"
        "Nothing is changed unless you type a letter and press Enter.\n\n"
        "examples:\n  co note review\n  co note review --only secret --only near-duplicate\n  co note review --json\n"
    )


def run_review(options: argparse.Namespace) -> int:
    unknown = [kind for kind in options.only or () if kind not in KINDS]
    if unknown:
        raise InvalidInputError(f"--only must be one of {', '.join(KINDS)}, not {unknown[0]!r}")
    with open_synced(options) as kb:
        found = review(kb.vault, time.time(), estimate_tokens, options.only or ())
        if options.json:
            findings = [finding._asdict() for finding in found.items]
            about = {"notes": found.notes, "dismissed": found.dismissed, "degraded": found.degraded}
            print_json({**about, "findings": findings})
            return 0
        screen = Screen()
        asking = screen.interactive and reads_terminal() and not options.list
        for problem in found.degraded:
            screen.wrapped(problem, style="dim")
        if asking and found.items:
            return _decide(screen, kb, found)
        _show(screen, found)
    return 0


def _show(screen: Screen, found: Review) -> None:
    for kind, text in KINDS.items():
        items = [item for item in found.items if item.kind == kind]
        if items:
            screen.line(screen.paint(f"{kind}: {len(items):,} ({text})", "bold"))
        for item in items[:SHOWN]:
            about = f"{item.reason}: {', '.join(item.refs)}"
            _show_item(screen, item._replace(reason=about, proposed="") if kind == "combine" else item)
        if len(items) > SHOWN:
            screen.line(f"  ... and {len(items) - SHOWN:,} more: co note review --only {kind} --json")
    _sum_up(screen, found)


def _show_item(screen: Screen, item: ReviewItem) -> None:
    screen.line("  " + screen.paint(printable(item.title if item.kind == "combine" else item.refs[0]), "cyan"))
    screen.wrapped(item.reason, "    ")
    if item.is_version:
        lines = difflib.unified_diff(item.replaced.split("\n"), item.proposed.split("\n"), lineterm="", n=2)
        shown = [*lines][2:]
    else:
        texts = (("-", item.replaced), ("+", item.proposed))
        shown = [f"{sign} {line}" for sign, text in texts if text for line in text.split("\n")]
    _show_lines(screen, shown)


def _show_lines(screen: Screen, lines: Iterable[str]) -> None:
    """Lines that begin with what happens to them: - or +."""
    for line in lines:
        screen.wrapped(line, "    ", style={"-": "red", "+": "green"}.get(line[:1], ""))


def _sum_up(screen: Screen, found: Review) -> None:
    kept = f", {found.dismissed:,} kept earlier" if found.dismissed else ""
    screen.line(f"{count_of(found.notes, 'note')}: {count_of(len(found.items), 'finding')}{kept}")


def _decide(screen: Screen, kb: LocalKnowledgeBase, found: Review) -> int:
    """Ask about one finding after the other, until q or the end."""
    gone: set[str] = set()
    edited: set[str] = set()
    seen = kb.index.notes.hashes()
    _sum_up(screen, found)
    for number, item in enumerate(found.items, 1):
        if gone & set(item.refs):
            continue  # decided with another finding
        if item.is_version and edited & set(item.refs):
            with suppress(KnowledgeError):  # its copy is gone: to decide about it says so
                item = look_again(kb.vault, item)
        screen.line()
        screen.line(screen.paint(f"{number} of {len(found.items)}: {item.kind}", "bold"))
        _show_item(screen, item)
        text: str | None = None
        keys = "".join(LETTERS[action] for action in item.actions) + "nq"
        words = VERSION_WORDS if item.is_version else {**WORDS, "k": "dismiss"} if item.proposed else WORDS
        prompt = "  " + "  ".join(f"[{key}] {words[key]}" for key in keys)
        while True:
            key = read_key(prompt, keys)
            if key == "q":
                return 0
            try:
                if key == "w":
                    text = _rewrite(screen, kb, item)
                    continue
                if key != "n":
                    careful = "" if item.kind == "proposed" else "aefs" if item.is_version else "afs"
                    if key in careful and not edited & set(item.refs):
                        require_unchanged(kb.vault, item, seen)
                    screen.line("  " + printable(_act(kb, item, key, text)))
                    edited |= set(item.refs) if key in "es" or item.is_version else set()
                    combined = item.refs if item.kind == "combine" and key == "a" else ()
                    gone |= {item.refs[0]} if key == "s" else item.lost(ACTIONS[key]) | {*combined}
                break
            except KnowledgeError as error:
                screen.line(f"  {printable(str(error))}")
    return 0


def _rewrite(screen: Screen, kb: LocalKnowledgeBase, item: ReviewItem) -> str:
    """The draft as the model writes it, after what differs is shown. It is saved only if it is accepted next."""
    from co_cli.agent.rewriting import rewrite  # imports pydantic, which a review does not need

    text = rewrite(kb.settings.model, item.title, item.proposed)
    _show_lines(screen, [*difflib.unified_diff(item.proposed.split("\n"), text.split("\n"), lineterm="", n=1)][2:])
    return text


def _act(kb: LocalKnowledgeBase, item: ReviewItem, key: str, text: str | None) -> str:
    if key == "e" and item.is_version:
        with new_text(merged(item.replaced, item.proposed)) as both:
            return decide(kb.vault, item, "accept", time.time(), both).text
    if key == "e":
        return f"{edit_note(kb, item.refs[0]).outcome} {item.refs[0]}"
    return decide(kb.vault, item, cast("Action", ACTIONS[key]), time.time(), text).text
