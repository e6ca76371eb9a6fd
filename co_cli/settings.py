"""Settings: flag > environment > project file > user file > default, each value with where it came from.

A project's file is checked in, and a clone must be safe to open: it may not point outside the project, redirect a
provider's address, move the data folder, name the model of a chat, choose a provider or model that sends notes
elsewhere, or say how much its own notes count. Unknown names, malformed values and such attempts are refused with file
and line.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, NamedTuple

from co_cli.errors import SettingsError
from co_cli.places import find_project, project_settings_file, project_vault, user_data_dir, user_settings_file
from co_cli.regular import open_regular

if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any, Literal

    from co_cli.values import Backend

    Kind = Literal["text", "path", "paths", "choice", "number", "share", "bytes", "list"]
    Scalar = str | float | int | tuple[str, ...] | None


class Setting(NamedTuple):
    """One thing a person can choose."""

    name: str
    kind: Kind
    default: Scalar
    help: str
    choices: tuple[str, ...] = ()
    project_may: bool = True
    """False: only the person's own file, environment or flag may set it."""
    project_choices: tuple[str, ...] = ()
    """If given, the only values that a project's file may choose."""
    project_most: float = 0.0
    """If given, the largest number that a project's file may choose."""

    @property
    def environment(self) -> str:
        """The variable that sets it."""
        return f"CO_{self.name.upper()}"


LOCAL_PROVIDERS = ("static", "minilm", "ollama", "none")

SETTINGS: tuple[Setting, ...] = (
    Setting("vault", "path", None, "the folder of notes"),
    Setting("data_dir", "path", None, "where search.db lives", project_may=False),
    Setting("team_vault", "path", None, "your team's folder of notes, such as a git clone"),
    Setting(
        "tiers",
        "choice",
        "on",
        "search your own and your team's vault with the project's: on or off",
        choices=("on", "off"),
        project_choices=("off",),
    ),
    Setting(
        "tier_user",
        "share",
        1.0,
        "how much it counts that a note is your own, 0 to 1",
        project_may=False,
    ),
    Setting(
        "tier_project",
        "share",
        0.8,
        "how much it counts that a note is the project's",
        project_may=False,
    ),
    Setting(
        "tier_team",
        "share",
        0.6,
        "how much it counts that a note is the team's",
        project_may=False,
    ),
    Setting(
        "knowledge_search_backend",
        "choice",
        "hybrid",
        "how to search: substrings from files, words, or words and meaning",
        choices=("grep", "fts5", "hybrid"),
    ),
    Setting(
        "knowledge_profile",
        "choice",
        "default",
        "how results are ranked: default, agent, seven, rrf or fresh",
        choices=("default", "agent", "seven", "rrf", "fresh"),
    ),
    Setting(
        "half_life_days",
        "number",
        365.0,
        "days in which the signal recency of a note falls to a half",
    ),
    Setting(
        "knowledge_embedding_provider",
        "text",
        "static",
        "who turns text into vectors: static (built in), minilm, ollama, gemini, openai, ... or none",
        project_choices=LOCAL_PROVIDERS,
    ),
    Setting("knowledge_embedding_model", "text", None, "the provider's model, if not its default"),
    Setting(
        "knowledge_embedding_host",
        "text",
        None,
        "address of the embedding server, if not the provider's own (ollama: OLLAMA_HOST)",
        project_may=False,
    ),
    Setting(
        "knowledge_hybrid_vector_weight",
        "share",
        0.7,
        "weight of meaning in the score (default 0.7)",
    ),
    Setting(
        "knowledge_hybrid_text_weight",
        "share",
        0.3,
        "weight of words in the score (default 0.3)",
    ),
    Setting(
        "knowledge_duplicate_threshold",
        "share",
        0.75,
        "how alike two memories must be for a save to name them as related",
    ),
    Setting(
        "secrets",
        "choice",
        "refuse",
        "keys, tokens, passwords and card numbers in what is to be saved: refuse, redact or allow",
        choices=("refuse", "redact", "allow"),
        project_choices=("refuse", "redact"),
    ),
    Setting(
        "knowledge_max_note_bytes",
        "bytes",
        2_000_000,
        "larger files are skipped and reported",
        project_most=2_000_000,
    ),
    Setting(
        "knowledge_exclude",
        "list",
        (),
        "patterns of files and folders not to index, as in .gitignore (comma-separated in the environment)",
    ),
    Setting(
        "model",
        "text",
        None,
        "the model that answers in `co chat`, as provider:name; a bare name is one of Ollama's",
        project_may=False,
    ),
    Setting(
        "context_tokens",
        "bytes",
        1_000,
        "how much of the notes that belong beside a prompt an agent is given, in tokens",
        project_most=4_000,
    ),
    Setting(
        "chat_history",
        "choice",
        "on",
        "keep what you type in `co chat` for the arrow keys: on or off",
        choices=("on", "off"),
        project_choices=("off",),
    ),
    Setting(
        "query_log",
        "choice",
        "on",
        "write down what is searched for, for `co feedback stats`: on, off, or no-text (counts and times only)",
        choices=("on", "off", "no-text"),
        project_choices=("off",),
    ),
    Setting(
        "count_use",
        "choice",
        "on",
        "count how often each note is found and opened: on or off",
        choices=("on", "off"),
        project_choices=("off",),
    ),
    Setting(
        "log_level",
        "choice",
        "warning",
        "what co.log in the data folder is told: error, warning, info (each command), debug, or off",
        choices=("off", "error", "warning", "info", "debug"),
        project_may=False,
    ),
    Setting(
        "learn",
        "choice",
        "ask",
        "let feedback change how words and meaning are weighed: ask (only by `co feedback tune --apply`), on or off",
        choices=("on", "off", "ask"),
        project_choices=("off",),
    ),
    Setting(
        "web_allow",
        "list",
        (),
        "hosts, addresses and networks inside that pages may be fetched from all the same",
        project_may=False,
    ),
    Setting("web_max_bytes", "bytes", 10_000_000, "how large a web page may be", project_may=False),
    Setting("web_seconds", "number", 30.0, "how long a web page may take", project_may=False),
    Setting(
        "boundaries_model",
        "text",
        None,
        "the model that proposes where `co index sync` cuts long documents, as provider:name; unset: none does",
        project_may=False,
    ),
    Setting(
        "loading_model",
        "text",
        None,
        "the model that picks a tool for `co add URL`, as provider:name; a bare name is one of Ollama's",
        project_may=False,
    ),
    Setting(
        "loading_servers",
        "path",
        None,
        "the JSON file that lists the MCP servers whose tools it may pick from",
        project_may=False,
    ),
    Setting(
        "loading_seconds",
        "number",
        120.0,
        "how long it may take with one address",
        project_may=False,
    ),
    Setting(
        "skill_folders",
        "paths",
        (),
        "more folders of skills, beside .agents/skills and .claude/skills of the project and of your home",
    ),
)
BY_NAME = {setting.name: setting for setting in SETTINGS}


