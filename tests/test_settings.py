"""Settings come from a flag, the environment, the project, the person or the default, in that order."""

from __future__ import annotations

from pathlib import Path

import pytest

from co_cli import KnowledgeBase
from co_cli.errors import SettingsError
from co_cli.settings import SETTINGS, Setting, Settings, load_settings


class Places:
    """A project to stand in, the person's own settings file, and an environment."""

    def __init__(self, root: Path) -> None:
        self.project = root / "project"
        self.start = self.project / "src" / "deep"
        self.start.mkdir(parents=True)
        (self.project / ".co-cli").mkdir()
        self.project_file = self.project / ".co-cli" / "settings.toml"
        self.user_file = root / "home" / ".config" / "co-cli" / "settings.toml"
        self.user_file.parent.mkdir(parents=True)
        self.environ = {"HOME": str(root / "home")}

    def load(self, **flags: object) -> Settings:
        return load_settings(flags, self.environ, str(self.start))


@pytest.fixture
def places(tmp_path: Path) -> Places:
    return Places(tmp_path)


def test_a_flag_beats_the_environment_beats_the_project_beats_the_person_beats_the_default(places: Places) -> None:
    seen: list[tuple[str, str]] = []

    def look(**flags: object) -> None:
        loaded = places.load(**flags)
        seen.append((loaded.search_backend, loaded.origins["search_backend"]))

    look()
    places.user_file.write_text('search_backend = "grep"\n')
    look()
    places.project_file.write_text('# ours\nsearch_backend = "fts5"\n')
    look()
    places.environ["CO_KNOWLEDGE_SEARCH_BACKEND"] = "grep"
    look()
    look(search_backend="hybrid")

    assert seen == [
        ("hybrid", "default"),
        ("grep", f"{places.user_file}:1"),
        ("fts5", f"{places.project_file}:2"),
        ("grep", "CO_KNOWLEDGE_SEARCH_BACKEND"),
        ("hybrid", "--search-backend"),
    ]


VALUES = {
    "vault": ("notes", None),
    "data_dir": ("data", None),
    "team_vault": ("team", None),
    "tiers": ("off", "off"),
    "tier_user": ("0.9", 0.9),
    "tier_project": ("0.7", 0.7),
    "tier_team": ("0.5", 0.5),
    "search_backend": ("fts5", "fts5"),
    "profile": ("meaning", "meaning"),
    "half_life_days": ("90", 90.0),
    "embedding_provider": ("ollama", "ollama"),
    "embedding_model": ("embeddinggemma", "embeddinggemma"),
    "embedding_host": ("http://127.0.0.1:1", "http://127.0.0.1:1"),
    "hybrid_vector_weight": ("0.7", 0.7),
    "hybrid_text_weight": ("0.3", 0.3),
    "duplicate_threshold": ("0.8", 0.8),
    "secrets": ("redact", "redact"),
    "context_tokens": ("500", 500),
    "max_note_bytes": ("1000", 1000),
    "exclude": ("drafts/, *.tmp.md,", ("drafts/", "*.tmp.md")),
    "model": ("ollama:qwen3", "ollama:qwen3"),
    "chat_history": ("off", "off"),
    "query_log": ("no-text", "no-text"),
    "count_use": ("off", "off"),
    "log_level": ("info", "info"),
    "learn": ("off", "off"),
    "web_allow": ("wiki.example.org, 10.1.0.0/16", ("wiki.example.org", "10.1.0.0/16")),
    "web_max_bytes": ("5000", 5000),
    "web_seconds": ("2.5", 2.5),
    "boundaries_model": ("ollama:qwen3", "ollama:qwen3"),
    "loading_model": ("ollama:qwen3", "ollama:qwen3"),
    "loading_servers": ("servers.json", None),
    "loading_seconds": ("60", 60.0),
    "skill_folders": ("/team/skills, /own/skills,", ("/team/skills", "/own/skills")),
}


@pytest.mark.parametrize("setting", SETTINGS, ids=lambda setting: setting.name)
def test_every_setting_can_come_from_the_environment(places: Places, setting: Setting) -> None:
    raw, value = VALUES[setting.name]
    places.environ[setting.environment] = raw

    loaded = places.load()

    expected = str(places.start / raw) if setting.kind == "path" else value
    assert getattr(loaded, setting.name) == expected
    assert loaded.origins[setting.name] == setting.environment


