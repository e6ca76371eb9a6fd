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
SAFE_ITEM = re.compile(r"[^\W_](?:[\w ./()+@%-]*[\w.)%])?$")
SAFE_LINE = re.compile(r"[^\W_](?:[\w ./()+@%,;'\"!?&*=-]|:(?=[^ ])|(?<! )#)*(?<=[\w.)%!?'\"])$")
"""What YAML reads back unquoted: in a list, and alone on a line, where commas and quotes mean nothing."""


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
    return " ".join(str(problem).split()), mark.line if mark else 0


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
    return re.match(r"\d{4}-\d\d-\d\d(?:T\d\d:\d\d(?::\d\d(?:\.\d+)?)?(?:Z|[+-]\d\d:\d\d)?)?$", text) is not None


def _quoted(text: str) -> str:
    dumped: str = yaml.dump(text, default_style='"', allow_unicode=True, width=float("inf"))
    return dumped.rstrip("\n")
