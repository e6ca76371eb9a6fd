"""One event of a coding agent into what the client reads from stdout. What goes wrong is logged, never raised.

Clients start a process for each event, and most events need no note: what a search needs is imported for the others.
"""

from __future__ import annotations

import os

from co_cli.ground.errors import KnowledgeError
from co_cli.ground.paths import own_process
from co_cli.ground.settings import Settings, load_settings
from co_cli.hooks.environment import MARKER, restore_environment
from co_cli.hooks.hook_events import CHECK, HookEvent, reply


def answer(event: HookEvent, data: bytes, vault: str | None = None, data_dir: str | None = None) -> str:
    """What the client reads; empty if there is nothing for it. `data` is the event as it came."""
    try:
        settings = settings_for(event, vault, data_dir)
        if event.kind == "pause":
            if (event.transcript or event.conversation) and settings.capture != "off":
                _start_capture(event, data, settings, vault)
            return ""
        if event.kind == "prompt" and not event.prompt:
            return ""
        from co_cli.hooks.given_notes import given_text  # searches: 150 modules

        return reply(event, given_text(event, settings))
    except KnowledgeError as error:
        from co_cli.notes.logbook import logger  # imports logging

        logger("hook").warning("%s got nothing for %s: %s", event.client, event.name, error)
    except Exception as error:  # a client must not notice it
        from co_cli.notes.logbook import crashed

        crashed(error)
    return ""


def settings_for(event: HookEvent, vault: str | None, data_dir: str | None) -> Settings:
    """The settings of the folder that the client works in, with the variables of the day that it was set up."""
    if data_dir:
        restore_environment(data_dir)
    if os.path.isdir(event.folder):
        os.chdir(event.folder)
    unrecorded = {"query_log": "off"} if event.prompt == CHECK else {}
    return load_settings({"vault": vault, "data_dir": data_dir, **unrecorded})


def record_late(event: HookEvent, seconds: float, vault: str | None, data_dir: str | None) -> None:
    """The client was not answered in time: say so in co.log and, of a prompt, in the activity of its vault."""
    from co_cli.activity import Activity
    from co_cli.notes.logbook import logger

    settings = settings_for(event, vault, data_dir)
    logger("hook").warning("%s got nothing for %s: too slow, %.1f s", event.client, event.name, seconds)
    if event.kind == "prompt" and event.prompt:
        activity = Activity(settings, os.path.realpath(settings.vault), event.client, brief=True)
        activity.injected((), event.session or None, prompt=event.prompt, late=seconds)


def _start_capture(event: HookEvent, data: bytes, settings: Settings, vault: str | None) -> None:
    """Start the process that keeps the session. It gets the event as it came, and the folders that were chosen."""
    import subprocess  # 10 ms

    command, env = own_process("co_cli")
    places = ["--data-dir", settings.data_dir, *(["--vault", vault] if vault else [])]
    process = subprocess.Popen(
        [*command, "hook", event.client, "--capture", *places],
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        env={**env, MARKER: "1"},
        start_new_session=True,
        creationflags=getattr(subprocess, "DETACHED_PROCESS", 0),  # on Windows, where there are no sessions
    )
    assert process.stdin is not None
    with process.stdin:
        process.stdin.write(data)
