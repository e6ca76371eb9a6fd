"""Facets: what follows from a conversation, and whether its lines really say so. Pure.

Only people state facts, and only the user states what the user wants. Text of tools, quoted text and code support
nothing, whatever a model makes of them.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import Literal, NamedTuple

from co_cli.index.tokens import is_stop_word, tokens
from co_cli.notes.dates import read_moment
from co_cli.notes.similarity import words_of
from co_cli.notes.transcripts import USER, SpokenTurn, is_assistant, is_tool, own_lines

FacetKind = Literal["preference", "fact", "decision", "correction", "procedure", "person", "feedback"]
Feeling = Literal["praise", "correction", "frustration"]
Relation = Literal["new", "same", "changed", "contradicts"]
WISHES = ("preference", "correction", "procedure", "feedback")
"""Kinds that only the user's own words can state."""
LEAST_SUPPORT = 0.5
"""The share of a facet's words that its lines must have. Chosen by hand: a summary keeps most nouns, and an order that
somebody planted shares hardly a word with the user's lines."""
LONGEST_TEXT, MOST_LINES = 600, 60
ABOUT_THE_USER = frozenset(token for word in ("user", "prefers", "wants", "likes", "said") for token in tokens(word))
"""Words with which models retell what somebody said."""
DENIALS = frozenset("no not never nor none nothing without cannot hate hates dislike dislikes avoid avoids".split())
"""Words that turn a sentence into its opposite, as `don't` does: a retelling has one if the original has one."""


class Facet(NamedTuple):
    """One thing that follows from a conversation. Lines are those of its file."""

    kind: FacetKind
    text: str
    first: int
    last: int
    valid_from: str | None = None
    valid_until: str | None = None
    confidence: float = 1.0
    feeling: Feeling | None = None
    """Of a facet of the kind `feedback`."""
    name: str | None = None
    """Of a facet of the kind `person`: who it is."""
    spoken: bool = True
    """Whether people say all of it in their own words. What an agent adds or repeats is proposed, but never saved."""


class FacetBatch(NamedTuple):
    """Turns of a conversation that are read at once, with some that were said before."""

    ref: str
    title: str
    user: str
    agent: str
    """What the model is called, if it is not `Assistant`."""
    before: Sequence[SpokenTurn]
    turns: Sequence[SpokenTurn]

    def is_answer(self, turn: SpokenTurn) -> bool:
        return turn.speaker == self.agent or is_assistant(turn.speaker)

    def is_person(self, turn: SpokenTurn) -> bool:
        return not self.is_answer(turn) and not is_tool(turn.speaker)


def make_batch(ref: str, title: str, metadata: dict[str, object], turns: Sequence[SpokenTurn], new: int) -> FacetBatch:
    """`new` of these turns are read for facets; the others came before."""
    user, agent = (str(metadata.get(key) or "") for key in ("user", "agent"))
    place = len(turns) - new
    return FacetBatch(ref, title, user or USER, agent, turns[:place], turns[place:])


def checked(facet: Facet, batch: FacetBatch) -> Facet | str:
    """The facet as it may be kept, or why it may not."""
    text = " ".join(facet.text.split())
    if not text or len(text) > LONGEST_TEXT:
        return f"it has no text, or more than {LONGEST_TEXT} characters"
    if not batch.turns[0].line <= facet.first <= facet.last <= batch.turns[-1].last:
        return "its lines are not among those that were read"
    if facet.last - facet.first > MOST_LINES:
        return f"it names more than {MOST_LINES} lines"
    turns = [turn for turn in batch.turns if turn.line <= facet.last and turn.last >= facet.first]
    people = [turn for turn in turns if batch.is_person(turn)]
    users = [turn for turn in people if turn.speaker == batch.user]
    kind = facet.kind
    if kind in WISHES and not users and people and kind != "feedback":
        kind = "fact"  # what somebody else wants is a fact about them
    support = users if kind in WISHES else [turn for turn in turns if not is_tool(turn.speaker)]
    if not people or not support:
        return "no person says so in its lines"
    if _support(text, support, facet) < LEAST_SUPPORT:
        return "its lines do not say so"
    speakers = [turn for turn in support if batch.is_person(turn)]
    same_sense = _denies(text) == _denies(_said(speakers, facet))
    spoken = same_sense and _support(text, speakers, facet) == 1
    name = " ".join((facet.name or "").split())
    words = set(words_of(name)) - {"the", "user", "i", "me", *words_of(batch.user)}  # the user has no entity
    named = kind == "person" and words and words <= set(words_of(text))
    dates = {
        name: date if date and read_moment(date) is not None else None
        for name, date in (("valid_from", facet.valid_from), ("valid_until", facet.valid_until))
    }
    return facet._replace(kind=kind, text=text, spoken=spoken, name=name if named else None, **dates)


def facet_id(conversation: str, facet: Facet) -> str:
    """The same for the same thing: the conversation, the lines, the kind and the words."""
    parts = (conversation, f"{facet.first}-{facet.last}", facet.kind, folded(facet.text))
    return hashlib.blake2b("\n".join(parts).encode("utf-8", "replace"), digest_size=12).hexdigest()


def folded(text: str) -> str:
    return " ".join(words_of(text))


def _support(text: str, turns: Sequence[SpokenTurn], facet: Facet) -> float:
    """The share of a text's words that people said in these lines."""
    said = set(tokens(_said(turns, facet)))
    words = (word.removesuffix("'s") for word in words_of(text) if not is_stop_word(word))
    wanted = {token for word in words for token in tokens(word)}
    wanted -= {token for turn in turns for token in tokens(turn.speaker)} | ABOUT_THE_USER
    return len(wanted & said) / len(wanted) if wanted else float(bool(said))


def _said(turns: Sequence[SpokenTurn], facet: Facet) -> str:
    """What these turns say in the lines of a facet, without quotes and code."""
    said: list[str] = []
    for turn in turns:
        lines = turn.text.split("\n")
        start = turn.last - len(lines) + 1
        said += [lines[number - start] for number in own_lines(turn) if facet.first <= number <= facet.last]
    return "\n".join(said)


def _denies(text: str) -> bool:
    return any(word in DENIALS or word.endswith("n't") for word in words_of(text))
