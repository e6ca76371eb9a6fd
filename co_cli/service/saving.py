"""Save notes: an exact repeat is a duplicate, everything else is a new note that names related memories."""

from __future__ import annotations

import contextlib
import re
import time
from collections.abc import Sequence
from typing import cast

from co_cli.errors import FrontmatterError, IndexUnavailableError, InvalidInputError
from co_cli.knowledge_index import KnowledgeIndex
from co_cli.notes.dates import read_moment
from co_cli.notes.editing import clean_tag, render_note, set_body, set_fields
from co_cli.notes.frontmatter import read_frontmatter
from co_cli.notes.note import UTF_16, Note, NotTextError, read_note
from co_cli.notes.refs import FOLDERS, ref_of
from co_cli.notes.secrets import count_masked, reveals_secret, without_secrets
from co_cli.notes.similarity import fingerprint, likeness, words_of
from co_cli.notes.store import NoteStore
from co_cli.retrieval.pipeline import SearchRequest
from co_cli.retrieval.results import best_of_each_note
from co_cli.service.lookup import outdated
from co_cli.values import Draft, Filters, OnRelated, OwnSource, Related, Saved, moment_text, to_utf8

CANDIDATES = 10
MOST_RELATED = 3
CLOSE = 0.75
"""The cosine of the embedded model from which on two memories are close in meaning. Chosen with the share of words on
146 labelled pairs of short memories: see benchmarks/NOTES.md."""
LONGEST_TITLE = 80
OWN_FIELDS = ("title", "kind", "tags", "category", "provenance")
"""Fields that a Draft has parameters for."""
SENTENCE_END = re.compile(r"(?<=[^\W\d_]{2})[.!?\u3002](?=\s|$|[^\x00-\x7f])")
ABBREVIATIONS = frozenset("mr mrs ms dr prof st sr jr vs inc ltd".split())
"""Words whose full stop does not end a sentence."""
MARKERS = re.compile(r"(?:[#>*.)\s]+|[-+]\s+|\d{1,3}[.)]\s+)*")
"""What Markdown puts before the first word of a line. A number that belongs to the sentence stays."""
OPERATORS = re.compile(r'["#:]|(?<!\S)-+')
"""What a search would read as a phrase, a filter or an exclusion."""


class NewNote:
    """A draft made ready to be written: cleaned text, title, tags and fields."""

    def __init__(self, draft: Draft) -> None:
        self.content = to_utf8(draft.content.replace("\r\n", "\n").replace("\0", "")).strip()
        if not self.content:
            raise InvalidInputError("the text is empty: there is nothing to remember")
        self.source: OwnSource = draft.source
        self.own_title = bool(_one_line(draft.title or ""))
        self.title = _one_line(draft.title or "") or title_from(self.content)
        self.tags = clean_tags(draft.tags)
        self.category = _one_line(draft.category or "") or None
        self.provenance = _one_line(draft.provenance) or "user"
        self.fields = dict(draft.fields or {})
        for key in OWN_FIELDS:
            if key in self.fields:
                raise InvalidInputError(
                    f"{key} cannot be set as another field: use --{key.rstrip('s')}, or in Python the parameter {key}"
                )
        created = self.fields.get("created")
        if created is not None and read_moment(created) is None:
            raise InvalidInputError(f"created is a date such as 2026-03-01, not {created!r}")

    @property
    def supersedes(self) -> list[str]:
        value = self.fields.get("supersedes")
        if isinstance(value, list | tuple):
            return [str(one) for one in cast("Sequence[object]", value)]
        return [str(value)] if value else []

    def supersede(self, refs: Sequence[str]) -> None:
        """Add notes that this one supersedes."""
        if refs:
            self.fields["supersedes"] = _one_or_list([*self.supersedes, *refs])

    def remove_secrets(self, policy: str) -> None:
        """Refuse or mask secrets, before the text is compared with notes. An error names a line of the given text."""
        if policy == "allow":
            return
        content, self.content = self.content, without_secrets(self.content, policy)
        self.title = without_secrets(self.title, policy, place="the title")
        if reveals_secret(self.title, content):  # the title was cut from the text in the middle of a secret
            self.title = title_from(self.content)
        self.tags = [without_secrets(tag, policy, place="a tag") for tag in self.tags]
        if self.category:
            self.category = without_secrets(self.category, policy, place="the category")
        for key, value in self.fields.items():
            if isinstance(value, str):
                self.fields[key] = without_secrets(value, policy, place=f"the field {key}")

    def render(self, now: float) -> bytes:
        metadata: dict[str, object] = {
            "title": self.title,
            "kind": self.source,
            "created": self.fields.get("created") or moment_text(now),
            "tags": self.tags,
            "category": self.category,
            "provenance": self.provenance,
            **{key: value for key, value in self.fields.items() if key != "created"},
        }
        return render_note(metadata, self.content).encode("utf-8", "replace")


