"""What a mix of signals, or a date in the query, needs to know of the candidates: only what is weighed is read."""

from __future__ import annotations

import os

from co_cli.index.knowledge_index import KnowledgeIndex
from co_cli.retrieval import signals
from co_cli.retrieval.fuse import Scored

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from co_cli.index.note_facts import NoteFacts
    from co_cli.retrieval.dates import Dates, Since
    from co_cli.retrieval.profiles import Mix, Profile
    from co_cli.values import Filters

OF_FACTS = frozenset(("recency", "importance", "severity", "tags", "domain", "use"))
LONGEST_NAME = 6
"""Words of a name after `since`."""
ARTICLES = ("the ", "our ", "my ")
USES = """
select vaults.root, documents.path, uses.recalls, uses.opens
from json_each(:places) as place
cross join vaults on vaults.root = place.value ->> 0
cross join documents on documents.vault_id = vaults.id and documents.path = place.value ->> 1
cross join uses on uses.document_id = documents.id
"""


def values_of(
    index: KnowledgeIndex, ranked: Sequence[Scored], mix: Mix, profile: Profile, query: str, now: float
) -> dict[str, dict[int, float]]:
    """Each signal that the mix weighs, for each candidate's note."""
    docs = list(dict.fromkeys(candidate.doc_id for candidate in ranked))
    wanted = [name for name, weight in mix.others if weight]
    facts = index.note_facts(docs) if OF_FACTS.intersection(wanted) else {}
    found: dict[str, dict[int, float]] = {}
    for name in wanted:
        match name:
            case "recency":
                found[name] = {doc: _recency(one, now, profile.half_life) for doc, one in facts.items()}
            case "importance":
                found[name] = {doc: signals.importance(one.importance) for doc, one in facts.items()}
            case "severity":
                found[name] = {doc: signals.severity(one.severity) for doc, one in facts.items()}
            case "tags":
                asked = signals.tags_asked(query, {tag for one in facts.values() for tag in one.tags})
                found[name] = {doc: signals.tags(asked, one.tags) for doc, one in facts.items()}
            case "domain":
                found[name] = {doc: signals.domain(query, one.domains) for doc, one in facts.items()}
            case "links":
                found[name] = _links(index, ranked, docs)
            case "tier":
                found[name] = _tiers(index, docs)
            case _:
                found[name] = _use(index, facts)
    return found


def newer_first(
    index: KnowledgeIndex, ranked: Sequence[Scored], wanted: float, profile: Profile, now: float
) -> list[Scored]:
    """For who asks how their own affairs stand: newer notes a little nearer, as far as notes know their dates."""
    from co_cli.retrieval.recency import DATED, NEWEST, newer_nearer

    facts = index.note_facts(list(dict.fromkeys(candidate.doc_id for candidate in ranked[:DATED])))
    created = {doc: one.created for doc, one in facts.items() if one.created is not None}
    fresh = {doc: _recency(one, now, profile.half_life) for doc, one in facts.items()}
    return newer_nearer(ranked, created, wanted * NEWEST, fresh)


def dates_in(index: KnowledgeIndex, query: str, filters: Filters, now: float) -> Dates | None:
    """The time that a query names; "since the release" if some note is called so."""
    from co_cli.retrieval.dates import Dates, read_dates  # imports what a search without dates does without

    read = read_dates(query, now)
    return read if read is None or isinstance(read, Dates) else _named(index, read, filters)


def moments_of(index: KnowledgeIndex, docs: Sequence[int]) -> dict[int, float]:
    """The day that a title names, else when the note says that it came to be; of those that say it."""
    from co_cli.retrieval.dates import date_in

    found: dict[int, float] = {}
    for doc, one in index.note_facts(docs).items():
        moment = date_in(one.title)
        moment = one.created if moment is None else moment
        if moment is not None:
            found[doc] = moment
    return found


def _named(index: KnowledgeIndex, named: Since, filters: Filters) -> Dates | None:
    from co_cli.retrieval.dates import dates_of

    words = named.name.split()
    for count in range(min(LONGEST_NAME, len(words)), 0, -1):
        whole = " ".join(words[:count])
        bare = next((whole[len(one) :] for one in ARTICLES if whole.lower().startswith(one)), "")
        for name in (whole, bare):
            called = index.called(name, filters) if name else []
            moments = moments_of(index, [one.doc_id for one in called])
            if moments:
                return dates_of(named._replace(phrase=f"{named.how} {whole}"), min(moments.values()))
    return None


def _recency(facts: NoteFacts, now: float, half_life: float) -> float:
    written = facts.created
    if facts.updated is not None:
        from co_cli.notes.moments import read_moment  # few notes say so

        written = max((one for one in (read_moment(facts.updated), written) if one is not None), default=None)
    return signals.recency(written, now, half_life, facts.protected, facts.standing)


def _links(index: KnowledgeIndex, ranked: Sequence[Scored], docs: Sequence[int]) -> dict[int, float]:
    from co_cli.retrieval.links import BEST, proximity

    best: dict[int, float] = {}
    for candidate in ranked:
        best.setdefault(candidate.doc_id, candidate.score)
        if len(best) == BEST:
            break
    return proximity(best, index.links_around(docs))


def _tiers(index: KnowledgeIndex, docs: Sequence[int]) -> dict[int, float]:
    tiers = index.tiers
    if tiers is None:
        return dict.fromkeys(docs, 1.0)
    least = min(tiers.values.values(), default=0.0)
    return {doc: tiers.values.get(row.tier or tiers.own, least) for doc, row in index.tiers_of(docs).items()}


def _use(index: KnowledgeIndex, facts: dict[int, NoteFacts]) -> dict[int, float]:
    """As far as activity.db can be read: nothing in it is needed for an answer."""
    folder = os.path.dirname(index.rows.database.path)
    if not os.path.exists(os.path.join(folder, "activity.db")):
        return {}
    import json

    from co_cli.activity.database import ActivityDatabase
    from co_cli.errors import ActivityUnavailableError
    from co_cli.index.connection import fetch

    places = {(one.root, one.path): doc for doc, one in facts.items()}
    database = ActivityDatabase(folder)
    try:
        with database.reading() as connection:
            rows = fetch(connection, USES, {"places": json.dumps(list(places))})
    except ActivityUnavailableError:
        return {}
    finally:
        database.close()
    return {places[root, path]: signals.use(recalls, opens) for root, path, recalls, opens in rows}
