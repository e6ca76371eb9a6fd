"""`co init`, `co demo`, and `co config show`, `set`, `unset` and `trust`."""

from __future__ import annotations

import argparse
import contextlib
import os
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import replace

from co_cli.cli.opening import add_limit, embed_added, embed_soon, open_knowledge_base, print_result, settings_of
from co_cli.cli.search import query_of, show_result
from co_cli.cli.terminal import ProgressBar, Screen, count_of, print_message, read_key, reads_terminal
from co_cli.embedding.embedders import Embedders
from co_cli.entrance.knowledge_base import KnowledgeBase
from co_cli.ground.errors import SettingsError
from co_cli.ground.paths import (
    open_regular,
    project_of,
    project_settings_file,
    project_vault,
    sample_vault,
    shell_line,
)
from co_cli.ground.settings import BY_NAME, SETTINGS, Settings, load_settings, read_toml, refuse_unsafe, unknown_setting
from co_cli.notes.files import is_empty_folder
from co_cli.sources.folder import HEAVY
from co_cli.sources.origin import MARKDOWN
from co_cli.upkeep.language_advice import advise
from co_cli.upkeep.settings_file import own_settings_file, read_value, write_setting
from co_cli.vault.tiers import (
    SAMPLE_QUESTIONS,
    make_vault,
    trust,
    trusted_vaults,
    vault_at,
    vaults_for_prompts,
    why_trusted,
)
from co_cli.vault.vault import Opening

MOST_LOOKED_AT, BEGINNING = 100, 2_000
"""Files, and bytes of each, from which `co init` guesses what languages notes are in."""


