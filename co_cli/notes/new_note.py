"""A new note: the title, tags and fields that a draft lacks or spells badly, and the file that it becomes."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import cast

from co_cli.ground.errors import InvalidInputError
from co_cli.ground.saves import Draft
from co_cli.ground.values import OwnSource, moment_text, to_utf8
from co_cli.notes.dates import read_moment
from co_cli.notes.editing import clean_tag, render_note
from co_cli.notes.secrets import reveals_secret, without_secrets
from co_cli.notes.subjects import one_line, title_from

PROVENANCE = ("user", "agent", "web", "import")
"""Who may have said it."""
OWN_FIELDS = ("title", "kind", "tags", "category", "provenance")
"""Fields that a Draft has parameters for."""

CATEGORY_WORDS = {
    "preference": r"prefer(?:s|red)?|likes|loves|hates|dislikes|favou?rites?|I (?:like|love|hate)|would rather",
    "decision": r"decided|decision:|agreed (?:to|on|that)|(?:we|I|they) chose|settled on|opted for",
    "procedure": r"how to|steps? (?:to|for|\d)|step by step|procedure",
    "person": r"birthday|born (?:in|on)|married|wife|husband|daughter|brother|sister|colleague|works at",
    "fact": r"(?:is|are) called|stands for|is short for|is located|consists of|is defined as",
}
"""Words that tell the category of a text. The first of them in the text decides."""
_ALTERNATIVES = "|".join(f"(?P<{name}>{words})" for name, words in CATEGORY_WORDS.items())
CATEGORY_WORD = re.compile(rf"\b(?:{_ALTERNATIVES})(?!\w)", re.IGNORECASE)
JUDGED_LENGTH = 1_000
"""Characters of a text in which these words are looked for."""


class NewNote:
    """A draft made ready to be written: cleaned text, title, tags and fields."""

    def __init__(self, draft: Draft) -> None:
        self.content = to_utf8(draft.content.replace("\r\n", "\n").replace("\0", "")).strip()
        if not self.content:
            raise InvalidInputError("the text is empty: there is nothing to remember")
        self.source: OwnSource = draft.source
        self.own_title = bool(one_line(draft.title or ""))
        self.title = one_line(draft.title or "") or title_from(self.content)
        self.tags = clean_tags(draft.tags)
        self.category = one_line(draft.category or "") or None
        self.provenance = one_line(draft.provenance).lower() or "user"
        self.path = to_utf8(draft.path or "").replace("\\", "/").strip()
        self.fields = dict(draft.fields or {})
        for key in OWN_FIELDS:
            if key in self.fields:
                raise InvalidInputError(
                    f"{key} cannot be set as another field: use --{key.rstrip('s')}, or in Python the parameter {key}"
                )
        require_readable({**self.fields, "provenance": self.provenance})

    @property
    def supersedes(self) -> list[str]:
        value = self.fields.get("supersedes")
        if isinstance(value, list | tuple):
            return [str(ref) for ref in cast("Sequence[object]", value)]
        return [str(value)] if value else []

    def supersede(self, refs: Sequence[str]) -> None:
        """Add notes that this one supersedes."""
        if refs:
            self.fields["supersedes"] = one_or_list([*self.supersedes, *refs])

    def remove_secrets(self, policy: str) -> None:
        """Refuse or mask secrets, before the text is compared with notes. An error names a line of the given text."""
        if policy == "allow":
            return
        content, self.content = self.content, without_secrets(self.content, policy)
        self.title = without_secrets(self.title, policy, place="the title")
        # the title may have been cut from the text in the middle of a secret
        if content != self.content and reveals_secret(self.title, content):
            self.title = title_from(self.content)
        self.tags = [without_secrets(tag, policy, place="a tag") for tag in self.tags]
        if self.category:
            self.category = without_secrets(self.category, policy, place="the category")
        for key, value in self.fields.items():
            if isinstance(value, str):
                self.fields[key] = without_secrets(value, policy, place=f"the field {key}")

    def _guess(self) -> str | None:
        """A category for a text that has none. An entity and a resource have a kind of their own, and what was said is
        of no category.
        """
        return guess_category(f"{self.title}\n{self.content}") if self.source in ("memory", "article") else None

    def render(self, now: float) -> bytes:
        metadata: dict[str, object] = {
            "title": self.title,
            "kind": self.source,
            "created": self.fields.get("created") or moment_text(now),
            "tags": self.tags,
            "category": self.category,
            "auto_category": None if self.category else self._guess(),
            "provenance": self.provenance,
            **{key: value for key, value in self.fields.items() if key != "created"},
        }
        return render_note(metadata, self.content).encode("utf-8", "replace")


def guess_category(text: str) -> str | None:
    """The category that the words of a text tell; None if none of them does."""
    found = CATEGORY_WORD.search(text[:JUDGED_LENGTH])
    return found.lastgroup if found else None


def require_readable(fields: Mapping[str, object]) -> None:
    """Refuse values that no search could use. A field that is None is to be removed."""
    for key in ("created", "updated", "valid_from", "valid_until"):
        if fields.get(key) is not None and read_moment(fields[key]) is None:
            raise InvalidInputError(f"{key} must be a date such as 2026-03-01, not {fields[key]!r}")
    speaker = fields.get("provenance")
    if speaker is not None and speaker not in PROVENANCE:
        raise InvalidInputError(f"provenance must be one of {', '.join(PROVENANCE)}, not {speaker!r}")
    value = fields.get("importance")
    if value is not None and (isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value <= 1):
        raise InvalidInputError(f"importance must be a number between 0 and 1, not {value!r}")
    url = fields.get("url")
    if url is not None and not re.fullmatch(r"[a-zA-Z][\w+.-]*:\S+", str(url)):
        raise InvalidInputError(f"url must be an address such as https://example.org, not {url!r}")


def one_or_list(refs: Sequence[str]) -> object:
    """As frontmatter has them: one alone needs no list."""
    refs = list(dict.fromkeys(refs))
    return refs[0] if len(refs) == 1 else refs


def clean_tags(tags: Sequence[str] | None) -> list[str]:
    """Without `#` and blanks, in lower case, once each."""
    if isinstance(tags, str):
        tags = tags.split(",")
    return list(dict.fromkeys(filter(None, map(clean_tag, tags or ()))))
