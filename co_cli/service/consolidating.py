"""Several memories into one: which belong together, and whether a rewrite of them may be trusted.

Who rewrites is somebody else's business. What comes back is measured against what went in: a text that lost more than a
quarter of the facts, or has a number or a name that no source has, is refused. Accepting one writes a new note that
supersedes its sources; the sources stay as they are.
"""

from __future__ import annotations

import difflib
import re
import time
from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

from co_cli.errors import KnowledgeError, NoteConflictError
from co_cli.index.match import is_stop_word
from co_cli.index.overview import every_note
from co_cli.knowledge_base import KnowledgeBase
from co_cli.notes.claims import NUMBER_WORDS, WORD, stem_of_word
from co_cli.notes.note import Note
from co_cli.service.holding import outdated
from co_cli.service.pairing import groups, near_pairs, related_pairs
from co_cli.values import Saved

LEAST_KEPT = 0.75
MOST_SOURCES = 6
LONGEST_TOGETHER = 12_000
"""Characters of the sources of one proposal: a model is to read all of them, and a person the diff."""
NEAR = 0.75
SENTENCE_START = re.compile(r"(?:^|[.!?:\u3002]\s+|\n\s*(?:[-*>#]+\s*)?|[\"'(\u201c])\Z")
TRUST = ("user", "agent")


class Rewrite(NamedTuple):
    """What became of the sources; an empty text says that they are better left apart."""

    title: str
    content: str


class Proposal(NamedTuple):
    """A new note in place of several, not written yet."""

    refs: tuple[str, ...]
    title: str
    content: str
    tags: tuple[str, ...]
    provenance: str
    diff: str
    kept: float
    refused: str | None
    """Why it cannot be accepted."""
    versions: tuple[str, ...] = ()
    """Of the sources, as they were read."""


Rewriter = Callable[[Sequence[Note]], Rewrite]


def candidates(kb: KnowledgeBase, now: float) -> list[list[Note]]:
    """Memories that belong together and hold now, a few at a time."""
    overviews, _ = every_note(kb.index.rows)
    memories = [one for one in overviews if one.source == "memory" and one.frontmatter.get("loading") != "always"]
    pairs = [*near_pairs(memories, NEAR), *related_pairs(memories)]
    found: list[list[Note]] = []
    for group in groups(pairs, MOST_SOURCES):
        notes = [note for place in group if (note := _held(kb, memories[place].ref, now))]
        if len(notes) > 1 and sum(len(note.body) for note in notes) <= LONGEST_TOGETHER:
            found.append(notes)
    return found


def propose(sources: Sequence[Note], rewriter: Rewriter) -> Proposal | None:
    """What a rewriter makes of these, checked; None if it says that they are better left apart."""
    title, content = rewriter(sources)
    content = content.strip()
    if not content:
        return None
    texts = [f"{note.title}\n{note.body}" for note in sources]
    kept, added = kept_share([note.body for note in sources], content), added_facts(texts, f"{title}\n{content}")
    refused = None
    if kept < LEAST_KEPT:
        refused = f"only {kept:.0%} of the facts are left, and {LEAST_KEPT:.0%} must be"
    elif added:
        refused = f"no source says {', '.join(sorted(added)[:5])}"
    return Proposal(
        tuple(note.ref for note in sources),
        " ".join(title.split()) or sources[-1].title,
        content,
        tuple(dict.fromkeys(tag for note in sources for tag in note.tags)),
        _provenance(sources),
        _diff(sources, content),
        kept,
        refused,
        tuple(note.version for note in sources),
    )


def accept(kb: KnowledgeBase, proposal: Proposal) -> Saved:
    """Write the new note. Its sources stay, and drop out of recall because it supersedes them."""
    if proposal.refused:
        raise KnowledgeError(f"this was refused: {proposal.refused}")
    for ref, version in zip(proposal.refs, proposal.versions, strict=False):
        if kb.note(ref).version != version:
            raise NoteConflictError(f"{ref} was changed since this was proposed: nothing was written; propose it again")
    return kb.remember(
        proposal.content,
        proposal.title,
        list(proposal.tags),
        provenance=proposal.provenance,
        supersedes=list(proposal.refs),
        on_related="keep",
    )


# -- what a text states -----------------------------------------------------------------------------------------------


def kept_share(old: Sequence[str], new: str) -> float:
    """How much of what the old texts state the new one states, 0 to 1.

    Facts are numbers, names, dates, and the content words of sentences, each once, without their endings. Numbers,
    names and dates also count by themselves, and the smaller share is the answer: a text can keep most of its words
    and lose all of its numbers.
    """
    stated = set[str]().union(*(facts(text) for text in old))
    hard = set[str]().union(*(hard_facts(text) for text in old))
    here = facts(new)
    return min(_share(stated, here), _share(hard, here))


def added_facts(old: Sequence[str], new: str) -> set[str]:
    """Numbers and names of the new text that no old text has."""
    known = set[str]().union(*(facts(text) for text in old))
    return hard_facts(new) - known


def facts(text: str) -> set[str]:
    """The content words of a text, numbers and names among them."""
    return {stem_of_word(word) for word in WORD.findall(text) if not is_stop_word(word)}


def hard_facts(text: str) -> set[str]:
    """Numbers, dates, and words with a capital where no sentence begins."""
    found: set[str] = set()
    for match in WORD.finditer(text):
        word = match[0]
        number = any(letter.isdigit() for letter in word) or (word.lower() in NUMBER_WORDS and word.lower() != "one")
        inner = not SENTENCE_START.search(text[max(0, match.start() - 12) : match.start()])
        named = word[:1].isupper() and (inner or any(letter.isupper() for letter in word[1:]))
        if number or (named and not is_stop_word(word)):
            found.add(stem_of_word(word))
    return found


def _share(wanted: set[str], here: set[str]) -> float:
    return len(wanted & here) / len(wanted) if wanted else 1.0


def _provenance(sources: Sequence[Note]) -> str:
    """A model wrote it; what came from elsewhere stays from elsewhere."""
    return next((note.provenance for note in sources if note.provenance.casefold() not in TRUST), "agent")


def _diff(sources: Sequence[Note], content: str) -> str:
    before = [line for note in sources for line in (f"# {note.ref}", *note.body.strip().splitlines())]
    lines = difflib.unified_diff(before, content.splitlines(), "sources", "proposal", lineterm="", n=99)
    return "\n".join(lines)


def _held(kb: KnowledgeBase, ref: str, now: float) -> Note | None:
    try:
        note = kb.note(ref)
    except KnowledgeError:
        return None  # gone since it was indexed
    return None if note.problem or outdated(note, kb.index, now) else note


def proposals(kb: KnowledgeBase, rewriter: Rewriter, limit: int) -> Iterator[Proposal]:
    """One after the other, as the model answers."""
    made = 0
    for sources in candidates(kb, time.time()):
        if made == limit:
            return
        proposal = propose(sources, rewriter)
        if proposal is not None:
            made += 1
            yield proposal
