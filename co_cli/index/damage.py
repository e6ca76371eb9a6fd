"""A damaged search.db or activity.db: tell it from a bug of ours, and set it aside so that the next opening makes anew.

Nothing here reads a file that is sound: it is asked for when something went wrong.
"""

from __future__ import annotations

import os

import apsw

from co_cli.errors import IndexDamagedError, IndexUnavailableError
from co_cli.index.connection import DAMAGE, Database, inode_of
from co_cli.index.making import opening, put_aside

CHECK_WORDS = "insert into docs_fts (docs_fts, rank) values ('integrity-check', 1)"
"""With rank 1 FTS5 compares its index with the passages; without, a row that is missing passes unseen."""

UNLIKELY = (apsw.Error, ValueError, TypeError, LookupError, ArithmeticError, AttributeError, MemoryError)
"""What reading rows raises that hold anything at all."""
PACKAGE = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
READERS_OF_ROWS = tuple(os.path.join(PACKAGE, folder) for folder in ("index", "activity", "service"))


def retire(database: Database, inode: int, failure: BaseException) -> IndexDamagedError:
    """Set a damaged file aside, unless another process did so already. Returns the error to raise."""
    path, why = database.path, _words(failure)
    try:
        with opening(path):
            kept = put_aside(database, f"is damaged ({why})") if inode_of(path) == inode else None
    except IndexUnavailableError as error:  # the folder cannot be written, or another program holds the file
        return IndexDamagedError(f"{path} is damaged ({why}) and cannot be set aside: {error}")
    where = f"it is kept as {kept}" if kept else "it was set aside"
    return IndexDamagedError(f"{path} was damaged ({why}): {where}, and the next try makes a new one")


def is_of_sqlite(failure: BaseException) -> bool:
    """A text that is none may be somebody else's. Those who read rows decode nothing themselves: there it was apsw."""
    if not isinstance(failure, UnicodeDecodeError):
        return True
    step = failure.__traceback__
    while step is not None and step.tb_next is not None:
        step = step.tb_next
    return step is not None and step.tb_frame.f_code.co_filename.startswith(READERS_OF_ROWS)


def damage_behind(database: Database, failure: Exception) -> IndexDamagedError | None:
    """Was that the fault of the file? Then it is set aside. Asked when something failed that should not have.

    A damaged page may hold anything: a number where a text should be, a listing that cannot be read.
    """
    if isinstance(failure, IndexDamagedError):
        return failure
    if not isinstance(failure, UNLIKELY):
        return None
    inode = inode_of(database.path)
    why = unsound(database)
    return None if why is None else retire(database, inode, apsw.CorruptError(why))


def unsound(database: Database, words: bool = True) -> str | None:
    """What SQLite finds wrong in the whole file, and FTS5 in the words; None if nothing. Reads all of it."""
    try:
        connection = database.borrow()
    except IndexUnavailableError:
        return None  # not damaged, but out of reach
    try:
        broken = [str(row[0]) for row in connection.execute("pragma quick_check(3)") if row[0] != "ok"]
        if broken:
            return "; ".join(broken)
        if words:
            connection.execute("begin immediate")
            connection.execute(CHECK_WORDS)
    except (apsw.BusyError, apsw.ReadOnlyError):
        return None
    except (apsw.Error, *DAMAGE) as error:
        return _words(error)
    finally:
        connection.close()  # and whatever was begun with it
    return None


def _words(failure: BaseException) -> str:
    text = str(failure) if isinstance(failure, apsw.Error) else f"{type(failure).__name__} in a text"
    return " ".join(text.split())[:200]
