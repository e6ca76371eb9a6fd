"""`python -m tests.soak [NAME...]`: break temporary vaults on purpose and report what was lost."""

from __future__ import annotations

import argparse
import random
import sys
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path

from tests.soak import extract, power, scenarios, team
from tests.soak.runner import Trial

SECONDS = 60.0
SOAKS: dict[str, tuple[Callable[[Trial], None], int]] = {
    "kill": (scenarios.kill, 2_000),
    "power": (power.cut_databases, 10_000),
    "names": (power.cut_notes, 10_000),
    "crowd": (scenarios.crowd, 10),
    "extract": (extract.kill, 600),
    "team": (team.faults, 600),
}
"""Each scenario, and how many rounds it is meant for."""


def main(arguments: Sequence[str] | None = None) -> int:
    """0 if every promise held; 3 if one was broken, with the faults and the command that repeats them."""
    parser = argparse.ArgumentParser(
        prog="python -m tests.soak",
        description="Kill, crowd and cut the power of temporary vaults, and report what was lost.",
        epilog=f"Each soak ends after its rounds or {SECONDS:.0f} seconds. --rounds alone has no time limit.",
    )
    # argparse compares the empty list with the choices, too
    parser.add_argument("name", nargs="*", choices=[*SOAKS, []], metavar="NAME", help=f"of {', '.join(SOAKS)}")
    parser.add_argument("--seed", type=int, default=random.SystemRandom().randrange(10**6), metavar="N")
    parser.add_argument("--seconds", type=float, metavar="S", help=f"time limit for each soak (default {SECONDS:.0f})")
    parser.add_argument("--rounds", type=int, metavar="N", help="number of rounds")
    parser.add_argument("--first", type=int, default=1, metavar="N", help="number of the first round")
    options = parser.parse_args(arguments)
    faults = 0
    with tempfile.TemporaryDirectory(prefix="co-soak-", ignore_cleanup_errors=True) as place:
        for name in options.name or SOAKS:
            run, rounds = SOAKS[name]
            seconds = options.seconds or (None if options.rounds else SECONDS)
            trial = Trial(name, Path(place), options.seed, options.rounds or rounds, seconds, options.first)
            try:
                run(trial)
            except KeyboardInterrupt:
                return 130
            finally:
                print(trial.summary())
                faults += len(trial.faults)
    return 3 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
