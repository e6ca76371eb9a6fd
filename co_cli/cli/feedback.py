"""`co feedback give` and `co feedback tune`."""

from __future__ import annotations

import argparse

from co_cli.cli.opening import confirm_clear, find_note, open_knowledge_base, print_result, sync_first
from co_cli.cli.terminal import Screen, count_of
from co_cli.errors import InvalidInputError
from co_cli.service import feedback
from co_cli.service.feedback import BOUND, DEFAULT_WEIGHTS, ENOUGH, VERDICTS, FeedbackReceipt, Tuning, weights_of


def add_give(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("ref", help="which note")
    parser.add_argument("verdict", choices=tuple(VERDICTS), help="was it what you were looking for?")
    parser.add_argument("-q", "--query", metavar="TEXT", help="what you asked (default: the last search that found it)")


def run_give(options: argparse.Namespace) -> int:
    """
    The note does not change. After 30 ratings co learns the weights of words and
    meaning from them, within 0.15 of the default, and only if the rated questions
    rank better with them. `co feedback tune` shows and resets the weights; the
    setting learn turns it off.

    examples:
      co feedback give memory:blue-pool-first good
      co feedback give article:runbooks/deploy bad --query "how do we deploy"
    """
    with open_knowledge_base(options) as kb:
        sync_first(kb)
        receipt = feedback.judge(kb, find_note(kb, options.ref).ref, options.verdict, options.query)
        learn, query_log = kb.settings.learn, kb.settings.query_log
    value = {**receipt._asdict(), "applied": receipt.applied}
    return print_result(options, value, lambda screen: _show_receipt(screen, receipt, learn, query_log))


def _show_receipt(screen: Screen, receipt: FeedbackReceipt, learn: str, query_log: str) -> None:
    screen.titled(receipt.title, receipt.ref)
    if receipt.query is None:
        why = f"query_log is {query_log} and keeps no question"
        if query_log == "on":
            why = 'no search that found it is logged; name the question to learn from it: --query "..."'
        screen.wrapped(f"{receipt.verdict}, about the note alone: {why}", "  ")
        return
    where = f"rank {receipt.rank}" if receipt.rank else "not among the first hundred, so nothing is learned from it"
    screen.wrapped(f"{receipt.verdict} for {receipt.query!r}: {where}.", "  ")
    if receipt.lesson is not None and receipt.applied:
        screen.wrapped(f"Searches now use {_text(weights_of(receipt.lesson.meaning))}: {receipt.lesson.why}.", "  ")
    elif receipt.judgements < ENOUGH:
        screen.wrapped(f"{receipt.judgements:g} of the {ENOUGH:g} ratings needed to learn.", "  ", style="dim")
    elif learn == "ask":
        screen.wrapped("`co feedback tune` shows what was learned.", "  ", style="dim")


def add_tune(parser: argparse.ArgumentParser) -> None:
    action = parser.add_mutually_exclusive_group()
    action.add_argument("--apply", action="store_true", help="use the learned weights, if they pass the check")
    action.add_argument("--reset", action="store_true", help="back to the default weights; ratings stay")
    action.add_argument("--clear", action="store_true", help="delete all ratings of this vault; asks first")
    parser.add_argument("--dry-run", action="store_true", help="show what --apply or --reset would do")
    parser.add_argument("-y", "--yes", action="store_true", help="do not ask")


def run_tune(options: argparse.Namespace) -> int:
    """
    Shows which weights of words and meaning your ratings suggest, and how the rated
    notes rank before and after. Ratings come from `co feedback give`, the tool
    rate_memory, and notes opened after a search. Weights in your settings take
    precedence.

    examples:
      co feedback tune
      co feedback tune --apply
      co feedback tune --reset
    """
    if options.clear and options.dry_run:
        raise InvalidInputError("--dry-run is for --apply and --reset")
    apply = options.apply and not options.dry_run
    with open_knowledge_base(options) as kb:
        if options.clear:
            if not confirm_clear(options, "Delete every rating of answers in this vault? Notes stay."):
                return 1
            cleared = feedback.clear(kb)
            line = f"deleted: {count_of(cleared, 'rating')}; searches use the default weights"
            return print_result(options, {"cleared": cleared}, [line])
        sync_first(kb)
        if options.reset and not options.dry_run:
            feedback.reset(kb)
        state = feedback.tune(kb, apply)
    code = 1 if apply and not state.lesson.kept else 0
    return print_result(options, state, lambda screen: _show_state(screen, state, options), code)


def _show_state(screen: Screen, state: Tuning, options: argparse.Namespace) -> None:
    lesson, default = state.lesson, _text(DEFAULT_WEIGHTS)
    if state.in_use is None:
        screen.wrapped(f"Nothing to tune: {lesson.why}.")
        return
    off = "; the setting learn is off" if state.learned and state.source == "default" else ""
    rows = [
        ("in use", f"{_text(state.in_use)} ({state.source}{off})"),
        ("default", f"{default}; learned weights stay within {BOUND:g} of it"),
        ("ratings", f"{state.said:,} given, {state.implied:,} inferred from use"),
    ]
    if lesson.before is not None:
        rows.append(("suggested", _text(weights_of(lesson.meaning))))
        rows.append(("replay", f"{lesson.before:.4f} now, {lesson.after:.4f} with these, {lesson.questions} questions"))
    rows.append(("verdict", f"{'better' if lesson.kept else 'no change'}: {lesson.why}"))
    if options.reset:
        would = f"--reset would go back to {default}"
        rows.append(("", would if options.dry_run else "reset: searches use the default weights"))
    elif options.apply and not options.dry_run:
        rows.append(("", "applied; `co feedback tune --reset` undoes it" if lesson.kept else "nothing was changed"))
    elif lesson.kept:
        rows.append(("", "`co feedback tune --apply` uses them"))
    for name, text in rows:
        screen.wrapped(f"{name:<10}  {text}")


def _text(weights: dict[str, float]) -> str:
    return f"meaning {weights['meaning']:.2f}, words {weights['words']:.2f}"
