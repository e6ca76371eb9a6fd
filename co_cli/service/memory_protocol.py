"""Anthropic's memory tool, `memory_20250818`, over a vault: six commands on `/memories`, answered in its own words.

`/memories` is the vault's `memories/` folder. A model reads and edits the files as text, frontmatter included; deleting
moves to the trash. Whatever a model sends, the answer is a string: what it can do about a mistake is in it.

https://platform.claude.com/docs/en/agents-and-tools/tool-use/memory-tool
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple, cast
from urllib.parse import unquote

from co_cli.errors import KnowledgeError, NoteFileError, VaultError
from co_cli.knowledge_base import KnowledgeBase
from co_cli.notes.secrets import counting
from co_cli.service.memory_files import ROOT, Listed, MemoryFile, MemoryFiles, Place, shown
from co_cli.typed import whole
from co_cli.values import masked_text

DESCRIPTION = (
    "Your memory: text files under /memories that stay between conversations. View /memories before you start, and "
    "keep it up to date as you go. Commands: view (a folder, or a file with line numbers), create (path, file_text), "
    "str_replace (path, old_str, new_str), insert (path, insert_line, insert_text), delete (path), rename (old_path, "
    "new_path)."
)
PARAMETERS: dict[str, Any] = {
    "type": "object",
    "properties": {
        "command": {"type": "string", "enum": ["view", "create", "str_replace", "insert", "delete", "rename"]},
        "path": {
            "type": "string",
            "description": "a file or folder under /memories; not for rename",
        },
        "view_range": {
            "type": "array",
            "items": {"type": "integer"},
            "description": "view: first and last line; -1 is the end",
        },
        "file_text": {"type": "string", "description": "create: what the new file says"},
        "old_str": {"type": "string", "description": "str_replace: text that stands in the file exactly once"},
        "new_str": {"type": "string", "description": "str_replace: what takes its place; empty removes it"},
        "insert_line": {"type": "integer", "description": "insert: after which line; 0 is the beginning"},
        "insert_text": {"type": "string", "description": "insert: the lines to add"},
        "old_path": {"type": "string", "description": "rename: what to rename or move"},
        "new_path": {"type": "string", "description": "rename: its new path; must not exist"},
    },
    "required": ["command"],
}

MOST_LINES = 999_999
MOST_LISTED = 500
"""Entries of a listing. A model looks at its folder before everything else: ten thousand names would fill its head."""
MOST_CHARACTERS = 40_000
"""Characters of one view; the answer says which range to ask for next."""
AROUND = 2
LONGEST_SNIPPET = 40
MOST_NUMBERS = 50
"""Lines that are named when a text to replace stands on many of them."""


class Answer(NamedTuple):
    """What a command says, and whether it was refused (`is_error` of a tool result)."""

    text: str
    refused: bool = False


class Refusal(Exception):
    """A command that cannot be carried out; its text is the answer."""


class MemoryToolProtocol:
    """The commands over one knowledge base. Safe to share between threads."""

    def __init__(self, kb: KnowledgeBase, *, overwrite: bool = False, provenance: str = "agent") -> None:
        """`overwrite`: `create` of a file that exists puts the old one into the trash instead of refusing."""
        self.files = MemoryFiles(kb, provenance)
        self._overwrite = overwrite
        self._commands: dict[str, Callable[[Mapping[str, Any]], str]] = {
            "view": self._view,
            "create": self._create,
            "str_replace": self._str_replace,
            "insert": self._insert,
            "delete": self._delete,
            "rename": self._rename,
        }

    def call(self, command: Mapping[str, Any]) -> str:
        """Carry out `{"command": "view", "path": "/memories"}`."""
        return self.answer(command).text

    def answer(self, command: Mapping[str, Any]) -> Answer:
        """The same, with a word whether it was refused."""
        name = command.get("command")
        carry_out = self._commands.get(name) if isinstance(name, str) else None
        try:
            if carry_out is None:
                raise Refusal(f"Error: Unknown command: {name}. The commands are {', '.join(self._commands)}.")
            with counting() as masked:
                text = whole(carry_out(command))
            return Answer(f"{text} ({masked_text(len(masked))} before it was written.)" if masked else text)
        except Refusal as refusal:
            return Answer(whole(str(refusal)), refused=True)
        except (NoteFileError, VaultError) as error:  # their messages name folders of this machine
            reason = getattr(error.__cause__, "strerror", None) or "it cannot be read or written"
            return Answer(f"Error: {name} failed: {reason}", refused=True)
        except KnowledgeError as error:
            return Answer(whole(f"Error: {error}"), refused=True)
        except OSError as error:
            return Answer(f"Error: {name} failed: {error.strerror or error}", refused=True)

    # -- the commands -----------------------------------------------------------------------------------------------

    def _view(self, command: Mapping[str, Any]) -> str:
        path, place = self._place(command, "path")
        if place.kind == "folder":
            return self._view_folder(path, place)
        if place.kind != "file":
            raise Refusal(f"The path {path} does not exist. Please provide a valid path.")
        lines = _lines(self.files.read(place.path).text)
        if len(lines) > MOST_LINES:
            raise Refusal(f"File {path} exceeds maximum line limit of {MOST_LINES:,} lines.")
        first, last = _view_range(command.get("view_range"), len(lines))
        numbered = _bounded(_numbered(lines, first, last), first, len(lines))
        return f"Here's the content of {path} with line numbers:\n{numbered}"

    def _view_folder(self, path: str, place: Place) -> str:
        total, listed = self.files.listing(place.path)
        left = len(listed) - MOST_LISTED
        if left > 0:
            newest = set(sorted(listed, key=lambda entry: -entry.changed)[:MOST_LISTED])
            listed = [entry for entry in listed if entry in newest]
        rows = [f"{size_text(total)}\t{path}", *(_row(path, entry) for entry in listed)]
        header = (
            f"Here're the files and directories up to 2 levels deep in {path}, excluding hidden items and node_modules:"
        )
        cut = f"\n({left:,} entries that changed longer ago are not shown: view a folder of {path})" if left > 0 else ""
        return "\n".join([header, *rows]) + cut

    def _create(self, command: Mapping[str, Any]) -> str:
        text = _text(command, "create", "file_text", "content", "text")
        path, names = self._names(command, "path")
        _require_lines(path, text)
        with self.files.writing():
            place = self._free_place(path, names)
            if place.kind == "file" and self._overwrite:
                self.files.write_over(place.path, text)
            elif place.kind != "nothing" or not self.files.create(place.path, text):
                raise Refusal(f"Error: File {path} already exists")
        return f"File created successfully at: {path}"

    def _str_replace(self, command: Mapping[str, Any]) -> str:
        old = _text(command, "str_replace", "old_str")
        new = _text(command, "str_replace", "new_str", default="")
        with self.files.writing():
            path, file = self._file(command, "Error: The path {} does not exist. Please provide a valid path.")
            places = _occurrences(file.text, old)
            if not places:
                raise Refusal(f"No replacement was performed, old_str `{old}` did not appear verbatim in {path}.")
            if len(places) > 1:
                raise Refusal(
                    f"No replacement was performed. Multiple occurrences of old_str `{old}` in lines: "
                    f"{_line_numbers(file.text, places)}. Please ensure it is unique"
                )
            text = file.text[: places[0]] + new + file.text[places[0] + len(old) :]
            _require_lines(path, text)
            self.files.change(file, text)
            text = self.files.read(file.path).text  # as it was written, without what was masked
        first = text.count("\n", 0, places[0]) + 1 - AROUND
        last = min(first + AROUND + new.count("\n") + AROUND, first + LONGEST_SNIPPET)
        snippet = _numbered(_lines(text), max(1, first), last)
        return (
            f"The memory file has been edited. Here is the snippet showing the change (with line numbers):\n{snippet}"
        )

    def _insert(self, command: Mapping[str, Any]) -> str:
        block = _text(command, "insert", "insert_text", "new_str", "text")
        with self.files.writing():
            path, file = self._file(command, "Error: The path {} does not exist")
            lines = _lines(file.text, keep=True)
            given = command.get("insert_line")
            line = _number(given)
            if line is None or not 0 <= line <= len(lines):
                raise Refusal(
                    f"Error: Invalid `insert_line` parameter: {given}. "
                    f"It should be within the range of lines of the file: [0, {len(lines)}]"
                )
            head, tail = "".join(lines[:line]), "".join(lines[line:])
            head += "\n" if head and not head.endswith("\n") else ""
            block += "" if block.endswith("\n") else "\n"
            text = head + block + tail
            _require_lines(path, text)
            self.files.change(file, text)
        return f"The file {path} has been edited."

    def _delete(self, command: Mapping[str, Any]) -> str:
        with self.files.writing():
            path, place = self._place(command, "path")
            if place.path == ROOT:
                raise Refusal("Error: Cannot delete the /memories directory itself")
            if place.kind == "nothing":
                raise Refusal(f"Error: The path {path} does not exist")
            self.files.trash(place)
        return f"Successfully deleted {path}"

    def _rename(self, command: Mapping[str, Any]) -> str:
        with self.files.writing():
            old_path, place = self._place(command, "old_path", "path")
            if place.path == ROOT:
                raise Refusal("Error: Cannot rename the /memories directory itself")
            if place.kind == "nothing":
                raise Refusal(f"Error: The path {old_path} does not exist")
            new_path, names = self._names(command, "new_path")
            target = self._free_place(new_path, names, source=place)
            if target.kind != "nothing":
                raise Refusal(f"Error: The destination {new_path} already exists")
            path = f"{target.path.rpartition('/')[0]}/{names[-1]}" if place.kind == "folder" else target.path
            if path.startswith(place.path + "/"):
                raise Refusal(f"Error: {old_path} cannot be moved into itself")
            if not self.files.move(place, path):
                raise Refusal(f"Error: The destination {new_path} already exists")
        return f"Successfully renamed {old_path} to {new_path}"

    # -- paths ------------------------------------------------------------------------------------------------------

    def _names(self, command: Mapping[str, Any], *keys: str) -> tuple[str, tuple[str, ...]]:
        """A path as it was given, and its names below `/memories`. Refuses whatever could lead out of it."""
        given = next((command[key] for key in keys if command.get(key) is not None), None)
        if not isinstance(given, str) or not given.strip():
            raise Refusal(f"Error: {command['command']} needs a {keys[0]}, such as /memories/notes.md")
        path = whole(given.strip())
        for form in _decoded(path):
            if ".." in re.split(r"[/\\]", form) or "\\" in form or re.search(r"[\x00-\x1f\x7f]", form):
                raise Refusal(f"Error: Path {_printable(path)} would escape /memories directory")
        parts = [part for part in path.split("/") if part not in ("", ".")]
        if not path.startswith("/") or parts[:1] != [ROOT]:
            raise Refusal(f"Error: Path must start with /memories, got: {path}")
        return "/" + "/".join(parts), tuple(parts[1:])

    def _place(self, command: Mapping[str, Any], *keys: str) -> tuple[str, Place]:
        path, names = self._names(command, *keys)
        return path, self.files.locate(names)

    def _free_place(self, path: str, names: tuple[str, ...], source: Place | None = None) -> Place:
        """Where something new may be made. What is there already may be `source` under another case."""
        place = self.files.locate(names)
        if not names:
            return place
        if place.twin and not (source and place.twin == source.path):
            what = "The destination" if source else "File"
            raise Refusal(f"Error: {what} {shown(place.twin)} already exists")
        if place.barred:
            raise Refusal(f"Error: Path {path} {place.barred}")
        return place

    def _file(self, command: Mapping[str, Any], missing: str) -> tuple[str, MemoryFile]:
        path, place = self._place(command, "path")
        if place.kind != "file":
            raise Refusal(missing.format(path))
        return path, self.files.read(place.path)


def size_text(size: int) -> str:
    """`512B`, `5.5K`, `1.2M`."""
    number, unit = float(size), "B"
    for unit in "BKMG":
        if number < 1024 or unit == "G":
            break
        number /= 1024
    return f"{int(number)}{unit}" if number == int(number) else f"{number:.1f}{unit}"


def _row(path: str, entry: Listed) -> str:
    return f"{size_text(entry.size)}\t{path}/{entry.name}{'/' if entry.is_folder else ''}"


def _lines(text: str, keep: bool = False) -> list[str]:
    """At `\\n` only, as a model counts them; the end of the last line begins no other."""
    lines = text.split("\n")
    last = lines.pop()
    kept = [line + "\n" for line in lines] if keep else lines
    return [*kept, last] if last else kept


def _numbered(lines: list[str], first: int, last: int) -> str:
    return "\n".join(f"{number:>6}\t{line}" for number, line in enumerate(lines[first - 1 : last], first))


def _bounded(numbered: str, first: int, count: int) -> str:
    """As many whole lines as a view may have, and how to see the others."""
    if len(numbered) <= MOST_CHARACTERS:
        return numbered
    end = numbered.rfind("\n", 0, MOST_CHARACTERS + 1)
    kept, what = (numbered[:end], "") if end >= 0 else (numbered[:MOST_CHARACTERS], f"the rest of line {first}, and ")
    following = first + kept.count("\n") + 1
    more = f"{what}lines {following} to {count} are not shown: use view_range [{following}, {count}]"
    return f"{kept}\n({more if following <= count else f'the rest of line {first} is not shown'})"


def _occurrences(text: str, wanted: str) -> list[int]:
    found: list[int] = []
    place = text.find(wanted) if wanted else -1
    while place >= 0:
        found.append(place)
        place = text.find(wanted, place + len(wanted))
    return found


def _line_numbers(text: str, places: list[int]) -> str:
    """The lines on which these places are, counted once from the beginning; of a great many the first."""
    numbers: list[int] = []
    line, counted = 1, 0
    for place in places:
        line, counted = line + text.count("\n", counted, place), place
        if numbers[-1:] != [line]:
            numbers.append(line)
    more = f" and {len(numbers) - MOST_NUMBERS:,} more" if len(numbers) > MOST_NUMBERS else ""
    return ", ".join(map(str, numbers[:MOST_NUMBERS])) + more


def _view_range(given: object, count: int) -> tuple[int, int]:
    """First and last line. A model may send a list, a list as text, or nothing."""
    if isinstance(given, str):
        try:
            given = json.loads(given) if given.strip() else None
        except ValueError:
            given = re.split(r"[\s,:-]+", given.strip())
    if given is None or given == []:
        return 1, count
    pair = cast("list[object]", list(given)) if isinstance(given, list | tuple) else []  # pyright: ignore[reportUnknownArgumentType]
    numbers = [_number(number) for number in pair]
    first, last = numbers if len(numbers) == 2 else (None, None)
    if first is not None and last is not None:
        last = count if last == -1 else min(last, count)
        first = max(first, 1)
        if first <= last or (count == 0 and first == 1):
            return first, last
    raise Refusal(
        f"Error: Invalid `view_range` parameter: {given}. "
        f"It should be two line numbers within the range of lines of the file: [1, {count}]"
    )


def _number(given: object) -> int | None:
    if isinstance(given, bool):
        return None
    if isinstance(given, float) and given.is_integer():
        return int(given)
    if isinstance(given, str) and re.fullmatch(r"\s*-?\d{1,9}\s*", given):
        return int(given)
    return given if isinstance(given, int) else None


def _text(command: Mapping[str, Any], name: str, *keys: str, default: str | None = None) -> str:
    """A text argument under the first of its names that was sent."""
    given = next((command[key] for key in keys if command.get(key) is not None), default)
    if not isinstance(given, str):
        raise Refusal(f"Error: {name} needs {keys[0]}, a text")
    return given


def _require_lines(path: str, text: str) -> None:
    if text.count("\n") >= MOST_LINES:
        raise Refusal(f"File {path} exceeds maximum line limit of {MOST_LINES:,} lines.")


def _decoded(path: str) -> list[str]:
    """A path, and what it becomes when whoever gets it decodes it, once or more."""
    forms = [path]
    while len(forms) < 5 and unquote(forms[-1]) != forms[-1]:
        forms.append(unquote(forms[-1]))
    return forms


def _printable(path: str) -> str:
    return re.sub(r"[\x00-\x1f\x7f]", "\ufffd", path)
