"""Find what should not stand in a note, such as keys and passwords, and show it without giving it away. Pure.

Some 350 forms are those of a rule set that others keep up to date (`secret_rules.tsv`, from Betterleaks and gitleaks,
made by `.ci/secret_rules.py`). A few are ours: `password: …` where what follows is as irregular as passwords are, a
password in an address, a card number whose digits add up. A word that stands for one (`your-token`, `xxxx`, `${TOKEN}`)
is none. A rule is compiled when a text first holds one of its keywords; most notes hold none.
"""

from __future__ import annotations

import functools
import math
import os
import re
from bisect import bisect_right
from collections import Counter
from collections.abc import Callable, Collection, Generator, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import NamedTuple

from co_cli.errors import SecretError

SHOWN = 4
LEAST_OF_A_PASSWORD = 2.5
"""Bits a character; a token that a machine made has 3 and more."""
MOST_ENTROPY = 3.0
"""That a rule may ask for: of keys in hexadecimal digits one in seven has less than the 3.5 that some of them do."""
RULES = os.path.join(os.path.dirname(__file__), "secret_rules.tsv")
PRIVATE_KEY = re.compile(
    r"-----BEGIN (?:[A-Z0-9]+ )*PRIVATE KEY(?: BLOCK)?-----"
    r"(?=[\s\S]{0,400}?[A-Za-z0-9+/=]{32})"  # whoever writes about the first line of a key gives none away
    r"(?:[^-]{0,20000}-----END (?:[A-Z0-9]+ )*PRIVATE KEY(?: BLOCK)?-----|[A-Za-z0-9+/=\s:,-]{0,20000})"
)
IN_AN_ADDRESS = re.compile(r"\b[a-z][a-z0-9+.-]{1,20}://(?P<user>[^\s:/@]{1,200}):(?P<secret>[^\s:/@]{4,200})@")
OF_EXAMPLES = ("pass", "password", "passwd", "passw0rd", "secret", "admin", "test", "tiger", "token")
BEARING = re.compile(
    r"\b(?:sk-[A-Za-z0-9_-]{20,200}|gh[pousr]_[A-Za-z0-9]{30,255}|[rs]k_(?:live|test)_[0-9A-Za-z]{16,255})"
)
"""Keys of services that nobody has a rule for yet, which copy the form of a better-known one."""
LONG = re.compile(r"[A-Za-z0-9_+/=~.-]{16,}")
MIXED = re.compile(r"\d|[a-z][A-Z]").search
"""Every key of the rule set has one such stretch, with a digit or a capital letter in it; most notes have none."""
SWITCH = re.compile(r"[a-z][A-Z]")
ESCAPE = re.compile(r"\\(?=[_.~=+*#-])")
MARKUP = re.compile(r"[*_`\\]")
TELLING = 16
"""Letters of a longer secret that mean it, also where the rest is cut off."""
FEW = 100
"""Secrets of one text that are looked for once more without the words that gave them away."""
CARD = re.compile(
    r"(?<![\w.-])(?:(?:4\d{3}|5[1-5]\d\d|2[2-7]\d\d|35\d\d|6011|6[245]\d\d)([ -]?)\d{4}\1\d{4}\1\d{4}"
    r"|3[47]\d{2}([ -]?)\d{6}\2\d{5}|3[068]\d{2}([ -]?)\d{6}\3\d{4})(?![\w.-]*\w)"
)
"""As long as its first digits say: an IMEI, an id of a chat or the code of a product adds up, too."""
NAMED = re.compile(
    r"(?i)\b(?P<name>passw(?:or)?d|passphrase|pwd|secret|api[ _-]?key|access[ _-]?key|auth[ _-]?token|token)\b[\"']?"
    r"\s{0,9}(?:is|[:=])\s{0,9}[\"'`]?(?P<secret>[^\s\"'`,;]{8,200})"
)
WORDS = ("passw", "passphrase", "pwd", "secret", "key", "token")
SIGNS = "!@#$%^&*?~+"
CODE = re.compile(r"[()\[\]{}\\|]|^[A-Za-z_]+(?:[.:][A-Za-z_]\w*)+$|^\w*_\w*[A-Za-z]$")
"""A call, an index, `module.name`, `a_name`: what stands behind `token =` in a program."""
STANDS_FOR_ONE = re.compile(
    r"(?i)x{4,}|\*{3,}|\.{3,}|…|<|\$\{|^\$[A-Za-z_]\w*|"
    r"\{\{|example|your[-_ ]|change-?me|placeholder|redacted|dummy|0123456|abcdefgh"
)
ELSEWHERE = re.compile(
    r"^(?:arn|ssm|vault):|^projects/|"
    r"^(?i:see|ask|look|check|kept|stored|in|from)[-_:/](?:[A-Za-z]+[-_:/])*"
    r"(?:(?i:ticket|issue|vault|wiki|page|docs?|runbook|safe|keychain|keepass|bitwarden|1password|lastpass)"
    r"(?:[-_:/#](?:[A-Z]{2,10}-)?\d{1,6})?|[A-Z]{2,10}-\d{1,6})$"
)
"""Says where the secret is kept: `arn:aws:secretsmanager:…`, `see-ticket-OPS-4412`."""
COMMIT = re.compile(r"[0-9a-f]{40}")
OF_GIT = re.compile(r"(?i)\b(?:git|commits?|committed|sha-?1?|revision|checkout|branch|merged?|cache|etag|digest)\b")
"""Words that stand on the line of a commit's name, which may be called a token, too."""
BEFORE, AFTER = 100, 1_500
"""Characters around a keyword in which a rule looks: what a text costs does not grow with the number of rules."""


