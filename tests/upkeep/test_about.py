"""What a bug report needs, by command, and what must not be in it."""

from __future__ import annotations

import pytest

from co_cli.version import __version__
from tests.command import Co
from tests.folder import Vault


def test_a_verbose_version_names_python_and_every_package(co: Co) -> None:
    assert co("--version").out == f"co {__version__}\n"
    out = co("--version", "--verbose").out
    assert out.startswith(f"co {__version__}\nCPython 3.")
    for name in ("apsw 3", "pydantic-ai-slim 2", "[postgres]: ", "[documents]: ", "[gemini]: google-genai "):
        assert name in out


def test_a_report_has_no_path_no_secret_and_no_text_of_a_note(
    co: Co, vault: Vault, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CO_MODEL", "openai:secret-model")
    monkeypatch.setenv("CO_HALF_LIFE_DAYS", "30")
    vault.write("memories/Operation Otter.md", "---\nsupersedes: memory:nowhere\n---\nThe otter sleeps at noon.")
    vault.write("memories/broken.md", "---\na: [\n---\nNot YAML.")
    co("index", "sync")
    done = co("doctor", "--report")

    assert done.code == 0
    assert "### Checks" in done.out
    assert "half_life_days = 30" in done.out
    assert "model is set" in done.out
    assert "notes: 2 of memory" in done.out
    for private in (str(vault.root), "otter", "Otter", "secret-model", "broken"):
        assert private not in done.out, private


def test_a_report_does_not_say_that_the_vault_of_a_project_was_set(co: Co, monkeypatch: pytest.MonkeyPatch) -> None:
    assert "vault is set" in co("doctor", "--report").out

    monkeypatch.delenv("CO_VAULT")
    co("init")

    assert "vault is set" not in co("doctor", "--report").out
