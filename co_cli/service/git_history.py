"""The commits that touched one file, asked of git itself; none if there is no git, no repository or no time."""

from __future__ import annotations

from typing import NamedTuple

from co_cli.service.git import SECONDS, GitError, in_repository, run_git

MOST = 200
FORMAT = "%x1e%H%x1f%at%x1f%an%x1f%s"


class Commit(NamedTuple):
    """One commit of a file."""

    at: float
    commit: str
    author: str
    subject: str
    added: int | None
    """Lines; None if git does not call it text."""
    deleted: int | None


class Commits(NamedTuple):
    """What git says of a file."""

    commits: list[Commit]
    problem: str | None = None
    """Why they may not be all; None also where there is no repository at all."""


def commits_of(root: str, path: str, limit: int = MOST, seconds: float = SECONDS) -> Commits:
    """Newest first, followed across renames. `path` is inside `root`, which may lie deep in a repository."""
    if not in_repository(root):
        return Commits([])
    command = ["log", "--follow", "--numstat", "--no-color", "--no-ext-diff", "--no-textconv"]
    command += [f"--format={FORMAT}", f"--max-count={limit}", "--", path]
    try:
        printed = run_git(root, command, seconds)
    except GitError as error:
        said = str(error)
        return Commits([], said if said.startswith("git: ") else f"{said}: its history is left out")
    return Commits(read_log(printed.decode("utf-8", "replace")))


def read_log(text: str) -> list[Commit]:
    """What `git log --numstat` printed in our format."""
    commits: list[Commit] = []
    for block in text.split("\x1e")[1:]:
        head, _, rest = block.partition("\n")
        number, at, author, subject = head.split("\x1f", 3)
        added, deleted = _changed(rest)
        commits.append(Commit(float(at), number, author, subject, added, deleted))
    return commits


def _changed(numstat: str) -> tuple[int | None, int | None]:
    for line in numstat.splitlines():
        numbers = line.split("\t")[:2]
        if len(numbers) == 2 and all(number.isdigit() for number in numbers):
            return int(numbers[0]), int(numbers[1])
    return None, None
