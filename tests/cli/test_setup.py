"""`co init`, `co demo`, `co config show`."""

from __future__ import annotations

from pathlib import Path

import pytest

from co_cli.settings import SETTINGS
from tests.command import Co
from tests.vault import Vault


@pytest.fixture
def no_vault(co: Co, monkeypatch: pytest.MonkeyPatch) -> Co:
    monkeypatch.delenv("CO_VAULT")
    return co


def test_init_makes_a_vault_that_every_folder_below_uses(
    no_vault: Co, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = no_vault("init")
    assert made.code == 0
    assert made.out.startswith(f"created {home}/.co-cli/knowledge\n")

    (home / "src").mkdir()
    monkeypatch.chdir(home / "src")
    assert no_vault("remember", "Oaks live long.").code == 0
    assert (home / ".co-cli/knowledge/memories/oaks-live-long.md").exists()


def test_init_twice_changes_nothing(no_vault: Co, home: Path) -> None:
    no_vault("init")
    no_vault("remember", "Oaks live long.")

    again = no_vault("init", "--json")

    assert again.json == {"vault": f"{home}/.co-cli/knowledge", "made": False}
    assert len(list(home.rglob("*.md"))) == 1


def test_init_takes_a_folder_or_a_vault(no_vault: Co, tmp_path: Path) -> None:
    assert no_vault("init", str(tmp_path / "project")).code == 0
    assert no_vault("init", "--vault", str(tmp_path / "notes")).code == 0

    assert (tmp_path / "project/.co-cli/knowledge/articles").is_dir()
    assert (tmp_path / "notes/memories").is_dir()


def test_init_makes_the_vault_that_the_environment_names(
    co: Co, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CO_VAULT", str(tmp_path / "notes"))
    assert co("list").code == 2

    assert co("init", "--json").json == {"vault": str(tmp_path / "notes"), "made": True}
    assert co("list").code == 1


def test_init_where_a_file_stands_is_one_line(no_vault: Co, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")

    ran = no_vault("init", str(tmp_path / "file"))

    assert (ran.code, ran.err.count("\n")) == (2, 1)


def test_without_a_project_the_persons_own_vault_is_made_on_first_use(no_vault: Co, home: Path) -> None:
    assert no_vault("remember", "Oaks live long.").code == 0
    assert (home / ".local/share/co-cli/knowledge/memories/oaks-live-long.md").exists()


def test_the_demo_answers_from_the_sample_vault_and_leaves_yours_alone(co: Co, vault: Vault) -> None:
    ran = co("demo", "who decides what ships")

    assert ran.code == 0
    assert "memory:odalys-has-the-last-word" in ran.out
    assert vault.files() == []
    assert co("search", "odalys").code == 1


def test_the_demo_without_a_question_takes_you_on_a_tour(co: Co) -> None:
    tour = co("demo")

    assert tour.code == 0
    assert tour.out.count('$ co demo "') == 3


def test_the_demo_speaks_json(co: Co) -> None:
    found = co("demo", "bronze bell", "--json", "-n", "2").json

    assert found["state"] == "found"
    assert len(found["hits"]) == 2


def test_settings_shows_every_value_and_where_it_came_from(
    co: Co, vault: Vault, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CO_KNOWLEDGE_SEARCH_BACKEND", "fts5")

    shown = co("config", "show").out
    rows = co("config", "show", "--json").json

    assert "knowledge_search_backend = fts5  (CO_KNOWLEDGE_SEARCH_BACKEND)\n" in shown
    for setting in SETTINGS:
        assert f"{setting.name} = " in shown
        assert setting.environment in shown
    assert list(rows) == [setting.name for setting in SETTINGS]
    assert rows["vault"] == {"value": str(vault.root), "origin": "CO_VAULT"}


def test_one_setting_is_its_bare_value(co: Co) -> None:
    assert co("config", "show", "knowledge_search_backend").out == "hybrid\n"
    assert co("config", "show", "knowledge_exclude").out == "(none)\n"
    assert co("config", "show", "knowledge_max_note_bytes", "--json").json == {"value": 2_000_000, "origin": "default"}


def test_a_flag_is_an_origin_too(co: Co, tmp_path: Path) -> None:
    row = co("config", "show", "vault", "--json", "--vault", str(tmp_path)).json

    assert row == {"value": str(tmp_path), "origin": "--vault"}
    before = co("--vault", str(tmp_path), "config", "show", "vault")
    assert before.out == f"{tmp_path}\n"
