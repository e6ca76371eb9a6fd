"""Numbers of a server for /metrics, as they are now: keeper, git, connections to the database, reader and disk."""

from __future__ import annotations

import shutil
import time

from co_cli.entrance.local import LocalKnowledgeBase
from co_cli.server.access_tokens import team_of
from co_cli.server.metrics import Gauge


def gauges(kb: LocalKnowledgeBase) -> list[Gauge]:
    return [*_disk(kb), *_reader(kb), *_team(kb)]


def _disk(kb: LocalKnowledgeBase) -> list[Gauge]:
    about = "Bytes that are left where the vault and the data folder are."
    folders = {"vault": kb.root, "data": kb.settings.data_dir}
    return [
        Gauge("co_disk_free_bytes", about, shutil.disk_usage(path).free, {"folder": name})
        for name, path in folders.items()
    ]


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

    state, now = team.state(), time.time()
    age = 0.0 if state.oldest is None else max(0.0, now - state.oldest)
    quiet = now - state.checked_at if state.checked_at else float("inf")
    lag: list[Gauge] = []
    if replica := team.engine.replica:
        replica.keeps_up()  # nobody else may have asked
        lag.append(Gauge("co_replica_behind_bytes", "What the replica has not replayed.", replica.behind))
    used = "Connections of this server to the database, and requests that wait for one."
    return [
        *lag,
        Gauge("co_outbox_changes", "Saved changes that are not pushed yet.", state.outbox),
        Gauge("co_outbox_age_seconds", "Time since the first of them was saved.", age),
        Gauge("co_commits_behind", "Commits of the remote that were not taken over yet.", state.behind),
        Gauge("co_files_behind", "Files of these commits that are not in the vault yet.", state.files_behind),
        Gauge("co_keeper", "Whether this server is the keeper.", state.keeper == server_name()),
        Gauge("co_keeper_age_seconds", "Time since a keeper finished a round.", quiet),
        Gauge(
            "co_keeper_failing", "Whether its last round failed, such as that the remote is away.", bool(state.problem)
        ),
        *(
            Gauge("co_database_connections", used, count, {"state": name})
            for name, count in team.engine.pool_use().items()
        ),
    ]
