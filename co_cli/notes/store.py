"""The files of one vault: create, read, change, trash and restore notes, and never touch anything outside it.

A path is relative to the vault and uses `/`. A change is applied only to the content that it was based on.
"""

from __future__ import annotations

import contextlib
import itertools
import os
import re
import time
from collections.abc import Callable, Generator, Iterable
from datetime import datetime

from co_cli.ground.errors import (
    DiskFullError,
    InvalidInputError,
    NoteConflictError,
    NoteFileError,
    VaultError,
    empty_vault,
)
from co_cli.ground.paths import NO_ROOM, open_regular, permission_cure
from co_cli.ground.values import content_hash, moment_text, to_utf8
from co_cli.notes.files import (
    TEMPORARY,
    create_exclusively,
    locked,
    make_folders,
    move,
    place_beside_git,
    read_bytes,
    replace_text,
    sweep_temporary,
)
from co_cli.notes.refs import FOLDERS, is_taken_by_windows, name_key, slugify
from co_cli.notes.secrets import without_secrets

MOST_HASHED = 100_000_000
TRASH = ".trash"
TRASH_FOLDER = re.compile(r"(\d{8}T\d{6}Z)(?:-(\d+))?(-copy)?")
"""When, a number that counts up whatever the clock says, and whether it holds a copy: the note was not forgotten."""


def hash_of_file(path: str) -> str | None:
    """The hash of its content; None if it cannot be read."""
    try:
        with open_regular(path, follow=False) as stream:
            return content_hash(stream.read(MOST_HASHED))
    except OSError:
        return None


