"""Which rows of search.db one search may see: of the vault and the origins beside it, and by filters on what notes say.

Filters become SQL conditions on `docs`. Values are always parameters; only our own text is put together.
"""

from __future__ import annotations

import apsw

from co_cli.record import Record
from co_cli.sources.origin import kind_of
from co_cli.values import Filters

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from co_cli.sources.origin import Origin

UNKNOWN = -1
"""The id of a vault that was never written: no row has it."""

# A list of tags and a frontmatter are only taken apart where the letters of what is asked for stand in them at all: in
# 100,000 notes that spares nine tenths of the time. `fold` is a call of Python, which plain letters need not.
HAS_TAG = """
(
    instr(docs.tags, :{name}_letters)
    and exists (
        select 1 from json_each(docs.tags) as tag
        where tag.value = :{name} or substr(tag.value, 1, length(:{name}) + 1) = :{name} || '/'
    )
)
"""
"""`ops` covers `ops/deploy`."""
FOLDED = "case when {of} glob '*[^ -~]*' then fold({of}) else lower({of}) end"
HAS_FIELD = """
instr(docs.frontmatter, :{name}_key_letters)
and (docs.frontmatter glob '*[^ -~]*' or instr(lower(docs.frontmatter), :{name}_letters))
and exists (
    select 1 from json_each(docs.frontmatter) as field
    where field.key = :{name}_key and (
        {field} = :{name}
        or (field.type = 'array' and exists (select 1 from json_each(field.value) as item where {item} = :{name}))
    )
)
"""
SCALAR = """
case {of}.type when 'true' then 'true' when 'false' then 'false' when 'array' then null when 'object' then null
    else {folded} end
"""
SPEAKER = "coalesce(nullif(lower(trim(docs.frontmatter ->> '$.provenance')), ''), 'user')"
FIELD, ITEM = (SCALAR.format(of=of, folded=FOLDED.format(of=f"cast({of}.value as text)")) for of in ("field", "item"))


class Reach(Record):
    """The vaults, in SQL the ids of `vaults`, and the sources among theirs."""

    vaults: tuple[int, ...]
    sources: tuple[str, ...] = ()
    """Only these; empty means all that the vaults have."""
    parts: tuple[tuple[int, str], ...] = ()
    """Every (vault, source) that may have vectors."""
    uneven: bool = False
    """Not every one of the sources is wanted of every vault."""

    @property
    def ids(self) -> str:
        """The vaults as SQL has a list. As text, because `json_each` takes twice as long to prepare."""
        return ", ".join(f"{vault:d}" for vault in self.vaults)

    @property
    def condition(self) -> str:
        """On `docs`. Numbers and our own names of sources are put into the text; all else is a parameter."""
        if self.uneven:
            pairs = ", ".join(f"({vault:d}, '{source}')" for vault, source in self.parts)
            return f"(docs.vault_id, docs.source) in (values {pairs})"
        if len(self.vaults) == 1:
            return f"docs.vault_id = {self.vaults[0]:d}"
        return f"docs.vault_id in ({self.ids})"


def reach_of(origins: Sequence[tuple[int, Origin]], wanted: Sequence[str] = ()) -> Reach:
    """`wanted` are sources (`memory`, `folder`), or single origins (`folder:handbook`); none means everything."""
    parts = [
        (vault, source)
        for vault, origin in origins
        for source in kind_of(origin).sources
        if not wanted or source in wanted or origin.label in wanted
    ]
    vaults = tuple(dict.fromkeys(vault for vault, _ in parts))
    sources = tuple(dict.fromkeys(source for _, source in parts)) if wanted else ()
    possible = [
        (vault, source)
        for vault, origin in origins
        for source in kind_of(origin).sources
        if vault in vaults and (not wanted or source in sources)
    ]
    return Reach(vaults or (UNKNOWN,), sources, tuple(parts), uneven=possible != parts)


def fold(text: str) -> str:
    """What filters compare: case and normalisation do not count. `fold` in SQL is this function."""
    from co_cli.notes.refs import name_key  # only those who filter need it

    return name_key(text.encode("utf-8", "replace").decode())


def conditions(filters: Filters, reach: Reach) -> tuple[str, dict[str, apsw.SQLiteValue]]:
    """`and`-joined conditions and their parameters. Which sources are wanted is in the reach already."""
    wanted = [reach.condition]
    values: dict[str, apsw.SQLiteValue] = {}
    if reach.sources:
        names = {f"source_{number}": source for number, source in enumerate(reach.sources)}
        wanted.append(f"docs.source in ({', '.join(':' + name for name in names)})")
        values.update(names)
    if filters.tags:
        tags: list[str] = []
        for number, tag in enumerate(filters.tags):
            name = f"tag_{number}"
            values[name] = fold(tag.lstrip("#"))
            values[f"{name}_letters"] = _letters(str(values[name]))
            tags.append(HAS_TAG.format(name=name))
        wanted.append(f"({(' or ' if filters.any_tag else ' and ').join(tags)})")
    if filters.category is not None:
        wanted.append(f"{FOLDED.format(of='docs.category')} = :category")
        values["category"] = fold(filters.category)
    if filters.since is not None:
        wanted.append("docs.created >= :since")
        values["since"] = filters.since
    if filters.until is not None:
        wanted.append("docs.created <= :until")
        values["until"] = filters.until
    if filters.as_of is not None:
        wanted.append("docs.created <= :as_of")
        values["as_of"] = filters.as_of
    if filters.speakers:
        names = {f"speaker_{number}": speaker for number, speaker in enumerate(filters.speakers)}
        wanted.append(f"{SPEAKER} in ({', '.join(':' + name for name in names)})")
        values.update(names)
    for number, (key, value) in enumerate(filters.fields):
        name = f"field_{number}"
        wanted.append(HAS_FIELD.format(name=name, field=FIELD, item=ITEM))
        values[f"{name}_key"], values[name] = key.encode("utf-8", "replace").decode(), fold(value)
        values[f"{name}_key_letters"], values[f"{name}_letters"] = _letters(key), _letters(str(values[name]))
    return " and ".join(wanted), values


def _letters(text: str) -> str:
    """The longest run of plain letters, which JSON writes as they are; a number may be written in other ways."""
    import re  # only those who filter need it

    return max(re.findall("[A-Za-z]+", text), key=len, default="")