class Secret(NamedTuple):
    """What was found, and as much of it as may be shown."""

    what: str
    shown: str
    line: int


class Rule(NamedTuple):
    """One form, as the rule set has it."""

    name: str
    least_entropy: float
    random: bool
    """It must not read like words."""
    form: str


class Span(NamedTuple):
    """Where a secret stands, and what it is."""

    start: int
    end: int
    what: str


def find_secrets(text: str) -> list[Secret]:
    """Each once, in the order of the text."""
    found: dict[str, Secret] = {}
    line, place = 1, 0
    for start, end, what in _spans(text):
        line, place = line + text.count("\n", place, start), start
        if text[start:end] not in found:
            found[text[start:end]] = Secret(what, mask(text[start:end]), line)
    return list(found.values())


_masked: ContextVar[set[str] | None] = ContextVar("masked", default=None)


@contextmanager
def counting() -> Generator[set[str]]:
    """The secrets that are masked in here before something is written, each once, however often it is gone over."""
    found = set[str]()
    before = _masked.set(found)
    try:
        yield found
    finally:
        _masked.reset(before)


def redact(text: str, known: Collection[str] = ()) -> str:
    """The text with its secrets masked wherever they stand, but for those that are known."""
    return _redacted(text, known)[0]


def _redacted(text: str, known: Collection[str]) -> tuple[str, set[str]]:
    """The same, and what was masked."""
    parts: list[str] = []
    place = 0
    masked: set[str] = set()
    for start, end, _ in _spans(text):
        secret = text[start:end]
        if secret not in known:
            parts += [text[place:start], mask(secret)]
            place = end
            masked.add(secret)
    shown = "".join([*parts, text[place:]])
    for secret in sorted(masked, key=len, reverse=True)[:FEW] if shown != text else ():
        shown = _without_forms_of(secret, shown)  # once more without the words that gave it away
    return shown, masked


def _without_forms_of(secret: str, text: str) -> str:
    """The secret masked also where it was made part of a heading: its `_` taken for Markdown, its end cut off."""
    bare = MARKUP.sub("", secret)
    for form in {secret, bare} if len(bare) >= 2 * SHOWN else (secret,):
        text = text.replace(form, mask(secret))
        if len(form) > TELLING and not form.startswith("-----"):
            text = re.sub(re.escape(form[:TELLING]) + r"[\w-]*", lambda _: mask(secret), text)
    return text


def without_secrets(text: str, policy: str, before: str = "", place: str = "") -> str:
    """A text that is to be written, as `policy` wants it: refused (SecretError), redacted, or as it is.

    What stood in the text `before` is not looked at again: one may mend a title beside a key that was there already.
    `place` is what a person calls it, such as `the title`; else a line is named.
    """
    if policy == "allow":
        return text
    spans = _spans(text)
    known = {before[start:end] for start, end, _ in _spans(before)} if spans and before else set[str]()
    new = [span for span in spans if text[span.start : span.end] not in known]
    if not new:
        return text
    if policy == "redact":
        shown, masked = _redacted(text, known)
        counted = _masked.get()
        if counted is not None:
            counted |= masked
        return shown
    start, end, what = new[0]
    more = len({text[span.start : span.end] for span in new}) - 1
    others = f" and {more} more" if more else ""
    place = place or f"line {text.count(chr(10), 0, start) + 1}"
    raise SecretError(
        f"this holds {what} ({place}: {mask(text[start:end])}){others}, and nothing was saved: take it out, or set "
        "CO_SECRETS to redact or allow"
    )


