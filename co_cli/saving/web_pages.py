"""Save web pages as articles, and fetch them again without overwriting anybody's changes.

A page is identified by its normalised URL in `source_url`. `fetched_hash` is the hash of the text as it was fetched: it
shows whether somebody changed the text since. Nothing is written if nothing changed, and a page that its server no
longer has stays and is reported. Every new text gets `provenance: web`.

A loader, if there is one, is asked before a new page is fetched. A page that came from one of its tools
(`fetched_with`) is fetched with a tool again, because plain HTTP might return a login page.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from fnmatch import fnmatch
from html import escape
from typing import Literal, NamedTuple, Protocol

from co_cli.ground.errors import (
    InvalidInputError,
    KnowledgeError,
    NoteConflictError,
    NoteFileError,
    PageError,
    PageGoneError,
    PageRefusedError,
)
from co_cli.ground.saves import ON_CONFLICT
from co_cli.ground.settings import Settings
from co_cli.ground.values import moment_text
from co_cli.notes.editing import render_note
from co_cli.notes.encoding import NotTextError
from co_cli.notes.new_note import clean_tags
from co_cli.notes.note import Note, read_note
from co_cli.notes.refs import ref_of
from co_cli.notes.revision import change_file
from co_cli.notes.secrets import count_masked, reveals_secret, without_secrets
from co_cli.notes.similarity import body_hash
from co_cli.notes.subjects import title_from
from co_cli.sources.web import looks_like_url
from co_cli.sources.web.addresses import Exceptions, read_url, without_credentials
from co_cli.sources.web.extract import ALL_TEXT, Page, read_page
from co_cli.sources.web.fetch import Fetched, Fetcher, Limits, Validators
from co_cli.vault.origins import is_glob
from co_cli.vault.vault import Vault
from co_cli.version import __version__

PageOutcome = Literal["created", "updated", "unchanged", "skipped", "missing", "failed"]


class Loaded(NamedTuple):
    """A loader's answer: the whole document, ready to be saved."""

    page: Page
    fetched_with: str
    """The tool it came from, as `server/tool`."""


class UseHttp(NamedTuple):
    """A loader's answer: fetch the page over plain HTTP instead."""

    reason: str
    trouble: str = ""
    """Why the loader could not work, for the user. Empty if plain HTTP was its choice."""


class LoadFailed(NamedTuple):
    """A loader's answer: it knows the right tool, but cannot get the document."""

    detail: str
    """What is wrong and what the user can do about it, on one line."""


LoaderAnswer = Loaded | UseHttp | LoadFailed
BROWSER, SELECTION = "browser", "selection"
"""`fetched_with` of a page, and of a part of one, that a browser handed over: fetching might return a login page."""
NO_LOADER = UseHttp("no loading agent is configured (the settings loading_model and loading_servers)")


class Loader(Protocol):
    """Asked before a URL is fetched. Raises KnowledgeError if it is configured wrongly."""

    def load(self, url: str, before: str = "") -> LoaderAnswer:
        """`before` is the `server/tool` that this page came from last time."""
        ...


@dataclass(frozen=True, slots=True)
class PageReceipt:
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

    def fields(self, url: str) -> dict[str, object]:
        """Where it came from, when and how. Of the two validators one is enough."""
        etag, last_modified = self.validators
        return {
            "provenance": "web",
            "source_url": url,
            "fetched": moment_text(time.time()),
            "fetched_hash": None if self.fetched_with in (BROWSER, SELECTION) else body_hash(self.page.text),
            "fetched_with": self.fetched_with,
            "etag": etag or None,
            "last_modified": None if etag else last_modified or None,
        }


class _Conflict(Exception):
    """Overwriting would lose a text."""


def make_fetcher(settings: Settings) -> Fetcher:
    return Fetcher(
        Limits(bytes=settings.web_max_bytes, seconds=settings.web_seconds),
        Exceptions.read(settings.web_allow, settings.set_by["web_allow"]),
        agent=f"co-cli/{__version__} (keeps single pages for a person's notes)",
    )


