"""Choose the notes to add to a prompt before the model asks for any, and say why.

Notes marked `loading: always`; entities that the prompt asks about by name; notes marked `loading: contextual` that are
about the prompt or share keywords with it; and unmarked memories that answer a sentence, as the reader says of those
with some evidence. Without a reader their evidence must be strong. What is marked `loading: never` is only found by
asking. Evidence is absolute: how far the cosine is above what unrelated texts reach in this space, plus the share of
the sentence's words in the passage, rare words counting more, and a little for how the note was rated. It is never a
rank, because the best of a bad lot ranks first. Only vaults that the user trusts can add notes. Nothing is written or
fenced here.
"""

from __future__ import annotations

import re
import time
from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from functools import cache
from math import inf
from statistics import median
from typing import Any, Literal

from co_cli.embedding.space import Embedder, Vector
from co_cli.ground.errors import EmbeddingError, KnowledgeError, SettingsError
from co_cli.ground.hits import Filters, UseCount
from co_cli.ground.priority import answering
from co_cli.ground.values import OWN_SOURCES
from co_cli.index.engine import ReadTransaction
from co_cli.index.names import fold_name
from co_cli.index.stored import StoredPassage, StoredSpace, Validity
from co_cli.index.tokens import is_stop_word
from co_cli.index.word_query import Term, WordQuery, needles_of
from co_cli.notes.excerpts import Excerpt, excerpt, marked_ref
from co_cli.notes.language import guess_language
from co_cli.notes.note import Note
from co_cli.notes.refs import without_lines
from co_cli.notes.subjects import VERBS, subject_of
from co_cli.retrieval.candidates import Ask, gather, terms_having
from co_cli.retrieval.query import Query, parse
from co_cli.retrieval.rerank import is_readable, is_readable_question
from co_cli.retrieval.results import NEAR, crowding, read_text
from co_cli.retrieval.steps import successors
from co_cli.searching.newer_notes import newer_notes
from co_cli.vault.lookup import open_note, outdated
from co_cli.vault.tiers import vaults_for_prompts, why_untrusted
from co_cli.vault.vault import Vault

STRONG = 0.8
"""Evidence for an unmarked memory. In the sample vault none of 80 everyday prompts reaches it, and most questions in a
memory's own words do; at 0.7 one prompt in forty does."""
RELATED = 0.55
"""Evidence for a note marked `contextual`, and what shared keywords count: 4 of the 80 prompts add one of four such
notes."""
RATED = 0.1
"""What ratings of a note add to its evidence at most, or take from it."""
POSSIBLE, ANSWERS = 0.55, 1.0
"""Where a reader can say whether an unmarked memory answers: the evidence that is worth reading, and the score that it
then needs, the logarithm of the odds. Chosen on prompts of a coder and on questions of benchmarks/quality/precision
that nothing answers: 88 % of those get nothing, 25 % without the reader."""
CROWDED = 0.06, 0.3
"""How much more evidence, and how much more of that score, it takes for ten times as many notes as a hundred: among
more, some are near by chance. Chosen on 160 prompts among 5,000 notes of other people, where 6 of 57 notes are wrong
instead of 16 of 70; of 80 prompts that were written afterwards, 5 of 26 instead of 8 of 33."""
NEARLY = 0.8
"""The share of the strongest evidence that a further unmarked memory needs. Chosen on 80 prompts of a coder,
where .84 instead of .75 of the notes are right and no prompt loses its note; of 80 that were written afterwards, .94
are right (`python -m benchmarks hooks`)."""
MAX_RECALLED, MAX_CONTEXTUAL, MAX_ALWAYS = 2, 3, 50
MIN_WORDS, MIN_WORDS_OF_LESSER = 2, 3
"""Content words of a sentence, and of one that is the smaller part of a prompt: greetings match too many notes."""
MAX_SENTENCES, MAX_SENTENCE_CHARS = 8, 500
CANDIDATES, NEIGHBOURS, READ = 8, 50, 4
"""Per sentence; with an embedder whose noise was not measured, the median of the neighbours is taken as noise."""
NO_EVIDENCE = 0.0, ""
MARKS = ("always", "contextual", "never")
"""Values of `loading`: the user decides, not the evidence."""
OWN_WORDS = ("user", "agent")
"""Provenance that an unmarked memory needs: text from web pages and imports waits until it is recalled."""
SENTENCE_END = re.compile(r"(?<=[.!?;])\s+|(?<=[\u3002\uff01\uff1f])|\n+")
QUERY_SIGNS = str.maketrans('"-#:', "    ")
"""In a query they mean phrases and filters, in a prompt they do not."""


