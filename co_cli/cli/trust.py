"""`co trust`."""

from __future__ import annotations

import argparse
import os

from co_cli.cli.opening import open_knowledge_base, print_json
from co_cli.cli.terminal import printable
from co_cli.service.trusting import trust, trusted_vaults, unasked_from


def add_trust(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("folder", nargs="?", help="a vault, or a project that has one (default: this one)")
    parser.add_argument("--list", action="store_true", help="show what is trusted, and what is not")
    parser.add_argument("--off", action="store_true", help="trust it no longer")
    parser.epilog = (
        "Notes of a vault that came with a clone, or that a team shares, are found when\n"
        "somebody searches. They come beside a prompt unasked (`loading: always`, or a\n"
        "memory that fits) only when you trust the vault. Vaults that you made with\n"
        "`co init`, that you name with --vault or CO_VAULT, and your own need no word.\n"
        "What you trust is kept in your data folder.\n\n"
        "examples:\n  co trust\n  co trust ~/team-notes\n  co trust --list\n  co trust --off\n"
    )
    parser.set_defaults(run=run_trust)


def run_trust(options: argparse.Namespace) -> int:
    with open_knowledge_base(options) as kb:
        data_dir = kb.settings.data_dir
        if options.list:
            allowed, waiting = unasked_from(kb.settings, kb.root, kb.index.beside)
            rows = dict.fromkeys((*sorted(allowed), *trusted_vaults(data_dir)), True) | dict.fromkeys(waiting, False)
            if options.json:
                print_json([{"vault": root, "trusted": trusted} for root, trusted in rows.items()])
            for root, trusted in () if options.json else rows.items():
                print(f"{'trusted ' if trusted else 'not yet '} {printable(root)}")
            return 0
        root = _vault_of(options.folder) if options.folder else kb.root
        changed = trust(data_dir, root, not options.off)
    if options.json:
        print_json({"vault": root, "trusted": not options.off, "changed": changed})
        return 0
    so = "no longer trusted" if options.off else "trusted"
    print(f"{printable(root)} is {so}" + ("" if changed else ", as it was"))
    return 0


def _vault_of(folder: str) -> str:
    """A project's vault, if it has one; else the folder itself."""
    from co_cli.places import project_vault
    from co_cli.sources.walking import require_vault

    inner = project_vault(folder)
    return require_vault(inner if os.path.isdir(inner) else folder)
