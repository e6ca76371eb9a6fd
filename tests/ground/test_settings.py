"""Settings come from a flag, the environment, the project, the user or the default, in that order."""

from __future__ import annotations

from pathlib import Path

import pytest

from co_cli import KnowledgeBase
from co_cli.ground.errors import SettingsError
from co_cli.ground.settings import SETTINGS, Settings, load_settings
from tests.command import Co


class Places:
    """A project, the user's own settings file, and an environment."""

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


def test_a_flag_beats_the_environment_then_the_project_then_the_user_then_the_default(places: Places) -> None:
    seen: list[tuple[str, str]] = []

    def look(**flags: object) -> None:
        loaded = places.load(**flags)
        seen.append((loaded.knowledge_search_backend, loaded.set_by["knowledge_search_backend"]))

    look()
    places.user_file.write_text('knowledge_search_backend = "grep"\n')
    look()
    places.project_file.write_text('# ours\nknowledge_search_backend = "fts5"\n')
    look()
    places.environ["CO_KNOWLEDGE_SEARCH_BACKEND"] = "grep"
    look()
    look(knowledge_search_backend="hybrid")

    assert seen == [
        ("hybrid", "default"),
        ("grep", f"{places.user_file}:1"),
        ("fts5", f"{places.project_file}:2"),
        ("grep", "CO_KNOWLEDGE_SEARCH_BACKEND"),
        ("hybrid", "--knowledge-search-backend"),
    ]


VALUES = {
    "vault": ("notes", None),
    "data_dir": ("data", None),
    "team_vault": ("team", None),
    "tiers": ("off", "off"),
    "tier_user": ("0.9", 0.9),
    "tier_project": ("0.7", 0.7),
    "tier_team": ("0.5", 0.5),
    "knowledge_search_backend": ("fts5", "fts5"),
    "knowledge_profile": ("agent", "agent"),
    "knowledge_reader": ("off", "off"),
    "knowledge_reader_ms": ("250", 250),
    "knowledge_agent_weights": ("recency=0.5,words=0.2", "recency=0.5,words=0.2"),
    "half_life_days": ("90", 90.0),
    "knowledge_embedding_provider": ("ollama", "ollama"),
    "knowledge_embedding_model": ("embeddinggemma", "embeddinggemma"),
    "knowledge_embedding_host": ("http://127.0.0.1:1", "http://127.0.0.1:1"),
    "knowledge_hybrid_vector_weight": ("0.7", 0.7),
    "knowledge_hybrid_text_weight": ("0.3", 0.3),
    "knowledge_duplicate_threshold": ("0.8", 0.8),
    "secrets": ("redact", "redact"),
    "context_tokens": ("500", 500),
    "knowledge_max_note_bytes": ("1000", 1000),
    "knowledge_exclude": ("drafts/, *.tmp.md,", ("drafts/", "*.tmp.md")),
    "model": ("ollama:qwen3", "ollama:qwen3"),
    "chat_history": ("off", "off"),
    "capture": ("propose", "propose"),
    "capture_days": ("0", 0),
    "query_log": ("no-text", "no-text"),
    "count_use": ("off", "off"),
    "log_level": ("info", "info"),
    "learn": ("off", "off"),
    "web_allow": ("wiki.example.org, 10.1.0.0/16", ("wiki.example.org", "10.1.0.0/16")),
    "web_max_bytes": ("5000", 5000),
    "web_seconds": ("2.5", 2.5),
    "boundaries_model": ("ollama:qwen3", "ollama:qwen3"),
    "engine": ("postgresql://me@db/notes", "postgresql://me@db/notes"),
    "engine_replica": ("postgresql://me@copy/notes", "postgresql://me@copy/notes"),
    "loading_model": ("ollama:qwen3", "ollama:qwen3"),
    "loading_servers": ("servers.json", None),
    "loading_seconds": ("60", 60.0),
    "audit": ("audit.jsonl", None),
    "audit_days": ("365", 365),
    "most_notes": ("5000", 5000),
    "oidc_issuer": ("https://login.example", "https://login.example"),
    "oidc_scope": ("openid groups", "openid groups"),
    "oidc_client": ("co-notes", "co-notes"),
    "oidc_claim": ("roles", "roles"),
    "oidc_groups": ("staff=read, ops=admin", ("staff=read", "ops=admin")),
    "skill_folders": ("/team/skills, /own/skills,", ("/team/skills", "/own/skills")),
}


def test_every_setting_can_come_from_the_environment(places: Places) -> None:
    places.environ |= {setting.environment: VALUES[setting.name][0] for setting in SETTINGS}

    loaded = places.load()

    for setting in SETTINGS:
        raw, value = VALUES[setting.name]
        expected = str(places.start / raw) if setting.kind == "path" else value
        assert getattr(loaded, setting.name) == expected
        assert loaded.set_by[setting.name] == setting.environment


