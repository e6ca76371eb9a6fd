"""A git repository through the git command: trees, texts, merges, commits and the remote.

No call asks a question, opens a pager or waits longer than its deadline. None runs a hook or a program that the
repository configures, except what `fetch` and `push` need to reach the remote. Nothing here touches files of the work
tree. What cannot be a note is left out, and `skipped` says why: such as submodules, symbolic links, names that no disk
or database takes, and files of more than 50 MB.
"""

from __future__ import annotations

import hashlib
import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from co_cli.ground.errors import GitError
from co_cli.ground.values import to_utf8

SECONDS, REMOTE_SECONDS, LOG_SECONDS = 60, 45, 5.0
"""Deadlines of local calls, of those that talk to the remote, and of those that a person waits for."""
OPTIONS = (
    "--no-pager",
    "--literal-pathspecs",
    "--no-optional-locks",
    "-c", "core.hooksPath=/dev/null",
    "-c", "core.fsmonitor=false",
    "-c", "core.quotePath=false",
    "-c", "log.showSignature=false",
)  # fmt: skip
OTHER_REPOSITORY = (
    "GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE", "GIT_OBJECT_DIRECTORY", "GIT_COMMON_DIR", "GIT_NAMESPACE",
)  # fmt: skip
"""Variables that are set while a hook runs, and name its repository."""
PLAIN_FILES = ("100644", "100755")
KINDS = {"12": "a symbolic link", "16": "a submodule"}
"""By the first digits of their mode."""
LARGEST = 50_000_000
"""Bytes. A larger file, such as a video, would fill the memory and the database of every server."""
LONGEST_NAME, LONGEST_PATH = 255, 800
"""Bytes. Disks take no longer names, and PostgreSQL indexes no longer paths once they are folded."""
OUTGOING = "refs/co-cli/outgoing"
"""Commits that are not pushed yet."""
DROPPED = "refs/co-cli/dropped"
"""Below it, the newest commits of histories that were rewritten at the remote: git deletes what no ref leads to."""
WITH_DROPPED = ("HEAD", f"--glob={DROPPED}/*")
"""Where a log begins that has their commits, too."""
MOST_COMMITS = 10_000
"""Of one push, that are asked for their authors."""
AT_ONCE = 500
"""Paths in one call of git."""
OTHERS_FETCH = (b"cannot lock ref", b"incorrect old value")
"""What git says if somebody else fetches into the same clone. The second is of git 2.53."""


class GitFile(NamedTuple):
    """A file in a tree."""

    mode: str
    blob: str
    size: int


class CommitDifference(NamedTuple):
    """How two commits differ."""

    changes: dict[str, tuple[str | None, str | None]]
    """The blobs of each path in both; None where there is no file that a server can have."""
    skipped: dict[str, str]
    """What the new one has and no server can have, of what changed, with the reasons."""
    paths: set[str]
    """Everything that changed."""
    sizes: dict[str, int]
    """Bytes of the blobs."""


class Edit(NamedTuple):
    """What one commit did to a file."""

    author: str
    commit: str
    blob: str | None
    """None if it removed the file."""


class Group(NamedTuple):
    """The texts of one commit; None removes a file."""

    author: str
    moment: int
    texts: Mapping[str, bytes | None]


