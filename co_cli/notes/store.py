"""The files of one vault: create, read, change, trash and restore notes, and never touch anything outside.

A path is inside the vault and uses `/`. A change is applied only to the content it was based on.
"""

from __future__ import annotations

import contextlib
import errno
import hashlib
import os
import time
from collections.abc import Callable, Generator, Iterator

from co_cli.errors import InvalidInputError, NoteConflictError, NoteFileError, VaultError, empty_vault
from co_cli.notes.files import (
    TEMPORARY,
    create_exclusively,
    locked,
    make_folders,
    replace,
    sweep_temporary,
    sync_folder,
)
from co_cli.notes.refs import name_key, slugify
from co_cli.paths import open_regular
from co_cli.values import to_utf8

TRASH = ".trash"
FEW = 10
MOST_NAMESAKES = 10_000
NO_ROOM = (errno.ENOSPC, getattr(errno, "EDQUOT", errno.ENOSPC))


def content_hash(data: bytes) -> str:
    return hashlib.blake2b(data, digest_size=16).hexdigest()


class NoteStore:
    """The truth: a folder of Markdown."""

    def __init__(
        self,
        root: str,
        known: Callable[[], int] | None = None,
        largest: int | None = None,
        secrets: str = "refuse",
    ) -> None:
        """`known` tells how many notes were read from here, for whoever has an index; `largest` is what a note may
        have, in bytes; `secrets` says what becomes of those in a text that is to be written.
        """
        self.root, self._known, self._largest = os.path.realpath(root), known, largest
        self.secrets = secrets

    @contextlib.contextmanager
    def lock(self) -> Generator[None]:
        """Hold the vault against other writers that ask; readers and editors need not.

        Raises VaultError where there is nothing and notes should be: what is written below the place of a drive that
        is not mounted is out of sight when it is.
        """
        if not os.path.isdir(self.root):  # to lock what is not there would make a file of it
            raise VaultError(f"the vault {self.root} is not there: was it moved, or is its drive not mounted?")
        with contextlib.ExitStack() as held:
            with _reporting("lock", self.root):
                held.enter_context(locked(self.root))
            known = self._known() if self._known and not os.listdir(self.root) else 0
            if known:
                raise VaultError(empty_vault(self.root, known))
            yield

    def absolute(self, path: str) -> str:
        """Where a path is on disk. Refuses whatever would leave the vault, also through a symbolic link."""
        parts = path.split("/")
        windows = os.sep == "\\" and "\\" in path  # elsewhere a letter of a name like any other
        if not path or os.path.isabs(path) or windows or "\0" in path or {"", ".", ".."} & set(parts):
            raise VaultError(f"{path!r} is not a path inside the vault")
        full = os.path.join(self.root, *parts)
        if not os.path.realpath(full).startswith(self.root + os.sep):
            raise VaultError(f"{path!r} leads out of the vault {self.root}")
        return full

    def read(self, path: str) -> bytes:
        with _reporting("read", path), open_regular(self.absolute(path)) as stream:
            size = os.fstat(stream.fileno()).st_size
            if self._largest is not None and size > self._largest:
                raise InvalidInputError(
                    f"{path} has {size:,} bytes; a note has at most {self._largest:,} "
                    "(setting knowledge_max_note_bytes): open it in an editor, or raise the setting"
                )
            return stream.read()

    def exists(self, path: str) -> bool:
        return os.path.isfile(self.absolute(path))

    def safe(self, data: bytes, before: bytes = b"") -> bytes:
        """What may be written of this: secrets that were not there `before` are refused or masked, by the setting."""
        if self.secrets == "allow":
            return data
        from co_cli.notes.secrets import without_secrets  # its rules are for those who write

        text, was = (one.decode("utf-8", "surrogateescape") for one in (data, before))
        return without_secrets(text, self.secrets, was).encode("utf-8", "surrogateescape")

    def refuse_name(self, path: str) -> None:
        """A name that is itself a secret: there is no way to mask it and have the file where it was asked for."""
        if self.secrets != "allow":
            from co_cli.notes.secrets import without_secrets

            without_secrets(path, "refuse", place="its name")

    def create(self, folder: str, title: str, data: bytes, taken: Callable[[str], bool] | None = None) -> str:
        """Write a new note named after its title; a taken name gets a number. Returns its path.

        `taken` answers for names that differ only in case or normalisation; without it the folder is looked through.
        """
        data, title = self.safe(data), self.safe(to_utf8(title).encode()).decode()
        slug = slugify(title)
        with _reporting("write", f"{folder}/{slug}.md"):
            make_folders(self.absolute(folder))
            taken = taken or self._taken_in(folder)

            def path_of(number: int) -> str:
                return f"{folder}/{slug}.md" if number == 1 else f"{folder}/{slug}-{number}.md"

            for number in _numbers(lambda number: taken(path_of(number))):
                path = path_of(number)
                if not taken(path) and create_exclusively(self.absolute(path), data):
                    return path
        raise NoteConflictError(f"{folder}/ has too many notes named {slug!r}; choose another title")

    def replace(self, path: str, data: bytes, based_on: bytes) -> None:
        """Write over a note, if it still says what the change was based on: asked last, when all is ready to take
        its place.
        """

        def require_same() -> None:
            if self.read(path) != based_on:
                raise NoteConflictError(f"{path} was changed meanwhile; read it again, then repeat the change")

        require_same()
        data = self.safe(data, based_on)
        with _reporting("write", path):
            replace(self.absolute(path), data, require_same)

    def trash(self, path: str) -> str:
        """Move a note to the vault's trash. Returns its path there."""
        source = self.absolute(path)
        with _reporting("move", path):
            kept, target = self._room_in_trash(path)
            os.rename(source, target)
            sync_folder(os.path.dirname(target))
            sync_folder(os.path.dirname(source))
        return kept

    def keep_copy(self, path: str) -> str:
        """Put a copy of a note into the trash, before it is written over. Returns its path there."""
        return self.keep(path, self.read(path))

    def keep(self, path: str, data: bytes) -> str:
        """Put a text that belongs to a note into the trash. Returns its path there."""
        with _reporting("copy", path):
            kept, target = self._room_in_trash(path)
            if create_exclusively(target, data):
                return kept
        raise NoteConflictError(f"another copy of {path} came into the trash this moment; try again")

    def drop_kept(self, kept: str) -> None:
        """Take back a copy that `keep` made and nobody needs."""
        if kept.startswith(f"{TRASH}/"):
            folder = os.path.dirname(self.absolute(kept))
            with contextlib.suppress(OSError):  # it stays, and does no harm there
                os.unlink(self.absolute(kept))
                while os.path.basename(folder) != TRASH:
                    os.rmdir(folder)
                    folder = os.path.dirname(folder)
                os.rmdir(folder)

    def _room_in_trash(self, path: str) -> tuple[str, str]:
        """A free path in the trash, and where that is on disk; its folder is made."""
        for number in range(MOST_NAMESAKES):
            stamp = time.strftime("%Y%m%dT%H%M%SZ", time.gmtime()) + (f"-{number}" if number else "")
            kept = f"{TRASH}/{stamp}/{path}"
            target = self.absolute(kept)
            if not os.path.lexists(target):
                make_folders(os.path.dirname(target))
                return kept, target
        raise NoteConflictError(f"the trash holds too many copies of {path}; empty {TRASH}/")

    def trashed(self) -> list[tuple[str, str]]:
        """Everything in the trash, newest first: where it is, and where it was."""
        root = os.path.join(self.root, TRASH)
        found: list[tuple[str, str]] = []
        for folder, _, names in os.walk(root):
            inside = os.path.relpath(folder, root).replace(os.sep, "/")
            stamp, _, home = inside.partition("/")
            for name in names:
                if stamp == "." or name.startswith(TEMPORARY):
                    continue  # whoever was killed while it wrote left that
                # a link in the trash is none of our doing, and might lead anywhere
                if not os.path.islink(os.path.join(folder, name)):
                    found.append((f"{TRASH}/{inside}/{name}", f"{home}/{name}" if home else name))
        return sorted(found, reverse=True, key=lambda pair: _stamp_order(pair[0]))

    def restore(self, path: str) -> str:
        """Bring the newest trashed copy of a path back. Refuses if another note lives there now."""
        kept = next((kept for kept, home in self.trashed() if home == path), None)
        if kept is None:
            raise NoteConflictError(f"{path} is not in the trash of {self.root}")
        source, target = self.absolute(kept), self.absolute(path)
        with _reporting("restore", path):
            make_folders(os.path.dirname(target))
            with open_regular(source, follow=False) as stream:
                data = stream.read()
            if not create_exclusively(target, data):
                raise NoteConflictError(f"{path} exists again; rename it before restoring the trashed one")
            with contextlib.suppress(OSError):
                os.utime(target, ns=(os.stat(source).st_atime_ns, os.stat(source).st_mtime_ns))
            os.unlink(source)
            self._drop_empty_folders(os.path.dirname(source))
        return path

    def sweep(self) -> list[str]:
        """Remove temporary files that killed writers left in the folders we write to."""
        swept: list[str] = []
        for folder in ("memories", "articles"):
            with _reporting("sweep", folder):
                for inner, _, _ in os.walk(os.path.join(self.root, folder)):
                    swept += sweep_temporary(inner)
        return swept

    def _taken_in(self, folder: str) -> Callable[[str], bool]:
        keys = {name_key(f"{folder}/{name}") for name in os.listdir(self.absolute(folder))}
        return lambda path: name_key(path) in keys

    def _drop_empty_folders(self, folder: str) -> None:
        with contextlib.suppress(OSError):  # stops at the first that is not empty
            while os.path.basename(folder) != TRASH:
                os.rmdir(folder)
                folder = os.path.dirname(folder)


