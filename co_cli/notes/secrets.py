"""Find keys, tokens, passwords and card numbers in text, and mask them. Pure.

The rules are data: about 350 come from Betterleaks and gitleaks (`secret_rules.tsv`, made by `.ci/secret_rules.py`),
`OWN_RULES` adds what those lack. Placeholders such as `your-token`, `xxxx` and `${TOKEN}` are not secrets.
A rule is searched for only near its keywords, so most notes cost no more than looking for those.
"""

from __future__ import annotations

import functools
import math
import os
import re
import string
from bisect import bisect_right
from collections import Counter
from collections.abc import Callable, Collection, Generator, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import NamedTuple

from co_cli.errors import SecretError

RULES_FILE = os.path.join(os.path.dirname(__file__), "secret_rules.tsv")
MAX_RULE_ENTROPY = 3.0
"""Bits per character. Some rules ask for 3.5, but one in seven hexadecimal keys has less."""
MIN_PASSWORD_ENTROPY = 2.5
SHOWN = 4
"""Characters of a secret that a mask keeps."""
RECOGNISABLE = 16
"""So many first characters of a longer secret identify it, for example in a title that was cut."""
MAX_REPEATED = 100
"""Secrets of one text whose other occurrences are masked as well."""
BEFORE_KEYWORD, AFTER_KEYWORD = 100, 1_500

PLACEHOLDER = re.compile(
    r"(?i)x{4,}|\*{3,}|\.{3,}|…|<|\$\{|^\$[A-Za-z_]\w*|"
    r"\{\{|example|your[-_ ]|change-?me|placeholder|redacted|dummy|0123456|abcdefgh"
)
EXAMPLE_PASSWORDS = ("pass", "password", "passwd", "passw0rd", "secret", "admin", "test", "tiger", "token")
CODE = re.compile(r"[()\[\]{}\\|]|^[A-Za-z_]+(?:[.:][A-Za-z_]\w*)+$|^\w*_\w*[A-Za-z]$|://|^--")
"""Source code or an address after `token =`: a call, an index, `module.name`, `a_name`."""
POINTER = re.compile(
    r"^(?:arn|ssm|vault):|^projects/|"
    r"^(?i:see|ask|look|check|kept|stored|in|from)[-_:/](?:[A-Za-z]+[-_:/])*"
    r"(?:(?i:ticket|issue|vault|wiki|page|docs?|runbook|safe|keychain|keepass|bitwarden|1password|lastpass)"
    r"(?:[-_:/#](?:[A-Z]{2,10}-)?\d{1,6})?|[A-Z]{2,10}-\d{1,6})$"
)
"""Says where a secret is kept: `arn:aws:secretsmanager:…`, `see-ticket-OPS-4412`."""
COMMIT = re.compile(r"[0-9a-f]{40}")
GIT_WORD = re.compile(r"(?i)\b(?:git|commits?|committed|sha-?1?|revision|checkout|branch|merged?|cache|etag|digest)\b")
MARKDOWN_ESCAPE = re.compile(r"\\(?=[_.~=+*#-])")
MARKDOWN_MARK = re.compile(r"[*_`\\]")
ASCII_LOWER = str.maketrans(string.ascii_uppercase, string.ascii_lowercase)


class Secret(NamedTuple):
    """What was found, masked."""

    what: str
    shown: str
    line: int


class SecretSpan(NamedTuple):
    """Where a secret is, and what it is."""

    start: int
    end: int
    what: str


class Rule(NamedTuple):
    """One form of secret: the group `secret` of its pattern, else the first group that matched, else all of it."""

    name: str
    """Empty: the group `name` says what it is."""
    keywords: tuple[str, ...]
    """In lower case. The pattern is tried only near one of them, or everywhere if there are none."""
    pattern: str
    accept: Callable[[re.Match[str], str], bool] | None = None
    """A further check of the match and its secret."""
    min_entropy: float = 0.0
    reach: int = AFTER_KEYWORD
    """Characters after the keyword in which the secret ends."""


