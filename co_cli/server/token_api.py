"""Tokens, for those with the role `admin`."""

from __future__ import annotations

from typing import NamedTuple

from pydantic import BaseModel, Field

from co_cli.entrance.local import LocalKnowledgeBase
from co_cli.ground.access import Token, TokenChange, TokenRole
from co_cli.server.access_tokens import AccessTokens
from co_cli.server.routes import route

MOST_DAYS, MOST_HOURS, MOST_PER_SECOND = 3_650, 24 * 30, 10_000


class NewToken(NamedTuple):
    """A token, which is shown once, and what is known about it."""

    secret: str
    token: Token


class CreateToken(BaseModel):
    role: TokenRole
    name: str | None = None
    days: int = Field(0, ge=0, le=MOST_DAYS)
    """After which it expires; 0: never."""
    per_second: int = Field(0, ge=0, le=MOST_PER_SECOND)
    """Requests; 0: as many as for any other token."""


class NamedToken(BaseModel):
    name: str


class RotateToken(NamedToken):
    keep_hours: int = Field(0, ge=0, le=MOST_HOURS)
    """How long the old one still works."""


@route("GET", "/tokens", role="admin")
def list_tokens(kb: LocalKnowledgeBase) -> list[Token]:
    """List the tokens of this vault: name, role, when each expires, and when it was used last."""
    return AccessTokens.of(kb.vault).all()


@route("POST", "/tokens", role="admin")
def create_token(kb: LocalKnowledgeBase, asked: CreateToken) -> NewToken:
    """Create a token. Only its hash is stored."""
    return NewToken(*AccessTokens.of(kb.vault).create(asked.role, asked.name, asked.days, asked.per_second))


@route("POST", "/tokens/{name}/rotate", role="admin")
def rotate_token(kb: LocalKnowledgeBase, asked: RotateToken) -> NewToken:
    """Replace a token with a new one of the same name and role."""
    return NewToken(*AccessTokens.of(kb.vault).rotate(asked.name, asked.keep_hours))


@route("DELETE", "/tokens/{name}", role="admin")
def revoke_token(kb: LocalKnowledgeBase, asked: NamedToken) -> Token:
    """Revoke a token. Every server refuses it at once."""
    return AccessTokens.of(kb.vault).revoke(asked.name)


@route("GET", "/token-changes", role="admin")
def list_token_changes(kb: LocalKnowledgeBase) -> list[TokenChange]:
    """List who created, rotated and revoked tokens, newest first."""
    return AccessTokens.of(kb.vault).changes()
