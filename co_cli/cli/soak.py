"""`co soak`: do harm to vaults of its own, again and again, and say whether anything was lost."""

from __future__ import annotations

import argparse
import random

from co_cli.cli.opening import print_json
from co_cli.cli.terminal import ProgressBar, Screen, printable
from co_cli.errors import InvalidInputError
from co_cli.soak.catalogue import SOAKS, soak
from co_cli.soak.contract import Trial, Verdict
from co_cli.soak.scratch import scratch

SECONDS = 60.0

EXPLAINED = """
Each ends after its rounds or after {seconds:.0f} seconds, whichever is first; --rounds
and --seconds say otherwise, and with --rounds alone there is no time limit. The
exit code is 0 if no promise was broken, 3 if one was: then it lists the faults,
with the command that repeats them. Works in a temporary folder and removes it;
your notes are not touched.

examples:
  co soak                                     all of them, a minute each
  co soak power --rounds 10000                as many power cuts as we make
  co soak kill --seed 7 --first 811 --rounds 2   two rounds again
"""


def add_soak(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("name", nargs="*", metavar="NAME", help=f"{', '.join(SOAKS)} (default: all)")
    parser.add_argument("--seed", type=int, metavar="N", help="what chance decides, decided again (default: a new one)")
    parser.add_argument("--seconds", type=float, metavar="S", help=f"for each soak at most (default {SECONDS:.0f})")
    parser.add_argument("--rounds", type=int, metavar="N", help="for each soak (default: see below)")
    parser.add_argument("--first", type=int, default=1, metavar="N", help="the number of the first round")
    parser.add_argument("--list", action="store_true", help="list the soaks, and run none")
    listing = "\n".join(f"  {name:<9}{entry.rounds:>7,}  {entry.about}" for name, entry in SOAKS.items())
    parser.epilog = f"soaks, and the rounds they are meant for:\n{listing}\n{EXPLAINED.format(seconds=SECONDS)}"
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    unknown = [name for name in options.name if name not in SOAKS]
    if unknown:
        raise InvalidInputError(f"there is no soak {unknown[0]!r}: {', '.join(SOAKS)}")
    for option, value in (("--seconds", options.seconds), ("--rounds", options.rounds), ("--first", options.first)):
        if value is not None and value <= 0:
            raise InvalidInputError(f"{option} is more than 0, not {value:g}")
    if options.list:
        _list(options.json)
        return 0
    seed = random.SystemRandom().randrange(10**6) if options.seed is None else options.seed
    verdicts, stopped = _soak_all(options, seed)
    if options.json:
        print_json({"seed": seed, "stopped": stopped, "soaks": [{**v._asdict(), "shown": v.shown} for v in verdicts]})
    if stopped:
        raise KeyboardInterrupt
    return 3 if any(verdict.faults for verdict in verdicts) else 0


def _soak_all(options: argparse.Namespace, seed: int) -> tuple[list[Verdict], bool]:
    """One after the other, each told as soon as it is over; whether Ctrl-C ended them."""
    verdicts: list[Verdict] = []
    stopped = False
    if not options.json:
        Screen().line(f"{'soak':<10}{'rounds':>8}{'seconds':>9}  {'faults':>6}  done")
    with scratch() as place:
        for name in options.name or SOAKS:
            bar = ProgressBar(name)
            seconds = options.seconds or (None if options.rounds else SECONDS)
            trial = Trial(name, place, seed, options.rounds or SOAKS[name].rounds, seconds, options.first, bar)
            try:
                soak(name, trial)
            except KeyboardInterrupt:
                stopped = True
            finally:
                bar.done()
            verdicts.append(trial.verdict())
            if not options.json:
                _show(verdicts[-1], seed)
            if stopped:
                break
    return verdicts, stopped


def _show(verdict: Verdict, seed: int) -> None:
    screen = Screen()
    faults = screen.paint(f"{len(verdict.faults):>6}", "red" if verdict.faults else "green")
    head = f"{verdict.name:<10}{verdict.rounds:>8,}{verdict.seconds:>9,.1f}  {faults}  "
    room = screen.width - 37
    for line in _folded(verdict.shown, room) or [""]:
        screen.line((head + line).rstrip())
        head = " " * 37
    for fault in verdict.faults:
        screen.wrapped(fault, indent="  ", style="red")
    if verdict.faults:
        screen.line(f"  again: co soak {verdict.name} --seed {seed} {verdict.again}")


def _folded(text: str, width: int) -> list[str]:
    import textwrap

    return textwrap.wrap(printable(text), width)


def _list(as_json: bool) -> None:
    if as_json:
        print_json({name: entry._asdict() for name, entry in SOAKS.items()})
        return
    for name, entry in SOAKS.items():
        Screen().line(f"{name:<9}{entry.rounds:>7,}  {entry.about}")
