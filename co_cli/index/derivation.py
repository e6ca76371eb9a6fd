"""A file as it is stored: the columns of its note and passages, the tokens that are indexed, the text that is embedded.

The same for every engine.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, cast

from co_cli.ground.hits import Passage
from co_cli.ground.values import members_of, to_utf8
from co_cli.index.names import fold_name, names_of
from co_cli.index.tokens import fold, spaceless_run, tokens
from co_cli.notes.language import guess_language
from co_cli.notes.properties import properties_of, properties_text
from co_cli.notes.refs import FOLDERS, without_ending
from co_cli.notes.similarity import fingerprint
from co_cli.notes.wikilinks import WIKILINK, link_key

if TYPE_CHECKING:
    from co_cli.index.stored import IndexedFile
    from co_cli.notes.note import Note

WEIGHTS = {
    "title": 3.0,
    "heading": 2.0,
    "body": 1.0,
    "tags": 3.0,
    "aliases": 3.0,
    "path": 1.0,
    "fields": 1.0,
    "context": 0.3,
}
"""The indexed columns, and what a word counts in each, in units of a word in the body."""
OWN_COLUMN = frozenset(("aliases", "alias", "description"))
"""Properties that are searched in another column."""
LONGEST_WORD = 40
"""A longer run of letters and digits may be cut."""
ENCODER = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"), default=str)

Row = dict[str, Any]
FilteredColumn = Literal["tags", "fields", "path_key", "file_key", "language"]
NOTHING = "\t"
"""The value of a field without one. It is not an empty text."""
OF_PASSAGES = ("language",)
"""Those that each passage has; the others are the note's."""


class DerivedNote(NamedTuple):
    """A note as it is stored, without ids."""

    columns: Row
    names: dict[str, str]
    """What it can be asked for by, and which of its names that is."""
    links: set[str]
    supersedes: set[str]
    passages: list[tuple[Row, dict[str, list[str]]]]
    """Each passage as it is stored, and the tokens of each indexed column."""


def derive(file: IndexedFile, note: Note) -> DerivedNote:
    return DerivedNote(
        _note_columns(file, note),
        names_of(note),
        {key for target in note.links if (key := link_key(to_utf8(target)))},
        {name for target in note.supersedes if (name := fold_name(to_utf8(target)))},
        list(_passages(note, file.passages)),
    )


def stored_text(text: str) -> str:
    """Text that every engine can hold: PostgreSQL refuses NUL."""
    return to_utf8(text).replace("\0", "\ufffd")


def stored_json(value: object) -> str:
    return to_utf8(ENCODER.encode(value)) if value else "{}" if value == {} else "[]"


def quoted(text: str) -> str:
    """A text as it is written in a stored JSON list."""
    return to_utf8(ENCODER.encode(text))


def field_text(key: str, value: str) -> str:
    """A field of the frontmatter as filters compare it; the one without a key says who speaks."""
    return f"{fold(key)}\t{value}"


def unlinked(value: str) -> str:
    """A value as filters compare it: folded, and a link by the name of its note."""
    link = WIKILINK.fullmatch(value.strip())
    return fold(without_ending(link[1].split("#")[0]).rpartition("/")[2].strip() if link else value)


def languages_of(note: Note, passages: Sequence[Passage]) -> list[str]:
    """The language of each passage, as its note says, or as its text shows, or else the note's; empty if none does."""
    if note.language:
        return [note.language] * len(passages)
    guessed = [guess_language(passage.text) for passage in passages]
    around = "" if all(guessed) else guess_language(f"{note.title}\n{note.body}")
    return [language or around for language in guessed]


def filtered_column(note: Note, column: FilteredColumn, passages: Sequence[Passage]) -> str:
    """A column in which filters look for texts, of a note with these passages."""
    match column:
        case "language":
            return " ".join(languages_of(note, passages))
        case "tags":
            return stored_json(note.tags)
        case "fields":
            return stored_json(_fields(note.filtered_fields))
        case "path_key":
            return fold(note.path)
        case "file_key":
            return fold(note.path).rpartition("/")[2]


def embedding_text(title: str, heading: str, body: str, tags: str, aliases: str, around: str = "") -> str:
    """What is embedded of a passage: its words and what its note says about itself.

    Of the text around it no more than the passage is long, up to a whole word, and its end rather than its beginning:
    it must not outweigh it.
    """
    parts = title, heading, body, tags, aliases, _last_words(around, len(body))
    return "\n".join(part for part in parts if part)


