"""Install co in a coding agent with the agent's own commands, and undo it so that its files are as they were.

Before anything changes, the files that will change are backed up in the data folder. Undoing runs the client's commands
and then restores each file that nobody else changed meanwhile; of others only what is ours is removed.
"""

from __future__ import annotations

import base64
import contextlib
import difflib
import glob
import hashlib
import json
import os
import shutil
import subprocess
import time
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

from co_cli.ground.errors import BrokenError, InvalidInputError
from co_cli.hooks.clients import Client, read_settings
from co_cli.hooks.environment import FOLDER, MARKER
from co_cli.hooks.hook_events import CHECK
from co_cli.hooks.plugins import Started, opencode_plugin, plugin_files, with_settings, without_settings
from co_cli.notes.files import make_folders, read_json, replace

SECONDS, CHECK_SECONDS = 180, 30
BACKUP = ".before.json"
"""Beside the folder of a plugin: the client's files as they were, and hashes of what they became."""

Say = Callable[[str], None]


class ClientError(BrokenError):
    """A client refuses a command, or its settings cannot be edited."""


class HookTrial(NamedTuple):
    """What happened when a hook was run once."""

    problem: str
    """What is wrong with it; empty if it works."""
    seconds: float = 0.0


def folder_of(started: Started, client: Client) -> str:
    """Where the plugin of a client is written."""
    return os.path.join(started.data_dir, FOLDER, client.name)


def plan(client: Client, started: Started) -> Iterator[str]:
    """What `install` would do, as lines."""
    folder = folder_of(started, client)
    for path in plugin_files(client.name, started):
        yield f"write {os.path.join(folder, path)}"
    for words in client.add:
        yield f"run {' '.join([client.program, *(folder if word == 'DIR' else word for word in words)])}"
    for file in map(client.path, client.edits):
        yield from difference(file, *_edited(client, file, started))


def difference(path: str, before: str, after: str) -> Iterator[str]:
    lines = difflib.unified_diff(before.splitlines(), after.splitlines(), path, path, lineterm="", n=2)
    yield from (line for line in lines)


def install(client: Client, started: Started, say: Say) -> None:
    """Write the plugin, back up the client's files, and install it. What was installed before is replaced."""
    folder = folder_of(started, client)
    if os.path.exists(folder + BACKUP):
        undo(client, started, lambda _: None)
    edited = {file: _edited(client, file, started) for file in map(client.path, client.edits)}
    make_folders(folder, private=True)
    for path, text in plugin_files(client.name, started).items():
        file = os.path.join(folder, *path.split("/"))
        make_folders(os.path.dirname(file))
        replace(file, text.encode())
    watched = [client.path(path) for path in (*client.changed, *client.edits)]
    shared = {path: before for other in _others(folder) for path, before in other["before"].items()}
    there = [path for path in (*client.made, "") if os.path.isdir(client.path(path))]
    backup: dict[str, Any] = {
        "before": {path: shared.get(path, _content(path)) for path in watched},
        "folders": there,
    }
    replace(folder + BACKUP, json.dumps(backup).encode(), private=True)
    try:
        for words in client.add:
            _run(client, [folder if word == "DIR" else word for word in words], say)
        for file, (_, after) in edited.items():
            make_folders(os.path.dirname(file))
            replace(os.path.realpath(file), after.encode())
            say(f"changed {file}; the file as it was is in {folder + BACKUP}")
    finally:
        backup["after"] = {path: _hash(path) for path in watched}
        replace(folder + BACKUP, json.dumps(backup).encode(), private=True)


def undo(client: Client, started: Started, say: Say) -> None:
    """Remove what `install` installed. Raises InvalidInputError if it was not."""
    folder = folder_of(started, client)
    backup = read_json(folder + BACKUP)
    if not backup:
        raise InvalidInputError(f"co is not set up in {client.title}: `co setup` lists what each client has")
    untouched = {path for path, known in backup.get("after", {}).items() if _hash(path) == known}
    for words in client.remove:
        with contextlib.suppress(ClientError):  # it may have been removed in the client already
            _run(client, words, say)
    shared = {path for other in _others(folder) for path in other["before"]}
    for path, before in backup["before"].items():
        if path in shared:
            continue
        if path in untouched or path.endswith(".js"):
            _restore(path, before)
        elif path in map(client.path, (*client.edits, "settings.json")):  # an older co edited that of Qwen Code
            _remove_ours(client, path, say)
    if client.cache:
        shutil.rmtree(client.path(client.cache), ignore_errors=True)
    for path in (*client.made, ""):
        with contextlib.suppress(OSError):  # somebody else may have put something into it
            if path not in backup["folders"]:
                os.rmdir(client.path(path))
    shutil.rmtree(folder, ignore_errors=True)
    os.unlink(folder + BACKUP)


