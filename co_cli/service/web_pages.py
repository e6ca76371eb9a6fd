"""Save web pages as articles, and fetch them again without overwriting anybody's changes.

A page is identified by its normalised URL in `source_url`. `fetched_hash` is the hash of the text as it was fetched: it
shows whether somebody changed the text since. Nothing is written if nothing changed, and a page that its server no
longer has stays and is reported. Every new text gets `provenance: web`.

If there is a loader, it is asked before a new page is fetched. A page that came from one of its tools (`fetched_with`)
is fetched with a tool again, because plain HTTP might return a login page.
"""

from __future__ import annotations

import hashlib
import time
from collections.abc import Callable, Sequence
from typing import Literal, NamedTuple

from co_cli.errors import (
    InvalidInputError,
    KnowledgeError,
    NoteConflictError,
    NoteFileError,
    PageError,
    PageGoneError,
    PageRefusedError,
)
from co_cli.knowledge_index import KnowledgeIndex
from co_cli.notes.editing import render_note
from co_cli.notes.note import Note, NotTextError, read_note
from co_cli.notes.refs import ref_of
from co_cli.notes.secrets import count_masked, reveals_secret, without_secrets
from co_cli.notes.store import NoteStore
from co_cli.service.loading import Loaded, Loader, LoadFailed, UseHttp
from co_cli.service.saving import change_file, clean_tags, title_from
from co_cli.settings import Settings
from co_cli.sources.web.addresses import Exceptions, looks_like_url, read_url, without_credentials
from co_cli.sources.web.extract import Page, read_page
from co_cli.sources.web.fetch import Fetched, Fetcher, Limits, Validators
from co_cli.values import ON_CONFLICT, moment_text

PageOutcome = Literal["created", "updated", "unchanged", "skipped", "missing", "failed"]
NO_LOADER = UseHttp("no loading agent is configured (the settings loading_model and loading_servers)")


class PageReceipt(NamedTuple):
    """The outcome for one page."""

    url: str
    outcome: PageOutcome
    ref: str | None = None
    path: str | None = None
    title: str = ""
    detail: str = ""
    """Why it was skipped, is missing or failed; where an overwritten text is; why the loader could not help."""
    exit_code: int = 0
    """0, or the exit code of the error."""
    masked: int = 0
    """Secrets that were masked before it was written."""


class _Arrived(NamedTuple):
    """A page's new text, and how it was fetched."""

    page: Page
    validators: Validators = Validators()
    fetched_with: str | None = None
    remark: str = ""


class _Conflict(Exception):
    """Overwriting would lose a text."""


def make_fetcher(settings: Settings) -> Fetcher:
    from co_cli import __version__

    return Fetcher(
        Limits(bytes=settings.web_max_bytes, seconds=settings.web_seconds),
        Exceptions.read(settings.web_allow, settings.origins["web_allow"]),
        agent=f"co-cli/{__version__} (keeps single pages for a person's notes)",
    )


