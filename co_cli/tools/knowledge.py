"""search_knowledge, and the search and rendering that recall_memory and recall_article share with it."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Annotated, Any, Literal, NamedTuple, Unpack, cast

from pydantic import BeforeValidator, Field
from typing_extensions import TypedDict

from co_cli.ground.errors import KnowledgeError
from co_cli.ground.hits import NEAREST, Hit, SearchResult, older_remark, worth_showing
from co_cli.ground.values import SOURCES, fields_of, kind_named
from co_cli.index.filter_table import OPTIONS, FilterOptions, Form
from co_cli.notes.excerpts import excerpt, marked_ref
from co_cli.notes.language import guess_language
from co_cli.notes.note import Note
from co_cli.notes.refs import without_lines
from co_cli.retrieval.rerank import is_readable, is_readable_question
from co_cli.searching.as_of import note_then
from co_cli.searching.context import ASKS_ABOUT
from co_cli.searching.newer_notes import mark_older
from co_cli.searching.note_details import mentions_of
from co_cli.searching.requests import SearchOptions
from co_cli.tools.budget import estimate_tokens, within
from co_cli.tools.fencing import LONGEST_LABEL, fence_note, one_line
from co_cli.tools.tool import ToolCall, ToolResult, tool
from co_cli.vault.lookup import Lookup

SHORT = 150
"""Tokens up to which recall shows a whole note; of a longer one it shows the part that matched."""
MIN_TOKENS, PART_TOKENS, LABEL_TOKENS = 40, 20, 8
"""Worth showing of a note, else only its ref is given; left of an answer for refs that are cut; and what a fence needs
to say that it shows a part."""
SURE, UNSURE = 0.9, 0.3
"""Confidence that is called high, and below which it is called low. On the sample vault the first hit is right for 61
of 73 questions with a high one, 41 of 93 in between, and 5 of 50 with a low one."""
WHO_AM_I = re.compile(r"\bwho am i\b|\b(?:know|remember|noted?|tell me) (?:\w+ )?(?:about|of) me\b", re.IGNORECASE)
OF_THE_USER = re.compile(r"(?:^|[.!?;:]\s)\W*(?:(?:The |the |This |this )?[Uu]ser\b|I\b|[Mm]y\b)")
"""A sentence that begins with the user."""
CUT_TOKENS = 60
"""For the refs of hits that were left out."""
ABOUT = ("memory", "entity")
"""Kinds of notes about the user and what the user knows."""
DOCUMENTS = tuple(source for source in SOURCES if source not in (*ABOUT, "conversation", "skill"))
"""Sources of longer texts. Skills have tools of their own."""
if TYPE_CHECKING:
    SearchedSource = str
else:
    SearchedSource = Annotated[
        Literal[*(source for source in SOURCES if source != "skill")], BeforeValidator(kind_named)
    ]

NEAREST_TEXT, UNLIKELY = 200, "probably not the answer"
"""Characters of each of the nearest notes of an absent answer, and what the answer calls them."""
LIMIT = 8
Limit = Annotated[int, Field(ge=1, le=50)]


ARGUMENTS: dict[Form, Any] = {
    "texts": list[str],
    "text": str,
    "switch": bool,
    "start": str,
    "end": str,
    "pairs": dict[str, str],
}
"""The type of a filter as a tool's argument."""
GUESSED = tuple(name for name, option in OPTIONS.items() if option.guessed)

# optional arguments of every search, named as `LocalKnowledgeBase.search` names them
if TYPE_CHECKING:
    Narrowing = FilterOptions
else:
    Narrowing = TypedDict(
        "Narrowing",
        {
            name: Annotated[
                ARGUMENTS[option.form], Field(description=option.hint or None, exclude=not option.for_agents)
            ]
            for name, option in OPTIONS.items()
        },
        total=False,
    )


