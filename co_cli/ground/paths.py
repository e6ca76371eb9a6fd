"""Where the vault, the data folder and the settings files are, and how to open a file safely.

Strings and os.path on purpose: a cold search imports this, and pathlib would cost a third of a Python start.
"""

from __future__ import annotations

import errno
import json
import os
import shlex
import stat
import sys
from collections.abc import Mapping
from io import BufferedReader
from urllib.parse import unquote

from co_cli.ground.errors import SettingsError, VaultError

PROJECT_FOLDER = ".co-cli"
SETTINGS_FILE = "settings.toml"
TEMPORARY = ".co-tmp-"
"""Prefix of a file that is being written."""
NO_ROOM = (errno.ENOSPC, getattr(errno, "EDQUOT", errno.ENOSPC))
READ_FLAGS = os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_BINARY", 0)


def open_regular(path: str, follow: bool = True) -> BufferedReader:
    """Open a regular file for reading bytes; without `follow`, no symbolic link either. Raises OSError.

    Anything else could block forever, as a pipe without a writer does, or never end, as a device. The opened file is
    checked, because the name may have been replaced after a folder was listed.
    """
    return open(path, "rb", opener=lambda path, _: _open(path, 0 if follow else getattr(os, "O_NOFOLLOW", 0)))


def _open(path: str, flags: int) -> int:
    handle = os.open(path, READ_FLAGS | flags)
    mode = os.fstat(handle).st_mode
    if stat.S_ISREG(mode):
        return handle
    os.close(handle)
    if stat.S_ISDIR(mode):
        raise IsADirectoryError(errno.EISDIR, "a folder, not a file", path)
    raise OSError(errno.EINVAL, "not a regular file", path)


def permission_cure(path: str, write: bool = False) -> str:
    """The command that gives you the right to a file: on the first folder that you may not enter, else on the file.

    To write is to create a file under another name, so what counts is the folder.
    """
    at = os.path.dirname(path) if write else path
    if os.name == "nt":
        return f"icacls {shell_line(at)} /grant {shell_line(os.environ.get('USERNAME', 'YOU'))}:F"
    above = [at]
    while os.path.dirname(above[-1]) != above[-1]:
        above.append(os.path.dirname(above[-1]))
    for folder in reversed(above[1:]):
        if os.path.isdir(folder) and not os.access(folder, os.X_OK):
            return f"chmod u+rwx {shell_line(folder)}"
    at = next(folder for folder in above if os.path.exists(folder))
    return f"chmod u+{'rwx' if os.path.isdir(at) else 'rw'} {shell_line(at)}"


def shell_line(*words: str) -> str:
    """Words as somebody types them into a shell: on Windows into cmd or PowerShell, elsewhere into any other."""
    if os.name != "nt":
        return shlex.join(words)
    import subprocess  # slow to import, and only commands that are shown need it there

    return subprocess.list2cmdline(words)


def own_process(module: str) -> tuple[list[str], dict[str, str]]:
    """The command and the variables of another process of ours: it imports from where this one does, and from nowhere
    else that a folder or variables of a project name."""
    env = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}
    env["PYTHONPATH"] = os.pathsep.join(filter(None, sys.path))
    return [sys.executable, "-s", "-P", "-m", module], env


def install_line(extra: str, again: bool = False) -> str:
    """The command that installs an extra where this co-cli is, from where that came: until a package is published, only
    its clone has the extras. `again` is for one that is there and damaged."""
    receipts = {
        "uv-receipt.toml": f"uv tool install{' --reinstall' if again else ''}",
        "pipx_metadata.json": "pipx install --force",
    }
    found = (tool for name, tool in receipts.items() if os.path.exists(os.path.join(sys.prefix, name)))
    tool = next(found, None) or f"{_pip()} install{' --force-reinstall' if again else ''}"
    return f'{tool} "{_origin()}[{extra}]"'


def _pip() -> str:
    """Of this environment, by its path if a shell would find another one."""
    own = os.path.join(sys.prefix, *(("Scripts", "pip.exe") if os.name == "nt" else ("bin", "pip")))
    is_named = sys.prefix != sys.base_prefix and os.environ.get("VIRTUAL_ENV") != sys.prefix and os.path.exists(own)
    return shell_line(own) if is_named else "pip"