class Repository:
    """The git repository of a folder: in it, or above it unless the environment has its GIT_DIR."""

    def __init__(self, root: str, largest: Mapping[str, int] | None = None, **environment: str) -> None:
        """`largest` are the bytes that files of some names may have, such as ignore files."""
        self.root, self._largest = root, largest or {}
        self._branch: str | None = None
        self._remotes: list[str] | None = None
        self._environment = {"GIT_TERMINAL_PROMPT": "0", "LC_ALL": "C.UTF-8", **environment}

    def branch(self) -> str:
        """Asked for once."""
        if not self._branch:
            self._branch = self.run("symbolic-ref", "--short", "--quiet", "HEAD", check=False).stdout.decode().strip()
        if not self._branch:
            raise GitError(f"{self.root} has no branch checked out: `git switch BRANCH` there")
        return self._branch

    def remote(self) -> str | None:
        """Asked for once."""
        if self._remotes is None:
            self._remotes = self._text("remote").split()
        return "origin" if "origin" in self._remotes else next(iter(self._remotes), None)

    def name(self) -> str:
        """`git config co.vault`, else the last part of the remote's address, else the folder's name."""
        chosen = self.run("config", "co.vault", check=False).stdout.decode().strip()
        remote = None if chosen else self.remote()
        address = self._text("remote", "get-url", remote) if remote else self.root
        return chosen or address.rstrip("/").replace(":", "/").rpartition("/")[2].removesuffix(".git")

    def person(self) -> str:
        """Who commits here by hand, as git is configured."""
        return self.run("config", "user.name", check=False).stdout.decode("utf-8", "replace").strip()

    def tip(self) -> str | None:
        """The newest commit of the branch: at the remote, as far as it was fetched, or here if there is none."""
        place = f"refs/remotes/{self.remote()}" if self.remote() else "refs/heads"
        return self._commit(f"{place}/{self.branch()}")

    def head(self) -> str | None:
        return self._commit("HEAD")

    def first_commits(self, commit: str) -> list[str]:
        """What clones of one repository have in common; nothing in a clone without the whole history."""
        if self._text("rev-parse", "--is-shallow-repository") == "true":
            return []
        return self._text("rev-list", "--max-parents=0", commit).split()

    def common(self, first: str | None, other: str | None) -> str | None:
        """The newest commit that both contain."""
        if first is None or other is None:
            return None
        return self.run("merge-base", first, other, check=False).stdout.decode().strip() or None

    def has(self, commit: str) -> bool:
        """Whether a commit is here with its files. A fetch that was killed, or is not done yet, has written a part."""
        return self.run("rev-list", "--objects", "--quiet", commit, "--not", "--all", check=False).returncode == 0

    def get(self, commit: str) -> None:
        """Make sure that a commit of the remote is here, even if a force-push has dropped it from its branch."""
        for wanted in ((), (commit,)):
            if not self.has(commit):
                self.fetch(*wanted)

    def fetch(self, *commits: str) -> None:
        """Ask the remote for its newest commits, or for these. Others may do so in this clone at the same moment."""
        asked = ("fetch", "--quiet", "--no-tags", "--no-recurse-submodules", str(self.remote()), *commits)
        for last in (False, False, True) if self.remote() else ():
            done = self.run(*asked, check=last, seconds=REMOTE_SECONDS)
            if done.returncode == 0:
                return
            if not any(said in done.stderr for said in OTHERS_FETCH):
                raise self._failure("fetch", done)

    def count(self, old: str | None, new: str) -> int:
        """How many commits `new` has that `old` lacks."""
        return int(self._text("rev-list", "--count", new, *([f"^{old}"] if old else [])))

    def commits(self, old: str | None, new: str) -> set[str]:
        """Those that `new` has and `old` lacks."""
        return set(self._text("rev-list", new, *([f"^{old}"] if old else [])).split())

    def author_of(self, commit: str) -> str:
        return self._text("show", "-s", "--format=%an", commit)

    def files(self, tree: str | None, paths: Sequence[str] | None = None) -> dict[str, GitFile]:
        """Every plain file of a tree or commit that can be on a disk, or of these paths; nothing before the first."""
        if paths is None:
            return self._listed(tree)[0]
        found: dict[str, GitFile] = {}
        for start in range(0, len(paths), AT_ONCE):
            found |= self._listed(tree, paths[start : start + AT_ONCE])[0]
        return found

    def skipped(self, tree: str | None) -> dict[str, str]:
        """What `files` leaves out of a tree, with the reasons."""
        return self._listed(tree)[1]

    def _listed(self, tree: str | None, paths: Sequence[str] = ()) -> tuple[dict[str, GitFile], dict[str, str]]:
        found: dict[str, GitFile] = {}
        skipped: dict[str, str] = {}
        asked = ("ls-tree", "-r", "-z", "-l", "--full-tree", str(tree), "--", *paths)
        for entry in self.run(*asked).stdout.split(b"\0")[:-1] if tree else ():
            about, _, name = entry.partition(b"\t")
            mode, _, blob, size = about.decode().split()
            path, why = self._place(mode, name, int(size) if size.isdigit() else 0)
            if why:
                skipped[path] = why
            else:
                found[path] = GitFile(mode, blob, int(size))
        return found, skipped

    def _place(self, mode: str, name: bytes, size: int) -> tuple[str, str]:
        """The path of an entry of a tree, and why no server has a file there; an empty reason if it can have one."""
        path, why = _path_of(name)
        if mode not in PLAIN_FILES:
            why = KINDS.get(mode[:2], "not a file")
        elif size > self._largest.get(os.path.basename(path), LARGEST):
            why = f"has {size:,} bytes"
        return path, why

    def difference(self, old: str | None, new: str) -> CommitDifference:
        """How two commits differ; only what differs is looked at.

        A file with a limit of its own, such as an ignore file, stays as it was if it becomes too large, so that nothing
        that it hides comes to light.
        """
        if old is None:
            files, skipped = self._listed(new)
            sizes = {file.blob: file.size for file in files.values()}
            added = dict[str, tuple[str | None, str | None]]({path: (None, file.blob) for path, file in files.items()})
            return CommitDifference(added, skipped, {*files, *skipped}, sizes)
        asked = ("diff-tree", "-r", "-z", "--no-renames", "--ignore-submodules=none", old, new)
        parts = self.run(*asked).stdout.split(b"\0")[:-1]
        entries = [(about.decode()[1:].split(), name) for about, name in zip(parts[::2], parts[1::2], strict=True)]
        pairs = (pair for about, _ in entries for pair in zip(about[:2], about[2:4], strict=True))
        sizes = self.sizes(blob for mode, blob in pairs if mode in PLAIN_FILES)
        found, skipped, paths = dict[str, tuple[str | None, str | None]](), dict[str, str](), set[str]()
        for (old_mode, new_mode, old_blob, new_blob, _), name in entries:
            path, unheld = self._place(old_mode, name, sizes.get(old_blob, 0))
            _, why = self._place(new_mode, name, sizes.get(new_blob, 0))
            before, after = None if unheld else old_blob, None if why else new_blob
            if why and int(new_mode):
                skipped[path] = why
                after = before if self.stays(path) else None
            paths.add(path)
            if before != after:
                found[path] = (before, after)
        return CommitDifference(found, skipped, paths, sizes)

    def stays(self, path: str) -> bool:
        """Whether a file stays as it was if it becomes too large."""
        return os.path.basename(path) in self._largest

    def sizes(self, blobs: Iterable[str]) -> dict[str, int]:
        """How many bytes these blobs have."""
        given = "".join(f"{blob}\n" for blob in sorted(set(blobs))).encode()
        said = self.run("cat-file", "--batch-check", given=given).stdout.decode() if given else ""
        lines = [line.split() for line in said.splitlines()]
        missing = next((line[0] for line in lines if len(line) != 3), None)
        if missing:
            raise self._lacks(missing)
        return {blob: int(size) for blob, _, size in lines}

    def edits(self, old: str | None, new: str) -> dict[str, list[Edit]]:
        """What each commit since `old` did to the files that it changed, oldest first. Merges are left out."""
        asked = ["log", "--raw", "-z", "--no-abbrev", "--no-renames", "--no-merges", "--root", "--topo-order"]
        asked += [f"--max-count={MOST_COMMITS}", "--format=%x1e%H%x1f%an", new, *([f"^{old}"] if old else []), "--"]
        found: dict[str, list[Edit]] = {}
        commit = author = ""
        parts = iter(self.run(*asked).stdout.split(b"\0")[:-1])
        for part in parts:
            if part.startswith(b"\x1e"):
                commit, _, author = part[1:].decode("utf-8", "replace").partition("\x1f")
                continue
            _, mode, _, blob, _ = part.decode().strip().split()
            made = Edit(author, commit, blob if mode in PLAIN_FILES else None)
            found.setdefault(_path_of(next(parts))[0], []).insert(0, made)
        return found

    def texts(self, blobs: Iterable[str], required: bool = True) -> dict[str, bytes]:
        """What these blobs hold. Raises GitError if one is not here, unless they are not required."""
        wanted = sorted(set(blobs))
        given = "".join(f"{blob}\n" for blob in wanted).encode()
        out = self.run("cat-file", "--batch", given=given).stdout if wanted else b""
        found: dict[str, bytes] = {}
        place = 0
        for blob in wanted:
            end = out.index(b"\n", place)
            about = out[place:end].split()
            if len(about) != 3:
                if required:
                    raise self._lacks(blob)
                place = end + 1
                continue
            found[blob] = out[end + 1 : end + 1 + int(about[2])]
            place = end + 2 + int(about[2])
        return found

    def own_files(self) -> list[str]:
        """Every file that git tracks here or would add."""
        out = self.run("ls-files", "-z", "--cached", "--others", "--exclude-standard").stdout
        paths = {path for path, why in map(_path_of, out.split(b"\0")[:-1]) if not why}
        return sorted(path for path in paths if not self._is_large(path))

    def merge(self, ours: bytes, base: bytes, theirs: bytes) -> bytes | None:
        """A three-way merge; None if it does not merge."""
        with tempfile.TemporaryDirectory() as folder:
            names = [os.path.join(folder, name) for name in ("ours", "base", "theirs")]
            for name, data in zip(names, (ours, base, theirs), strict=True):
                with open(name, "wb") as stream:
                    stream.write(data)
            done = self.run("merge-file", "-p", "-q", *names, check=False)
        return done.stdout if done.returncode == 0 else None

    def commit(self, parent: str | None, groups: Sequence[Group]) -> list[str | None]:
        """One commit for each group, one on top of another; none where nothing changes. Returns the tip after each.

        The same groups on the same parent give the same commits, wherever they are made.
        """
        files = self.files(parent, sorted({path for group in groups for path in group.texts}))
        stream, tips = bytearray(), list[int]()
        for group in groups:
            lines = bytearray()
            for path, data in sorted(group.texts.items()):
                mode = files[path].mode if path in files else PLAIN_FILES[0]
                if data is None and files.pop(path, None):
                    lines += b"D %s\n" % _quoted(path)
                if data is not None and files.get(path) != (file := GitFile(mode, blob_name(data, parent), len(data))):
                    files[path] = file
                    lines += b"M %s inline %s\ndata %d\n%s\n" % (mode.encode(), _quoted(path), len(data), data)
            mark = tips[-1] if tips else 0
            if lines:
                stream += _commit_header(group, mark + 1, f":{mark}" if mark else parent)
                stream += lines
                mark += 1
            tips.append(mark)
        if not stream:
            return [parent for _ in groups]
        stream += b"".join(b"get-mark :%d\n" % mark for mark in range(1, tips[-1] + 1))
        said = self.run("fast-import", "--quiet", "--force", "--done", given=bytes(stream) + b"done\n").stdout
        commits = [parent, *said.decode().split()]
        return [commits[mark] for mark in tips]

    def push(self, commit: str) -> bool:
        """Whether the remote took it. False: others pushed before. Raises GitError if it cannot be reached."""
        remote = self.remote()
        assert remote
        target = f"{commit}:refs/heads/{self.branch()}"
        asked = ("push", "--porcelain", "--no-recurse-submodules", remote, target)
        done = self.run(*asked, check=False, seconds=REMOTE_SECONDS)
        if done.returncode and b"[rejected]" not in done.stdout:
            raise self._failure("push", done)
        return done.returncode == 0

    def move_branch(self, new: str, old: str | None) -> bool:
        """Move the branch, and what git takes for checked out. False if the branch is not at `old`."""
        moved = self.run("update-ref", f"refs/heads/{self.branch()}", new, old or "0" * len(new), check=False)
        if moved.returncode == 0:
            self.run("read-tree", new, check=False)  # refuses a tree with a file that it would not check out
        return moved.returncode == 0

    def follow(self, commit: str | None) -> None:
        """Move the branch of a clone to what the remote has, unless somebody has committed here."""
        head = self.head()
        if not self.remote() or not commit or head == commit:
            return
        if head is None or head in (self.common(head, commit), self._fork_point(head)):
            self.keep_dropped(head, commit)
            self.move_branch(commit, head)

    def keep_dropped(self, old: str | None, new: str) -> None:
        """Keep the history of a branch that was moved from one commit to another, if the other does not contain it."""
        if old and self.common(old, new) != old:
            self.run("update-ref", f"{DROPPED}/{old}", old)

    def dropped_commits(self) -> set[str]:
        """Every commit of histories that were rewritten."""
        return set(self._text("rev-list", f"--max-count={MOST_COMMITS}", WITH_DROPPED[1], "--not", "HEAD").split())

    def dropped(self) -> list[tuple[str, float]]:
        """The newest commits of histories that were rewritten, and when they were committed; the latest first."""
        asked = ("for-each-ref", "--sort=-committerdate", "--format=%(objectname) %(committerdate:unix)", DROPPED)
        lines = (line.split() for line in self._text(*asked).splitlines())
        return [(commit, float(moment)) for commit, moment in lines]

    def run(
        self, *arguments: str, given: bytes = b"", check: bool = True, seconds: float = SECONDS
    ) -> subprocess.CompletedProcess[bytes]:
        """Run git with these arguments. Raises GitError if it cannot run, takes too long or, with `check`, fails."""
        environment = {name: value for name, value in os.environ.items() if name not in OTHER_REPOSITORY}
        try:
            with subprocess.Popen(
                ["git", *OPTIONS, *arguments],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                cwd=self.root,
                env=environment | self._environment,
                start_new_session=True,  # without a terminal that ssh could ask questions in
            ) as process:
                try:
                    out, said = process.communicate(given, seconds)
                except BaseException:
                    _kill(process)
                    raise
        except subprocess.TimeoutExpired:
            raise GitError(f"git {arguments[0]} in {self.root} took longer than {seconds:g} s") from None
        except FileNotFoundError:
            raise GitError(f"cannot run git in {self.root}: is it installed, and is the folder there?") from None
        except (OSError, ValueError) as error:
            raise GitError(f"cannot run git in {self.root} ({error})") from None
        done = subprocess.CompletedProcess(process.args, process.returncode, out, said)
        if check and done.returncode:
            raise self._failure(arguments[0], done)
        return done

    def _commit(self, name: str) -> str | None:
        done = self.run("rev-parse", "--verify", "--quiet", f"{name}^{{commit}}", check=False)
        if done.returncode > 1:  # 1: there is none
            raise self._failure("rev-parse", done)
        return done.stdout.decode().strip() or None

    def _fork_point(self, head: str) -> str | None:
        """The commit of the remote that `head` builds on, even if the remote's history was rewritten since."""
        place = f"refs/remotes/{self.remote()}/{self.branch()}"
        return self.run("merge-base", "--fork-point", place, head, check=False).stdout.decode().strip() or None

    def _text(self, *arguments: str) -> str:
        return self.run(*arguments).stdout.decode("utf-8", "replace").strip()

    def _is_large(self, path: str) -> bool:
        try:
            return os.lstat(os.path.join(self.root, path)).st_size > LARGEST
        except OSError:  # not there
            return False

    def _lacks(self, blob: str) -> GitError:
        return GitError(f"{self.root} lacks the object {blob}: `git fsck` says what else is missing")

    def _failure(self, what: str, done: subprocess.CompletedProcess[bytes]) -> GitError:
        said = " ".join((done.stderr or done.stdout).decode("utf-8", "replace").split())
        return GitError(f"git {what} in {self.root} failed: {said[:300]}")