class Ranking(Narrowing, total=False):
    """And how to rank what was found: accepted, but not in a schema, because they say nothing to a model."""

    weak: Annotated[bool, Field(exclude=True)]  # an answer that left something out names it
    profile: Annotated[Literal["default", "agent", "seven", "rrf", "fresh"], Field(exclude=True)]
    weights: Annotated[dict[str, float], Field(exclude=True)]


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
    outdated: Annotated[str | None, Field(description="Why it is no longer valid.")] = None
    newer: Annotated[str | None, Field(description="Another hit, newer, that contradicts it.")] = None
    said_by: Annotated[str | None, Field(description="Of a turn of a conversation: who says it, and when.")] = None


@dataclass(frozen=True, slots=True)
class Found:
    """The answer of every search tool."""

    state: Literal["found", "absent", "inconclusive"]
    searched: dict[str, int | str | None]
    degraded: list[str]
    confidence: Annotated[float | None, Field(description="How likely the vault has an answer, 0 to 1.")]
    hits: list[FoundNote]
    nearest: Annotated[list[FoundNote], Field(description="Where nothing answers: probably not the answer.")]
    weaker: Annotated[int, Field(description="Notes that are merely near and were left out; weak=true gives them.")]
    cut: Annotated[list[str], Field(description="Refs left out to keep the answer short.")]
    without: Annotated[list[str], Field(description="Filters that matched nothing and were dropped.")]
    meta: Annotated[dict[str, Any], Field(description="How the search was done.")]


@tool("Search everything", read_only=True)
def search_knowledge(
    call: ToolCall,
    query: str,
    kind: list[SearchedSource] | None = None,
    detail: Literal["scan", "full"] = "scan",
    limit: Limit = LIMIT,
    source: Annotated[list[SearchedSource] | None, Field(exclude=True)] = None,
    **narrowing: Unpack[Ranking],
) -> ToolResult[Found]:
    """Like recall_memory, in notes of every kind together, also conversations and added folders. detail=scan gives
    snippets: open the notes that matter with read_note. detail=full gives whole passages."""
    return _search_kinds(call, query, limit, {"sources": [*(kind or ()), *(source or ())], **narrowing}, detail)


@tool("Search for text", read_only=True)
def search_grep(
    call: ToolCall,
    query: str,
    kind: list[SearchedSource] | None = None,
    limit: Limit = LIMIT,
    **narrowing: Unpack[Narrowing],
) -> ToolResult[Found]:
    """Find an exact text, such as an identifier or a part of a word, or a /regular expression/, in the files."""
    return _search_kinds(call, query, limit, {"sources": kind, "backend": "grep", **narrowing})


@tool("Search by meaning", read_only=True)
def search_semantic(
    call: ToolCall,
    query: str,
    kind: list[SearchedSource] | None = None,
    limit: Limit = LIMIT,
    **narrowing: Unpack[Ranking],
) -> ToolResult[Found]:
    """Find notes by meaning alone, whatever words they use."""
    return _search_kinds(call, query, limit, {"sources": kind, "words": False, **narrowing})


def _search_kinds(
    call: ToolCall, query: str, limit: int, options: SearchOptions, detail: str = "scan"
) -> ToolResult[Found]:
    options, weak = _split(options)
    found, dropped = search(call, query, limit, options)
    kinds, notes = options.get("sources"), found.searched.notes
    searched = f"notes of {', '.join(kinds)}" if kinds else f"{notes:,} note{'s' * (notes != 1)}"
    how = Rendering(call.budget if detail == "full" else 0, searched, _time_advice(found, options), weak)
    return render(call, found, dropped, how)


def _split(options: Mapping[str, Any]) -> tuple[SearchOptions, bool]:
    """What a search is asked, and whether an answer has weak hits."""
    rest = {name: value for name, value in options.items() if name != "weak"}
    return cast("SearchOptions", rest), bool(options.get("weak"))


