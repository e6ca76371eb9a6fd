"""`co config trust`."""

from __future__ import annotations

import argparse

from co_cli.cli.opening import open_knowledge_base, print_json
from co_cli.cli.terminal import printable
from co_cli.service.vaults import trust, trusted_vaults, vault_at, vaults_for_prompts, why_trusted


def add_trust(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("folder", nargs="?", help="a vault, or a project that has one (default: this one)")
    parser.add_argument("--list", action="store_true", help="list trusted and untrusted vaults")
    parser.add_argument("--off", action="store_true", help="stop trusting it")
    parser.epilog = (
        "Notes of a vault that came with a clone, or that a team shares, are found by\n"
        "searches. They are added to an agent's prompts (`loading: always`, or a memory\n"
        "that fits) only if you trust the vault. Your own vault, vaults that you made\n"
        "with `co init`, and those that you name with --vault or CO_VAULT are trusted.\n"
        "The list is kept in your data folder.\n\n"
        "examples:\n  co config trust\n  co config trust ~/team-notes\n"
        "  co config trust --list\n  co config trust --off\n"
    )
    parser.set_defaults(run=run_trust)


def run_trust(options: argparse.Namespace) -> int:
    with open_knowledge_base(options) as kb:
        data_dir, origins = kb.settings.data_dir, kb.index.linked
        if options.list:
            allowed, untrusted = vaults_for_prompts(kb.settings, kb.root, origins)
            rows = dict.fromkeys((*sorted(allowed), *trusted_vaults(data_dir)), True) | dict.fromkeys(untrusted, False)
            if options.json:
                print_json([{"vault": root, "trusted": trusted} for root, trusted in rows.items()])
            for root, trusted in () if options.json else rows.items():
                print(f"{'trusted ' if trusted else 'not yet '} {printable(root)}")
            return 0
        known = [kb.root, *(origin.root for origin in origins if origin.tier), *trusted_vaults(data_dir)]
        root = vault_at(options.folder, known) if options.folder else kb.root
        changed = trust(data_dir, root, not options.off)
        anyway = why_trusted(kb.settings) if root == kb.root else ""
    if options.json:
        print_json({"vault": root, "trusted": not options.off or bool(anyway), "changed": changed})
        return 0
    if options.off and anyway:
        message = f"{root} {'was removed from' if changed else 'is not in'} your list, but is trusted here: {anyway}"
    else:
        already = "" if changed else " already"
        message = f"{root} is{already} {'no longer trusted' if options.off else 'trusted'}"
        message += f"; it needs no entry here: {anyway}" if anyway and changed else ""
    print(printable(message))
    return 0
