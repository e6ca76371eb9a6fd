"""Which memories are on one subject, and the article that they make. No model is asked.

A subject has a name: the title or an alias of an entity, a tag that most of its memories also say, or a word that is
only ever written with a capital. A memory is on it if it has that tag, or if the name stands before the verb of its
first sentence and no other name does. A memory that only mentions a name is not on it. Look-alikes decide this rule:
it leaves out rather than mixes.
"""

from __future__ import annotations

import calendar
import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain, pairwise

from co_cli.ground.values import moment_text
from co_cli.index.tokens import is_stop_word
from co_cli.notes.language import guess_language
from co_cli.notes.new_note import guess_category
from co_cli.notes.subjects import (
    ABBREVIATIONS,
    ARTICLES,
    ENDS_SENTENCE,
    QUOTES,
    TOKEN,
    first_sentence,
    stem_of,
    subject_of,
    title_from,
    with_subject,
)
from co_cli.upkeep.reviewed_note import ReviewedNote

LEAST, MOST = 4, 12
"""Memories of an article. Fewer need none, and more are a whole project. In 24 hand-written vaults of 20 to 43 memories
that the rule was chosen on, it proposes 18 articles, and in 120 others of about 20, 20. None mixes two things."""
LONGEST = 2_000
"""Characters. A longer memory is an article by itself."""
SHORTEST_NAME = 3
DATES = frozenset(name.casefold() for name in (*calendar.day_name, *calendar.month_name))
"""Written with a capital, but the name of no subject."""
JOINED = frozenset("and or between except vs".split())
"""Words of what is about two things."""
HEADINGS = {"decision": "Decisions", "fact": "Facts", "preference": "Preferences", "procedure": "Procedures"}
"""By category, in the order of the article. All other memories are facts."""

Stems = tuple[str, ...]


def subjects(notes: Sequence[ReviewedNote]) -> Iterator[tuple[str, list[ReviewedNote]]]:
    """The subjects that have enough memories for an article, the largest first, with these. No memory has two."""
    memories = [note for note in notes if _may_be_combined(note)]
    names = _Names(notes, memories)
    on: defaultdict[str, list[ReviewedNote]] = defaultdict(list)
    for note in memories:
        projects, named = names.projects_of(note), names.named_first(note)
        for name in {*(projects if len(projects) == 1 else ()), *(named if len(named) == 1 else ())}:
            on[name].append(note)
    taken: set[str] = set()
    for name in sorted(on, key=lambda name: (-len(on[name]), name)):
        group = [note for note in on[name] if note.ref not in taken and names.may_be_on(name, note)]
        if LEAST <= len(group) <= MOST and not names.mixed(name, group):
            taken |= {note.ref for note in group}
            yield names.shown(name), group


def draft(notes: Sequence[ReviewedNote], texts: Sequence[str]) -> str:
    """Their texts, word for word, under headings by kind, each with its source."""
    parts: defaultdict[str, list[str]] = defaultdict(list)
    for note, text in zip(notes, texts, strict=True):
        category = note.category or guess_category(f"{note.title}\n{text}")
        titled = note.frontmatter.get("title") or with_subject(note.title, text) != text  # a file's name says little
        own_title = f"### {note.title}\n\n" if titled and note.title != title_from(text) else ""
        source = f"({note.ref}, {moment_text(note.created)[:10]})"
        parts[HEADINGS.get(category or "", HEADINGS["fact"])].append(f"{own_title}{text}\n\n{source}")
    shown = [f"## {heading}\n\n" + "\n\n".join(parts[heading]) for heading in HEADINGS.values() if heading in parts]
    return "\n\n".join(shown)


def _may_be_combined(note: ReviewedNote) -> bool:
    """Whether nothing that the file says about a memory would be lost, and its text is the user's."""
    kept = ("valid_from", "valid_until", "conflict_with", "limit")
    return (
        note.source == "memory"
        and 0 < len(note.body.strip()) <= LONGEST
        and not note.pinned
        and not any(note.frontmatter.get(field) for field in kept)
        and note.frontmatter.get("provenance") != "web"
    )


