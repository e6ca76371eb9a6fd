"""Filters as SQL conditions on `docs`, and the two ways in which statements reach PostgreSQL: `fetch` and `copy_rows`.

Values are always parameters; only our own text is put together.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import psycopg

from co_cli.index.derivation import stored_text
from co_cli.index.engine import Scope, StoredVault
from co_cli.index.tokens import fold
from co_cli.notes.dates import noon_shift
from co_cli.sources.origin import kind_of
from co_cli.values import Filters

Connection = psycopg.Connection[Any]
HAS_TAG = "exists (select from unnest(docs.tags) tag where tag = %({name})s or starts_with(tag, %({name})s || '/'))"
# a bare date is one day in every time zone: its noon is compared
CREATED = "docs.created + case when docs.created = floor(docs.created / 86400) * 86400 then %(noon)s else 0 end"

SAID = f"coalesce(passages.said, {CREATED})"
ANY_SAID = "exists (select from passages where passages.doc_id = docs.id and {when})"


def fetch(connection: Connection, statement: str, values: dict[str, Any] | None = None, binary: bool = False) -> Any:
    """Every row; the statement says what is in it."""
    bound = {name: clean(value) for name, value in values.items()} if values else None
    cursor = connection.execute(statement.encode(), bound, binary=binary)
    return cursor.fetchall() if cursor.description else []


def copy_rows(
    connection: Connection, table: str, columns: Sequence[str] | Mapping[str, str], rows: Iterable[Sequence[Any]]
) -> None:
    """Columns with their types are copied in binary."""
    binary = "(format binary)" if isinstance(columns, Mapping) else ""
    with connection.cursor().copy(f"copy {table} ({', '.join(columns)}) from stdin {binary}".encode()) as copy:
        if isinstance(columns, Mapping):
            copy.set_types(list(columns.values()))
        for row in rows:
            copy.write_row([clean(value) for value in row])


def clean(value: Any) -> Any:
    """Text that PostgreSQL accepts."""
    if isinstance(value, str):
        return stored_text(value)
    if isinstance(value, list) and value and isinstance(value[0], str):
        return [stored_text(one) for one in value]  # pyright: ignore[reportUnknownVariableType, reportUnknownArgumentType]
    return value  # pyright: ignore[reportUnknownVariableType]


def conditions(scope: Scope, vault: int, of_notes: bool = False) -> tuple[str, dict[str, Any]]:
    """`and`-joined conditions for one vault, and their parameters: of passages, or of notes that have such passages."""
    filters = scope.filters
    wanted = ["docs.vault_id = %(scope_vault)s", "docs.source = any(%(sources)s)"]
    values: dict[str, Any] = {
        "scope_vault": vault,
        "sources": [source for one, source in scope.parts if one == vault],
    }
    if filters.tags:
        tags = {f"tag_{number}": fold(tag.lstrip("#")) for number, tag in enumerate(filters.tags)}
        values |= tags
        wanted.append(f"({(' or ' if filters.any_tag else ' and ').join(HAS_TAG.format(name=name) for name in tags)})")
    times: list[str] = []
    for name, moment, condition in (
        ("since", filters.since, f"{SAID} >= %(since)s"),
        ("until", filters.until, f"{SAID} <= %(until)s"),
        ("as_of", filters.as_of, "coalesce(passages.said, docs.created) <= %(as_of)s"),
    ):
        if moment is not None:
            times.append(condition)
            values |= {name: moment, "noon": noon_shift()}
    wanted += [ANY_SAID.format(when=" and ".join(times))] if of_notes and times else times
    for column, texts in (("path_key", filters.paths), ("file_key", filters.files)):
        for number, text in enumerate(texts):
            wanted.append(f"strpos(docs.{column}, %({column}_{number})s) > 0")
            values[f"{column}_{number}"] = fold(text)
    if filters.speakers:
        wanted.append("docs.speaker = any(%(speakers)s)")
        values["speakers"] = list(filters.speakers)
    fields = filters.fields if filters.category is None else (("category", filters.category), *filters.fields)
    if fields:
        wanted.append("docs.fields @> %(fields)s")
        values["fields"] = [field_text(key, fold(value)) for key, value in fields]
    return " and ".join(wanted), values


def field_text(key: str, value: str) -> str:
    return f"{key}\t{value}"


def is_narrow(scope: Scope, vault: StoredVault) -> bool:
    """Whether a search sees less than all of a vault."""
    if scope.filters._replace(sources=(), roots=(), outdated=False) != Filters():
        return True
    return sum(one == vault.id for one, _ in scope.parts) < len(kind_of(vault.origin).sources)
