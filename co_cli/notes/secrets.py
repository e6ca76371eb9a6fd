"""Find what should not stand in a note: tokens, private keys, passwords. And show it without giving it away. Pure.

A few forms that are well known, and `password: …` where what follows is as irregular as passwords are. A word that
stands for one (`your-token`, `xxxx`, `${TOKEN}`) is none.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterator
from typing import NamedTuple

SHOWN = 4
LEAST_ENTROPY = 3.0
"""Bits a character of a token that a machine made."""
LEAST_OF_A_PASSWORD = 2.5
FORMS: tuple[tuple[str, re.Pattern[str]], ...] = (
    ("a private key", re.compile(r"-----BEGIN (?:[A-Z]+ )*PRIVATE KEY(?: BLOCK)?-----")),
    ("an AWS access key", re.compile(r"\b(?:AKIA|ASIA)[0-9A-Z]{16}\b")),
    ("a GitHub token", re.compile(r"\b(?:gh[pousr]_[A-Za-z0-9]{30,}|github_pat_[A-Za-z0-9_]{40,})")),
    ("a GitLab token", re.compile(r"\bglpat-[A-Za-z0-9_-]{18,}")),
    ("a Slack token", re.compile(r"\bxox[abeoprs]-[A-Za-z0-9-]{10,}")),
    ("an API key", re.compile(r"\bsk-(?:ant-|proj-|or-)?[A-Za-z0-9_-]{20,}")),
    ("a Google API key", re.compile(r"\bAIza[0-9A-Za-z_-]{35}")),
    ("a Stripe key", re.compile(r"\b[rs]k_(?:live|test)_[0-9A-Za-z]{16,}")),
    ("a signed token", re.compile(r"\beyJ[A-Za-z0-9_-]{10,}\.[A-Za-z0-9_-]{10,}\.[A-Za-z0-9_-]{10,}")),
    ("a password in an address", re.compile(r"\b[a-z][a-z0-9+.-]*://[^\s:/@]+:(?P<secret>[^\s:/@]{4,})@")),
)
NAMED = re.compile(
    r"(?i)\b(?P<name>passw(?:or)?d|passphrase|pwd|secret|api[ _-]?key|access[ _-]?key|auth[ _-]?token|token)\b[\"']?"
    r"\s*(?:is|[:=])\s*[\"'`]?(?P<secret>[^\s\"'`,;]{8,})"
)
CERTAIN = re.compile(
    r"-----BEGIN|BEGIN PRIVATE|://|sk-|_|eyJ|AKIA|ASIA|AIza|xox|glpat|(?i:passw|passphrase|pwd|secret|key|token)"
)
"""A text without any of these has none of the forms: most notes are done with after this."""
STANDS_FOR_ONE = re.compile(
    r"(?i)x{4,}|\*{3,}|\.{3,}|…|<|\$\{|\{\{|example|your[-_ ]|change-?me|placeholder|redacted|dummy"
)


class Secret(NamedTuple):
    """What was found, and as much of it as may be shown."""

    what: str
    shown: str
    line: int


def find_secrets(text: str) -> list[Secret]:
    """Each once, in the order of the text."""
    if not CERTAIN.search(text):
        return []
    found: dict[str, tuple[int, str]] = {}
    for start, what, secret in _found(text):
        if not any(secret in known or known in secret for known in found):
            found[secret] = start, what
    return [
        Secret(what, mask(secret), text.count("\n", 0, start) + 1)
        for secret, (start, what) in sorted(found.items(), key=lambda one: one[1][0])
    ]


def redact(text: str) -> str:
    """The text with its secrets masked."""
    if CERTAIN.search(text):
        for _, _, secret in _found(text):
            text = text.replace(secret, mask(secret))
    return text


def mask(secret: str) -> str:
    """The first letters, and how long it is: enough to find it, too little to use it."""
    if secret.startswith("-----"):
        return secret
    shown = SHOWN if len(secret) >= 4 * SHOWN else 1
    return f"{secret[:shown]}… ({len(secret)} characters)"


def entropy(text: str) -> float:
    """Bits a character."""
    counts = Counter(text)
    return -sum(count / len(text) * math.log2(count / len(text)) for count in counts.values()) if text else 0.0


def _found(text: str) -> Iterator[tuple[int, str, str]]:
    for what, form in FORMS:
        for match in form.finditer(text):
            secret = match["secret"] if "secret" in form.groupindex else match[0]
            certain = secret.startswith("-----") or "secret" in form.groupindex or entropy(secret) >= LEAST_ENTROPY
            if certain and not STANDS_FOR_ONE.search(secret):
                yield match.start(), what, secret
    for match in NAMED.finditer(text):
        secret = match["secret"].rstrip(".!?)]")
        if _irregular(secret) and not STANDS_FOR_ONE.search(secret):
            yield match.start(), f"a {match['name'].lower()}", secret


def _irregular(text: str) -> bool:
    """Letters and digits mixed, or signs among them, and few of them twice."""
    kinds = (any(map(str.isdigit, text)), any(map(str.islower, text)), any(map(str.isupper, text)))
    signs = any(not letter.isalnum() and letter not in "-._/" for letter in text)
    mixed = (kinds[0] and (kinds[1] or kinds[2])) or (signs and sum(kinds) >= 1)
    address = "://" in text or text.startswith(("/", "./", "[["))
    return len(text) >= 8 and mixed and not address and entropy(text) >= LEAST_OF_A_PASSWORD