def recall(call: ToolCall, query: str, limit: int, sources: Sequence[str], given: Ranking) -> ToolResult[Found]:
    """Search some sources and show short notes whole. If nothing clearly matches, say where else to look."""
    narrowing, weak = _split(given)
    found, dropped = search(call, query, limit, {"sources": sources, **narrowing})
    asked = ASKS_ABOUT.search(query) if "entity" in sources else None
    name = asked[1] if asked else query if any(map(_is_named_entity, found.hits)) else ""
    known = _about_an_entity(call, name, found, limit) if name and not narrowing else []
    if known:
        found = replace(found, state="found", confidence=1.0, hits=known)
    elif "memory" in sources and WHO_AM_I.search(query):
        found = _about_the_user(call, found, limit, narrowing)
    searched, others = ("memories", DOCUMENTS) if "memory" in sources else ("longer documents", ABOUT)
    advice = _time_advice(found, narrowing)
    unclear = found.state != "found" or confidence_word(found) == "low"
    if unclear and any(call.kb.notes(source, limit=1) for source in (*others, "conversation")):
        advice += f" Only {searched} were searched: {call.prefix}search_knowledge searches the rest, too."
    return render(call, found, dropped, Rendering(SHORT, searched, advice, weak))


def _time_advice(found: SearchResult, narrowing: FilterOptions) -> str:
    """That nothing clear is there does not mean that nothing was noted at another time."""
    given = [f"{name}={one_line(value)}" for name in ("since", "until") if (value := narrowing.get(name))]
    if not given or found.state == "found":
        return ""
    return f" Only notes with {' and '.join(given)} count: leave that out to search all."


def _about_an_entity(call: ToolCall, name: str, found: SearchResult, limit: int) -> list[Hit]:
    """The entities of this name, the notes that answer as the reader says, then all that mention these entities."""
    read = [hit for hit in found.hits if not hit.weak] if found.state == "found" and found.meta.get("read") else []
    named = list(filter(_is_named_entity, call.kb.search(name, limit=limit, sources=["entity"]).hits))
    said = [hit for entity in named for hit in mentions_of(call.kb.local.vault, call.kb.note(entity.ref), ABOUT)]
    if not named:
        return []
    hits = [*(replace(hit, score=min(hit.score, 1.0)) for hit in named), *read, *said]
    once = list({without_lines(hit.ref): hit for hit in reversed(hits)}.values())[::-1]
    return mark_older(call.kb.local.vault, once[:limit])


def _is_named_entity(hit: Hit) -> bool:
    return hit.source == "entity" and "name" in hit.signals


def _about_the_user(call: ToolCall, found: SearchResult, limit: int, narrowing: SearchOptions) -> SearchResult:
    """Notes that say something of the user, in the words of people and of agents."""
    options: SearchOptions = {**narrowing, "sources": ["memory"], "read": False}
    results = [search(call, words, limit, options)[0] for words in ("I my me", "the user")]
    said = {hit.ref: hit for result in results for hit in result.hits if OF_THE_USER.search(hit.snippet)}
    if not said:
        return found
    best = sorted((replace(hit, weak=False) for hit in said.values()), key=lambda hit: -hit.score)[:limit]
    return replace(found, state="found", confidence=None, hits=mark_older(call.kb.local.vault, best))


def search(call: ToolCall, query: str, limit: int, options: SearchOptions) -> tuple[SearchResult, dict[str, Any]]:
    """The result, and the filters that were dropped because nothing matched them.

    A model guesses tags and categories. That no note has them does not mean that nothing is known.
    """
    options = {**options, "judge": True}
    found = call.kb.search(query, limit=limit, **options)
    guessed = {name: value for name, value in options.items() if name in GUESSED and value}
    if guessed and found.state != "found":
        rest = {name: value for name, value in options.items() if name not in guessed}
        return call.kb.search(query, limit=limit, **cast("SearchOptions", rest)), guessed
    return found, {}


class Rendering(NamedTuple):
    """How an answer is written: notes of at most `whole` tokens whole, of others a snippet."""

    whole: int
    searched: str
    """What was searched, in words."""
    advice: str = ""
    weak: bool = False
    """Whether notes that are merely near are included."""


