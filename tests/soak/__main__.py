"""`python -m tests.soak [NAME...]`: break temporary vaults on purpose and report what was lost."""

from __future__ import annotations

import argparse
import random
import sys
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple

from tests.soak import fuzzing, power, scenarios
from tests.soak.runner import Trial

SECONDS = 60.0


class Soak(NamedTuple):
    """One scenario, and how many rounds it is meant for."""

    about: str
    rounds: int
    run: Callable[[Trial], None]


SOAKS = {
    "kill": Soak("kill -9 while it saves, forgets, syncs, embeds and rebuilds", 2_000, scenarios.kill),
    "power": Soak("power cuts: a disk that forgets what was not synced", 10_000, power.cut_databases),
    "names": Soak("power cuts while notes are written, renamed and trashed", 10_000, power.cut_notes),
    "crowd": Soak("eight processes write and search in one vault, and in two", 10, scenarios.crowd),
    "fuzz": Soak("mutations of notes, queries and refs: does it crash?", 1_300, fuzzing.fuzz),
}

EPILOG = f"""\
soaks, and the rounds each is meant for:
{chr(10).join(f"  {name:<9}{soak.rounds:>7,}  {soak.about}" for name, soak in SOAKS.items())}

Each soak ends after its rounds or after {SECONDS:.0f} seconds, whichever comes first.
--rounds alone has no time limit. The exit code is 0 if every promise held and
3 if one was broken; then you see the faults and the command that repeats them.
Soaks work in a temporary folder and remove it; your notes are not touched.

examples:
  python -m tests.soak                           all of them, a minute each
  python -m tests.soak power --rounds 10000      10,000 power cuts
  python -m tests.soak kill --seed 7 --first 811 --rounds 2   two rounds again
"""


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        prog="python -m tests.soak",
        description="Kill, crowd and cut the power of temporary vaults, and report what was lost.",
        epilog=EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("name", nargs="*", metavar="NAME", help="which soaks to run (default: all)")
    parser.add_argument("--seed", type=int, metavar="N", help="random seed (default: a new one)")
    parser.add_argument("--seconds", type=float, metavar="S", help=f"time limit for each soak (default {SECONDS:.0f})")
    parser.add_argument("--rounds", type=int, metavar="N", help="number of rounds (default: see below)")
    parser.add_argument("--first", type=int, default=1, metavar="N", help="number of the first round")
    options = parser.parse_args(arguments)
    for name in options.name:
        if name not in SOAKS:
            parser.error(f"there is no soak {name!r}: {', '.join(SOAKS)}")
    seed = random.SystemRandom().randrange(10**6) if options.seed is None else options.seed
    faults = 0
    with tempfile.TemporaryDirectory(prefix="co-soak-", ignore_cleanup_errors=True) as place:
        for name in options.name or SOAKS:
            rounds = options.rounds or SOAKS[name].rounds
            seconds = options.seconds or (None if options.rounds else SECONDS)
            trial = Trial(name, Path(place), seed, rounds, seconds, options.first)
            try:
                SOAKS[name].run(trial)
            except KeyboardInterrupt:
                print("stopped", file=sys.stderr)
                return 130
            finally:
                show(trial)
                faults += len(trial.faults)
    return 3 if faults else 0


def show(trial: Trial) -> None:
    done = ", ".join(f"{number:,} {what}" for what, number in trial.counts.items())
    print(f"{trial.name:<9}{trial.done:>7,} rounds {trial.seconds:>8,.1f} s {len(trial.faults):>4} faults  {done}")
    for fault in trial.faults:
        print(f"  {fault}")
    if trial.faults:
        print(f"  again: python -m tests.soak {trial.name} --seed {trial.seed} {trial.again}")


if __name__ == "__main__":
    sys.exit(main())
