"""Which notes belong beside a prompt before anybody asks for them, and why.

Notes marked `loading: always`; notes marked `loading: contextual` that have to do with the prompt; and memories that
nobody marked, when the evidence is strong. Evidence is absolute: how far the cosine stands above what unrelated texts
reach in this space, plus the share of the sentence's words that the passage has, rare words counting more. It is never
a score of a ranking, because the best of a bad lot scores well there. Pure choice: nothing is written, cut or fenced.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable
from statistics import median
from typing import Literal, NamedTuple

from co_cli.embedding.space import Embedder, Vector
from co_cli.errors import EmbeddingError, KnowledgeError, SettingsError
from co_cli.index.engine import Reader, StoredSpace
from co_cli.knowledge_base import KnowledgeBase
from co_cli.notes.note import Note, excerpt
from co_cli.notes.refs import without_lines
from co_cli.retrieval.candidates import Ask, gather
from co_cli.retrieval.query import Query, parse
from co_cli.service.lookup import outdated
from co_cli.service.trusting import unasked_from
from co_cli.values import OWN_SOURCES, Filters

Why = Literal["always", "contextual", "recalled"]

STRONG = 0.8
"""Evidence for a memory that nobody marked. In the sample vault none of 80 everyday prompts reaches it, and most
questions that use a memory's words do; at 0.7 one prompt in forty does."""
RELATED = 0.55
"""Evidence for a note whose author marked it `contextual`: 3 of the 80 prompts bring one of four such notes along."""
MOST_RECALLED, MOST_CONTEXTUAL, MOST_ALWAYS = 2, 3, 50
LEAST_WORDS, LEAST_OF_MANY = 2, 3
"""Telling words of a sentence, and of one that is the smaller part of a prompt: a greeting or `I have five minutes`
shares its words with too many notes, and a single word such as `continue` anyway."""
MOST_SENTENCES = 8
LONGEST_SENTENCE = 500
CANDIDATES = 8
NEIGHBOURS = 50
"""Of which the median stands for noise where nobody measured the space's own."""
MARKS = ("always", "contextual")
OWN_WORDS = ("user", "agent")
"""Who must have said a memory that comes unasked: what a web page or an import says waits until it is recalled."""
SENTENCE_END = re.compile(r"(?<=[.!?;])\s+|(?<=[\u3002\uff01\uff1f])|\n+")
QUERY_SIGNS = str.maketrans({'"': " ", "-": " ", "#": " ", ":": " "})
"""They ask a search for phrases and against words, which a prompt does not mean."""


class ContextNote(NamedTuple):
    """A note, or the part of an article, that belongs beside the prompt."""

    ref: str
    title: str
    provenance: str
    text: str
    why: Why
    evidence: float | None
    """How strongly it has to do with the prompt; None for one that is always there."""


class Context(NamedTuple):
    """The notes for one prompt, most important first, and what could not be asked."""

    notes: list[ContextNote]
    degraded: list[str]


class Asked(NamedTuple):
    """One sentence of the prompt, ready to be compared."""

    query: Query
    vector: Vector | None


class Comparing(NamedTuple):
    """The prompt's sentences, and the space in which they can be compared by meaning, if there is one."""

    asked: list[Asked]
    active: StoredSpace | None
    embedder: Embedder | None


def always_there(kb: KnowledgeBase, seen: Collection[str], now: float) -> Context:
    """Notes marked `loading: always` that were not `seen` in the conversation: by importance, then newest first.

    Only of vaults that may (`trusting`): a file of somebody's folder or of a clone must not put itself into every
    conversation.
    """
    allowed, _ = unasked_from(kb.settings, kb.root, kb.index.beside)
    try:
        rows = kb.index.docs(Filters(OWN_SOURCES, fields=(("loading", "always"),)))
    except KnowledgeError as error:
        return Context([], [f"no notes were added: {error}"])
    held = [row for row in rows if row.root not in allowed]
    rows = [row for row in rows if row.root in allowed]
    notes = [note for row in rows[:MOST_ALWAYS] if row.ref not in seen and (note := _open(kb, row.ref, now))]
    notes.sort(key=_importance, reverse=True)
    missing = [f"more than {MOST_ALWAYS} notes are `loading: always`: older ones were left out"]
    chosen = [_context_note(note.ref, note, "always", None) for note in notes]
    untold = (
        [f"{held[0].ref} is `loading: always` and waits until you trust its vault: `co config trust`"] if held else []
    )
    return Context(chosen, [*(missing if len(rows) > MOST_ALWAYS else []), *untold])


