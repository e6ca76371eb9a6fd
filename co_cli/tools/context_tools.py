"""Tools about the files behind the notes: show them as a tree, and read or fetch them again."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any

from pydantic import Field

from co_cli.entrance.local import LocalKnowledgeBase
from co_cli.ground.errors import InvalidInputError
from co_cli.notes.refs import path_of, without_lines
from co_cli.tools.budget import whole_lines
from co_cli.tools.fencing import clean, one_line, plain_ref
from co_cli.tools.tool import ToolCall, ToolResult, tool
from co_cli.vault.origins import Tree, is_glob

MOST_AROUND = 8
"""Files that are named around a conflict."""


@tool("Show files as a tree", read_only=True)
def context_tree(
    call: ToolCall,
    path: Annotated[str, Field(description="A folder such as memories/people, or a source such as folder:docs")] = "",
    depth: Annotated[int, Field(ge=1, le=20)] = 3,
) -> ToolResult[dict[str, Any]]:
    """Show the files of the vault and of added sources as a tree, or one folder of it."""
    trees = trees_in(call.kb.local, path)
    if not trees:
        raise InvalidInputError(f"context_tree: there are no files in {path!r}; leave out path to see all")
    lines = [line for tree in trees for line in (tree.source, *tree.lines(depth))]
    text, _ = whole_lines("\n".join(map(clean, lines)), call.budget)
    more = "\n(There is more: name a folder, or a smaller depth.)" if text.count("\n") + 1 < len(lines) else ""
    return ToolResult(f"<notes>\n{text}\n</notes>{more}", {"sources": {tree.source: tree.files for tree in trees}})


@tool("Refresh files and pages")
def context_refresh(
    call: ToolCall,
    target: Annotated[str, Field(description="A ref, a path, a glob, a web address, or `all`")] = "",
    ref: Annotated[str, Field(exclude=True)] = "",
    all: Annotated[bool, Field(exclude=True)] = False,
) -> ToolResult[dict[str, Any]]:
    """Read added folders and files again, and fetch saved web pages again, when their origin may have changed. A text
    that somebody changed here is not overwritten."""
    target = "all" if all else target or ref
    if not target:
        raise InvalidInputError("context_refresh needs target: a ref, a path, a glob, a web address, or `all`")
    kb, target = call.kb.local, without_lines(plain_ref(target)).replace("\0", "")
    named = None if target == "all" else [target]
    origins = kb.sources.all() if named is None else list(kb.sources.matching(target))
    read = [kb.sources.refresh(origin.label) for origin in origins]
    rows: list[tuple[str, str, str]] = [(report.label, report.outcome, report.detail) for report in read]
    if not origins or named is None or is_glob(target):
        pages = kb.web_pages()
        fetched = [pages.refresh(path) for path in pages.paths(named)]
        rows += [(page.ref or page.url, page.outcome, page.detail) for page in fetched]
    if not rows and named:
        raise InvalidInputError(f"context_refresh: no source or saved page is called {target!r}")
    lines = [one_line(f"{ref}: {outcome}" + (f" ({detail})" if detail else "")) for ref, outcome, detail in rows]
    text, _ = whole_lines("\n".join(lines) or "There are no added sources and no saved pages.", call.budget)
    return ToolResult(text, {"refreshed": [dict(zip(("ref", "outcome", "detail"), row, strict=True)) for row in rows]})


@tool("Find a checkpoint", read_only=True)
def find_checkpoint(
    call: ToolCall, query: str, limit: Annotated[int, Field(ge=1, le=10)] = 3
) -> ToolResult[dict[str, Any]]:
    """Find saved conversations from which a task can be continued without building up its context again."""
    found = call.kb.local.checkpoints.find(query, limit)
    lines = [
        one_line(
            f"{checkpoint.ref} · {checkpoint.title}: {checkpoint.description} · {checkpoint.messages} messages"
            f" · tools: {', '.join(checkpoint.tools)} · files: {', '.join(checkpoint.files)}"
            + (f" · rated {checkpoint.quality:.0%} good" if checkpoint.quality is not None else "")
        )
        for checkpoint in found
    ]
    text, _ = whole_lines("\n".join(lines), call.budget)
    shown = (
        f"{len(found)} found, the best first:\n<notes>\n{text}\n</notes>" if found else "absent: no checkpoint fits."
    )
    return ToolResult(shown, {"checkpoints": [checkpoint._asdict() for checkpoint in found]})


def trees_in(kb: LocalKnowledgeBase, path: str = "") -> list[Tree]:
    """The files of the vault and of every source, or only those in a folder of the vault or of a named source."""
    wanted = (path_of(plain_ref(path)) or path).strip("/")
    found: list[Tree] = []
    for tree in kb.sources.trees():
        source, _, inside = wanted.partition("/")
        if source != tree.source:
            if wanted and tree.source != "vault":
                continue
            inside = wanted
        files = {
            file: remark for file, remark in tree.files.items() if inside in ("", file) or file.startswith(f"{inside}/")
        }
        found += [tree._replace(files=files)] if files else []
    return found


def next_step(kb: LocalKnowledgeBase, arguments: Mapping[str, Any], prefix: str) -> str:
    """What a model can do about a conflict, and the files around it, on one line; empty if no file is known."""
    named = str(arguments.get("path") or arguments.get("ref") or "")
    path = path_of(without_lines(plain_ref(named))) or named.strip("/")
    if not path:
        return ""
    home = "" if "ref" in arguments or path.startswith("memories/") else "memories/"
    folder = f"{home}{path}".rpartition("/")[0]
    files = [file for tree in trees_in(kb, folder) for file in tree.files]
    around = ", ".join(map(one_line, files[:MOST_AROUND]))
    other = f", or {prefix}save_memory with another path" if "path" in arguments else ""
    step = f" Next: {prefix}read_note, then {prefix}update_memory with the ref and version that it gives{other}."
    return f"{step} In {one_line(folder)}: {around}." if around else step
