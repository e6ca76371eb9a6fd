"""With the embedded model, `co` never opens a connection: not to embed, not to search, not to check itself."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from tests.command import Co
from tests.vault import Vault

GUARDED = """
import sys

def refuse(event, arguments):
    if event in ("socket.connect", "socket.getaddrinfo", "socket.gethostbyname", "socket.sendto"):
        sys.stderr.write(f"touched the network: {event} {arguments}\\n")
        sys.stderr.flush()
        import os
        os._exit(77)

sys.addaudithook(refuse)
from co_cli.cli.app import main
code = main(sys.argv[1:])
sys.stdout.flush()
raise SystemExit(code)
"""


CONNECT = "import socket; socket.create_connection(('127.0.0.1', 9))\n"
COMMANDS = (
    ("search", "how do we calm an angry customer"),
    ("index", "sync"),
    ("index", "reembed", "--fresh"),
    ("doctor",),
)


def guarded(code: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, "-c", code, *arguments], capture_output=True, text=True, timeout=60)


def test_no_command_touches_the_network(co: Co, vault: Vault, data_dir: Path) -> None:
    vault.write("memories/apology.md", "De-escalation starts with an apology to the client.")

    for arguments in COMMANDS:
        ran = guarded(GUARDED, *arguments)
        assert (ran.returncode, ran.stderr) == (0, ""), arguments
        assert arguments[0] != "search" or "memory:apology" in ran.stdout
    ran = guarded(GUARDED.replace("from co_cli", f"{CONNECT}from co_cli"))
    assert (ran.returncode, ran.stderr.startswith("touched the network: socket.")) == (77, True), "the guard works"
