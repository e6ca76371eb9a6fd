"""Filters as SQL conditions on `docs` and `passages`. Values are always parameters; only our own text is joined."""

from __future__ import annotations

from typing import Any

from co_cli.ground.hits import Filters
from co_cli.index.derivation import OF_PASSAGES
from co_cli.index.filter_table import compared_moments, requirements
from co_cli.index.stored import Scope, StoredOrigin
from co_cli.index.tables.statements import Dialect
from co_cli.notes.dates import local_day
from co_cli.sources.origin import adapter_of

OCCURS = "{position}({table}.{column}, %({name})s) > 0"
# a bare date, stored as its midnight UTC, is compared with the local day of a moment
EDGE = "case when {date} = cast({date} / 86400 as bigint) * 86400 then %({moment}_day)s else %({moment})s end"
SAID = "coalesce(passages.said, docs.created)"
ANY_PASSAGE = "exists (select 1 from passages where passages.doc_id = docs.id and {which})"


def conditions(dialect: Dialect, scope: Scope, origin_id: int, of_notes: bool = False) -> tuple[str, dict[str, Any]]:
    """`and`-joined conditions for one vault, and their parameters: of passages, or of notes that have such passages."""
    wanted = [f"docs.vault_id = {origin_id:d}", f"docs.source {dialect.among} (%(sources)s)"]
    values: dict[str, Any] = {"sources": [source for number, source in scope.parts if number == origin_id]}
    own: list[str] = []
    for number, (column, texts, absent) in enumerate(requirements(scope.filters)):
        names = {f"has_{number}_{place}": text for place, text in enumerate(texts)}
        table, where = ("passages", own) if column in OF_PASSAGES else ("docs", wanted)
        occurs = (OCCURS.format(position=dialect.position, table=table, column=column, name=name) for name in names)
        where.append(f"{'not ' if absent else ''}({' or '.join(occurs)})")
        values |= names
    for name, passages in (("only", scope.only), ("without", scope.without)):
        if passages is not None:
            # with the sign, SQLite looks a passage up in the list; else it would try all of them for each note
            own.append(f"{'not ' if name == 'without' else ''}(+passages.id {dialect.among} (%({name})s))")
            values[name] = list(passages)
    for name, comparison, moment in compared_moments(scope.filters):
        own.append(f"{SAID} {comparison} {EDGE.format(date=SAID, moment=name)}")
        values |= {name: moment, f"{name}_day": local_day(moment)}
    wanted += [ANY_PASSAGE.format(which=" and ".join(own))] if of_notes and own else own
    return " and ".join(wanted), values


def is_narrow(scope: Scope, stored: StoredOrigin) -> bool:
    """Whether a search sees less than all of a vault: some of its kinds of notes, filtered ones, or some passages."""
    if scope.only is not None or scope.without is not None:
        return True
    if scope.filters._replace(sources=(), roots=(), outdated=False) != Filters():
        return True
    return sum(number == stored.id for number, _ in scope.parts) < len(adapter_of(stored.origin).sources)
