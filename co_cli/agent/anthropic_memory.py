"""Anthropic's memory tool, `memory_20250818`, over a vault: six commands on `/memories`, answered in its own words.

`/memories` is the vault's `memories/` folder. A model reads and edits files as text, frontmatter included; deleting
moves to the trash. Whatever a model sends, the answer is a string that says what to do about a mistake.

https://platform.claude.com/docs/en/agents-and-tools/tool-use/memory-tool
"""

from __future__ import annotations

import os
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any, Literal, NamedTuple
from urllib.parse import unquote

from pydantic import BaseModel, Field, ValidationError
from pydantic_ai import RunContext, Tool

from co_cli.agent.deps import PathLike
from co_cli.agent.memory_files import ROOT, MemoryFiles
from co_cli.agent.toolset import VaultAccess
from co_cli.entrance.knowledge_base import KnowledgeBase
from co_cli.ground.errors import InvalidInputError, KnowledgeError, NoteFileError, VaultError
from co_cli.ground.saves import masked_text
from co_cli.ground.values import to_utf8
from co_cli.notes.secrets import count_masked

MAX_CHARACTERS, MAX_OCCURRENCES = 40_000, 50
"""Of one answer."""


class MemoryCommand(BaseModel):
    """Your memory: text files under /memories that stay between conversations. View /memories before you start, and
    keep it up to date as you go."""

    command: Literal["view", "create", "str_replace", "insert", "delete", "rename"]
    path: str = Field("", description="a file or folder under /memories; not for rename")
    view_range: list[int] = Field([1, -1], min_length=2, max_length=2, description="view: first and last line, or -1")
    file_text: str | None = Field(None, description="create: the text of the new file")
    old_str: str = Field("", description="str_replace: text that occurs exactly once in the file")
    new_str: str = Field("", description="str_replace: its replacement; empty removes it")
    insert_line: int = Field(-1, description="insert: the line to insert after; 0 is the beginning")
    insert_text: str = Field("", description="insert: the lines to add")
    old_path: str = Field("", description="rename: what to rename or move")
    new_path: str = Field("", description="rename: its new path; must not exist")


class Answer(NamedTuple):
    """What a command says, and whether it was refused (`is_error` of a tool result)."""

    text: str
    refused: bool


def memory_tool(
    vault: PathLike | None = None, *, data_dir: PathLike | None = None, knowledge_base: KnowledgeBase | None = None
) -> Tool[Any]:
    """The `memory` tool for a pydantic-ai agent, over a vault, a knowledge base, or the one in the run's CoDeps.

    With `NativeTool(MemoryTool())` Claude uses the tool it was trained on; any other model sees a function tool. The
    first call opens the vault.
    """
    access = VaultAccess(vault, data_dir, knowledge_base)

    def memory(ctx: RunContext[Any], /, **command: Any) -> str:  # a model may send a `ctx` of its own
        return MemoryToolProtocol(access.kb(ctx.deps)).answer(command).text

    return Tool.from_schema(memory, "memory", MemoryCommand.__doc__, MemoryCommand.model_json_schema(), takes_ctx=True)


