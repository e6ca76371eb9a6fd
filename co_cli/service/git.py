"""Run git on somebody's folder: without a shell, a pager or anything that a repository's configuration could start.

A vault may be somebody else's clone.
"""

from __future__ import annotations

import os
import subprocess

SECONDS = 5.0
OPTIONS = (
    "--no-pager",
    "--literal-pathspecs",
    "--no-optional-locks",
    "-c", "core.fsmonitor=false",
    "-c", "log.showSignature=false",
    "-c", "core.quotePath=false",
)  # fmt: skip
ELSEWHERE = ("GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE", "GIT_OBJECT_DIRECTORY", "GIT_COMMON_DIR", "GIT_NAMESPACE")
"""Set while a hook runs, and then they name another repository."""


class GitError(Exception):
    """git is not there, cannot be run, takes too long or says no; the text says which."""


def in_repository(folder: str) -> bool:
    """Is there a `.git` here or above? Saves the start of git where there is none."""
    while True:
        if os.path.exists(os.path.join(folder, ".git")):
            return True
        parent = os.path.dirname(folder)
        if parent == folder:
            return False
        folder = parent


def run_git(root: str, arguments: list[str], seconds: float = SECONDS, given: bytes = b"") -> bytes:
    """What git prints; `given` is its standard input. Raises GitError."""
    environment = {name: value for name, value in os.environ.items() if name not in ELSEWHERE}
    environment |= {"LC_ALL": "C.UTF-8", "GIT_TERMINAL_PROMPT": "0", "GIT_NO_LAZY_FETCH": "1"}
    try:
        ran = subprocess.run(
            ["git", *OPTIONS, *arguments],
            cwd=root,
            env=environment,
            input=given,
            capture_output=True,
            timeout=seconds,
            check=False,
        )
    except FileNotFoundError:
        raise GitError("git is not installed") from None
    except subprocess.TimeoutExpired:
        raise GitError(f"git took longer than {seconds:g} s") from None
    except (OSError, ValueError) as error:
        raise GitError(f"git cannot be run ({error})") from None
    if ran.returncode:
        said = ran.stderr.decode("utf-8", "replace").strip().splitlines()
        if any("does not have any commits" in line for line in said):
            return b""
        raise GitError(f"git: {said[-1] if said else f'it ended with {ran.returncode}'}")
    return ran.stdout