def _stamp_order(kept: str) -> tuple[str, int]:
    stamp, _, number = kept.split("/")[1].partition("-")
    return stamp, int(number) if number.isdecimal() else 0


def _numbers(taken: Callable[[int], bool]) -> Iterator[int]:
    """Numbers for a name, the smallest first as long as there are few, then from about the first that is free.

    By doubling and halving: whoever saves the ten thousandth note of one title should not ask for each of the others.
    """
    yield from range(1, FEW)
    last, free = FEW - 1, FEW
    while taken(free):
        last, free = free, free * 2
    while free - last > 1:
        middle = (last + free) // 2
        last, free = (middle, free) if taken(middle) else (last, middle)
    yield from range(free, free + MOST_NAMESAKES)  # others may be saving too


@contextlib.contextmanager
def _reporting(verb: str, path: str) -> Generator[None]:
    """The file system's refusals as one line that names the file and the cure."""
    try:
        yield
    except FileNotFoundError as error:
        raise NoteFileError(f"cannot {verb} {path}: there is no such file ({error.filename})") from error
    except PermissionError as error:
        raise NoteFileError(f"cannot {verb} {path}: no permission; check the rights of {error.filename}") from error
    except OSError as error:
        cure = "free some space" if error.errno in NO_ROOM else "check the disk and the folder"
        raise NoteFileError(f"cannot {verb} {path}: {error.strerror or error}; {cure}") from error