ASKS_ABOUT = re.compile(
    r"(?:\b(?:know|remember|noted?|tell me) (?:\w+ )?(?:about|of)|\bwho(?:'s| is| was)) (.+?)[\s?!.]*$", re.IGNORECASE
)
"""A question about somebody or something, with the name."""


@dataclass(frozen=True, slots=True)
class WorkingSet:
    """What an agent is given before its first turn, with its cost in tokens."""

    instructions: str
    instructions_tokens: int
    tools: dict[str, int]
    knowledge: str
    """The part of the user's turn that holds the notes; empty if there is none."""
    knowledge_tokens: int
    report: dict[str, Any]
    """`injected` and `cut` notes, each with `ref`, `title`, `why`, `reason`, `evidence` and `tokens`; `budget`,
    `warnings` and `degraded`."""


@dataclass(frozen=True, slots=True)
class ContextNote:
    """A note, or the part of an article, to add to the prompt."""

    ref: str
    title: str
    provenance: str
    text: str
    why: Literal["always", "named", "contextual", "recalled"]
    evidence: float | None
    """How strongly it is about the prompt; None for `always`."""
    limit: int | None = None
    """The maximum number of characters of its text."""
    newer: str | None = None
    """The ref of a newer one among these that contradicts it."""


@dataclass(frozen=True, slots=True)
class Context:
    """The notes for one prompt, most important first, and what could not be checked."""

    notes: list[ContextNote]
    degraded: list[str]


def always_notes(vault: Vault) -> Context:
    """Notes marked `loading: always`: by importance and ratings, then newest first."""
    allowed, _ = vaults_for_prompts(vault.settings, vault.root, vault.index.linked)
    try:
        rows = vault.index.notes.docs(Filters(OWN_SOURCES, fields=(("loading", "always"),)))
    except KnowledgeError as error:
        return Context([], [f"no notes were added: {error}"])
    untrusted = [row.ref for row in rows if row.root not in allowed]
    trusted = [row for row in rows if row.root in allowed]
    newest = {row.id: row for row in trusted[:MAX_ALWAYS]}
    uses = vault.index.notes.uses(newest)
    order = {row.ref: RATED * uses.get(number, UseCount()).rating for number, row in newest.items()}
    notes = [note for ref in order if (note := _open(vault, ref))]
    notes.sort(key=lambda note: _importance(note) + order.get(note.ref, 0.0), reverse=True)
    degraded: list[str] = []
    if len(trusted) > MAX_ALWAYS:
        degraded.append(f"more than {MAX_ALWAYS} notes are `loading: always`: older ones were left out")
    if untrusted:
        degraded.append(f"{untrusted[0]} is `loading: always` but you do not trust its vault: `co config trust`")
    found = [ContextNote(*_shown(note.ref, note), "always", None, note.limit) for note in notes]
    return Context(_mark_older(vault, found), degraded)