class MemoryToolProtocol:
    """The commands over one knowledge base. Threads can share it."""

    def __init__(self, kb: KnowledgeBase) -> None:
        self.files = MemoryFiles(kb.local)

    def answer(self, command: Mapping[str, Any]) -> Answer:
        """Carry out `{"command": "view", "path": "/memories"}`."""
        refused = True
        try:
            asked = MemoryCommand.model_validate({key: value for key, value in command.items() if value is not None})
            with count_masked() as masked:
                text = self._view(asked) if asked.command == "view" else self._change(asked)
            text += f" ({masked_text(len(masked))} before it was written.)" if masked else ""
            refused = False
        except ValidationError as error:
            problem = error.errors()[0]
            text = f"Error: {'.'.join(map(str, problem['loc']))}: {problem['msg']}"
        except (NoteFileError, VaultError, OSError) as error:  # their messages name folders of this machine
            reason = getattr(error.__cause__ or error, "strerror", None) or "file error"
            text = f"Error: {command['command']} failed: {reason}"
        except KnowledgeError as error:
            text = f"Error: {error}"
        if len(text) > MAX_CHARACTERS:
            text = text[:MAX_CHARACTERS].rpartition("\n")[0] or text[:MAX_CHARACTERS]
            text += "\n(Cut here: view the rest with view_range, or one folder at a time.)"
        return Answer(to_utf8(text), refused)

    def _view(self, asked: MemoryCommand) -> str:
        path, names = read_path(asked.path)
        stored, kind = self.files.locate(names)
        if kind == "missing":
            raise InvalidInputError(f"The path {path} does not exist. Please provide a valid path.")
        if kind == "folder":
            return self._list(path, stored)
        lines = _lines(self.files.read(stored)[0])
        first, last = asked.view_range
        last = len(lines) if last == -1 else min(last, len(lines))
        if not 1 <= first <= max(last, 1):
            problem = f"It should be within the range of lines of the file: [1, {len(lines)}]"
            raise InvalidInputError(f"Invalid `view_range` parameter: {asked.view_range}. {problem}")
        return f"Here's the content of {path} with line numbers:\n{_numbered(lines, first, last)}"

    def _list(self, path: str, folder: str) -> str:
        sizes = Counter({f"{folder}/": 0})
        for file in self.files.paths():
            if file.startswith(f"{folder}/") and "/node_modules/" not in file:
                size = os.path.getsize(self.files.store.absolute(file))
                sizes.update({file[: end.end()]: size for end in re.finditer(r"/|\Z", file)})  # it and its folders
        near = [name for name in sorted(sizes) if re.fullmatch(r"(/[^/]+){0,2}/?", name.removeprefix(folder))]
        head = f"Here're the files and directories up to 2 levels deep in {path}, excluding hidden items and "
        return "\n".join([f"{head}node_modules:", *(f"{sizes[name] / 1024:.1f}K\t/{name}" for name in near)])

    def _change(self, asked: MemoryCommand) -> str:
        path, names = read_path(asked.old_path if asked.command == "rename" else asked.path)
        with self.files.writing():
            stored, kind = self.files.locate(names)
            if asked.command == "create":
                if kind != "missing":
                    raise InvalidInputError(f"File {path} already exists")
                if asked.file_text is None:
                    raise InvalidInputError("create needs file_text")
                self.files.write(stored, asked.file_text)
                return f"File created successfully at: {path}"
            if kind == "missing" or (kind == "folder" and asked.command in ("str_replace", "insert")):
                raise InvalidInputError(f"The path {path} does not exist. Please provide a valid path.")
            if stored == ROOT:
                raise InvalidInputError(f"Cannot {asked.command} the /memories directory itself")
            if asked.command == "delete":
                self.files.store.trash(stored)
                return f"Successfully deleted {path}"
            if asked.command != "rename":
                return self._edit(path, stored, asked)
            new_path, names = read_path(asked.new_path)
            target, there = self.files.locate(names, kind)
            if target.startswith(stored + "/"):
                raise InvalidInputError(f"{path} cannot be moved into itself")
            if there != "missing" or not self.files.move(stored, target):
                raise InvalidInputError(f"The destination {new_path} already exists")
            return f"Successfully renamed {path} to {new_path}"

    def _edit(self, path: str, stored: str, asked: MemoryCommand) -> str:
        text, data = self.files.read(stored)
        if asked.command == "insert":
            self.files.write(stored, _inserted(text, asked.insert_line, asked.insert_text), data)
            return f"The file {path} has been edited."
        old, new = asked.old_str, asked.new_str
        places = [found.start() for found in re.finditer(re.escape(old), text)] if old else []
        if not places:
            raise InvalidInputError(f"No replacement was performed, old_str `{old}` did not appear verbatim in {path}.")
        if len(places) > 1:
            lines = sorted({text.count("\n", 0, place) + 1 for place in places[:MAX_OCCURRENCES]})
            problem = f"Multiple occurrences of old_str `{old}` in lines: {', '.join(map(str, lines))}."
            raise InvalidInputError(f"No replacement was performed. {problem} Please ensure it is unique")
        self.files.write(stored, text.replace(old, new), data)
        lines = _lines(self.files.read(stored)[0])  # as it was written: secrets may be masked
        first = text.count("\n", 0, places[0]) - 1
        snippet = _numbered(lines, max(1, first), first + 4 + new.count("\n"))
        said = "The memory file has been edited. Here is the snippet showing the change (with line numbers):"
        return f"{said}\n{snippet}"


def read_path(given: str) -> tuple[str, Sequence[str]]:
    """A path in its usual form, and its names below `/memories`. Refuses whatever could lead out of it."""
    path = form = to_utf8(given.strip())
    for _ in range(5):  # a client may decode the path again
        if ".." in form.split("/") or re.search(r"[\\\x00-\x1f\x7f]", form):
            raise InvalidInputError(f"Path {path!r} would escape /memories directory")
        form = unquote(form)
    parts = [part for part in path.split("/") if part not in ("", ".")]
    if not path.startswith("/") or parts[:1] != [ROOT]:
        raise InvalidInputError(f"Path must start with /memories, got: {path}")
    return "/" + "/".join(parts), parts[1:]


def _lines(text: str) -> list[str]:
    """Split at `\\n` only, as a model counts lines; the end of the last line starts no other."""
    return text.removesuffix("\n").split("\n") if text else []


def _inserted(text: str, after: int, block: str) -> str:
    lines = _lines(text)
    if not 0 <= after <= len(lines):
        problem = f"It should be within the range of lines of the file: [0, {len(lines)}]"
        raise InvalidInputError(f"Invalid `insert_line` parameter: {after}. {problem}")
    ended = after == len(lines) or text.endswith("\n")
    return "\n".join([*lines[:after], block.removesuffix("\n"), *lines[after:]]) + "\n" * ended


def _numbered(lines: list[str], first: int, last: int) -> str:
    return "\n".join(f"{number:>6}\t{line}" for number, line in enumerate(lines[first - 1 : last], first))
