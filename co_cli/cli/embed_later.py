"""Vectors after an answer: a process of its own makes those that wait, so that no terminal waits for them. With the
extra `ocr`, it then reads the text of pictures.

`python -m co_cli.cli.embed_later VAULT DATA_DIR`. It works at low priority until nothing waits, and stores what it has
made after every few passages: it can be ended at any time, and the next command goes on. If another process already
makes vectors, it leaves them to that one.
"""

from __future__ import annotations

import os
import sys
from contextlib import suppress

from co_cli.entrance.local import open_local
from co_cli.ground.errors import KnowledgeError
from co_cli.ground.priority import LOW
from co_cli.ground.settings import Settings, load_settings
from co_cli.vault.vault import Opening, makes_vectors, read_pictures

DETACHED = 0x00000008
"""Windows' DETACHED_PROCESS: it outlives the terminal."""
MOST_SECONDS = 6 * 3600.0


def embed_later(settings: Settings) -> None:
    """Start such a process, unless one is at work."""
    import subprocess  # slow to import, and only where notes wait

    if makes_vectors(settings):
        return
    command = [sys.executable, "-m", __name__, settings.vault, settings.data_dir]
    none, flags = subprocess.DEVNULL, DETACHED if sys.platform == "win32" else 0
    with suppress(OSError):  # no room for another process: the next command tries again
        subprocess.Popen(command, stdin=none, stdout=none, stderr=none, start_new_session=True, creationflags=flags)


def main(vault: str, data_dir: str) -> None:
    if sys.platform != "win32":
        os.nice(LOW)
    settings = load_settings({"vault": vault, "data_dir": data_dir})
    with suppress(KnowledgeError), open_local(settings=settings, opening=Opening("cli", True)) as kb:
        kb.embed(MOST_SECONDS)
        if read_pictures(kb.vault):
            kb.embed(MOST_SECONDS)


if __name__ == "__main__":
    main(*sys.argv[1:])
