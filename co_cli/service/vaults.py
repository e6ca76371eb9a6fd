"""Make a vault, and remember which vaults the user trusts.

Searches find the notes of every vault. They are added to prompts without a search only if the vault is the user's own,
was named by the user, or is trusted with `co config trust`: notes in a clone or in a team's vault can claim anything.
The list of trusted vaults is in the data folder, never in a project.
"""

from __future__ import annotations

import contextlib
import os
import shlex
from collections.abc import Iterable

from co_cli.errors import InvalidInputError, VaultError
from co_cli.notes.files import locked, make_folders, replace
from co_cli.notes.refs import FOLDERS
from co_cli.notes.store import TRASH
from co_cli.paths import project_settings_file, project_vault, user_settings_file
from co_cli.settings import Settings, load_settings
from co_cli.sources.origin import Origin
from co_cli.sources.walk import require_vault

TRUSTED_FILE = "trusted"


def make_vault(root: str) -> bool:
    """Make the folders of a vault, and a .gitignore that leaves out its trash. False if it existed."""
    made = not os.path.isdir(os.path.join(root, FOLDERS["memory"]))
    try:
        for name in FOLDERS.values():
            make_folders(os.path.join(root, name))
        with contextlib.suppress(FileExistsError):
            if made:
                with open(os.path.join(root, ".gitignore"), "x", encoding="utf-8") as stream:
                    stream.write(f"{TRASH}/\n")
    except OSError as error:
        raise VaultError(f"{root} cannot be made: {error.strerror}") from None
    return made


def trusted_vaults(data_dir: str) -> list[str]:
    """The vaults that the user trusts, as real paths."""
    try:
        with open(os.path.join(data_dir, TRUSTED_FILE), encoding="utf-8", errors="surrogateescape") as file:
            return [line for line in file.read().split("\n") if os.path.isabs(line)]
    except OSError:
        return []


def trust(data_dir: str, root: str, trusted: bool = True) -> bool:
    """Trust a vault, or stop trusting it. False if nothing changed."""
    root = os.path.realpath(root)
    if "\n" in root:
        raise InvalidInputError("a folder whose name has a line break cannot be trusted: rename it")
    make_folders(data_dir)
    with locked(data_dir):
        known = trusted_vaults(data_dir)
        if (root in known) == trusted:
            return False
        kept = [*known, root] if trusted else [vault for vault in known if vault != root]
        text = "".join(f"{vault}\n" for vault in kept)
        replace(os.path.join(data_dir, TRUSTED_FILE), text.encode("utf-8", "surrogateescape"))
    return True


def vaults_for_prompts(settings: Settings, root: str, origins: Iterable[Origin]) -> tuple[set[str], list[str]]:
    """The vaults whose notes may be added to prompts, and those that are not trusted."""
    known = set(trusted_vaults(settings.data_dir))
    allowed, untrusted = set[str](), list[str]()
    if root in known or why_trusted(settings):
        allowed.add(root)
    else:
        untrusted.append(root)
    for origin in origins:
        if origin.tier == "user" or (origin.tier and origin.root in known):
            allowed.add(origin.root)
        elif origin.tier:
            untrusted.append(origin.root)
    return allowed, untrusted


def why_trusted(settings: Settings) -> str:
    """Why the current vault needs no `co config trust`: how the user named it. Empty if it needs it."""
    origin = settings.origins["vault"]
    if origin == "default":
        return "it is your own vault"
    own = user_settings_file(os.environ)
    named = origin in ("CO_VAULT", "--vault") or bool(own and origin.startswith(f"{own}:"))
    return f"you named it yourself ({origin})" if named else ""


def why_untrusted(data_dir: str, root: str) -> str:
    """Why no note of a vault is added to prompts, and what to do, on one line."""
    gone = [vault for vault in trusted_vaults(data_dir) if not os.path.isdir(vault) and _name(vault) == _name(root)]
    moved = f" (you trust {gone[0]}, which is gone: was it moved here?)" if gone else ""
    return (
        f"notes in {root} are not added to prompts, because you have not trusted it{moved}: "
        f"`co config trust {shlex.quote(root)}` if its notes are yours"
    )


def _name(vault: str) -> str:
    """The name of the project, or of a vault outside of any."""
    return os.path.basename(vault.removesuffix(os.sep + project_vault("")))


def vault_at(folder: str, known: Iterable[str]) -> str:
    """The vault that the user means by a folder: a project's, or the folder itself. Raises InvalidInputError.

    `known` are vaults in use or trusted: they may have any layout, and may be gone.
    """
    folder = os.path.expanduser(folder)
    named = _vault_in_settings(folder)
    if named:
        return require_vault(named)
    own, itself = (os.path.realpath(path) for path in (project_vault(folder), folder))
    for vault in (own, itself):
        if vault in known or any(os.path.isdir(os.path.join(vault, name)) for name in FOLDERS.values()):
            return vault
    if os.path.isdir(own):
        return own
    if not os.path.isdir(itself):
        raise InvalidInputError(f"there is no folder {folder}: name a vault, or a project that has one")
    raise InvalidInputError(
        f"{folder} is not a vault (it has no {' and no '.join(f'{name}/' for name in FOLDERS.values())}) and not a "
        "project (it has no .co-cli/knowledge/): name the folder that the notes are in"
    )


def _vault_in_settings(project: str) -> str | None:
    """The vault that a project's settings file names: it is what `co` opens there."""
    file = project_settings_file(os.path.abspath(project))
    if not os.path.isfile(file):
        return None
    environ = {name: value for name, value in os.environ.items() if name != "CO_VAULT"}
    settings = load_settings(environ=environ, start=project)
    return settings.vault if settings.origins["vault"].startswith(f"{file}:") else None
