"""What mem0 gives out: the answer of `get_all` (`{"results": [...]}`), a list, JSON Lines, or the zip of OpenMemory.

OpenMemory packs the same memories twice: `memories.jsonl.gz` names the categories, so `memories.json` beside it is
left.
"""

from __future__ import annotations

from collections.abc import Iterator

from co_cli.exchange.archive import Export, Unreadable
from co_cli.exchange.items import Entry, Trouble
from co_cli.exchange.json_values import numbered_values
from co_cli.exchange.memories import memory_entries

ENDINGS = (".json", ".jsonl", ".ndjson", ".jsonl.gz", ".json.gz")


def read_mem0(export: Export) -> Iterator[Entry]:
    found = [member for member in export.members if export.single or member.name.lower().endswith(ENDINGS)]
    if any(member.base == "memories.jsonl.gz" for member in found):
        found = [member for member in found if member.base != "memories.json"]
    if not found:
        yield Trouble(export.path, "no .json or .jsonl in it: is this what mem0 gave out?")
    for member in found:
        place = export.place(member)
        try:
            for number, value in numbered_values(export, member):
                if isinstance(value, Unreadable):
                    yield Trouble(f"{place}, line {number}", str(value))
                else:
                    yield from memory_entries(value, f"{place}, item {number}")
        except Unreadable as problem:
            yield Trouble(place, str(problem))
