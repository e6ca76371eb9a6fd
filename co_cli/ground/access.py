"""Who may do what on a server."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal, NamedTuple, get_args

TokenRole = Literal["metrics", "read", "write", "admin"]
ROLES: tuple[TokenRole, ...] = get_args(TokenRole)
"""Each may do what those before it may. `metrics` may ask how the server is, and nothing about notes."""
Role = Literal["clip", TokenRole]
"""`clip`, of the bookmarklet of `co web`, may save a page that a browser shows, and nothing else."""

PER_SECOND = 60
"""Requests of one token that a server answers, if nothing else is said; as many may come at once after a pause."""


@dataclass(frozen=True, slots=True)
class Token:
    """What is known about a token. The token itself is shown once, when it is created."""

    name: str
    """Whose it is. Recorded with everything that is saved with it."""
    role: Role
    vault: str
    """The only vault that it opens: its folder, or its name in a team's database."""
    created: str = ""
    expires: str = ""
    """The moment from which on it is refused; empty: never."""
    per_second: int = 0
    """Requests that each server answers; 0: as many as for any other token."""
    last_used: str = field(default="", compare=False)
    """Up to five minutes late."""

    def may(self, role: Role) -> bool:
        if role == "clip":
            return self.role == "clip" or self.may("write")
        return self.role != "clip" and ROLES.index(self.role) >= ROLES.index(role)

    def has_expired(self, now: str) -> bool:
        return bool(self.expires) and self.expires <= now


class TokenChange(NamedTuple):
    """That somebody created, rotated or revoked a token."""

    moment: str
    who: str
    action: str
    """Such as `created the token mara (write)`."""
