"""Tokens for `co serve`: who may read, write or administer a vault. Only their hashes are stored.

Those of a team vault are in its database, so that every server knows them. Others are in `tokens.json`, and not in
activity.db: restoring a backup of it must not bring back a token that was revoked.
"""

from __future__ import annotations

import getpass
import hashlib
import os
import re
import secrets
import time
from collections.abc import Callable
from dataclasses import replace
from datetime import datetime
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, cast

from co_cli.activity import acting
from co_cli.ground.access import Role, Token, TokenChange
from co_cli.ground.errors import InvalidInputError, KnowledgeError
from co_cli.ground.values import fields_of, moment_text
from co_cli.notes.files import change_json, read_json, read_state
from co_cli.notes.logbook import logger

if TYPE_CHECKING:
    from co_cli.vault.team.team_vault import TeamVault  # PostgreSQL's packages are an extra
    from co_cli.vault.vault import Vault

FILE_NAME, CHANGES_NAME = "tokens.json", "token-changes.json"
MOST_CHANGES = 1_000
"""That a file keeps."""
DAY, HOUR = 86_400.0, 3_600.0
USE_SECONDS = 300.0
"""How exactly it is known when a token was used last: each note of it is a write."""
log = logger("server")
NAME = re.compile(r"[\w.-]{1,40}")
"""Without the @ that the name of a person has who signs in with OpenID Connect: whose name is recorded is clear."""


class Stored(NamedTuple):
    """A token in a file, and whether another one replaced it."""

    token: Token
    replaced: bool


class TokenStore(Protocol):
    """Where the tokens of one vault are, under their hashes. Everybody sees a change at once, and each is recorded."""

    vault: str

    def add(self, key: str, token: Token, change: TokenChange) -> bool:
        """False if the vault has one of this name."""
        ...

    def replace(self, key: str, token: Token, until: str, change: TokenChange) -> bool:
        """Store this one instead of that of the same name, which works until then. False if there is none."""
        ...

    def remove(self, name: str, change: TokenChange) -> Token | None: ...

    def find(self, key: str) -> Token | None:
        """Also one that has expired, or was replaced."""
        ...

    def all(self) -> list[Token]:
        """Oldest first."""
        ...

    def use(self, key: str, moment: str) -> None:
        """Note when it was used last."""
        ...

    def changes(self, limit: int) -> list[TokenChange]:
        """Newest first."""
        ...


def team_of(vault: Vault) -> TeamVault | None:
    """The vault as a team shares it, if one does. `vault.py` knows no other authority."""
    return cast("TeamVault | None", vault.authority)


class AccessTokens:
    """The tokens of one vault."""

    def __init__(self, store: TokenStore) -> None:
        self._store = store
        self.vault = store.vault
        self._used: dict[str, float] = {}

    @classmethod
    def of(cls, vault: Vault) -> AccessTokens:
        team = team_of(vault)
        return cls(team.tokens() if team else FileTokens(vault.settings.data_dir, vault.root))

    def create(self, role: Role, name: str | None = None, days: float = 0, per_second: int = 0) -> tuple[str, Token]:
        """A new token, and what is stored about it. It expires after this many days; 0: never."""
        secret, now = secrets.token_urlsafe(32), time.time()
        name = name or f"{role}-{secrets.token_hex(3)}"
        expires = moment_text(now + days * DAY) if days else ""
        token = Token(name, role, self._store.vault, moment_text(now), expires, per_second)
        if not NAME.fullmatch(name):
            raise InvalidInputError("a token's name has up to 40 letters, digits and . _ -: choose another with --name")
        if not self._store.add(_hash(secret), token, _change(f"created the token {name} ({role})")):
            raise InvalidInputError(f"there is a token {name} already: choose another --name, or revoke it first")
        return secret, token

    def rotate(self, name: str, keep_hours: float = 0) -> tuple[str, Token]:
        """A new secret for a token, which is valid for as long as the old one was. The old one works for some hours."""
        secret, now = secrets.token_urlsafe(32), time.time()
        old = next((token for token in self.all() if token.name == name), None)
        if old is None:
            raise self._unknown(name)
        expires = moment_text(now + _seconds(old.expires) - _seconds(old.created)) if old.expires else ""
        token = replace(old, created=moment_text(now), expires=expires, last_used="")
        change = _change(f"rotated the token {name} ({old.role})")
        if not self._store.replace(_hash(secret), token, moment_text(now + keep_hours * HOUR), change):
            raise self._unknown(name)
        return secret, token

    def revoke(self, name: str) -> Token:
        """Remove a token, and the one that it replaced. Running servers refuse both from their next request on."""
        token = self._store.remove(name, _change(f"revoked the token {name}"))
        if token is None:
            raise self._unknown(name)
        return token

    def find(self, secret: str) -> Token | None:
        key, now = _hash(secret), time.time()
        token = self._store.find(key) if secret else None
        if token is None or token.has_expired(moment_text(now)):
            return None
        if now - self._used.get(key, 0) > USE_SECONDS:
            self._used[key] = now
            try:
                self._store.use(key, moment_text(now))
            except (KnowledgeError, OSError) as error:  # a token works even if nothing can be written
                log.warning("when %s was used is not recorded: %s", token.name, error)
        return token

    def all(self) -> list[Token]:
        return self._store.all()

    def changes(self, limit: int = 100) -> list[TokenChange]:
        return self._store.changes(limit)

    def _unknown(self, name: str) -> InvalidInputError:
        return InvalidInputError(f"there is no token {name!r} for {self._store.vault}: `co token list` lists them")


