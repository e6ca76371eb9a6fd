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
from typing import Annotated, Any, Literal, NamedTuple
from urllib.parse import unquote

from pydantic import AfterValidator, BaseModel, BeforeValidator, Field, ValidationError
from pydantic_ai import RunContext, Tool
from pydantic_core import from_json

from co_cli.agent.deps import PathLike
from co_cli.agent.memory_files import ROOT, Entry, MemoryFile, MemoryFiles, clean_text, note_name, shown
from co_cli.agent.toolset import VaultAccess
from co_cli.errors import KnowledgeError, NoteFileError, VaultError
from co_cli.knowledge_base import KnowledgeBase
from co_cli.notes.secrets import count_masked
from co_cli.values import masked_text, to_utf8

DESCRIPTION = (
    "Your memory: text files under /memories that stay between conversations. View /memories before you start, and "
    "keep it up to date as you go. Commands: view (a folder, or a file with line numbers), create (path, file_text), "
    "str_replace (path, old_str, new_str), insert (path, insert_line, insert_text), delete (path), rename (old_path, "
    "new_path)."
)
MAX_LISTED, MAX_CHARACTERS, MAX_OCCURRENCES = 500, 40_000, 50
"""Of one answer; it says what was left out."""
Text = Annotated[str, AfterValidator(clean_text)]
LineRange = Annotated[list[int], BeforeValidator(lambda given: from_json(given) if isinstance(given, str) else given)]
"""Some models send a list as text."""


class MemoryCommand(BaseModel):
    """The arguments of all commands."""

    command: Literal["view", "create", "str_replace", "insert", "delete", "rename"]
    path: str = Field("", description="a file or folder under /memories; not for rename")
    view_range: LineRange = Field([1, -1], description="view: first and last line; -1 is the end")
    file_text: Text | None = Field(None, description="create: the text of the new file")
    old_str: Text = Field("", description="str_replace: text that occurs exactly once in the file")
    new_str: Text = Field("", description="str_replace: its replacement; empty removes it")
    insert_line: int = Field(-1, description="insert: the line to insert after; 0 is the beginning")
    insert_text: Text = Field("", description="insert: the lines to add")
    old_path: str = Field("", description="rename: what to rename or move")
    new_path: str = Field("", description="rename: its new path; must not exist")


class Answer(NamedTuple):
    """What a command says, and whether it was refused (`is_error` of a tool result)."""

    text: str
    refused: bool = False


class Refusal(Exception):
    """A command that cannot be carried out; its text is the answer."""


def memory_tool(
    vault: PathLike | None = None,
    *,
    data_dir: PathLike | None = None,
    knowledge_base: KnowledgeBase | None = None,
    overwrite: bool = False,
) -> Tool[Any]:
    """The `memory` tool for a pydantic-ai agent, over a vault, a knowledge base, or the one in the run's CoDeps.

    With `NativeTool(MemoryTool())` Claude uses the tool it was trained on; any other model sees a function tool. The
    first call opens the vault. With `overwrite`, `create` replaces a file and moves the old one to the trash.
    """
    access = VaultAccess(vault, data_dir, knowledge_base)

    def memory(ctx: RunContext[Any], /, **command: Any) -> str:  # a model may send a `ctx` of its own
        return MemoryToolProtocol(access.kb(ctx.deps), overwrite=overwrite).call(command)

    return Tool.from_schema(memory, "memory", DESCRIPTION, MemoryCommand.model_json_schema(), takes_ctx=True)


