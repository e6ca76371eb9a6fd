"""Filters as SQL conditions on `docs`. Values are always parameters; only our own text is put together."""

from __future__ import annotations

from typing import Any

from co_cli.hits import Filters
from co_cli.index.engine import Scope, StoredVault
from co_cli.index.filter_table import compared_moments, requirements
from co_cli.index.tables.statements import Dialect
from co_cli.notes.dates import local_day
from co_cli.sources.origin import reader_of

OCCURS = "{position}(docs.{column}, %({name})s) > 0"
# a bare date, stored as its midnight UTC, is compared with the local day of a moment
EDGE = "case when {date} = cast({date} / 86400 as bigint) * 86400 then %({moment}_day)s else %({moment})s end"
SAID = "coalesce(passages.said, docs.created)"
ANY_SAID = "exists (select 1 from passages where passages.doc_id = docs.id and {when})"


def conditions(dialect: Dialect, scope: Scope, vault: int, of_notes: bool = False) -> tuple[str, dict[str, Any]]:
    """`and`-joined conditions for one vault, and their parameters: of passages, or of notes that have such passages."""
    wanted = [f"docs.vault_id = {vault:d}", f"docs.source {dialect.among} (%(sources)s)"]
    values: dict[str, Any] = {"sources": [source for one, source in scope.parts if one == vault]}
    for number, (column, texts) in enumerate(requirements(scope.filters)):
        names = {f"has_{number}_{place}": text for place, text in enumerate(texts)}
        occurs = (OCCURS.format(position=dialect.position, column=column, name=name) for name in names)
        wanted.append(f"({' or '.join(occurs)})")
        values |= names
    times: list[str] = []
    for name, comparison, moment in compared_moments(scope.filters):
        times.append(f"{SAID} {comparison} {EDGE.format(date=SAID, moment=name)}")
        values |= {name: moment, f"{name}_day": local_day(moment)}
    wanted += [ANY_SAID.format(when=" and ".join(times))] if of_notes and times else times
    return " and ".join(wanted), values


def is_narrow(scope: Scope, vault: StoredVault) -> bool:
    """Whether a search sees less than all of a vault: some of its kinds of notes, or filtered ones."""
    if scope.filters._replace(sources=(), roots=(), outdated=False) != Filters():
        return True
    return sum(one == vault.id for one, _ in scope.parts) < len(reader_of(vault.origin).sources)
