"""Tokens for `co serve`: who may read, write or administer a vault. Only their hashes are stored.

Those of a team vault are in its database, so that every server knows them. Others are in `tokens.json`, and not in
activity.db: restoring a backup of it must not bring back a token that was revoked.
"""

from __future__ import annotations

import hashlib
import os
import re
import secrets
import time
from typing import TYPE_CHECKING, Any, Protocol, cast

from co_cli.access import Role, Token
from co_cli.errors import InvalidInputError
from co_cli.notes.files import change_json, read_json
from co_cli.values import fields_of, moment_text

if TYPE_CHECKING:
    from co_cli.team.team_vault import TeamVault  # PostgreSQL's packages are an extra
    from co_cli.vault import Vault

FILE_NAME = "tokens.json"
NAME = re.compile(r"[\w.@-]{1,40}")


class TokenStore(Protocol):
    """Where the tokens of one vault are. Everybody sees a change at once."""

    vault: str

    def add(self, key: str, token: Token) -> bool:
        """Store a token under its hash. False if the vault has one of this name."""
        ...

    def remove(self, name: str) -> Token | None: ...

    def find(self, key: str) -> Token | None: ...

    def all(self) -> list[Token]:
        """Oldest first."""
        ...


def team_of(vault: Vault) -> TeamVault | None:
    """The vault as a team shares it, if one does. `vault.py` knows no other authority."""
    return cast("TeamVault | None", vault.authority)


class AccessTokens:
    """The tokens of one vault."""

    def __init__(self, store: TokenStore) -> None:
        self._store = store

    @classmethod
    def of(cls, vault: Vault) -> AccessTokens:
        team = team_of(vault)
        return cls(team.tokens() if team else FileTokens(vault.settings.data_dir, vault.root))

    def create(self, role: Role, name: str | None = None) -> tuple[str, Token]:
        """A new token, and what is stored about it."""
        secret = secrets.token_urlsafe(32)
        name = name or f"{role}-{secrets.token_hex(3)}"
        token = Token(name, role, self._store.vault, moment_text(time.time()))
        if not NAME.fullmatch(name):
            raise InvalidInputError(
                "a token's name has up to 40 letters, digits and . _ @ -: choose another with --name"
            )
        if not self._store.add(_hash(secret), token):
            raise InvalidInputError(f"there is a token {name} already: choose another --name, or revoke it first")
        return secret, token

    def revoke(self, name: str) -> Token:
        """Remove a token. Running servers refuse it from their next request on."""
        token = self._store.remove(name)
        if token is None:
            raise InvalidInputError(f"there is no token {name!r} for {self._store.vault}: `co token list` lists them")
        return token

    def find(self, secret: str) -> Token | None:
        return self._store.find(_hash(secret)) if secret else None

    def all(self) -> list[Token]:
        return self._store.all()


class FileTokens:
    """In `tokens.json`, for all vaults of a data folder. The file is read again when it has changed."""

    def __init__(self, data_dir: str, vault: str) -> None:
        self.vault, self._path = vault, os.path.join(data_dir, FILE_NAME)
        self._state: object = None
        self._tokens: dict[str, Token] = {}

    def add(self, key: str, token: Token) -> bool:
        added: list[bool] = []

        def change(stored: dict[str, Any]) -> None:
            if token.name not in (known.name for known in self._of_this_vault(stored).values()):
                stored[key] = fields_of(token)
                added.append(True)

        change_json(self._path, change)
        return bool(added)

    def remove(self, name: str) -> Token | None:
        removed: list[Token] = []

        def change(stored: dict[str, Any]) -> None:
            for key, token in self._of_this_vault(stored).items():
                if token.name == name:
                    del stored[key]
                    removed.append(token)

        change_json(self._path, change)
        return removed[0] if removed else None

    def find(self, key: str) -> Token | None:
        return self._read().get(key)

    def all(self) -> list[Token]:
        return list(self._read().values())

    def _read(self) -> dict[str, Token]:
        try:
            found = os.stat(self._path)
            state = (found.st_ino, found.st_mtime_ns, found.st_size)
        except FileNotFoundError:
            state = None
        if state != self._state:
            self._tokens, self._state = self._of_this_vault(read_json(self._path)), state
        return self._tokens

    def _of_this_vault(self, stored: dict[str, Any]) -> dict[str, Token]:
        return {key: Token(**fields) for key, fields in stored.items() if fields["vault"] == self.vault}


def _hash(secret: str) -> str:
    return hashlib.sha256(secret.encode("utf-8", "replace")).hexdigest()
