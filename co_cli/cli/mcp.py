"""`co mcp`: serve the vault to MCP clients, over standard input and output or over HTTP."""

from __future__ import annotations

import argparse
import contextlib
import sys

from co_cli.cli.opening import open_knowledge_base, print_json
from co_cli.cli.terminal import print_message
from co_cli.ground.errors import InvalidInputError
from co_cli.ground.settings import Settings
from co_cli.mcp.client_configs import (
    CLIENTS,
    PATH,
    add_command,
    authority,
    client_config,
    command_line,
    config_text,
    environment,
)
from co_cli.tools.toolbox import Toolbox

PORT = 8765
HOST = "127.0.0.1"
AT_A_TERMINAL = (
    "co mcp is an MCP server. A client such as Claude Code starts it itself: `co mcp --print-config CLIENT` prints "
    f"what to configure ({', '.join(CLIENTS)}). It waits for a client on standard input now; Ctrl-C ends it."
)


def add_mcp(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--read-only", action="store_true", help="offer only tools that read")
    parser.add_argument("--tools", metavar="A,B", help="offer only these tools; `default` means the usual ones")
    parser.add_argument("--structured", action="store_true", help="send structured output besides the text")
    parser.add_argument("--print-config", choices=tuple(CLIENTS), metavar="CLIENT", help=", ".join(CLIENTS))
    group = parser.add_argument_group("over HTTP")
    group.add_argument("--http", action="store_true", help="listen on this machine instead of standard input")
    group.add_argument("--port", type=int, default=PORT, metavar="N", help=f"default {PORT}; 0 picks a free one")
    group.add_argument("--host", default=HOST, metavar="ADDRESS", help=f"default {HOST}; others need CO_MCP_TOKEN")
    group.add_argument(
        "--allow-host", action="append", default=[], metavar="NAME", help="a host name that clients may use"
    )


def run_mcp(options: argparse.Namespace) -> int:
    """
    A client starts `co mcp` itself and talks to it over standard input and output.

    examples:
      co mcp --print-config claude-code       a command to run
      co mcp --print-config claude-desktop    JSON, and the file it goes into
      co mcp --vault ~/handbook --read-only   offer only tools that read
      co mcp --http --port 9000               several clients; a token is created
                                              unless CO_MCP_TOKEN is set
    """
    if not options.http and (options.host, options.port, options.allow_host) != (HOST, PORT, []):
        raise InvalidInputError("--host, --port and --allow-host only work with --http")
    names = None if options.tools is None else [name.strip() for name in options.tools.split(",") if name.strip()]
    with open_knowledge_base(options, "mcp") as kb:
        toolbox = Toolbox(kb, names=names, read_only=options.read_only)
        if not toolbox.tools:
            raise InvalidInputError("no tool is left: name some with --tools; --read-only removes those that write")
        if options.print_config:
            _print_config(options, kb.settings)
            return 0
        from co_cli.mcp.transports import serve_http, serve_stdio  # imports the MCP SDK

        with contextlib.closing(toolbox.freshener) as freshener:
            freshener.watch()
            if options.http:
                serve_http(toolbox, options.structured, options.host, options.port, options.allow_host)
                return 0
            if sys.stdin.isatty():
                print_message(AT_A_TERMINAL, sys.stderr)
            serve_stdio(toolbox, options.structured)
    return 0


def _print_config(options: argparse.Namespace, settings: Settings) -> None:
    client = options.print_config
    extra = [name for name in ("--read-only", "--structured") if getattr(options, name[2:].replace("-", "_"))]
    extra += ["--tools", options.tools] if options.tools else []
    command = command_line(settings, extra)
    address = f"http://{authority(options.host, options.port)}{PATH}" if options.http else ""
    if client == "claude-code" and not options.json:
        print(add_command(command, address, env=environment(settings)))
    else:
        config = client_config(client, command, address, environment(settings))
        text = None if options.json else config_text(client, config)
        print_json(config) if text is None else print(text)
    print(f"{client}: {CLIENTS[client]}", file=sys.stderr)
