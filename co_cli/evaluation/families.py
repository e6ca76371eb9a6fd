"""Which sets are of one family: what is learned on one of them was seen by the others.

Sets of one origin (meta.json) are, and sets whose names begin alike before `_`; a person can say more. Rather one
family too few than a figure that is called held out and is not.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from co_cli.errors import InvalidInputError
from co_cli.evaluation.running import set_name
from co_cli.evaluation.sets import origin_of


def families_of(folders: Sequence[str], said: Sequence[str] = ()) -> dict[str, str]:
    """The family of each set, by their names. `said` are lists such as `docs,manuals`, each of one family."""
    names = [set_name(folder) for folder in folders]
    together = [_named(names, text) for text in said]
    for marks in ({name: name.partition("_")[0] for name in names}, _origins(folders)):
        together += [[name for name in marks if marks[name] == mark] for mark in dict.fromkeys(marks.values())]
    found = {name: name for name in names}
    for group in together:
        joined = {found[name] for name in group}
        first = next((family for family in found.values() if family in joined), "")
        found = {name: first if family in joined else family for name, family in found.items()}
    members = {family: [name for name in names if found[name] == family] for family in found.values()}
    return {name: _label(members[family]) for name, family in found.items()}


def require_families(families: Mapping[str, str]) -> None:
    if len(set(families.values())) < 2:
        raise InvalidInputError(
            "--held-out needs sets of two families at least: what is learned on the others ranks each of them"
        )


def _named(names: Sequence[str], text: str) -> list[str]:
    group = [name.strip() for name in text.split(",") if name.strip()]
    for name in group:
        if name not in names:
            raise InvalidInputError(f"--family {text}: there is no set {name!r}; there are {', '.join(names)}")
    return group


def _origins(folders: Sequence[str]) -> dict[str, str]:
    origins = {set_name(folder): origin_of(folder) for folder in folders}
    return {name: origin for name, origin in origins.items() if origin}


def _label(names: Sequence[str]) -> str:
    """A set alone has its name; several what they begin with, if they do."""
    stems = list(dict.fromkeys(name.partition("_")[0] for name in names))
    return names[0] if len(names) == 1 else "+".join(stems)