class WebPages:
    """The pages of one vault."""

    def __init__(
        self, store: NoteStore, index: KnowledgeIndex, fetcher: Fetcher, largest: int, loader: Loader | None = None
    ) -> None:
        self.store, self.index, self.fetcher, self.largest, self.loader = store, index, fetcher, largest, loader

    def add(self, address: str, on_conflict: str = "skip", tags: Sequence[str] | None = None) -> PageReceipt:
        """Fetch a page and save it. A page that is saved already is skipped, fetched again, or an error."""
        _require(on_conflict)
        with count_masked() as masked:
            return _with(self._add(address, on_conflict, tags), masked)

    def _add(self, address: str, on_conflict: str, tags: Sequence[str] | None) -> PageReceipt:
        try:
            url = read_url(address)
        except PageRefusedError as error:
            return PageReceipt(_shown(address), "failed", detail=str(error), exit_code=error.exit_code)
        known = self.find(url)
        if known is None:
            try:
                arrived = self._new(url)
                with self.store.lock():
                    known = self.find(url)  # somebody may have added it meanwhile
                    path = known or self._create(url, arrived, tags)
            except KnowledgeError as error:
                return _receipt_of(error, url)
            if known is None:
                self.index.embed_saved()
                ref = self.index.ref_of(path) or ref_of(path, "article")
                return PageReceipt(url, "created", ref, self.store.absolute(path), arrived.page.title, arrived.remark)
        return self._add_again(url, known, on_conflict)

    def refresh(
        self,
        paths: Sequence[str],
        on_conflict: str = "skip",
        each: Callable[[PageReceipt], None] | None = None,
        progress: Callable[[int, int], None] | None = None,
    ) -> list[PageReceipt]:
        """Fetch these pages again, one after the other; each is written before the next is asked for."""
        _require(on_conflict)
        receipts: list[PageReceipt] = []
        for path in paths:
            with count_masked() as masked:
                receipts.append(_with(self._refresh_path(path, on_conflict), masked))
            if each:
                each(receipts[-1])
            if progress:
                progress(len(receipts), len(paths))
        return receipts

    def find(self, url: str) -> str | None:
        """The path of the note with this page."""
        for path, value in self.index.field_values("source_url").items():
            if _same_page(value, url) and self._still_says(path, url):
                return path
        return None

    def path_of(self, ref: str, open_note: Callable[[str], Note]) -> str:
        """The path of the note that a URL or a ref names, if it came from a page."""
        if looks_like_url(ref):
            url = read_url(ref)
            path = self.find(url)
            if path is None:
                raise InvalidInputError(f"{url} is not kept here: `co add {url}` fetches it")
            return path
        note = open_note(ref)
        if not note.metadata.get("source_url"):
            raise InvalidInputError(f"{note.ref} has no source_url: there is nothing to fetch")
        return note.path

    def paths(self) -> list[str]:
        """All notes with a `source_url`."""
        return [path for path in self.index.field_values("source_url") if self.store.exists(path)]

    def _add_again(self, url: str, path: str, on_conflict: str) -> PageReceipt:
        note = read_note(path, self.store.read(path))
        if on_conflict == "overwrite":
            return self._refresh_one(url, note, on_conflict, anew=True)
        if on_conflict == "error":
            raise NoteConflictError(
                f"{url} is kept already, as {note.ref}; `co source refresh {note.ref}` fetches it again"
            )
        return self._receipt(note, url, "skipped", "kept already; `co source refresh` fetches it again")

    def _refresh_path(self, path: str, on_conflict: str) -> PageReceipt:
        try:
            note = read_note(path, self.store.read(path))
        except (NoteFileError, NotTextError) as error:
            return PageReceipt("", "failed", path=self.store.absolute(path), detail=f"{path}: {error}", exit_code=3)
        try:
            url = read_url(str(note.metadata.get("source_url")))
        except PageRefusedError as error:
            return self._receipt(note, "", "failed", f"{note.ref}: {error}", error.exit_code)
        return self._refresh_one(url, note, on_conflict)

    def _refresh_one(self, url: str, note: Note, on_conflict: str, anew: bool = False) -> PageReceipt:
        """`anew`: as if it were not saved yet, so that a loader can choose a tool."""
        overwrite = on_conflict == "overwrite"
        try:
            if not overwrite and not note.metadata.get("fetched_hash"):
                raise _Conflict("its text did not come from the web by `co add`")
            arrived = self._new(url, note, overwrite) if anew or _came_with(note) else self._again(url, note, overwrite)
            if arrived is None:
                return self._receipt(note, url, "unchanged")
            return self._renew(url, note.path, arrived, overwrite)
        except _Conflict as conflict:
            why = f"{note.ref}: {conflict}; `--on-conflict overwrite` takes the page's, and puts a copy in the trash"
            if on_conflict == "error":
                raise NoteConflictError(why) from None
            return self._receipt(note, url, "skipped", why)
        except KnowledgeError as error:
            return _receipt_of(error, url)._replace(ref=note.ref, path=self.store.absolute(note.path), title=note.title)

    def _new(self, url: str, note: Note | None = None, overwrite: bool = True) -> _Arrived:
        """The page from the loader, if there is one, else over plain HTTP."""
        before = _came_with(note) if note else ""
        answer = self.loader.load(url, before) if self.loader else NO_LOADER
        if isinstance(answer, Loaded):
            return _Arrived(self._fitting(url, answer.page), fetched_with=answer.fetched_with)
        if isinstance(answer, LoadFailed):
            raise PageError(answer.detail)
        if note and before and not overwrite:
            why = answer.trouble or answer.reason
            raise PageError(
                f"{note.ref} came by {before}: {why}; `--on-conflict overwrite` takes what plain HTTP gives"
            )
        fetched = self.fetcher.fetch(url)
        if fetched is None:
            raise PageRefusedError("the server says that nothing changed, though nothing was asked of it")
        remark = f"by plain HTTP, because {answer.trouble}" if answer.trouble else ""
        return _Arrived(self._read(fetched), fetched.validators, remark=remark)

    def _again(self, url: str, note: Note, overwrite: bool) -> _Arrived | None:
        """The page over plain HTTP, or None if it did not change."""
        fetched = self.fetcher.fetch(url, None if overwrite else _validators(note))
        return fetched and _Arrived(self._read(fetched), fetched.validators)

    def _read(self, fetched: Fetched) -> Page:
        """Extracting has the same time limit as fetching."""
        return self._fitting(fetched.url, read_page(fetched, self.fetcher.limits.seconds))

    def _fitting(self, url: str, page: Page) -> Page:
        size = len(page.text.encode("utf-8", "replace"))
        if size > self.largest:
            raise PageRefusedError(
                f"{url}: {size:,} bytes of text; the limit is {self.largest:,} (the setting knowledge_max_note_bytes)"
            )
        if self.store.secrets != "redact":
            return page
        # masked first, so that what is compared later is what was written
        cut = reveals_secret(page.title, page.text)
        text = without_secrets(page.text, "redact")
        return page._replace(text=text, title=title_from(text) if cut else without_secrets(page.title, "redact"))

    def _create(self, url: str, arrived: _Arrived, tags: Sequence[str] | None) -> str:
        page, now = arrived.page, moment_text(time.time())
        metadata: dict[str, object] = {
            "title": page.title,
            "kind": "article",
            "created": now,
            "tags": clean_tags(tags),
            "provenance": "web",
            "source_url": url,
            **_origin(arrived, now),
        }
        data = render_note(metadata, page.text).encode("utf-8", "replace")
        path = self.store.create("articles", page.title, data, self.index.taken)
        self.index.index_file(None, path, embed=False)
        return path

    def _renew(self, url: str, path: str, arrived: _Arrived, overwrite: bool) -> PageReceipt:
        """Replace the text if the page changed, unless somebody changed the text here."""
        page, detail = arrived.page, arrived.remark
        with self.store.lock():
            data = self.store.read(path)
            note = read_note(path, data)
            if body_hash(page.text) == str(note.metadata.get("fetched_hash")) and not (overwrite and _edited(note)):
                return self._receipt(note, url, "unchanged", detail)
            if _edited(note):
                if not overwrite:
                    raise _Conflict("its text was changed here, and at its origin too")
                kept = f"the text that was here is in {self.store.keep_copy(path)}"
                detail = f"{detail}; {kept}" if detail else kept
            fields = {"provenance": "web", "source_url": url, **_origin(arrived, moment_text(time.time()))}
            change_file(self.store, path, data, page.text, fields)
            self.index.index_file(None, path, embed=False)
        self.index.embed_saved()
        return self._receipt(note, url, "updated", detail)

    def _still_says(self, path: str, url: str) -> bool:
        """Check the file: the index may be older."""
        try:
            note = read_note(path, self.store.read(path)) if self.store.exists(path) else None
        except NotTextError:
            return False
        return note is not None and _same_page(str(note.metadata.get("source_url")), url)

    def _receipt(self, note: Note, url: str, outcome: PageOutcome, detail: str = "", exit_code: int = 0) -> PageReceipt:
        return PageReceipt(url, outcome, note.ref, self.store.absolute(note.path), note.title, detail, exit_code)


