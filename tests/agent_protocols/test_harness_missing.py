"""Without the extra, the harness's store says how to get it."""

from __future__ import annotations

import importlib
import sys

import pytest


def test_without_the_harness_the_error_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [name for name in sys.modules if name.startswith("pydantic_ai_harness")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "pydantic_ai_harness", None)
    monkeypatch.delitem(sys.modules, "co_cli.agent.harness", raising=False)

    with pytest.raises(ModuleNotFoundError, match=r'pip install "co-cli\[harness\]"'):
        importlib.import_module("co_cli.agent.harness")