def repository_around(folder: str) -> Repository | None:
    """The repository that a folder is in, as far as it is on this machine. Starts no git where there is none."""
    parents = (folder, *map(str, Path(folder).parents))
    is_there = any(os.path.exists(os.path.join(parent, ".git")) for parent in parents)
    return Repository(folder, GIT_NO_LAZY_FETCH="1") if is_there else None


def _kill(process: subprocess.Popen[bytes]) -> None:
    """End git and the programs that it started, such as ssh, which may wait for a remote that hangs."""
    if sys.platform == "win32":
        process.kill()
    else:
        os.killpg(process.pid, signal.SIGKILL)


def _path_of(name: bytes) -> tuple[str, str]:
    """A path as text, and why no server has a file there; an empty reason if it can have one."""
    path = name.decode("utf-8", "surrogateescape")
    parts = path.casefold().split("/")
    if to_utf8(path) != path:
        return to_utf8(path), "the name is not valid UTF-8"
    if {".git", "..", ".", ""} & set(parts):
        return path, "leads into a git folder or out of the vault"
    if len(name) > LONGEST_PATH or any(len(part) > LONGEST_NAME for part in name.split(b"/")):
        return path, "the name is too long"
    return path, ""


def _quoted(path: str) -> bytes:
    text = path.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
    return f'"{text}"'.encode()


def blob_name(data: bytes, commit: str | None) -> str:
    """The name that git gives to a text: by SHA-256 where commits have such names."""
    how = hashlib.sha256 if commit and len(commit) == 64 else hashlib.sha1
    return how(b"blob %d\0%s" % (len(data), data)).hexdigest()


def _commit_header(group: Group, mark: int, parent: str | None) -> bytes:
    name = "".join(" " if letter in "<>\n" else letter for letter in group.author).strip() or "co-cli"
    address = name if "@" in name else f"{name.replace(' ', '.')}@co-cli"
    first, *more = sorted(group.texts, key=lambda path: (path.startswith("."), path))  # a note before the trash
    message = f"{'Save' if group.texts[first] is not None else 'Remove'} {first}".encode()
    message += f" and {len(more)} more".encode() if more else b""
    when = f"{group.moment} +0000"
    head = f"commit {OUTGOING}\nmark :{mark}\nauthor {name} <{address}> {when}\n"
    head += f"committer co-cli <co-cli@co-cli> {when}\ndata {len(message)}\n"
    return head.encode() + message + b"\n" + (f"from {parent}\n".encode() if parent else b"")