def matching(kb: KnowledgeBase, prompt: str, seen: Collection[str], now: float) -> Context:
    """Notes that have to do with the prompt and were not `seen`. As slow as the embedder, which may fail."""
    sentences = _sentences(prompt)
    if not sentences:
        return Context([], [])
    try:
        active, embedder, degraded = _space(kb)
        asked, problem = _asked(sentences, embedder)  # before the snapshot: it may take its time
        degraded += [problem] if problem else []
        with kb.index.snapshot() as reader:  # one moment: a passage found is a passage that can be opened
            return Context(_matched(kb, reader, Comparing(asked, active, embedder), (seen, now)), degraded)
    except KnowledgeError as error:
        return Context([], [f"nothing was recalled: {error}"])


def _matched(
    kb: KnowledgeBase, reader: Reader, comparing: Comparing, told: tuple[Collection[str], float]
) -> list[ContextNote]:
    seen, now = told
    if comparing.active is not None and _active(kb, reader) != comparing.active:
        comparing = comparing._replace(active=None)  # another model took over meanwhile: words must do
    found: list[ContextNote] = []
    # what may not be added is left out before the best are looked for: it must not take the place of what may
    allowed, _ = unasked_from(kb.settings, kb.root, kb.index.beside)
    if not allowed:
        return []
    may = Filters(OWN_SOURCES, roots=tuple(sorted(allowed)))
    contextual = may._replace(fields=(("loading", "contextual"),))
    if kb.index.docs(contextual, 1):
        evidence = _evidence(kb, reader, comparing, contextual)
        found += _chosen(kb, reader, evidence, _Choice("contextual", RELATED, MOST_CONTEXTUAL, seen, now))
    seen = {*seen, *(without_lines(note.ref) for note in found)}
    evidence = _evidence(kb, reader, comparing, may._replace(sources=("memory",), speakers=OWN_WORDS))
    return [*found, *_chosen(kb, reader, evidence, _Choice("recalled", STRONG, MOST_RECALLED, seen, now))]


class _Choice(NamedTuple):
    """Which notes are taken, and how many."""

    why: Why
    least: float
    most: int
    seen: Collection[str]
    now: float


def _chosen(kb: KnowledgeBase, reader: Reader, evidence: dict[int, float], choice: _Choice) -> list[ContextNote]:
    """The notes with the strongest evidence, each once, opened from its file."""
    enough = [passage for passage, strength in evidence.items() if strength >= choice.least]
    enough.sort(key=lambda passage: -evidence[passage])
    stored = reader.passages(enough)
    prefixes = kb.index.view(reader, Filters()).prefixes
    chosen: dict[str, ContextNote] = {}
    for passage in (stored[one] for one in enough if one in stored):
        ref = prefixes.get(passage.vault, "") + passage.ref
        if len(chosen) == choice.most:
            break
        if ref in choice.seen or ref in chosen:
            continue
        note = _open(kb, ref, choice.now)
        if note is None or (choice.why == "recalled" and not _may_come_unasked(note)):
            continue
        lines = "" if passage.source == "memory" else f"#L{passage.first_line}-{passage.last_line}"
        chosen[ref] = _context_note(ref + lines, note, choice.why, round(evidence[passage.id], 3))
    return list(chosen.values())