def add_init(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("folder", nargs="?", help="the project (default: this folder)")


def run_init(options: argparse.Namespace) -> int:
    """
    Creates .co-cli/knowledge/ with memories/ and articles/ in the project, or the
    vault that --vault names. Running it again changes nothing.
    Commit the folder if the notes belong to the team. If the project has notes
    already, co offers to search them, too.

    examples:
      co init
      co init --vault ~/notes
    """
    if options.vault or options.folder:
        vault = options.vault or project_vault(options.folder)
    else:
        loaded = load_settings()
        vault = project_vault(".") if loaded.set_by["vault"] in ("default", "project") else loaded.vault
    ours = is_empty_folder(vault)
    made = make_vault(vault)
    vault = os.path.abspath(vault)
    # a vault that was there may be somebody else's
    problem = _trust_new(load_settings({"data_dir": options.data_dir}, start=vault).data_dir, vault) if ours else ""
    command = "co" if load_settings().vault == vault else f"co --vault {shell_line(vault)}"
    lines = [f"{'created' if made else 'there is already'} {vault}"]
    lines += [f'next: {command} remember "What this project taught us today." --tag lesson'] if made else []
    lines += [problem] if problem else []
    print_result(options, {"vault": vault, "made": made, "problem": problem}, lines)
    project = project_of(vault)
    if options.json:
        return 0
    beside = project if made and project and project_vault(project) == vault else None
    notes = _find_notes(beside or vault)
    if notes and beside:
        _offer_notes(options, vault, beside, command, len(notes))
    loaded = load_settings({"vault": vault, "data_dir": options.data_dir})
    if advice := advise(_beginnings(notes), Embedders(loaded.knowledge_embedding_provider)):
        print_message(advice.line)
    return 0


def _trust_new(data_dir: str, vault: str) -> str:
    """Trust a vault that was just made. Returns what to do if that cannot be stored: notes can be saved and found."""
    try:
        trust(data_dir, vault)
    except OSError as error:
        return (
            f"the data folder {data_dir} cannot be written ({error.strerror}), so the notes here are not added "
            f"to prompts: set CO_DATA_DIR to another folder, then `co config trust {shell_line(vault)}`"
        )
    return ""


def _offer_notes(options: argparse.Namespace, vault: str, project: str, command: str, notes: int) -> None:
    """Offer to search the notes that are in a project already."""
    there = f"{count_of(notes, 'note')} {'is' if notes == 1 else 'are'} in {project} already"
    if not (reads_terminal() and sys.stdout.isatty()):
        print_message(f"{there}: `{command} add {shell_line(project)}` makes them searchable")
        return
    print_message(f"{there}.")
    if read_key("[y] search them, too  [n] not now", "yn") == "y":
        with KnowledgeBase.open(vault, options.data_dir) as kb, ProgressBar("indexing", unit="files") as bar:
            receipt = kb.sources.add(project, progress=bar)
            bar.done()
            print_message(f"{receipt.path}  {receipt.outcome} {receipt.label}: {receipt.detail}")
            embed_added(kb.local, bar)


def _find_notes(folder: str) -> list[str]:
    """The Markdown files that can be seen in a folder within a second."""
    found, deadline = list[str](), time.monotonic() + 1.0
    for parent, folders, names in os.walk(folder):
        folders[:] = [name for name in folders if not name.startswith(".") and f"{name}/" not in HEAVY]
        found += [os.path.join(parent, name) for name in names if name.lower().endswith(MARKDOWN)]
        if time.monotonic() > deadline:
            break
    return found


def _beginnings(notes: Sequence[str]) -> Iterator[str]:
    """How some of these files begin, after their frontmatter."""
    for path in notes[:MOST_LOOKED_AT]:
        with contextlib.suppress(OSError), open_regular(path) as file:
            text = file.read(BEGINNING).decode("utf-8", "ignore")
            yield text.rpartition("\n---\n")[2] if text.startswith("---\n") else text


def add_demo(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("query", nargs="*", help=f"what to look for (default: {SAMPLE_QUESTIONS[0]})")
    add_limit(parser, 3)


def run_demo(options: argparse.Namespace) -> int:
    """
    The sample vault is about a small team that makes tide clocks.

    examples:
      co demo
      co demo "what went wrong with the bells"
    """
    settings = load_settings({"data_dir": options.data_dir})
    query = query_of(options.query) if options.query else SAMPLE_QUESTIONS[0]
    as_search = Opening(short_lived=True)
    with KnowledgeBase.open(sample_vault(), os.path.join(settings.data_dir, "demo"), opening=as_search) as kb:
        with ProgressBar("indexing", unit="files") as bar:
            kb.sync(bar, seconds=0)
        embed_soon(kb.local)
        found = replace(kb.search(query, limit=options.limit), degraded=[])  # nobody has to make its vectors

    def show(screen: Screen) -> None:
        if not options.query:
            notes = count_of(found.searched.notes, "note")
            screen.wrapped(f"A sample: {notes} of a small team that makes tide clocks.", style="dim")
            screen.line(f"$ co demo {query}\n")
        show_result(found)
        if not options.query:
            screen.line()
            screen.wrapped(
                f"Ask more:  {' · '.join(f'co demo {question}' for question in SAMPLE_QUESTIONS[1:])}", style="dim"
            )
            screen.wrapped("Your own:  co remember TEXT · co add FOLDER · co search QUERY", style="dim")

    return print_result(options, found, show, 0 if found.hits else 1)


def add_settings(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("name", nargs="?", help="only this setting's value")


def run_settings(options: argparse.Namespace) -> int:
    """
    A value comes from the first of these that has it: a flag, the environment, the
    project's .co-cli/settings.toml, your own settings.toml, the default.

    examples:
      co config show
      co config show model
    """
    loaded = settings_of(options)
    values = {setting.name: getattr(loaded, setting.name) for setting in SETTINGS}
    if options.name is not None and options.name not in values:
        raise SettingsError(unknown_setting(options.name))
    rows = {name: {"value": value, "origin": loaded.set_by[name]} for name, value in values.items()}
    if options.name:
        return print_result(options, rows[options.name], [_text(values[options.name])])
    lines: list[str] = []
    for setting in SETTINGS:
        lines.append(f"{setting.name} = {_text(values[setting.name])}  ({loaded.set_by[setting.name]})")
        lines.append(f"    {setting.help} [{setting.environment}]")
    return print_result(options, rows, lines)


def add_set(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("name", metavar="KEY", help="the setting; `co config show` lists them")
    parser.add_argument("value", metavar="VALUE", help="its value; an empty one removes the line")


def run_set(options: argparse.Namespace) -> int:
    """
    The value is written to your own settings.toml, or to the project's if that
    one sets it already. Other lines of the file stay as they are.

    examples:
      co config set knowledge_reader off
      co config set knowledge_exclude 'drafts/, *.tmp.md'
    """
    name, loaded = options.name, settings_of(options)
    file, project = _file_of(name, loaded)
    value: object = None
    if options.value:
        value = read_value(name, options.value)
        if project:
            refuse_unsafe(BY_NAME[name], value, file, project)
    write_setting(file, name, value)
    now = settings_of(options)
    origin = now.set_by[name]
    lines = [f"{name} = {_text(getattr(now, name))}  ({origin})"]
    if not origin.startswith(f"{file}:") and options.value:
        lines.append(f"{file} says {_text(value)}, but {origin} comes first")
    return print_result(options, {"file": file, "value": getattr(now, name), "origin": origin}, lines)


def add_unset(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("name", metavar="KEY", help="the setting; `co config show` lists them")


def run_unset(options: argparse.Namespace) -> int:
    """
    The line is removed from the settings.toml that has it: the project's, else
    your own. Other lines of the file stay as they are.

    examples:
      co config unset knowledge_reader
    """
    name, loaded = options.name, settings_of(options)
    file, _ = _file_of(name, loaded)
    was_set = name in read_toml(file)[1]
    if was_set:
        write_setting(file, name, None)
        loaded = settings_of(options)
    value, origin = getattr(loaded, name), loaded.set_by[name]
    lines = [f"{name} = {_text(value)}  ({origin})"]
    lines += [] if was_set else [f"{file} does not set it: nothing was changed"]
    return print_result(options, {"file": file, "value": value, "origin": origin}, lines, 0 if was_set else 1)


def _file_of(name: str, loaded: Settings) -> tuple[str, str | None]:
    """The settings.toml that a setting is written to, and its project: the user's own, unless a project's sets it."""
    if name not in BY_NAME:
        raise SettingsError(unknown_setting(name))
    project = project_of(loaded.vault)
    shared = project_settings_file(project) if project else ""
    if shared and loaded.set_by[name].startswith(f"{shared}:"):
        return shared, project
    return own_settings_file(), None


def _text(value: object) -> str:
    if value is None:
        return "(unset)"
    return ", ".join(value) or "(none)" if isinstance(value, tuple) else str(value)  # pyright: ignore[reportUnknownArgumentType, reportUnknownVariableType]


def add_trust(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("folder", nargs="?", help="a vault, or a project that has one (default: this one)")
    parser.add_argument("--list", action="store_true", help="list trusted and untrusted vaults")
    parser.add_argument("--off", action="store_true", help="stop trusting it")


def run_trust(options: argparse.Namespace) -> int:
    """
    Notes of a vault that came with a clone, or that a team shares, are found by
    searches. They are added to an agent's prompts (`loading: always`, or a memory
    that fits) only if you trust the vault. Your own vault, vaults that you made
    with `co init`, and those that you name with --vault or CO_VAULT are trusted.
    The list is kept in your data folder.

    examples:
      co config trust
      co config trust ~/team-notes
      co config trust --list
      co config trust --off
    """
    with open_knowledge_base(options) as kb:
        data_dir, origins = kb.settings.data_dir, kb.index.linked
        if options.list:
            allowed, untrusted = vaults_for_prompts(kb.settings, kb.root, origins)
            rows = dict.fromkeys((*sorted(allowed), *trusted_vaults(data_dir)), True) | dict.fromkeys(untrusted, False)
            lines = [f"{'trusted ' if trusted else 'not yet '} {root}" for root, trusted in rows.items()]
            return print_result(options, [{"vault": root, "trusted": yes} for root, yes in rows.items()], lines)
        known = [kb.root, *(origin.root for origin in origins if origin.tier), *trusted_vaults(data_dir)]
        root = vault_at(options.folder, known) if options.folder else kb.root
        changed = trust(data_dir, root, not options.off)
        anyway = why_trusted(kb.settings) if root == kb.root else ""
    message = f"{root} is {'' if changed else 'already '}{'no longer trusted' if options.off else 'trusted'}"
    if anyway:
        message = f"{root} is {'still ' if options.off else ''}trusted: {anyway}"
    result = {"vault": root, "trusted": not options.off or bool(anyway), "changed": changed}
    return print_result(options, result, [message])
