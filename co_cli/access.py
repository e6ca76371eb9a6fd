"""Who may do what on a server."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, get_args

Role = Literal["read", "write", "admin"]
ROLES: tuple[Role, ...] = get_args(Role)
"""Each may do what those before it may."""


@dataclass(frozen=True, slots=True)
class Token:
    """What is known about a token. The token itself is shown once, when it is created."""

    name: str
    """Whose it is. Recorded with everything that is saved with it."""
    role: Role
    vault: str
    """The only vault that it opens: its folder, or its name in a team's database."""
    created: str = ""

    def may(self, role: Role) -> bool:
        return ROLES.index(self.role) >= ROLES.index(role)