def text_to_embed(note: Row, passage: Row) -> str:
    """What is embedded of a passage, given by the columns that are stored of it and of its note."""
    title = "" if note["source"] == "conversation" else note["title"]  # what was said first is not what a turn is about
    heading, body, around = passage["heading"], passage["body"], passage["context"]
    return embedding_text(title, heading, body, " ".join(json.loads(note["tags"])), note["aliases"], around)


def _last_words(text: str, size: int) -> str:
    """The end of a text, so many characters and the rest of the word that they begin in."""
    start = max(0, len(text) - size) if size else 0
    least, run = max(0, start - LONGEST_WORD), spaceless_run()
    while start > least and text[start - 1].isalnum() and text[start].isalnum() and not run.match(text, start):
        start -= 1
    return text[start:]


def _note_columns(file: IndexedFile, note: Note) -> Row:
    valid_from, valid_until = note.valid
    return {
        "source": note.source,
        "path": note.path,
        "path_key": filtered_column(note, "path_key", ()),
        "file_key": filtered_column(note, "file_key", ()),
        "ref": note.ref,
        "title": stored_text(note.title),
        "description": stored_text(note.description),
        "hash": file.hash,
        "fingerprint": fingerprint(note.body),
        "mtime": file.mtime,
        "created": note.created if note.created is not None else file.mtime,
        "tags": filtered_column(note, "tags", ()),
        "aliases": stored_text(note.also_known_as),
        "fields": filtered_column(note, "fields", ()),
        "properties": stored_text(properties_text(note.metadata)),
        "category": note.category and stored_text(note.category),
        "frontmatter": stored_json(note.metadata),
        "links": stored_json(note.links),
        "valid_from": valid_from,
        "valid_until": valid_until,
        "superseded_by": note.superseded_by and stored_text(note.superseded_by),
    }


def _passages(note: Note, passages: Sequence[Passage]) -> Iterator[tuple[Row, dict[str, list[str]]]]:
    outside, languages = stored_text(note.around), languages_of(note, passages)
    of_note = {language: _note_tokens(note, language) for language in {*languages}}
    spoken = note.source == "conversation"
    began = stored_text(note.title) if spoken else ""
    for passage, language in zip(passages, languages, strict=True):
        around = "\n".join(part for part in (began, stored_text(passage.around), outside) if part)
        heading, body = stored_text(passage.heading), stored_text(passage.text)
        row: Row = {"heading": heading, "body": body, "context": around, "language": language}
        row |= {"first_line": passage.first_line, "last_line": passage.last_line, "said": passage.said}
        own = {"heading": heading, "body": body, "context": around}
        columns = of_note[language] | {name: _tokens(text, language) for name, text in own.items()}
        if spoken:  # who says it when tells more about a turn than what the conversation began with
            columns |= {"title": columns["heading"], "heading": []}
        yield row, columns


def _note_tokens(note: Note, language: str) -> dict[str, list[str]]:
    title = tokens(note.title, language)
    return {
        "title": title,
        "tags": _tokens(" ".join(note.tags), language),
        "aliases": _tokens(note.also_known_as, language),
        "path": [token for token in tokens(spoken_path(note.path), language) if token not in title],
        "fields": _tokens(" ".join(searched_fields(note.metadata)), language),
    }


def _tokens(text: str, language: str) -> list[str]:
    return tokens(text, language) if text else []


def spoken_path(path: str) -> str:
    """The words of folders and file name; a vault's own folders say nothing."""
    path = without_ending(path)
    return path.partition("/")[2] if path.startswith(tuple(f"{folder}/" for folder in FOLDERS.values())) else path


def searched_fields(metadata: Mapping[str, object]) -> Iterator[str]:
    """The texts of properties."""
    return (text for key, text in properties_of(metadata).items() if key not in OWN_COLUMN)


def _fields(metadata: Mapping[str, object]) -> list[str]:
    found: list[str] = []
    speaker = "user"
    for key, value in metadata.items():
        texts = [text for member in members_of(value) for text in _compared(member)]
        found += [field_text(key, text) for text in texts or [NOTHING]]
        speaker = texts[0] if key == "provenance" and texts else speaker
    return [*dict.fromkeys(found), field_text("", speaker)]


def _compared(value: object) -> list[str]:
    """What a value is compared with. A link is its note's name, and what is shown for it."""
    if isinstance(value, list):  # `[[A note]]` without quotes
        members = cast("list[object]", value)
        return [text for member in members if isinstance(member, str) for text in _compared(member)]
    if value is None or isinstance(value, dict):
        return []
    if not isinstance(value, str):
        return [_folded(value)]
    link = WIKILINK.fullmatch(value.strip())
    return [unlinked(value), *([fold(link[2].strip())] if link and link[2] else [])]


def _folded(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else fold(str(value))
