"""Tiers: the project's vault, your own and the team's are searched together, unless a vault is named (`--vault`)."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from co_cli.errors import InvalidInputError
from co_cli.knowledge_index import Tiers
from co_cli.notes.files import make_folders
from co_cli.paths import user_data_dir
from co_cli.sources.origin import VAULT, Origin

if TYPE_CHECKING:
    from co_cli.knowledge_base import KnowledgeBase
    from co_cli.settings import Settings

TIERS = ("user", "project", "team")


def tier_of(settings: Settings) -> str | None:
    """The tier of the open vault; None if it was named."""
    return {"project": "project", "default": "user"}.get(settings.origins["vault"])


def other_tiers(settings: Settings, root: str) -> tuple[Tiers | None, list[Origin]]:
    """The weight of each tier and the other tiers' vaults; None and nothing if there are no others."""
    own = tier_of(settings)
    if settings.tiers == "off" or own is None:
        return None, []
    linked = [
        Origin(VAULT, place, tier=tier)
        for tier, place in places(settings).items()
        if tier != own and place != root and os.path.isdir(place)
    ]
    values = {"user": settings.tier_user, "project": settings.tier_project, "team": settings.tier_team}
    return (Tiers(own, values), linked) if linked else (None, [])


def places(settings: Settings) -> dict[str, str]:
    """The folder of each other tier's vault, whether or not it exists."""
    found = {"user": os.path.realpath(os.path.join(user_data_dir(os.environ), "knowledge"))}
    if settings.team_vault:
        found["team"] = os.path.realpath(settings.team_vault)
    return found


def place_of(settings: Settings, tier: str) -> str:
    """The folder of a tier's vault."""
    found = places(settings)
    if tier in found:
        return found[tier]
    if tier == "team":
        raise InvalidInputError("there is no team vault: set team_vault (CO_TEAM_VAULT) to its folder")
    if tier == "project":
        raise InvalidInputError("this folder is not in a project: `co init` makes a vault here")
    raise InvalidInputError(f"a tier is one of {', '.join(TIERS)}, not {tier!r}")


def open_tier(kb: KnowledgeBase, tier: str) -> KnowledgeBase:
    """The vault of another tier, by itself. Your own is created if it does not exist."""
    place = place_of(kb.settings, tier)
    if tier == "user":
        make_folders(place)
    return type(kb)(kb.settings._replace(vault=place, origins={**kb.settings.origins, "vault": tier}))
