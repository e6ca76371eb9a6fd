"""Diversify: one hit a note, its best passage. A long article could fill the whole list."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from co_cli.retrieval.fuse import Scored


def one_a_note(scored: Sequence[Scored], limit: int, diversify: bool = True) -> list[Scored]:
    """The best passage of each note, in order; without `diversify` the best passages, of whichever notes."""
    if not diversify:
        return list(scored[:limit])
    seen: dict[int, Scored] = {}
    for candidate in scored:
        seen.setdefault(candidate.doc_id, candidate)
        if len(seen) == limit:
            break
    return list(seen.values())
