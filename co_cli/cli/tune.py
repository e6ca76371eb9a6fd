"""`co feedback tune`."""

from __future__ import annotations

import argparse
import sys

from co_cli.cli.opening import open_knowledge_base, print_json, sync_first
from co_cli.cli.terminal import Screen, count_of
from co_cli.errors import InvalidInputError
from co_cli.service.learning import BOUND, Weights
from co_cli.service.tuning import State, clear, reset, tune
from co_cli.values import moment_text


def add_tune(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--apply", action="store_true", help="put learned weights in use, if the replay bears them out")
    parser.add_argument("--reset", action="store_true", help="back to the default weights; judgements stay")
    parser.add_argument("--dry-run", action="store_true", help="say what --apply or --reset would do, and do nothing")
    parser.add_argument("--clear", action="store_true", help="delete all judgements of this vault; asks first")
    parser.add_argument("-y", "--yes", action="store_true", help="do not ask")
    parser.epilog = (
        "Shows what judgements of answers teach about the weights of words and meaning,\n"
        "and how the judged notes rank before and after. Judgements come from\n"
        "`co feedback give`, the tool rate_memory, and notes opened after a search.\n"
        "Weights that you set yourself win.\n\n"
        "examples:\n  co feedback tune\n  co feedback tune --apply\n  co feedback tune --reset\n"
    )
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    if sum((options.apply, options.reset, options.clear)) > 1:
        raise InvalidInputError("--apply, --reset and --clear: say one of them")
    if options.yes and not options.clear:
        raise InvalidInputError("--yes is for --clear")
    if options.clear and options.dry_run:
        raise InvalidInputError("--dry-run is for --apply and --reset")
    doing = not options.dry_run
    with open_knowledge_base(options) as kb:
        if options.clear:
            _ask(options.yes)
            done = clear(kb)
            if options.json:
                print_json({"cleared": done})
            else:
                print(f"deleted: {count_of(done, 'judgement')}; searches weigh as by default")
            return 0
        sync_first(kb)
        undone = reset(kb) if options.reset and doing else False
        state = tune(kb, apply=options.apply and doing)
    if options.json:
        print_json(as_object(state))
    else:
        _show(Screen(), state, options, undone)
    return 1 if options.apply and doing and not state.lesson.kept else 0


def _ask(yes: bool) -> None:
    if yes:
        return
    if sys.stdin is None or not sys.stdin.isatty():
        raise InvalidInputError("--clear asks before it deletes, and nobody is there: say --yes")
    print("Delete every judgement of answers in this vault? Notes stay. [y/N] ", end="", flush=True)
    if sys.stdin.readline().strip().lower() not in ("y", "yes"):
        raise InvalidInputError("nothing was deleted")


def as_object(state: State) -> dict[str, object]:
    return {
        "learn": state.learn,
        "space": state.space,
        "default": _weights(state.default),
        "settings": _weights(state.explicit),
        "learned": _weights(state.learned),
        "in_use": _weights(state.in_use),
        "lesson": state.lesson._asdict(),
        "said": state.said,
        "implied": state.implied,
        "silent": state.silent,
        "history": [{**tuning._asdict(), "at": moment_text(tuning.at)} for tuning in state.history],
    }


def _weights(weights: Weights | None) -> dict[str, float] | None:
    return None if weights is None else weights._asdict()


def _show(screen: Screen, state: State, options: argparse.Namespace, undone: bool) -> None:
    if state.default is None:
        screen.wrapped(f"Nothing to tune: {state.lesson.why}.")
        return
    lesson = state.lesson
    who = (
        "your settings, which win over what is learned"
        if state.explicit
        else "learned"
        if state.learned and state.learn != "off"
        else "the default of these vectors"
    )
    _row(screen, "in use", f"{_told(state.in_use)} ({who})")
    _row(screen, "default", f"{_told(state.default)}; learned ones stay within {BOUND:g} of it")
    if state.learn == "off":
        _row(screen, "learn", "off: learned weights are not used (setting learn)")
    silent = f"; {state.silent:,} teach nothing yet" if state.silent else ""
    _row(screen, "judged", f"{state.said:,} said, {state.implied:,} implied by use{silent}")
    if lesson.before is not None:
        _row(screen, "teaches", _told(Weights(lesson.meaning, 1 - lesson.meaning)))
        _row(
            screen, "replay", f"{lesson.before:.4f} now, {lesson.after:.4f} with these, on {lesson.questions} questions"
        )
        _row(screen, "held back", f"{lesson.held_before:.4f} now, {lesson.held_after:.4f} by what the others teach")
    _row(screen, "verdict", f"{'better' if lesson.kept else 'kept as it is'}: {lesson.why}")
    if options.dry_run and options.reset:
        _row(screen, "", f"--reset would go back to {_told(state.default)}" if state.learned else "nothing to reset")
    elif options.reset:
        _row(screen, "", "reset: searches weigh as by default" if undone else "nothing was learned: as by default")
    elif options.apply and not options.dry_run:
        _row(screen, "", "applied; `co feedback tune --reset` takes it back" if lesson.kept else "nothing was changed")
    elif lesson.kept:
        _row(screen, "", "`co feedback tune --apply` puts them in use")
    for tuning in state.history[:5]:
        _row(screen, moment_text(tuning.at)[:10], f"{tuning.what}: {_told(Weights(tuning.meaning, tuning.words))}")


def _row(screen: Screen, name: str, text: str) -> None:
    screen.wrapped(f"{name:<10}  {text}")


def _told(weights: Weights | None) -> str:
    return "-" if weights is None else f"meaning {weights.meaning:.2f}, words {weights.words:.2f}"
