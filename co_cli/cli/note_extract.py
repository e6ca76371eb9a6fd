"""`co note extract`: read conversations for memories, or take one back."""

from __future__ import annotations

import argparse
from collections.abc import Iterator

from co_cli.agent.facet_model import read_conversations
from co_cli.cli.opening import at_least_1, find_note, open_knowledge_base, print_result
from co_cli.cli.terminal import count_of
from co_cli.conversations.extraction import BUDGET, Extraction
from co_cli.saving.proposals import saved_as, source_of_facet, take_back


def add_extract(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--all", action="store_true", help="read every conversation, also those that were imported")
    parser.add_argument(
        "--tokens", type=at_least_1, default=BUDGET, metavar="N", help=f"maximum tokens to spend (default {BUDGET:,})"
    )
    parser.add_argument("--undo", metavar="REF", help="move a memory that was saved from a conversation to the trash")


def run_extract(options: argparse.Namespace) -> int:
    """
    Your model (setting `model`) reads the new turns of conversations that were
    kept here. With capture = save, what you clearly said is saved. Everything else
    is proposed, and `co note review` asks you about it.

    examples:
      co note extract
      co note extract --all --tokens 20000
      co note extract --undo memory:mara-likes-tea
    """
    with open_knowledge_base(options) as kb:
        if options.undo:
            note = find_note(kb, options.undo)
            take_back(kb.vault, saved_as(kb.vault, note).id)
            line = f"{note.ref} is in the trash; `co note review --only proposed` asks about it again"
            return print_result(options, {"taken_back": note.ref}, [line])
        found = read_conversations(kb, tokens=options.tokens, everything=options.all)
    code = 3 if found.unsaved or (found.problem and not found.batches) else 0
    return print_result(options, _as_object(found), _lines(found, options.all), code)


def _as_object(found: Extraction) -> dict[str, object]:
    rows = [
        {
            "kind": facet.kind,
            "text": facet.text,
            "source": source_of_facet(facet),
            "state": facet.state,
            "ref": facet.ref,
        }
        for facet in (*found.saved, *found.proposed, *found.noted)
    ]
    counts = {"saved": len(found.saved), "proposed": len(found.proposed), "noted": len(found.noted)}
    return {**found._asdict(), **counts, "facets": rows}


def _lines(found: Extraction, everything: bool) -> Iterator[str]:
    for facet in found.saved:
        yield f"saved {facet.ref}: {facet.text}"
    for text in found.unsaved:
        yield f"not saved yet: {text}"
    for facet in found.proposed:
        yield f"proposed ({facet.kind}): {facet.text}"
    if found.proposed:
        yield "`co note review --only proposed` asks you about them."
    for facet in found.noted:
        rated = "raised" if facet.detail["feeling"] == "praise" else "lowered"
        yield f"{rated} {', '.join(facet.detail['given']) or 'no note'}: {facet.text}"
    if not found.requests and not found.problem:
        yield "Nothing new to read" + ("." if everything else "; `--all` also reads conversations that were imported.")
        return
    if found.requests:
        counts = f"{found.known} known already, {found.refused} refused"
        yield f"{count_of(found.requests, 'request')}, {found.tokens:,} tokens; {counts}."
    if found.problem:
        yield f"stopped: {found.problem}"
