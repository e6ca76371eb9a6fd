"""Read a note's frontmatter into a dict and write it back as YAML, with python-frontmatter.

`read_frontmatter` also says where the block is, and returns an error with its line and the fields it could still read,
instead of raising it.
"""

from __future__ import annotations

import json
import re
from typing import Any, NamedTuple

import yaml
from frontmatter.default_handlers import SafeLoader, YAMLHandler

BLOCK = re.compile(r"\ufeff?(?:[ \t]*\r?\n)*---[ \t]*(?:\r?\n)(.*?)^(?:---|\.\.\.)[ \t]*(?:\r?\n|\Z)", re.S | re.M)
UNCLOSED = re.compile(r"\ufeff?(?:[ \t]*\r?\n)*(---)[ \t]*\r?\n[A-Za-z_][\w-]*:(?:[ \t]|\r?\n)")
TOP_LEVEL_KEY = re.compile(r"^([A-Za-z_][\w-]*):(?:\s|$)", re.M | re.A)
MAX_VALUES = 100_000
MAX_MERGED = 10_000
"""Fields that `<<` copies. Forty lines that each double the one before would copy 2⁴⁰."""
MAX_FLOW_DEPTH = 50
TOO_DEEP = re.compile(r"[ ?:-]{150}")
"""Each level of a block needs a column. libyaml's recursion has no limit: 100,000 levels crash the process."""

INTEGER = re.compile(r"[-+]?(?:0|[1-9][0-9]{0,17})$", re.ASCII)
DECIMAL = re.compile(r"-?(?:0|[1-9][0-9]{0,14})\.[0-9]{1,15}$", re.ASCII)
NEEDS_ESCAPE = re.compile("[\x7f-\x9f\u2028\u2029\ufeff\ufffe\uffff]")
"""What YAML does not allow in a quoted string, besides what JSON escapes."""

TAG = "tag:yaml.org,2002:"
MERGE = TAG + "merge"
TAGS: dict[type, str] = {
    type(None): TAG + "null",
    bool: TAG + "bool",
    int: TAG + "int",
    float: TAG + "float",
    str: TAG + "str",
    yaml.SequenceNode: TAG + "seq",
    yaml.MappingNode: TAG + "map",
}
PLAIN_MESSAGES = (
    ("while scanning a quoted scalar", "a quote that is not closed"),
    ("mapping values are not allowed", "a second `: ` in one line; put the value in quotes"),
    ("while parsing a flow sequence", "a list that is not closed with `]`"),
    ("while parsing a flow mapping", "a mapping that is not closed with `}`"),
    ("while scanning a simple key", "a line that is not `key: value`"),
    ("could not find expected ':'", "a line that is not `key: value`"),
    ("unhashable key", "a key that is not a word, as in `{{date}}`; put it in quotes"),
    ("did not find expected key", "a line that is not `key: value`, or has the wrong indentation"),
    ("alias", "a value that starts with `*`; put it in quotes"),
    ("cannot start any token", "a value that starts with a character that YAML reserves; put it in quotes"),
    ("maximum recursion depth", "the frontmatter is nested too deep"),
)
"""What PyYAML says in a problem or its context, and what we say instead."""


class Frontmatter(NamedTuple):
    """What is between the `---` lines, and where."""

    metadata: dict[str, object]
    start: int
    """Offsets of the block between the two `---` lines; start == end == body if there is none."""
    end: int
    body: int
    """Offset of the first character after the closing line."""
    problem: str | None = None
    problem_line: int = 0
    remark: str | None = None
    """Something odd, with its line, although everything could be read."""


def read_frontmatter(text: str) -> Frontmatter:
    block = BLOCK.match(text)
    if block is None:
        start = 1 if text.startswith("\ufeff") else 0
        return Frontmatter({}, start, start, start, remark=_unclosed(text))
    start, end = block.span(1)
    first_line = text.count("\n", 0, start) + 1
    try:
        metadata = HANDLER.load(block[1])
    except Exception as error:  # PyYAML also raises KeyError, AttributeError and others, for a value like `!!bool x`
        problem, line = _describe(error)
        return Frontmatter(_salvage(block[1]), start, end, block.end(), problem, first_line + line)
    return Frontmatter(metadata, start, end, block.end(), remark=_duplicate_key(block[1], first_line))


