"""`--help` fits into a terminal of 80 columns."""

from __future__ import annotations

import pytest

from co_cli.cli.app import COMMANDS
from co_cli.cli.parsing import main_parser, make_parser


@pytest.mark.parametrize("command", [None, *COMMANDS])
def test_no_line_of_help_is_longer_than_a_terminal(command: str | None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    text = (make_parser(command) if command else main_parser()).format_help()

    assert [line for line in text.splitlines() if len(line) > 80] == []