def redact_line(line: str, text: str) -> str:
    """A title or another line that was made from this text, with the text's secrets masked, in whatever form."""
    if not any(map(MIXED, re.findall(r"[\w-]{8,}", line))):
        return line
    return redact(f"{text}\n{line}").rpartition("\n")[2]


def gives_away(title: str, text: str) -> bool:
    """Is there the beginning of one of the text's secrets in its title, in whatever form it was cut out?"""
    letters = re.sub(r"[^A-Za-z0-9]", "", title)
    starts = (re.sub(r"[^A-Za-z0-9]", "", text[start:end])[: 2 * SHOWN] for start, end, _ in _spans(text))
    return any(start in letters for start in starts)


def mask(secret: str) -> str:
    """The first letters, and how long it is: enough to find it, too little to use it."""
    if secret.startswith("-----"):
        return f"{secret.split('-----')[1]}… ({len(secret)} characters)"
    shown = SHOWN if len(secret) >= 4 * SHOWN else 1
    return f"{secret[:shown]}… ({len(secret)} characters)"


def entropy(text: str) -> float:
    """Bits a character."""
    counts = Counter(text)
    return -sum(count / len(text) * math.log2(count / len(text)) for count in counts.values()) if text else 0.0


def _spans(text: str) -> list[Span]:
    """In the order of the text; of two that overlap the longer one. Markdown's escapes (`ghp\\_…`) hide nothing."""
    spans: list[Span] = []
    plain, places = _unescaped(text)
    found = [Span(places(start), places(end - 1) + 1, what) for start, end, what in _found(plain)]
    for span in sorted(found, key=lambda span: (span.start, -span.end)):
        if spans and span.start < spans[-1].end:
            if span.end - span.start > spans[-1].end - spans[-1].start:
                spans[-1] = span
            continue
        spans.append(span)
    return spans


def _unescaped(text: str) -> tuple[str, Callable[[int], int]]:
    """The text without Markdown's escapes, and where each letter of it stands in the text."""
    gone = [found.start() for found in ESCAPE.finditer(text)] if "\\" in text else []
    if not gone:
        return text, lambda place: place
    moved = [place - before for before, place in enumerate(gone)]  # where in the plain text each was taken out
    return ESCAPE.sub("", text), lambda place: place + bisect_right(moved, place)


def _found(text: str) -> Iterator[Span]:
    lowered = text.lower()
    if len(lowered) != len(text):  # a letter became two, and places would differ
        lowered = "".join(letter.lower() if letter.isascii() else letter for letter in text)
    if "-----begin" in lowered:
        for match in PRIVATE_KEY.finditer(text):
            yield Span(match.start(), match.start() + len(match[0].rstrip()), "a private key")
    if "://" in lowered and "@" in lowered:
        for match in IN_AN_ADDRESS.finditer(text):
            port = match["secret"].isdigit() and len(match["secret"]) < 6
            known = match["secret"].lower() in OF_EXAMPLES or match["secret"] == match["user"]
            if not port and not known and not STANDS_FOR_ONE.search(match["secret"]):
                yield Span(*match.span("secret"), "a password in an address")
    if any(map(MIXED, LONG.findall(text))):
        yield from _by_rules(text, lowered)
        for match in BEARING.finditer(text):
            if _random(match[0]) and not STANDS_FOR_ONE.search(match[0]):
                yield Span(*match.span(), "an API key")
    if any(word in lowered for word in WORDS):
        for match in NAMED.finditer(text):
            secret = match["secret"].rstrip(".!?)]")
            spoken = not match["name"].lower().startswith("p") and _spoken(secret)
            none = spoken or STANDS_FOR_ONE.search(secret) or ELSEWHERE.search(secret) or _is_commit(match, secret)
            if not none and _irregular(secret):
                start = match.start("secret")
                yield Span(start, start + len(secret), _a(match["name"].lower()))
    for match in CARD.finditer(text):
        digits = [int(digit) for digit in match[0] if digit.isdigit()]
        if 13 <= len(digits) <= 19 and len(set(digits)) > 3 and _adds_up(digits):
            yield Span(*match.span(), "a card number")


