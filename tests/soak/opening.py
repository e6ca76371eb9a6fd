"""Eight processes open search.db and activity.db at the same moment, and nothing usable is there yet.

Nothing at all, an empty file, another version, somebody else's file, what a killed rebuild left: whatever it is, all
eight get a database that works, no embedded vector is lost, and what is set aside is set aside once.
"""

from __future__ import annotations

import os
import random
from collections.abc import Callable
from multiprocessing.connection import Connection
from pathlib import Path

import apsw

from co_cli.activity.database import ActivityDatabase
from co_cli.index.sqlite.connection import APPLICATION, SCHEMA, SCHEMA_VERSION, Database, vector_extension
from co_cli.index.sqlite.files import create, fresh_path
from tests.soak.comparing import unsound
from tests.soak.contract import Trial
from tests.soak.processes import processes

TOGETHER = 8
SCRATCH = "select count(*) from embedding_cache"
ADD_SPACE = """
insert into spaces (provider, model, dimensions, prompts) values ('ollama', 'm', 1, '1')
"""
ADD_CACHED = "insert into embedding_cache (space_id, hash, vector, used) values (1, x'00', x'00', 1)"


def run(trial: Trial) -> None:
    with processes(open_when_told, [()] * TOGETHER) as opening:
        for number in trial.rounds():
            place = trial.folder(number)
            found = list(FOUND)[number % len(FOUND)]
            cached, aside = FOUND[found](str(place / "search.db"), trial.chance)
            for process in opening:
                process.pipe.send(str(place))
            answers = [process.says() for process in opening]
            trial.count("tries", TOGETHER)
            for answer in answers:
                if answer != "opened":
                    trial.fault(f"{found}: {answer or 'the process ended'}")
            for problem in _check(place, cached, aside):
                trial.fault(f"{found}: {problem}")


def _check(place: Path, cached: int, aside: int) -> list[str]:
    problems: list[str] = []
    database = Database(str(place / "search.db"), vector_extension())
    try:
        problem = unsound(database)
        if problem:
            return [problem]
        with database.reading() as connection:
            if connection.execute(SCRATCH).get != cached:
                problems.append("the vectors that were embedded before are lost")
    finally:
        database.close()
    names = [file.name for file in place.iterdir()]
    kept = [name for name in names if name.startswith("search.db.2")]
    if len(kept) != aside:
        problems.append(f"set aside: {kept}")
    problems += [f"{name} was left behind" for name in names if name.startswith("search.db.new")]
    return problems


def open_when_told(pipe: Connection) -> None:
    """Open both databases of each folder that is named."""
    while True:
        try:
            place = pipe.recv()
        except EOFError:
            return
        databases = (Database(os.path.join(place, "search.db"), vector_extension()), ActivityDatabase(place))
        try:
            for database in databases:
                with database.writing() as connection:
                    connection.execute("select count(*) from vaults")
            pipe.send("opened")
        except Exception as error:
            pipe.send(f"{type(error).__name__}: {error}")
        finally:
            for database in databases:
                database.close()


# -- what is found there; each says how many cached vectors are to survive, and how many files are to be set aside ---

Left = tuple[int, int]


def _nothing(path: str, chance: random.Random) -> Left:
    return 0, 0


def _empty(path: str, chance: random.Random) -> Left:
    Path(path).touch()
    return 0, 0


def _log_alone(path: str, chance: random.Random) -> Left:
    """Of a database that is gone: it must not meet the new one."""
    Path(f"{path}-wal").write_bytes(chance.randbytes(5_000))
    return 0, 0


def _rubbish(path: str, chance: random.Random) -> Left:
    Path(path).write_bytes(chance.randbytes(10_000))
    return 0, 1


def _another_version(path: str, chance: random.Random) -> Left:
    _make(path)
    connection = apsw.Connection(path)
    connection.pragma("user_version", 1)
    connection.close()
    return 1, 0


def _killed_in_a_rebuild(path: str, chance: random.Random) -> Left:
    _make(path)
    Path(fresh_path(path)).write_bytes(Path(path).read_bytes()[: chance.randrange(1, 20) * 4096])
    Path(f"{fresh_path(path)}-wal").write_bytes(b"")
    return 1, 0


def _killed_in_a_swap(path: str, chance: random.Random) -> Left:
    _make(fresh_path(path))
    if chance.random() < 0.5:
        Path(f"{path}-wal").write_bytes(chance.randbytes(5_000))
    return 1, 0


def _make(path: str) -> None:
    create(path, SCHEMA.decode(), SCHEMA_VERSION, APPLICATION)
    connection = apsw.Connection(path)
    connection.execute(ADD_SPACE)
    connection.execute(ADD_CACHED)
    connection.close()


FOUND: dict[str, Callable[[str, random.Random], Left]] = {
    "nothing there": _nothing,
    "an empty file": _empty,
    "a log alone": _log_alone,
    "rubbish": _rubbish,
    "another version": _another_version,
    "killed in a rebuild": _killed_in_a_rebuild,
    "killed in a swap": _killed_in_a_swap,
}
