"""Vaults: make one, find those of the other tiers, and remember which ones the user trusts.

The project's vault, the user's own and the team's are searched together, unless a vault is named (`--vault`).

Searches find the notes of every vault. They are added to prompts without a search only if the vault is the user's own,
was named by the user, or is trusted with `co config trust`: notes in a clone or in a team's vault can claim anything.
The list of trusted vaults is in the data folder, never in a project. It says which folder was trusted, not only where:
another one at the same path is not trusted.
"""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Iterable

from co_cli.ground.errors import InvalidInputError, SettingsError, VaultError
from co_cli.ground.paths import (
    is_inside,
    project_of,
    project_settings_file,
    project_vault,
    shell_line,
    user_data_dir,
    user_settings_file,
)
from co_cli.ground.settings import Settings, load_settings
from co_cli.index.indexed_notes import Tiers
from co_cli.notes.files import locked, make_folders, replace
from co_cli.notes.refs import FOLDERS
from co_cli.notes.store import TRASH
from co_cli.sources.origin import VAULT, Origin
from co_cli.sources.walk import require_vault

TIERS = ("user", "project", "team")
TRUSTED_FILE = "trusted"
SAMPLE_QUESTIONS = ("who decides what ships", "what went wrong with the bells", "is there a phone app")
"""To try on the sample vault."""
HOMES = (FOLDERS["memory"], FOLDERS["article"])
"""The folders that every vault has; those of other kinds are made when they are needed."""
AT_FDCWD, STATX_BTIME = -100, 0x800


def make_vault(root: str, private: bool = False) -> bool:
    """Make the folders of a vault, and a .gitignore that leaves out its trash. False if it existed."""
    made = not os.path.isdir(os.path.join(root, FOLDERS["memory"]))
    try:
        make_folders(root, private)
        for name in HOMES:
            make_folders(os.path.join(root, name))
        with contextlib.suppress(FileExistsError):
            if made:
                with open(os.path.join(root, ".gitignore"), "x", encoding="utf-8") as stream:
                    stream.write(f"{TRASH}/\n")
    except OSError as error:
        raise VaultError(f"{root} cannot be made: {error.strerror}; CO_VAULT or --vault names another folder") from None
    return made


def tier_of(settings: Settings) -> str | None:
    """The tier of the open vault; None if it was named."""
    return {"project": "project", "default": "user"}.get(settings.set_by["vault"])


def vault_for(settings: Settings, path: str) -> str:
    """The vault that a folder or file is added to: from a project, one outside of it goes to your own, which is
    searched everywhere, unless your own is not searched here."""
    project = project_of(settings.vault)
    if tier_of(settings) != "project" or settings.tiers == "off" or not project:
        return settings.vault
    inside = is_inside(os.path.realpath(os.path.expanduser(path)), os.path.realpath(project))
    return settings.vault if inside else own_vault()


def other_tiers(settings: Settings, root: str) -> tuple[Tiers | None, list[Origin]]:
    """The weight of each tier and the other tiers' vaults; None and nothing if there are no others."""
    own = tier_of(settings)
    if settings.tiers == "off" or own is None:
        return None, []
    linked = [
        Origin(VAULT, place, tier=tier)
        for tier, place in places(settings).items()
        if tier != own and place != root and os.path.isdir(place)
    ]
    values = {"user": settings.tier_user, "project": settings.tier_project, "team": settings.tier_team}
    return (Tiers(own, values), linked) if linked else (None, [])


def places(settings: Settings) -> dict[str, str]:
    """The folder of each other tier's vault, whether or not it exists."""
    found = {"user": own_vault()}
    if settings.team_vault:
        found["team"] = os.path.realpath(settings.team_vault)
    return found


def own_vault() -> str:
    """Your own vault, whether or not it exists. Raises SettingsError without a home folder."""
    return os.path.realpath(os.path.join(user_data_dir(os.environ), "knowledge"))


def is_own_vault(root: str) -> bool:
    with contextlib.suppress(SettingsError):
        return root == own_vault()
    return False


def place_of(settings: Settings, tier: str) -> str:
    """The folder of a tier's vault."""
    found = places(settings)
    if tier in found:
        return found[tier]
    if tier == "team":
        raise InvalidInputError("there is no team vault: set team_vault (CO_TEAM_VAULT) to its folder")
    if tier == "project":
        raise InvalidInputError("this folder is not in a project: `co init` makes a vault here")
    raise InvalidInputError(f"a tier must be one of {', '.join(TIERS)}, not {tier!r}")


