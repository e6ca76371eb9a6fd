"""What lies in each source, as a tree of files: which are indexed, and why the others are not."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, NamedTuple

from co_cli.knowledge_index import KnowledgeIndex

if TYPE_CHECKING:
    from co_cli.knowledge_base import KnowledgeBase

Branch = dict[str, "Branch | str"]


class Tree(NamedTuple):
    """One source."""

    source: str
    path: str
    files: dict[str, str]
    """Path to what is to be said about it: its title, `missing`, or why it is not indexed."""

    def lines(self, depth: int | None = None) -> Iterator[str]:
        """As people draw it."""
        root: Branch = {}
        for path, said in self.files.items():
            folder, *rest = path.split("/")
            branch = root
            for part in rest:
                found = branch.setdefault(folder + "/", {})
                branch = found if isinstance(found, dict) else branch
                folder = part
            branch[folder] = said
        yield from _draw(root, "", depth)


def trees(kb: KnowledgeBase, source: str | None = None) -> list[Tree]:
    """The vault and every origin, or one of them: `vault`, a label, or a name."""
    shown: list[Tree] = []
    if source in (None, "vault", "memory", "article"):
        shown.append(_tree("vault", kb.root, kb.index))
    if source in ("vault", "memory", "article"):
        return shown
    tiers = [origin for origin in kb.index.beside if origin.tier]
    added = [entry.origin for entry in kb.origins.entries()]
    named = [origin for origin in tiers if origin.tier == source]
    origins = [*tiers, *added] if source is None else named or [kb.origins.find(source)]
    return [*shown, *(_tree(origin.label, origin.path, kb.index.of(origin)) for origin in origins)]


def _tree(label: str, path: str, index: KnowledgeIndex) -> Tree:
    files = dict(index.listed())
    return Tree(label, path, dict(sorted(files.items())))


def _draw(branch: Branch, indent: str, depth: int | None) -> Iterator[str]:
    for number, (name, inside) in enumerate(branch.items()):
        last = number == len(branch) - 1
        mark, below = ("└─ ", "   ") if last else ("├─ ", "│  ")
        if isinstance(inside, str):
            yield f"{indent}{mark}{name}" + (f"  ({inside})" if inside else "")
        elif depth == 1:
            yield f"{indent}{mark}{name}  ({_count(inside):,} files)"
        else:
            yield f"{indent}{mark}{name}"
            yield from _draw(inside, indent + below, None if depth is None else depth - 1)


def _count(branch: Branch) -> int:
    return sum(1 if isinstance(inside, str) else _count(inside) for inside in branch.values())
