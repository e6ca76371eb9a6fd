"""`co feedback give`, `co feedback tune` and `co feedback stats`."""

from __future__ import annotations

import argparse
import textwrap
from collections.abc import Iterator

from co_cli.activity.query_log import clear_log
from co_cli.cli.opening import (
    add_limit,
    confirm,
    find_note,
    open_knowledge_base,
    print_result,
    result_moment,
    sync_first,
)
from co_cli.cli.terminal import count_of
from co_cli.entrance.local import LocalKnowledgeBase
from co_cli.ground.errors import InvalidInputError
from co_cli.ground.values import moment_text
from co_cli.upkeep import feedback
from co_cli.upkeep.usage import Usage, usage_of
from co_cli.vault.ranking import weights_of

WIDEST = 74


def add_give(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("ref", help="which note, or its number in the last search that showed numbers")
    parser.add_argument("verdict", choices=("good", "bad"), help="was it what you were looking for?")
    parser.add_argument(
        "-q",
        "--query",
        metavar="TEXT",
        help="what you asked (default: the last search that found it, or showed the number)",
    )


def run_give(options: argparse.Namespace) -> int:
    """
    The note does not change. A good one is added to prompts more easily, a bad
    one less.
    After 30 ratings, `co feedback tune` suggests other weights of words and
    meaning if the rated questions rank better with them.

    examples:
      co feedback give memory:blue-pool-first good
      co feedback give 1 good
      co feedback give article:runbooks/deploy bad --query "how do we deploy"
    """
    with open_knowledge_base(options) as kb:
        sync_first(kb)
        note = find_note(kb, options.ref)
        asked = result_moment(kb, options.ref)
        rated = feedback.judge(kb.vault, note.ref, options.verdict == "good", options.query, until=asked)
    about = f"for {rated.query!r}" if rated.query else "without a question: none is known, or query_log is not on"
    return print_result(options, rated, [f"rated {options.verdict}: {note.ref} ({note.title}), {about}"])


def add_tune(parser: argparse.ArgumentParser) -> None:
    action = parser.add_mutually_exclusive_group()
    action.add_argument("--apply", action="store_true", help="use the learned weights, if they pass the check")
    action.add_argument("--reset", action="store_true", help="go back to the default weights; ratings stay")
    action.add_argument("--clear", action="store_true", help="delete all ratings of this vault; asks first")
    parser.add_argument("-y", "--yes", action="store_true", help="do not ask")


def run_tune(options: argparse.Namespace) -> int:
    """
    Shows which weights of words and meaning your ratings suggest, and how many of
    the rated questions rank better with them. Ratings come from `co feedback give`,
    the tool rate_memory, and notes opened after a search. Weights in your settings
    take precedence.

    examples:
      co feedback tune
      co feedback tune --apply
      co feedback tune --reset
    """
    with open_knowledge_base(options) as kb:
        if options.clear:
            if not confirm(options, "Delete every rating of answers in this vault? Notes stay."):
                return 1
            cleared = feedback.clear(kb.vault)
            line = f"deleted: {count_of(cleared, 'rating')}; searches use the default weights"
            return print_result(options, {"cleared": cleared}, [line])
        sync_first(kb)
        if options.reset:
            feedback.reset(kb.vault)
        state = feedback.tune(kb.vault, options.apply)
        off = "; the setting learn is off" if kb.settings.learn == "off" else ""
    lesson, kept = state.lesson, state.lesson.kept
    lines = [
        f"in use     {_text(state.in_use)} ({state.source}{off})",
        f"ratings    {state.said:,} given, {state.implied:,} inferred from use",
        f"suggested  {_text(weights_of(lesson.meaning))}, {'better' if kept else 'no change'}: {lesson.why}",
    ]
    if options.apply:
        lines.append("applied; `co feedback tune --reset` undoes it" if kept else "nothing was changed")
    elif kept:
        lines.append("`co feedback tune --apply` uses the suggested weights")
    return print_result(options, state, lines, 1 if options.apply and not kept else 0)


def _text(weights: dict[str, float]) -> str:
    return f"meaning {weights['meaning']:.2f}, words {weights['words']:.2f}"


def add_stats(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--days", type=int, default=30, metavar="N", help="of the last N days (default 30)")
    add_limit(parser, 10, "rows in each list")
    parser.add_argument("--clear", action="store_true", help="delete the query log of this vault; asks first")
    parser.add_argument("-y", "--yes", action="store_true", help="do not ask")


def run_stats(options: argparse.Namespace) -> int:
    """
    Shows what was searched, what found nothing, what took long, and which notes
    are found often or never. Searches with `co`, by agents, over MCP and in chats
    count; those of `co eval` do not. Nothing of this leaves your machine. The
    setting query_log turns it off, or leaves out the words (no-text).

    examples:
      co feedback stats --days 7
      co feedback stats --json
      co feedback stats --clear
    """
    if options.yes and not options.clear:
        raise InvalidInputError("--yes is for --clear")
    with open_knowledge_base(options) as kb:
        if options.clear:
            return _clear(options, kb)
        usage, query_log = usage_of(kb.vault, options.days, options.limit), kb.settings.query_log
    return print_result(options, usage.as_object(), _lines(usage, query_log))


def _clear(options: argparse.Namespace, kb: LocalKnowledgeBase) -> int:
    if not confirm(options, "Delete what was searched for in this vault? Notes and their history stay."):
        return 1
    database = kb.activity.written()
    with database.writing() as connection:
        cleared = clear_log(connection, kb.root)
    database.shrink()
    return print_result(options, {"cleared": cleared}, [f"deleted from the query log: {count_of(cleared, 'search')}"])


def _lines(usage: Usage, query_log: str) -> Iterator[str]:
    searches, notes, total = usage.searches, usage.notes, usage.total("searches")
    by = ", ".join(f"{name} {n:,}" for name, n in searches.front_ends.items())
    span = f"in the last {count_of(len(searches.days), 'day')}" if len(searches.days) > 1 else "today"
    yield f"{count_of(total, 'search')} {span}{f' ({by})' if ', ' in by else ''}."
    if query_log != "on":
        yield f"The query log is {query_log}: {'nothing more' if query_log == 'off' else 'no text'} is recorded."
    if total:
        took = f"Median {_ms(searches.median_ms)}, 95 % within {_ms(searches.p95_ms)}."
        yield f"{usage.total('unanswered'):,} found nothing. {took}"
    if usage.turns.turns:
        given = f"{count_of(usage.turns.notes, 'note')}, about {usage.turns.tokens:,} tokens"
        to = ", ".join(f"{name} {n:,}" for name, n in usage.turns.front_ends.items())
        yield f"Added to agents' prompts: {given}, in {count_of(usage.turns.turns, 'turn')} ({to})."
    if usage.turns.late:
        yield f"Coding agents got no notes for {usage.turns.late_text}. `co doctor` measures what a hook costs here."
    if usage.saves:
        yield f"Notes changed by: {', '.join(f'{name} {n:,}' for name, n in usage.saves.items())}."
    extraction = usage.extraction
    if extraction.batches:
        states = ", ".join(f"{count:,} {state}" for state, count in extraction.facets.items()) or "none kept"
        cost = f"{extraction.tokens:,} tokens for {count_of(extraction.batches, 'batch')} of turns"
        refused = f", {extraction.refused:,} refused" if extraction.refused else ""
        yield f"{count_of(sum(extraction.facets.values()), 'facet')} from conversations: {states}{refused}; {cost}."
    yield from _table("Asked most often", [(f"{search.times:,}", search.text) for search in searches.common])
    yield from _table("Found nothing", [(f"{search.times:,}", search.text) for search in searches.unanswered])
    slow = [
        (_ms(search.took_ms), f"{search.text or '(no text)'}, {moment_text(search.at)[:10]}")
        for search in searches.slow
    ]
    yield from _table("Took longest", slow)
    rows = [(f"{note.recalls:,}", f"{note.ref}  {note.title}") for note in notes.recalled[: usage.limit]]
    yield from _table("Notes recalled most often", rows)
    if notes.recalled:
        title = f"Never recalled: {len(notes.never_recalled):,} of {count_of(notes.notes, 'note')}"
        yield from _table(title, [("", f"{note.ref}  {note.title}") for note in usage.never_recalled()])


def _table(title: str, rows: list[tuple[str, str]]) -> Iterator[str]:
    wide = max((len(number) for number, _ in rows), default=0)
    yield from ["", title] if rows else []
    for number, text in rows:
        yield f"  {number:>{wide}}  {textwrap.shorten(text, WIDEST - wide, placeholder=' …')}"


def _ms(value: float | None) -> str:
    if value is None:
        return "-"
    return f"{value / 1000:,.1f} s" if value >= 1000 else f"{value:,.0f} ms" if value >= 10 else f"{value:.1f} ms"