class WebPages:
    """The pages of one vault."""

    def __init__(
        self,
        vault: Vault,
        open_note: Callable[[str], Note],
        fetcher: Fetcher | None = None,
        loader: Loader | None = None,
    ) -> None:
        """`open_note` opens a note by its ref."""
        self._settings, self.store, self.index, self.loader = vault.settings, vault.store, vault.index, loader
        self._require_room = vault.require_room
        self.fetcher, self._open_note = fetcher or make_fetcher(vault.settings), open_note

    def add(self, address: str, on_conflict: str = "skip", tags: Sequence[str] | None = None) -> PageReceipt:
        """Fetch a page and save it. A page that is saved already is skipped, fetched again, or an error."""
        return _counting_masked(on_conflict, lambda: self._add(address, on_conflict, tags))

    def clip(self, address: str, html: str, title: str = "", selection: str = "") -> PageReceipt:
        """Save a page as a browser shows it, or only the HTML that was selected. Nothing is fetched, now or later."""

        def read(url: str) -> _Arrived:
            markup = f"<title>{escape(title)}</title>{selection}" if selection else html
            body, limits = markup.encode("utf-8", "replace"), self.fetcher.limits
            if len(body) > limits.bytes:
                size = f"{len(body):,} bytes of HTML; the limit is {limits.bytes:,} (the setting web_max_bytes)"
                raise PageRefusedError(f"{url}: {size}; select the part that you want")
            fetched = Fetched(url, "text/html", "utf-8", body, Validators())
            page = read_page(fetched, limits.seconds, ALL_TEXT if selection else 0.0)
            return _Arrived(self._checked(url, page), fetched_with=SELECTION if selection else BROWSER)

        return _counting_masked("skip", lambda: self._add(address, "skip", read=read))

    def refresh(self, path: str, on_conflict: str = "skip") -> PageReceipt:
        """Fetch the page of one note again."""
        return _counting_masked(on_conflict, lambda: self._refresh(path, on_conflict))

    def paths(self, refs: Sequence[str] | None = None) -> list[str]:
        """The paths of all notes with a `source_url`, or of those that refs, URLs or globs name."""
        known = [path for path in self.index.notes.field_values("source_url") if self.store.exists(path)]
        if refs is None:
            return known
        named: list[str] = []
        for ref in refs:
            if is_glob(ref) and not looks_like_url(ref):
                named += [path for path in known if fnmatch(path, ref) or fnmatch(ref_of(path, "article"), ref)]
            else:
                named.append(self._path_of(ref))
        return list(dict.fromkeys(named))

    def find(self, url: str, arrived: _Arrived | None = None) -> str | None:
        """The path of the note with this page, or with the selection that arrived.

        The file is checked, because the index may be older.
        """
        selected = body_hash(arrived.page.text) if arrived and arrived.fetched_with == SELECTION else None
        for path, value in self.index.notes.field_values("source_url").items():
            if _is_page(value, url) and self.store.exists(path):
                with suppress(NotTextError):
                    note = read_note(path, self.store.read(path))
                    own = body_hash(note.body) if note.metadata.get("fetched_with") == SELECTION else None
                    if own == selected and _is_page(str(note.metadata.get("source_url")), url):
                        return path
        return None

    def _path_of(self, ref: str) -> str:
        if looks_like_url(ref):
            url = read_url(ref)
            path = self.find(url)
            if path is None:
                raise InvalidInputError(f"{url} is not saved here: `co add {url}` saves it")
            return path
        note = self._open_note(ref)
        if not note.metadata.get("source_url"):
            raise InvalidInputError(f"{note.ref} has no source_url: there is nothing to fetch")
        return note.path

    def _add(
        self,
        address: str,
        on_conflict: str,
        tags: Sequence[str] | None = None,
        read: Callable[[str], _Arrived] | None = None,
    ) -> PageReceipt:
        """`read` gives the page of a URL that is not fetched."""
        try:
            url = read_url(address)
        except PageRefusedError as error:
            shown = without_credentials(address.strip())
            return _failure(error, "" if "@" in shown else shown)
        known = None if read else self.find(url)
        if known is None:
            try:
                arrived = (read or self._load)(url)
                with self.store.lock():
                    known = self.find(url, arrived)  # another process may have added it
                    path = known or self._create(url, arrived, tags)
            except KnowledgeError as error:
                return _failure(error, url)
            if known is None:
                self.index.embed_saved()
                ref = self.index.notes.ref_of(path) or ref_of(path, "article")
                return PageReceipt(url, "created", ref, self.store.absolute(path), arrived.page.title, arrived.remark)
        note = read_note(known, self.store.read(known))
        if on_conflict == "overwrite":
            return self._renew(url, note, on_conflict, ask_loader=True)
        if on_conflict == "error":
            raise NoteConflictError(
                f"{url} is saved already, as {note.ref}; `co source refresh {note.ref}` fetches it again"
            )
        return self._receipt(note, url, "skipped", "saved already; `co source refresh` fetches it again")

    def _refresh(self, path: str, on_conflict: str) -> PageReceipt:
        try:
            note = read_note(path, self.store.read(path))
        except (NoteFileError, NotTextError) as error:
            return PageReceipt("", "failed", path=self.store.absolute(path), detail=f"{path}: {error}", exit_code=3)
        try:
            url = read_url(str(note.metadata.get("source_url")))
        except PageRefusedError as error:
            return replace(self._receipt(note, "", "failed", f"{note.ref}: {error}"), exit_code=error.exit_code)
        return self._renew(url, note, on_conflict, ask_loader=bool(note.metadata.get("fetched_with")))

    def _renew(self, url: str, note: Note, on_conflict: str, ask_loader: bool) -> PageReceipt:
        """Fetch a page again, and save it if it changed and nobody changed the text here."""
        overwrite = on_conflict == "overwrite"
        try:
            if not overwrite and not note.metadata.get("fetched_hash"):
                raise _Conflict("its text did not come from the web by `co add`")
            if ask_loader:
                return self._replace(url, note.path, self._load(url, note, overwrite), overwrite)
            known = Validators(*(str(note.metadata.get(name) or "") for name in ("etag", "last_modified")))
            fetched = self.fetcher.fetch(url, None if overwrite else known)
            if fetched is None:
                return self._receipt(note, url, "unchanged")
            return self._replace(url, note.path, _Arrived(self._read(fetched), fetched.validators), overwrite)
        except _Conflict as conflict:
            why = f"{conflict}; `--on-conflict overwrite` takes the page's, and puts a copy in the trash"
            if on_conflict == "error":
                raise NoteConflictError(f"{note.ref}: {why}") from None
            return self._receipt(note, url, "skipped", why)
        except KnowledgeError as error:
            return replace(_failure(error, url), ref=note.ref, path=self.store.absolute(note.path), title=note.title)

    def _load(self, url: str, note: Note | None = None, overwrite: bool = True) -> _Arrived:
        """The page from the loader, if there is one, else over plain HTTP."""
        before = str(note.metadata.get("fetched_with") or "") if note else ""
        answer = self.loader.load(url, before) if self.loader else NO_LOADER
        if isinstance(answer, Loaded):
            return _Arrived(self._checked(url, answer.page), fetched_with=answer.fetched_with)
        if isinstance(answer, LoadFailed):
            raise PageError(answer.detail)
        if note and before and not overwrite:
            why = answer.trouble or answer.reason
            raise PageError(
                f"{note.ref} came by {before}: {why}; `--on-conflict overwrite` takes what plain HTTP gives"
            )
        fetched = self.fetcher.fetch(url)
        if fetched is None:
            raise PageRefusedError("the server answered 304 (not modified) to a plain request")
        remark = f"by plain HTTP, because {answer.trouble}" if answer.trouble else ""
        return _Arrived(self._read(fetched), fetched.validators, remark=remark)

    def _read(self, fetched: Fetched) -> Page:
        """Extracting has the same time limit as fetching."""
        return self._checked(fetched.url, read_page(fetched, self.fetcher.limits.seconds))

    def _checked(self, url: str, page: Page) -> Page:
        """The page without secrets. Raises PageRefusedError if it is too large for a note."""
        size, most = len(page.text.encode("utf-8", "replace")), self._settings.knowledge_max_note_bytes
        if size > most:
            raise PageRefusedError(
                f"{url}: {size:,} bytes of text; the limit is {most:,} (the setting knowledge_max_note_bytes)"
            )
        if self.store.secrets != "redact":
            return page
        # masked before it is hashed, so that the hash is of what was written
        text, revealed = without_secrets(page.text, "redact"), reveals_secret(page.title, page.text)
        return Page(title_from(text) if revealed else without_secrets(page.title, "redact"), text)

    def _create(self, url: str, arrived: _Arrived, tags: Sequence[str] | None) -> str:
        self._require_room()
        title, fields = arrived.page.title, arrived.fields(url)
        own = {"title": title, "kind": "article", "created": fields["fetched"], "tags": clean_tags(tags)}
        data = render_note({**own, **fields}, arrived.page.text).encode("utf-8", "replace")
        path = self.store.create("articles", title, data, self.index.notes.taken)
        self.index.index_file(None, path, embed=False)
        return path

    def _replace(self, url: str, path: str, arrived: _Arrived, overwrite: bool) -> PageReceipt:
        """Save the new text if the page changed. Raises _Conflict if somebody changed the text here."""
        page, detail = arrived.page, arrived.remark
        with self.store.lock():
            data = self.store.read(path)
            note = read_note(path, data)
            before = str(note.metadata.get("fetched_hash"))
            edited = body_hash(note.body) != before
            if body_hash(page.text) == before and not (overwrite and edited):
                return self._receipt(note, url, "unchanged", detail)
            if edited:
                if not overwrite:
                    raise _Conflict("its text was changed here, and at its origin too")
                kept = f"the text that was here is in {self.store.keep_copy(path)}"
                detail = f"{detail}; {kept}" if detail else kept
            change_file(self.store, path, data, page.text, arrived.fields(url))
            self.index.index_file(None, path, embed=False)
        self.index.embed_saved()
        return self._receipt(note, url, "updated", detail)

    def _receipt(self, note: Note, url: str, outcome: PageOutcome, detail: str = "") -> PageReceipt:
        return PageReceipt(url, outcome, note.ref, self.store.absolute(note.path), note.title, detail)


def _counting_masked(on_conflict: str, work: Callable[[], PageReceipt]) -> PageReceipt:
    """The receipt, with the number of secrets that were masked in what was written."""
    if on_conflict not in ON_CONFLICT:
        raise InvalidInputError(f"on_conflict must be one of {', '.join(ON_CONFLICT)}, not {on_conflict!r}")
    with count_masked() as masked:
        receipt = work()
    return replace(receipt, masked=len(masked)) if receipt.outcome in ("created", "updated") else receipt


def _is_page(value: str, url: str) -> bool:
    try:
        return read_url(value) == url
    except PageRefusedError:
        return False


def _failure(error: KnowledgeError, url: str) -> PageReceipt:
    outcome: PageOutcome = "missing" if isinstance(error, PageGoneError) else "failed"
    return PageReceipt(url, outcome, detail=str(error), exit_code=error.exit_code)
