"""Programs that co-cli does not depend on, each in a folder of its own: found there, or installed on request."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from glob import glob
from typing import NamedTuple

from co_cli.ground.errors import KnowledgeError

CACHE = os.path.join(os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache"), "co-cli-benchmarks")
NEWEST = 15
"""The newest minor version of Python 3 that is looked for."""


class NotInstalledError(KnowledgeError):
    """A program is not there, or cannot be installed; the message says why."""


class Program(NamedTuple):
    """What to install, from PyPI, or with `node` from npm; the first package gives the version."""

    name: str
    packages: tuple[str, ...]
    node: bool = False
    python: tuple[int, int] = (3, 11)
    """The oldest Python that it runs on."""


class Installed(NamedTuple):
    """A program in its folder."""

    folder: str
    bin: str
    version: str

    @property
    def path(self) -> str:
        """For PATH: its own programs first."""
        return f"{self.bin}{os.pathsep}{os.environ.get('PATH', os.defpath)}"


class Environments(NamedTuple):
    """A folder with a subfolder for each program."""

    folder: str = CACHE
    install: bool = False
    """Whether a missing program is installed."""

    def find(self, program: Program) -> Installed:
        """Raises NotInstalledError."""
        folder = os.path.join(self.folder, program.name)
        version = _version(folder, program)
        if version is None and self.install:
            (_install_node if program.node else _install_python)(folder, program)
            version = _version(folder, program)
        if version is None:
            raise NotInstalledError(f"not in {folder}: install it there, or add --install")
        return Installed(folder, _bin(folder, program), version)


def _bin(folder: str, program: Program) -> str:
    if program.node:
        return os.path.join(folder, "node_modules", ".bin")
    return os.path.join(folder, "Scripts" if sys.platform == "win32" else "bin")


def _version(folder: str, program: Program) -> str | None:
    package = re.split(r"(?<=.)@|[\[=<>]", program.packages[0])[0]
    if program.node:
        about = os.path.join(folder, "node_modules", package, "package.json")
        if os.path.exists(about):
            with open(about, encoding="utf-8") as stream:
                return json.load(stream)["version"]
        return None
    libraries = os.path.join(folder, "Lib" if sys.platform == "win32" else "lib/python*", "site-packages")
    found = glob(os.path.join(libraries, f"{package.replace('-', '_')}-*.dist-info"))
    return os.path.basename(found[0]).removesuffix(".dist-info").rpartition("-")[2] if found else None


def _install_python(folder: str, program: Program) -> None:
    python = _interpreter(program.python)
    _run([python, "-m", "venv", folder], program)
    pip = [os.path.join(_bin(folder, program), "python"), "-m", "pip", "install", "-q", "-U"]
    _run([*pip, "pip"], program)
    _run([*pip, *program.packages], program)


def _interpreter(oldest: tuple[int, int]) -> str:
    names = [sys.executable, *(f"python3.{minor}" for minor in range(NEWEST, oldest[1] - 1, -1))]
    for name in filter(None, map(shutil.which, names)):
        done = subprocess.run(
            [name, "-c", "import sys; print(*sys.version_info[:2])"], capture_output=True, check=False
        )
        if done.returncode == 0 and tuple(map(int, done.stdout.split())) >= oldest:
            return name
    raise NotInstalledError(f"it needs Python {oldest[0]}.{oldest[1]} or newer, which is not on the PATH")


def _install_node(folder: str, program: Program) -> None:
    npm = shutil.which("npm")
    if npm is None:
        raise NotInstalledError("it needs npm, which is not on the PATH")
    os.makedirs(folder, exist_ok=True)
    _run([npm, "install", "--silent", "--no-package-lock", "--prefix", folder, *program.packages], program)


def _run(command: list[str], program: Program) -> None:
    print(f"installing {program.name}: {' '.join(command)}", file=sys.stderr)
    done = subprocess.run(command, capture_output=True, text=True, errors="replace", check=False)
    if done.returncode:
        said = (done.stderr.strip() or done.stdout.strip() or f"exit code {done.returncode}").splitlines()
        problems = [line for line in said if "error" in line.lower()] or said
        raise NotInstalledError(f"it cannot be installed: {problems[0][:300]}")
