"""What each step of one search made of it, as plain values: what an explanation is written from."""

from __future__ import annotations

from co_cli.record import Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from co_cli.index.names import Called
    from co_cli.index.words import WordMatch
    from co_cli.retrieval.evidence import Evidence
    from co_cli.retrieval.fuse import Scored, Weights
    from co_cli.retrieval.profiles import Profile
    from co_cli.retrieval.question import Term


class Trace(Record):
    """One search, step by step. What a step did not get to is empty."""

    profile: Profile
    matches: list[WordMatch]
    """Proposed by words, best first."""
    cosines: dict[int, float]
    """Of every candidate with a vector."""
    near: list[int]
    """Proposed by meaning, nearest first."""
    trust: float
    """How far words were trusted, 0 to 1."""
    weights: Weights
    fused: list[Scored]
    terms: list[Term]
    evidence: dict[int, Evidence]
    ranked: list[Scored]
    telling: float = 0.0
    """How far evidence by words counted, 0 to 1."""
    called: tuple[Called, ...] = ()
    """Proposed by what they are called."""
    confidence: float | None = None
    """How sure it is that anything here has to do with the question."""
    lost: bool = False
    """Did a candidate lack the vector that it should have?"""
