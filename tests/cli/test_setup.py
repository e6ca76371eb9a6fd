"""`co init`, `co demo` and `co config show`."""

from __future__ import annotations

import shutil
import tomllib
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from co_cli.ground.settings import SETTINGS
from co_cli.upkeep.settings_file import write_setting
from tests.cli.screen import on_terminal, plain, terminal
from tests.command import Co
from tests.folder import Vault


@pytest.fixture
def no_vault(co: Co, monkeypatch: pytest.MonkeyPatch) -> Co:
    monkeypatch.delenv("CO_VAULT")
    return co


def test_init_creates_a_vault_that_every_folder_below_uses(
    no_vault: Co, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert no_vault("init").out.startswith(f"created {home}/.co-cli/knowledge\nnext: co remember")

    (home / "src").mkdir()
    monkeypatch.chdir(home / "src")
    assert no_vault("remember", "Oaks live long.").code == 0
    assert (home / ".co-cli/knowledge/memories/oaks-live-long.md").exists()
    monkeypatch.chdir(home)
    assert no_vault("init", "--json").json == {"vault": f"{home}/.co-cli/knowledge", "made": False, "problem": ""}
    assert len(list(home.rglob("*.md"))) == 1


@pytest.mark.medium
def test_init_offers_to_search_the_notes_of_the_project(no_vault: Co, home: Path) -> None:
    project = home / "my project"
    (project / "docs").mkdir(parents=True)
    (project / "docs" / "zebras.md").write_text("Zebras have stripes.\n")

    made = no_vault("init", str(project)).out
    assert f"1 note is in {project} already: `co --vault '{project}/.co-cli/knowledge' add '{project}'` makes" in made

    shutil.rmtree(project / ".co-cli")
    with terminal(project, "init") as child:
        child.expect("1 note is in")
        child.sendline("y")
        child.expect("created folder:my-project: 1 new")
    found = no_vault("search", "zebras", "--vault", f"{project}/.co-cli/knowledge", "--json").json
    assert found["hits"][0]["ref"].startswith("folder:my-project/docs/zebras.md")


def test_init_takes_a_folder_a_vault_or_the_environment(
    no_vault: Co, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert no_vault("init", str(tmp_path / "project")).code == 0
    assert f"next: co --vault {tmp_path}/notes remember" in no_vault("init", "--vault", str(tmp_path / "notes")).out
    assert (tmp_path / "project/.co-cli/knowledge/articles").is_dir()
    assert (tmp_path / "notes/memories").is_dir()
    monkeypatch.setenv("CO_VAULT", str(tmp_path / "mine"))
    assert no_vault("init", "--json").json == {"vault": str(tmp_path / "mine"), "made": True, "problem": ""}
    (tmp_path / "file").write_text("")
    ran = no_vault("init", str(tmp_path / "file"))
    assert (ran.code, ran.err.count("\n")) == (2, 1)


def test_without_a_project_the_users_own_vault_is_created_on_first_use(no_vault: Co, home: Path) -> None:
    assert no_vault("remember", "Oaks live long.").code == 0
    assert (home / ".local/share/co-cli/knowledge/memories/oaks-live-long.md").exists()


@pytest.mark.medium
def test_the_demo_searches_the_sample_vault_and_leaves_yours_alone(co: Co, vault: Vault) -> None:
    assert "memory:odalys-has-the-last-word" in co("demo", "who decides what ships").out
    assert len(co("demo", "bronze bell", "--json", "-n", "2").json["hits"]) == 2
    assert vault.files() == []
    assert co("search", "odalys").code == 1


@pytest.mark.medium
def test_the_demo_answers_three_questions_on_a_screen_each_and_says_what_to_try_next(
    co: Co, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("CO_KNOWLEDGE_READER")  # as a new user has it
    first, *others = (
        ("who decides what ships", "memory:odalys-has-the-last-word"),
        ("what went wrong with the bells", "article:incidents/2026-02-silent-bells"),
        ("is there a phone app", "memory:no-phone-app"),
    )
    for query, ref in (first, *others):
        assert co("demo", query, "--json").json["hits"][0]["ref"].startswith(ref), query

    drawn = plain(on_terminal(home, "demo"))

    assert drawn.index(first[0]) < drawn.index(first[1])
    assert all(f"co demo {query}" in drawn for query, _ in others)
    assert drawn.count("\n") <= 24, drawn
    assert all(plain(on_terminal(home, "demo", query)).count("\n") <= 24 for query, _ in others)


def test_config_shows_every_setting_and_where_it_came_from(
    co: Co, vault: Vault, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CO_KNOWLEDGE_SEARCH_BACKEND", "fts5")
    shown, rows = co("config", "show").out, co("config", "show", "--json").json

    assert "knowledge_search_backend = fts5  (CO_KNOWLEDGE_SEARCH_BACKEND)\n" in shown
    assert [one.name for one in SETTINGS if f"{one.name} = " not in shown or one.environment not in shown] == []
    assert list(rows) == [setting.name for setting in SETTINGS]
    assert rows["vault"] == {"value": str(vault.root), "origin": "CO_VAULT"}
    assert co("config", "show", "knowledge_exclude").out == "(none)\n"
    assert co("--vault", str(tmp_path), "config", "show", "vault").out == f"{tmp_path}\n"
    flag = co("config", "show", "vault", "--json", "--vault", str(tmp_path)).json
    assert flag == {"value": str(tmp_path), "origin": "--vault"}


def test_config_set_writes_one_line_of_the_file_that_counts(
    no_vault: Co, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    own, project = home / ".config/co-cli/settings.toml", home / "project"
    shared = project / ".co-cli/settings.toml"
    shared.parent.mkdir(parents=True)
    shared.write_text('# ours\nsecrets = "redact"  # not "allow" # ever\n')
    monkeypatch.chdir(project)

    assert no_vault("config", "set", "half_life_days", "30").out == f"half_life_days = 30.0  ({own}:1)\n"
    no_vault("config", "set", "knowledge_exclude", "drafts/, *.tmp.md")
    no_vault("config", "set", "half_life_days", "60")
    assert own.read_text() == 'half_life_days = 60.0\nknowledge_exclude = ["drafts/", "*.tmp.md"]\n'
    no_vault("config", "set", "half_life_days", "")
    assert own.read_text() == 'knowledge_exclude = ["drafts/", "*.tmp.md"]\n'

    assert no_vault("config", "set", "secrets", "refuse").out == f"secrets = refuse  ({shared}:2)\n"
    assert shared.read_text() == '# ours\nsecrets = "refuse"  # not "allow" # ever\n'
    for name, value, problem in (
        ("secrets", "allow", "a project may set secrets to refuse, redact only"),
        ("half_life_days", "soon", "half_life_days must be a number, not 'soon'"),
        ("half_life", "1", "unknown setting 'half_life': did you mean half_life_days?"),
    ):
        ran = no_vault("config", "set", name, value)
        assert (ran.code, problem in ran.err) == (2, True), ran.err
    monkeypatch.setenv("CO_LEARN", "off")
    assert "says on, but CO_LEARN comes first" in no_vault("config", "set", "learn", "on").out


def test_settings_that_are_set_at_the_same_time_are_all_kept(tmp_path: Path) -> None:
    file, names = tmp_path / "new" / "settings.toml", [f"setting_{number}" for number in range(16)]

    with ThreadPoolExecutor(len(names)) as pool:
        for name in names:
            pool.submit(write_setting, str(file), name, "on")

    assert tomllib.loads(file.read_text()) == dict.fromkeys(names, "on")


@pytest.mark.parametrize("value", ["300.1.1.1/99", "10.1.0.0/33", "wiki.example.org, 1.2.3", "a b"])
def test_an_address_that_there_is_not_is_refused_when_it_is_set(no_vault: Co, home: Path, value: str) -> None:
    ran = no_vault("config", "set", "web_allow", value)

    assert (ran.code, ran.err.count("\n")) == (2, 1)
    assert "is neither a host name nor an address or network such as 10.1.0.0/16" in ran.err
    assert not (home / ".config/co-cli/settings.toml").exists()
    assert no_vault("config", "set", "web_allow", "wiki.example.org, 10.1.0.0/16").code == 0


def test_config_unset_removes_one_line_and_says_what_counts_now(
    no_vault: Co, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    own, project = home / ".config/co-cli/settings.toml", home / "project"
    shared = project / ".co-cli/settings.toml"
    for file, text in ((own, "half_life_days = 30.0  # mine\nlearn = 'on'\n"), (shared, 'secrets = "redact"\n')):
        file.parent.mkdir(parents=True)
        file.write_text(text)
    monkeypatch.chdir(project)

    assert no_vault("config", "unset", "half_life_days").out == "half_life_days = 365.0  (default)\n"
    assert own.read_text() == "learn = 'on'\n"
    assert no_vault("config", "unset", "secrets", "--json").json["origin"] == "default"
    assert shared.read_text() == ""

    again = no_vault("config", "unset", "half_life_days")
    assert (again.code, again.out.splitlines()[1]) == (1, f"{own} does not set it: nothing was changed")
    assert "did you mean half_life_days?" in no_vault("config", "unset", "half_life").err
    monkeypatch.setenv("CO_LEARN", "off")
    assert no_vault("config", "unset", "learn").out == "learn = off  (CO_LEARN)\n"


def test_completion_offers_values_of_settings_and_options(co: Co) -> None:
    def words(*typed: str) -> list[str]:
        return co("config", "completion", "--words", *typed).out.split()

    co("remember", "Blue first.", "--category", "decision")
    assert words("config", "set", "knowledge_re") == ["knowledge_reader", "knowledge_reader_ms"]
    assert words("config", "set", "knowledge_reader", "") == ["on", "off"]
    assert "ollama" in words("config", "set", "knowledge_embedding_provider", "o")
    assert words("config", "set", "knowledge_reader", "off", "") == []
    assert words("config", "show", "knowledge_reader", "") == []
    assert words("config", "unset", "half") == ["half_life_days"]
    assert words("search", "oaks", "--profile", "a") == ["agent"]
    assert words("remember", "Oaks.", "--provenance", "") == ["user", "agent", "web", "import"]
    assert words("list", "--category", "d") == ["decision"]