class Settings(NamedTuple):
    """Every value, typed; `origins` says where each came from."""

    vault: str
    data_dir: str
    team_vault: str | None
    tiers: Literal["on", "off"]
    tier_user: float
    tier_project: float
    tier_team: float
    knowledge_search_backend: Backend
    knowledge_profile: str
    half_life_days: float
    knowledge_embedding_provider: str
    knowledge_embedding_model: str | None
    knowledge_embedding_host: str | None
    knowledge_hybrid_vector_weight: float
    knowledge_hybrid_text_weight: float
    knowledge_duplicate_threshold: float
    secrets: Literal["refuse", "redact", "allow"]
    knowledge_max_note_bytes: int
    knowledge_exclude: tuple[str, ...]
    model: str | None
    context_tokens: int
    chat_history: Literal["on", "off"]
    query_log: Literal["on", "off", "no-text"]
    count_use: Literal["on", "off"]
    log_level: Literal["off", "error", "warning", "info", "debug"]
    learn: Literal["on", "off", "ask"]
    web_allow: tuple[str, ...]
    web_max_bytes: int
    web_seconds: float
    boundaries_model: str | None
    loading_model: str | None
    loading_servers: str | None
    loading_seconds: float
    skill_folders: tuple[str, ...]
    origins: dict[str, str]


def load_settings(
    flags: Mapping[str, object] | None = None,
    environ: Mapping[str, str] | None = None,
    start: str | None = None,
) -> Settings:
    """Collect every setting as seen from the folder `start`; a flag that is None is not set.

    A vault that is named brings the settings of the project it lies in, wherever it is named from: one index must not
    be made with two configurations.
    """
    environ = os.environ if environ is None else environ
    start = _here() if start is None else start
    values: dict[str, Scalar] = {setting.name: setting.default for setting in SETTINGS}
    origins = dict.fromkeys(values, "default")

    def take(setting: Setting, raw: object, origin: str, base: str) -> None:
        values[setting.name] = _checked(setting, raw, origin, base)
        origins[setting.name] = origin

    project = _project_of((flags or {}).get("vault") or environ.get("CO_VAULT"), start)
    for file, owner in ((user_settings_file(environ), None), (project and project_settings_file(project), project)):
        if file and _says_something(file):
            from co_cli.settings_file import read_settings_file  # only when there is one: tomllib is slow to import

            for setting, raw, origin in read_settings_file(file, owner):
                take(setting, raw, origin, owner or os.path.dirname(file))
    for setting in SETTINGS:
        raw = environ.get(setting.environment)
        if raw:
            take(setting, raw, setting.environment, start)
    for name, raw in (flags or {}).items():
        if raw is not None:
            origin = f"--{name.replace('_', '-')}"
            if name not in BY_NAME:
                from co_cli.settings_file import unknown_setting  # tomllib is slow to import

                raise SettingsError(f"{origin}: {unknown_setting(name)}")
            take(BY_NAME[name], raw, origin, start)

    if values["data_dir"] is None:
        values["data_dir"] = user_data_dir(environ)
    if values["vault"] is None:
        if project:
            values["vault"], origins["vault"] = _inside(project, project_vault(project)), "project"
        else:
            values["vault"] = os.path.join(user_data_dir(environ), "knowledge")
    for name in ("vault", "data_dir"):
        _refuse_undecodable(name, str(values[name]), origins[name])
    # each value was checked against its Setting, whose kinds are those of the fields
    named: dict[str, Any] = values
    return Settings(origins=origins, **named)


