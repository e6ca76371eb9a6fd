"""Which model is recommended for the languages that notes are in."""

from __future__ import annotations

from pathlib import Path

import pytest

from co_cli.embedding.embedders import Embedders
from co_cli.ground.paths import install_line
from co_cli.upkeep.language_advice import advise
from tests.command import Co
from tests.folder import Vault

ENGLISH = "The heating engineer comes on Tuesday and checks the boiler."
GERMAN = "Der Heizungstechniker kommt am Dienstag und prüft den Kessel im Keller."
GREEK = "Ο τεχνικός έρχεται την Τρίτη και ελέγχει τον λέβητα."
EXTRA, OLLAMA = install_line("languages"), "ollama pull embeddinggemma"


@pytest.mark.parametrize(
    ("texts", "provider", "fix"),
    [
        ([ENGLISH] * 9, "static", None),
        ([ENGLISH] * 9 + [GERMAN], "static", None),
        ([GERMAN] * 2, "static", None),
        ([ENGLISH] * 4 + [GERMAN] * 3, "static", "co config set knowledge_embedding_provider languages"),
        ([GERMAN] * 9, "encoder", "co config set knowledge_embedding_provider languages"),
        ([GERMAN] * 9, "languages", None),
        ([GREEK] * 9, "static", OLLAMA),
        ([GREEK] * 9, "languages", OLLAMA),
        ([GERMAN] * 9, "ollama", None),
        ([GERMAN] * 9, "none", None),
        (["zq 17", "`ls`", ""] * 9, "static", None),
    ],
)
def test_a_model_is_recommended_for_languages_that_the_one_in_use_does_not_know(
    texts: list[str], provider: str, fix: str | None
) -> None:
    advice = advise(texts, Embedders(provider))

    assert (advice is None) == (fix is None)
    if advice and fix:
        assert fix in advice.fix
        assert "\n" not in advice.line


@pytest.fixture
def german(tmp_path: Path) -> Path:
    folder = tmp_path / "notizen"
    folder.mkdir()
    for number in range(4):
        (folder / f"n{number}.md").write_text(f"{GERMAN} Das ist der {number}. Termin.", "utf-8")
    return folder


@pytest.mark.slow
@pytest.mark.medium
def test_adding_notes_and_the_doctor_recommend_the_extra(
    co: Co, vault: Vault, german: Path, without_languages: str
) -> None:
    vault.write("memories/boiler.md", ENGLISH)
    missing = {"CO_KNOWLEDGE_EMBEDDING_PROVIDER": "", "PYTHONPATH": without_languages}

    added = co.process("add", str(german), env=missing)
    assert [line for line in added.out.splitlines() if "(de)" in line and EXTRA in line]
    checked = co.process("doctor", env=missing)
    assert [line for line in checked.out.splitlines() if EXTRA in line]
    assert EXTRA not in co.process("add", str(german), "--json", env=missing).out


@pytest.mark.medium
def test_a_new_vault_over_notes_in_another_language_recommends_the_extra(
    co: Co, german: Path, without_languages: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("CO_VAULT")
    missing = {"CO_KNOWLEDGE_EMBEDDING_PROVIDER": "", "PYTHONPATH": without_languages}

    made = co.process("init", str(german), env=missing)
    assert [line for line in made.out.splitlines() if "(de)" in line and EXTRA in line]
    assert made.code == 0
    assert "(de)" not in co.process("init", str(german.parent / "new"), env=missing).out