class _Names:
    """The names of subjects that the notes of a vault have."""

    def __init__(self, notes: Sequence[ReviewedNote], memories: Sequence[ReviewedNote]) -> None:
        self._subjects: dict[Stems, str] = {}
        """The subject that a name means; empty if it may be one of several."""
        self._projects: dict[str, str] = {}
        """The subject that a tag means."""
        self._shown: dict[str, str] = {}
        said = {note.ref: TOKEN.findall(f"{note.title}. {note.body}") for note in memories}
        self._spellings = _spellings(said.values())
        self._entities = {note.title for note in notes if note.source == "entity"}
        self._add_entities([note for note in notes if note.source == "entity"])
        self._add_tags(memories, {ref: {*_stems(words)} for ref, words in said.items()})
        for note in memories:
            if guess_language(note.body) in ("en", ""):  # in German, every noun has a capital
                self._add_capitals(said[note.ref])
        self._longest = max(map(len, self._subjects), default=0)

    def projects_of(self, note: ReviewedNote) -> set[str]:
        """The subjects that its tags mean."""
        return {self._projects[tag] for tag in note.tags if tag in self._projects}

    def named_first(self, note: ReviewedNote) -> set[str]:
        """The subjects that stand before the verb; where only the speaker does, those of the whole first sentence."""
        text = with_subject(note.title, note.body)
        words = TOKEN.findall(subject_of(text)) or first_sentence(text)
        return set() if JOINED & {*words} else self._named(words)

    def may_be_on(self, name: str, note: ReviewedNote) -> bool:
        """Whether it is of no other project than the one of this name."""
        projects = {*self._projects.values()}
        if name not in projects:
            return True
        tagged = self.projects_of(note)
        return (tagged or self._named(TOKEN.findall(note.body)) & projects) <= {name}

    def mixed(self, name: str, group: Sequence[ReviewedNote]) -> bool:
        """Whether memories of two projects have the name. Of one that is no entity, all tags must agree."""
        tags = [set(note.tags) if name not in self._entities else self.projects_of(note) for note in group]
        tagged = [found for found in tags if found]
        return name not in self._projects.values() and bool(tagged) and not tagged[0].intersection(*tagged)

    def shown(self, name: str) -> str:
        return name if name in self._entities else self._shown.get(name, name)

    def _add_entities(self, entities: Sequence[ReviewedNote]) -> None:
        for entity in entities:
            for name in (entity.title, *entity.aliases, entity.ref.partition(":")[2]):
                self._claim(_stems(TOKEN.findall(name)), entity.title)
        for entity in entities:
            first, *rest = TOKEN.findall(entity.title) or [""]
            if rest and first.casefold() not in ABBREVIATIONS and not self._is_common(first):
                self._claim(_stems([first]), entity.title)

    def _add_tags(self, memories: Sequence[ReviewedNote], said: dict[str, set[str]]) -> None:
        holders: defaultdict[str, list[ReviewedNote]] = defaultdict(list)
        for note in memories:
            for tag in note.tags:
                holders[tag].append(note)
        for tag, notes in holders.items():
            words = re.split(r"[-_/ ]", tag)
            parts = _stems(words)
            known = [self._subjects.get(name) for name in (parts, *((part,) for part in parts))]
            # "harbours" are many subjects, "leeds" is one
            single = [part for part in parts if part in words and not is_stop_word(part)]
            telling = [part for part in parts if part in single or not self._is_common(part)]
            times = {part: sum(part in said[note.ref] for note in notes) for part in telling}
            if any(known) or any(2 * count > len(notes) for count in times.values()):
                name = self._projects[tag] = next(filter(None, known), tag)
                self._claim(parts, name)
                written = self._spellings.get(max(times, key=lambda part: times[part], default=""))
                self._shown[name] = written if written and len(parts) == 1 else re.sub(r"[-_]", " ", tag)

    def _add_capitals(self, words: Sequence[str]) -> None:
        for before, word in pairwise(words):
            inside = before not in (*ENDS_SENTENCE, ":") and word[:1].isupper()
            if inside and word.casefold() not in DATES and not self._is_common(word):
                name = _stems([word])
                self._subjects.setdefault(name, "".join(name))
                self._shown.setdefault("".join(name), self._spellings["".join(name)])

    def _is_common(self, word: str) -> bool:
        """Whether it is written in small letters anywhere."""
        return len(word) < SHORTEST_NAME or is_stop_word(word.casefold()) or self._spellings.get(stem_of(word)) == ""

    def _claim(self, name: Stems, subject: str) -> None:
        if name and len("".join(name)) >= SHORTEST_NAME:
            self._subjects[name] = subject if self._subjects.get(name, subject) == subject else ""

    def _named(self, words: Sequence[str]) -> set[str]:
        """The subjects that a text names, by the longest names."""
        stems, found, place = _stems(words), set[str](), 0
        while place < len(stems):
            sizes = range(min(self._longest, len(stems) - place), 0, -1)
            size = next((size for size in sizes if stems[place : place + size] in self._subjects), 0)
            found.add(self._subjects.get(stems[place : place + size], ""))
            place += size or 1
        return found - {""}


def _stems(words: Iterable[str]) -> Stems:
    stems = (stem_of(word) for word in words if word.casefold() not in ARTICLES)
    return tuple(stem for stem in stems if stem and stem[0].isalnum())


def _spellings(texts: Iterable[Sequence[str]]) -> dict[str, str]:
    """How each word is written, by its stem; empty if it is ever written in small letters."""
    spellings: dict[str, str] = {}
    for word, _ in Counter(chain.from_iterable(texts)).most_common():
        stem = stem_of(word)
        known = spellings.setdefault(stem, re.sub(r"['\u2019]s$", "", word.strip(QUOTES)))
        spellings[stem] = "" if word[:1].islower() else known
    return spellings
