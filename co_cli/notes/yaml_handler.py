"""python-frontmatter's handler for our notes: safe tags only, scalars mean what `resolve_scalar` says, tidy output.

`frontmatter.load(path, handler=NoteHandler())` gives anyone the same reading.
"""

from __future__ import annotations

import re
from typing import Any, ClassVar

import yaml
from frontmatter.default_handlers import YAMLHandler

from co_cli.notes.plain_yaml import resolve_scalar

Loader: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)  # libyaml is missing from some builds of PyYAML
YAML_PROBLEMS = (yaml.YAMLError, ValueError, OverflowError, TypeError)
SAFE_ITEM = re.compile(r"[^\W_](?:[\w ./()+@%-]*[\w.)%])?\Z")
SAFE_LINE = re.compile(r"[^\W_](?:[\w ./()+@%,;'\"!?&*=-]|:(?=[^ ])|(?<! )#)*(?<=[\w.)%!?'\"])\Z")
"""What YAML reads back unquoted: in a list, and alone on a line, where commas and quotes mean nothing."""

ESCAPE = re.compile(r"\\(?:U([0-9A-F]{8})|.)")

IN_PLAIN_WORDS = (
    ("while scanning a quoted scalar", "a quote that is not closed"),
    ("mapping values are not allowed", "a second `: ` in one line; put the value in quotes"),
    ("while scanning a simple key", "a line that is not `key: value`"),
    ("could not find expected ':'", "a line that is not `key: value`"),
    ("undefined alias", "a value that starts with `*`; put it in quotes"),
    ("while scanning an alias", "a value that starts with `*`; put it in quotes"),
    ("while scanning an anchor", "a value that starts with `&`; put it in quotes"),
    ("cannot start any token", "a value that starts with a character YAML keeps for itself; put it in quotes"),
    ("while parsing a flow sequence", "a list that is not closed with `]`"),
    ("while parsing a flow mapping", "a mapping that is not closed with `}`"),
    ("could not determine a constructor", "a value with a `!tag`; only plain values are read"),
    ("control characters are not allowed", "a control character; take it out"),
    ("did not find expected key", "a line that is not `key: value`, or is indented in another way"),
    ("did not find expected <document start>", "a line that is not `key: value`"),
)
"""What a YAML library says, and what a person should read instead."""


class NoteLoader(Loader):
    """A safe loader that leaves plain scalars to us instead of guessing in YAML 1.1's ways."""

    yaml_implicit_resolvers: ClassVar[dict[str, Any]] = {"<": [("tag:yaml.org,2002:merge", re.compile(r"<<$"))]}


def _construct(loader: Any, node: Any) -> object:
    return node.value if node.style else resolve_scalar(node.value)


NoteLoader.add_constructor("tag:yaml.org,2002:str", _construct)


class NoteHandler(YAMLHandler):
    """Reads leniently typed YAML; writes one line a key."""

    def load(self, fm: str, **kwargs: object) -> Any:
        kwargs.setdefault("Loader", NoteLoader)
        return super().load(fm, **kwargs)

    def export(self, metadata: dict[str, object], **kwargs: object) -> str:
        return "\n".join(f"{key}: {render_value(value)}".rstrip() for key, value in metadata.items())


def describe(error: BaseException) -> tuple[str, int]:
    """What is wrong in words, and on which line of the block (from 0)."""
    mark = getattr(error, "problem_mark", None) or getattr(error, "context_mark", None)
    problem = getattr(error, "problem", None) or str(error) or type(error).__name__
    said = " ".join(str(problem).split())
    context = str(getattr(error, "context", None) or "")
    plain = next((words for theirs, words in IN_PLAIN_WORDS if theirs in said or theirs in context), said)
    if "not closed" in plain:
        mark = getattr(error, "context_mark", None) or mark  # where it was opened
    return plain, mark.line if mark else 0


def render_value(value: object, safe: re.Pattern[str] = SAFE_LINE) -> str:
    """A value as one line of YAML that reads back as the same value."""
    match value:
        case None:
            return ""
        case bool():
            return "true" if value else "false"
        case list() | tuple():
            items: list[object] = list(value)  # pyright: ignore[reportUnknownArgumentType]
            return "[" + ", ".join(render_value(item, SAFE_ITEM) or "null" for item in items) + "]"
        case dict():
            pairs: dict[str, object] = value  # pyright: ignore[reportUnknownVariableType]
            return (
                "{"
                + ", ".join(
                    f"{render_value(k, SAFE_ITEM)}: {render_value(v, SAFE_ITEM) or 'null'}" for k, v in pairs.items()
                )
                + "}"
            )
        case str() if safe.match(value) and resolve_scalar(value) == value:
            return value
        case str() if _is_moment(value):
            return value
        case str():
            return _quoted(value)
        case _:
            return str(value)


def _is_moment(text: str) -> bool:
    return re.match(r"\d{4}-\d\d-\d\d(?:T\d\d:\d\d(?::\d\d(?:\.\d+)?)?(?:Z|[+-]\d\d:\d\d)?)?\Z", text) is not None


def _quoted(text: str) -> str:
    dumped: str = yaml.dump(text, default_style='"', allow_unicode=True, width=float("inf"))
    return ESCAPE.sub(_readable, dumped.rstrip("\n"))


def _readable(escape: re.Match[str]) -> str:
    """An emoji as itself: PyYAML writes whatever is beyond the first 65,536 characters as a number."""
    letter = chr(int(escape[1], 16)) if escape[1] else ""
    return letter if letter.isprintable() and letter else escape[0]
