"""Write notes: a new one, or the one that already says nearly the same, and never lose a word of either."""

from __future__ import annotations

import contextlib
import re
import time
from collections.abc import Callable, Collection, Sequence
from typing import cast

from co_cli.errors import FrontmatterError, IndexUnavailableError, InvalidInputError, NoteConflictError
from co_cli.index.knowledge_index import KnowledgeIndex
from co_cli.index.likely import Likely
from co_cli.index.match import read_query
from co_cli.index.reader import StoredPassage
from co_cli.notes.editing import Tags, add_paragraph, clean_tag, render_note, set_body, set_fields
from co_cli.notes.frontmatter import read_frontmatter
from co_cli.notes.moments import moment_text, read_moment
from co_cli.notes.note import UTF_16, Note, NotTextError, own_tags, read_note
from co_cli.notes.refs import FOLDERS, ref_of
from co_cli.notes.store import NoteStore
from co_cli.notes.twins import (
    fingerprint,
    has_paragraph,
    keeps_all_of,
    likeness_of_words,
    says_all_of,
    words_of,
)
from co_cli.service.noticing import LONG_ENOUGH, related_among
from co_cli.typed import whole
from co_cli.values import Filters, OnRelated, OwnSource, Related, Saved

CANDIDATES = 20
TELLING_WORDS = 4
LONGEST_TITLE = 80
ATTEMPTS = 3
OURS = ("title", "kind", "tags", "category", "provenance")
"""Fields that a draft has its own way of saying."""


class Draft:
    """A note that somebody wants saved."""

    def __init__(
        self,
        content: str,
        source: OwnSource,
        title: str | None = None,
        tags: Sequence[str] | None = None,
        category: str | None = None,
        provenance: str = "user",
        fields: dict[str, object] | None = None,
    ) -> None:
        self.content = whole(content.replace("\r\n", "\n").replace("\0", "")).strip()
        if not self.content:
            raise InvalidInputError("there is nothing to remember: the text is empty")
        self.source: OwnSource = source
        self.own_title = bool(_one_line(title or ""))
        self.title = _one_line(title or "") or title_from(self.content)
        self.tags = clean_tags(tags)
        self.category, self.provenance = _one_line(category or "") or None, _one_line(provenance) or "user"
        self.fields = dict(fields or {})
        for key in OURS:
            if key in self.fields:
                raise InvalidInputError(f"{key} is not one of the other fields: give it as {key}")
        created = self.fields.get("created")
        if created is not None and read_moment(created) is None:
            raise InvalidInputError(f"created is a date such as 2026-03-01, not {created!r}")

    def clear(self, policy: str) -> None:
        """Refuse or mask secrets before anything is made of the text: a title that is cut, a comparison with notes.

        What is refused is named as the person gave it: a line of their text, not one of the file that it would be.
        """
        if policy == "allow":
            return
        from co_cli.notes.secrets import gives_away, without_secrets

        content, self.content = self.content, without_secrets(self.content, policy)
        self.title = without_secrets(self.title, policy, place="the title")
        if gives_away(self.title, content):  # made of the text, and cut in the middle of one
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
    store: NoteStore,
    index: KnowledgeIndex | None,
    draft: Draft,
    threshold: float,
    on_related: OnRelated = "tell",
    superseded: Sequence[Note] = (),
) -> Saved:
    """Write a draft and index it. Without an index the note is still written; the next sync finds it.

    `on_related` says what becomes of a memory that says something else about the same; `superseded` are notes that
    this one takes the place of, which it never joins. Vectors are made after the lock is free: others must not wait
    for a slow embedder.
    """
    from co_cli.notes.secrets import counting

    with counting() as masked:
        draft.clear(store.secrets)
        if superseded:
            draft.fields["supersedes"] = _refs([note.ref for note in superseded])
        apart = {note.path for note in superseded}
        saved = _tried(lambda: _save_locked(store, index, draft, threshold, on_related, apart), store)
    saved = saved._replace(masked=len(masked)) if masked else saved
    if index and saved.outcome != "duplicate":
        with contextlib.suppress(IndexUnavailableError):
            index.embed_saved()
    return saved


def _tried(save: Callable[[], Saved], store: NoteStore) -> Saved:
    """Under the lock; again if an editor changed the note that it was about to join: it may say something else now."""
    for _ in range(ATTEMPTS - 1):
        with contextlib.suppress(NoteConflictError), store.lock():
            return save()
    with store.lock():
        return save()


def bring_in(index: KnowledgeIndex, path: str, embed: bool = False) -> None:
    """Index a file that was just written. It is written, whatever becomes of search.db: the next sync brings it in."""
    with contextlib.suppress(IndexUnavailableError):
        index.index_file(path, embed)


