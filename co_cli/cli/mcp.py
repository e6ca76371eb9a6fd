"""`co mcp`: serve the vault to MCP clients, over standard input and output or over HTTP."""

from __future__ import annotations

import argparse
import ipaddress
import os
import secrets
import sys

from co_cli.cli.opening import open_knowledge_base, print_json
from co_cli.errors import InvalidInputError
from co_cli.knowledge_base import KnowledgeBase
from co_cli.mcp.clients import (
    CLIENTS,
    TOKEN_VARIABLE,
    command_line,
    http_address,
    http_command,
    http_config,
    stdio_command,
    stdio_config,
)
from co_cli.tools import Toolbox

PORT = 8765
HOST = "127.0.0.1"
SHORTEST_TOKEN = 16

EPILOG = """\
A client starts `co mcp` itself and talks to it over standard input and output.
Print the configuration for your client:

  co mcp --print-config claude-code       a command to run
  co mcp --print-config claude-desktop    JSON, and the file it goes into
  co mcp --print-config cursor
  co mcp --print-config vscode

Serve a vault without any tool that writes:

  co mcp --vault ~/handbook --read-only

Serve several clients over HTTP. Without CO_MCP_TOKEN, a token is created for
this run and printed:

  co mcp --http --port 9000

See docs/guides/mcp.md.
"""


def add_mcp(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--read-only", action="store_true", help="offer no tool that writes")
    parser.add_argument("--tools", metavar="A,B", help="offer only these tools")
    parser.add_argument("--structured", action="store_true", help="send structured output besides the text")
    parser.add_argument("--print-config", choices=tuple(CLIENTS), metavar="CLIENT", help=", ".join(CLIENTS))
    group = parser.add_argument_group("over HTTP")
    group.add_argument("--http", action="store_true", help="listen on this machine instead of standard input")
    group.add_argument("--port", type=int, metavar="N", help=f"default {PORT}; 0 picks a free one")
    group.add_argument("--host", metavar="ADDRESS", help=f"default {HOST}; others need CO_MCP_TOKEN")
    group.add_argument("--allow-host", action="append", metavar="NAME", help="a host name that clients may use")
    parser.epilog = EPILOG
    parser.set_defaults(run=mcp)


def mcp(options: argparse.Namespace) -> int:
    _check(options)
    names = _names(options.tools)
    with open_knowledge_base(options, "mcp") as kb:
        toolbox = Toolbox(kb, names=names, read_only=options.read_only)
        if not toolbox.tools:
            raise InvalidInputError("no tool is left: --read-only removes those that write")
        if options.print_config:
            return _print_config(options, kb)
        if options.http:
            _serve_http(options, toolbox)
        else:
            _serve_stdio(options, toolbox)
        return 0


def _check(options: argparse.Namespace) -> None:
    given = {"--port": options.port, "--host": options.host, "--allow-host": options.allow_host}
    http_only = [name for name, value in given.items() if value is not None]
    if http_only and not options.http:
        raise InvalidInputError(f"{', '.join(http_only)}: only with --http")
    if options.port is not None and not 0 <= options.port <= 65_535:
        raise InvalidInputError(f"--port is between 0 and 65535, not {options.port}")
    if options.port == 0 and options.print_config:
        raise InvalidInputError("--port 0 picks another port each time: a client's configuration needs a fixed one")
    if options.host in ("0.0.0.0", "::") and not options.allow_host:
        raise InvalidInputError(f"--host {options.host} needs --allow-host with the name or address that clients use")


def _names(text: str | None) -> list[str] | None:
    if text is None:
        return None
    names = [name.strip() for name in text.split(",") if name.strip()]
    if not names:
        raise InvalidInputError("--tools takes names separated by commas, such as recall_memory,read_note")
    return names


def _serve_stdio(options: argparse.Namespace, toolbox: Toolbox) -> None:
    if sys.stdin is None:  # type: ignore[reportUnnecessaryComparison]  # it was closed
        raise InvalidInputError("co mcp reads requests from standard input, which is closed")
    if sys.stdin.isatty():
        print("co mcp: waiting for a client on standard input; see `co mcp --help`", file=sys.stderr)
    from co_cli.mcp.transports import serve_stdio

    serve_stdio(toolbox, options.structured)


def _serve_http(options: argparse.Namespace, toolbox: Toolbox) -> None:
    host, port = options.host or HOST, PORT if options.port is None else options.port
    token = _token(os.environ.get(TOKEN_VARIABLE, "").strip())
    local = _is_loopback(host)
    if token is None and not local:
        raise InvalidInputError(f"--host {host} opens the vault to the network: set {TOKEN_VARIABLE} first")
    from co_cli.mcp.transports import listen, serve_http

    listening = listen(host, port)
    address = http_address(host, listening.getsockname()[1])
    made = secrets.token_urlsafe(32) if token is None else None
    lines = [f"{address} serves {toolbox.kb.root}"]
    if made:
        lines.append(f"this token is for this run only; set {TOKEN_VARIABLE} to keep one")
    if not local:
        lines.append("this is plain HTTP: put a proxy with TLS in front of it")
    for line in (*lines, http_command(address, made)):
        print(f"co mcp: {line}", file=sys.stderr, flush=True)
    names = [*(options.allow_host or ()), *([] if local else [host])]
    serve_http(toolbox, options.structured, listening, made or str(token), names)


def _token(token: str) -> str | None:
    """The token from the environment, if one is set. There is no option for it: `ps` would show it."""
    if token and (len(token) < SHORTEST_TOKEN or not token.isascii() or len(token.split()) > 1):
        make = 'python3 -c "import secrets; print(secrets.token_urlsafe(32))"'
        raise InvalidInputError(
            f"{TOKEN_VARIABLE} needs {SHORTEST_TOKEN} or more ASCII characters without spaces; make one with {make}"
        )
    return token or None


def _is_loopback(host: str) -> bool:
    try:
        return host == "localhost" or ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def _print_config(options: argparse.Namespace, kb: KnowledgeBase) -> int:
    client = CLIENTS[options.print_config]
    if options.http:
        address = http_address(options.host or HOST, PORT if options.port is None else options.port)
        config, line = http_config(client.name, address), http_command(address)
    else:
        extra = [name for name in ("--read-only", "--structured") if getattr(options, name[2:].replace("-", "_"))]
        extra += ["--tools", options.tools] if options.tools else []
        command = command_line(kb.settings, extra)
        config, line = stdio_config(client.name, command), stdio_command(command)
    if client.name == "claude-code" and not options.json:
        print(line)
    else:
        print_json(config)
    print(f"{client.title}: {client.place}", file=sys.stderr)
    return 0
