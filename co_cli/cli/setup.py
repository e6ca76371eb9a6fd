"""`co init`, `demo`, `settings`."""

from __future__ import annotations

import argparse
import os

from co_cli.cli.opening import print_json
from co_cli.cli.terminal import ProgressBar, Screen, printable
from co_cli.knowledge_base import KnowledgeBase
from co_cli.notes.files import is_empty_folder
from co_cli.paths import PROJECT_FOLDER, project_vault, sample_vault
from co_cli.service.vaults import make_vault, trust
from co_cli.settings import SETTINGS, load_settings
from co_cli.values import SearchResult

TOUR = (
    "who decides what ships",
    "who may spend money without asking",
    "what went wrong with the bells",
)


def add_init(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("folder", nargs="?", help="the project (default: this folder)")
    parser.epilog = (
        f"Makes {PROJECT_FOLDER}/knowledge/ with memories/ and articles/ in the project,\n"
        "or the vault that --vault names. Running it again changes nothing.\n"
        "Commit the folder if the notes belong to the team.\n"
    )
    parser.set_defaults(run=init)


def init(options: argparse.Namespace) -> int:
    vault = options.vault or (project_vault(options.folder) if options.folder else _vault_to_make())
    ours = is_empty_folder(vault)
    made = make_vault(vault)
    vault = os.path.abspath(vault)
    if ours:  # a vault that was there may be somebody else's
        trust(load_settings({"data_dir": options.data_dir}, start=vault).data_dir, vault)
    if options.json:
        print_json({"vault": vault, "made": made})
    else:
        print(f"{'made' if made else 'there is already'} {printable(vault)}")
        if made:
            print('next: co remember "What this project taught us today." --tag lesson')
    return 0


def _vault_to_make() -> str:
    """The one that CO_VAULT or a settings file names, else this folder's own."""
    loaded = load_settings()
    return project_vault(".") if loaded.origins["vault"] in ("default", "project") else loaded.vault


def add_demo(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("query", nargs="*", help="what to look for (default: a short tour)")
    parser.add_argument("-n", "--limit", type=int, default=3, metavar="N", help="maximum number of results (default 3)")
    parser.epilog = (
        "The sample vault is about a small team that makes tide clocks.\n\n"
        'example:\n  co demo "who decides what ships"\n'
    )
    parser.set_defaults(run=demo)


def demo(options: argparse.Namespace) -> int:
    from co_cli.cli.search import as_object, query_of, show_result

    settings = load_settings({"data_dir": options.data_dir})
    queries = [query_of(options.query)] if options.query else TOUR
    answers: list[SearchResult] = []
    bar = ProgressBar("indexing")
    with KnowledgeBase.open(sample_vault(), os.path.join(settings.data_dir, "demo")) as kb:
        kb.sync(bar)
        bar.done()
        for number, query in enumerate(queries):
            found = kb.search(query, limit=options.limit)
            answers.append(found)
            if options.json:
                continue
            if len(queries) > 1:
                screen = Screen()
                screen.line(("\n" if number else "") + screen.paint(f'$ co demo "{query}"', "green"))
            show_result(found)
    if options.json:
        shown = [as_object(found) for found in answers]
        print_json(shown[0] if options.query else shown)
    return 0 if all(found.hits for found in answers) else 1


def add_settings(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("name", nargs="?", help="only this setting's value")
    parser.epilog = (
        "Order: flag > environment > the project's .co-cli/settings.toml\n> your own settings.toml > default.\n"
    )
    parser.set_defaults(run=settings)


def settings(options: argparse.Namespace) -> int:
    from co_cli.errors import SettingsError
    from co_cli.settings import unknown_setting

    loaded = load_settings({"vault": options.vault, "data_dir": options.data_dir})
    values = {setting.name: getattr(loaded, setting.name) for setting in SETTINGS}
    if options.name is not None and options.name not in values:
        raise SettingsError(unknown_setting(options.name))
    if options.json:
        rows = {name: {"value": value, "origin": loaded.origins[name]} for name, value in values.items()}
        print_json(rows[options.name] if options.name else rows)
        return 0
    if options.name:
        print(_shown(values[options.name]))
        return 0
    screen = Screen()
    for setting in SETTINGS:
        value = screen.paint(printable(_shown(values[setting.name])), "bold")
        screen.line(f"{setting.name} = {value}  {screen.paint(f'({printable(loaded.origins[setting.name])})', 'cyan')}")
        screen.wrapped(f"{setting.help} [{setting.environment}]", "    ", style="dim")
    return 0


def _shown(value: object) -> str:
    if value is None:
        return "(unset)"
    return ", ".join(value) or "(none)" if isinstance(value, tuple) else str(value)  # pyright: ignore[reportUnknownArgumentType, reportUnknownVariableType]