def _save_locked(
    store: NoteStore,
    index: KnowledgeIndex | None,
    draft: Draft,
    threshold: float,
    on_related: OnRelated,
    apart_from: Collection[str],
) -> Saved:
    twin = None
    related: list[Related] = []
    named = _named(draft.fields.get("supersedes"))
    if index:
        with index.snapshot():  # one transaction instead of one for each question
            twin, likely = _find_twin(store, index, draft, threshold, apart_from)
            if twin is None and on_related != "keep" and draft.source == "memory":
                title = draft.title if draft.own_title else ""
                found = related_among(store, index, draft.content, title, likely, apart_from)
                related = [one for one in found if one.ref not in named]
    if twin is not None:
        with contextlib.suppress(FrontmatterError):  # what cannot be edited safely is left alone
            saved = _join(store, draft, *twin)
            if index and saved.outcome == "updated":
                bring_in(index, twin[0].path)
            return saved
    detail = ""
    if related and on_related == "merge" and index:
        return _merge(store, index, draft, related)
    if related and on_related == "supersede":
        refs = [one.ref for one in related]
        draft.fields["supersedes"] = _refs([*named, *refs])
        detail = f"it takes the place of {', '.join(refs)}"
    path = store.create(FOLDERS[draft.source], draft.title, draft.render(time.time()), index.taken if index else None)
    if index:
        bring_in(index, path)  # before another writer asks whether this is said already
    ref = ref_of(path, draft.source)
    detail = f"{ref}; {detail}" if detail else ""
    return Saved(ref, store.absolute(path), "created", detail, tuple(related))


def related_to(store: NoteStore, index: KnowledgeIndex, content: str, title: str | None) -> list[Related]:
    """Memories that say something else about the same as this, which is not saved yet."""
    with index.snapshot():
        likely = _likely(index, _telling(content, title or ""))
        return related_among(store, index, content, title or "", likely)


def _merge(store: NoteStore, index: KnowledgeIndex, draft: Draft, related: list[Related]) -> Saved:
    """Put the draft's text into the first of the notes that it has to do with."""
    path = index.path_of(related[0].ref)
    found = _open(store, path) if path else None
    if found is None:
        raise InvalidInputError(f"{related[0].ref} is gone; nothing was saved: save it again")
    note, data = found
    fields, _ = _new_fields(draft, note)
    if draft.provenance != "user" and note.provenance == "user":
        fields["provenance"] = draft.provenance  # the words are no longer only the user's
    change(store, note.path, data, None, fields, draft.content)
    bring_in(index, note.path)
    detail = f"{note.ref} said something else about the same; this was added to it"
    return Saved(note.ref, store.absolute(note.path), "updated", detail, tuple(related[1:]))


def _named(value: object) -> list[str]:
    if isinstance(value, list | tuple):
        return [str(one) for one in cast("Sequence[object]", value)]
    return [str(value)] if value else []


def _refs(refs: list[str]) -> object:
    """As frontmatter has them: one alone needs no list."""
    refs = list(dict.fromkeys(refs))
    return refs[0] if len(refs) == 1 else refs


def _find_twin(
    store: NoteStore, index: KnowledgeIndex, draft: Draft, threshold: float, apart_from: Collection[str]
) -> tuple[tuple[Note, bytes] | None, Sequence[Likely | StoredPassage]]:
    """The note that says the same, or nearly so, as its file says now; and where it was looked for."""
    for path in index.exact_twins(draft.source, fingerprint(draft.content)):
        found = _open(store, path)
        if found and path not in apart_from and fingerprint(found[0].body) == fingerprint(draft.content):
            return found, ()
    if draft.source != "memory":
        return None, ()
    likely = _likely(index, _telling(draft.content, draft.title if draft.own_title else ""))
    if threshold >= 1:
        return None, likely
    wanted = words_of(draft.content)

    def alike_to(body: str) -> float:
        alike = likeness_of_words(words_of(body), wanted, threshold)
        return 1.0 if alike < 1 and "\n" in body and has_paragraph(body, wanted) else alike

    others = (passage for passage in likely if passage.path not in apart_from)
    alike, path = max(((alike_to(passage.body), passage.path) for passage in others), default=(0.0, ""))
    found = _open(store, path) if alike >= threshold else None
    if found is None or alike_to(found[0].body) < threshold:  # as it is now: the index may be older
        return None, likely
    return found, likely


def _telling(content: str, title: str) -> str:
    """What tells which memories a text may have to do with; a short one leaves that to its title."""
    return f"{title} {content}" if len(content) <= LONG_ENOUGH else content


