"""Tokens for `co serve`: who may read, write or administer a vault. Only their hashes are stored, in `tokens.json`.

They are not in activity.db: restoring a backup of it must not bring back a token that was revoked.
"""

from __future__ import annotations

import hashlib
import os
import re
import secrets
import time
from typing import Any, Literal, NamedTuple, get_args

from co_cli.errors import InvalidInputError
from co_cli.notes.files import change_json, read_json
from co_cli.values import moment_text

FILE_NAME = "tokens.json"
Role = Literal["read", "write", "admin"]
ROLES: tuple[Role, ...] = get_args(Role)
"""Each may do what those before it may."""
NAME = re.compile(r"[\w.@-]{1,40}")


class Token(NamedTuple):
    """What is known about a token. The token itself is shown once, when it is created."""

    name: str
    """Whose it is. Recorded with everything that is saved with it."""
    role: Role
    vault: str
    """The only vault that it opens."""
    created: str = ""

    def may(self, role: Role) -> bool:
        return ROLES.index(self.role) >= ROLES.index(role)


def create_token(data_dir: str, vault: str, role: Role, name: str | None = None) -> tuple[str, Token]:
    """A new token, and what is stored about it."""
    secret = secrets.token_urlsafe(32)
    token = Token(name or f"{role}-{secrets.token_hex(3)}", role, vault, moment_text(time.time()))
    if not NAME.fullmatch(token.name):
        raise InvalidInputError("a token's name has up to 40 letters, digits and . _ @ -: choose another with --name")

    def add(stored: dict[str, Any]) -> None:
        if any(one["name"] == token.name for one in stored.values()):
            raise InvalidInputError(f"there is a token {token.name} already: choose another --name, or revoke it first")
        stored[_hash(secret)] = token._asdict()

    change_json(os.path.join(data_dir, FILE_NAME), add)
    return secret, token


def list_tokens(data_dir: str) -> list[Token]:
    """All tokens, oldest first."""
    return list(_read(data_dir).values())


def revoke_token(data_dir: str, name: str) -> Token:
    """Remove a token. Running servers refuse it from their next request on."""
    revoked: list[Token] = []

    def remove(stored: dict[str, Any]) -> None:
        for key in [key for key, one in stored.items() if one["name"] == name]:
            revoked.append(Token(**stored.pop(key)))

    change_json(os.path.join(data_dir, FILE_NAME), remove)
    if not revoked:
        raise InvalidInputError(f"there is no token {name!r}: `co token list` lists them")
    return revoked[0]


class VaultTokens:
    """The tokens of one vault, read again when the file has changed."""

    def __init__(self, data_dir: str, vault: str) -> None:
        self._data_dir, self._vault = data_dir, vault
        self._state: object = None
        self._tokens: dict[str, Token] = {}

    def find(self, secret: str) -> Token | None:
        return self.all().get(_hash(secret))

    def all(self) -> dict[str, Token]:
        """Each by its hash."""
        try:
            found = os.stat(os.path.join(self._data_dir, FILE_NAME))
            state = (found.st_ino, found.st_mtime_ns, found.st_size)
        except FileNotFoundError:
            state = None
        if state != self._state:
            self._tokens = {key: one for key, one in _read(self._data_dir).items() if one.vault == self._vault}
            self._state = state
        return self._tokens


def _read(data_dir: str) -> dict[str, Token]:
    return {key: Token(**one) for key, one in read_json(os.path.join(data_dir, FILE_NAME)).items()}


def _hash(secret: str) -> str:
    return hashlib.sha256(secret.encode("utf-8", "replace")).hexdigest()
