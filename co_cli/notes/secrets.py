"""Find keys, tokens, passwords and card numbers in text, and mask them. Pure.

`secret_rules.py` has their forms. Placeholders such as `your-token`, `xxxx` and `${TOKEN}` are not secrets.
A rule is searched for only near its keywords, so most notes cost no more than looking for those.
"""

from __future__ import annotations

import functools
import re
from bisect import bisect_right
from collections.abc import Collection, Generator, Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from itertools import chain
from typing import NamedTuple

from co_cli.ground.errors import SecretError
from co_cli.ground.values import INVISIBLE, INVISIBLE_SIGNS
from co_cli.notes.secret_rules import (
    CHANGE,
    MIN_CHANGES,
    Rule,
    SecretSpan,
    cells,
    looks_random,
    matches,
    rules_by_keyword,
)

SHOWN = 4
"""Characters of a secret that a mask keeps."""
RECOGNISABLE = 16
"""The first characters of a longer secret that identify it, for example in a title that was cut."""
MAX_REPEATED = 100
"""Secrets of one text whose other occurrences are masked as well."""

SAME_SIGNS = {**{0xFEE0 + code: code for code in range(0x21, 0x7F)}, 0x2010: "-", 0x2011: "-", 0xA0: " "}
"""Full-width letters and signs, and hyphens, as ASCII."""
SAME = "[\uff01-\uff5e\u2010\u2011\xa0]"
NOISE = rf"\\(?=[_.~=+*#\"'-])|{INVISIBLE}|&(?:#\d{{2,6}}|#x[0-9A-Fa-f]{{2,5}}|quot|amp|lt|gt);|(?P<same>{SAME})"
"""What hides a secret: Markdown's escapes (`ghp\\_…`), characters that nobody sees, entities of HTML, and others for
ASCII."""
NOISE_SIGN = rf"[\\&{INVISIBLE_SIGNS}{SAME[1:]}"
JOINT = r"(?:\n(?<=[\w+/=-]\n)|\\\n(?<=[\w+/=-]\\\n))[ \t>]{0,8}(?=([\w+/=.-]{4,200}))"
"""The end of a line within a token."""
NO_TOKEN = r"[^\w+/=.-]"
CAPITALS = r"[A-Z0-9]+"
REST = re.compile(r"(?<=\w)[A-Za-z0-9+/][\w+/=-]*")
LONG_REST = re.compile(r"[^\s\"'`,;|<>]+")
LONG = 190
"""Characters of a value that a rule may have cut off."""
MARKDOWN_MARK = r"[*_`\\]"


class Secret(NamedTuple):
    """What was found, masked."""

    what: str
    shown: str
    line: int


def find_secrets(text: str) -> list[Secret]:
    """Each secret once, in the order of the text."""
    found: dict[str, Secret] = {}
    for start, end, name in _spans(text):
        secret = text[start:end]
        if secret not in found:
            found[secret] = Secret(_with_article(name), mask(secret), text.count("\n", 0, start) + 1)
    return list(found.values())


def _with_article(name: str) -> str:
    return f"{'an' if name[0] in 'aeiouA' else 'a'} {name}"


def mask(secret: str) -> str:
    """The first letters and the length: enough to find it, too little to use it."""
    if secret.startswith("-----"):
        return f"{secret.split('-----')[1]}… ({len(secret)} characters)"
    return f"{secret[: SHOWN if len(secret) >= 4 * SHOWN else 1]}… ({len(secret)} characters)"


def redact(text: str) -> str:
    """The text with its secrets masked wherever they occur."""
    return _redact(text, ())[0]


def redact_random(text: str) -> str:
    """The text with everything masked that looks random: in a log, what is no key after all is not missed."""

    def masked(found: re.Match[str]) -> str:
        return mask(found[0]) if looks_random(found[0]) else found[0]

    return re.sub(r"(?a)[\w+/=.-]{16,}", masked, text)


def redact_line(line: str, text: str) -> str:
    """A title or another line that was made from this text, with the text's secrets masked."""
    return _mask_repeated({text[start:end] for start, end, _ in _spans(text)}, redact(line))


