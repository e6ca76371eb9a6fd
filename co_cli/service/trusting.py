"""Whose notes may come beside a prompt unasked: your own vault's, those of vaults that you named, and that you trust.

A vault that came with a clone, or that a team shares, can say of its notes what it likes: `provenance: user`,
`loading: always`. So it is searched like any other, and nothing of it is put before a model that did not ask, until you
say `co config trust`. What you trust stands in the data folder, never in the project.
"""

from __future__ import annotations

import os
import shlex
from collections.abc import Iterable

from co_cli.errors import InvalidInputError
from co_cli.notes.files import locked, make_folders, replace
from co_cli.notes.refs import FOLDERS
from co_cli.paths import project_settings_file, project_vault, user_settings_file
from co_cli.settings import Settings, load_settings
from co_cli.sources.origin import Origin
from co_cli.sources.walk import require_vault

FILE = "trusted"


def trusted_vaults(data_dir: str) -> list[str]:
    """The folders that the person trusts, as real paths."""
    try:
        with open(os.path.join(data_dir, FILE), encoding="utf-8", errors="surrogateescape") as file:
            return [line for line in file.read().split("\n") if os.path.isabs(line)]
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
    if root in known or why_anyway(settings):
        allowed.add(root)
    else:
        waiting.append(root)
    for origin in beside:
        if origin.tier == "user" or (origin.tier and origin.root in known):
            allowed.add(origin.root)
        elif origin.tier:
            waiting.append(origin.root)
    return allowed, waiting


def why_waiting(data_dir: str, root: str) -> str:
    """Why nothing of a vault comes unasked, and what to do, on one line."""
    known = [vault for vault in trusted_vaults(data_dir) if not os.path.isdir(vault)]
    gone = [vault for vault in known if _called(vault) == _called(root)]  # a stranger's is not to be taken for one
    moved = f" (you trust {gone[0]}, which is gone: was it moved here?)" if gone else ""
    return (
        f"nothing of {root} comes beside a prompt unasked, because you did not trust it{moved}: "
        f"`co config trust {shlex.quote(root)}` if its notes are yours"
    )


def _called(vault: str) -> str:
    """The name of a project, or of a vault that has none."""
    return os.path.basename(vault.removesuffix(os.sep + project_vault("")))


def why_anyway(settings: Settings) -> str:
    """Why the vault needs nobody's word: how the person named it. Empty if it does need one."""
    origin = settings.origins["vault"]
    if origin == "default":
        return "it is your own vault"
    own = user_settings_file(os.environ)
    named = origin in ("CO_VAULT", "--vault") or bool(own and origin.startswith(f"{own}:"))
    return f"you name it yourself ({origin})" if named else ""


def _vault_that_it_names(project: str) -> str | None:
    """The one that the settings of a project point at, if they do: it is what `co` opens there."""
    file = project_settings_file(os.path.abspath(project))
    if not os.path.isfile(file):
        return None
    unnamed = {name: value for name, value in os.environ.items() if name != "CO_VAULT"}
    settings = load_settings(environ=unnamed, start=project)
    return settings.vault if settings.origins["vault"].startswith(f"{file}:") else None


def vault_at(folder: str, known: Iterable[str]) -> str:
    """The vault that a person means by a folder: a project's own, or itself. Raises InvalidInputError if it is none.

    `known` are those that are in use here, or that are trusted: they may look like any folder, and be gone by now.
    """
    folder = os.path.expanduser(folder)
    named = _vault_that_it_names(folder)
    if named:
        return require_vault(named)
    places = [os.path.realpath(place) for place in (project_vault(folder), folder)]
    for place in places:
        if place in known or any(os.path.isdir(os.path.join(place, name)) for name in FOLDERS.values()):
            return place
    if os.path.isdir(places[0]):
        return places[0]  # of a project in which nothing is written yet
    if not os.path.isdir(places[1]):
        raise InvalidInputError(f"there is no folder {folder}: name a vault, or a project that has one")
    raise InvalidInputError(
        f"{folder} is no vault (it has neither {' nor '.join(f'{name}/' for name in FOLDERS.values())}) and no project "
        "(it has no .co-cli/knowledge/): name the folder that the notes are in"
    )