def _evidence(kb: KnowledgeBase, reader: Reader, comparing: Comparing, filters: Filters) -> dict[int, float]:
    """Each passage that may have to do with the prompt, with the evidence of the sentence that it fits best."""
    strongest: dict[int, float] = {}
    scope = kb.index.view(reader, filters).scope
    space, embedder = comparing.active, comparing.embedder
    for query, vector in comparing.asked:
        measured = embedder.space.noise if embedder is not None else -1.0
        depth = CANDIDATES if measured > -1 else NEIGHBOURS
        found = gather(reader, Ask(query, scope, depth), space, vector)
        noise = measured if measured > -1 else median([one.cosine for one in found.near] or [1.0])
        having = reader.terms_in(list(found.notes), query.words.terms)
        total = sum(found.idf.values()) or 1.0
        for passage in found.notes:
            above = max(0.0, found.cosines.get(passage, noise) - noise) / (1 - noise) if noise < 1 else 0.0
            shared = sum(found.idf.get(term, 0.0) for term in having.get(passage, ())) / total
            strongest[passage] = max(strongest.get(passage, 0.0), above + shared)
    return strongest


def _active(kb: KnowledgeBase, reader: Reader) -> StoredSpace | None:
    return kb.index.view(reader, Filters()).space


def _space(kb: KnowledgeBase) -> tuple[StoredSpace | None, Embedder | None, list[str]]:
    """The space that answers by meaning, and its embedder; without either, words must do."""
    if kb.settings.knowledge_search_backend != "hybrid" or kb.embedders.space is None:
        return None, None, []
    active = kb.index.vectors().spaces.active
    embedder = kb.embedders.of(active.space) if active else None
    if embedder is None:
        return None, None, ["compared by words: no vectors can be asked"]
    return active, embedder, []


def _asked(sentences: list[str], embedder: Embedder | None) -> tuple[list[Asked], str | None]:
    queries = [(sentence, parse(sentence.translate(QUERY_SIGNS))) for sentence in sentences]
    half = sum(len(query.words.terms) for _, query in queries) / 2
    telling = [
        (sentence, query)
        for sentence, query in queries
        if len(query.words.terms) >= (LEAST_WORDS if len(query.words.terms) >= half else LEAST_OF_MANY)
    ]
    vectors: list[Vector | None] = [None] * len(telling)
    problem = None
    if embedder is not None and telling:
        try:
            vectors = embedder.embed([sentence for sentence, _ in telling], "query")
        except (EmbeddingError, SettingsError) as error:
            problem = f"compared by words: {error}"
    return [Asked(query, vector) for (_, query), vector in zip(telling, vectors, strict=True)], problem


def _sentences(prompt: str) -> list[str]:
    """Each is compared by itself: a question between a greeting and a thank-you is still that question.

    Of a long prompt the beginning and the end, where people say what they want.
    """
    parts = [part.strip()[:LONGEST_SENTENCE] for part in _split(prompt) if part and part.strip()]
    if len(parts) > MOST_SENTENCES:
        half = MOST_SENTENCES // 2
        parts = [*parts[:half], *parts[-half:]]
    return list(dict.fromkeys(parts))


def _split(prompt: str) -> Iterable[str]:
    edge = MOST_SENTENCES * LONGEST_SENTENCE
    if len(prompt) > 2 * edge:  # megabytes that somebody pasted are not taken apart
        prompt = f"{prompt[:edge]}\n{prompt[-edge:]}"
    return SENTENCE_END.split(prompt)


def _open(kb: KnowledgeBase, ref: str, now: float) -> Note | None:
    """The note as its file says it now; None if it is gone or no longer holds."""
    try:
        note = kb.note(ref)
    except KnowledgeError:
        return None  # forgotten, or unreadable, since it was indexed: there is nothing to add
    return None if outdated(note, kb.index) else note


def _may_come_unasked(note: Note) -> bool:
    return note.provenance.casefold() in OWN_WORDS and note.metadata.get("loading") not in MARKS


def _importance(note: Note) -> float:
    value = note.metadata.get("importance")
    return float(value) if isinstance(value, int | float) else 0.5


def _context_note(ref: str, note: Note, why: Why, evidence: float | None) -> ContextNote:
    try:
        lines = excerpt(ref, note)
    except KnowledgeError:
        lines = note.body.split("\n")  # shorter than when it was indexed
    return ContextNote(ref, note.title, note.provenance, "\n".join(lines).strip(), why, evidence)