def reveals_secret(title: str, text: str) -> bool:
    """Whether a title shows the beginning of one of the text's secrets, also without its punctuation."""
    letters = re.sub(r"[^A-Za-z0-9]", "", title)
    starts = (re.sub(r"[^A-Za-z0-9]", "", text[start:end])[: 2 * SHOWN] for start, end, _ in _spans(text))
    return any(start in letters for start in starts)


def without_secrets(text: str, policy: str, before: str = "", place: str = "") -> str:
    """New text as the setting `secrets` wants it: refused (SecretError), redacted, or as it is.

    Secrets of the text `before` are left alone, so that a note that has one can be edited. `place` is what to call the
    text in the message, such as `the title`; otherwise a line is named.
    """
    spans = [] if policy == "allow" else _spans(text)
    known = {before[start:end] for start, end, _ in _spans(before)} if spans and before else set[str]()
    new = {text[span.start : span.end]: span for span in reversed(spans) if text[span.start : span.end] not in known}
    if not new:
        return text
    if policy == "redact":
        redacted, masked = _redact(text, known)
        counted = _masked.get()
        if counted is not None:
            counted |= masked
        return redacted
    secret, (start, _, name) = next(reversed(new.items()))
    others = f" and {len(new) - 1} more" if len(new) > 1 else ""
    place = place or f"line {text.count(chr(10), 0, start) + 1}"
    raise SecretError(
        f"this holds {_with_article(name)} ({place}: {mask(secret)}){others}, and nothing was saved: take it out"
    )


_masked: ContextVar[set[str] | None] = ContextVar("masked", default=None)


@contextmanager
def count_masked() -> Generator[set[str]]:
    """Collects the secrets that `without_secrets` masks within this block."""
    found = set[str]()
    before = _masked.set(found)
    try:
        yield found
    finally:
        _masked.reset(before)


def _redact(text: str, known: Collection[str]) -> tuple[str, set[str]]:
    """The text with its secrets masked, except the known ones; and what was masked."""
    parts: list[str] = []
    place = 0
    masked: set[str] = set()
    for start, end, _ in _spans(text):
        secret = text[start:end]
        if secret not in known:
            parts += [text[place:start], mask(secret)]
            place = end
            masked.add(secret)
    return _mask_repeated(masked, "".join([*parts, text[place:]])), masked


def _mask_repeated(secrets: Collection[str], text: str) -> str:
    """Mask secrets where no keyword marks them, also as a heading shows them: cut, or without their `_`."""
    for secret in sorted(secrets, key=len, reverse=True)[:MAX_REPEATED]:
        bare, masked = re.sub(MARKDOWN_MARK, "", secret), mask(secret)
        for form in {secret, bare} if len(bare) >= 2 * SHOWN else (secret,):
            text = text.replace(form, masked)
            if len(form) > RECOGNISABLE and not form.startswith("-----"):
                text = re.sub(re.escape(form[:RECOGNISABLE]) + r"[\w-]*", masked.replace("\\", r"\\"), text)
    return text


class Edited(NamedTuple):
    """A text with some parts left out, and where those were."""

    text: str
    places: list[int]
    """Where the text continues after each of them."""
    shifts: list[int]
    """How many characters were left out so far."""

    def origin(self, span: SecretSpan) -> SecretSpan:
        """A span of this text as one of the text that it was made from."""
        return span._replace(start=self._before(span.start), end=self._before(span.end - 1) + 1)

    def _before(self, place: int) -> int:
        found = bisect_right(self.places, place)
        return place + (self.shifts[found - 1] if found else 0)


def _edit(text: str, edits: Iterable[re.Match[str]]) -> Edited:
    """The text with entities decoded, other signs as ASCII, and everything else that matched left out."""
    parts: list[str] = []
    places: list[int] = []
    shifts: list[int] = []
    end = length = 0
    for edit in edits:
        if edit.start() < end:  # found from its middle again
            continue
        sign = _decode(edit[0]) if edit[0].startswith("&") or edit.lastgroup else ""
        parts += [text[end : edit.start()], sign]
        length += edit.start() - end
        end = edit.end()
        places.append(length)
        length += len(sign)
        shifts.append(end - length)
    return Edited("".join([*parts, text[end:]]), places, shifts)