class MemoryToolProtocol:
    """The commands over one knowledge base. Threads can share it."""

    def __init__(self, kb: KnowledgeBase, *, overwrite: bool = False) -> None:
        """With `overwrite`, `create` replaces a file that exists and moves the old one to the trash."""
        self.files, self._overwrite = MemoryFiles(kb), overwrite

    def call(self, command: Mapping[str, Any]) -> str:
        """Carry out `{"command": "view", "path": "/memories"}`."""
        return self.answer(command).text

    def answer(self, command: Mapping[str, Any]) -> Answer:
        """The same, and whether it was refused."""
        try:
            asked = MemoryCommand.model_validate({key: value for key, value in command.items() if value is not None})
            with count_masked() as masked:
                text = to_utf8(self._view(asked) if asked.command == "view" else self._change(asked))
            return Answer(f"{text} ({masked_text(len(masked))} before it was written.)" if masked else text)
        except ValidationError as error:
            problem = error.errors()[0]
            text = f"Error: {'.'.join(map(str, problem['loc']))}: {problem['msg']}"
        except Refusal as refusal:
            text = str(refusal)
        except (NoteFileError, VaultError, OSError) as error:  # their messages name folders of this machine
            reason = getattr(error.__cause__ or error, "strerror", None) or "file error"
            text = f"Error: {command['command']} failed: {reason}"
        except KnowledgeError as error:
            text = f"Error: {error}"
        return Answer(to_utf8(text), refused=True)

    def _view(self, asked: MemoryCommand) -> str:
        path, names = read_path(asked.path)
        entry = self.files.locate(names)
        if entry.kind == "missing":
            raise Refusal(f"The path {path} does not exist. Please provide a valid path.")
        if entry.kind == "folder":
            return self._list(path, entry.path)
        lines = _lines(self.files.read(entry.path).text)
        first, last = asked.view_range if len(asked.view_range) == 2 else (0, 0)
        last = len(lines) if last == -1 else min(last, len(lines))
        if not 1 <= first <= max(last, 1):
            raise Refusal(
                f"Error: Invalid `view_range` parameter: {asked.view_range}. "
                f"It should be two line numbers within the range of lines of the file: [1, {len(lines)}]"
            )
        text = _numbered(lines, first, last)
        if len(text) > MAX_CHARACTERS:
            text = text[:MAX_CHARACTERS].rpartition("\n")[0] or text[:MAX_CHARACTERS]
            following = first + text.count("\n") + 1
            text += f"\n(Cut after {len(text):,} characters; go on with view_range [{following}, {len(lines)}].)"
        return f"Here's the content of {path} with line numbers:\n{text}"

    def _list(self, path: str, folder: str) -> str:
        inside = {one for one in self.files.paths() if one.startswith(f"{folder}/") and "/node_modules/" not in one}
        sizes: Counter[str] = Counter()
        for file in inside:
            size = os.path.getsize(self.files.store.absolute(file))
            sizes.update({file[: end.start()]: size for end in re.finditer(r"/|\Z", file)})  # it and its folders
        deepest = folder.count("/") + 2
        near = [one for one in sizes if one.startswith(f"{folder}/") and one.count("/") <= deepest]
        near.sort(key=lambda one: shown(one).split("/"))
        rows = [f"{size_text(sizes[one])}\t{shown(one)}{'/' * (one not in inside)}" for one in near[:MAX_LISTED]]
        if len(near) > MAX_LISTED:
            rows.append(f"({len(near) - MAX_LISTED:,} more entries are not shown: view a folder of {path})")
        header = f"Here're the files and directories up to 2 levels deep in {path}, excluding hidden items and "
        return "\n".join([f"{header}node_modules:", f"{size_text(sizes[folder])}\t{path}", *rows])

    def _change(self, asked: MemoryCommand) -> str:
        path, names = read_path(asked.old_path if asked.command == "rename" else asked.path)
        with self.files.writing():
            entry = self.files.locate(names)
            if asked.command == "create":
                return self._create(path, entry, asked.file_text)
            if entry.kind == "missing" or (entry.kind == "folder" and asked.command in ("str_replace", "insert")):
                raise Refusal(f"Error: The path {path} does not exist. Please provide a valid path.")
            if entry.path == ROOT:
                raise Refusal(f"Error: Cannot {asked.command} the /memories directory itself")
            match asked.command:
                case "str_replace":
                    return self._replace(path, self.files.read(entry.path), asked.old_str, asked.new_str)
                case "insert":
                    return self._insert(path, self.files.read(entry.path), asked.insert_line, asked.insert_text)
                case "rename":
                    return self._rename(path, entry, asked.new_path)
                case _:
                    self.files.store.trash(entry.path)
                    return f"Successfully deleted {path}"

    def _create(self, path: str, entry: Entry, text: str | None) -> str:
        if text is None:
            raise Refusal("Error: create needs file_text")
        if entry.kind == "missing":
            self.files.write(entry.path, text)
        elif entry.kind == "file" and self._overwrite:  # nothing of the old text stays
            old = self.files.read(entry.path)._replace(newline="\n", hides_frontmatter=True)
            self.files.write(entry.path, text, old, keep_old=True)
        else:
            raise Refusal(f"Error: File {path} already exists")
        return f"File created successfully at: {path}"

    def _replace(self, path: str, file: MemoryFile, old: str, new: str) -> str:
        places = [found.start() for found in re.finditer(re.escape(old), file.text)] if old else []
        if not places:
            raise Refusal(f"No replacement was performed, old_str `{old}` did not appear verbatim in {path}.")
        if len(places) > 1:
            numbers = sorted({file.text.count("\n", 0, place) + 1 for place in places[:MAX_OCCURRENCES]})
            raise Refusal(
                f"No replacement was performed. Multiple occurrences of old_str `{old}` in lines: "
                f"{', '.join(map(str, numbers))}. Please ensure it is unique"
            )
        self.files.write(file.path, file.text.replace(old, new), file)
        text = self.files.read(file.path).text  # as it was written: secrets may be masked
        first = text.count("\n", 0, places[0]) - 1
        snippet = _numbered(_lines(text), max(1, first), first + 4 + min(new.count("\n"), 36))
        return (
            f"The memory file has been edited. Here is the snippet showing the change (with line numbers):\n{snippet}"
        )

    def _insert(self, path: str, file: MemoryFile, after: int, text: str) -> str:
        lines = _lines(file.text)
        if not 0 <= after <= len(lines):
            raise Refusal(
                f"Error: Invalid `insert_line` parameter: {after}. "
                f"It should be within the range of lines of the file: [0, {len(lines)}]"
            )
        ended = after == len(lines) or file.text.endswith("\n")
        lines.insert(after, text.removesuffix("\n"))
        self.files.write(file.path, "\n".join(lines) + "\n" * ended, file)
        return f"The file {path} has been edited."

    def _rename(self, old_path: str, entry: Entry, given: str) -> str:
        new_path, names = read_path(given)
        target = self.files.locate(names)
        name = names[-1] if names and entry.kind == "folder" else note_name("".join(names[-1:]))
        path = f"{target.path.rpartition('/')[0]}/{name}"  # `target` may be the same file in another case
        if path.startswith(entry.path + "/"):
            raise Refusal(f"Error: {old_path} cannot be moved into itself")
        taken = target.kind != "missing" and (target.path != entry.path or path == entry.path)
        if taken or not self.files.move(entry.path, path):
            raise Refusal(f"Error: The destination {new_path} already exists")
        return f"Successfully renamed {old_path} to {new_path}"