def _others(folder: str) -> list[dict[str, Any]]:
    """The backups of other clients that are set up: two of them read the same hooks."""
    found = glob.glob(os.path.join(glob.escape(os.path.dirname(folder)), f"*{BACKUP}"))
    return [read_json(path) for path in found if path != folder + BACKUP]


def _remove_ours(client: Client, path: str, say: Say) -> None:
    """Remove only what is ours from settings that somebody else changed."""
    try:
        settings = read_settings(path)
    except ValueError as error:
        say(f"{path} cannot be read ({error}): remove hooks and servers with ` hook {client.name} ` from it yourself")
        return
    kept = without_settings(client.name, settings)
    if kept != settings:
        replace(os.path.realpath(path), (json.dumps(kept, indent=2, ensure_ascii=False) + "\n").encode())


def try_hook(command: str, event_name: str = "UserPromptSubmit", data_dir: str = "") -> HookTrial:
    """Run a hook once, as a client does, with a prompt and more time than it has.

    A command that names no data folder uses this one, with the variables of now.
    """
    event = {"hook_event_name": event_name, "session_id": "", "prompt": CHECK, "cwd": os.getcwd()}
    started = time.monotonic()
    try:
        ran = subprocess.run(
            f"{command.removesuffix('|| true')} --seconds {CHECK_SECONDS}",  # `true` would hide what is wrong
            shell=True,
            input=json.dumps(event).encode(),
            env={**os.environ, **({"CO_DATA_DIR": os.path.abspath(data_dir)} if data_dir else {})},
            capture_output=True,
            timeout=CHECK_SECONDS,
            check=False,
        )
    except subprocess.TimeoutExpired:
        return HookTrial(f"it did not end within {CHECK_SECONDS} seconds")
    took = time.monotonic() - started
    said = ran.stdout.decode("utf-8", "replace")
    problem = " ".join(ran.stderr.decode("utf-8", "replace").split())[:200]
    if ran.returncode or problem:
        return HookTrial(f"it ended with {ran.returncode}: {problem}")
    try:
        json.loads(said or "{}")
    except ValueError:
        return HookTrial(f"it printed something that is not JSON: {said[:100]}")
    return HookTrial("", took)


def _edited(client: Client, file: str, started: Started) -> tuple[str, str]:
    """A file of the client as it is, and with what is ours."""
    try:
        if client.name == "opencode":
            after = opencode_plugin(started, folder_of(started, client))
        else:
            settings = with_settings(client.name, file, read_settings(file), started)
            after = json.dumps(settings, indent=2, ensure_ascii=False) + "\n"
    except (ValueError, TypeError, AttributeError, OSError) as error:
        raise ClientError(f"{file} cannot be edited ({error}): correct it, and run `co setup` again") from None
    with contextlib.suppress(FileNotFoundError), open(file, encoding="utf-8") as stream:
        return stream.read(), after
    return "", after


def _run(client: Client, words: list[str] | Any, say: Say) -> None:
    say(f"$ {' '.join([client.program, *words])}")
    try:
        ran = subprocess.run(
            [shutil.which(client.program) or client.program, *words],
            input=b"y\n",  # Gemini asks whether to trust our own folder
            capture_output=True,
            timeout=SECONDS,
            check=False,
            env={**os.environ, MARKER: "1"},
        )
    except FileNotFoundError:
        raise ClientError(f"{client.title} is not installed: there is no program {client.program}") from None
    except subprocess.TimeoutExpired:
        raise ClientError(f"`{client.program} {' '.join(words)}` did not end after {SECONDS} seconds") from None
    if ran.returncode:
        said = " ".join((ran.stderr or ran.stdout).decode("utf-8", "replace").split())[-300:]
        raise ClientError(f"`{client.program} {' '.join(words)}` ended with {ran.returncode}: {said}")


def _content(path: str) -> str | None:
    try:
        with open(path, "rb") as file:
            return base64.b64encode(file.read()).decode()
    except OSError:
        return None


def _hash(path: str) -> str | None:
    content = _content(path)
    return None if content is None else hashlib.sha256(content.encode()).hexdigest()


def _restore(path: str, before: str | None) -> None:
    file = os.path.realpath(path)  # settings may be a link to where somebody keeps them
    if before is not None:
        replace(file, base64.b64decode(before))
    else:
        with contextlib.suppress(FileNotFoundError):
            os.unlink(file)