class NoteStore:
    """A folder of Markdown files."""

    def __init__(
        self,
        root: str,
        known: Callable[[], int] | None = None,
        largest: int | None = None,
        secrets: str = "refuse",
    ) -> None:
        """`known` says how many notes were read from here before; `largest` is the maximum size of a note in bytes;
        `secrets` is the setting: what to do with secrets in new text.
        """
        self.root, self._known, self._largest = os.path.realpath(root), known, largest
        self.secrets = secrets

    @contextlib.contextmanager
    def lock(self) -> Generator[None]:
        """Hold the vault against our other writers; readers and editors do not need it.

        Raises VaultError if the vault is missing, or empty although it had notes: a drive that is not mounted leaves an
        empty folder, and what is written there is hidden once it is mounted.
        """
        self.check_there()
        with contextlib.ExitStack() as held:
            with reporting("lock", self.root):
                held.enter_context(locked(self.root))
            known = self._known() if self._known and not os.listdir(self.root) else 0
            if known:
                raise VaultError(empty_vault(self.root, known))
            yield

    def check_there(self) -> None:
        if not os.path.isdir(self.root):
            raise VaultError(f"the vault {self.root} is not there: was it moved, or is its drive not mounted?")

    def touch(self, *paths: str) -> None:
        """Called before files change, inside `lock`."""

    @property
    def last_seq(self) -> int | None:
        """The number of this thread's last save, in a team vault."""
        return None

    def absolute(self, path: str) -> str:
        """Where a path is on disk. Refuses everything outside the vault, also through a symbolic link."""
        parts = path.split("/")
        if not path or os.path.isabs(path) or "\0" in path or {"", ".", ".."} & set(parts):
            raise VaultError(f"{path!r} is not a path inside the vault")
        if os.name == "nt" and any(map(is_taken_by_windows, parts)):
            raise VaultError(f"{path!r} cannot be a file on Windows: rename it")
        full = os.path.join(self.root, *parts)
        if not os.path.realpath(full).startswith(self.root + os.sep):
            raise VaultError(f"{path!r} leads out of the vault {self.root}")
        return full

    def exists(self, path: str) -> bool:
        return os.path.isfile(self.absolute(path))

    def read(self, path: str) -> bytes:
        with reporting("read", path), open_regular(self.absolute(path)) as stream:
            size = os.fstat(stream.fileno()).st_size
            if self._largest is not None and size > self._largest:
                raise InvalidInputError(
                    f"{path} has {size:,} bytes; the limit is {self._largest:,} "
                    "(setting knowledge_max_note_bytes): open it in an editor, or raise the setting"
                )
            return stream.read()

    def safe(self, data: bytes, before: bytes = b"") -> bytes:
        """`data` as it may be written: secrets that were not in `before` are refused or masked, by the setting."""
        if self.secrets == "allow":
            return data
        text, old = (part.decode("utf-8", "surrogateescape") for part in (data, before))
        return without_secrets(text, self.secrets, old).encode("utf-8", "surrogateescape")

    def refuse_name(self, path: str) -> None:
        """Refuse a file name that is a secret. It cannot be masked, because then the file would be somewhere else."""
        if self.secrets != "allow":
            without_secrets(path, "refuse", place="its name")

    def create(self, folder: str, title: str, data: bytes, taken: Callable[[str], bool] | None = None) -> str:
        """Write a new note named after its title, with a number if the name is taken, or with a hash if ten are: an
        import may save thousands of notes with one title. Returns its path.

        `taken` says whether a path exists, also in another case or normalisation; by default the folder is listed.
        """
        data, title = self.safe(data), self.safe(to_utf8(title).encode()).decode()
        slug = slugify(title)
        with reporting("write", f"{folder}/{slug}.md"):
            make_folders(self.absolute(folder))
            is_taken = taken or self._taken_in(folder)
            endings = ("", *(f"-{number}" for number in range(2, 10)))
            hashes = (f"-{content_hash(data + bytes([number]))[:8]}" for number in range(100))
            for ending in itertools.chain(endings, hashes):
                path = f"{folder}/{slug}{ending}.md"
                if is_taken(path):
                    continue
                self.touch(path)
                if create_exclusively(self.absolute(path), data):
                    return path
        raise NoteConflictError(f"{folder}/ has too many notes named {slug!r}; choose another title")

    def create_file(self, folder: str, name: str, data: bytes) -> str:
        """Write a file that is not a note, with a number if the name is taken. Returns its path."""
        self.refuse_name(name)
        stem, ending = os.path.splitext(name)
        with self.lock(), reporting("write", name):
            taken = self._taken_in(folder)
            for number in range(1, 1_000):
                path = "/".join(filter(None, (folder, f"{stem}{f'-{number}' if number > 1 else ''}{ending}")))
                if taken(path):
                    continue
                self.touch(path)
                if create_exclusively(self.absolute(path), data):
                    return path
        raise NoteConflictError(f"{folder}/ has too many files named {name!r}; rename yours")

    def create_at(self, path: str, data: bytes) -> None:
        """Write a new note at this path. Raises NoteConflictError if a file is there."""
        self.refuse_name(path)
        data = self.safe(data)
        with reporting("write", path):
            make_folders(os.path.dirname(self.absolute(path)))
            self.touch(path)
            if not create_exclusively(self.absolute(path), data):
                raise NoteConflictError(f"{path} exists already; nothing was written")

    def replace(self, path: str, data: bytes, based_on: bytes) -> None:
        """Write over a note if it still has the content that the change was based on."""
        conflict = NoteConflictError(f"{path} was changed meanwhile; read it again, then repeat the change")
        if self.read(path) != based_on:
            raise conflict
        data = self.safe(data, based_on)
        with reporting("write", path):
            self.touch(path)
            if not replace_text(self.absolute(path), data, based_on):  # looks again at the last moment
                raise conflict

    def trash(self, path: str) -> str:
        """Move a note to the vault's trash. Returns its path there."""
        with reporting("move", path):
            kept = self._free_in_trash(path)
            self._touch_both(path, kept)
            if not move(self.absolute(path), self.absolute(kept)):
                raise NoteConflictError(f"another copy of {path} was put into the trash at the same time; try again")
            return kept

    def keep_copy(self, path: str) -> str:
        """Put a copy of a note into the trash before it is overwritten. Returns its path there."""
        return self.keep(path, self.read(path))

    def keep(self, path: str, data: bytes) -> str:
        """Put another text of a note into the trash. Returns its path there."""
        with reporting("copy", path):
            kept, note = self._free_in_trash(path, "-copy"), self.absolute(path)
            make_folders(os.path.dirname(self.absolute(kept)))
            self.touch(kept)
            if create_exclusively(self.absolute(kept), data, through=self.root, like=note):  # every sync sweeps there
                return kept
        raise NoteConflictError(f"another copy of {path} was put into the trash at the same time; try again")

    def drop_kept(self, kept: str) -> None:
        """Remove a copy that `keep` made and that is not needed."""
        if kept.startswith(f"{TRASH}/"):
            with contextlib.suppress(OSError):
                os.unlink(self.absolute(kept))
                self._drop_empty_folders(os.path.dirname(self.absolute(kept)))
                os.rmdir(os.path.join(self.root, TRASH))

    @staticmethod
    def trashed_at(kept: str) -> tuple[str, bool]:
        """When a file came into the trash, and whether it is only a copy: its note was changed and not forgotten."""
        found = TRASH_FOLDER.fullmatch(kept.split("/")[1])
        with contextlib.suppress(ValueError):
            if found:
                return moment_text(datetime.fromisoformat(found[1]).timestamp()), bool(found[3])
        return "", False

    def trashed(self) -> list[tuple[str, str]]:
        """Everything in the trash, newest first: its path there, and where it was."""
        root = os.path.join(self.root, TRASH)
        found: list[tuple[str, str]] = []
        for folder, _, names in os.walk(root):
            inside = os.path.relpath(folder, root).replace(os.sep, "/")
            stamp, _, home = inside.partition("/")
            for name in names:
                link = os.path.islink(os.path.join(folder, name))  # not ours, and might lead anywhere
                if stamp != "." and not name.startswith(TEMPORARY) and not link:
                    found.append((f"{TRASH}/{inside}/{name}", f"{home}/{name}" if home else name))
        return sorted(found, reverse=True, key=lambda pair: _trash_order(pair[0].split("/")[1]))

    def restore(self, kept: str, path: str) -> None:
        """Move a file of the trash back to where it was. Refuses if there is another note now."""
        source = self.absolute(kept)
        with reporting("restore", path):
            open_regular(source, follow=False).close()  # refuses what is no regular file
            self.touch(kept, path)
            if not move(source, self.absolute(path)):
                raise NoteConflictError(f"{path} exists again; rename it before restoring {kept}")
            self._drop_empty_folders(os.path.dirname(source))

    def move(self, old: str, new: str) -> bool:
        """Rename a file, or a folder with all that is in it. False if the name is taken."""
        self._touch_both(old, new)
        return move(self.absolute(old), self.absolute(new))

    def sweep(self, folders: Iterable[str] | None = None) -> tuple[list[str], list[str]]:
        """Remove temporary files that killed writers left in these folders, or in all that we write to.

        A text that is in no other file goes to the trash: an editor may have saved it right before our rename, and then
        it is only there. Returns the files, and the paths in the trash.
        """
        swept: list[str] = []
        kept: list[str] = []
        others: dict[int, list[str]] = {}
        if folders is None:
            written = (os.path.join(self.root, name) for name in (*FOLDERS.values(), TRASH))
            folders = [self.root, *(folder for top in written for folder, _, _ in os.walk(top))]
        for folder in filter(None, {*folders, place_beside_git(self.root)}):
            with reporting("sweep", folder):
                swept += sweep_temporary(folder, lambda file: kept.extend(self._sweep_file(file, others)))
        return swept, kept

    def _sweep_file(self, file: str, others: dict[int, list[str]]) -> list[str]:
        """Remove a file if another one has its text, else move it to the trash. `others` keeps these by size."""
        data = read_bytes(file)
        for folder, _, names in () if others else os.walk(self.root):
            for other in (os.path.join(folder, name) for name in names if not name.startswith(TEMPORARY)):
                with contextlib.suppress(FileNotFoundError):
                    others.setdefault(os.lstat(other).st_size, []).append(other)
        if not data or any(hash_of_file(other) == content_hash(data) for other in others.get(len(data), ())):
            os.unlink(file)
            return []
        inside = os.path.relpath(os.path.dirname(file), self.root).split(os.sep)
        inside = inside[2:] if inside[0] == TRASH else [part for part in inside if part[0] != "."]
        kept = self._free_in_trash("/".join([*inside, f"recovered-{content_hash(data)[:8]}.md"]), "-copy")
        self.touch(kept)
        if not move(file, self.absolute(kept)):
            return []
        others.setdefault(len(data), []).append(self.absolute(kept))
        return [kept]

    def _touch_both(self, old: str, new: str) -> None:
        """Before a file, or every file of a folder, is moved."""
        top = self.absolute(old)
        files = [os.path.join(folder, name) for folder, _, names in os.walk(top) for name in names]
        inside = [f"/{os.path.relpath(file, top).replace(os.sep, '/')}" for file in files] or [""]
        self.touch(*(place + end for end in inside for place in (old, new)))

    def _taken_in(self, folder: str) -> Callable[[str], bool]:
        prefix, place = (f"{folder}/", self.absolute(folder)) if folder else ("", self.root)
        keys = {name_key(prefix + name) for name in os.listdir(place)}
        return lambda path: name_key(path) in keys

    def _free_in_trash(self, path: str, ending: str = "") -> str:
        """A path in the trash that sorts after everything that is there, also after the clock stepped back."""
        trash, stamp = os.path.join(self.root, TRASH), time.strftime("%Y%m%dT%H%M%SZ", time.gmtime(time.time()))
        there = os.listdir(trash) if os.path.isdir(trash) else []
        number = 1 + max((_trash_order(name)[0] for name in there), default=0)
        return f"{TRASH}/{stamp}-{number}{ending}/{path}"

    def _drop_empty_folders(self, folder: str) -> None:
        with contextlib.suppress(OSError):  # stops at the first that is not empty
            while os.path.basename(folder) != TRASH:
                os.rmdir(folder)
                folder = os.path.dirname(folder)


def _trash_order(folder: str) -> tuple[int, str]:
    found = TRASH_FOLDER.fullmatch(folder)
    return (int(found[2] or 0), found[1]) if found else (0, "")


@contextlib.contextmanager
def reporting(verb: str, path: str) -> Generator[None]:
    """Turn errors of the file system into one line that names the file and the fix."""
    try:
        yield
    except FileNotFoundError as error:
        raise NoteFileError(f"cannot {verb} {path}: there is no such file ({error.filename})") from error
    except PermissionError as error:
        cure = permission_cure(os.fsdecode(error.filename), write=verb != "read")
        why = "another program has it open, or you have no permission" if os.name == "nt" else "no permission"
        raise NoteFileError(f"cannot {verb} {path}: {why}; `{cure}`") from error
    except OSError as error:
        kind, fix = NoteFileError, "check the disk and the folder"
        if error.errno in NO_ROOM:
            kind, fix = DiskFullError, "free some space"
        raise kind(f"cannot {verb} {path}: {error.strerror or error}; {fix}") from error