def test_the_nearest_project_has_the_vault_else_the_person_has(places: Places, tmp_path: Path) -> None:
    assert places.load().vault == str(places.project / ".co-cli" / "knowledge")
    assert places.load().origins["vault"] == "project"

    outside = load_settings({}, places.environ, str(tmp_path))
    assert outside.vault == str(tmp_path / "home" / ".local" / "share" / "co-cli" / "knowledge")
    assert outside.data_dir == str(tmp_path / "home" / ".local" / "share" / "co-cli")


def test_xdg_variables_are_honoured_and_relative_ones_ignored(places: Places, tmp_path: Path) -> None:
    places.environ["XDG_DATA_HOME"] = str(tmp_path / "xdg")
    assert places.load().data_dir == str(tmp_path / "xdg" / "co-cli")

    places.environ["XDG_DATA_HOME"] = "relative"
    assert places.load().data_dir == str(tmp_path / "home" / ".local" / "share" / "co-cli")


def test_a_path_in_a_file_is_read_from_where_the_file_belongs(places: Places) -> None:
    places.project_file.write_text('vault = "docs/notes"\n')
    assert places.load().vault == str(places.project / "docs" / "notes")

    places.project_file.unlink()
    places.user_file.write_text('vault = "~/notes"\n')
    assert places.load().vault == str(Path("~/notes").expanduser())


@pytest.mark.parametrize(
    "line",
    [
        'vault = "../elsewhere"',
        'vault = "/etc"',
        'vault = "~/notes"',
        'vault = "link"',
        'data_dir = "x"',
        'embedding_host = "http://evil.example"',
        'embedding_provider = "openai"',
        'embedding_provider = ["openai"]',
        "embedding_provider = {a = 1}",
        'model = "openai:gpt-5"',
        'model = "ollama:qwen3"',
        'chat_history = "on"',
        'query_log = "on"',
        'query_log = "no-text"',
        'count_use = "on"',
        'log_level = "off"',
        'web_allow = ["127.0.0.1"]',
        'boundaries_model = "ollama:qwen3"',
        'loading_model = "ollama:qwen3"',
        'loading_servers = "servers.json"',
        "web_max_bytes = 5",
        "max_note_bytes = 3000000",
        "tier_project = 1.0",
        'secrets = "allow"',
    ],
)
def test_a_checked_in_file_cannot_make_a_clone_unsafe_to_open(places: Places, tmp_path: Path, line: str) -> None:
    (places.project / "link").symlink_to(tmp_path)
    places.project_file.write_text(f"# a project\n\n{line}\n")

    with pytest.raises(SettingsError) as refused:
        places.load()

    assert str(refused.value).startswith(f"{places.project_file}:3: a project may")


@pytest.mark.parametrize("line", ['vault = "~/notes"', 'data_dir = "/x"', 'embedding_provider = "openai"'])
def test_the_person_may_set_what_a_project_may_not(places: Places, line: str) -> None:
    places.user_file.write_text(line)

    assert places.load()


def test_a_project_may_choose_its_vault_and_a_local_provider(places: Places) -> None:
    places.project_file.write_text('vault = "notes"\nembedding_provider = "ollama"\nexclude = ["drafts/"]\n')

    loaded = places.load()

    assert (loaded.embedding_provider, loaded.exclude) == ("ollama", ("drafts/",))


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("a = \n", ":1: not valid TOML"),
        ('\n\nsearch_backend = "fts5\n', ":3: not valid TOML"),
        ('search_backnd = "fts5"\n', ":1: unknown setting 'search_backnd': did you mean search_backend?"),
        ("\nnonsense = 1\n", ":2: unknown setting 'nonsense': `co settings` lists them"),
        ('[knowledge]\nsearch_backend = "fts5"\n', ":1: unknown setting 'knowledge'"),
        ('search_backend = "google"\n', ":1: search_backend is one of grep, fts5, hybrid, not 'google'"),
        ("search_backend = 1\n", ":1: search_backend is a text, not 1"),
        ("duplicate_threshold = 1.5\n", ":1: duplicate_threshold is between 0 and 1, not 1.5"),
        ("duplicate_threshold = true\n", ":1: duplicate_threshold is a number"),
        ("duplicate_threshold = nan\n", ":1: duplicate_threshold is between 0 and 1"),
        ("max_note_bytes = 0\n", ":1: max_note_bytes is at least 1"),
        ("max_note_bytes = inf\n", ":1: max_note_bytes is a number"),
        ("max_note_bytes = 1.5\n", ":1: max_note_bytes is a number"),
        ("exclude = 3\n", ":1: exclude is a list of texts, not 3"),
        ("exclude = [3]\n", ":1: exclude is a list of texts"),
        ('vault = ""\n', ":1: vault is a text"),
    ],
)
@pytest.mark.parametrize("owner", ["user", "project"])
def test_a_broken_file_is_refused_with_file_and_line(places: Places, owner: str, text: str, complaint: str) -> None:
    file = places.user_file if owner == "user" else places.project_file
    file.write_text(text)

    with pytest.raises(SettingsError) as refused:
        places.load()

    assert str(refused.value).startswith(f"{file}{complaint}")
    assert "\n" not in str(refused.value)


