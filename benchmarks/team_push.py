"""A large push to a team vault while its members save: how long a save waits, and how soon everything is found.

Two servers run as in `team_load`, and one client on each saves every 200 ms. A branch with all files is merged at
the remote. A save counts as lost if the remote does not have it in the end.
"""

from __future__ import annotations

import asyncio
import re
import subprocess
import time
from dataclasses import dataclass, field
from statistics import median

import httpx2

from benchmarks.corpus import Writer
from benchmarks.measuring import BenchRow
from benchmarks.team_load import _lost, _serving, _team, _tokens
from benchmarks.vaults import Bar
from tests.vault.team.servers import Team, git

BEFORE = 500
"""Notes that the vault has before the push."""
EVERY, LONGEST_WAIT, PATIENCE = 0.2, 2.0, 1_800.0
FOLDER = "memories/pushed"


@dataclass
class Seen:
    """What clients saw while the files arrived."""

    waits: list[float] = field(default_factory=list[float])
    """Seconds of each save that began after the push."""
    pushed: float | None = None
    """When it arrived at the remote."""
    saved: list[str] = field(default_factory=list[str])
    errors: list[str] = field(default_factory=list[str])
    behind: float = 0.0
    """The most files that /metrics said to be behind."""
    found: float = 0.0
    """Seconds until all notes were in the index."""
    embedded: float = 0.0
    """Seconds until all of them had vectors."""


def bench_team_push(files: int, bar: Bar | None = None) -> list[BenchRow]:
    with _team(BEFORE, None) as (team, folders):
        (token,) = _tokens(team, folders[0], 1)
        with _serving(team, folders[0]) as one, _serving(team, folders[1]) as two:
            seen = asyncio.run(_watch(team, (one, two), token, files, bar))
            lost = _lost(team, seen.saved)
    longest = max(seen.waits)
    return [
        BenchRow("longest wait of a save", round(longest, 2), "s", longest / LONGEST_WAIT, 1.0),
        BenchRow("median", round(median(seen.waits), 2), "s"),
        BenchRow("saves", len(seen.waits), "requests"),
        BenchRow("until every pushed note is found", round(seen.found, 1), "s"),
        BenchRow("until every one has a vector", round(seen.embedded, 1), "s"),
        BenchRow("most files behind in /metrics", seen.behind, "files"),
        BenchRow("".join(["errors", *(f"; {one}" for one in seen.errors[:3])]), len(seen.errors), "requests"),
        BenchRow("saves that the remote does not have in the end", lost, "notes"),
    ]


async def _watch(team: Team, urls: tuple[str, str], token: str, files: int, bar: Bar | None) -> Seen:
    seen, done = Seen(), asyncio.Event()
    headers = {"Authorization": f"Bearer {token}"}
    clients = [httpx2.AsyncClient(base_url=url, headers=headers, timeout=120, verify=False) for url in urls]
    for one in clients:  # the first save compares the whole clone with the commit, and loads the model
        await one.post("/api/v1/notes", json={"content": f"The address of a server is {one.base_url}."})
    saving = [asyncio.create_task(_save(one, seen, done, 11 + n)) for n, one in enumerate(clients)]
    await asyncio.sleep(3)
    await asyncio.to_thread(_push, team, files)
    pushed = seen.pushed = time.monotonic()
    while not (seen.found and seen.embedded):
        assert time.monotonic() < pushed + PATIENCE, "not everything was found"
        await asyncio.sleep(0.5)
        metrics = (await clients[1].get("/metrics")).text
        behind = re.search(r"^co_files_behind (.+)$", metrics, re.MULTILINE)
        seen.behind = max(seen.behind, float(behind[1]) if behind else 0.0)
        arrived, waiting = await asyncio.to_thread(_arrived, team)
        if bar:
            bar(min(arrived, files), files)
        passed = time.monotonic() - pushed
        seen.found = seen.found or (passed if arrived >= files else 0.0)
        seen.embedded = seen.embedded or (passed if seen.found and not waiting else 0.0)
    await asyncio.sleep(1)
    done.set()
    await asyncio.gather(*saving)
    return seen


async def _save(client: httpx2.AsyncClient, seen: Seen, done: asyncio.Event, seed: int) -> None:
    """Save every 200 ms, or as soon as the last save is answered if that takes longer."""
    writer = Writer(seed)
    while not done.is_set():
        started, text = time.monotonic(), writer.sentence()
        try:
            answer = await client.post("/api/v1/notes", json={"content": text})
            problem = "" if answer.is_success else f"{answer.status_code} {answer.text[:200]}"
        except httpx2.HTTPError as error:
            problem = f"{type(error).__name__} {error}"
        waited = time.monotonic() - started
        seen.waits += [waited] if seen.pushed and started >= seen.pushed else []
        seen.errors += [problem] if problem else []
        seen.saved += [] if problem else [text]
        await asyncio.sleep(max(0.0, EVERY - waited))


def _push(team: Team, files: int) -> None:
    """A branch with this many small notes, merged at the remote."""
    writer = Writer(5)
    stream = bytearray(b"commit refs/heads/notes\ncommitter Nils <nils@example.org> 1700000000 +0000\ndata 6\nImport\n")
    stream += f"from {git(team.remote, 'rev-parse', 'main')}\n".encode()
    for number in range(files):
        text = f"{writer.sentence()}\n".encode()
        path = f"{FOLDER}/{number // 1_000}/note-{number}.md"
        stream += b"M 100644 inline %s\ndata %d\n%s\n" % (path.encode(), len(text), text)
    subprocess.run(["git", "fast-import", "--quiet"], cwd=team.remote, input=bytes(stream), check=True)
    for _ in range(100):
        head = git(team.remote, "rev-parse", "main")
        tree = git(team.remote, "merge-tree", "--write-tree", head, "notes")
        merged = git(team.remote, "commit-tree", tree, "-p", head, "-p", "notes", "-m", "Merge")
        try:
            git(team.remote, "update-ref", "refs/heads/main", merged, head)
        except subprocess.CalledProcessError:  # a server pushed meanwhile
            continue
        return
    raise RuntimeError("the notes could not be merged")


def _arrived(team: Team) -> tuple[int, int]:
    """How many of the pushed notes the index has, and how many of their passages wait for a vector."""
    ((store,),) = team.ask("select store from co_cli.stores")
    ((notes, waiting),) = team.ask(
        f"with pushed as (select id from {store}.docs where path like '{FOLDER}/%') "
        f"select (select count(*) from pushed), (select count(*) from {store}.waiting "
        f"join {store}.passages on passages.id = passage_id where doc_id in (select id from pushed))"
    )
    return int(str(notes)), int(str(waiting))
