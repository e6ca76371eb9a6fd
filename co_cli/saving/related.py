"""What a new note repeats, resembles or shares its name with. The index proposes, and the files decide."""

from __future__ import annotations

import re

from co_cli.embedding.space import LANGUAGES
from co_cli.embedding.static import SPACE as STATIC
from co_cli.ground.errors import KnowledgeError
from co_cli.ground.hits import Filters
from co_cli.ground.saves import Related
from co_cli.index.names import fold_name
from co_cli.knowledge_index import KnowledgeIndex
from co_cli.notes.contradictions import contradicts
from co_cli.notes.encoding import NotTextError
from co_cli.notes.language import guess_language
from co_cli.notes.new_note import NewNote
from co_cli.notes.note import Note, read_note
from co_cli.notes.similarity import fingerprint, likeness, without_articles, words_of
from co_cli.notes.store import NoteStore
from co_cli.notes.subjects import same_subject, with_subject
from co_cli.retrieval.pipeline import find_similar
from co_cli.retrieval.request import SearchRequest
from co_cli.retrieval.results import best_of_each_note
from co_cli.vault.lookup import outdated

CANDIDATES = 10
MOST_RELATED = 3
CLOSE = 0.75
"""Minimum cosine of the static model for two memories to be close in meaning. Chosen with the share of words on 146
labelled pairs of short memories, and as good for notes in other languages with `languages`: see benchmarks/NOTES.md."""
OPERATORS = re.compile(r'["#:]|(?<!\S)-+')
"""What a search would read as a phrase, a filter or an exclusion."""


def find_twin(store: NoteStore, index: KnowledgeIndex, new: NewNote) -> tuple[Note, bytes] | None:
    """The note that says the same word for word, as its file says it now.

    Under another title it is another note: "Likes tea." of Mara is not that of Bex.
    """
    wanted = fingerprint(new.content)
    for path in index.notes.exact_twins(new.source, wanted):
        found = _open(store, path)
        if found is None or fingerprint(found[0].body) != wanted or found[0].ref in new.supersedes:
            continue
        if not new.own_title or words_of(new.title) == words_of(found[0].title):
            return found
    return None


def related_notes(store: NoteStore, index: KnowledgeIndex, new: NewNote, threshold: float) -> list[Related]:
    """Similar memories, or entities of the same name. `threshold` is the share of words that makes two similar."""
    if new.source == "memory":
        return _similar_memories(store, index, new, threshold)[:MOST_RELATED]
    return _namesakes(index, new)[:MOST_RELATED] if new.source == "entity" else []


def _similar_memories(store: NoteStore, index: KnowledgeIndex, new: NewNote, threshold: float) -> list[Related]:
    """Memories that are valid, about the same subject, and share most words with a new note or are close in meaning;
    or give the same thing another value."""
    text = f"{new.title}\n{new.content}" if new.own_title else new.content
    filters = Filters(sources=("memory",), roots=(index.root,))
    words, found = without_articles(words_of(new.content)), list[tuple[Note, str]]()
    said = with_subject(new.title, new.content)
    with index.engine.reading():
        is_known = STATIC.knows(guess_language(text))
        active = index.notes.state().active
        measured = is_known or (active is not None and active.space.provider == LANGUAGES.provider)
        request = SearchRequest(OPERATORS.sub(" ", text), CANDIDATES, filters, meaning=measured, operators=False)
        trace = find_similar(index.notes.on_floor() if is_known else index.notes, request)
        best = best_of_each_note(trace.ranking.ranked)[:CANDIDATES]
        for passage in (trace.texts.passages[candidate.passage] for candidate in best):
            alike = likeness(words, without_articles(words_of(passage.body)), threshold)
            other_value = contradicts(with_subject(passage.title, passage.body), said)
            if not alike and not other_value and trace.candidates.cosines.get(passage.id, 0.0) < CLOSE:
                continue
            opened = _open(store, passage.path)
            if opened is None or opened[0].ref in new.supersedes:
                continue
            if not other_value and not same_subject(with_subject(opened[0].title, opened[0].body), said):
                continue
            why = f"{alike:.0%} the same words" if alike else "another value" if other_value else "close in meaning"
            found.append((opened[0], why))
        ended = outdated([note for note, _ in found], index)
    return [Related(note.ref, note.title, why) for (note, why), end in zip(found, ended, strict=True) if end is None]


def _namesakes(index: KnowledgeIndex, new: NewNote) -> list[Related]:
    """Entities that a new one shares its title with."""
    same = [note for note in index.notes.find("name", fold_name(new.title)) if note.source == "entity"]
    return [Related(note.ref, note.title, "has the same name") for note in same if note.ref not in new.supersedes]


def _open(store: NoteStore, path: str) -> tuple[Note, bytes] | None:
    """A note and its bytes; None if it cannot be read: it may be gone since it was indexed, or at this moment."""
    try:
        data = store.read(path)
        return read_note(path, data), data
    except (KnowledgeError, NotTextError):
        return None
