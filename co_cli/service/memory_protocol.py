"""Anthropic's memory tool, `memory_20250818`, over a vault: six commands on `/memories`, answered in its own words.

`/memories` is the vault's `memories/` folder. A model reads and edits files as text, frontmatter included; deleting
moves to the trash. Whatever a model sends, the answer is a string that says what to do about a mistake.

https://platform.claude.com/docs/en/agents-and-tools/tool-use/memory-tool
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections import Counter
from collections.abc import Mapping
from itertools import accumulate
from typing import Annotated, Any, Literal, NamedTuple, get_args
from urllib.parse import unquote

from pydantic import BaseModel, BeforeValidator, Field, ValidationError
from pydantic_core import from_json

from co_cli.errors import KnowledgeError, NoteFileError, VaultError
from co_cli.knowledge_base import KnowledgeBase
from co_cli.notes.secrets import counting
from co_cli.service.memory_files import ROOT, MemoryFile, MemoryFiles, Place, shown
from co_cli.values import masked_text, to_utf8

DESCRIPTION = (
    "Your memory: text files under /memories that stay between conversations. View /memories before you start, and "
    "keep it up to date as you go. Commands: view (a folder, or a file with line numbers), create (path, file_text), "
    "str_replace (path, old_str, new_str), insert (path, insert_line, insert_text), delete (path), rename (old_path, "
    "new_path)."
)
MAX_LINES = 999_999
MAX_LISTED = 500
MAX_CHARACTERS = 40_000
"""Of one view; the answer says which range to ask for next."""
MAX_NUMBERS = 50
"""Line numbers that are listed when a text to replace occurs often."""
MISSING = "Error: The path {} does not exist"
LineRange = Annotated[list[int], BeforeValidator(lambda given: from_json(given) if isinstance(given, str) else given)]
"""Some models send a list as text."""
CommandName = Literal["view", "create", "str_replace", "insert", "delete", "rename"]


class Command(BaseModel):
    """The arguments of all commands."""

    command: CommandName
    path: str = Field("", description="a file or folder under /memories; not for rename")
    view_range: LineRange = Field([], description="view: first and last line; -1 is the end")
    file_text: str = Field("", description="create: the text of the new file")
    old_str: str = Field("", description="str_replace: text that occurs exactly once in the file")
    new_str: str = Field("", description="str_replace: its replacement; empty removes it")
    insert_line: int = Field(-1, description="insert: the line to insert after; 0 is the beginning")
    insert_text: str = Field("", description="insert: the lines to add")
    old_path: str = Field("", description="rename: what to rename or move")
    new_path: str = Field("", description="rename: its new path; must not exist")


REQUIRED = {"create": ["file_text"], "str_replace": ["old_str"], "insert": ["insert_line", "insert_text"]}


class Answer(NamedTuple):
    """What a command says, and whether it was refused (`is_error` of a tool result)."""

    text: str
    refused: bool = False


class Refusal(Exception):
    """A command that cannot be carried out; its text is the answer."""


class MemoryToolProtocol:
    """The commands over one knowledge base. Threads can share it."""

    def __init__(self, kb: KnowledgeBase, *, overwrite: bool = False, provenance: str = "agent") -> None:
        """With `overwrite`, `create` replaces a file that exists and moves the old one to the trash."""
        self.files = MemoryFiles(kb, provenance)
        self._overwrite = overwrite

    def call(self, command: Mapping[str, Any]) -> str:
        """Carry out `{"command": "view", "path": "/memories"}`."""
        return self.answer(command).text

    def answer(self, command: Mapping[str, Any]) -> Answer:
        """The same, and whether it was refused."""
        name = str(command.get("command"))
        try:
            if name not in get_args(CommandName):
                raise Refusal(f"Error: Unknown command: {name}. The commands are {', '.join(get_args(CommandName))}.")
            asked = Command.model_validate({key: value for key, value in command.items() if value is not None})
            missing = [key for key in REQUIRED.get(name, ()) if key not in asked.model_fields_set]
            if missing:
                raise Refusal(f"Error: {name} needs {missing[0]}")
            with counting() as masked:
                text = to_utf8(getattr(self, f"_{name}")(asked))
            return Answer(f"{text} ({masked_text(len(masked))} before it was written.)" if masked else text)
        except ValidationError as error:
            problem = error.errors()[0]
            text = f"Error: {'.'.join(map(str, problem['loc']))}: {problem['msg']}"
        except Refusal as refusal:
            text = str(refusal)
        except (NoteFileError, VaultError, OSError) as error:  # their messages name folders of this machine
            text = f"Error: {name} failed: {getattr(error.__cause__ or error, 'strerror', None) or 'file error'}"
        except KnowledgeError as error:
            text = f"Error: {error}"
        return Answer(to_utf8(text), refused=True)

    def _view(self, asked: Command) -> str:
        path, place = self._place("path", asked)
        if place.kind == "folder":
            return self._view_folder(path, place)
        if place.kind != "file":
            raise Refusal(f"The path {path} does not exist. Please provide a valid path.")
        lines = _lines(self.files.read(place.path).text)
        _check_lines(path, len(lines))
        first, last = asked.view_range if len(asked.view_range) == 2 else (1, len(lines))
        first, last = max(first, 1), len(lines) if last == -1 else min(last, len(lines))
        if len(asked.view_range) not in (0, 2) or first > max(last, 1):
            raise Refusal(
                f"Error: Invalid `view_range` parameter: {asked.view_range}. "
                f"It should be two line numbers within the range of lines of the file: [1, {len(lines)}]"
            )
        numbered = _numbered(lines, first, last)
        if len(numbered) > MAX_CHARACTERS:
            end = numbered.rfind("\n", 0, MAX_CHARACTERS + 1)
            numbered, cut = numbered[: MAX_CHARACTERS if end < 0 else end], end < 0
            following = first + numbered.count("\n") + 1
            rest = f"lines {following} to {len(lines)} are not shown: use view_range [{following}, {len(lines)}]"
            numbered += f"\n({f'the rest of line {first}, and ' if cut else ''}{rest})"
        return f"Here's the content of {path} with line numbers:\n{numbered}"

    def _view_folder(self, path: str, place: Place) -> str:
        entries = [entry for entry in self.files.walk(place.path) if "/node_modules" not in entry.path]
        sizes: Counter[str] = Counter()
        for entry in entries:
            parts = entry.path.split("/")
            sizes.update({"/".join(parts[:depth]): entry.size for depth in range(1, len(parts) + 1)})
        depth = place.path.count("/") + 2
        near = [entry for entry in entries if entry.path.count("/") <= depth]
        newest = sorted(near, key=lambda entry: -entry.changed)[:MAX_LISTED]
        rows = [
            f"{size_text(sizes[entry.path])}\t{shown(entry.path)}{'/' if entry.is_folder else ''}"
            for entry in sorted(newest, key=lambda entry: shown(entry.path).split("/"))
        ]
        left = len(near) - len(newest)
        cut = [f"({left:,} entries that changed longer ago are not shown: view a folder of {path})"] if left else []
        header = f"Here're the files and directories up to 2 levels deep in {path}, excluding hidden items and "
        return "\n".join([f"{header}node_modules:", f"{size_text(sizes[place.path])}\t{path}", *rows, *cut])

    def _create(self, asked: Command) -> str:
        path, names = self._names("path", asked)
        _check_lines(path, asked.file_text.count("\n"))
        with self.files.writing():
            place = self._free_place(path, names)
            overwrite = place.kind == "file" and self._overwrite
            if (place.kind != "nothing" and not overwrite) or not self.files.create(
                place.path, asked.file_text, overwrite
            ):
                raise Refusal(f"Error: File {path} already exists")
        return f"File created successfully at: {path}"

    def _str_replace(self, asked: Command) -> str:
        old, new = asked.old_str, asked.new_str
        with self.files.writing():
            path, file = self._file(asked, f"{MISSING}. Please provide a valid path.")
            places = [found.start() for found in re.finditer(re.escape(old), file.text)] if old else []
            if not places:
                raise Refusal(f"No replacement was performed, old_str `{old}` did not appear verbatim in {path}.")
            if len(places) > 1:
                ends = list(accumulate(len(line) + 1 for line in _lines(file.text)))
                numbers = sorted({bisect_right(ends, place) + 1 for place in places})
                more = f" and {len(numbers) - MAX_NUMBERS:,} more" if len(numbers) > MAX_NUMBERS else ""
                raise Refusal(
                    f"No replacement was performed. Multiple occurrences of old_str `{old}` in lines: "
                    f"{', '.join(map(str, numbers[:MAX_NUMBERS]))}{more}. Please ensure it is unique"
                )
            self._change(path, file, file.text.replace(old, new))
            text = self.files.read(file.path).text  # as it was written: secrets may be masked
        first = text.count("\n", 0, places[0]) - 1
        last = first + 4 + min(new.count("\n"), 36)
        return (
            "The memory file has been edited. Here is the snippet showing the change (with line numbers):\n"
            + _numbered(_lines(text), max(1, first), last)
        )

    def _insert(self, asked: Command) -> str:
        with self.files.writing():
            path, file = self._file(asked, MISSING)
            lines = [f"{line}\n" for line in _lines(file.text)]
            if not 0 <= asked.insert_line <= len(lines):
                raise Refusal(
                    f"Error: Invalid `insert_line` parameter: {asked.insert_line}. "
                    f"It should be within the range of lines of the file: [0, {len(lines)}]"
                )
            at_end = asked.insert_line == len(lines)
            lines.insert(asked.insert_line, asked.insert_text.removesuffix("\n") + "\n")
            text = "".join(lines)
            self._change(path, file, text if at_end or file.text.endswith("\n") else text[:-1])
        return f"The file {path} has been edited."

    def _delete(self, asked: Command) -> str:
        with self.files.writing():
            path, place = self._existing("path", asked, "delete")
            self.files.trash(place)
        return f"Successfully deleted {path}"

    def _rename(self, asked: Command) -> str:
        with self.files.writing():
            old_path, place = self._existing("old_path", asked, "rename")
            new_path, names = self._names("new_path", asked)
            target = self._free_place(new_path, names, source=place)
            path = f"{target.path.rpartition('/')[0]}/{names[-1]}" if names and place.kind == "folder" else target.path
            if path.startswith(place.path + "/"):
                raise Refusal(f"Error: {old_path} cannot be moved into itself")
            if target.kind != "nothing" or not self.files.move(place, path):
                raise Refusal(f"Error: The destination {new_path} already exists")
        return f"Successfully renamed {old_path} to {new_path}"

    def _names(self, key: str, asked: Command) -> tuple[str, tuple[str, ...]]:
        """A path as it was given, and its names below `/memories`. Refuses whatever could lead out of it."""
        path = form = to_utf8(getattr(asked, key).strip())
        if not path:
            raise Refusal(f"Error: {asked.command} needs a {key}, such as /memories/notes.md")
        for _ in range(5):  # also as whoever gets it may decode it
            if ".." in form.split("/") or re.search(r"[\\\x00-\x1f\x7f]", form):
                printable = re.sub(r"[\x00-\x1f\x7f]", "\ufffd", path)
                raise Refusal(f"Error: Path {printable} would escape /memories directory")
            form = unquote(form)
        parts = [part for part in path.split("/") if part not in ("", ".")]
        if not path.startswith("/") or parts[:1] != [ROOT]:
            raise Refusal(f"Error: Path must start with /memories, got: {path}")
        return "/" + "/".join(parts), tuple(parts[1:])

    def _place(self, key: str, asked: Command) -> tuple[str, Place]:
        path, names = self._names(key, asked)
        return path, self.files.locate(names)

    def _existing(self, key: str, asked: Command, verb: str) -> tuple[str, Place]:
        path, place = self._place(key, asked)
        if place.path == ROOT:
            raise Refusal(f"Error: Cannot {verb} the /memories directory itself")
        if place.kind == "nothing":
            raise Refusal(MISSING.format(path))
        return path, place

    def _free_place(self, path: str, names: tuple[str, ...], source: Place | None = None) -> Place:
        """Where something new may be made. What is there already may be `source` in another case."""
        place = self.files.locate(names)
        if names and place.twin and not (source and place.twin == source.path):
            raise Refusal(f"Error: {'The destination' if source else 'File'} {shown(place.twin)} already exists")
        if names and place.barred:
            raise Refusal(f"Error: Path {path} {place.barred}")
        return place

    def _file(self, asked: Command, missing: str) -> tuple[str, MemoryFile]:
        path, place = self._place("path", asked)
        if place.kind != "file":
            raise Refusal(missing.format(path))
        return path, self.files.read(place.path)

    def _change(self, path: str, file: MemoryFile, text: str) -> None:
        _check_lines(path, text.count("\n"))
        self.files.change(file, text)


def size_text(size: float) -> str:
    """`512B`, `5.5K`, `1.2M`."""
    unit = "B"
    for unit in "BKMG":
        if size < 1024 or unit == "G":
            break
        size /= 1024
    return f"{size:.1f}".removesuffix(".0") + unit


def _lines(text: str) -> list[str]:
    """Split at `\\n` only, as a model counts lines; the end of the last line starts no other."""
    return text.removesuffix("\n").split("\n") if text else []


def _numbered(lines: list[str], first: int, last: int) -> str:
    return "\n".join(f"{number:>6}\t{line}" for number, line in enumerate(lines[first - 1 : last], first))


def _check_lines(path: str, count: int) -> None:
    if count > MAX_LINES:
        raise Refusal(f"File {path} exceeds maximum line limit of {MAX_LINES:,} lines.")
