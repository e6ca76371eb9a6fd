"""Why a note is where it is in an answer, or why it is not there: step by step, and what would have lifted it."""

from __future__ import annotations

from co_cli.embedding.embedders import Embedders
from co_cli.errors import EmbeddingError, SettingsError
from co_cli.index.knowledge_index import KnowledgeIndex
from co_cli.index.match import WordQuery, read_query
from co_cli.record import Record
from co_cli.retrieval.candidates import OVERFETCH
from co_cli.retrieval.diversify import one_a_note
from co_cli.retrieval.fuse import Scored, Weights
from co_cli.retrieval.profiles import Profile
from co_cli.retrieval.trace import Trace
from co_cli.service.narrowing import within_tags
from co_cli.service.searching import LONGEST_EMBEDDED, Finding, search_index
from co_cli.values import Filters

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

TELLING_WORDS = 4


class Step(Record):
    """What one step of the search made of the note."""

    name: str
    rank: int | None
    """Its place among notes after this step; None: it is not among them."""
    of: int
    """How many notes there are after this step."""
    told: str


class Explanation(Record):
    """Why a note is where it is."""

    query: str
    ref: str
    title: str
    rank: int | None
    """Its place in the answer; None: it is not in it."""
    limit: int
    score: float | None
    signals: dict[str, float]
    """The parts that add up to the score."""
    fell: str | None
    """The step in which it was lost, if it was."""
    steps: list[Step]
    lifts: list[str]
    """What would have lifted it."""


def explain(
    index: KnowledgeIndex,
    embedders: Embedders | None,
    query: str,
    ref: str,
    title: str,
    filters: Filters,
    limit: int,
    weights: Weights | None,
    profile: Profile,
) -> Explanation:
    """Ask the query as a search would, and follow one note through it. Wants to be asked inside a snapshot."""
    asked = query
    way = (limit, weights, profile)
    within = within_tags(query, filters)
    finding = search_index(index, embedders, *within[1:], *way) if within else None
    if within and finding and finding.hits:
        query = within[1]
    else:
        finding = search_index(index, embedders, query, filters, *way)
    words = read_query(query)
    mine = index.passages_of(ref)
    steps, lifts = list[Step](), list[str]()
    filters = finding.filters  # a tag or a date in the query may have narrowed them
    if not mine:
        told = "it is not indexed yet: `co sync` brings the index up to the files"
        return Explanation(asked, ref, title, None, limit, None, {}, "index", [Step("index", None, 0, told)], [told])
    if filters != Filters():
        steps.append(_filtered(index, filters, ref))
    trace = finding.trace
    steps += _by_name(index, finding, mine)
    if trace is None:
        matches = index.search(query, filters, limit * OVERFETCH)
        steps.append(_by_words(index, words, mine, [match.passage_id for match in matches]))
    else:
        steps.append(_by_words(index, words, mine, [match.passage_id for match in trace.matches]))
        steps.append(_by_meaning(index, trace, mine, query, embedders))
        steps.append(_fused(trace, mine))
        if trace.evidence and steps[-1].rank:
            steps.append(_reranked(trace, mine))
    steps += _held(index, finding, mine)
    order = one_a_note(finding.ranked, len(finding.ranked) or 1, profile.diversify)
    place = next((number for number, one in enumerate(order, 1) if one.passage_id in mine), None)
    best = order[place - 1] if place else None
    rank = place if place and place <= limit else None
    fell = None if rank else _fell(steps, place)
    if place and not rank:
        steps.append(Step("limit", None, limit, f"rank {place} is beyond the {limit} that were asked for"))
        last = order[limit - 1]
        lifts.append(f"--limit {place} shows it")
        if best and trace is not None:
            lifts.append(f"{last.score - best.score:.3f} more would bring it in: the last hit has {last.score:.3f}")
    if not rank:
        lifts += _lifts(index, words, mine, steps)
    shown = next((hit for hit in finding.hits if hit.ref.split("#L")[0] == ref), None)
    signals = shown.signals if shown else dict(best.signals) if best else {}
    score = shown.score if shown else best.score if best and trace is not None else None
    return Explanation(asked, ref, title, rank, limit, score, signals, fell, steps, lifts)


def _filtered(index: KnowledgeIndex, filters: Filters, ref: str) -> Step:
    kept = [row.ref for row in index.docs(filters)]
    inside = ref in kept
    told = "it passes the filters" if inside else "the filters leave it out"
    return Step("filters", 1 if inside else None, len(kept), told)


def _by_name(index: KnowledgeIndex, finding: Finding, mine: Sequence[int]) -> list[Step]:
    """Only for a note whose name was asked for: no other misses anything by not being called so."""
    doc = next(iter(index.docs_of(mine[:1]).values()), None)
    kind = next((one.kind for one in finding.called if one.doc_id == doc), None)
    return [Step("name", 1, len(finding.called), f"the query is its {kind}, and that comes first")] if kind else []


def _held(index: KnowledgeIndex, finding: Finding, mine: Sequence[int]) -> list[Step]:
    """Only for a note that was found and does not hold."""
    doc = next(iter(index.docs_of(mine[:1]).values()), None)
    reason = next((one.reason for one in finding.left if one.doc_id == doc), None)
    return [Step("validity", None, len(finding.ranked), reason)] if reason else []


