"""The weights that a search uses: of the profile, of the settings, learned from feedback, or given by the caller."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, NamedTuple

from co_cli.activity.judgements import read_learned
from co_cli.embedding.space import VectorSpace
from co_cli.ground.settings import Settings
from co_cli.ground.weights import check_weights, read_weights
from co_cli.retrieval.profiles import DEFAULT, PROFILES, Profile, profile_named
from co_cli.retrieval.request import SearchRequest
from co_cli.retrieval.score import FORMULA_VERSION


class RankingSettings(NamedTuple):
    """What decides how a vault's notes are ranked."""

    settings: Settings
    root: str
    space: VectorSpace | None

    @property
    def key(self) -> str | None:
        """What feedback depends on: the vectors and the formula. None without vectors."""
        return None if self.space is None else f"{self.space.key}, formula {FORMULA_VERSION}"


def configured(ranking: RankingSettings, request: SearchRequest) -> SearchRequest:
    """A request with the backend, the profile and the weights of the settings."""
    profile = profile_named(ranking.settings.knowledge_profile)
    return replace(
        request,
        profile=profile,
        weights=weights_in_use(ranking, profile, None),
        half_life=ranking.settings.half_life_days,
        backend=ranking.settings.knowledge_search_backend,
    )


def weights_in_use(ranking: RankingSettings, profile: Profile, given: Mapping[str, float] | None) -> dict[str, float]:
    """The profile's table, in `default` and `agent` the settings' or learned ones; and what the caller gives."""
    weights = dict(profile.weights)
    if profile is PROFILES["agent"]:
        weights |= read_weights(ranking.settings.knowledge_agent_weights)
    if profile is DEFAULT:
        weights |= settings_weights(ranking.settings) or learned_weights(ranking) or {}
    return weights | (check_weights(given) if given is not None else {})


def settings_weights(settings: Settings) -> dict[str, float] | None:
    """The weights from the settings; None if they are the defaults."""
    names = ("knowledge_hybrid_vector_weight", "knowledge_hybrid_text_weight")
    if all(settings.set_by[name] == "default" for name in names):
        return None
    weights = {"meaning": settings.knowledge_hybrid_vector_weight, "words": settings.knowledge_hybrid_text_weight}
    return check_weights(weights)


def learned_weights(ranking: RankingSettings, even_if_off: bool = False) -> dict[str, float] | None:
    """The weights that feedback taught; None if there are none, or learning is off. Opens no database."""
    if ranking.settings.learn == "off" and not even_if_off:
        return None
    row: Any = read_learned(ranking.settings.data_dir).get(ranking.root)
    try:
        taught_by, meaning = row["ranking"], float(row["meaning"])
    except (TypeError, KeyError, ValueError):
        return None
    usable = taught_by == ranking.key and 0 <= meaning <= 1
    return weights_of(meaning) if usable else None


def weights_of(meaning: float) -> dict[str, float]:
    return {"meaning": meaning, "words": round(1 - meaning, 4)}


def learned_in_use(
    ranking: RankingSettings, profile: str | None, given: Mapping[str, float] | None
) -> dict[str, float] | None:
    """The learned weights, if a search with this profile and these weights uses them."""
    default = profile_named(profile or ranking.settings.knowledge_profile) is DEFAULT
    explicit = settings_weights(ranking.settings) or {"words", "meaning"} & set(given or ())
    return learned_weights(ranking) if default and not explicit else None