def _decode(sign: str) -> str:
    if sign.startswith("&"):
        from html import unescape  # a table of all entities, which a text without any does without

        sign = unescape(sign)[:1]
    return sign.translate(SAME_SIGNS)


@functools.lru_cache(maxsize=4)  # a note is asked for its secrets, masked, and compared with its title
def _spans(text: str) -> list[SecretSpan]:
    """In the order of the text, each to the end of its token. Those that overlap are one, called as the longer one."""
    noise = re.compile(NOISE)
    starts = (sign.start() for sign in re.finditer(NOISE_SIGN, text))
    plain = _edit(text, filter(None, (noise.match(text, start) for start in starts)))
    found = [*_find(plain.text)]
    joints = [joint for joint in re.finditer(JOINT, plain.text) if _is_cut(joint)]
    if joints:
        joined = _edit(plain.text, joints)
        lines = (joined.origin(span) for span in _find(joined.text, wrapped=True))
        found += [span for span in lines if any(span.start < joint.start() < span.end for joint in joints)]
    spans: list[SecretSpan] = []
    for span in sorted(found, key=lambda span: (span.start, -span.end)):
        last = spans[-1] if spans else None
        if last is None or span.start >= last.end:
            spans.append(_whole(span, plain.text))
        elif span.end > last.end:
            longer = max(last, span, key=lambda span: span.end - span.start)
            spans[-1] = _whole(SecretSpan(last.start, span.end, longer.name), plain.text)
    return [plain.origin(span) for span in spans]


def _whole(span: SecretSpan, text: str) -> SecretSpan:
    """With the rest of a token that is longer than its rule expects."""
    rest = (LONG_REST if span.end - span.start >= LONG else REST).match(text, span.end)
    return span._replace(end=rest.end()) if rest else span


def _is_cut(joint: re.Match[str]) -> bool:
    """Whether a line may end within a token: what follows is not a word, nor is what comes before, or it has a `_`."""
    if len(re.findall(CHANGE, joint[1])) < MIN_CHANGES - 1 and not re.fullmatch(CAPITALS, joint[1]):
        return False
    before = re.split(NO_TOKEN, joint.string[max(0, joint.start() - 200) : joint.start()])[-1]
    return bool("_" in before or re.search(CHANGE, before) or re.fullmatch(CAPITALS, before))


def _find(text: str, wrapped: bool = False) -> Iterator[SecretSpan]:
    found = (match for rule, windows in _windows(text, wrapped) for match in matches(rule, text, windows))
    return found if wrapped else chain(found, cells(text))


def _windows(text: str, wrapped: bool) -> Iterator[tuple[Rule, list[tuple[int, int]]]]:
    """The rules that have a keyword in the text, each with the places to search: the cost does not grow with them."""
    lowered = text.replace("İ", "I").lower()  # the one capital that becomes two characters
    triples = _triples(" ".join({*lowered.split()}))
    found: dict[Rule, list[tuple[int, int]]] = {}
    for keyword, rules in rules_by_keyword().items():
        if not triples.issuperset(_triples_of(keyword)):
            continue
        place = lowered.find(keyword) if keyword else -1
        while place >= 0:
            for rule in rules:
                if wrapped and not rule.wraps:
                    continue
                windows = found.setdefault(rule, [])
                start, end = max(0, place - rule.before), place + rule.reach
                if windows and start <= windows[-1][1] and start >= windows[-1][0]:
                    windows[-1] = (windows[-1][0], max(end, windows[-1][1]))
                else:
                    windows.append((start, end))
            place = lowered.find(keyword, place + len(keyword))
    yield from found.items()
    if not wrapped:
        yield from ((rule, [(0, len(text))]) for rule in rules_by_keyword()[""])


def _triples(text: str) -> set[tuple[str, ...]]:
    return set(zip(text, text[1:], text[2:], strict=False))


@functools.cache
def _triples_of(keyword: str) -> set[tuple[str, ...]]:
    """Every three letters of its words: a text that lacks one of them lacks the keyword, and need not be searched."""
    return set[tuple[str, ...]]().union(*map(_triples, keyword.split()))