def render(call: ToolCall, found: SearchResult, dropped: dict[str, Any], how: Rendering) -> ToolResult[Found]:
    """The hits that answer, within the budget. If none does, the nearest notes in a line each."""
    newer = {hit.newer for hit in found.hits if not hit.weak}  # what contradicts an answer is part of it
    answering = [hit for hit in found.hits if how.weak or not hit.weak or without_lines(hit.ref) in newer]
    answering = answering if found.state == "found" else []
    weaker = min(len(found.hits) - len(answering), found.meta.get("near", 0)) if answering else 0
    state = "absent" if found.state == "found" and not answering else found.state
    nearest = [] if answering else _nearest(found)
    found = replace(found, state=state, hits=answering)
    call.kb.track(found)
    degraded = [*call.degraded, *found.degraded]
    state = "inconclusive" if found.state != "found" and degraded else found.state
    shown = ((name, value if isinstance(value, str) else ", ".join(value)) for name, value in dropped.items())
    without = " and ".join(f"{name}={one_line(value)}" for name, value in shown)
    head = _headline(found, state, how.searched, degraded, without, bool(nearest)) + how.advice
    left = call.budget - estimate_tokens(head) - CUT_TOKENS
    notes, lines, cut = fitting(call, worth_showing(replace(found, hits=answering or nearest)), how.whole, left)
    if not answering:
        notes = [replace(note, text=" ".join(note.text.split())[:NEAREST_TEXT], whole=False) for note in notes]
        lines = ["<notes>", *map(_nearest_line, notes), "</notes>"] if notes else []
    if cut:
        refs, left_out = within(", ".join(map(one_line, cut)), CUT_TOKENS - PART_TOKENS)
        refs += " …" if left_out else ""
        lines.append(f"Also found, left out to keep this short: {refs} {call.prefix}read_note opens them.")
    if (len(answering) > 1 or (answering and confidence_word(found) != "high")) and (why := _why_not_read(call, found)):
        lines.append(f"Not read, so {'some' if len(answering) > 1 else 'it'} may not answer: {why}.")
    if weaker:
        lines.append(f"{weaker} weaker one{'s' * (weaker != 1)} left out; weak=true gives them.")
    hits, near = (notes, []) if answering else ([], notes)
    meta = found.meta | {"returned": len(hits)}
    return ToolResult(
        "\n".join((head, *lines)),
        Found(
            state,
            fields_of(found.searched),
            degraded,
            found.confidence,
            hits=hits,
            nearest=near,
            weaker=weaker,
            cut=cut,
            without=[*dropped],
            meta=meta,
        ),
    )


def _nearest(found: SearchResult) -> list[Hit]:
    """Of hits that do not answer: none that was read and is far from it."""
    near = sorted(found.hits, key=lambda hit: -hit.signals.get("reader", 0.0))
    return near[: min(NEAREST, found.meta.get("near", NEAREST))]


def _why_not_read(call: ToolCall, found: SearchResult) -> str:
    """Empty if the hits were read, or if it was not asked for."""
    if found.meta.get("read") or found.backend == "grep":
        return ""
    if call.kb.local.vault.reader is None:
        return "the reader is off"
    if not is_readable_question(found.query):
        return "the question is not in English"
    return "" if any(is_readable(guess_language(hit.snippet)) for hit in found.hits) else "the notes are not in English"


def _nearest_line(note: FoundNote) -> str:
    text, title, outdated = one_line(note.text), one_line(note.title, LONGEST_LABEL), note.outdated or ""
    shown = text if text.casefold().startswith(title.rstrip("….").casefold()) else f"{title}: {text}"
    remarks = (one_line(remark, LONGEST_LABEL) for remark in (outdated, older_remark(note.newer)))
    return " · ".join(filter(None, (one_line(note.ref), shown, *remarks)))


