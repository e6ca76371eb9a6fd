"""Tools that look for notes: by query, whole or as a scan, with an answer that says how far it can be trusted."""

from __future__ import annotations

from typing import Any

from co_cli.errors import KnowledgeError
from co_cli.knowledge_base import KnowledgeBase
from co_cli.notes.excerpt import excerpt
from co_cli.service.narrowing import alike, unused_tags
from co_cli.tools import schemas
from co_cli.tools.budget import estimate_tokens, within
from co_cli.tools.fencing import fence_note, one_line
from co_cli.tools.tool import Tool, ToolResult
from co_cli.values import Hit, SearchResult, worth_showing

SHORT = 150
"""Tokens up to which a memory is given whole; of a longer one the part that matched, and its ref to open."""
LEAST = 40
"""Tokens that are worth showing of a note; with less room than this it is named as cut."""
MORE = 20
"""Tokens that a fence needs to say that it shows a part."""

RECALL_MEMORY = Tool(
    "recall_memory",
    "Recall memories",
    "Look up what was remembered earlier about the user, their preferences, decisions, corrections, people, projects "
    "and how things are done here. Use it before answering anything that may depend on that, and before saving "
    "something that may be known already. Not for general knowledge, and not for long documents: recall_article "
    "finds those. The answer says `found`, `absent` (everything was searched and nothing is there: do not ask again "
    "in other words) or `inconclusive` (something was missing).",
    schemas.arguments(
        "query", query=schemas.QUERY, tags=schemas.TAGS, category=schemas.CATEGORY, limit=schemas.limit(5)
    ),
    schemas.FOUND,
    read_only=True,
    idempotent=True,
)
RECALL_ARTICLE = Tool(
    "recall_article",
    "Recall articles",
    "Find passages in longer documents: guides, reference pages, meeting notes, saved web pages, and the folders that "
    "the user added. Gives the matching part of each with a ref to its lines; open one with read_note. For short facts "
    "and preferences use recall_memory.",
    schemas.arguments(
        "query", query=schemas.QUERY, tags=schemas.TAGS, category=schemas.CATEGORY, limit=schemas.limit(5)
    ),
    schemas.FOUND,
    read_only=True,
    idempotent=True,
)
DOCUMENTS = ("article", "folder", "obsidian")
"""Sources of longer texts."""

SEARCH_KNOWLEDGE = Tool(
    "search_knowledge",
    "Search everything",
    "Search memories, articles and added folders together. With detail=scan (the default) it gives title, score, a "
    "snippet and what the whole would cost in tokens: scan first, then open the one or two that matter with "
    "read_note. detail=full gives whole passages at once, for a narrow question with a small limit.",
    schemas.arguments(
        "query",
        query=schemas.QUERY,
        sources=schemas.texts("Only these kinds of notes.", "memory", *DOCUMENTS),
        tags=schemas.TAGS,
        category=schemas.CATEGORY,
        detail={"type": "string", "enum": ["scan", "full"], "default": "scan", "description": "How much of each hit."},
        limit=schemas.limit(8),
    ),
    schemas.FOUND,
    read_only=True,
    idempotent=True,
)


class Shown:
    """One hit on its way to a model: what of it is shown, and what all of it would cost."""

    def __init__(self, kb: KnowledgeBase, hit: Hit, most: int) -> None:
        self.hit, self.provenance = hit, "unknown"
        try:
            note = kb.note(hit.ref)
        except KnowledgeError:
            text = hit.snippet  # the file went away, or changed its lines, since it was indexed
        else:
            text, self.provenance = "\n".join(excerpt_or_all(hit.ref, note)).strip(), note.provenance
        self.tokens = estimate_tokens(text)
        self.whole = self.tokens <= most or " ".join(text.split()) == hit.snippet.strip()
        self.text = text if self.whole else hit.snippet

    def trimmed(self, tokens: int) -> None:
        """Cut so that the fence with its labels keeps to these tokens, as long as a little of the text is left."""
        for _ in range(2):  # what had to be made harmless is longer than the text
            over = estimate_tokens(self.fenced()) - tokens
            if over <= 0:
                return
            cut, _ = within(self.text, max(estimate_tokens(self.text) - over - MORE, LEAST))
            self.text, self.whole = f"{cut} …", False

    def fenced(self) -> str:
        more = None if self.whole else f"a part; read_note opens all of it, about {self.tokens} tokens"
        return fence_note(
            self.hit.ref,
            self.hit.title,
            self.provenance,
            self.text,
            created=self.hit.created[:10],
            tags=" ".join(self.hit.tags),
            score=f"{self.hit.score:.2f}",
            shown=more,
            missing="its file is gone, or its drive is not mounted" if self.hit.missing else None,
        )

    def data(self) -> dict[str, Any]:
        hit = self.hit
        return {
            "ref": hit.ref,
            "title": hit.title,
            "source": hit.source,
            "score": hit.score,
            "signals": dict(hit.signals),
            "text": self.text,
            "whole": self.whole,
            "tokens": self.tokens,
            "tags": list(hit.tags),
            "created": hit.created,
            "provenance": self.provenance,
        }


