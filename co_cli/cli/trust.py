"""`co config trust`."""

from __future__ import annotations

import argparse

from co_cli.cli.opening import open_knowledge_base, print_json
from co_cli.cli.terminal import printable
from co_cli.service.trusting import trust, trusted_vaults, unasked_from, vault_at, why_anyway


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
        "examples:\n  co config trust\n  co config trust ~/team-notes\n"
        "  co config trust --list\n  co config trust --off\n"
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
        here = [kb.root, *(origin.root for origin in kb.index.beside if origin.tier)]
        root = vault_at(options.folder, [*here, *trusted_vaults(data_dir)]) if options.folder else kb.root
        changed = trust(data_dir, root, not options.off)
        anyway = why_anyway(kb.settings) if root == kb.root else ""
    if options.json:
        print_json({"vault": root, "trusted": not options.off or bool(anyway), "changed": changed})
        return 0
    print(printable(_told(root, options.off, changed, anyway)))
    return 0


def _told(root: str, off: bool, changed: bool, anyway: str) -> str:
    if off and anyway:
        was = "is no longer in your list" if changed else "was not in your list"
        return f"{root} {was}, but its notes come unasked all the same: {anyway}"
    so = f"{root} is no longer trusted" if off else f"{root} is trusted"
    if anyway and changed:
        return f"{so}; it needed no word here: {anyway}"
    return so if changed else f"{so}, as it was"
