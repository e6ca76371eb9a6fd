"""Every soak: what it does to the program, how many rounds it is meant for, and the module that does it."""

from __future__ import annotations

from importlib import import_module
from typing import NamedTuple

from tests.soak.contract import Trial


class Entry(NamedTuple):
    """One soak. `rounds` is what it is meant for when nobody says otherwise."""

    about: str
    rounds: int
    module: str


SOAKS = {
    "kill": Entry("kill -9 while it saves, forgets, syncs, embeds and rebuilds", 2_000, "killing"),
    "power": Entry("power cuts: a disk that forgets what was not synced", 10_000, "power"),
    "names": Entry("power cuts while notes are written, renamed and trashed", 10_000, "names"),
    "opening": Entry("eight processes make search.db and activity.db at once", 480, "opening"),
    "crowd": Entry("eight processes write and search in one vault, and in two", 10, "crowding"),
    "twins": Entry("agents save the same fact or title at the same moment", 500, "twins"),
    "titles": Entry("ten thousand notes with one title: all found, saving goes on", 1, "namesakes"),
    "readers": Entry("a process searches while another writes without a pause", 20, "reading"),
    "stay": Entry("one process searches and syncs for long: does it grow?", 1_000, "staying"),
    "fuzz": Entry("mutations of notes, queries and refs: does it crash?", 1_300, "fuzzing"),
}


def soak(name: str, trial: Trial) -> None:
    """Run one."""
    import_module(f"tests.soak.{SOAKS[name].module}").run(trial)