def body_hash(text: str) -> str:
    """The hash of a note's text, whatever its line ends."""
    plain = text.replace("\r\n", "\n").strip()
    return hashlib.blake2b(plain.encode("utf-8", "replace"), digest_size=8).hexdigest()


def _shown(address: str) -> str:
    """For a receipt: empty if the URL may contain a password."""
    shown = without_credentials(address.strip())
    return "" if "@" in shown else shown


def _require(on_conflict: str) -> None:
    if on_conflict not in ON_CONFLICT:
        raise InvalidInputError(f"on_conflict is one of {', '.join(ON_CONFLICT)}, not {on_conflict!r}")


def _origin(arrived: _Arrived, now: str) -> dict[str, object]:
    """The fields that say when and how it was fetched. Of the two validators one is enough."""
    etag, last_modified = arrived.validators
    return {
        "fetched": now,
        "fetched_hash": body_hash(arrived.page.text),
        "fetched_with": arrived.fetched_with,
        "etag": etag or None,
        "last_modified": None if etag else last_modified or None,
    }


def _validators(note: Note) -> Validators:
    return Validators(*(str(note.metadata.get(name) or "") for name in ("etag", "last_modified")))


def _came_with(note: Note) -> str:
    return str(note.metadata.get("fetched_with") or "")


def _edited(note: Note) -> bool:
    return body_hash(note.body) != str(note.metadata.get("fetched_hash"))


def _same_page(value: str, url: str) -> bool:
    try:
        return read_url(value) == url
    except PageRefusedError:
        return False


def _with(receipt: PageReceipt, masked: set[str]) -> PageReceipt:
    return receipt._replace(masked=len(masked)) if masked and receipt.outcome in ("created", "updated") else receipt


def _receipt_of(error: KnowledgeError, url: str) -> PageReceipt:
    outcome: PageOutcome = "missing" if isinstance(error, PageGoneError) else "failed"
    return PageReceipt(url, outcome, detail=str(error), exit_code=error.exit_code)
