"""`co serve`: the vault for a team; `co token create`, `co token list` and `co token revoke`: who may use it."""

from __future__ import annotations

import argparse
import os
import sys
from dataclasses import replace

from co_cli.access import ROLES
from co_cli.cli.opening import open_knowledge_base, print_result, settings_of, sync_first
from co_cli.cli.terminal import printable
from co_cli.errors import InvalidInputError
from co_cli.server.access_tokens import AccessTokens
from co_cli.values import fields_of

HOST = "127.0.0.1"
PORT = 8767


def add_serve(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--port", type=int, default=PORT, metavar="N", help=f"default {PORT}; 0 picks a free one")
    parser.add_argument("--host", default=HOST, metavar="ADDRESS", help=f"default {HOST}; others need a token")
    parser.add_argument(
        "--allow-host", action="append", default=[], metavar="NAME", help="a host name that clients may use"
    )


def run_serve(options: argparse.Namespace) -> int:
    """
    Serves one vault, and the sources added to it, to everybody who has a token:
    the page, the JSON API at /api/v1 and MCP at /mcp. Your own vault and skills
    are not served along with a project's.

    examples:
      co token create --role write --name mara
      co serve
      co serve --host 0.0.0.0 --allow-host notes.example
    """
    from co_cli.http_server import listen, serve  # imports uvicorn
    from co_cli.mcp.transports import address_of
    from co_cli.server.team_site import TeamAccess, TeamSite

    settings = replace(settings_of(options), tiers="off", skill_folders=())  # nothing that is yours alone
    home = os.path.realpath(settings.vault)  # no skills of whoever started the server
    with (
        open_knowledge_base(options, "web", settings, home=home) as kb,
        listen(options.host, options.port) as listening,
    ):
        at, tokens = address_of(listening, options.host, options.allow_host), AccessTokens.of(kb.vault)
        if not (at.is_local or tokens.all()):
            raise InvalidInputError(
                f"--host {options.host} opens the vault to the network: `co token create --role write` first"
            )
        sync_first(kb)  # the first to ask should find everything
        access = TeamAccess(tokens)
        site = TeamSite(kb, access, at.hosts)
        about = [f"{printable(kb.root)} is at {at.url}"]
        about += [f"you may open {at.url}/#code={access.code} once, as admin"] if at.is_local else []
        about += [] if at.is_local else ["this is plain HTTP: put a proxy with TLS in front of it"]
        for line in about:
            print(f"co serve: {line}", file=sys.stderr, flush=True)
        serve(site, listening, site.events.stop_streams)
    return 0


def add_create(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--role", choices=ROLES, required=True, help="what it may do: read, write or admin")
    parser.add_argument("--name", help="whose it is; recorded with everything that is saved with it")


def run_create(options: argparse.Namespace) -> int:
    """
    The token opens this vault and no other. It is printed once, and only its hash
    is stored. `read` searches and reads; `write` also saves, changes and forgets
    notes; `admin` also repairs the index.

    examples:
      co token create --role write --name mara
      co token create --role read --name ci --vault ~/handbook
    """
    with open_knowledge_base(options) as kb:
        secret, token = AccessTokens.of(kb.vault).create(options.role, options.name)
    about = f"{token.name} ({token.role}) opens {token.vault}. This is the only time that the token is shown."
    if not options.json:
        print(printable(about), file=sys.stderr)  # CO_TOKEN=$(co token create ...) gets the token alone
    return print_result(options, {"token": secret, **fields_of(token)}, [secret])


def run_list(options: argparse.Namespace) -> int:
    """
    Lists the tokens of this vault. Only their hashes are stored.
    """
    with open_knowledge_base(options) as kb:
        tokens = AccessTokens.of(kb.vault).all()
    lines = [f"{token.name}  {token.role}  {token.vault}  since {token.created[:10]}" for token in tokens]
    return print_result(options, tokens, lines or ["There are no tokens: `co token create --role read` makes one."])


def add_revoke(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("name", help="its name, as `co token list` shows it")


def run_revoke(options: argparse.Namespace) -> int:
    """
    Running servers refuse it at once.

    example:
      co token revoke mara
    """
    with open_knowledge_base(options) as kb:
        token = AccessTokens.of(kb.vault).revoke(options.name)
    return print_result(options, token, [f"revoked {token.name}"])
