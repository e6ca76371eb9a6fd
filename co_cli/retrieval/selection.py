"""What must be there exactly into the passages that a search may see: the index proposes, the stored text decides."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import partial
from typing import NamedTuple

from co_cli.index.derivation import searched_fields, spoken_path
from co_cli.index.engine import ReadTransaction
from co_cli.index.stored import Scope, StoredNote, StoredPassage
from co_cli.index.word_query import WordQuery
from co_cli.retrieval.grammar import NARROWING, SCOPES, Node
from co_cli.retrieval.matching import Condition, NoteText, PassageText, TooSlowError, has_compared, not_compared
from co_cli.retrieval.query import filters_for, needles_in

AT_ONCE = 50
"""Notes whose text is read together."""


class Selection(NamedTuple):
    """What a search may see, and what could not be compared."""

    scope: Scope
    problem: str | None = None


def select(snapshot: ReadTransaction, scope: Scope, condition: Condition) -> Selection:
    """The passages of notes that meet a condition."""
    return _Selecting(snapshot, scope, condition).run()


class _Selecting:
    def __init__(self, snapshot: ReadTransaction, scope: Scope, condition: Condition) -> None:
        self.snapshot, self.scope, self.condition = snapshot, scope, condition
        self.languages = snapshot.languages(scope.origins)
        self.members: dict[Node, frozenset[int]] = {}
        """The notes that have each tag, path, file name or property of the condition."""

    def run(self) -> Selection:
        node, every = self.condition.node, list[StoredNote]()
        notes = self._proposed(node, True)
        refusing = notes is None
        if notes is None:
            notes = self._proposed(node, False)
        if notes is None:  # nothing that the index knows is asked for: compare every note, the newest first
            refusing, every = False, self.snapshot.list_notes(self.scope)
            notes = frozenset(note.id for note in every)
        condition = self.condition._replace(node=Node("not", nodes=(node,))) if refusing else self.condition
        order = [note.id for note in every] or sorted(notes, reverse=True)
        found: set[int] = set()
        compared = 0
        for turns in self._texts(order):
            try:
                for note in turns:
                    if condition.matches(note):
                        passages = [passage.id for passage in note.passages]
                        found.update(passages if refusing else condition.passages(note))
                compared += 1
            except TooSlowError:  # it counts as different
                pass
        scope = replace(self.scope, without=found) if refusing else replace(self.scope, only=found)
        return Selection(scope, not_compared(compared, len(order)) if compared < len(order) else None)

    def _texts(self, notes: Sequence[int]) -> Iterator[list[NoteText]]:
        """These notes with their text, until the query must end; of conversations, each turn."""
        deadline = self.condition.deadline
        for start in range(0, len(notes), AT_ONCE):
            ids = notes[start : start + AT_ONCE]
            known = {note.id: note for note in self.snapshot.find_notes(None, "id", ids)}
            texts: dict[int, list[StoredPassage]] = {note: [] for note in ids}
            for passage in self.snapshot.passages(notes=ids).values():
                texts[passage.note].append(passage)
            for number, passages in texts.items():
                if deadline and not deadline.left:
                    return
                alone = number in known and known[number].source == "conversation"
                turns = [[turn] for turn in passages] if alone else [passages] if passages else []
                yield [self._text(known[number], turn) for turn in turns if number in known]

    def _text(self, note: StoredNote, passages: Sequence[StoredPassage]) -> NoteText:
        about = (note.title, passages[0].aliases, *note.tags, spoken_path(note.path))
        own = [
            PassageText(passage.id, passage.heading, passage.body, passage.first_line, passage.last_line)
            for passage in passages
        ]
        about = (*about, *searched_fields(note.frontmatter))
        return NoteText(about, own, partial(self._has, note.id), passages[0].language)

    def _has(self, note: int, leaf: Node) -> bool:
        return note in self._having(leaf)

    def _proposed(self, node: Node, wanted: bool) -> frozenset[int] | None:
        """All notes that may have something, or may lack it; None if the index does not know."""
        if node.kind == "not":
            return self._proposed(node.nodes[0], not wanted)
        if node.kind in ("and", "or"):
            sets = [self._proposed(member, wanted) for member in node.nodes]
            known = [notes for notes in sets if notes is not None]
            if (node.kind == "and") == wanted:
                return known[0].intersection(*known[1:]) if known else None
            return frozenset[int]().union(*known) if len(known) == len(sets) else None
        if not wanted:
            return None
        if node.kind in SCOPES:
            return self._proposed(node.nodes[0], True) if node.nodes else None
        if node.kind in NARROWING or node.kind == "compared":
            return self._having(node)
        return self._with_words(node) if node.kind != "regex" else None

    def _having(self, leaf: Node) -> frozenset[int]:
        if leaf not in self.members:
            filters = filters_for(Node("key", name=leaf.name) if leaf.kind == "compared" else leaf)
            notes = self.snapshot.list_notes(replace(self.scope, filters=filters))
            self.members[leaf] = frozenset(
                note.id for note in notes if leaf.kind != "compared" or has_compared(note.frontmatter, leaf)
            )
        return self.members[leaf]

    def _with_words(self, leaf: Node) -> frozenset[int] | None:
        needles = needles_in(leaf, self.languages)
        if not needles:
            return None
        most = self.snapshot.term_counts(self.scope.origins, ())[0] + 1
        found = [self.snapshot.words(self.scope, WordQuery(phrases=(needle,)), most) for needle in needles]
        return frozenset(match.note for matches in found for match in matches)