def save(
    store: NoteStore, index: KnowledgeIndex | None, draft: NewNote, threshold: float, on_related: OnRelated = "report"
) -> Saved:
    """Write a draft and index it. Without an index the note is still written; the next sync finds it.

    Related memories are searched for before the lock is taken and vectors are made after it is free: other writers
    must not wait for either.
    """
    with count_masked() as masked:
        draft.remove_secrets(store.secrets)
        look = index and on_related != "keep" and draft.source == "memory"
        related = related_to(store, index, draft, threshold) if index and look else []
        with store.lock():
            twin = _find_twin(store, index, draft) if index else None
            if twin is None:
                saved = _create(store, index, draft, related, on_related)
            else:
                saved = _repeat(store, index, draft, *twin)
    saved = saved._replace(masked=len(masked)) if masked else saved
    if index and saved.outcome != "duplicate":
        with contextlib.suppress(IndexUnavailableError):
            index.embed_saved()
    return saved


def related_to(store: NoteStore, index: KnowledgeIndex, draft: NewNote, threshold: float) -> list[Related]:
    """Memories that are valid and share most words with a draft, or are close to it in meaning."""
    text = f"{draft.title}\n{draft.content}" if draft.own_title else draft.content
    # a date in the text is no filter: a request that has dates of its own is not read for others
    filters = Filters(sources=("memory",), roots=(index.root,), since=float("-inf"))
    with index.snapshot() as reader:
        vault = reader.vault(index.origin)
        active = reader.spaces(vault).active if vault is not None else None
        measured = active is not None and active.space.provider == "static"  # other models have other cosines
        request = SearchRequest(OPERATORS.sub(" ", text), CANDIDATES, filters, meaning=measured)
        trace = index.find(request)[1]
        best = best_of_each_note(trace.ranked)[:CANDIDATES]
        passages = reader.passages([one.passage for one in best])
    found: list[Related] = []
    words = words_of(draft.content)
    for passage in (passages[one.passage] for one in best):
        alike = likeness(words, words_of(passage.body), threshold)
        if not alike and trace.candidates.cosines.get(passage.id, 0.0) < CLOSE:
            continue
        opened = _open(store, passage.path)  # the index may be older than the file
        if opened is None or opened[0].ref in draft.supersedes or outdated(opened[0], index):
            continue
        why = f"{alike:.0%} the same words" if alike else "close in meaning"
        found.append(Related(opened[0].ref, opened[0].title, why))
        if len(found) == MOST_RELATED:
            break
    return found


def index_saved(index: KnowledgeIndex, path: str, embed: bool = False) -> None:
    """Index a file that was just written. If search.db cannot be used now, the next sync does it."""
    with contextlib.suppress(IndexUnavailableError):
        index.index_file(None, path, embed)


def _create(
    store: NoteStore, index: KnowledgeIndex | None, draft: NewNote, related: list[Related], on_related: OnRelated
) -> Saved:
    detail = ""
    if related and on_related == "supersede":
        refs = [one.ref for one in related]
        draft.supersede(refs)
        related, detail = [], f"it supersedes {', '.join(refs)}"
    path = store.create(FOLDERS[draft.source], draft.title, draft.render(time.time()), index.taken if index else None)
    if index:
        index_saved(index, path)  # before another writer asks whether this is a repeat
    ref = ref_of(path, draft.source)
    return Saved(ref, store.absolute(path), "created", f"{ref}; {detail}" if detail else "", tuple(related))