def _is_commit(named: re.Match[str], secret: str) -> bool:
    """`the token of the cache is <40 digits>, the commit that was built`: only beside a word that says so."""
    if named["name"].lower() != "token" or not COMMIT.fullmatch(secret):
        return False
    text = named.string
    start, end = text.rfind("\n", 0, named.start()) + 1, text.find("\n", named.end())
    return bool(OF_GIT.search(text, start, len(text) if end < 0 else end))


def _spoken(text: str) -> bool:
    """Words and numbers with signs between them, such as `ERC-20/BEP-20`, `gpt-4o-2024-08-06` or a key to press."""
    pieces = re.split(r"[-/+.:_]+", text)
    return len(pieces) > 2 and all(
        len(piece) < 4 or (piece.isalpha() and len(piece) < 13) or (piece.isdigit() and len(piece) < 13)
        for piece in pieces
    )


def _by_rules(text: str, lowered: str) -> Iterator[Span]:
    windows: dict[int, list[tuple[int, int]]] = {}
    for keyword, numbers in _keywords():
        place = lowered.find(keyword)
        while place >= 0:
            for number in numbers:
                windows.setdefault(number, []).append((max(0, place - BEFORE), place + AFTER))
            place = lowered.find(keyword, place + len(keyword))
    for number, around in windows.items():
        rule = _rules()[number]
        for start, end in _joined(around):
            for match in _compiled(rule.form).finditer(text, start, end):
                group = next((number for number, group in enumerate(match.groups(), 1) if group), 0)
                secret = match[group]
                if (
                    entropy(secret) > rule.least_entropy
                    and not STANDS_FOR_ONE.search(secret)
                    and (not rule.random or _random(secret))
                ):
                    yield Span(*match.span(group), _a(rule.name))


def _joined(windows: list[tuple[int, int]]) -> Iterator[tuple[int, int]]:
    """Windows that overlap become one."""
    start, end = -1, -1
    for first, last in sorted(windows):
        if first > end:
            if end >= 0:
                yield start, end
            start = first
        end = max(end, last)
    yield start, end


@functools.cache
def _rules() -> list[Rule]:
    with open(RULES, encoding="utf-8") as file:
        rows = [line.rstrip("\n").split("\t") for line in file]
    return [Rule(name, min(float(least), MOST_ENTROPY), random == "1", form) for name, least, random, _, form in rows]


@functools.cache
def _keywords() -> list[tuple[str, list[int]]]:
    """Each keyword with the rules that ask for it. Together with `_rules` this takes a millisecond, once."""
    keywords: dict[str, list[int]] = {}
    with open(RULES, encoding="utf-8") as file:
        for number, line in enumerate(file):
            for keyword in line.split("\t")[3].split("|"):
                keywords.setdefault(keyword, []).append(number)
    return list(keywords.items())


@functools.lru_cache(maxsize=64)
def _compiled(form: str) -> re.Pattern[str]:
    return re.compile(form, re.ASCII)


def _a(name: str) -> str:
    return f"{'an' if name[0] in 'aeiou' else 'a'} {name}"


def _random(text: str) -> bool:
    """Is there a long stretch without a joint in which letters and digits, or capitals, are mixed? Names have none."""
    parts = [part for part in re.split(r"[^A-Za-z0-9]+", text) if len(part) >= 16 and not part.isdigit()]
    return any(not part.isalpha() or len(SWITCH.findall(part)) >= 3 for part in parts)


def _adds_up(digits: list[int]) -> bool:
    """Luhn's sum, which one wrong digit spoils."""
    doubled = [2 * digit - 9 * (digit > 4) for digit in digits[-2::-2]]
    return (sum(digits[-1::-2]) + sum(doubled)) % 10 == 0


def _irregular(text: str) -> bool:
    """Letters and digits mixed, or signs among them, and few of them twice. A line of a program is none."""
    kinds = (any(map(str.isdigit, text)), any(map(str.islower, text)), any(map(str.isupper, text)))
    signs = any(letter in SIGNS for letter in text)
    mixed = (kinds[0] and (kinds[1] or kinds[2])) or (signs and sum(kinds) >= 1)
    address = "://" in text or text.startswith(("/", "./", "--"))
    return len(text) >= 8 and mixed and not address and entropy(text) >= LEAST_OF_A_PASSWORD and not CODE.search(text)
