"""search_knowledge, and the search and rendering that recall_memory and recall_article share with it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Annotated, Any, Literal, Unpack, cast

from pydantic import Field
from typing_extensions import TypedDict

from co_cli.errors import KnowledgeError
from co_cli.notes.note import excerpt
from co_cli.tools.budget import estimate_tokens, within
from co_cli.tools.fencing import fence_note, one_line
from co_cli.tools.tool import ToolContext, ToolResult, tool
from co_cli.values import SOURCES, Hit, SearchResult, worth_showing

SHORT = 150
"""Tokens up to which recall shows a whole note; of a longer one it shows the part that matched."""
MIN_TOKENS, PART_TOKENS = 40, 20
"""Worth showing of a note, else only its ref is given; and what a fence needs to say that it shows a part."""
WEAK = 0.4
"""Share of the best score below which recall drops a hit. Measured: 24 % fewer tokens, no answer lost."""
DOCUMENTS = tuple(source for source in SOURCES if source not in ("memory", "skill"))
"""Sources of longer texts. Skills have tools of their own."""
if TYPE_CHECKING:
    SearchedSource = str
else:
    SearchedSource = Literal["memory", *DOCUMENTS]

Query = Annotated[str, Field(description="A question, or words you expect in the note.")]
Limit = Annotated[int, Field(ge=1, le=50, description="Maximum number of results.")]


class Narrowing(TypedDict, total=False):
    """Optional arguments of every search, named as `KnowledgeBase.search` names them."""

    tags: Annotated[list[str], Field(description="Only notes with all of these tags.")]
    category: Annotated[str, Field(description="Only this category, such as preference or decision.")]
    since: Annotated[str, Field(description="Only notes since this day: 2026-03-01 or 7d.")]
    until: Annotated[str, Field(description="Only notes up to this day.")]
    min_score: Annotated[float, Field(description="Drop hits below this score.")]
    profile: Annotated[Literal["default", "agent", "seven", "rrf", "fresh"], Field(description="How hits are ranked.")]
    weights: Annotated[dict[str, float], Field(description='Weights of signals, such as {"recency": 0.2}.')]


@dataclass(frozen=True, slots=True)
class FoundNote:
    """One hit, as a program reads it."""

    ref: str
    title: str
    source: str
    score: float
    signals: dict[str, float]
    text: str
    whole: Annotated[bool, Field(description="Whether `text` is all of it; if not, read_note opens the rest.")]
    tokens: Annotated[int, Field(description="Estimated tokens of the whole text.")]
    tags: list[str]
    created: str
    provenance: str


@dataclass(frozen=True, slots=True)
class Found:
    """The answer of every search tool."""

    state: Literal["found", "absent", "inconclusive"]
    searched: dict[str, int | str | None]
    degraded: list[str]
    confidence: Annotated[float | None, Field(description="How likely the vault has an answer, 0 to 1.")]
    hits: list[FoundNote]
    cut: Annotated[list[str], Field(description="Refs left out to keep the answer short.")]
    without: Annotated[list[str], Field(description="Filters that matched nothing and were dropped.")]
    meta: Annotated[dict[str, Any], Field(description="How the search was done.")]


@tool("Search everything", read_only=True)
def search_knowledge(
    ctx: ToolContext,
    query: Query,
    sources: Annotated[list[SearchedSource] | None, Field(description="Only these kinds of notes.")] = None,
    detail: Annotated[Literal["scan", "full"], Field(description="How much of each hit.")] = "scan",
    limit: Limit = 8,
    **narrowing: Unpack[Narrowing],
) -> ToolResult[Found]:
    """Search memories, articles and added folders together. detail=scan gives title, score, snippet and token cost:
    scan first, then open the one or two notes that matter with read_note. detail=full gives whole passages at once, for
    a narrow question with a small limit."""
    found, dropped = search(ctx, query, limit, sources, narrowing)
    return render(ctx, found, dropped, ctx.budget if detail == "full" else 0)


def recall(ctx: ToolContext, query: str, limit: int, sources: Sequence[str], narrowing: Narrowing) -> ToolResult[Found]:
    """Search some sources, drop weak hits, and show short notes whole."""
    found, dropped = search(ctx, query, limit, sources, narrowing)
    weak = WEAK * max((hit.score for hit in found.hits), default=0.0)
    found = found._replace(hits=[hit for hit in found.hits if hit.score >= weak > 0] or found.hits)
    return render(ctx, found, dropped, SHORT)


def search(
    ctx: ToolContext, query: str, limit: int, sources: Sequence[str] | None, narrowing: Narrowing
) -> tuple[SearchResult, dict[str, Any]]:
    """The result, and the filters that were dropped because nothing matched them.

    A model guesses tags and categories. That no note has them does not mean that nothing is known.
    """
    found = ctx.kb.search(query, limit=limit, sources=sources, **narrowing)
    guessed = {name: narrowing.get(name) for name in ("tags", "category") if narrowing.get(name)}
    if guessed and found.state == "absent":
        rest = {name: value for name, value in narrowing.items() if name not in guessed}
        return ctx.kb.search(query, limit=limit, sources=sources, **cast("Narrowing", rest)), guessed
    return found, {}


def render(ctx: ToolContext, found: SearchResult, dropped: dict[str, Any], most: int) -> ToolResult[Found]:
    """Hits within the budget; notes of at most `most` tokens are shown whole, of others a snippet."""
    ctx.kb.track(found)
    degraded = [*ctx.degraded, *found.degraded]
    state = "inconclusive" if found.state != "found" and degraded else found.state
    shown = ((name, value if isinstance(value, str) else ", ".join(value)) for name, value in dropped.items())
    without = " and ".join(f"{name}={one_line(value)}" for name, value in shown)
    lines = [_headline(found, state, degraded, without)]
    hits: list[FoundNote] = []
    cut: list[str] = []
    left = ctx.budget
    for hit in worth_showing(found):
        if left < MIN_TOKENS:
            cut.append(hit.ref)
            continue
        note, fenced = _fit(_shown(ctx, hit, most), hit.missing, left)
        hits.append(note)
        lines.append(fenced)
        left -= estimate_tokens(fenced)
    if cut:
        lines.append(f"Found too, left out to keep this short: {', '.join(map(one_line, cut))}. read_note opens them.")
    searched = dict(found.searched._asdict())
    return ToolResult(
        "\n".join(lines), Found(state, searched, degraded, found.confidence, hits, cut, [*dropped], found.meta)
    )


def _shown(ctx: ToolContext, hit: Hit, most: int) -> FoundNote:
    text, provenance = hit.snippet, "unknown"
    try:
        note = ctx.kb.note(hit.ref)
        text, provenance = "\n".join(excerpt(hit.ref, note)).strip(), note.provenance
    except KnowledgeError:
        pass  # the file was removed, or its lines were, since it was indexed
    tokens = estimate_tokens(text)
    whole = tokens <= most or " ".join(text.split()) == hit.snippet.strip()
    shown = text if whole else hit.snippet
    found = (hit.ref, hit.title, hit.source, hit.score, dict(hit.signals))
    return FoundNote(*found, shown, whole, tokens, list(hit.tags), hit.created, provenance)


def _fit(note: FoundNote, missing: bool, room: int) -> tuple[FoundNote, str]:
    """The note and its fence. Its text is cut to fit the room, as long as a little of it is left."""
    fenced = _fenced(note, missing)
    for _ in range(2):  # escaping makes a text longer, so one cut may not be enough
        over = estimate_tokens(fenced) - room
        if over <= 0:
            break
        text, _ = within(note.text, max(estimate_tokens(note.text) - over - PART_TOKENS, MIN_TOKENS))
        note = replace(note, text=f"{text} …", whole=False)
        fenced = _fenced(note, missing)
    return note, fenced


def _fenced(note: FoundNote, missing: bool) -> str:
    return fence_note(
        note.ref,
        note.title,
        note.provenance,
        note.text,
        created=note.created[:10],
        tags=" ".join(note.tags),
        score=f"{note.score:.2f}",
        shown=None if note.whole else f"a part; read_note opens all of it, about {note.tokens} tokens",
        missing="its file is gone, or its drive is not mounted" if missing else None,
    )


def _headline(found: SearchResult, state: str, degraded: list[str], dropped: str) -> str:
    searched = found.searched
    fresh = f", index fresh as of {searched.fresh_as_of}" if searched.fresh_as_of else ""
    scope = f"{searched.notes} {'note' if searched.notes == 1 else 'notes'} searched{fresh}"
    problems = f" But: {one_line('; '.join(degraded))}." if degraded else ""
    if found.understood:  # a date in the query limits what was searched
        scope += f"; understood {one_line('; '.join(found.understood))}"
    match state:
        case "found":
            wider = f" None with {dropped}: this is what there is without." if dropped else ""
            return f"found: {len(found.hits)} of {scope}.{wider}{problems}"
        case "absent":
            nearest = " The nearest, which may have nothing to do with it:" if found.hits else ""
            wider = f", neither with {dropped} nor without" if dropped else ""
            return f"absent: nothing here clearly says that{wider}. All of {scope}.{nearest}"
        case _:
            return f"inconclusive: nothing clearly found, but not everything could be asked ({scope}).{problems}"
