"""`co setup`: install co in coding agents, check it, and undo it; and what `co doctor` says about them."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Iterator

from co_cli.cli.hook import SECONDS
from co_cli.cli.opening import embed_added, open_knowledge_base, print_result, settings_of
from co_cli.cli.terminal import ProgressBar, printable, read_key, reads_terminal
from co_cli.ground.errors import InvalidInputError, SettingsError
from co_cli.ground.paths import shell_line, user_settings_file
from co_cli.ground.settings import Settings
from co_cli.hooks.clients import CLIENTS, Client
from co_cli.hooks.environment import keep_environment
from co_cli.hooks.installing import install, plan, try_hook, undo
from co_cli.hooks.plugins import Started
from co_cli.mcp.client_configs import environment, program
from co_cli.upkeep.doctor import Finding
from co_cli.upkeep.settings_file import write_setting
from co_cli.vault.tiers import tier_of, vaults_for_prompts, why_trusted, why_untrusted
from co_cli.vault.vault import embedders_of

PROMPT_EVENTS = {"gemini": "BeforeAgent", "cursor": "beforeSubmitPrompt"}
OTHERS = (
    "Install one of these, then `co setup CLIENT` gives it your memory. For any other MCP client, "
    "`co mcp --print-config CLIENT` prints what to configure; `co mcp --help` names those it knows."
)


def add_setup(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("client", nargs="?", help=", ".join(CLIENTS))
    parser.add_argument("--dry-run", action="store_true", help="show what would be done, without doing it")
    parser.add_argument("--undo", action="store_true", help="remove co from the client, and restore its files")
    parser.add_argument("--check", action="store_true", help="run the client's hook once, and say whether it works")


def run_setup(options: argparse.Namespace) -> int:
    """
    Gives a coding agent your memory: writes a plugin (hooks, MCP server, one skill)
    into the data folder and installs it with the client's own command. Without
    CLIENT it lists the clients and what each has.

    examples:
      co setup
      co setup claude-code
      co setup gemini --dry-run
      co setup codex --undo
    """
    settings = settings_of(options)
    if not options.client:
        rows = [_status(client) for client in CLIENTS.values()]
        lines = [f"{name:<12} {state}" for name, state in rows]
        none = all(state == "not installed" for _, state in rows)
        return print_result(options, dict(rows), [*lines, "", OTHERS if none else "`co setup CLIENT` sets one up."])
    if options.client not in CLIENTS:
        raise InvalidInputError(f"a client must be one of {', '.join(CLIENTS)}, not {options.client!r}")
    if sum((options.dry_run, options.undo, options.check)) > 1:
        raise InvalidInputError("--dry-run, --undo and --check cannot be combined")
    client, started = CLIENTS[options.client], _started(settings)
    if options.check:
        return _check(options, client)
    if not client.installed and not options.undo:
        raise InvalidInputError(f"{client.title} is not installed: there is no program {client.program} on your PATH")
    if options.dry_run:
        return print_result(options, {"plan": list(plan(client, started))}, plan(client, started))
    done: list[str] = []
    if options.undo:
        undo(client, started, done.append)
        return print_result(options, {"client": client.name, "done": done}, [*done, f"removed from {client.title}"])
    if client.edits:
        done += plan(client, started)
    keep_environment(settings)
    install(client, started, done.append)
    embedders = embedders_of(settings)
    problem = None if embedders.ready else embedders.problem()  # unpacks the model, for which no prompt waits
    lines = [
        *done,
        *([f"notes are compared by words: {problem}"] if problem else []),
        f"co is set up in {client.title}: start a new session there. `co setup {client.name} --undo` ends it.",
    ]
    lines += [client.remark] if client.remark else []
    print_result(options, {"client": client.name, "done": done, "remark": client.remark}, lines)
    if not options.json:
        _explain_trust(settings)
        _offer_memories(options, client)
        _offer_capture(settings)
    return 0


def _started(settings: Settings) -> Started:
    """How the client starts co: with the vault that the user named, else with the one of the folder it works in."""
    named = settings.vault if why_trusted(settings) and settings.set_by["vault"] != "default" else None
    return Started(
        program(), os.path.abspath(settings.data_dir), named and os.path.abspath(named), environment(settings)
    )


def _status(client: Client) -> tuple[str, str]:
    if client.hook_command():
        return client.name, "set up"
    return client.name, "not set up" if client.installed else "not installed"


def _check(options: argparse.Namespace, client: Client) -> int:
    finding = check_client(client)
    text = finding.text if finding else f"co is not set up in {client.title}: `co setup {client.name}`"
    good = finding is not None and finding.level == "ok"
    return print_result(options, {"client": client.name, "works": good, "text": text}, [text], 0 if good else 1)


def check_client(client: Client) -> Finding | None:
    """Run its hook once; None if it has none."""
    command = client.hook_command()
    if not command:
        return None
    problem, took = try_hook(command, PROMPT_EVENTS.get(client.name, "UserPromptSubmit"))
    if problem:
        return Finding(client.name, "warning", f"the hook in {client.title}: {problem}", f"co setup {client.name}")
    costs = f"it takes {took:.1f} s here, and may take {SECONDS:.1f} s"
    if took > SECONDS:
        fix = "close what keeps this machine busy, and run `co doctor` again"
        return Finding(client.name, "warning", f"the hook in {client.title} is too slow: {costs}", fix)
    return Finding(client.name, "ok", f"the hook in {client.title} works: {costs}")


def check_clients(settings: Settings, root: str) -> Iterator[Finding]:
    """What `co doctor` says: each hook, or what one would cost, and why a client gets no notes of this vault."""
    found = [finding for client in CLIENTS.values() if (finding := check_client(client))]
    yield from found
    trusted = root in vaults_for_prompts(settings, root, ())[0]
    if not found and trusted:
        trial = try_hook(shell_line(*program(), "hook", "claude-code", "--vault", root), data_dir=settings.data_dir)
        costs = trial.problem or f"it would take {trial.seconds:.1f} s here, and may take {SECONDS:.1f} s"
        slow = trial.problem or trial.seconds > SECONDS
        text = f"the hook of coding agents, which `co setup` installs: {costs}"
        yield Finding("hook", "warning" if slow else "ok", text, "close what keeps this machine busy" if slow else "")
    if found and not trusted:
        text, _, fix = why_untrusted(settings.data_dir, root).rpartition(": ")
        yield Finding("trust", "warning", text, fix)


def _explain_trust(settings: Settings) -> None:
    root = os.path.realpath(settings.vault)
    if os.path.isdir(root) and root not in vaults_for_prompts(settings, root, ())[0]:
        print(printable(f"co: {why_untrusted(settings.data_dir, root)}"))


def _offer_memories(options: argparse.Namespace, client: Client) -> None:
    """Offer to search what the client remembers by itself. co reads these files and never writes them."""
    found = client.own_memories(os.getcwd())
    if not found:
        return
    here = " --project" if tier_of(settings_of(options)) == "project" else ""  # what it remembers is about the project
    command = f"co add --read-only{here} {shell_line(*found)}"
    if not (reads_terminal() and sys.stdout.isatty()):
        print(printable(f"{client.title} has a memory of its own: `{command}` makes it searchable"))
        return
    print(printable(f"{client.title} has a memory of its own: {', '.join(found)}"))
    if read_key("[y] search it, too; co never changes it  [n] not now", "yn") == "y":
        with open_knowledge_base(options) as kb, ProgressBar("indexing", unit="files") as bar:
            for path in found:
                receipt = kb.sources.add(path, progress=bar, read_only=True)
                bar.done()
                print(printable(f"{receipt.path}  {receipt.outcome} {receipt.label}: {receipt.detail}"))
            embed_added(kb, bar)


def _offer_capture(settings: Settings) -> None:
    """Ask once whether conversations are kept. Without a terminal they are not."""
    if settings.set_by["capture"] != "default" or not (reads_terminal() and sys.stdout.isatty()):
        return
    print("co can keep your conversations with coding agents as notes, with secrets masked.")
    chosen = {"k": "keep", "p": "propose"}.get(read_key("[k] keep them  [p] and propose memories  [n] no", "kpn"))
    if chosen:
        file = user_settings_file(os.environ)
        if file is None:
            raise SettingsError("there is no home folder for your settings: set CO_CAPTURE instead")
        write_setting(file, "capture", chosen)
        print(printable(f"capture = {chosen}, in {file}"))