def _is_real(match: re.Match[str], secret: str) -> bool:
    return not PLACEHOLDER.search(secret)


def _is_random(match: re.Match[str], secret: str) -> bool:
    """Names have no long run of mixed letters and digits, or of letters in changing case."""
    runs = [run for run in re.split(r"[^A-Za-z0-9]+", secret) if len(run) >= 16 and not run.isdigit()]
    return _is_real(match, secret) and any(not run.isalpha() or len(re.findall("[a-z][A-Z]", run)) >= 3 for run in runs)


def _is_url_password(match: re.Match[str], secret: str) -> bool:
    port = secret.isdigit() and len(secret) < 6
    return not port and secret.lower() not in EXAMPLE_PASSWORDS and secret != match["user"] and _is_real(match, secret)


def _is_password(match: re.Match[str], secret: str) -> bool:
    """Letters mixed with digits or signs, few of them repeated, and neither code nor a hint nor a commit."""
    name = match["name"].lower()
    if not _is_real(match, secret) or CODE.search(secret) or POINTER.search(secret):
        return False
    if secret.startswith(("/", "./")) and not _is_random(match, secret):  # a path
        return False
    if not name.startswith(("pass", "pwd")) and _is_phrase(secret):
        return False
    if name == "token" and COMMIT.fullmatch(secret) and GIT_WORD.search(_line_around(match)):
        return False
    letters = any(map(str.islower, secret)) or any(map(str.isupper, secret))
    digits, signs = any(map(str.isdigit, secret)), any(sign in secret for sign in "!@#$%^&*?~+")
    mixed = (digits and letters) or (signs and (digits or letters))
    return mixed and entropy(secret) >= MIN_PASSWORD_ENTROPY


def _is_phrase(text: str) -> bool:
    """Words and numbers joined by signs, such as `ERC-20/BEP-20`, `gpt-4o-2024-08-06` or a key combination."""
    pieces = re.split(r"[-/+.:_]+", text)
    return len(pieces) > 2 and all(
        len(piece) < 4 or (len(piece) < 13 and (piece.isalpha() or piece.isdigit())) for piece in pieces
    )


def _line_around(match: re.Match[str]) -> str:
    text = match.string
    end = text.find("\n", match.end())
    return text[text.rfind("\n", 0, match.start()) + 1 : len(text) if end < 0 else end]


def _is_card(match: re.Match[str], secret: str) -> bool:
    """Luhn's checksum. Numbers with few different digits are examples."""
    digits = [int(digit) for digit in secret if digit.isdigit()]
    doubled = [2 * digit - 9 * (digit > 4) for digit in digits[-2::-2]]
    return len(set(digits)) > 3 and (sum(digits[-1::-2]) + sum(doubled)) % 10 == 0