def render_value(value: object) -> str:
    """A value as one line of YAML that reads back as the same value."""
    return HANDLER.export({"_": value}).removeprefix("_: ")


def resolve_scalar(text: str) -> str | int | float | bool | None:
    """What an unquoted word means: null, true, false, a number that prints as it was written, else the text itself.

    Unlike in YAML 1.1, `NO` and `on` stay words, `1.10` stays a version, and a date stays the text that was written:
    use `dates.read_moment` to read it.
    """
    if text in ("", "~", "null", "Null", "NULL"):
        return None
    if text in ("true", "True", "TRUE"):
        return True
    if text in ("false", "False", "FALSE"):
        return False
    if INTEGER.match(text):
        return int(text)
    if DECIMAL.match(text):
        number = float(text)
        return number if repr(number) == text else text
    return text


class ScalarResolver:
    """Makes PyYAML's loader and dumper treat unquoted words as `resolve_scalar` does."""

    def resolve(self, kind: type, value: Any, implicit: tuple[bool, bool]) -> str:
        if kind is not yaml.ScalarNode:
            return TAGS[kind]
        if not implicit[0]:  # quoted
            return TAGS[str]
        return MERGE if value == "<<" else TAGS[type(resolve_scalar(value))]


AnyLoader: Any = SafeLoader  # libyaml's, if PyYAML was built with it


class NoteLoader(ScalarResolver, AnyLoader):
    """Builds plain values only, and no more of them than a note may have."""

    merged = 0

    def flatten_mapping(self, node: Any) -> None:
        """Put the fields of `<<: *other` before the mapping's own, as PyYAML does, but count them first."""
        pairs, node.value = node.value, []  # empty, in case it is merged into itself
        inherited: list[Any] = []
        for others in (value for key, value in pairs if key.tag == MERGE):
            for other in reversed(others.value) if isinstance(others, yaml.SequenceNode) else [others]:
                if not isinstance(other, yaml.MappingNode):
                    raise ValueError("a value of `<<` that is not a mapping")
                self.flatten_mapping(other)
                self.merged += 1 + len(other.value)
                if self.merged > MAX_MERGED:
                    raise ValueError(f"`<<` expands to more than {MAX_MERGED:,} fields")
                inherited += other.value
        node.value = [*inherited, *(pair for pair in pairs if pair[0].tag != MERGE)]


def _construct_integer(loader: Any, node: Any) -> int:
    """PyYAML's own takes minutes for `!!int 1:1:1…` and makes numbers that are too long to be written as text."""
    if not INTEGER.match(loader.construct_scalar(node)):
        raise TypeError("not a plain integer")
    return int(node.value)


NoteLoader.add_constructor(TAGS[int], _construct_integer)


class NoteDumper(ScalarResolver, yaml.SafeDumper):
    """Writes one line per key: lists in brackets, double quotes only where they are needed, emoji as they are."""

    def represent(self, data: Any) -> None:
        root: Any = self.represent_data(data)  # pyright: ignore[reportUnknownMemberType]
        root.flow_style = False
        self.serialize(root)

    def ignore_aliases(self, data: Any) -> bool:
        return True

    def choose_scalar_style(self) -> str:
        style: str = super().choose_scalar_style()
        value: str = getattr(self.event, "value", "")
        return '"' if style == "'" or value != value.strip() else style

    def write_double_quoted(self, text: str, split: bool = True) -> None:
        quoted = json.dumps(text, ensure_ascii=False)
        self.write_indicator(NEEDS_ESCAPE.sub(lambda found: f"\\u{ord(found[0]):04x}", quoted), True)


NoteDumper.add_multi_representer(tuple, NoteDumper.represent_list)
NoteDumper.add_multi_representer(object, lambda dumper, value: dumper.represent_str(str(value)))


