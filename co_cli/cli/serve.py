"""`co serve`: the vault for a team; `co token create`, `rotate`, `revoke`, `list` and `log`: who may use it."""

from __future__ import annotations

import argparse
import os
import signal
import sys
import time
from collections.abc import Callable, Collection
from contextlib import ExitStack, suppress
from dataclasses import replace
from typing import TYPE_CHECKING

from co_cli.cli.app import read_secret_files
from co_cli.cli.opening import at_least_1, open_knowledge_base, print_result, settings_of
from co_cli.cli.terminal import age, printable
from co_cli.ground.access import PER_SECOND, ROLES, Token
from co_cli.ground.errors import IndexUnavailableError, InvalidInputError, KnowledgeError
from co_cli.ground.paths import install_line
from co_cli.ground.settings import Settings
from co_cli.ground.values import fields_of, moment_text
from co_cli.server.access_tokens import AccessTokens, team_of

if TYPE_CHECKING:
    from co_cli.mcp.transports import Address
    from co_cli.server.open_id import OpenId  # its packages are an extra
    from co_cli.server.team_site import TeamSite

HOST = "127.0.0.1"
PORT = 8767


def add_serve(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--port", type=int, default=PORT, metavar="N", help=f"default {PORT}; 0 picks a free one")
    parser.add_argument("--host", default=HOST, metavar="ADDRESS", help=f"default {HOST}; others need a token")
    parser.add_argument(
        "--allow-host", action="append", default=[], metavar="NAME", help="a host name that clients may use"
    )
    parser.add_argument("--audit", metavar="FILE", help="log who asked for what, as JSON lines without texts")
    parser.add_argument("--vaults", metavar="FILE", help="serve the vaults that this TOML file lists")


def run_serve(options: argparse.Namespace) -> int:
    """
    Serves one vault, and the sources added to it, to everybody who has a token:
    the page, the JSON API at /api/v1 and MCP at /mcp. Your own vault and skills
    are not served along with a project's. With --vaults, one server serves many,
    each under a host name of its own.

    examples:
      co token create --role write --name mara
      co serve
      co serve --host 0.0.0.0 --allow-host notes.example
      co serve --vaults vaults.toml
      co serve --audit /var/log/co/audit.jsonl
    """
    from co_cli.http.http_server import listen, serve  # imports uvicorn
    from co_cli.mcp.transports import address_of
    from co_cli.server.server_log import log, log_to_stderr
    from co_cli.server.vaults_site import VaultsSite

    with ExitStack() as stack:
        hangup = getattr(signal, "SIGHUP", None)  # Windows has none
        if hangup and not sys.stderr.isatty():  # one that comes before it is handled would end the server
            stack.callback(signal.signal, hangup, signal.signal(hangup, signal.SIG_IGN))
        given = _read_settings(options)
        listening = stack.enter_context(listen(options.host, options.port))
        at = address_of(listening, options.host, [*options.allow_host, *filter(None, given)])
        is_terminal = False

        def announce(site: TeamSite, name: str) -> None:
            log.info("%s is at %s", site.kb.root, name, extra={"fields": {"url": at.url}})
            if not options.vaults and at.is_local and is_terminal:  # a log is no place for a code that lets somebody in
                code = f"{at.url}/#code={site.access.code}"
                print(f"co serve: you may open {code} once, as admin", file=sys.stderr, flush=True)
            if not at.is_local:
                log.warning("this is plain HTTP: put a proxy with TLS in front of it")

        def reload() -> None:
            try:
                read_secret_files()
                read = _read_settings(options)
            except KnowledgeError as error:
                log.warning("settings were not read again: %s", error)
                return
            if read.keys() != sites.keys():
                log.warning("start the server again to add or remove vaults")
            for host in read.keys() & sites.keys():
                try:
                    sites[host].reload(read[host])
                except KnowledgeError as error:
                    log.warning("%s: settings were not read again: %s", sites[host].kb.root, error)

        sites = {
            host: _open_site(
                stack, options, settings, at, [host, f"{host}:*"] if host else at.hosts,
                lambda site, name=f"{host}, at {at.url}" if host else at.url: announce(site, name),
            )
            for host, settings in given.items()
        }  # fmt: skip
        is_terminal = log_to_stderr()
        served = VaultsSite(sites)
        # who closes a terminal ends what runs there
        on_reload = None if is_terminal else reload
        serve(sites.get("", served), listening, served.stop_streams, on_reload, served.leave)
    return 0


def _read_settings(options: argparse.Namespace) -> dict[str, Settings]:
    """Those of each vault by its host name; one that is served under every name has none."""
    from co_cli.server.vaults_site import read_vaults  # imports starlette

    many = {vault.host: vault.settings for vault in read_vaults(options.vaults)} if options.vaults else {}
    found = many or {"": settings_of(options)}
    audit = {"audit": os.path.abspath(options.audit)} if options.audit else {}
    # nothing that is yours alone
    return {host: replace(settings, tiers="off", skill_folders=(), **audit) for host, settings in found.items()}


def _open_site(
    stack: ExitStack,
    options: argparse.Namespace,
    settings: Settings,
    at: Address,
    hosts: Collection[str],
    announce: Callable[[TeamSite], object],
) -> TeamSite:
    """The app of one vault. It answers when everything is indexed, and `announce` is called then."""
    from co_cli.server.team_site import TeamAccess, TeamSite

    home = os.path.realpath(settings.vault)  # no skills of whoever started the server
    kb = stack.enter_context(open_knowledge_base(options, "web", settings, home=home))
    with suppress(IndexUnavailableError):  # it may come back; a database that cannot be used ends the server
        kb.index.notes.state()
    tokens = AccessTokens.of(kb.vault)
    open_id = _open_id(settings, tokens.vault)
    is_team = team_of(kb.vault) is not None  # its tokens are in the database, and may be made when servers run already
    if not (at.is_local or is_team or tokens.all() or open_id):
        raise InvalidInputError(
            f"--host {options.host} opens {printable(kb.root)} to the network: `co token create --role write` first"
        )
    return TeamSite(kb, TeamAccess(tokens, open_id), hosts, announce)


def _open_id(settings: Settings, vault: str) -> OpenId | None:
    """The provider that people may sign in with, if one is set."""
    if not settings.oidc_issuer:
        return None
    try:
        from co_cli.http.http_server import token_in
        from co_cli.server.open_id import SECRET, OpenId
    except ImportError:
        raise InvalidInputError(f"oidc_issuer needs more packages: `{install_line('openid')}`") from None
    return OpenId(settings, token_in(SECRET), vault)


def add_create(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--role", choices=ROLES, required=True, help="what it may do: metrics, read, write or admin")
    parser.add_argument("--name", help="whose it is; recorded with everything that is saved with it")
    parser.add_argument(
        "--days", type=at_least_1, default=0, metavar="N", help="it expires after N days (default: never)"
    )
    parser.add_argument(
        "--per-second", type=at_least_1, default=0, metavar="N", help=f"requests a second (default {PER_SECOND})"
    )


def run_create(options: argparse.Namespace) -> int:
    """
    The token opens this vault and no other. It is printed once, and only its hash
    is stored. `read` searches and reads; `write` also saves, changes and forgets
    notes; `admin` also repairs the index and manages tokens; `metrics` reads
    /metrics and nothing else.

    examples:
      co token create --role write --name mara --days 90
      co token create --role read --name ci --vault ~/handbook
      co token create --role metrics --name prometheus
    """
    with open_knowledge_base(options) as kb:
        secret, token = AccessTokens.of(kb.vault).create(options.role, options.name, options.days, options.per_second)
    return _print_secret(options, secret, token)


def add_rotate(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("name", help="its name, as `co token list` shows it")
    parser.add_argument(
        "--keep",
        type=at_least_1,
        default=0,
        metavar="HOURS",
        help="how long the old one still works (default: not at all)",
    )


def run_rotate(options: argparse.Namespace) -> int:
    """
    The new token has the name, role and limit of the old one, and is valid for as
    long as the old one was when it was new. It is printed once.

    examples:
      co token rotate ci
      co token rotate ci --keep 24
    """
    with open_knowledge_base(options) as kb:
        secret, token = AccessTokens.of(kb.vault).rotate(options.name, options.keep)
    return _print_secret(options, secret, token)


def _print_secret(options: argparse.Namespace, secret: str, token: Token) -> int:
    until = f" until {token.expires[:10]}" if token.expires else ""
    about = f"{token.name} ({token.role}) opens {token.vault}{until}. This is the only time that the token is shown."
    if not options.json:
        print(printable(about), file=sys.stderr)  # CO_TOKEN=$(co token create ...) gets the token alone
    return print_result(options, {"token": secret, **fields_of(token)}, [secret])


def run_list(options: argparse.Namespace) -> int:
    """
    Lists the tokens of this vault. Only their hashes are stored.
    """
    with open_knowledge_base(options) as kb:
        tokens = AccessTokens.of(kb.vault).all()
    now = time.time()
    lines = [f"{token.name}  {token.role}  {token.vault}  {_life_of(token, now)}" for token in tokens]
    return print_result(options, tokens, lines or ["There are no tokens: `co token create --role read` makes one."])


def _life_of(token: Token, now: float) -> str:
    parts = [f"since {token.created[:10]}"]
    if token.expires:
        parts.append(f"{'expired' if token.has_expired(moment_text(now)) else 'until'} {token.expires[:10]}")
    parts.append(f"used {age(token.last_used, now)}" if token.last_used else "never used")
    parts += [f"{token.per_second} requests a second"] if token.per_second else []
    return ", ".join(parts)


def add_revoke(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("name", help="its name, as `co token list` shows it")


def run_revoke(options: argparse.Namespace) -> int:
    """
    Running servers refuse it at once, and the one that it replaced, too.

    example:
      co token revoke mara
    """
    with open_knowledge_base(options) as kb:
        token = AccessTokens.of(kb.vault).revoke(options.name)
    return print_result(options, token, [f"revoked {token.name}"])


def run_log(options: argparse.Namespace) -> int:
    """
    Shows the last 100 changes, newest first.
    """
    with open_knowledge_base(options) as kb:
        changes = AccessTokens.of(kb.vault).changes()
    lines = [f"{change.moment}  {change.who} {change.action}" for change in changes]
    return print_result(options, changes, lines or ["No token was created, rotated or revoked."])