def trusted_vaults(data_dir: str) -> list[str]:
    """The vaults that the user trusts, as real paths. They may be gone, but no other folder is in their place."""
    known = _read_trusted(data_dir)
    return [vault for vault, folder in known.items() if folder == _identity(vault) or not os.path.lexists(vault)]


def _read_trusted(data_dir: str) -> dict[str, str]:
    """Each vault that was trusted, and the identity that its folder had."""
    try:
        with open(os.path.join(data_dir, TRUSTED_FILE), encoding="utf-8", errors="surrogateescape") as file:
            rows = [line.partition(" ") for line in file.read().split("\n")]
    except OSError:
        return {}
    return {vault: folder for folder, _, vault in rows if os.path.isabs(vault)}


def _identity(folder: str) -> str:
    """The device, inode and creation time of a folder: no other has the same. Empty if it does not exist."""
    try:
        found = os.stat(folder)
    except OSError:
        return ""
    created = getattr(found, "st_birthtime", None)
    if created is None and sys.platform == "win32":
        created = found.st_ctime  # pyright: ignore[reportDeprecated] - Python 3.11 has no other name for it
    created = created or _birth_time(folder)
    return f"{found.st_dev}:{found.st_ino}:{created}"


def _birth_time(folder: str) -> str:
    """When a folder was created on Linux, which Python cannot say; 0 if the file system does not know.

    Inodes are used again at once, so they alone would not tell two folders apart.
    """
    import ctypes  # slow to import, and a search does without
    import struct

    statx, record = getattr(ctypes.CDLL(None), "statx", None), ctypes.create_string_buffer(256)
    if statx is None or statx(AT_FDCWD, os.fsencode(folder), 0, STATX_BTIME, record):
        return "0"
    if not struct.unpack_from("I", record)[0] & STATX_BTIME:
        return "0"
    return "{}.{:09}".format(*struct.unpack_from("=qI", record, 80))


def trust(data_dir: str, root: str, trusted: bool = True) -> bool:
    """Trust a vault, or stop trusting it. False if nothing changed."""
    root = os.path.realpath(root)
    if "\n" in root:
        raise InvalidInputError("a folder whose name has a line break cannot be trusted: rename it")
    make_folders(data_dir, private=True)
    with locked(data_dir):
        if (root in trusted_vaults(data_dir)) == trusted:
            return False
        kept = {**_read_trusted(data_dir), root: _identity(root)}
        if not trusted:
            del kept[root]
        text = "".join(f"{folder} {vault}\n" for vault, folder in kept.items())
        replace(os.path.join(data_dir, TRUSTED_FILE), text.encode("utf-8", "surrogateescape"), private=True)
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
    origin = settings.set_by["vault"]
    if origin == "default":
        return "it is your own vault"
    own = user_settings_file(os.environ)
    named = origin in ("CO_VAULT", "--vault") or bool(own and origin.startswith(f"{own}:"))
    return f"you named it yourself ({origin})" if named else ""


def why_untrusted(data_dir: str, root: str) -> str:
    """Why no note of a vault is added to prompts, and what to do, on one line."""
    known = _read_trusted(data_dir)
    gone = [vault for vault in known if not os.path.isdir(vault) and _name(vault) == _name(root)]
    hint = f" (you trust {gone[0]}, which is gone: was it moved here?)" if gone else ""
    if root in known:
        hint = " (you trusted another folder, which was here before)"
    return (
        f"notes in {root} are not added to prompts, because you have not trusted it{hint}: "
        f"`co config trust {shell_line(root)}` if its notes are yours"
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
        if vault in known or any(os.path.isdir(os.path.join(vault, name)) for name in HOMES):
            return vault
    if os.path.isdir(own):
        return own
    if not os.path.isdir(itself):
        raise InvalidInputError(f"there is no folder {folder}: name a vault, or a project that has one")
    raise InvalidInputError(
        f"{folder} is not a vault (it has no {' and no '.join(f'{name}/' for name in HOMES)}) and not a "
        "project (it has no .co-cli/knowledge/): name the folder that the notes are in"
    )


def _vault_in_settings(project: str) -> str | None:
    """The vault that a project's settings file names: it is what `co` opens there."""
    file = project_settings_file(os.path.abspath(project))
    if not os.path.isfile(file):
        return None
    environ = {name: value for name, value in os.environ.items() if name != "CO_VAULT"}
    settings = load_settings(environ=environ, start=project)
    return settings.vault if settings.set_by["vault"].startswith(f"{file}:") else None
