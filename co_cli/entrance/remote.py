"""A vault on a server (`co serve`): the methods of KnowledgeBase that agents and commands need, over the HTTP API.

The server searches, saves and records. Methods that need the files raise an error.
"""

from __future__ import annotations

import calendar
import contextlib
import os
import time
from typing import TYPE_CHECKING, Any, TypeVar
from urllib.parse import quote
from uuid import uuid4

from co_cli.ground import errors
from co_cli.ground.errors import InvalidInputError, KnowledgeError, ServerUnavailableError, error_kind
from co_cli.ground.hits import SearchResult
from co_cli.ground.reports import Progress, SyncReport
from co_cli.ground.saves import ChangeOptions, DraftOptions, Forgotten, Saved
from co_cli.ground.settings import load_settings
from co_cli.ground.summaries import NoteSummary, Status
from co_cli.ground.values import OWN_SOURCES
from co_cli.index.filter_table import OPTIONS, FilterOptions
from co_cli.index.links import Backlink, Link
from co_cli.notes.note import Note
from co_cli.notes.refs import without_lines
from co_cli.searching.context import Context
from co_cli.searching.note_details import NoteView
from co_cli.searching.requests import SearchOptions, check_known

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence
    from typing import NoReturn, Unpack

    import httpx2

Answer = TypeVar("Answer")

TOKEN_VARIABLE = "CO_TOKEN"
SECONDS = 60.0
"""How long an answer may take."""
PAUSE = 1.0
"""Before a save that got no answer is sent again."""
TRIES = 5
"""Of a request that the server's limit refuses."""
MOST_REFS = 50
"""Refs in one request: an address has at most 64 KB."""
ELSEWHERE = "this is not available over a server: run it where the vault is"


