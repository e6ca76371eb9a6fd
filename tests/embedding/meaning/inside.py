"""What search.db holds of vectors, read past the code that is tested."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import apsw

from co_cli.index.sqlite.connection import vector_extension


class Inside:
    """A connection of its own for each question, as another process would have."""

    def __init__(self, data_dir: Path) -> None:
        self._path = str(data_dir / "search.db")

    def rows(self, statement: str, *values: object) -> list[tuple[Any, ...]]:
        connection = apsw.Connection(self._path)
        try:
            connection.set_busy_timeout(10_000)
            extension = vector_extension()
            if extension:
                connection.enable_load_extension(True)
                connection.load_extension(extension, "sqlite3_vec_init")
            return connection.execute(statement, values).fetchall()  # pyright: ignore[reportArgumentType]
        finally:
            connection.close()

    def value(self, statement: str, *values: object) -> Any:
        return self.rows(statement, *values)[0][0]

    def spaces(self) -> dict[str, int]:
        """How many vectors each space has, by its provider and model."""
        found: dict[str, int] = {}
        for number, provider, model in self.rows("select id, provider, model from spaces order by id"):
            table = "docs_vec" if number == 1 else f"docs_vec_{number}"
            known = self.value("select count(*) from sqlite_master where name = ?", table)
            found[f"{provider}:{model.partition('@')[0]}"] = self.value(f"select count(*) from {table}") if known else 0
        return found

    def vectors(self, table: str = "docs_vec") -> dict[str, bytes]:
        """The vector of every note that has one passage, by its path."""
        rows = self.rows(
            f"select docs.path, v.embedding from {table} as v join passages on passages.id = v.rowid"
            " join docs on docs.id = passages.doc_id"
        )
        return {path: bytes(vector) for path, vector in rows}

    @property
    def waiting(self) -> int:
        return self.value("select count(*) from waiting")

    @property
    def misses(self) -> int:
        """Texts that had to be embedded, ever."""
        return self.value("select coalesce(sum(misses), 0) from spaces")