@answering()
def matching_notes(vault: Vault, prompt: str, seen: Collection[str]) -> Context:
    """Notes that are about the prompt and were not `seen`. As slow as the embedder, which may fail."""
    allowed, _ = vaults_for_prompts(vault.settings, vault.root, vault.index.linked)
    sentences = _sentences(prompt)
    if not sentences or not allowed:
        return Context([], [])
    # filter before ranking: notes that may not be added must not take the place of those that may
    trusted = Filters(OWN_SOURCES, roots=tuple(sorted(allowed)))
    contextual = trusted._replace(fields=(("loading", "contextual"),))
    unmarked = trusted._replace(sources=("memory",), speakers=OWN_WORDS)
    try:
        comparison, degraded = _compare(vault, sentences)  # before the snapshot: embedding may be slow
        with vault.engine.reading() as snapshot:  # so that a passage that was found can be opened
            if comparison.space not in vault.index.notes.state().spaces:
                comparison = replace(comparison, space=None)  # another model replaced it meanwhile: compare by words
            matcher = _Matcher(vault, snapshot, comparison)
            entities = trusted._replace(sources=("entity",), speakers=OWN_WORDS)
            found = matcher.named(sentences, entities, unmarked, seen)
            seen = {*seen, *(without_lines(note.ref) for note in found)}
            if vault.index.notes.docs(contextual, 1):
                found += matcher.choose("contextual", contextual, seen)
            seen = {*seen, *(without_lines(note.ref) for note in found)}
            found += matcher.choose("recalled", unmarked, seen)
            return Context(_mark_older(vault, found), degraded)
    except KnowledgeError as error:
        return Context([], [f"nothing was recalled: {error}"])


def _mark_older(vault: Vault, notes: list[ContextNote]) -> list[ContextNote]:
    newer = newer_notes(vault, ((note.ref, note.title, note.text) for note in notes))
    return [replace(note, newer=newer.get(note.ref)) for note in notes]


def untrusted_vaults(vault: Vault, degraded: Collection[str]) -> list[str]:
    """Why vaults with notes may not add any, each with the fix. If something was `degraded`, empty vaults, too."""
    refused = vaults_for_prompts(vault.settings, vault.root, vault.index.linked)[1]
    notes = vault.index.notes
    with_notes = [root for root in refused if degraded or notes.docs(Filters(OWN_SOURCES, roots=(root,)), 1)]
    return [why_untrusted(vault.settings.data_dir, root) for root in with_notes]


@dataclass(frozen=True, slots=True)
class _Comparison:
    """The prompt's sentences, and the space in which they are compared by meaning, if there is one."""

    sentences: list[tuple[Query, Vector | None]]
    space: StoredSpace | None
    noise: float
    """The cosine of unrelated texts; -1 if nobody measured it."""


def asks_something(prompt: str) -> bool:
    """Whether a note can be about it: it has a sentence with enough words, or asks about a name."""
    sentences = _sentences(prompt)
    return bool(_telling(sentences)) or any(map(ASKS_ABOUT.search, sentences))


def _telling(sentences: list[str]) -> dict[str, Query]:
    """The sentences with enough content words, as search counts them: each pair of letters of Chinese is one."""
    parsed = {sentence: parse(sentence.translate(QUERY_SIGNS), operators=False) for sentence in sentences}
    counts = {sentence: _content_words(sentence, query) for sentence, query in parsed.items()}
    half = sum(counts.values()) / 2
    return {
        sentence: parsed[sentence]
        for sentence, count in counts.items()
        if count >= (MIN_WORDS if count >= half else MIN_WORDS_OF_LESSER)
    }


def _content_words(sentence: str, query: Query) -> int:
    """A query of stop words alone is searched for those: "do it"."""
    language = guess_language(sentence)
    return 0 if all(is_stop_word(word, language) for word in query.spelled) else len(query.words.terms)


def _compare(vault: Vault, sentences: list[str]) -> tuple[_Comparison, list[str]]:
    queries = _telling(sentences)
    space: StoredSpace | None = None
    embedder: Embedder | None = None
    vectors: dict[str, Vector | None] = {}
    degraded: list[str] = []
    if vault.settings.knowledge_search_backend == "hybrid" and vault.embedders.space is not None:
        space, known = _space(vault, sentences)
        embedder = vault.embedders.of(space.space) if space else None
        asked = [sentence for sentence in queries if sentence in known]
        try:
            if embedder is None:
                degraded += ["compared by words: no vectors can be searched"] if known else []
            elif asked:
                vectors = dict(zip(asked, embedder.embed(asked, "query"), strict=True))
        except (EmbeddingError, SettingsError) as error:
            degraded.append(f"compared by words: {error}")
    noise = embedder.space.noise if embedder else -1.0
    compared = [(query, vectors.get(sentence)) for sentence, query in queries.items()]
    return _Comparison(compared, space if embedder else None, noise), degraded