def _by_words(index: KnowledgeIndex, words: WordQuery, mine: Sequence[int], proposed: Sequence[int]) -> Step:
    rank, of = _place(index, proposed, mine)
    shared = index.shared_words(words, mine)
    if shared.refused:
        return Step("words", rank, of, f"has {_listed(shared.refused)}, which the query excludes")
    parts = [
        f"has {_listed(shared.has)}" if shared.has else "",
        f"lacks {_listed(shared.lacks)}" if shared.lacks else "",
    ]
    told = " and ".join(part for part in parts if part) or "no word of the query tells anything"
    if rank is None and shared.has and of:
        told += "; 1 note matches better" if of == 1 else f"; {of} notes match better"
    return Step("words", rank, of, told)


def _by_meaning(
    index: KnowledgeIndex, trace: Trace, mine: Sequence[int], query: str, embedders: Embedders | None
) -> Step:
    rank, of = _place(index, trace.near, mine)
    known = [trace.cosines[passage] for passage in mine if passage in trace.cosines]
    if not known and embedders is not None:
        known = _cosines(index, embedders, query, mine)
    if not known:
        return Step("meaning", rank, of, "it has no vector yet, or the question could not be embedded")
    told = f"cosine {max(known):.2f}"
    if rank is None and trace.near:
        told += f"; the last one proposed has {trace.cosines[trace.near[-1]]:.2f}"
    return Step("meaning", rank, of, told)


def _cosines(index: KnowledgeIndex, embedders: Embedders, query: str, mine: Sequence[int]) -> list[float]:
    active = index.spaces().active
    embedder = embedders.of(active.space) if active else None
    try:
        vector = embedder.embed([query[:LONGEST_EMBEDDED]], "query")[0] if embedder else None
    except (EmbeddingError, SettingsError):
        return []  # the search went on by words too, and said why
    return list(index.cosines(active, vector, mine).values()) if active and vector is not None else []


def _fused(trace: Trace, mine: Sequence[int]) -> Step:
    rank, of, best = _standing(trace.fused, mine)
    if best is None:
        proposed = any(passage in trace.cosines for passage in mine)
        told = "it shares no word and is no nearer than unrelated texts are" if proposed else "nothing proposed it"
        return Step("fuse", None, of, told)
    shares = f"words {best.words:.2f} and meaning {best.meaning:.2f}"
    told = f"{shares}, weighed {trace.weights.words:g} to {trace.weights.meaning:g}: {best.score:.3f}"
    return Step("fuse", rank, of, told)


def _reranked(trace: Trace, mine: Sequence[int]) -> Step:
    rank, of, best = _standing(trace.ranked, mine)
    evidence = trace.evidence.get(best.passage_id) if best else None
    if best is None or evidence is None:
        return Step("rerank", rank, of, "it stood too far behind to be looked at")
    unsaid = ("weighed", "akin") if trace.telling == 1 else ("weighed",)
    told = ", ".join(
        f"{name} {value:.2f}" for name, value in evidence._asdict().items() if value and name not in unsaid
    )
    counts = "" if trace.telling == 1 else f", of which words tell {trace.telling:.2f}"
    return Step("rerank", rank, of, f"{told or 'no evidence'}{counts}: {best.score:.3f}")


def _standing(scored: Sequence[Scored], mine: Sequence[int]) -> tuple[int | None, int, Scored | None]:
    order = one_a_note(scored, len(scored) or 1)
    for number, one in enumerate(order, 1):
        if one.passage_id in mine:
            return number, len(order), one
    best = next((one for one in scored if one.passage_id in mine), None)
    return None, len(order), best


def _place(index: KnowledgeIndex, proposed: Sequence[int], mine: Sequence[int]) -> tuple[int | None, int]:
    """The place of a note among the notes of these passages."""
    docs = index.docs_of(proposed)
    order = list(dict.fromkeys(docs[passage] for passage in proposed if passage in docs))
    doc = next((docs[passage] for passage in mine if passage in docs), None)
    return (order.index(doc) + 1 if doc is not None else None), len(order)


def _fell(steps: Sequence[Step], place: int | None) -> str:
    if place:
        return "limit"
    if steps and steps[0].name == "filters" and steps[0].rank is None:
        return "filters"
    if any(step.name == "validity" for step in steps):
        return "validity"
    if all(step.rank is None for step in steps if step.name in ("name", "words", "meaning")):
        return "candidates"  # neither words nor meaning proposed it
    return "fuse"


def _lifts(index: KnowledgeIndex, words: WordQuery, mine: Sequence[int], steps: Sequence[Step]) -> list[str]:
    if any(step.name == "filters" and step.rank is None for step in steps):
        return ["leave the filter out, or give the note what it asks for"]
    if any(step.name == "validity" for step in steps):
        return ["--outdated shows what no longer holds, and --as-of DATE what held then"]
    asked = {word.lower() for word in words.words}
    body = " ".join(passage.body for passage in index.passages(list(mine)))
    telling = [word for word in index.rarest(body, TELLING_WORDS) if word.lower() not in asked]
    found = [f"ask with words that it has: {_listed(telling)}"] if telling else []
    shared = index.shared_words(words, mine)
    if shared.refused:
        return [f"ask without excluding {_listed(shared.refused)}"]
    if shared.lacks:
        found.append(f"or give the note an alias or a tag that says {_listed(shared.lacks)}")
    return found


def _listed(words: Iterable[str]) -> str:
    return ", ".join(word if word.startswith('"') else f'"{word}"' for word in words)