def fitting(call: ToolCall, found: Sequence[Hit], most: int, left: int) -> tuple[list[FoundNote], list[str], list[str]]:
    """The hits that fit into this many tokens, at least one; their fenced texts; and the refs of the others."""
    hits: list[FoundNote] = []
    lines: list[str] = []
    cut: list[str] = []
    for hit, (opened, outdated) in zip(found, _open(call, found), strict=True):
        note, fenced = _fit(_shown(hit, opened, outdated, most), hit.missing, left)
        if hits and (left < MIN_TOKENS or estimate_tokens(fenced) > left):
            cut.append(note.ref)
            continue
        hits.append(note)
        lines.append(fenced)
        left -= estimate_tokens(fenced)
    return hits, lines, cut


def _open(call: ToolCall, hits: Sequence[Hit]) -> list[tuple[Note | None, str | None]]:
    """The note of each hit, None if its file is gone since it was indexed, and why it is not valid."""
    vault, notes = call.kb.local.vault, dict[int, Note]()
    lookup = Lookup(vault)
    for number, hit in enumerate(hits):
        with suppress(KnowledgeError, OSError):
            notes[number] = note_then(vault, hit) or lookup.open(hit.ref)[1]
    outdated: dict[int, str | None] = {}
    with suppress(KnowledgeError):  # the index cannot be read any more
        outdated = dict(zip(notes, lookup.outdated([*notes.values()]), strict=True))
    return [(notes.get(number), outdated.get(number)) for number in range(len(hits))]


def _shown(hit: Hit, note: Note | None, outdated: str | None, most: int) -> FoundNote:
    ref, text, provenance = hit.ref, hit.snippet, "unknown"
    said_by = hit.heading if hit.source == "conversation" else None
    with suppress(KnowledgeError):  # its lines were removed since it was indexed
        if note:
            found = excerpt(hit.ref, note)
            ref, lines = marked_ref(hit.ref, found), found.lines
            if said_by and lines[0].startswith("## "):
                lines = lines[1:]
            text, provenance = "\n".join((*hit.properties, *lines)).strip(), note.provenance
    tokens = estimate_tokens(text)
    # a little more text costs less than the remark that something was left out
    whole = tokens <= max(most, estimate_tokens(hit.snippet) + LABEL_TOKENS)
    shown = text if whole else hit.snippet
    about = (ref, hit.title, hit.source, hit.score, dict(hit.signals))
    state = (hit.created, provenance, outdated, hit.newer, said_by)
    return FoundNote(*about, shown, whole, tokens, list(hit.tags), *state)


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
        said_by=note.said_by,
        created=note.created[:10],
        tags=" ".join(note.tags),
        part=None if note.whole else f"of {note.tokens} tokens",
        outdated=note.outdated,
        remark=older_remark(note.newer),
        missing="its file is gone, or its drive is not mounted" if missing else None,
    )


def confidence_word(found: SearchResult) -> str:
    """How sure it is that something here answers; empty if that was not measured."""
    sure = found.confidence
    return "" if sure is None else "high" if sure >= SURE else "low" if sure < UNSURE else "medium"


def _headline(
    found: SearchResult, state: str, searched: str, degraded: list[str], dropped: str, has_nearest: bool
) -> str:
    scope = f"{searched} searched"
    problems = f" But: {one_line('; '.join(degraded))}." if degraded else ""
    if found.understood:  # a date in the query limits what was searched
        scope += f"; understood {one_line('; '.join(found.understood))}"
    match state:
        case "found":
            word = confidence_word(found)
            sure = f", {word} confidence" if word else ""
            wider = f" Nothing matches {dropped}: these are results without it." if dropped else ""
            return f"found{sure}: {len(found.hits)} hit{'s' * (len(found.hits) != 1)}; {scope}.{wider}{problems}"
        case "absent":
            nearest = f"The nearest notes follow, {UNLIKELY}; try" if has_nearest else "Try"
            wider = f", neither with {dropped} nor without" if dropped else ""
            return f"absent: no clear match{wider}; all {scope}. {nearest} once in other words."
        case _:
            nearest = f" The nearest notes follow, {UNLIKELY}." if has_nearest else ""
            return (
                f"inconclusive: nothing clearly found, but not everything could be asked ({scope}).{problems}{nearest}"
            )