def _space(vault: Vault, sentences: list[str]) -> tuple[StoredSpace | None, set[str]]:
    """The vectors that answer, if they know the language of a sentence, and which ones these are.

    Those of the floor if they know all of these, and the model of the others is not loaded: a prompt does not wait.
    """
    notes, embedders = vault.index.notes, vault.embedders
    with vault.engine.reading() as snapshot:
        space, floor = notes.view(snapshot, Filters()).space, notes.state().floor
    if space is None:
        return None, {*sentences}
    said = {text: "en" if is_readable_question(text) else guess_language(text) for text in sentences}
    known = {text for text, language in said.items() if space.space.knows(language)}
    on_floor = floor is not None and all(floor.space.knows(said[text]) for text in known)
    answering = floor if on_floor and not embedders.is_loaded(space.space) else space
    return answering if known else None, known


class _Matcher:
    """Finds the notes that a prompt is about, in one snapshot of the index."""

    def __init__(self, vault: Vault, snapshot: ReadTransaction, comparison: _Comparison) -> None:
        self._vault, self._snapshot, self._comparison = vault, snapshot, comparison

    def named(
        self, sentences: list[str], entities: Filters, memories: Filters, seen: Collection[str]
    ) -> list[ContextNote]:
        """The entities that a sentence asks about by their title or alias, then memories with such a name."""
        found: dict[str, ContextNote] = {}
        names: list[str] = []
        for asked in filter(None, map(ASKS_ABOUT.search, sentences)):
            scope = self._vault.index.notes.view(self._snapshot, entities).scope
            named = self._snapshot.named(scope, fold_name(asked[1]))
            for note in self._add_named([entity.passage for entity in named], MAX_RECALLED, found, seen):
                names += [note.title, *note.aliases]
        scope = self._vault.index.notes.view(self._snapshot, memories).scope
        for phrase in needles_of(names, self._snapshot.languages(scope.origins)):
            having = self._snapshot.words(scope, WordQuery(phrases=(phrase,)), CANDIDATES)
            self._add_named([match.passage for match in having], 2 * MAX_RECALLED, found, seen)
        return list(found.values())

    def _add_named(
        self, passages: list[int], most: int, found: dict[str, ContextNote], seen: Collection[str]
    ) -> list[Note]:
        """Add notes to `found`, until there are `most`. Returns those that were added."""
        prefixes = self._vault.index.notes.view(self._snapshot, Filters()).prefixes
        stored = self._snapshot.passages(passages)
        added: list[Note] = []
        for passage in (stored[number] for number in passages if number in stored):
            ref = prefixes.get(passage.origin_id, "") + passage.ref
            note = None if ref in seen or ref in found or len(found) == most else _open(self._vault, ref)
            if note is None or not _is_own_and_unmarked(note):
                continue
            part = ref if passage.source == "memory" else f"{ref}#L{passage.first_line}-{passage.last_line}"
            found[ref] = ContextNote(*_shown(part, note), "named", 1.0)
            added.append(note)
        return added

    def choose(
        self, why: Literal["contextual", "recalled"], filters: Filters, seen: Collection[str]
    ) -> list[ContextNote]:
        """The notes with the strongest evidence, or those that a reader chooses of them, read from their files."""
        least, most = (RELATED, MAX_CONTEXTUAL) if why == "contextual" else (STRONG, MAX_RECALLED)
        notes = self._vault.index.notes.view(self._snapshot, filters).notes
        crowd = crowding(notes) if why == "recalled" else 0.0
        least += CROWDED[0] * crowd
        own = self._evidence(filters)
        asked = {**own}
        stored = self._snapshot.passages(list(asked))
        earlier = self._replace_superseded(asked, stored) if why == "recalled" else {}
        uses = self._vault.index.notes.uses({passage.note: passage for passage in stored.values()})
        evidence: dict[int, float] = {}
        for number, passage in stored.items():
            kept = least if why == "contextual" and self._shares_keywords(passage) else 0.0
            evidence[number] = max(asked[number][0], kept) + RATED * uses.get(passage.note, UseCount()).rating
        prefixes = self._vault.index.notes.view(self._snapshot, Filters()).prefixes
        refs = {number: prefixes.get(passage.origin_id, "") + passage.ref for number, passage in stored.items()}
        order = sorted(
            (number for number in evidence if refs[number] not in seen), key=lambda number: -evidence[number]
        )
        read: list[int] | None = None
        if why == "recalled":
            possible = [number for number in order if evidence[number] >= POSSIBLE + CROWDED[0] * crowd][:READ]
            texts = [(asked[number][1], stored[number], earlier.get(number)) for number in possible]
            read = self._read(texts, ANSWERS + CROWDED[1] * crowd)
        if read is None:  # then evidence of a text that is not valid is not enough
            for number in earlier:
                evidence[number] += own.get(number, NO_EVIDENCE)[0] - asked[number][0]
            order.sort(key=lambda number: -evidence[number])
        chosen: dict[str, ContextNote] = {}
        for number in [number for number in order if evidence[number] >= least] if read is None else read:
            note = None if refs[number] in chosen or len(chosen) == most else _open(self._vault, refs[number])
            if note is None or (why == "recalled" and not _is_own_and_unmarked(note)):
                continue
            if why == "recalled" and read is None:
                least = max(least, NEARLY * evidence[number]) if not chosen else least
                if evidence[number] < least:
                    break
            passage = stored[number]
            part = refs[number]
            part += "" if passage.source == "memory" else f"#L{passage.first_line}-{passage.last_line}"
            chosen[refs[number]] = ContextNote(*_shown(part, note), why, round(evidence[number], 3))
        return list(chosen.values())

    def _replace_superseded(
        self, asked: dict[int, tuple[float, str]], stored: dict[int, StoredPassage]
    ) -> dict[int, StoredPassage]:
        """Let the successors of superseded notes have their evidence. Returns the earlier passage of each of these.

        What is not valid is removed from both: it would only be read, and compared with what is valid.
        """
        now = time.time()
        validities = self._snapshot.validities([passage.note for passage in stored.values()], now)
        gone = [stored[number] for number in asked if number in stored and _is_gone(stored[number], validities, now)]
        gone.sort(key=lambda passage: -asked[passage.id][0])
        refs = {passage.note: newer for passage in gone if (newer := validities[passage.note].superseded_by)}
        newer = successors(self._snapshot, refs, now)
        theirs = self._snapshot.passages(notes=[*newer.values()])
        earlier: dict[int, StoredPassage] = {}
        for old in gone:
            evidence = asked.pop(old.id)
            del stored[old.id]
            parts = [passage for passage in theirs.values() if passage.note == newer.get(old.note)]
            if parts and parts[0].source == "memory":
                best = max(parts, key=lambda passage: asked.get(passage.id, NO_EVIDENCE))
                stored[best.id], asked[best.id] = best, max(evidence, asked.get(best.id, NO_EVIDENCE))
                earlier.setdefault(best.id, old)
        return earlier

    def _read(self, possible: list[tuple[str, StoredPassage, StoredPassage | None]], least: float) -> list[int] | None:
        """The passages that answer their sentence of the prompt, best first; None if no reader can say.

        Each is read with the one that it superseded.
        """
        if self._vault.reader is None or self._comparison.space is None:
            return None
        seconds = self._vault.settings.knowledge_reader_ms / 1000
        if not all(is_readable(new.language) and is_readable_question(said) for said, new, _ in possible):
            return None
        scores: dict[int, float] = {}
        try:
            for sentence in dict.fromkeys(sentence for sentence, *_ in possible):
                words = parse(sentence, operators=False).words
                texts = {new.id: read_text(new, words, old) for said, new, old in possible if said == sentence}
                found = self._vault.reader.scores(sentence, list(texts.values()), seconds)
                scores |= {number: -inf if score is None else score for number, score in zip(texts, found, strict=True)}
        except KnowledgeError:  # its file is damaged, or nothing can run it
            return None
        least = max(least, max(scores.values(), default=least) - NEAR)
        return sorted((number for number in scores if scores[number] >= least), key=lambda number: -scores[number])

    def _shares_keywords(self, passage: StoredPassage) -> bool:
        """Whether the prompt has a word of the title that the text has, too, and that is not a verb, as in an order.

        Or else all words of a tag, an alias, a heading, or the title up to its verb.
        """
        said = {term for query, _ in self._comparison.sentences for term in query.words.terms}
        heading, tags = passage.heading.rpartition(" > ")[2], (tag.rpartition("/")[2] for tag in passage.tags)
        names = (subject_of(passage.title), heading, *tags, *passage.aliases.split(" · "))
        in_both = _terms(passage.title) & _terms(passage.body) & said
        return bool(in_both - _verbs()) or any(terms and terms <= said for terms in map(_terms, names))

    def _evidence(self, filters: Filters) -> dict[int, tuple[float, str]]:
        """Each passage that may be about the prompt, with the sentence that fits it best and the evidence of that."""
        strongest: dict[int, tuple[float, str]] = {}
        scope = self._vault.index.notes.view(self._snapshot, filters).scope
        measured, languages = self._comparison.noise, self._snapshot.languages(scope.origins)
        for asked, vector in self._comparison.sentences:
            query = asked.in_languages(languages)
            depth = CANDIDATES if measured > -1 else NEIGHBOURS
            found = gather(self._snapshot, Ask(query, scope, depth), self._comparison.space, vector)
            noise = measured if measured > -1 else median([neighbour.score for neighbour in found.near] or [1.0])
            terms = terms_having(self._snapshot, query.words, query.words.terms, list(found.notes))
            total = sum(found.idf.values()) or 1.0
            for passage in found.notes:
                above = max(0.0, found.cosines.get(passage, noise) - noise) / (1 - noise) if noise < 1 else 0.0
                shared = sum(found.idf.get(term, 0.0) for term in terms.get(passage, ())) / total
                strongest[passage] = max(strongest.get(passage, NO_EVIDENCE), (above + shared, asked.text))
        return strongest