def test_a_file_that_is_not_text_is_refused(places: Places) -> None:
    places.user_file.write_bytes(b"\xff\xfe\x00")

    with pytest.raises(SettingsError, match="not UTF-8"):
        places.load()


@pytest.mark.parametrize(
    ("variable", "value"),
    [
        ("CO_KNOWLEDGE_SEARCH_BACKEND", "google"),
        ("CO_KNOWLEDGE_DUPLICATE_THRESHOLD", "lots"),
        ("CO_KNOWLEDGE_HYBRID_VECTOR_WEIGHT", "-1"),
        ("CO_KNOWLEDGE_MAX_NOTE_BYTES", "2 MB"),
    ],
)
def test_a_malformed_variable_is_refused_by_name(places: Places, variable: str, value: str) -> None:
    places.environ[variable] = value

    with pytest.raises(SettingsError, match=f"^{variable}: "):
        places.load()


def test_an_empty_variable_is_as_good_as_none(places: Places) -> None:
    places.environ["CO_KNOWLEDGE_SEARCH_BACKEND"] = ""

    assert places.load().origins["search_backend"] == "default"


@pytest.mark.parametrize("named_by", ["flag", "variable"])
def test_a_vault_that_is_named_brings_the_settings_of_its_project(tmp_path: Path, named_by: str) -> None:
    project, elsewhere = tmp_path / "project", tmp_path / "elsewhere"
    vault = project / ".co-cli" / "knowledge"
    vault.mkdir(parents=True)
    (elsewhere / ".co-cli").mkdir(parents=True)
    (project / ".co-cli" / "settings.toml").write_text('exclude = ["drafts"]\n')
    (elsewhere / ".co-cli" / "settings.toml").write_text('exclude = ["other"]\n')
    flags = {"vault": str(vault)} if named_by == "flag" else {}
    environ = {"HOME": str(tmp_path), **({"CO_VAULT": str(vault)} if named_by == "variable" else {})}

    assert load_settings(flags, environ, str(elsewhere)).exclude == ("drafts",)
    assert load_settings({}, {"HOME": str(tmp_path)}, str(elsewhere)).exclude == ("other",)


def test_a_vault_outside_any_project_leaves_the_settings_of_the_folder(tmp_path: Path) -> None:
    project, vault = tmp_path / "project", tmp_path / "notes"
    (project / ".co-cli").mkdir(parents=True)
    vault.mkdir()
    (project / ".co-cli" / "settings.toml").write_text('exclude = ["drafts"]\n')

    settings = load_settings({"vault": "../notes"}, {"HOME": str(tmp_path)}, str(project))

    assert (settings.exclude, settings.vault) == (("drafts",), str(vault))


@pytest.mark.parametrize("create", [True, False])
def test_a_path_with_a_nul_character_is_refused_in_one_line(tmp_path: Path, create: bool) -> None:
    for places in ({"vault": "a\0b"}, {"vault": tmp_path, "data_dir": f"{tmp_path}/a\0b"}):
        with pytest.raises(SettingsError, match=r"no path has a NUL character in it.*'[^\n\0]*a\\x00b'$"):
            KnowledgeBase.open(**places, create=create)
