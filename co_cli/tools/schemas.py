"""The arguments and answers that tools have in common, as JSON schemas."""

from __future__ import annotations

from co_cli.tools.tool import Schema

MOST_HITS = 50


def text(description: str) -> Schema:
    return {"type": "string", "description": description}


def texts(description: str, *choices: str) -> Schema:
    items: Schema = {"type": "string", "enum": list(choices)} if choices else {"type": "string"}
    return {"type": "array", "items": items, "description": description}


def number(description: str, low: float, high: float) -> Schema:
    return {"type": "number", "minimum": low, "maximum": high, "description": description}


def limit(default: int, most: int = MOST_HITS) -> Schema:
    told = f"At most so many (default {default})."
    return {"type": "integer", "minimum": 1, "maximum": most, "default": default, "description": told}


def arguments(*required: str, **properties: Schema) -> Schema:
    return {
        "type": "object",
        "properties": properties,
        "required": list(required),
        "additionalProperties": False,
    }


def answer(*required: str, **properties: Schema) -> Schema:
    return {"type": "object", "properties": properties, "required": list(required or properties)}


QUERY = text("What to look for, in your own words: a question or the words you expect in the note.")
TAGS = texts("Only notes that have all of these tags.")
CATEGORY = text("Only notes of this category: preference, fact, decision, correction, procedure, ...")
REF = text("The ref of the note, as another tool gave it: memory:slug or article:slug#L10-24.")

_STRING: Schema = {"type": "string"}
_STRINGS: Schema = {"type": "array", "items": _STRING}
_NUMBER: Schema = {"type": "number"}
_INTEGER: Schema = {"type": "integer"}

HIT = answer(
    "ref",
    "title",
    "source",
    "score",
    "text",
    ref=_STRING,
    title=_STRING,
    source=_STRING,
    score=_NUMBER,
    signals={"type": "object", "additionalProperties": _NUMBER},
    text=_STRING,
    whole={"type": "boolean", "description": "Is `text` all of it? Else read_note opens the rest."},
    tokens={"type": "integer", "description": "What the whole of it costs, in tokens, about."},
    tags=_STRINGS,
    created=_STRING,
    provenance=_STRING,
)
FOUND = answer(
    state={"type": "string", "enum": ["found", "absent", "inconclusive"]},
    searched=answer(notes=_INTEGER, passages=_INTEGER, fresh_as_of={"type": ["string", "null"]}),
    degraded=_STRINGS,
    confidence={"type": ["number", "null"], "description": "How sure it is that something here is about that, 0 to 1."},
    hits={"type": "array", "items": HIT},
    cut={**_STRINGS, "description": "Refs that were found and left out to keep the answer short."},
    without={**_STRINGS, "description": "Filters that left nothing: this is what there is without them."},
    ignored={**_STRINGS, "description": "Arguments that this tool does not know."},
)
RECEIPT = answer(
    ref=_STRING,
    title=_STRING,
    path=_STRING,
    outcome={"type": "string", "enum": ["created", "updated", "unchanged", "duplicate"]},
    version={"type": "string", "description": "Of the note as it is now, for update_memory."},
    detail=_STRING,
    read_back={"type": "boolean", "description": "The file was read again and holds the text."},
    found_again={"type": "boolean", "description": "A search for it finds it."},
    related={
        "type": "array",
        "items": answer(ref=_STRING, title=_STRING, why=_STRING),
        "description": "Memories that say something else about the same.",
    },
    masked={"type": "integer", "description": "Secrets that were masked before it was written."},
    ignored=_STRINGS,
)
FORGOTTEN = answer(ref=_STRING, path=_STRING, trash=_STRING, ignored=_STRINGS)
LISTED = answer(
    notes={
        "type": "array",
        "items": answer(
            ref=_STRING, title=_STRING, tags=_STRINGS, created=_STRING, category={"type": ["string", "null"]}
        ),
    },
    more={"type": "boolean", "description": "There are more than are listed."},
    total={"type": ["integer", "null"], "description": "How many memories the vault has, if no tags were given."},
    ignored=_STRINGS,
)
NOTE = answer(
    ref=_STRING,
    title=_STRING,
    source=_STRING,
    text=_STRING,
    tags=_STRINGS,
    category={"type": ["string", "null"]},
    created={"type": ["string", "null"]},
    updated={"type": ["string", "null"]},
    provenance=_STRING,
    version={"type": "string", "description": "Give it to update_memory with a change that is based on this."},
    fields={"type": "object", "description": "All of its frontmatter."},
    lines={"type": "array", "items": _INTEGER, "description": "First and last line of the file that `text` covers."},
    rest={"type": ["string", "null"], "description": "The ref that opens what was cut, if anything was."},
    problem={"type": ["string", "null"]},
    ignored=_STRINGS,
)
SKILL = answer(name=_STRING, description=_STRING, level=_STRING, score=_NUMBER)
FOUND_SKILLS = answer(
    state={"type": "string", "enum": ["found", "absent", "inconclusive"]},
    searched={"type": "integer", "description": "How many skills there are."},
    degraded=_STRINGS,
    confidence={"type": ["number", "null"]},
    skills={"type": "array", "items": SKILL},
    also={**_STRINGS, "description": "Names of the next ones; load_skill takes them, too."},
    ignored=_STRINGS,
)
LOADED_SKILL = answer(
    name=_STRING,
    description=_STRING,
    level={"type": "string", "enum": ["project", "user", "configured"]},
    path=_STRING,
    text=_STRING,
    files={**_STRINGS, "description": "Its other files, inside its folder."},
    fields={"type": "object", "description": "All of its frontmatter."},
    rest={"type": ["integer", "null"], "description": "The line of its file from which on it was cut, if it was."},
    ignored=_STRINGS,
)
