"""Filters as SQL conditions on `docs`. Values are always parameters; only our own text is put together."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

import apsw

from co_cli.index.engine import Scope
from co_cli.index.tokens import fold
from co_cli.notes.dates import noon_shift
from co_cli.values import OWN_SOURCES, Filters

NOTES_OF = "select id, doc_id from passages where id in (select value from json_each(:ids))"
KIND = "select kind from vaults where id = ?"
# a list of tags is only taken apart in Python: `"ops"` and `"ops/` are how JSON writes the tag and those below it
HAS_TAG = "(instr(docs.tags, :{name}) or instr(docs.tags, :{name}_below))"
HAS_FIELD = """
(instr(docs.fields, :{name}_text) and exists (
    select 1 from json_each(docs.fields) as field, json_each(field.value) as item
    where field.key = :{name}_key and item.value = :{name}
))
"""
# a bare date is one day in every time zone: its noon is compared
CREATED = "iif(docs.created = cast(docs.created as integer) / 86400 * 86400.0, docs.created + :noon, docs.created)"
SAID = f"coalesce(passages.said, {CREATED})"
ANY_SAID = "exists (select 1 from passages where passages.doc_id = docs.id and {when})"
SPEAKER = "coalesce(docs.fields ->> '$.provenance[0]', 'user')"


def conditions(scope: Scope, vault: int, of_notes: bool = False) -> tuple[str, dict[str, apsw.SQLiteValue]]:
    """`and`-joined conditions for one vault, and their parameters: of passages, or of notes that have such passages."""
    filters = scope.filters
    sources = {f"source_{number}": source for number, (one, source) in enumerate(scope.parts) if one == vault}
    wanted = [f"docs.vault_id = {vault:d}", f"docs.source in ({', '.join(':' + name for name in sources)})"]
    values: dict[str, Any] = dict(sources)
    if filters.tags:
        tags: list[str] = []
        for number, tag in enumerate(filters.tags):
            name, text = f"tag_{number}", _json(fold(tag.lstrip("#")))
            values[name], values[f"{name}_below"] = text, f"{text[:-1]}/"
            tags.append(HAS_TAG.format(name=name))
        wanted.append(f"({(' or ' if filters.any_tag else ' and ').join(tags)})")
    times: list[str] = []
    for name, moment, condition in (
        ("since", filters.since, f"{SAID} >= :since"),
        ("until", filters.until, f"{SAID} <= :until"),
        ("as_of", filters.as_of, "coalesce(passages.said, docs.created) <= :as_of"),
    ):
        if moment is not None:
            times.append(condition)
            values[name] = moment
    wanted += [ANY_SAID.format(when=" and ".join(times))] if of_notes and times else times
    if filters.since is not None or filters.until is not None:
        values["noon"] = noon_shift()
    for column, texts in (("path_key", filters.paths), ("file_key", filters.files)):
        for number, text in enumerate(texts):
            wanted.append(f"instr(docs.{column}, :{column}_{number})")
            values[f"{column}_{number}"] = fold(text)
    if filters.speakers:
        speakers = {f"speaker_{number}": speaker for number, speaker in enumerate(filters.speakers)}
        wanted.append(f"{SPEAKER} in ({', '.join(':' + name for name in speakers)})")
        values.update(speakers)
    fields = filters.fields if filters.category is None else (("category", filters.category), *filters.fields)
    for number, (key, value) in enumerate(fields):
        name, folded = f"field_{number}", fold(value)
        wanted.append(HAS_FIELD.format(name=name))
        values[f"{name}_key"] = key.encode("utf-8", "replace").decode()
        values[name], values[f"{name}_text"] = folded, _json(folded)
    return " and ".join(wanted), values


def is_narrow(connection: apsw.Connection, scope: Scope, vault: int) -> bool:
    """Whether a search sees less than all of a vault: some of its kinds of notes, or filtered ones."""
    if scope.filters._replace(sources=(), roots=(), outdated=False) != Filters():
        return True
    sources = sum(one == vault for one, _ in scope.parts)
    return sources < (len(OWN_SOURCES) if connection.execute(KIND, (vault,)).get == "vault" else 1)


def notes_of(connection: apsw.Connection, passages: Iterable[int]) -> dict[int, int]:
    """The note of each passage."""
    return dict(connection.execute(NOTES_OF, {"ids": ids_text(passages)}).fetchall())  # type: ignore[arg-type]


def ids_text(ids: Iterable[int]) -> str:
    """As json_each reads it."""
    return f"[{','.join(map(str, ids))}]"


def _json(text: str) -> str:
    return json.dumps(text, ensure_ascii=False)