class FileTokens:
    """In `tokens.json`, for all vaults of a data folder. The file is read again when it has changed."""

    def __init__(self, data_dir: str, vault: str) -> None:
        self.vault, self._path = vault, os.path.join(data_dir, FILE_NAME)
        self._changes = os.path.join(data_dir, CHANGES_NAME)
        self._known: tuple[object, dict[str, Stored]] = (None, {})

    def add(self, key: str, token: Token, change: TokenChange) -> bool:
        def add_if_new(stored: dict[str, Any]) -> bool:
            known = (found.token.name for found in self._of_this_vault(stored).values() if not found.replaced)
            if is_new := token.name not in known:
                stored[key] = fields_of(token)
            return is_new

        return self._change(add_if_new, change)

    def replace(self, key: str, token: Token, until: str, change: TokenChange) -> bool:
        def replace_known(stored: dict[str, Any]) -> bool:
            known = self._of_this_vault(stored)
            old = [each for each, found in known.items() if found.token.name == token.name and not found.replaced]
            for each in old:
                stored[each] |= {"replaced": True, "expires": min(stored[each].get("expires") or until, until)}
                stored[key] = fields_of(token)
            for each, found in known.items():
                if found.replaced and found.token.has_expired(token.created):
                    del stored[each]
            return bool(old)

        return self._change(replace_known, change)

    def remove(self, name: str, change: TokenChange) -> Token | None:
        removed: list[Token] = []

        def remove_known(stored: dict[str, Any]) -> bool:
            for key, found in sorted(self._of_this_vault(stored).items(), key=lambda item: item[1].replaced):
                if found.token.name == name:
                    del stored[key]
                    removed.append(found.token)
            return bool(removed)

        return removed[0] if self._change(remove_known, change) else None

    def find(self, key: str) -> Token | None:
        found = self._read().get(key)
        return found.token if found else None

    def all(self) -> list[Token]:
        return [found.token for found in self._read().values() if not found.replaced]

    def use(self, key: str, moment: str) -> None:
        def note_use(stored: dict[str, Any]) -> None:
            if key in stored:
                stored[key]["last_used"] = moment

        change_json(self._path, note_use)

    def changes(self, limit: int) -> list[TokenChange]:
        return [TokenChange(*row) for row in reversed(read_json(self._changes).get(self.vault, []))][:limit]

    def _change(self, change: Callable[[dict[str, Any]], bool], done: TokenChange) -> bool:
        """Change the tokens, and record it if something was changed."""
        changed: list[bool] = []
        change_json(self._path, lambda stored: changed.append(change(stored)))
        if changed == [True]:
            change_json(self._changes, self._recorder(done))
        return changed == [True]

    def _recorder(self, done: TokenChange) -> Callable[[dict[str, Any]], None]:
        def record(stored: dict[str, Any]) -> None:
            stored[self.vault] = [*stored.get(self.vault, []), [*done]][-MOST_CHANGES:]

        return record

    def _read(self) -> dict[str, Stored]:
        try:
            found = os.stat(self._path)
            state = (found.st_ino, found.st_mtime_ns, found.st_size)
        except FileNotFoundError:
            state = None
        before, tokens = self._known  # other threads may read the file now, too
        if state != before:
            tokens = self._of_this_vault(read_state(self._path))
            self._known = (state, tokens)
        return tokens

    def _of_this_vault(self, stored: dict[str, Any]) -> dict[str, Stored]:
        return {
            key: Stored(
                Token(**{name: value for name, value in fields.items() if name != "replaced"}), "replaced" in fields
            )
            for key, fields in stored.items()
            if fields["vault"] == self.vault
        }


def _change(action: str) -> TokenChange:
    return TokenChange(moment_text(time.time()), acting.get() or f"cli:{getpass.getuser()}", action)


def _seconds(moment: str) -> float:
    return datetime.fromisoformat(moment).timestamp()


def _hash(secret: str) -> str:
    return hashlib.sha256(secret.encode("utf-8", "replace")).hexdigest()
