"""Every promise of docs/concepts/trust.md names a test, and every test and soak that it names exists."""

from __future__ import annotations

import re

import pytest

from tests.house.package import REPOSITORY
from tests.soak.__main__ import SOAKS

PAGE = REPOSITORY / "docs" / "concepts" / "trust.md"
TEST = re.compile(r"`(test_\w+)`")
MOST_TESTS, LONGEST_ROW = 3, 370
HEAD = re.compile(r"\| (?:promise|fault|attack|---)")

pytestmark = pytest.mark.skipif(not PAGE.exists(), reason="an installed package has no docs")


def text() -> str:
    return PAGE.read_text("utf-8")


def test_every_promise_names_a_test_on_a_page_that_can_be_read_at_once() -> None:
    rows = [line for line in text().splitlines() if line.startswith("| ") and not HEAD.match(line)]

    assert len(rows) > 60
    assert [row for row in rows if not 1 <= len(TEST.findall(row)) <= MOST_TESTS or len(row) > LONGEST_ROW] == []
    assert len(text().splitlines()) <= 165


def test_every_test_that_is_named_exists() -> None:
    files = (REPOSITORY / "tests").rglob("test_*.py")
    there = {name for file in files for name in re.findall(r"^def (test_\w+)\(", file.read_text("utf-8"), re.MULTILINE)}

    assert sorted(set(TEST.findall(text())) - there) == []


def test_every_soak_that_is_named_exists() -> None:
    named = set(re.findall(r"`python -m tests.soak ([\w-]+)`", text()))

    assert named
    assert named <= set(SOAKS)