def _origin() -> str:
    """The clone or file that this co-cli was installed from, else the name of the package."""
    package = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    folder = os.path.dirname(package)
    if os.path.isfile(os.path.join(folder, "pyproject.toml")):
        return folder
    try:
        about = next(name for name in os.listdir(folder) if name.startswith("co_cli-") and name.endswith(".dist-info"))
        with open(os.path.join(folder, about, "direct_url.json"), "rb") as stream:
            address = str(json.load(stream)["url"])
    except (OSError, StopIteration, ValueError, LookupError, TypeError):  # from an index of packages
        return "co-cli"
    path = unquote(address.removeprefix("file://"))
    path = path.lstrip("/") if os.name == "nt" else path
    return path if address.startswith("file://") and os.path.exists(path) else "co-cli"


def find_project(start: str) -> str | None:
    """The nearest folder at or above `start` that has a `.co-cli` folder. Raises SettingsError if that is not yours.

    Anybody may create one in a shared folder such as `/tmp`.
    """
    folder = os.path.abspath(start)
    while not os.path.isdir(os.path.join(folder, PROJECT_FOLDER)):
        parent = os.path.dirname(folder)
        if parent == folder:
            return None
        folder = parent
    found = os.path.join(folder, PROJECT_FOLDER)
    if not is_yours(found):
        raise SettingsError(
            f"{found} belongs to another user, so it is not used: name a vault with --vault or CO_VAULT, "
            f"`co init .` makes one here, or `chown -R` the folder if it should be yours"
        )
    return folder


def is_inside(path: str, folder: str) -> bool:
    """Whether a path is this folder or in it. Links are not followed."""
    return path_inside(path, folder) is not None


def path_inside(path: str, folder: str) -> str | None:
    """A path in a folder as seen from there, with `/`; empty for the folder itself, None for anything outside.

    Unlike os.path.relpath it takes paths on two drives, and compares as the system does.
    """
    there, start = os.path.normcase(path), os.path.normcase(folder).rstrip(os.sep) + os.sep
    if there + os.sep == start:
        return ""
    return path[len(start) :].replace(os.sep, "/") if there.startswith(start) else None


def is_yours(path: str) -> bool:
    """Whether a file or folder belongs to you; if it is a link, the link and its target."""
    return os.name == "nt" or {os.lstat(path).st_uid, os.stat(path).st_uid} == {os.geteuid()}


def project_of(vault: str) -> str | None:
    """The project that really contains a vault, whatever links lead to it; None if there is none, or not yours."""
    try:
        return find_project(os.path.realpath(vault))
    except (SettingsError, ValueError):  # no path at all, which is reported elsewhere
        return None


def project_settings_file(project: str) -> str:
    return os.path.join(project, PROJECT_FOLDER, SETTINGS_FILE)


def project_vault(project: str) -> str:
    return os.path.join(project, PROJECT_FOLDER, "knowledge")


def user_data_dir(environ: Mapping[str, str]) -> str:
    folder = _xdg(environ, "XDG_DATA_HOME", "LOCALAPPDATA", (".local", "share"))
    if folder is None:
        raise SettingsError("your home folder is not known: set HOME, or CO_DATA_DIR and CO_VAULT")
    return os.path.join(folder, "co-cli")


def user_settings_file(environ: Mapping[str, str]) -> str | None:
    """None if there is no home folder."""
    folder = _xdg(environ, "XDG_CONFIG_HOME", "APPDATA", (".config",))
    return None if folder is None else os.path.join(folder, "co-cli", SETTINGS_FILE)


def _xdg(environ: Mapping[str, str], variable: str, windows: str, below_home: tuple[str, ...]) -> str | None:
    chosen = environ.get(variable, "")
    if os.path.isabs(chosen):  # the XDG specification says to ignore relative paths
        return chosen
    if os.name == "nt" and environ.get(windows):
        return environ[windows]
    home = environ.get("HOME") or os.path.expanduser("~")
    return os.path.join(home, *below_home) if os.path.isabs(home) else None


def sample_vault() -> str:
    """The sample vault: in the installed package, or next to it in a checkout."""
    package = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    for folder in (os.path.join(package, "sample_vault"), os.path.join(os.path.dirname(package), "knowledge")):
        if os.path.isdir(os.path.join(folder, "memories")):
            return folder
    raise VaultError("the sample vault is missing from this installation: `pip install --force-reinstall co-cli`")
