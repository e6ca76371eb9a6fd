"""`co feedback give` and `co feedback tune`."""

from __future__ import annotations

import argparse

from co_cli.cli.opening import confirm_clear, find_note, open_knowledge_base, print_result, sync_first
from co_cli.cli.terminal import count_of
from co_cli.service import feedback
from co_cli.service.feedback import weights_of


def add_give(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("ref", help="which note")
    parser.add_argument("verdict", choices=("good", "bad"), help="was it what you were looking for?")
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
        note = find_note(kb, options.ref)
        rated = feedback.judge(kb, note.ref, options.verdict == "good", options.query)
    about = f"for {rated.query!r}" if rated.query else "about the note alone: no question is known or logged"
    return print_result(options, rated, [f"rated {options.verdict}: {note.ref} ({note.title}), {about}"])


def add_tune(parser: argparse.ArgumentParser) -> None:
    action = parser.add_mutually_exclusive_group()
    action.add_argument("--apply", action="store_true", help="use the learned weights, if they pass the check")
    action.add_argument("--reset", action="store_true", help="back to the default weights; ratings stay")
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
            if not confirm_clear(options, "Delete every rating of answers in this vault? Notes stay."):
                return 1
            cleared = feedback.clear(kb)
            line = f"deleted: {count_of(cleared, 'rating')}; searches use the default weights"
            return print_result(options, {"cleared": cleared}, [line])
        sync_first(kb)
        if options.reset:
            feedback.reset(kb)
        state = feedback.tune(kb, options.apply)
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
