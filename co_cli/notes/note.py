"""Turn the bytes of a Markdown file into a Note: title, body, typed fields, tags and links.

Lenient: every text file is a note. What is wrong with it is in `problem`.
"""

from __future__ import annotations

import re
import unicodedata
from dataclasses import dataclass
from typing import cast

from co_cli.ground.values import OWN_SOURCES, OwnSource, Source, content_hash
from co_cli.notes.dates import read_moment
from co_cli.notes.encoding import decode
from co_cli.notes.language import read_language
from co_cli.notes.markdown import Heading, headings, inline_tags, plain_text
from co_cli.notes.refs import kind_in, ref_of, stem_of
from co_cli.notes.wikilinks import find_links

CONTROL = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f]")
DAY = re.compile(r"\d{4}-\d\d-\d\d(?!\d)")


@dataclass(frozen=True, slots=True)
class Note:
    """One Markdown file. `body` and `metadata` are its content; the rest is derived from them."""

    path: str
    """Relative to the vault, with `/`."""
    ref: str
    source: Source
    title: str
    body: str
    body_line: int
    """The line of the file on which the body starts."""
    metadata: dict[str, object]
    tags: tuple[str, ...]
    aliases: tuple[str, ...]
    links: tuple[str, ...]
    description: str
    category: str | None
    created: float | None
    updated: float | None
    problem: str | None
    """What is wrong with the file, with the line. The note is usable all the same."""
    sections: tuple[Heading, ...] | None = None
    """The sections of a body that is not Markdown, such as code. None: use its Markdown headings."""
    version: str = ""
    """A short hash of the file, so that a change can name what it is based on."""

    @property
    def also_known_as(self) -> str:
        """Aliases and description, as one text to search."""
        return " · ".join(part for part in (*self.aliases, self.description) if part)

    @property
    def around(self) -> str:
        """Text around the note where it was imported from: searched with it, never shown."""
        return "\n".join(_texts(self.metadata.get("context")))

    @property
    def guessed_category(self) -> bool:
        """Whether the category is an automatic one."""
        return self.category is not None and not self.metadata.get("category")

    @property
    def filtered_fields(self) -> dict[str, object]:
        """The frontmatter as filters see it: an automatic category counts where the user gave none."""
        return {**self.metadata, "category": self.category} if self.guessed_category else self.metadata

    @property
    def valid(self) -> tuple[float | None, float | None]:
        """From when until when it is valid, if it says so. An end that is a day includes that day."""
        ends = _end_of(self.metadata.get("valid_until", self.metadata.get("stale_after")))
        if ends is None and self.deprecated:
            ends = self.updated or self.created or 0.0
        return _first_moment(self.metadata, "valid_from"), ends

    @property
    def deprecated(self) -> bool:
        """Whether it is a concept of the Open Knowledge Format, and no longer current."""
        return self.metadata.get("status") == "deprecated" and "type" in self.metadata

    @property
    def language(self) -> str:
        """The code of the language that it says it is in; empty if it says none that we know."""
        return read_language(self.metadata.get("language"))

    @property
    def limit(self) -> int | None:
        """The maximum number of characters of its text, if it says so."""
        value = self.metadata.get("limit")
        return value if isinstance(value, int) and value > 0 else None

    @property
    def supersedes(self) -> tuple[str, ...]:
        """The notes that this one replaces, by ref, title or `[[link]]`."""
        return tuple(_named(text) for text in _texts(self.metadata.get("supersedes")))

    @property
    def superseded_by(self) -> str | None:
        """The note that replaced this one, if it says so."""
        return next((_named(text) for text in _texts(self.metadata.get("superseded_by"))), None)

    @property
    def provenance(self) -> str:
        """Who said it. Files from elsewhere may be anybody's, and broken frontmatter may have said something else than
        `user`.
        """
        if self.source not in (*OWN_SOURCES, "skill"):
            return "import"
        return _line(self.metadata.get("provenance")) or ("unknown" if self.problem else "user")


def version_of(data: bytes) -> str:
    """A short hash of the content."""
    return content_hash(data)[:12]


def read_note(path: str, data: bytes) -> Note:
    from co_cli.notes.frontmatter import read_frontmatter  # imports PyYAML: 30 ms that an unchanged vault does not need

    text, problem = decode(data)
    front = read_frontmatter(text)
    body = text[front.body :].replace("\r\n", "\n")
    metadata = front.metadata
    if front.problem:
        problem = f"line {front.problem_line}: {front.problem}"
    problem = problem or front.remark or _unreadable_date(text, metadata)
    source = source_of(path, metadata)
    return Note(
        path=path,
        ref=ref_of(path, source),
        source=source,
        title=_title(path, metadata, body),
        body=body,
        body_line=text.count("\n", 0, front.body) + 1,
        metadata=metadata,
        tags=_tags(metadata, body),
        aliases=_texts(metadata.get("aliases", metadata.get("alias"))),
        links=find_links(body),
        description=_line(metadata.get("description")),
        category=_line(metadata.get("category") or metadata.get("auto_category")) or None,
        created=_created(path, metadata),
        updated=_first_moment(metadata, "updated", "modified") or generated_at(metadata),
        problem=problem,
        version=version_of(data),
    )