def read_path(given: str) -> tuple[str, Sequence[str]]:
    """A path in its usual form, and its names below `/memories`. Refuses whatever could lead out of it."""
    path = form = to_utf8(given.strip())
    for _ in range(5):  # a client may decode the path again
        if ".." in form.split("/") or re.search(r"[\\\x00-\x1f\x7f]", form):
            printable = re.sub(r"[\x00-\x1f\x7f]", "\ufffd", path)
            raise Refusal(f"Error: Path {printable} would escape /memories directory")
        form = unquote(form)
    parts = [part for part in path.split("/") if part not in ("", ".")]
    if not path.startswith("/") or parts[:1] != [ROOT]:
        raise Refusal(f"Error: Path must start with /memories, got: {path}")
    return "/" + "/".join(parts), parts[1:]


def size_text(size: float) -> str:
    """`512B`, `5.5K`, `1.2M`."""
    power = min(max(int(size).bit_length() - 1, 0) // 10, 3)
    return f"{size / 1024**power:.1f}".removesuffix(".0") + "BKMG"[power]


def _lines(text: str) -> list[str]:
    """Split at `\\n` only, as a model counts lines; the end of the last line starts no other."""
    return text.removesuffix("\n").split("\n") if text else []


def _numbered(lines: list[str], first: int, last: int) -> str:
    return "\n".join(f"{number:>6}\t{line}" for number, line in enumerate(lines[first - 1 : last], first))