class RemoteKnowledgeBase(contextlib.AbstractContextManager["RemoteKnowledgeBase"]):
    """Made by `KnowledgeBase.connect`. `root` is the address of the server."""

    def __init__(self, url: str, token: str | None = None) -> None:
        import httpx2  # takes longer than a search

        if not url.startswith(("http://", "https://")):
            raise InvalidInputError(f"a server is an address such as https://notes.example, not {url!r}")
        token = (token or os.environ.get(TOKEN_VARIABLE, "")).strip()
        if not token or not token.isascii() or " " in token:
            raise InvalidInputError(f"{url} needs a token in CO_TOKEN; its admin creates one with `co token create`")
        self.settings, self.root, self._token = load_settings(), url.rstrip("/").removesuffix("/api/v1"), token
        self._folder: str | None = None
        self._http = httpx2.Client(
            base_url=f"{self.root}/api/v1",
            headers={"Authorization": f"Bearer {token}"},
            timeout=SECONDS,
            verify=url.startswith("https"),  # loading certificates takes time
        )

    @property
    def local(self) -> NoReturn:
        raise InvalidInputError(ELSEWHERE)

    @property
    def server(self) -> RemoteKnowledgeBase:
        return self

    @property
    def captures(self) -> bool:
        """The files and settings of conversations are elsewhere."""
        return False

    def __exit__(self, *error: object) -> None:
        self.close()

    def __deepcopy__(self, memo: object) -> RemoteKnowledgeBase:
        """It is a handle: copies of what holds it share it."""
        return self

    def _folder_there(self) -> str:
        """The folder of the vault there, with a slash. Asked for once."""
        if self._folder is None:
            self._folder = f"{self.ask('GET', '/session', dict[str, object])['vault']}/"
        return self._folder

    def __reduce__(self) -> tuple[object, ...]:
        return RemoteKnowledgeBase, (self.root, self._token)

    def close(self) -> None:
        self._http.close()

    def ask(self, method: str, path: str, answer: type[Answer], /, **values: Any) -> Answer:
        """Ask a route of the API. Its errors are raised here as they would be raised there."""
        return self._ask(method, path, answer, values)

    def _ask(self, method: str, path: str, answer: type[Answer], values: dict[str, Any], key: str = "") -> Answer:
        """`key`: a save that the server makes once, so that it can be sent again if no answer comes."""
        found = self._send(method, path, values, key)
        for _ in range(TRIES):
            if found.status_code == 429:
                time.sleep(float(found.headers.get("retry-after", 1)))
                found = self._send(method, path, values, key)
        if found.is_success:
            with contextlib.suppress(ValueError):  # a page, or the answer of some other server
                return _checked(answer, found.json())
        raise self._error(found, path)

    def _send(self, method: str, path: str, values: dict[str, Any], key: str = "") -> httpx2.Response:
        import httpx2

        given = {name: value for name, value in values.items() if value is not None}
        sent: dict[str, Any] = {"params": given} if method in ("GET", "DELETE") else {"json": given}
        sent |= {"headers": {"Idempotency-Key": key}} if key else {}
        try:
            with contextlib.suppress(httpx2.TransportError) if key else contextlib.nullcontext():
                return self._http.request(method, path, **sent)
            time.sleep(PAUSE)  # the connection broke or timed out
            return self._http.request(method, path, **sent)
        except httpx2.HTTPError as error:
            reason = str(error) or type(error).__name__
            raise ServerUnavailableError(f"{self.root} does not answer ({reason}): is `co serve` running?") from None

    def _error(self, found: httpx2.Response, path: str) -> KnowledgeError:
        if found.status_code == 401:
            return InvalidInputError(
                f"{self.root} does not know this token: was it revoked, or made for another vault?"
            )
        try:
            told = found.json()["error"]
            message, kind = str(told["message"]), str(told["kind"])
        except (ValueError, KeyError, TypeError):
            text = f"{self.root} answered {found.status_code}: is this the address of a `co serve`?"
            return ServerUnavailableError(text)
        every = (
            error_class
            for error_class in vars(errors).values()
            if isinstance(error_class, type) and issubclass(error_class, KnowledgeError)
        )
        made = {error_kind(error_class): error_class for error_class in every}.get(kind, InvalidInputError)
        error = made.__new__(made, message)  # not `__init__`: the message is complete
        vars(error).update(ref=path.partition("/notes/")[2], closest=told["closest"], present=told["present"])
        return error

    # -- the methods of KnowledgeBase --------------------------------------------------------------------------------

    def search(
        self, query: str, limit: int = 10, *, track: bool = True, **options: Unpack[SearchOptions]
    ) -> SearchResult:
        """The server logs the search, unless `track` is False."""
        check_known(options, SearchOptions)
        if options.pop("reranker", None):
            raise InvalidInputError("a reranker is not available over a server: leave it out")
        return self.ask("POST", "/search", SearchResult, q=query, limit=limit, track=track, **options)

    def track(self, found: SearchResult) -> None:
        """The server has logged it."""

    def sync(self, progress: Progress | None = None, seconds: float | None = None) -> SyncReport:
        """The server watches its files."""
        return SyncReport()

    def embed(self, seconds: float | None = None, progress: Progress | None = None) -> bool:
        """The server does so."""
        return False

    def catch_up(self) -> None:
        """The server does so before it answers."""

    def remember(self, content: str, title: str | None = None, **options: Unpack[DraftOptions]) -> Saved:
        """`ack="pushed"` waits until a team's server has pushed it."""
        if options.pop("tier", None):
            raise InvalidInputError("a server has one vault: leave out the tier")
        said = {"content": content, "title": title, **options}
        return self._ask("POST", "/notes", Saved, said, str(uuid4()))

    def update(self, ref: str, content: str | None = None, **changes: Unpack[ChangeOptions]) -> Saved:
        return self.ask("PUT", _path(ref), Saved, content=content, **changes)

    def forget(self, ref: str) -> Forgotten:
        return self.ask("DELETE", _path(ref), Forgotten)

    def restore(self, ref: str) -> Saved:
        return self.ask("POST", "/restored", Saved, ref=ref)

    def note(self, ref: str, track: bool = False) -> Note:
        told = self._view(without_lines(ref), dict[str, Any], opened=track)
        fields = {name: told[name] for name in Note.__dataclass_fields__} | {
            "links": [link["target"] for link in told["links"]],
            "created": _seconds(told["created"]),
            "updated": _seconds(told["updated"]),
        }
        return _checked(Note, fields)

    def bodies(self, refs: Sequence[str]) -> dict[str, str]:
        found: dict[str, str] = {}
        for start in range(0, len(refs), MOST_REFS):
            found |= self.ask("GET", "/bodies", dict[str, str], ref=refs[start : start + MOST_REFS])
        return found

    def notes(
        self, source: str | Sequence[str] | None = None, limit: int | None = None, **filters: Unpack[FilterOptions]
    ) -> list[NoteSummary]:
        """The filters of KnowledgeBase, except `as_of` and `outdated`."""
        check_known(filters, FilterOptions)
        given: dict[str, Any] = {OPTIONS[name].word: value for name, value in filters.items()}
        for entry in OPTIONS.values():
            if entry.form == "pairs" and entry.word in given:
                pairs = dict[str, str](given[entry.word] or ())
                given[entry.word] = [f"{key}={value}" for key, value in pairs.items()]
        return self.ask("GET", "/notes", list[NoteSummary], source=source or OWN_SOURCES, limit=limit or 0, **given)

    def tags(self, source: str | None = None) -> dict[str, int]:
        return self.ask("GET", "/tags", dict[str, int], source=source)

    def outdated(self, note: Note) -> str | None:
        return self._view(note.ref, dict[str, Any])["outdated"]

    def view(self, ref: str, note: Note) -> NoteView:
        return self._view(ref, NoteView)

    def _view(self, ref: str, view: type[Answer], **options: Any) -> Answer:
        """Everything about a note that the API shows, with its path inside the vault."""
        told = self.ask("GET", _path(ref), dict[str, Any], **options)
        return _checked(view, {**told, "path": told["path"].removeprefix(self._folder_there())})

    def links(self, ref: str, targets: Sequence[str] | None = None) -> tuple[list[Link], list[Backlink]]:
        told = self._view(ref, dict[str, Any])
        links = [Link(link["target"], link["ref"]) for link in told["links"]]
        return links, [Backlink(**link) for link in told["linked_from"]]

    def status(self) -> Status:
        return self.ask("GET", "/status", Status)

    def always_notes(self) -> Context:
        return self.ask("POST", "/context", Context)

    def matching_notes(self, prompt: str, seen: Collection[str] = ()) -> Context:
        return self.ask("POST", "/context", Context, prompt=prompt, seen=sorted(seen))

    def untrusted_vaults(self, degraded: Collection[str] = ()) -> list[str]:
        """The server's admin decides what it adds."""
        return []

    def injected(
        self,
        notes: Sequence[Mapping[str, Any]],
        conversation: str | None = None,
        run: str | None = None,
        prompt: str = "",
        given: str = "",
    ) -> None:
        """Recorded only next to the files."""

    def cited(self, text: str, conversation: str | None = None, run: str | None = None) -> None:
        """Recorded only next to the files."""


def _checked(kind: type[Answer], value: object) -> Answer:
    from pydantic import TypeAdapter  # takes longer than a search

    return TypeAdapter(kind).validate_python(value)


def _path(ref: str) -> str:
    return f"/notes/{quote(ref, safe='/:')}"


def _seconds(moment: str | None) -> float | None:
    return None if moment is None else float(calendar.timegm(time.strptime(moment, "%Y-%m-%dT%H:%M:%SZ")))
