"""Filters as SQL conditions on `docs`. Values are always parameters; only our own text is put together."""

from __future__ import annotations

from typing import Any

from co_cli.index.derivation import field_text, quoted
from co_cli.index.engine import Scope, StoredVault
from co_cli.index.tables.statements import Dialect
from co_cli.index.tokens import fold
from co_cli.notes.dates import local_day
from co_cli.sources.origin import kind_of
from co_cli.values import Filters

# lists are JSON, which is not taken apart: `"ops"` and `"ops/` are how it writes a tag and those below it
HAS_TAG = "({position}(docs.tags, %({name})s) > 0 or {position}(docs.tags, %({name}_below)s) > 0)"
# a bare date, stored as its midnight UTC, is compared with the local day of a moment
EDGE = "case when {date} = cast({date} / 86400 as bigint) * 86400 then %({moment}_day)s else %({moment})s end"
SAID = "coalesce(passages.said, docs.created)"
ANY_SAID = "exists (select 1 from passages where passages.doc_id = docs.id and {when})"


def conditions(dialect: Dialect, scope: Scope, vault: int, of_notes: bool = False) -> tuple[str, dict[str, Any]]:
    """`and`-joined conditions for one vault, and their parameters: of passages, or of notes that have such passages."""
    filters, position = scope.filters, dialect.position
    wanted = [f"docs.vault_id = {vault:d}", f"docs.source {dialect.among} (%(sources)s)"]
    values: dict[str, Any] = {"sources": [source for one, source in scope.parts if one == vault]}
    if filters.tags:
        tags: list[str] = []
        for number, tag in enumerate(filters.tags):
            name, text = f"tag_{number}", quoted(fold(tag.lstrip("#")))
            values[name], values[f"{name}_below"] = text, f"{text[:-1]}/"
            tags.append(HAS_TAG.format(name=name, position=position))
        wanted.append(f"({(' or ' if filters.any_tag else ' and ').join(tags)})")
    times: list[str] = []
    for name, moment, compare in (
        ("since", filters.since, ">="),
        ("until", filters.until, "<="),
        ("as_of", filters.as_of, "<="),
    ):
        if moment is not None:
            times.append(f"{SAID} {compare} {EDGE.format(date=SAID, moment=name)}")
            values |= {name: moment, f"{name}_day": local_day(moment)}
    wanted += [ANY_SAID.format(when=" and ".join(times))] if of_notes and times else times
    for column, texts in (("path_key", filters.paths), ("file_key", filters.files)):
        for number, text in enumerate(texts):
            wanted.append(f"{position}(docs.{column}, %({column}_{number})s) > 0")
            values[f"{column}_{number}"] = fold(text)
    if filters.speakers:
        speakers = {f"speaker_{number}": quoted(field_text("", one)) for number, one in enumerate(filters.speakers)}
        wanted.append(f"({' or '.join(f'{position}(docs.fields, %({name})s) > 0' for name in speakers)})")
        values |= speakers
    fields = filters.fields if filters.category is None else (("category", filters.category), *filters.fields)
    for number, (key, value) in enumerate(fields):
        wanted.append(f"{position}(docs.fields, %(field_{number})s) > 0")
        values[f"field_{number}"] = quoted(field_text(key, fold(value)))
    return " and ".join(wanted), values


def is_narrow(scope: Scope, vault: StoredVault) -> bool:
    """Whether a search sees less than all of a vault: some of its kinds of notes, or filtered ones."""
    if scope.filters._replace(sources=(), roots=(), outdated=False) != Filters():
        return True
    return sum(one == vault.id for one, _ in scope.parts) < len(kind_of(vault.origin).sources)
