"""`co mcp`: serve the vault to MCP clients, over standard input and output or over HTTP on this machine."""

from __future__ import annotations

import argparse
import gc
import os
import sys

from co_cli.cli.opening import open_knowledge_base, print_json
from co_cli.errors import InvalidInputError
from co_cli.knowledge_base import KnowledgeBase
from co_cli.mcp.access import find_token, is_loopback
from co_cli.mcp.clients import CLIENTS, command_line, http_command, http_config, stdio_command, stdio_config
from co_cli.mcp.listening import http_address, listen, port_of
from co_cli.tools import Toolbox

PORT = 8765
HOST = "127.0.0.1"

EPILOG = """\
A client starts `co mcp` itself and speaks to it over standard input and
output; you tell it once:

  co mcp --print-config claude-code       a command to run
  co mcp --print-config claude-desktop    JSON, and the file it goes into
  co mcp --print-config cursor
  co mcp --print-config vscode

Give one vault to look at, and nothing to change:

  co mcp --vault ~/handbook --read-only

Over HTTP, for several clients of one server or one that cannot start programs.
A token is made for the run and shown; keep one in CO_MCP_TOKEN or a file:

  co mcp --http
  co mcp --http --port 9000 --token-file ~/.config/co-cli/token

The guide is docs/guides/mcp.md.
"""


def add_mcp(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--read-only", action="store_true", help="offer no tool that writes")
    parser.add_argument("--tools", metavar="A,B", help="offer only these tools")
    parser.add_argument("--print-config", choices=tuple(CLIENTS), metavar="CLIENT", help=", ".join(CLIENTS))
    group = parser.add_argument_group("over HTTP")
    group.add_argument("--http", action="store_true", help="listen on this machine instead of standard input")
    group.add_argument("--port", type=int, metavar="N", help=f"default {PORT}; 0 takes a free one")
    group.add_argument("--host", metavar="ADDRESS", help=f"default {HOST}; another one needs a token of yours")
    group.add_argument("--allow-host", action="append", metavar="NAME", help="a name that clients may call it by")
    group.add_argument("--token-file", metavar="FILE", help="where the token is (else CO_MCP_TOKEN, else a new one)")
    parser.epilog = EPILOG
    parser.set_defaults(run=mcp)


def mcp(options: argparse.Namespace) -> int:
    _check(options)
    names = _names(options.tools)
    with open_knowledge_base(options, "mcp") as kb:
        toolbox = Toolbox(kb, names=names, read_only=options.read_only)
        if not toolbox.tools:
            raise InvalidInputError("no tool is left: --read-only leaves out those that write")
        if options.print_config:
            return _print_config(options, kb)
        return _serve_http(options, toolbox) if options.http else _serve_stdio(toolbox)


def _check(options: argparse.Namespace) -> None:
    over_http = [
        name
        for name, value in (
            ("--port", options.port),
            ("--host", options.host),
            ("--allow-host", options.allow_host),
            ("--token-file", options.token_file),
        )
        if value is not None
    ]
    if over_http and not options.http:
        raise InvalidInputError(f"{', '.join(over_http)} only means something with --http")
    if options.port is not None and not 0 <= options.port <= 65_535:
        raise InvalidInputError(f"--port is between 0 and 65535, not {options.port}")
    if options.port == 0 and options.print_config:
        raise InvalidInputError("--port 0 takes another port each time: a client's configuration needs one that stays")


def _names(text: str | None) -> list[str] | None:
    if text is None:
        return None
    names = [name.strip() for name in text.split(",") if name.strip()]
    if not names:
        raise InvalidInputError("--tools takes names with commas between them, such as recall_memory,read_note")
    return names


def _serve_stdio(toolbox: Toolbox) -> int:
    if sys.stdin is None:  # type: ignore[reportUnnecessaryComparison]  # somebody closed it
        raise InvalidInputError("co mcp reads requests from standard input, and there is none")
    if sys.stdin.isatty():
        print(
            "co mcp: waiting for a client on standard input; `co mcp --help` tells how one starts it", file=sys.stderr
        )
    gc.disable()  # the SDK makes a million objects to keep: looking through them meanwhile costs a tenth of the start
    from co_cli.mcp.server import McpDoor
    from co_cli.mcp.stdio import serve_stdio

    serve_stdio(McpDoor(toolbox), ready=_started)
    return 0


def _started() -> None:
    gc.freeze()
    gc.enable()


def _serve_http(options: argparse.Namespace, toolbox: Toolbox) -> int:
    host, port = options.host or HOST, PORT if options.port is None else options.port
    token = find_token(options.token_file, os.environ)
    if token.made and not is_loopback(host):
        raise InvalidInputError(
            f"--host {host} opens the vault to the network: set a token of yours first, in CO_MCP_TOKEN or --token-file"
        )
    listening = listen(host, port)
    address = http_address(host, port_of(listening))
    told = [f"{address} serves {toolbox.kb.root}"]
    if token.made:
        told.append("the token is for this run; set CO_MCP_TOKEN to keep one")
    if not is_loopback(host):
        told.append("it speaks plain HTTP: put it behind something that speaks TLS")
    told.append(http_command(address, token.value if token.made else None))
    for line in told:
        print(f"co mcp: {line}", file=sys.stderr, flush=True)
    from co_cli.mcp.http import serve_http
    from co_cli.mcp.server import McpDoor

    serve_http(McpDoor(toolbox), listening, host, token.value, options.allow_host or ())
    return 0


def _print_config(options: argparse.Namespace, kb: KnowledgeBase) -> int:
    client = CLIENTS[options.print_config]
    if options.http:
        address = http_address(options.host or HOST, PORT if options.port is None else options.port)
        config, line = http_config(client.name, address), http_command(address)
    else:
        extra = ["--read-only"] if options.read_only else []
        extra += ["--tools", options.tools] if options.tools else []
        command = command_line(kb.settings, extra)
        config, line = stdio_config(client.name, command), stdio_command(command)
    if client.name == "claude-code" and not options.json:
        print(line)
    else:
        print_json(config)
    print(f"{client.title}: {client.place}", file=sys.stderr)
    return 0
