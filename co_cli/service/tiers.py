"""Whose vaults are searched together: the project's, your own, and the team's.

Only where nobody named a vault: who says `--vault` means that one alone.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from co_cli.errors import InvalidInputError
from co_cli.knowledge_index import Tiers
from co_cli.places import user_data_dir
from co_cli.sources.origin import VAULT, Origin

if TYPE_CHECKING:
    from co_cli.settings import Settings

TIERS = ("user", "project", "team")


def tier_of(settings: Settings) -> str | None:
    """The tier of the vault that is open; None if it was named and is of none."""
    return {"project": "project", "default": "user"}.get(settings.origins["vault"])


def tiers_beside(settings: Settings, root: str) -> tuple[Tiers | None, list[Origin]]:
    """The other tiers' vaults that are there, and how much each counts; None and nothing if this is the only one."""
    own = tier_of(settings)
    if settings.tiers == "off" or own is None:
        return None, []
    beside = [
        Origin(VAULT, place, tier=tier)
        for tier, place in places(settings).items()
        if tier != own and place != root and os.path.isdir(place)
    ]
    values = {"user": settings.tier_user, "project": settings.tier_project, "team": settings.tier_team}
    return (Tiers(own, values), beside) if beside else (None, [])


def places(settings: Settings) -> dict[str, str]:
    """Where each tier's vault is, or would be."""
    found = {"user": os.path.realpath(os.path.join(user_data_dir(os.environ), "knowledge"))}
    if settings.team_vault:
        found["team"] = os.path.realpath(settings.team_vault)
    return found


def place_of(settings: Settings, tier: str) -> str:
    """The vault to write a note of this tier to."""
    found = places(settings)
    if tier in found:
        return found[tier]
    if tier == "team":
        raise InvalidInputError("there is no team vault: set team_vault (CO_TEAM_VAULT) to its folder")
    if tier == "project":
        raise InvalidInputError("this is no project: `co init` makes a vault here")
    raise InvalidInputError(f"a tier is one of {', '.join(TIERS)}, not {tier!r}")