def excerpt_or_all(ref: str, note: Any) -> list[str]:
    """The lines a hit stands on; all of them if the note got shorter since."""
    try:
        return excerpt(ref, note)
    except KnowledgeError:
        return note.body.split("\n")


def recall_memory(kb: KnowledgeBase, values: dict[str, Any], budget: int, behind: list[str]) -> ToolResult:
    return _recall(kb, {**values, "sources": ["memory"]}, values.get("limit", 5), SHORT, budget, behind)


def recall_article(kb: KnowledgeBase, values: dict[str, Any], budget: int, behind: list[str]) -> ToolResult:
    return _recall(kb, {**values, "sources": DOCUMENTS}, values.get("limit", 5), SHORT, budget, behind)


def search_knowledge(kb: KnowledgeBase, values: dict[str, Any], budget: int, behind: list[str]) -> ToolResult:
    most = budget if values.get("detail") == "full" else 0
    return _recall(kb, values, values.get("limit", 8), most, budget, behind)


def _recall(
    kb: KnowledgeBase, values: dict[str, Any], limit: int, most: int, budget: int, behind: list[str]
) -> ToolResult:
    found, dropped = _search(kb, values, limit)
    degraded = [*behind, *found.degraded]
    state = "inconclusive" if found.state != "found" and degraded else found.state
    shown: list[Shown] = []
    cut: list[str] = []
    left = budget
    for hit in worth_showing(found):
        if left < LEAST:
            cut.append(hit.ref)
            continue
        one = Shown(kb, hit, most)
        one.trimmed(left)
        left -= estimate_tokens(one.fenced())
        shown.append(one)
    lines = [_headline(found, state, degraded, _too_narrow(kb, values, dropped)), *(one.fenced() for one in shown)]
    if cut:
        lines.append(f"Found too, left out to keep this short: {', '.join(map(one_line, cut))}. read_note opens them.")
    data: dict[str, Any] = {
        "state": state,
        "searched": dict(found.searched._asdict()),
        "degraded": degraded,
        "confidence": found.confidence,
        "hits": [one.data() for one in shown],
        "cut": cut,
        "without": dropped,
    }
    return ToolResult("\n".join(lines), data)


def _search(kb: KnowledgeBase, values: dict[str, Any], limit: int) -> tuple[SearchResult, list[str]]:
    """What was asked; where a tag or a category leaves nothing, what there is without it, and what was dropped.

    A model guesses them. That no note has the one it guessed does not mean that nothing is known.
    """
    query, sources = values["query"], values.get("sources")
    narrow = {name: values[name] for name in ("tags", "category") if values.get(name)}
    found = kb.search(query, limit=limit, sources=sources, **narrow)
    dropped: list[str] = []
    if narrow and found.state == "absent":
        found, dropped = kb.search(query, limit=limit, sources=sources), list(narrow)
    kb.track(found)
    return found, dropped


def _too_narrow(kb: KnowledgeBase, values: dict[str, Any], dropped: list[str]) -> str:
    """The filters that left nothing, and which tag there is instead of one that nobody uses."""
    asked = " and ".join(f"{name}={_said(values[name])}" for name in dropped)
    if "tags" not in dropped:
        return asked
    try:
        known = list(kb.tags())
    except KnowledgeError:
        return asked  # the files answered, without the index
    unused = unused_tags(values["tags"], known)
    close = [tag for one in unused for tag in alike(one, known)]
    meant = f"; there is {_said(close)}" if close else ""
    return f"{asked} (no note has the tag {_said(unused)}{meant})" if unused else asked


def _said(value: str | list[str]) -> str:
    return one_line(value if isinstance(value, str) else ", ".join(value))


def _headline(found: SearchResult, state: str, degraded: list[str], narrow: str) -> str:
    """`narrow` are filters that left nothing and were dropped."""
    searched = found.searched
    fresh = f", index fresh as of {searched.fresh_as_of}" if searched.fresh_as_of else ""
    scope = f"{searched.notes} {'note' if searched.notes == 1 else 'notes'} searched{fresh}"
    missing = f" But: {one_line('; '.join(degraded))}." if degraded else ""
    if found.understood:  # an agent must know that only some days were searched
        scope += f"; understood {one_line('; '.join(found.understood))}"
    match state:
        case "found":
            wider = f" None with {narrow}: this is what there is without." if narrow else ""
            return f"found: {len(found.hits)} of {scope}.{wider}{missing}"
        case "absent":
            nearest = " The nearest, which may have nothing to do with it:" if found.hits else ""
            wider = f", neither with {narrow} nor without" if narrow else ""
            return f"absent: nothing here clearly says that{wider}. All of {scope}.{nearest}"
        case _:
            return f"inconclusive: nothing clearly found, but not everything could be asked ({scope}).{missing}"