def source_of(path: str, metadata: dict[str, object]) -> OwnSource:
    """What `kind` says, else what its folder is for."""
    for kind in OWN_SOURCES:
        if metadata.get("kind") == kind:
            return kind
    return kind_in(path)


def _title(path: str, metadata: dict[str, object], body: str) -> str:
    title = _line(metadata.get("title"))
    if title:
        return _line(plain_text(title)) or title
    stem = stem_of(path)
    if "excalidraw-plugin" in metadata:  # its headings are the same in every drawing
        stem = stem.removesuffix(".excalidraw")
    elif "#" in body or "\n==" in body:
        for heading in headings(body.split("\n")):
            if heading.level == 1 and (text := _line(plain_text(heading.text))):
                return text
    day = _day_of(stem)
    rest = re.sub(r"[-_\s]+", " ", stem[len(day) :]).strip()
    spaced = f"{day} {rest}".strip()
    return spaced[:1].upper() + spaced[1:] if spaced else stem


def _created(path: str, metadata: dict[str, object]) -> float | None:
    """From the frontmatter, else the day that the file name begins with, as in daily notes."""
    said = _first_moment(metadata, "created", "date", "timestamp") or generated_at(metadata)
    return said if said is not None else read_moment(_day_of(stem_of(path)) or None)


def generated_at(metadata: dict[str, object]) -> float | None:
    """When the content of a concept of the Open Knowledge Format last changed."""
    generated = metadata.get("generated")
    return read_moment(cast("dict[str, object]", generated).get("at")) if isinstance(generated, dict) else None


def _day_of(stem: str) -> str:
    """`2026-03-01` of `2026-03-01-standup`; empty if the name does not begin with a day."""
    found = DAY.match(stem)
    return found[0] if found and read_moment(found[0]) is not None else ""


def _tags(metadata: dict[str, object], body: str) -> tuple[str, ...]:
    """From the frontmatter and the text, in lower case."""
    value = metadata.get("tags", metadata.get("tag"))
    if isinstance(value, str):
        value = [part for part in re.split(r"[,\s]+" if "," not in value else r",", value) if part]
    named = [_line(tag).lstrip("#").strip() for tag in _texts(value)]
    found = [unicodedata.normalize("NFC", tag).casefold() for tag in (*named, *inline_tags(body)) if tag]
    return tuple(dict.fromkeys(found))


def own_tags(note: Note) -> list[str]:
    """The tags in the frontmatter, without those in the text."""
    return list(_tags(note.metadata, ""))


def _texts(value: object) -> tuple[str, ...]:
    if value is None or isinstance(value, dict):
        return ()
    if isinstance(value, list):
        members = cast("list[object]", value)
        return tuple(line for line in (_line(member) for member in members) if line)
    line = _line(value)
    return (line,) if line else ()


def _line(value: object) -> str:
    """A scalar as one printable line; empty for anything else."""
    if value is None or isinstance(value, list | dict):
        return ""
    if isinstance(value, bool):
        return "true" if value else "false"
    return " ".join(CONTROL.sub(" ", str(value)).split())


def _named(text: str) -> str:
    """The name of a note in a field, without the brackets of a link."""
    return text.removeprefix("[[").removesuffix("]]").partition("|")[0].strip()


def _end_of(value: object) -> float | None:
    moment = read_moment(value)
    whole_day = moment is not None and moment % 86_400 == 0 and ":" not in str(value)
    return moment + 86_400 if moment is not None and whole_day else moment


def _unreadable_date(text: str, metadata: dict[str, object]) -> str | None:
    """Report a date that cannot be read, because filters and recency ignore it."""
    for key in ("created", "updated", "valid_from", "valid_until"):
        value = metadata.get(key)
        if value not in (None, "") and read_moment(value) is None:
            found = re.search(rf"^{key}:", text, re.M)
            line = text.count("\n", 0, found.start()) + 1 if found else 1
            return f"line {line}: {key} must be a date such as 2026-03-01, not {_line(value)[:40]!r}"
    return None


def _first_moment(metadata: dict[str, object], *keys: str) -> float | None:
    for key in keys:
        moment = read_moment(metadata.get(key))
        if moment is not None:
            return moment
    return None