def test_doctor_names_the_setting_closest_to_a_misspelt_variable(co: Co, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CO_KNOWLEDGE_SEARCH_BACKND", "fts5")
    monkeypatch.setenv("CO_PROFILE", "agent")

    ran = co("doctor")

    assert ran.code == 0
    told = "is set, but no setting has this name; the closest is"
    assert f"!!  CO_KNOWLEDGE_SEARCH_BACKND {told} CO_KNOWLEDGE_SEARCH_BACKEND\n" in ran.out
    assert f"!!  CO_PROFILE {told} CO_KNOWLEDGE_PROFILE\n" in ran.out


def test_the_vault_is_the_nearest_project_s_or_the_user_s_own(places: Places, tmp_path: Path) -> None:
    assert places.load().vault == str(places.project / ".co-cli" / "knowledge")
    assert places.load().set_by["vault"] == "project"

    outside = load_settings({}, places.environ, str(tmp_path))
    assert outside.vault == str(tmp_path / "home" / ".local" / "share" / "co-cli" / "knowledge")
    assert outside.data_dir == str(tmp_path / "home" / ".local" / "share" / "co-cli")


BROKEN_FILES = [
    ("a = \n", ":1: not valid TOML"),
    ('\n\nknowledge_search_backend = "fts5\n', ":3: not valid TOML"),
    ('search_backnd = "fts5"\n', ":1: unknown setting 'search_backnd': did you mean knowledge_search_backend?"),
    ('exclud = ["x"]\n', ":1: unknown setting 'exclud': did you mean knowledge_exclude?"),
    ("\nzzz = 1\n", ":2: unknown setting 'zzz': `co config show` lists them"),
    ('[knowledge]\nknowledge_search_backend = "fts5"\n', ":1: unknown setting 'knowledge'"),
    (
        'knowledge_search_backend = "google"\n',
        ":1: knowledge_search_backend must be one of grep, fts5, hybrid, not 'google'",
    ),
    ("knowledge_search_backend = 1\n", ":1: knowledge_search_backend must be a text, not 1"),
    ("knowledge_duplicate_threshold = 1.5\n", ":1: knowledge_duplicate_threshold must be between 0.5 and 1, not 1.5"),
    ("knowledge_duplicate_threshold = 0.49\n", ":1: knowledge_duplicate_threshold must be between 0.5 and 1, not 0.49"),
    ("knowledge_duplicate_threshold = true\n", ":1: knowledge_duplicate_threshold must be a number"),
    ("knowledge_duplicate_threshold = nan\n", ":1: knowledge_duplicate_threshold must be between 0.5 and 1"),
    ("knowledge_max_note_bytes = 0\n", ":1: knowledge_max_note_bytes must be at least 1"),
    ("knowledge_max_note_bytes = inf\n", ":1: knowledge_max_note_bytes must be a number"),
    ("knowledge_max_note_bytes = 1.5\n", ":1: knowledge_max_note_bytes must be a number"),
    ("knowledge_exclude = 3\n", ":1: knowledge_exclude must be a list of texts, not 3"),
    ("knowledge_exclude = [3]\n", ":1: knowledge_exclude must be a list of texts"),
    ('vault = ""\n', ":1: vault must be a text"),
]


def test_a_broken_file_is_refused_with_file_and_line(places: Places) -> None:
    for file in (places.user_file, places.project_file):
        for text, complaint in BROKEN_FILES:
            file.write_text(text)
            with pytest.raises(SettingsError) as refused:
                places.load()
            assert str(refused.value).startswith(f"{file}{complaint}")
            assert "\n" not in str(refused.value)
        file.unlink()


def test_a_malformed_variable_is_refused_by_name(places: Places) -> None:
    places.environ["CO_KNOWLEDGE_HYBRID_VECTOR_WEIGHT"] = "-1"

    with pytest.raises(SettingsError, match=r"^CO_KNOWLEDGE_HYBRID_VECTOR_WEIGHT: "):
        places.load()


def test_a_named_vault_brings_the_settings_of_its_project_or_none(tmp_path: Path) -> None:
    project, elsewhere, notes = tmp_path / "project", tmp_path / "elsewhere", tmp_path / "notes"
    vault = project / ".co-cli" / "knowledge"
    vault.mkdir(parents=True)
    notes.mkdir()
    (elsewhere / ".co-cli").mkdir(parents=True)
    (project / ".co-cli" / "settings.toml").write_text('knowledge_exclude = ["drafts"]\n')
    (elsewhere / ".co-cli" / "settings.toml").write_text('knowledge_exclude = ["other"]\n')
    home = {"HOME": str(tmp_path)}

    assert load_settings({"vault": str(vault)}, home, str(elsewhere)).knowledge_exclude == ("drafts",)
    assert load_settings({}, home | {"CO_VAULT": str(vault)}, str(elsewhere)).knowledge_exclude == ("drafts",)
    assert load_settings({}, home, str(elsewhere)).knowledge_exclude == ("other",)
    (elsewhere / "link").symlink_to(notes)
    for named in ("../notes", "link"):
        assert load_settings({"vault": named}, home, str(elsewhere)).knowledge_exclude == ()
    own = tmp_path / ".config" / "co-cli" / "settings.toml"
    own.parent.mkdir(parents=True)
    own.write_text(f'vault = "{notes}"\n')
    loaded = load_settings({}, home, str(elsewhere))
    assert (loaded.vault, loaded.knowledge_exclude) == (str(notes), ())
    (elsewhere / ".co-cli" / "settings.toml").write_text('vault = "docs"\nknowledge_exclude = ["other"]\n')
    loaded = load_settings({}, home, str(elsewhere))
    assert (loaded.vault, loaded.knowledge_exclude) == (str(elsewhere / "docs"), ("other",))


def test_a_path_with_a_nul_character_is_refused_in_one_line(tmp_path: Path) -> None:
    for places in ({"vault": "a\0b"}, {"vault": tmp_path, "data_dir": f"{tmp_path}/a\0b"}):
        for create in (True, False):
            with pytest.raises(SettingsError, match=r"has a NUL character.*'[^\n\0]*a\\x00b'$"):
                KnowledgeBase.open(**places, create=create)
