"""Filters into SQL conditions on `docs`. Values are always parameters; only our own text is put together."""

from __future__ import annotations

import apsw

from co_cli.values import Filters

HAS_TAG = "exists (select 1 from json_each(docs.tags) as tag where tag.value = :{name} or tag.value glob :{name}_below)"

HAS_FIELD = """
exists (
    select 1 from json_each(docs.frontmatter) as field
    where field.key = :{name}_key and (
        {field} = :{name}
        or (field.type = 'array' and exists (select 1 from json_each(field.value) as item where {item} = :{name}))
    )
)
"""
SCALAR = """
case {of}.type when 'true' then 'true' when 'false' then 'false' when 'array' then null when 'object' then null
    else fold(cast({of}.value as text)) end
"""
FIELD, ITEM = SCALAR.format(of="field"), SCALAR.format(of="item")


def fold(text: str) -> str:
    """What filters compare: case and normalisation do not count. `fold` in SQL is this function."""
    from co_cli.notes.refs import name_key  # only those who filter need it

    return name_key(text.encode("utf-8", "replace").decode())


def conditions(filters: Filters, vault_id: int) -> tuple[str, dict[str, apsw.SQLiteValue]]:
    """`and`-joined conditions and their parameters."""
    wanted = ["docs.vault_id = :vault"]
    values: dict[str, apsw.SQLiteValue] = {"vault": vault_id}
    if filters.sources:
        names = {f"source_{number}": source for number, source in enumerate(filters.sources)}
        wanted.append(f"docs.source in ({', '.join(':' + name for name in names)})")
        values.update(names)
    if filters.tags:
        tags: list[str] = []
        for number, tag in enumerate(filters.tags):
            name = f"tag_{number}"
            values[name] = fold(tag.lstrip("#"))
            values[f"{name}_below"] = _glob_literal(str(values[name])) + "/*"  # `ops` covers `ops/deploy`
            tags.append(HAS_TAG.format(name=name))
        wanted.append(f"({(' or ' if filters.any_tag else ' and ').join(tags)})")
    if filters.category is not None:
        wanted.append("fold(docs.category) = :category")
        values["category"] = fold(filters.category)
    if filters.since is not None:
        wanted.append("docs.created >= :since")
        values["since"] = filters.since
    if filters.until is not None:
        wanted.append("docs.created <= :until")
        values["until"] = filters.until
    for number, (key, value) in enumerate(filters.fields):
        name = f"field_{number}"
        wanted.append(HAS_FIELD.format(name=name, field=FIELD, item=ITEM))
        values[f"{name}_key"], values[name] = key.encode("utf-8", "replace").decode(), fold(value)
    return " and ".join(wanted), values


def _glob_literal(text: str) -> str:
    return "".join(f"[{letter}]" if letter in "*?[" else letter for letter in text)
