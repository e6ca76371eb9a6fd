"""Ten thousand notes with one title: all are indexed and found, and whoever saves one more waits no longer for that."""

from __future__ import annotations

import time

from tests.soak.contract import Trial
from tests.soak.vaults import open_vault

NOTES = 10_000
SAVES = 20
SYNC_SECONDS = 120.0
"""Of the processor, for all of them: far more than it takes, far less than what grows with their square."""
SAVE_SECONDS = 1.0


def run(trial: Trial, notes: int = NOTES) -> None:
    for number in trial.rounds():
        place = trial.folder(number)
        memories = place / "vault" / "memories"
        memories.mkdir(parents=True)
        for one in range(1, notes + 1):
            name = "same" if one == 1 else f"same-{one}"
            (memories / f"{name}.md").write_text(f"---\ntitle: Same\n---\nNumber{one} of them.\n", encoding="utf-8")
        with open_vault(place) as kb:
            begun = time.process_time()
            added = len(kb.sync().added)
            synced = time.process_time() - begun
            begun = time.process_time()
            saved = [
                kb.remember(f"Tree {trial.chance.randbytes(6).hex()}.", title="Same", on_related="keep").ref
                for _ in range(SAVES)
            ]
            each = (time.process_time() - begun) / SAVES
            wanted = trial.chance.randrange(1, notes + 1)
            found = [hit.ref for hit in kb.search(f"number{wanted}", backend="fts5").hits]
            called = len(kb.search("Same", limit=20).hits)
        trial.count("notes", added)
        trial.count("saves", len(saved))
        trial.count("CPU seconds of syncing", round(synced))
        trial.count("CPU ms a save", round(each * 1000))
        if added != notes:
            trial.fault(f"{added:,} of {notes:,} notes were indexed")
        if saved != [f"memory:same-{notes + one}" for one in range(1, SAVES + 1)]:
            trial.fault(f"saved as {saved}")
        if found != [f"memory:same-{wanted}" if wanted > 1 else "memory:same"]:
            trial.fault(f"number{wanted} was found as {found}")
        if called != 20:
            trial.fault(f"by their title {called} of 20 were found")
        if synced > SYNC_SECONDS or each > SAVE_SECONDS:
            trial.fault(f"syncing took {synced:.1f} s of the processor, a save {each:.2f} s")