@cache
def _verbs() -> set[Term]:
    return {term for verb in VERBS for term in _terms(verb)}


def _terms(text: str) -> set[Term]:
    return {*parse(text.translate(QUERY_SIGNS), operators=False).words.terms}


def _sentences(prompt: str) -> list[str]:
    """Each is compared by itself: a question between a greeting and a thank-you is still that question.

    Of a long prompt only the beginning and the end, where people say what they want.
    """
    edge = MAX_SENTENCES * MAX_SENTENCE_CHARS
    if len(prompt) > 2 * edge:
        prompt = f"{prompt[:edge]}\n{prompt[-edge:]}"
    parts = [part.strip()[:MAX_SENTENCE_CHARS] for part in SENTENCE_END.split(prompt) if part and part.strip()]
    half = MAX_SENTENCES // 2
    return list(dict.fromkeys(parts if len(parts) <= MAX_SENTENCES else parts[:half] + parts[-half:]))


def _open(vault: Vault, ref: str) -> Note | None:
    """The note as its file is now; None if it is gone or no longer valid."""
    try:
        note = open_note(vault, ref)
    except KnowledgeError:
        return None
    return None if outdated([note], vault.working_index())[0] else note


def _is_own_and_unmarked(note: Note) -> bool:
    return note.provenance.casefold() in OWN_WORDS and note.metadata.get("loading") not in MARKS


def _is_gone(passage: StoredPassage, validities: Mapping[int, Validity], now: float) -> bool:
    validity = validities.get(passage.note)
    return validity is not None and validity.problem(now) is not None


def _importance(note: Note) -> float:
    value = note.metadata.get("importance")
    return float(value) if isinstance(value, int | float) else 0.5


def _shown(ref: str, note: Note) -> tuple[str, str, str, str]:
    """Ref, title, provenance and text of a note, or of the lines that a ref names."""
    try:
        shown = excerpt(ref, note)
    except KnowledgeError:
        shown = Excerpt(note.body.split("\n"), note.body_line)  # shorter than when it was indexed
    return marked_ref(ref, shown), note.title, note.provenance, "\n".join(shown.lines).strip()