def _likely(index: KnowledgeIndex, content: str) -> Sequence[Likely | StoredPassage]:
    """The memories among which one that says nearly the same would be."""
    found = index.likely("memory", content, CANDIDATES)
    if found is not None:
        return found
    telling = index.rarest(content, TELLING_WORDS)
    if not telling:
        return []
    query = read_query(" ".join(telling))._replace(phrases=(), excluded=())
    matches = index.search(query, Filters(sources=("memory",)), CANDIDATES)
    return index.passages([match.passage_id for match in matches])


def _open(store: NoteStore, path: str) -> tuple[Note, bytes] | None:
    if not store.exists(path):
        return None
    data = store.read(path)
    try:
        return read_note(path, data), data
    except NotTextError:
        return None


def _join(store: NoteStore, draft: Draft, note: Note, data: bytes) -> Saved:
    """Put what is new of the draft into the note that already says nearly the same."""
    fields, kept = _new_fields(draft, note)
    body: str | None = None
    addition: str | None = None
    if says_all_of(note.body, draft.content):
        detail = f"{note.ref} says this already"
    elif keeps_all_of(draft.content, note.body) and not note.problem:
        body, detail = draft.content, f"{note.ref} said part of this; it has the longer wording now"
    else:
        addition, detail = draft.content, f"{note.ref} said nearly this; the new wording was added to it"
    if kept:
        detail += f"; its own {', '.join(kept)} stayed"
    if (body is not None or addition is not None) and draft.provenance != "user" and note.provenance == "user":
        fields["provenance"] = draft.provenance  # the words are no longer only the user's
    path = store.absolute(note.path)
    if body is None and addition is None and not fields:
        return Saved(note.ref, path, "duplicate", detail)
    if fields:
        detail += f"; added: {', '.join(fields)}"
    change(store, note.path, data, body, fields, addition)
    return Saved(note.ref, path, "updated", detail)


def _new_fields(draft: Draft, note: Note) -> tuple[dict[str, object], list[str]]:
    """What the draft says that the note does not, and what both say differently: then the note's own stays."""
    given: dict[str, object] = dict(draft.fields)
    if draft.own_title:
        given["title"] = draft.title
    if draft.category:
        given["category"] = draft.category
    new: dict[str, object] = {key: value for key, value in given.items() if note.metadata.get(key) is None}
    kept = [key for key, value in given.items() if key not in new and note.metadata.get(key) != value]
    tags = [tag for tag in draft.tags if tag not in note.tags]
    if tags:
        new["tags"] = Tags([*clean_tags(own_tags(note)), *tags])
    return new, kept


def change(
    store: NoteStore,
    path: str,
    data: bytes,
    body: str | None,
    fields: dict[str, object],
    addition: str | None = None,
) -> bool:
    """Apply a change to the content it is based on: another body or one more paragraph, and these fields.

    Bytes that are not valid UTF-8 survive. False: it said so already. `updated` follows where the note has it, or where
    its text changes and it has frontmatter to put it in.
    """
    if data.startswith(UTF_16):
        raise FrontmatterError(path, 1, "UTF-16; save it as UTF-8, then change it")
    before = data.decode("utf-8", "surrogateescape")
    text = set_fields(before, fields, path)
    if body is not None:
        text = set_body(text, body)
    if addition is not None:
        text = add_paragraph(text, addition)
    if text == before:
        return False
    front = read_frontmatter(text)
    reworded = body is not None or addition is not None
    dated = "updated" in front.metadata or (reworded and bool(front.metadata))
    if dated and not front.problem and "updated" not in fields:
        text = set_fields(text, {"updated": moment_text(time.time())}, path)
    store.replace(path, text.encode("utf-8", "surrogateescape"), based_on=data)
    return True


def title_from(content: str) -> str:
    """The first sentence, or as much of it as a title can hold."""
    first = next((line for line in content.splitlines() if re.search(r"\w", line)), content.splitlines()[0])
    # an underscore within a word is part of it: get_width is no emphasis
    first = _one_line(re.sub(r"^[#>*\-\s\d.)]*(?=\w)|[*`]|(?<![^\W_])_+|_+(?![^\W_])", "", first) or first)
    sentence = re.match(r"(.+?[^\W\d_]{2})[.!?\u3002](?=\s|$|[^\x00-\x7f])", first[:1_000])
    title = sentence[1] if sentence else first.rstrip(".")
    if len(title) <= LONGEST_TITLE:
        return title
    return title[:LONGEST_TITLE].rsplit(" ", 1)[0].rstrip(",;: ")


def clean_tags(tags: Sequence[str] | None) -> list[str]:
    """Without `#` and blanks, in lower case, once each."""
    if isinstance(tags, str):
        tags = tags.split(",")
    return list(dict.fromkeys(filter(None, map(clean_tag, tags or ()))))


def _one_line(text: str) -> str:
    return " ".join(re.sub(r"[\x00-\x1f\x7f]", " ", whole(text)).split())
