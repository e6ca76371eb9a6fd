"""Make up a text that a rule for secrets matches, from the rule's own expression.

Outside the group `secret`, what repeats is repeated as rarely as the expression allows: long random stretches are the
secret, whatever the rule calls so.
"""

from __future__ import annotations

import random
import re
import string
from collections.abc import Iterable
from typing import Any

PARSER: Any = re._parser  # type: ignore[attr-defined]
SIGNS = string.ascii_letters + string.digits + string.punctuation + " \n"
LETTERS = string.ascii_letters + string.digits


class Example:
    """One text of this form, its secret, and its random stretches."""

    def __init__(self, pattern: str, seed: int) -> None:
        self.chance = random.Random(f"{pattern} {seed}")
        self.groups: dict[int, str] = {}
        self.random: list[bool] = []
        """Whether a character of the text was chosen."""
        self.text = ""
        self._secret = re.compile(pattern).groupindex["secret"]
        self._inside = False
        self._add(PARSER.parse(pattern, re.ASCII))

    @property
    def secret(self) -> str:
        return self.groups[self._secret]

    def stretches(self, size: int) -> set[str]:
        """Every stretch of this many characters of the secret, or of random ones."""
        starts = range(len(self.text) - size + 1)
        chosen = {self.text[start : start + size] for start in starts if all(self.random[start : start + size])}
        secret = self.secret
        return chosen | {secret[start : start + size] for start in range(len(secret) - size + 1)}

    def _add(self, items: Iterable[tuple[Any, Any]]) -> None:
        for kind, value in items:
            getattr(self, f"_{str(kind).lower()}")(value)

    def _literal(self, code: int, chosen: bool = False) -> None:
        self.text += chr(code)
        self.random.append(chosen)

    def _choose(self, allowed: Iterable[str]) -> None:
        signs = set(allowed)
        plain = sorted(signs & set(LETTERS)) or sorted(signs)
        self._literal(ord(self.chance.choice(plain)), chosen=True)

    def _in(self, members: list[tuple[Any, Any]]) -> None:
        self._choose(sign for sign in SIGNS if _contains(members, sign))

    def _not_literal(self, code: int) -> None:
        self._choose(sign for sign in SIGNS if ord(sign) != code)

    def _any(self, _: None) -> None:
        self._literal(ord("."))

    def _max_repeat(self, value: tuple[int, int, Any]) -> None:
        least, most, items = value
        for _ in range(max(least, min(most, 16)) if self._inside and least else least):
            self._add(items)

    _min_repeat = _possessive_repeat = _max_repeat

    def _subpattern(self, value: tuple[int | None, int, int, Any]) -> None:
        start, around = len(self.text), self._inside
        self._inside = around or value[0] == self._secret
        self._add(value[3])
        self._inside = around
        if value[0] is not None:
            self.groups[value[0]] = self.text[start:]

    def _atomic_group(self, items: Any) -> None:
        self._add(items)

    def _branch(self, value: tuple[None, list[Any]]) -> None:
        self._add(self.chance.choice(value[1]))

    def _groupref(self, number: int) -> None:
        for sign in self.groups[number]:
            self._literal(ord(sign))

    def _at(self, place: Any) -> None:
        if str(place) == "AT_BOUNDARY" and self.text and not self._inside:
            self._literal(ord(" "))

    def _assert(self, _: Any) -> None:
        """Matches no character."""

    _assert_not = _assert


def _contains(members: list[tuple[Any, Any]], sign: str) -> bool:
    negated = str(members[0][0]) == "NEGATE"
    found = any(_matches(str(kind), value, sign) for kind, value in members[negated:])
    return found != negated


def _matches(kind: str, value: Any, sign: str) -> bool:
    if kind == "LITERAL":
        return ord(sign) == value
    if kind == "RANGE":
        return value[0] <= ord(sign) <= value[1]
    is_in = {
        "DIGIT": sign in string.digits,
        "SPACE": sign in string.whitespace,
        "WORD": sign in LETTERS + "_",
    }
    name = str(value).removeprefix("CATEGORY_")
    return not is_in[name.removeprefix("NOT_")] if name.startswith("NOT_") else is_in[name]
