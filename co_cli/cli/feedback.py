"""`co feedback give`."""

from __future__ import annotations

import argparse

from co_cli.cli.opening import find_note, open_knowledge_base, print_json, sync_first
from co_cli.cli.terminal import Screen, printable
from co_cli.service.learning import ENOUGH
from co_cli.service.tuning import VERDICTS, Receipt, judge


def add_feedback(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("ref", help="which note")
    parser.add_argument("verdict", choices=tuple(VERDICTS), help="was it what you were looking for?")
    parser.add_argument("-q", "--query", metavar="TEXT", help="what you asked; else the last search that found it")
    parser.epilog = (
        "Say whether a note was the answer to a question. The note does not change. After\n"
        "30 judgements the weights of words and meaning are learned from them, within\n"
        "0.15 of the default, and only if the judged questions rank better with them.\n"
        "`co feedback tune` shows and resets them; the setting learn turns it off.\n\n"
        "examples:\n  co feedback give memory:blue-pool-first good\n"
        '  co feedback give article:runbooks/deploy bad --query "how do we deploy"\n'
    )
    parser.set_defaults(run=feedback)


def feedback(options: argparse.Namespace) -> int:
    with open_knowledge_base(options) as kb:
        sync_first(kb)
        note = find_note(kb, options.ref)
        told = judge(kb, note.ref, options.verdict, options.query)
        learn, query_log = kb.settings.learn, kb.settings.query_log
    if options.json:
        lesson = told.lesson._asdict() if told.lesson else None
        print_json({**told._asdict(), "lesson": lesson})
    else:
        _show(told, learn, query_log)
    return 0


def _show(told: Receipt, learn: str, query_log: str) -> None:
    screen = Screen()
    screen.titled(told.title, told.ref)
    if told.query is None:
        logged = query_log == "on"
        why = "no search that found it is logged" if logged else f"query_log is {query_log}, and keeps no question"
        screen.wrapped(f"{told.verdict}, about the note alone: {why}.", "  ")
        if logged:
            screen.wrapped('Name the question, and it can be learned from: --query "..."', "  ", style="dim")
        return
    place = (
        f"rank {told.rank} by the default weights"
        if told.rank
        else "not among the first hundred, so it teaches nothing"
    )
    screen.wrapped(f"{told.verdict} for {printable(told.query)!r}: {place}.", "  ")
    if told.lesson is not None and told.applied:
        meaning = told.lesson.meaning
        changed = f"Searches now weigh meaning {meaning:.2f} and words {1 - meaning:.2f}: {told.lesson.why}."
        screen.wrapped(f"{changed} `co feedback tune --reset` takes it back.", "  ")
    elif told.judgements < ENOUGH:
        screen.wrapped(f"{told.judgements:g} of {ENOUGH:g} judgements that it takes to learn.", "  ", style="dim")
    elif learn == "ask":
        screen.wrapped("`co feedback tune` shows what they teach.", "  ", style="dim")