def _repeat(store: NoteStore, index: KnowledgeIndex | None, draft: NewNote, note: Note, data: bytes) -> Saved:
    """Nothing is written, unless the repeat says what the note supersedes: that is how a caller decides afterwards."""
    path, detail = store.absolute(note.path), f"{note.ref} says this already"
    new = [ref for ref in draft.supersedes if ref not in note.supersedes]
    if not new:
        return Saved(note.ref, path, "duplicate", detail)
    change_file(store, note.path, data, None, {"supersedes": _one_or_list([*note.supersedes, *new])})
    if index:
        index_saved(index, note.path)
    return Saved(note.ref, path, "updated", f"{detail}; it supersedes {', '.join(new)} now")


def _find_twin(store: NoteStore, index: KnowledgeIndex, draft: NewNote) -> tuple[Note, bytes] | None:
    """The note that says the same word for word, as its file says it now.

    Under another title it is another note: "Likes tea." of Mara is not that of Bex.
    """
    wanted = fingerprint(draft.content)
    for path in index.exact_twins(draft.source, wanted):
        found = _open(store, path)
        if found is None or fingerprint(found[0].body) != wanted or found[0].ref in draft.supersedes:
            continue
        if not draft.own_title or words_of(draft.title) == words_of(found[0].title):
            return found
    return None


def _open(store: NoteStore, path: str) -> tuple[Note, bytes] | None:
    if not store.exists(path):
        return None
    data = store.read(path)
    try:
        return read_note(path, data), data
    except NotTextError:
        return None


def _one_or_list(refs: Sequence[str]) -> object:
    """As frontmatter has them: one alone needs no list."""
    refs = list(dict.fromkeys(refs))
    return refs[0] if len(refs) == 1 else refs


def change_file(store: NoteStore, path: str, data: bytes, body: str | None, fields: dict[str, object]) -> bool:
    """Apply a change to the content it is based on: another body, and these fields.

    Bytes that are not valid UTF-8 survive. False: it said so already. `updated` follows where the note has it, or where
    its text changes and it has frontmatter to put it in.
    """
    if data.startswith(UTF_16):
        raise FrontmatterError(path, 1, "UTF-16; save it as UTF-8, then change it")
    before = data.decode("utf-8", "surrogateescape")
    text = set_fields(before, fields, path)
    if body is not None:
        text = set_body(text, body)
    if text == before:
        return False
    front = read_frontmatter(text)
    dated = "updated" in front.metadata or (body is not None and bool(front.metadata))
    if dated and not front.problem and "updated" not in fields:
        text = set_fields(text, {"updated": moment_text(time.time())}, path)
    store.replace(path, text.encode("utf-8", "surrogateescape"), based_on=data)
    return True


def title_from(content: str) -> str:
    """The first sentence, or as much of it as a title can hold."""
    first = next((line for line in content.splitlines() if re.search(r"\w", line)), content.splitlines()[0])
    # an underscore within a word is part of it: get_width is no emphasis
    first = _one_line(re.sub(r"[*`]|(?<![^\W_])_+|_+(?![^\W_])", "", MARKERS.sub("", first, count=1)) or first)
    ends = (end.start() for end in SENTENCE_END.finditer(first[:1_000]))
    end = next((end for end in ends if first[:end].split()[-1].lower() not in ABBREVIATIONS), None)
    title = first.rstrip(".") if end is None else first[:end]
    if len(title) <= LONGEST_TITLE:
        return title
    return title[:LONGEST_TITLE].rsplit(" ", 1)[0].rstrip(",;: ")


def clean_tags(tags: Sequence[str] | None) -> list[str]:
    """Without `#` and blanks, in lower case, once each."""
    if isinstance(tags, str):
        tags = tags.split(",")
    return list(dict.fromkeys(filter(None, map(clean_tag, tags or ()))))


def _one_line(text: str) -> str:
    return " ".join(re.sub(r"[\x00-\x1f\x7f]", " ", to_utf8(text)).split())
