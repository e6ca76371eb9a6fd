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
from co_cli.mcp.clients import CLIENTS, TOKEN_VARIABLE, add_command, client_config, command_line, url_of
from co_cli.tools import Toolbox

PORT = 8765
HOST = "127.0.0.1"
SHORTEST_TOKEN = 16


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


def run_mcp(options: argparse.Namespace) -> int:
    """
    A client starts `co mcp` itself and talks to it over standard input and output.

    examples:
      co mcp --print-config claude-code       a command to run
      co mcp --print-config claude-desktop    JSON, and the file it goes into
      co mcp --vault ~/handbook --read-only   offer no tool that writes
      co mcp --http --port 9000               several clients; a token is created
                                              unless CO_MCP_TOKEN is set
    """
    _check(options)
    names = None if options.tools is None else [name.strip() for name in options.tools.split(",") if name.strip()]
    with open_knowledge_base(options, "mcp") as kb:
        toolbox = Toolbox(kb, names=names, read_only=options.read_only)
        if not toolbox.tools:
            raise InvalidInputError("no tool is left: name some with --tools; --read-only removes those that write")
        if options.print_config:
            return _print_config(options, kb)
        token = _read_token(options.host) if options.http else ""
        from co_cli.mcp.transports import listen, serve_http, serve_stdio  # imports the MCP SDK

        if not options.http:
            if sys.stdin.isatty():
                print("co mcp: waiting for a client on standard input; see `co mcp --help`", file=sys.stderr)
            serve_stdio(toolbox, options.structured)
            return 0
        listening = listen(options.host, options.port)
        made = "" if token else secrets.token_urlsafe(32)
        is_local = _is_loopback(options.host)
        _announce(url_of(options.host, listening.getsockname()[1]), kb.root, made, is_local)
        names = [*(options.allow_host or ()), *([] if is_local else [options.host])]
        serve_http(toolbox, options.structured, listening, made or token, names)
    return 0


def _check(options: argparse.Namespace) -> None:
    given = {"--port": options.port, "--host": options.host, "--allow-host": options.allow_host}
    http_only = [name for name, value in given.items() if value is not None]
    if http_only and not options.http:
        raise InvalidInputError(f"{', '.join(http_only)}: only with --http")
    options.host = options.host or HOST
    options.port = PORT if options.port is None else options.port
    if not 0 <= options.port <= 65_535:
        raise InvalidInputError(f"--port is between 0 and 65535, not {options.port}")
    if options.port == 0 and options.print_config:
        raise InvalidInputError("--port 0 picks another port each time: a client's configuration needs a fixed one")
    if options.host in ("0.0.0.0", "::") and not options.allow_host:
        raise InvalidInputError(f"--host {options.host} needs --allow-host with the name or address that clients use")


def _read_token(host: str) -> str:
    """The token from the environment; empty if one has to be made."""
    token = os.environ.get(TOKEN_VARIABLE, "").strip()
    if token and (len(token) < SHORTEST_TOKEN or not token.isascii() or " " in token):
        make = 'python3 -c "import secrets; print(secrets.token_urlsafe(32))"'
        raise InvalidInputError(
            f"{TOKEN_VARIABLE} needs {SHORTEST_TOKEN} or more ASCII characters without spaces; make one with {make}"
        )
    if not token and not _is_loopback(host):
        raise InvalidInputError(f"--host {host} opens the vault to the network: set {TOKEN_VARIABLE} first")
    return token


def _announce(address: str, root: str, made: str, is_local: bool) -> None:
    """Say where the server listens, and show the token that was made for this run, if one was."""
    lines = [f"{address} serves {root}"]
    lines += [f"this token is for this run only; set {TOKEN_VARIABLE} to keep one"] if made else []
    lines += [] if is_local else ["this is plain HTTP: put a proxy with TLS in front of it"]
    for line in (*lines, add_command((), address, made)):
        print(f"co mcp: {line}", file=sys.stderr, flush=True)


def _is_loopback(host: str) -> bool:
    try:
        return host == "localhost" or ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def _print_config(options: argparse.Namespace, kb: KnowledgeBase) -> int:
    client, address = options.print_config, url_of(options.host, options.port) if options.http else ""
    extra = [name for name in ("--read-only", "--structured") if getattr(options, name[2:].replace("-", "_"))]
    extra += ["--tools", options.tools] if options.tools else []
    command = command_line(kb.settings, extra)
    if client == "claude-code" and not options.json:
        print(add_command(command, address))
    else:
        print_json(client_config(client, command, address))
    print(f"{client}: {CLIENTS[client]}", file=sys.stderr)
    return 0
