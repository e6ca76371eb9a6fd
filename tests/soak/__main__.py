"""`python -m tests.soak [NAME...]`: break things on purpose in temporary vaults, and report what was lost."""

from __future__ import annotations

import argparse
import os
import random
import sys
import textwrap
from collections.abc import Sequence
from typing import NoReturn

from co_cli.cli.opening import print_json
from co_cli.cli.terminal import ProgressBar, Screen, printable
from tests.soak.catalogue import SOAKS, soak
from tests.soak.contract import Trial, Verdict
from tests.soak.scratch import scratch

SECONDS = 60.0

EPILOG = """\
soaks, and the rounds each is meant for:
{listing}

Each soak ends after its rounds or after {seconds:.0f} seconds, whichever comes first.
--rounds alone has no time limit. The exit code is 0 if every promise held and
3 if one was broken; then you see the faults and the command that repeats them.
Soaks work in a temporary folder and remove it; your notes are not touched.

examples:
  python -m tests.soak                           all of them, a minute each
  python -m tests.soak power --rounds 10000      10,000 power cuts
  python -m tests.soak kill --seed 7 --first 811 --rounds 2   two rounds again
"""


def main(arguments: Sequence[str] | None = None) -> int:
    parser = make_parser()
    options = parser.parse_args(arguments)
    unknown = [name for name in options.name if name not in SOAKS]
    if unknown:
        parser.error(f"there is no soak {unknown[0]!r}: {', '.join(SOAKS)}")
    for option, value in (("--seconds", options.seconds), ("--rounds", options.rounds), ("--first", options.first)):
        if value is not None and value <= 0:
            parser.error(f"{option} must be more than 0, not {value:g}")
    seed = random.SystemRandom().randrange(10**6) if options.seed is None else options.seed
    verdicts, stopped = _soak_all(options, seed)
    if options.json:
        print_json({"seed": seed, "stopped": stopped, "soaks": [{**v._asdict(), "shown": v.shown} for v in verdicts]})
    if stopped:
        print("stopped; all temporary files are removed", file=sys.stderr)
        return 130
    return 3 if any(verdict.faults for verdict in verdicts) else 0


def make_parser() -> argparse.ArgumentParser:
    listing = "\n".join(f"  {name:<9}{entry.rounds:>7,}  {entry.about}" for name, entry in SOAKS.items())
    parser = argparse.ArgumentParser(
        prog="python -m tests.soak",
        description="Kill, crowd and cut the power of temporary vaults, and report what was lost.",
        epilog=EPILOG.format(listing=listing, seconds=SECONDS),
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("name", nargs="*", metavar="NAME", help="which soaks to run (default: all)")
    parser.add_argument("--seed", type=int, metavar="N", help="random seed (default: a new one)")
    parser.add_argument("--seconds", type=float, metavar="S", help=f"time limit for each soak (default {SECONDS:.0f})")
    parser.add_argument("--rounds", type=int, metavar="N", help="number of rounds (default: see below)")
    parser.add_argument("--first", type=int, default=1, metavar="N", help="number of the first round")
    parser.add_argument("--json", action="store_true", help="print JSON")
    return parser


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
        screen.line(f"  again: python -m tests.soak {verdict.name} --seed {seed} {verdict.again}")


def _folded(text: str, width: int) -> list[str]:
    return textwrap.wrap(printable(text), width)


def run() -> NoReturn:
    """Exit without Python's own cleanup: it would look for the process server's files, which are removed already."""
    code = main()
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)


if __name__ == "__main__":
    run()