def _inside(project: str, vault: str) -> str:
    """A clone may hold a link in place of its vault, and must not lead outside with it."""
    root = os.path.realpath(project)
    if not os.path.realpath(vault).startswith(root + os.sep):
        raise SettingsError(f"{vault} is a link that leads out of the project: if you trust it, name it with CO_VAULT")
    return vault


def _project_of(vault: object, start: str) -> str | None:
    """The project of a vault that is named, if it lies in one; else that of the folder."""
    named: Any = vault
    if isinstance(named, str | os.PathLike) and vault:
        path = os.path.expanduser(str(os.fspath(named)))  # type: ignore[reportUnknownArgumentType]
        return find_project(os.path.join(start, path)) or find_project(start)
    return find_project(start)


def _here() -> str:
    try:
        return os.getcwd()
    except FileNotFoundError:
        raise SettingsError("the current folder was deleted: cd to one that exists") from None


def _refuse_undecodable(name: str, path: str, origin: str) -> None:
    if "\0" in path:
        raise SettingsError(f"{origin}: no path has a NUL character in it, as that of {name}: {path!r}")
    try:
        path.encode()
    except UnicodeEncodeError:
        raise SettingsError(f"{origin}: the path of {name} is not valid UTF-8, rename it: {path!r}") from None


def _says_something(file: str) -> bool:
    """Is the file there, and is there more in it than comments? Reading TOML would be half of a search."""
    try:
        with open_regular(file) as stream:
            return any(line.strip() and not line.lstrip().startswith(b"#") for line in stream)
    except OSError:
        return os.path.exists(file) and not os.path.isdir(file)  # what is wrong with it is for its reader to say


def _checked(setting: Setting, raw: object, origin: str, base: str) -> Scalar:
    """`raw` as this setting's type, or a SettingsError that says what would be right."""
    match setting.kind:
        case "path":
            return os.path.normpath(os.path.join(base, os.path.expanduser(_text(setting, raw, origin))))
        case "paths":
            return tuple(
                os.path.normpath(os.path.join(base, os.path.expanduser(part))) for part in _list(setting, raw, origin)
            )
        case "text":
            return _text(setting, raw, origin)
        case "choice":
            text = _text(setting, raw, origin)
            if text not in setting.choices:
                raise SettingsError(f"{origin}: {setting.name} is one of {', '.join(setting.choices)}, not {text!r}")
            return text
        case "list":
            return _list(setting, raw, origin)
        case "number" | "share" | "bytes":
            return _number(setting, raw, origin)


def _list(setting: Setting, raw: object, origin: str) -> tuple[str, ...]:
    parts: Any = raw.split(",") if isinstance(raw, str) else raw
    if type(parts) not in (list, tuple) or not all(isinstance(part, str) for part in parts):
        raise SettingsError(f"{origin}: {setting.name} is a list of texts, not {raw!r}")
    return tuple(part.strip() for part in parts if part.strip())


def _text(setting: Setting, raw: object, origin: str) -> str:
    text: Any = raw
    if not isinstance(text, str | os.PathLike) or not os.fspath(text):
        raise SettingsError(f"{origin}: {setting.name} is a text, not {raw!r}")
    return os.fspath(text)


def _number(setting: Setting, raw: object, origin: str) -> float | int:
    try:
        if isinstance(raw, bool) or not isinstance(raw, str | int | float):
            raise ValueError
        number: float | int = float(raw)
        if setting.kind == "bytes":
            if not number.is_integer():
                raise ValueError
            number = int(number)
    except (ValueError, OverflowError):
        raise SettingsError(f"{origin}: {setting.name} is a number, not {raw!r}") from None
    if setting.kind == "share" and not 0 <= number <= 1:
        raise SettingsError(f"{origin}: {setting.name} is between 0 and 1, not {number:g}")
    if setting.kind == "number" and not 0 < number < 1e6:
        raise SettingsError(f"{origin}: {setting.name} is above 0 and below 1,000,000, not {number:g}")
    if setting.kind == "bytes" and number < 1:
        raise SettingsError(f"{origin}: {setting.name} is at least 1, not {number}")
    return number