OWN_RULES = (
    Rule(
        "private key",
        ("-----begin",),
        r"-----BEGIN (?:[A-Z0-9]+ )*PRIVATE KEY(?: BLOCK)?-----"
        r"(?=[\s\S]{0,400}?[A-Za-z0-9+/=]{32})"  # the first line alone gives nothing away
        r"(?:[^-]{0,20000}-----END (?:[A-Z0-9]+ )*PRIVATE KEY(?: BLOCK)?-----|[A-Za-z0-9+/=\s:,-]{0,20000}(?<=\S))",
        reach=21_000,
    ),
    Rule(
        "password in an address",
        ("://",),
        r"\b[a-z][a-z0-9+.-]{1,20}://(?P<user>[^\s:/@]{1,200}):(?P<secret>[^\s:/@]{4,200})@",
        _is_url_password,
    ),
    Rule(  # services without a rule of their own copy the form of a better-known one
        "API key",
        ("sk-", "ghp_", "gho_", "ghu_", "ghs_", "ghr_", "sk_live_", "sk_test_", "rk_live_", "rk_test_"),
        r"\b(?:sk-[A-Za-z0-9_-]{20,200}|gh[pousr]_[A-Za-z0-9]{30,255}|[rs]k_(?:live|test)_[0-9A-Za-z]{16,255})",
        _is_random,
    ),
    Rule("telegram bot token", (":aa",), r"(?<!\d)\d{8,10}:AA[A-Za-z0-9_-]{33}(?![A-Za-z0-9_-])", _is_real),
    Rule(  # also at the end of a longer name: DB_PASSWORD, clientSecret
        "",
        ("passw", "passphrase", "_pass", "pwd", "secret", "key", "token"),
        r"(?i)(?:(?<![^\W_])|(?-i:(?<=[a-z])(?=[A-Z])))"
        r"(?P<name>passw(?:or)?d|passphrase|(?<=_)pass|pwd|secret(?:[ _-]?access)?[ _-]?key(?:_base)?|secret"
        r"|(?:api|access|private|encryption|signing)[ _-]?key|(?:auth[ _-]?)?token)(?:_?\d{1,2})?\b[\"']?"
        r"\s{0,9}(?:is|[:=])\s{0,9}[\"'`]?(?P<secret>[^\s\"'`,;]{7,199}[^\s\"'`,;.!?)\]])",
        _is_password,
    ),
    Rule(  # with the length that its first digits say: IMEIs and product codes have the same checksum
        "card number",
        (),
        r"(?<![\w.-])(?P<secret>(?:4\d{3}|5[1-5]\d\d|2[2-7]\d\d|35\d\d|6011|6[245]\d\d)([ -]?)\d{4}\2\d{4}\2\d{4}"
        r"|3[47]\d{2}([ -]?)\d{6}\3\d{5}|3[068]\d{2}([ -]?)\d{6}\4\d{4})(?![\w.-]*\w)",
        _is_card,
    ),
)


def find_secrets(text: str) -> list[Secret]:
    """Each secret once, in the order of the text."""
    found: dict[str, Secret] = {}
    for start, end, what in _spans(text):
        secret = text[start:end]
        if secret not in found:
            found[secret] = Secret(what, mask(secret), text.count("\n", 0, start) + 1)
    return list(found.values())


def mask(secret: str) -> str:
    """The first letters and the length: enough to find it, too little to use it."""
    if secret.startswith("-----"):
        return f"{secret.split('-----')[1]}… ({len(secret)} characters)"
    return f"{secret[: SHOWN if len(secret) >= 4 * SHOWN else 1]}… ({len(secret)} characters)"


def redact(text: str) -> str:
    """The text with its secrets masked wherever they occur."""
    return _redact(text, ())[0]


def redact_line(line: str, text: str) -> str:
    """A title or another line that was made from this text, with the text's secrets masked."""
    return redact(f"{text}\n{line}").rpartition("\n")[2]


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
    secret, (start, _, what) = next(reversed(new.items()))
    others = f" and {len(new) - 1} more" if len(new) > 1 else ""
    place = place or f"line {text.count(chr(10), 0, start) + 1}"
    raise SecretError(f"this holds {what} ({place}: {mask(secret)}){others}, and nothing was saved: take it out")


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


def entropy(text: str) -> float:
    """Bits per character."""
    return -sum(count / len(text) * math.log2(count / len(text)) for count in Counter(text).values())


def _redact(text: str, known: Collection[str]) -> tuple[str, set[str]]:
    """The text with its secrets masked, but for the known ones, and what was masked."""
    parts: list[str] = []
    place = 0
    masked: set[str] = set()
    for start, end, _ in _spans(text):
        secret = text[start:end]
        if secret not in known:
            parts += [text[place:start], mask(secret)]
            place = end
            masked.add(secret)
    redacted = "".join([*parts, text[place:]])
    for secret in sorted(masked, key=len, reverse=True)[:MAX_REPEATED]:
        redacted = _mask_repeated(secret, redacted)
    return redacted, masked