class NoteHandler(YAMLHandler):
    """python-frontmatter's YAML handler with our scalars, one line per key, and limits on nesting and aliases."""

    def load(self, fm: str, **kwargs: object) -> dict[str, Any]:
        """Raises whatever is wrong with the block: a YAMLError, mostly."""
        fm = fm.replace("\t", "    ")
        _require_shallow(fm)
        loaded = super().load(fm, Loader=NoteLoader, **kwargs)
        if loaded is None:
            return {}
        if not isinstance(loaded, dict):
            raise ValueError("the frontmatter is not a list of `key: value` lines")
        return _expanded(loaded)

    def export(self, metadata: dict[str, object], **kwargs: object) -> str:
        """YAML without the last line's end."""
        if not metadata:
            return ""
        style = {"default_flow_style": True, "sort_keys": False, "width": float("inf")}
        return super().export(metadata, Dumper=NoteDumper, **style, **kwargs)


HANDLER = NoteHandler()


def _require_shallow(block: str) -> None:
    if TOO_DEEP.search(block):
        raise ValueError("the frontmatter is nested too deep")
    if block.count("[") + block.count("{") > MAX_FLOW_DEPTH:
        depth = 0
        for bracket in re.findall(r"[\[\]{}]", block):
            depth += 1 if bracket in "[{" else -1
            if depth > MAX_FLOW_DEPTH:
                raise ValueError(f"lists nested more than {MAX_FLOW_DEPTH} deep")


def _expanded(loaded: Any) -> dict[str, Any]:
    """A copy with text as keys and each alias written out. The count stops a few bytes from becoming gigabytes."""
    left = MAX_VALUES

    def copy(value: Any) -> Any:
        nonlocal left
        left -= 1
        if left < 0:
            raise ValueError(f"the frontmatter expands to more than {MAX_VALUES:,} values")
        if isinstance(value, dict):
            items: dict[Any, Any] = value  # pyright: ignore[reportUnknownVariableType]
            return {str(key): copy(inner) for key, inner in items.items()}
        if isinstance(value, list | tuple | set):
            members: Any = value  # pyright: ignore[reportUnknownVariableType]
            return [copy(inner) for inner in members]
        return value if value is None or isinstance(value, str | int | float) else str(value)

    return copy(loaded)


def _describe(error: Exception) -> tuple[str, int]:
    """What is wrong, in plain words, and on which line of the block (from 0)."""
    if not isinstance(error, yaml.YAMLError | ValueError | RecursionError):
        return "a value that does not fit its `!!tag`", 0
    mark = getattr(error, "problem_mark", None) or getattr(error, "context_mark", None)
    problem = " ".join(str(getattr(error, "problem", None) or error).split())
    around = str(getattr(error, "context", None) or "")
    plain = next((ours for theirs, ours in PLAIN_MESSAGES if theirs in problem or theirs in around), problem)
    if "not closed" in plain:
        mark = getattr(error, "context_mark", None) or mark  # where it was opened
    return plain, mark.line if mark else 0


def _unclosed(text: str) -> str | None:
    opened = UNCLOSED.match(text)
    if opened is None:
        return None
    line = text.count("\n", 0, opened.start(1)) + 1
    return f"line {line}: frontmatter that never ends; put a line `---` after its last field"


def _duplicate_key(block: str, first_line: int) -> str | None:
    """The first key that appears twice: YAML uses the last one, and people do not know that."""
    seen: set[str] = set()
    for found in TOP_LEVEL_KEY.finditer(block):
        if found[1] in seen:
            line = first_line + block.count("\n", 0, found.start())
            return f"line {line}: `{found[1]}` appears twice; the last one is used"
        seen.add(found[1])
    return None


def _salvage(block: str) -> dict[str, object]:
    """The one-line `key: value` pairs of a block that is not YAML: people do write `title: Deploys: blue first`."""
    found: dict[str, object] = {}
    for line in block.splitlines():
        pair = re.match(r"([A-Za-z_][\w-]*):[ \t]+(\S.*?)[ \t]*$", line, re.ASCII)
        if pair is None or pair[2][0] in "&*!|>{}%":
            continue
        text = pair[2]
        if text[0] == "[":
            found[pair[1]] = [part.strip(" \"'") for part in text.strip("[] ").split(",") if part.strip(" \"'")]
        else:
            found[pair[1]] = resolve_scalar(text.strip("\"'"))
    return found
