"""What /metrics says, as text for Prometheus: requests, and numbers of a server as they are now.

By hand: its library would be one more dependency.
"""

from __future__ import annotations

import os
import shutil
import sys
import time
from bisect import bisect_left
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from itertools import groupby
from math import isinf
from types import MappingProxyType
from typing import Literal, NamedTuple

from co_cli.entrance.local import LocalKnowledgeBase
from co_cli.server.access_tokens import team_of
from co_cli.version import __version__

SECONDS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)
"""The upper bounds of the histogram."""


class Gauge(NamedTuple):
    """A number as it is now. Those of one name follow each other."""

    name: str
    help: str
    value: float
    labels: Mapping[str, str] = MappingProxyType({})
    kind: Literal["gauge", "counter"] = "gauge"


class Metrics:
    """Requests by method, route and status, and how long each route took to answer. For one event loop."""

    def __init__(self) -> None:
        self._requests: Counter[tuple[str, str, int]] = Counter()
        self._times: dict[str, list[int]] = {}
        self._sums: defaultdict[str, float] = defaultdict(float)
        self.failed_sign_ins = 0

    def observe(self, method: str, route: str, status: int, seconds: float) -> None:
        self._requests[method, route, status] += 1
        self._times.setdefault(route, [0] * (len(SECONDS) + 1))[bisect_left(SECONDS, seconds)] += 1
        self._sums[route] += seconds

    def text(self, gauges: Sequence[Gauge] = ()) -> str:
        lines = ["# HELP co_requests_total Requests that were answered.", "# TYPE co_requests_total counter"]
        for (method, route, status), count in sorted(self._requests.items()):
            lines.append(f'co_requests_total{{method="{method}",route="{route}",status="{status}"}} {count}')
        lines.append("# HELP co_sign_ins_failed_total Sign-ins with a wrong code or token.")
        lines.append("# TYPE co_sign_ins_failed_total counter")
        lines.append(f"co_sign_ins_failed_total {self.failed_sign_ins}")
        lines.append("# HELP co_request_seconds Time until an answer began.")
        lines.append("# TYPE co_request_seconds histogram")
        for route, counts in sorted(self._times.items()):
            total = 0
            for bound, count in zip((*map(str, SECONDS), "+Inf"), counts, strict=True):
                total += count
                lines.append(f'co_request_seconds_bucket{{route="{route}",le="{bound}"}} {total}')
            lines.append(f'co_request_seconds_sum{{route="{route}"}} {self._sums[route]:.6f}')
            lines.append(f'co_request_seconds_count{{route="{route}"}} {total}')
        for (name, about, kind), group in groupby(gauges, lambda gauge: (gauge.name, gauge.help, gauge.kind)):
            lines += [f"# HELP {name} {about}", f"# TYPE {name} {kind}"]
            for gauge in group:
                labels = ",".join(f'{label}="{value}"' for label, value in gauge.labels.items())
                lines.append(f"{name}{f'{{{labels}}}' if labels else ''} {_number(gauge.value)}")
        return "\n".join(lines) + "\n"


def _number(value: float) -> str:
    """As Prometheus reads it, with all digits of a count."""
    return "+Inf" if isinf(value) else f"{value:.15g}"


def gauges(kb: LocalKnowledgeBase) -> list[Gauge]:
    """This process, notes, keeper, git, connections to the database, vectors, reader and disk, as they are now."""
    return [*_process(), *_disk(kb), *_notes(kb), *_reader(kb), *_team(kb)]


def _process() -> list[Gauge]:
    """Under the names that Prometheus's own clients give them."""
    found = [
        Gauge("co_build_info", "The version of this server.", 1, {"version": __version__}),
        Gauge("process_cpu_seconds_total", "Processor time that was used.", time.process_time(), kind="counter"),
    ]
    if sys.platform == "linux":
        with open("/proc/self/statm", encoding="ascii") as file:
            resident = int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")
        found.append(Gauge("process_resident_memory_bytes", "Memory in use.", resident))
    return found


def _disk(kb: LocalKnowledgeBase) -> list[Gauge]:
    about = "Bytes that are left where the vault and the data folder are."
    folders = {"vault": kb.root, "data": kb.settings.data_dir}
    return [
        Gauge("co_disk_free_bytes", about, shutil.disk_usage(path).free, {"folder": name})
        for name, path in folders.items()
    ]


def _notes(kb: LocalKnowledgeBase) -> list[Gauge]:
    waiting = kb.waiting()
    found = [
        Gauge("co_notes", "Notes of the vault.", kb.index.notes.state().notes),
        Gauge("co_passages_waiting", "Passages that wait for a vector.", waiting.passages),
    ]
    if waiting.seconds is not None:
        about = "About how long their vectors will take."
        found.append(Gauge("co_passages_waiting_seconds", about, round(waiting.seconds, 1)))
    return found


def _reader(kb: LocalKnowledgeBase) -> list[Gauge]:
    reader = kb.vault.reader
    if reader is None:
        return []
    return [
        Gauge("co_reader_pairs_total", "Passages that were read with a question.", reader.pairs_read, kind="counter"),
        Gauge("co_reader_kept_total", "Passages whose score was known already.", reader.pairs_kept, kind="counter"),
        Gauge("co_reader_seconds_total", "Time that searches spent reading.", reader.seconds_read, kind="counter"),
    ]


def _team(kb: LocalKnowledgeBase) -> list[Gauge]:
    """How far git and the replica are behind the database, who keeps the vault, and how busy the database is."""
    team = team_of(kb.vault)
    if team is None:
        return []
    from co_cli.vault.team.keeper import server_name  # PostgreSQL's packages are an extra

    state = team.state()
    quiet = float("inf") if state.silence is None else state.silence
    lag: list[Gauge] = []
    if replica := team.engine.replica:
        replica.keeps_up()  # nobody else may have asked
        lag.append(Gauge("co_replica_behind_bytes", "What the replica has not replayed.", replica.behind))
    used = "Connections of this server to the database, and requests that wait for one."
    return [
        *lag,
        Gauge("co_outbox_changes", "Saved changes that are not pushed yet.", state.outbox),
        Gauge("co_outbox_age_seconds", "Time since the first of them was saved.", state.waits),
        Gauge("co_commits_behind", "Commits of the remote that were not taken over yet.", state.behind),
        Gauge("co_files_behind", "Files of these commits that are not in the vault yet.", state.files_behind),
        Gauge("co_keeper", "Whether this server is the keeper.", state.keeper == server_name()),
        Gauge("co_keeper_age_seconds", "Time since a keeper finished a round.", quiet),
        Gauge("co_keeper_failing", "Whether its last round failed, as when the remote is down.", bool(state.problem)),
        *(
            Gauge("co_database_connections", used, count, {"state": name})
            for name, count in team.engine.pool_use().items()
        ),
    ]