def _mask_repeated(secret: str, text: str) -> str:
    """Mask a secret where no keyword marks it, also as a heading shows it: cut, or without its `_`."""
    bare = MARKDOWN_MARK.sub("", secret)
    for form in {secret, bare} if len(bare) >= 2 * SHOWN else (secret,):
        text = text.replace(form, mask(secret))
        if len(form) > RECOGNISABLE and not form.startswith("-----"):
            text = re.sub(re.escape(form[:RECOGNISABLE]) + r"[\w-]*", lambda _: mask(secret), text)
    return text


def _spans(text: str) -> list[SecretSpan]:
    """In the order of the text; of two that overlap the longer one. Markdown's escapes (`ghp\\_…`) are ignored."""
    escapes = [found.start() for found in MARKDOWN_ESCAPE.finditer(text)] if "\\" in text else []
    removed = [place - count for count, place in enumerate(escapes)]  # their places in the plain text
    spans: list[SecretSpan] = []
    found = (
        SecretSpan(start + bisect_right(removed, start), end + bisect_right(removed, end - 1), what)
        for start, end, what in _find(MARKDOWN_ESCAPE.sub("", text) if escapes else text)
    )
    for span in sorted(found, key=lambda span: (span.start, -span.end)):
        if not spans or span.start >= spans[-1].end:
            spans.append(span)
        elif span.end - span.start > spans[-1].end - spans[-1].start:
            spans[-1] = span
    return spans


def _find(text: str) -> Iterator[SecretSpan]:
    for rule, windows in _windows(text):
        pattern = _compiled(rule.pattern)
        for match in (match for start, end in windows for match in pattern.finditer(text, start, end)):
            groups = (number for number, group in enumerate(match.groups(), 1) if group)
            group = "secret" if "secret" in pattern.groupindex else next(groups, 0)
            if entropy(match[group]) > rule.min_entropy and (not rule.accept or rule.accept(match, match[group])):
                name = rule.name or match["name"].lower()
                yield SecretSpan(*match.span(group), f"{'an' if name[0] in 'aeiouA' else 'a'} {name}")


def _windows(text: str) -> Iterator[tuple[Rule, list[tuple[int, int]]]]:
    """The rules that have a keyword in the text, each with the places to search: the cost does not grow with them."""
    lowered = text.lower() if text.isascii() else text.translate(ASCII_LOWER)
    found: dict[Rule, list[tuple[int, int]]] = {}
    for keyword, rules in _rules_by_keyword().items():
        place = lowered.find(keyword) if keyword else -1
        while place >= 0:
            for rule in rules:
                windows = found.setdefault(rule, [])
                start, end = max(0, place - BEFORE_KEYWORD), place + rule.reach
                if windows and start <= windows[-1][1] and start >= windows[-1][0]:
                    windows[-1] = (windows[-1][0], max(end, windows[-1][1]))
                else:
                    windows.append((start, end))
            place = lowered.find(keyword, place + len(keyword))
    yield from found.items()
    yield from ((rule, [(0, len(text))]) for rule in _rules_by_keyword()[""])


@functools.cache
def _rules_by_keyword() -> dict[str, list[Rule]]:
    """Takes a millisecond, once."""
    with open(RULES_FILE, encoding="utf-8") as file:
        rows = [line.rstrip("\n").split("\t") for line in file]
    rules = [
        Rule(
            name,
            tuple(keywords.split("|")),
            f"(?a:{pattern})",
            _is_random if random == "1" else _is_real,
            min(float(least), MAX_RULE_ENTROPY),
        )
        for name, least, random, keywords, pattern in rows
    ]
    by_keyword: dict[str, list[Rule]] = {}
    for rule in (*rules, *OWN_RULES):
        for keyword in rule.keywords or ("",):
            by_keyword.setdefault(keyword, []).append(rule)
    return by_keyword


@functools.lru_cache(maxsize=64)
def _compiled(pattern: str) -> re.Pattern[str]:
    return re.compile(pattern)
