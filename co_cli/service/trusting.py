"""Whose notes may come beside a prompt unasked: your own vault's, those of vaults that you named, and that you trust.

A vault that came with a clone, or that a team shares, can say of its notes what it likes: `provenance: user`,
`loading: always`. So it is searched like any other, and nothing of it is put before a model that did not ask, until you
say `co trust`. What you trust stands in the data folder, never in the project.
"""

from __future__ import annotations

import os
from collections.abc import Iterable

from co_cli.errors import InvalidInputError
from co_cli.notes.files import locked, make_folders, replace
from co_cli.places import user_settings_file
from co_cli.settings import Settings
from co_cli.sources.origin import Origin

FILE = "trusted"
LARGEST = 1_000_000


def trusted_vaults(data_dir: str) -> list[str]:
    """The folders that the person trusts, as real paths."""
    try:
        with open(os.path.join(data_dir, FILE), encoding="utf-8", errors="surrogateescape") as file:
            return [line for line in file.read(LARGEST).split("\n") if os.path.isabs(line)]
    except OSError:
        return []


def trust(data_dir: str, root: str, trusted: bool = True) -> bool:
    """Trust a vault, or no longer. False: so it was already."""
    root = os.path.realpath(root)
    if "\n" in root:
        raise InvalidInputError("a folder whose name has a line break cannot be trusted: rename it")
    make_folders(data_dir)
    with locked(data_dir):
        known = trusted_vaults(data_dir)
        if (root in known) == trusted:
            return False
        kept = [*known, root] if trusted else [one for one in known if one != root]
        text = "".join(f"{one}\n" for one in kept)
        replace(os.path.join(data_dir, FILE), text.encode("utf-8", "surrogateescape"))
    return True


def unasked_from(settings: Settings, root: str, beside: Iterable[Origin]) -> tuple[set[str], list[str]]:
    """The vaults whose notes may come unasked, and those that wait for the person's word."""
    known = set(trusted_vaults(settings.data_dir))
    allowed, waiting = set[str](), list[str]()
    if root in known or _named_by_the_person(settings):
        allowed.add(root)
    else:
        waiting.append(root)
    for origin in beside:
        if origin.tier == "user" or (origin.tier and origin.root in known):
            allowed.add(origin.root)
        elif origin.tier:
            waiting.append(origin.root)
    return allowed, waiting


def _named_by_the_person(settings: Settings) -> bool:
    """By a flag, the environment, their own settings file, or because it is the one they have without saying."""
    origin = settings.origins["vault"]
    own = user_settings_file(os.environ)
    return origin in ("default", "CO_VAULT", "--vault") or bool(own and origin.startswith(f"{own}:"))
