"""Settings: flag > environment > project file > user file > default, each value with its origin.

A project's settings.toml is checked in, and a clone must be safe to open: it applies only to the vault of its project,
and may not point outside the project, move the data folder, choose a model, or weigh its own notes.
To add a setting, add a field to `Settings`.
"""

from __future__ import annotations

import os
import re
from dataclasses import dataclass, field, fields
from typing import TYPE_CHECKING, Any, NamedTuple

from co_cli.ground.errors import InvalidInputError, SettingsError
from co_cli.ground.paths import (
    find_project,
    is_inside,
    open_regular,
    permission_cure,
    project_of,
    project_settings_file,
    project_vault,
    user_data_dir,
    user_settings_file,
)
from co_cli.ground.weights import AGENT_WEIGHTS, read_weights

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping
    from ipaddress import IPv4Network, IPv6Network
    from typing import Literal

    from co_cli.ground.hits import Backend

    Kind = Literal[
        "text", "path", "paths", "choice", "number", "share", "bytes", "count", "list", "hosts", "engine", "weights"
    ]
    Value = str | float | int | tuple[str, ...] | None

META = "setting"
"""In the metadata of a field."""
MAX_FILE_BYTES = 1_000_000
NUMERIC_LABEL = re.compile(r"(?:0[xX][0-9A-Fa-f]*|[0-9]+)\Z")
HOST = re.compile(r"(?=.{1,253}\Z)[a-z0-9_-]{1,63}(?:\.[a-z0-9_-]{1,63})*")


class Setting(NamedTuple):
    """How one setting is read, and what a project's file may do with it."""

    kind: Kind
    default: Value
    help: str
    choices: tuple[str, ...] = ()
    project_may: bool = True
    """False: only the user's own file, environment or flag may set it."""
    project_choices: tuple[str, ...] = ()
    """If given, the only values that a project's file may choose."""
    project_most: float = 0.0
    """If given, the largest number that a project's file may choose."""
    least: float = 0.0
    """The smallest number that anybody may choose."""
    name: str = ""

    @property
    def environment(self) -> str:
        """The variable that sets it."""
        return f"CO_{self.name.upper()}"


def _setting(kind: Kind, default: Value, help: str, **rules: Any) -> Any:
    """A field with its default value; how it is read is its metadata."""
    return field(default=default, metadata={META: Setting(kind, default, help, **rules)})


def _own(kind: Kind, default: Value, help: str) -> Any:
    """A setting that a project's file may not set."""
    return _setting(kind, default, help, project_may=False)


def _choice(choices: str, default: str, help: str, project: str = "", project_may: bool = True) -> Any:
    """One of these words; `project` are those that a project's file may choose, if not all."""
    words, allowed = tuple(choices.split()), tuple(project.split())
    return _setting("choice", default, help, choices=words, project_choices=allowed, project_may=project_may)


def _switch(help: str) -> Any:
    """On by default. A project may turn it off, and not on."""
    return _choice("on off", "on", f"{help}: on or off", project="off")


@dataclass(frozen=True)
class Settings:
    """Every value, typed. `load_settings` fills it; `SETTINGS` says how each is read."""

    vault: str = _setting("path", None, "the folder of notes")
    data_dir: str = _own("path", None, "where search.db lives")
    engine: str = _own("engine", "sqlite", "where the index is: sqlite, or postgresql://user@host/database for a team")
    engine_replica: str | None = _own("engine", None, "a read replica of that database, which answers searches")
    team_vault: str | None = _setting("path", None, "your team's folder of notes, such as a git clone")
    tiers: Literal["on", "off"] = _switch("search your own and your team's vault with the project's")
    tier_user: float = _own("share", 1.0, "weight of your own notes, 0 to 1")
    tier_project: float = _own("share", 0.8, "weight of the project's notes, 0 to 1")
    tier_team: float = _own("share", 0.6, "weight of the team's notes, 0 to 1")
    knowledge_search_backend: Backend = _choice(  # noqa: RUF009 - it makes a field
        "grep fts5 hybrid", "hybrid", "how to search: substrings from files, words, or words and meaning"
    )
    knowledge_profile: str = _choice(
        "default agent seven rrf fresh", "default", "how results are ranked: default, agent, seven, rrf or fresh"
    )
    knowledge_agent_weights: str = _own(
        "weights", AGENT_WEIGHTS, "weights of the profile agent, as in --weights; those left out keep their default"
    )
    half_life_days: float = _setting("number", 365.0, "days after which a note's recency signal is halved")
    knowledge_embedding_provider: str | None = _own(
        "text",
        None,
        "what turns text into vectors: languages (the default if it is installed), encoder (else the default), static,"
        " ollama, gemini, openai, ... or none",
    )
    knowledge_embedding_model: str | None = _own("text", None, "the provider's model, if not its default")
    knowledge_embedding_host: str | None = _own(
        "text", None, "address of the embedding server, if not the provider's own (ollama: OLLAMA_HOST)"
    )
    knowledge_reader: Literal["on", "off"] = _switch("let a model read the first results and order them")
    knowledge_reader_ms: int = _setting(
        "bytes", 5_000, "milliseconds of processor time after which a search gives up reading", project_most=5_000
    )
    knowledge_hybrid_vector_weight: float = _setting("share", 0.7, "weight of meaning in the score (default 0.7)")
    knowledge_hybrid_text_weight: float = _setting("share", 0.3, "weight of words in the score (default 0.3)")
    knowledge_duplicate_threshold: float = _setting(
        "share", 0.75, "how similar two memories must be for a save to name them as related, 0.5 to 1", least=0.5
    )
    secrets: Literal["refuse", "redact", "allow"] = _choice(
        "refuse redact allow",
        "refuse",
        "keys, tokens, passwords and card numbers in new text: refuse, redact or allow",
        project="refuse redact",
    )
    knowledge_max_note_bytes: int = _setting(
        "bytes", 2_000_000, "larger notes of a vault are skipped and reported", project_most=2_000_000
    )
    knowledge_exclude: tuple[str, ...] = _setting(
        "list", (), "patterns of files and folders not to index, as in .gitignore (comma-separated in the environment)"
    )
    model: str | None = _own(
        "text", None, "the model of `co chat` and of finding memories, as provider:name; a bare name is one of Ollama's"
    )
    context_tokens: int = _setting(
        "bytes", 1_000, "maximum size of the notes that are added to an agent's prompt, in tokens", project_most=4_000
    )
    chat_history: Literal["on", "off"] = _switch("keep what you type in `co chat`, and the last conversation")
    capture: Literal["off", "keep", "propose", "save"] = _choice(
        "off keep propose save",
        "off",
        "conversations of agents and chats: off, keep them, keep them and propose memories, or save memories, too",
        project="off",
    )
    capture_days: int = _own("count", 0, "days after which a kept conversation goes to the trash; 0: never")
    query_log: Literal["on", "off", "no-text"] = _choice(
        "on off no-text",
        "on",
        "record queries for `co feedback stats`: on, off, or no-text (counts and times only)",
        project="off",
    )
    count_use: Literal["on", "off"] = _switch("count how often each note is found and opened")
    log_level: Literal["off", "error", "warning", "info", "debug"] = _choice(
        "off error warning info debug",
        "warning",
        "what is written to co.log in the data folder: error, warning, info (each command), debug, or off",
        project_may=False,
    )
    learn: Literal["on", "off", "ask"] = _choice(
        "on off ask",
        "ask",
        "let feedback change the weights of words and meaning: ask (only by `co feedback tune --apply`), on or off",
        project="off",
    )
    web_allow: tuple[str, ...] = _own("hosts", (), "private hosts, addresses and networks that may be fetched from")
    web_max_bytes: int = _own("bytes", 10_000_000, "maximum size of a web page")
    web_seconds: float = _own("number", 30.0, "time limit for fetching a web page")
    boundaries_model: str | None = _own(
        "text",
        None,
        "the model that proposes where `co index sync` cuts long documents, as provider:name",
    )
    loading_model: str | None = _own(
        "text", None, "the model that picks a tool for `co add URL`, as provider:name; a bare name is one of Ollama's"
    )
    loading_servers: str | None = _own("path", None, "a JSON file that lists the MCP servers whose tools it may use")
    loading_seconds: float = _own("number", 120.0, "time limit for loading one address")
    audit: str | None = _own("path", None, "a file to which `co serve` appends who asked for what, as JSON lines")
    audit_days: int = _own("count", 0, "days that a team's audit log is kept; 0: forever")
    most_notes: int = _own("count", 0, "maximum number of notes in the vault; 0: no limit")
    oidc_issuer: str | None = _own("text", None, "the OpenID Connect provider that people sign in to `co serve` with")
    oidc_client: str | None = _own("text", None, "the client's id at that provider; its secret is in CO_OIDC_SECRET")
    oidc_scope: str = _own("text", "openid profile email", "what `co serve` asks the provider for when people sign in")
    oidc_claim: str = _own("text", "groups", "the claim with a person's groups")
    oidc_groups: tuple[str, ...] = _own(
        "list", (), "what groups may do, as GROUP=ROLE; *=read: everybody who can sign in"
    )
    skill_folders: tuple[str, ...] = _setting(
        "paths", (), "more folders of skills, besides .agents/skills and .claude/skills in the project and your home"
    )
    set_by: dict[str, str] = field(default_factory=dict[str, str])
    """Where each value came from: `default`, `project`, a flag, a variable, or file:line."""


SETTINGS: tuple[Setting, ...] = tuple(
    described.metadata[META]._replace(name=described.name) for described in fields(Settings) if described.metadata
)
BY_NAME = {setting.name: setting for setting in SETTINGS}


class ThisProcess:
    """The `co` command that runs in this process, for its log and messages."""

    command: str | None = None
    """None if another program uses the library."""
    vault: str | None = None
    data_dir: str | None = None
    """As given on the command line."""
    verbose = False
    chatty = False
    """True if more than warnings is wanted."""
    reads_pictures = False
    """True if this process has the time to read the text of pictures."""
    afterwards: Callable[[], None] | None = None
    """What is left to do when the answer is printed."""


this_process = ThisProcess()


def load_settings(
    flags: Mapping[str, object] | None = None,
    environ: Mapping[str, str] | None = None,
    start: str | None = None,
) -> Settings:
    """Collect every setting as seen from the folder `start`; a flag that is None is not set.

    A vault that is named, also by the user's own file, brings the settings of the project it is in, or none: the
    project of the current folder has no say in it, and one index is never built with two configurations.
    """
    environ = os.environ if environ is None else environ
    start = _current_folder() if start is None else start
    values: dict[str, Any] = {setting.name: setting.default for setting in SETTINGS}
    set_by = dict.fromkeys(values, "default")

    def take(name: str, raw: object, origin: str, base: str, project: str | None = None) -> None:
        setting = BY_NAME.get(name)
        if setting is None:
            said = unknown_setting(name)
            join = " Or" if said.endswith("?") else "; or"
            raise SettingsError(f"{origin}: {said}{join} update co-cli, if a newer one wrote the line")
        if project and not setting.project_may:
            raise SettingsError(f"{origin}: a project may not set {name}; set it yourself with {setting.environment}")
        value = _checked(setting, raw, origin, base)
        if project:
            refuse_unsafe(setting, value, origin, project)
        values[name], set_by[name] = value, origin

    own = user_settings_file(environ)
    for name, raw, origin in _read_file(own, None) if own else ():
        take(name, raw, origin, os.path.dirname(str(own)))
    named: Any = (flags or {}).get("vault") or environ.get("CO_VAULT")
    project = project_of(_absolute(str(named), start)) if named else find_project(start)
    lines = _project_lines(project)
    if values["vault"] and not named and all(name != "vault" for name, _, _ in lines):
        project = project_of(values["vault"])
        lines = _project_lines(project)
    for name, raw, origin in lines:
        take(name, raw, origin, str(project), project)
    for setting in SETTINGS:
        if raw := environ.get(setting.environment):
            take(setting.name, raw, setting.environment, start)
    for name, raw in (flags or {}).items():
        if raw is not None:
            take(name, raw, f"--{name.replace('_', '-')}", start)

    values["data_dir"] = values["data_dir"] or user_data_dir(environ)
    if values["vault"] is None and project:
        values["vault"], set_by["vault"] = _own_vault(project), "project"
    elif values["vault"] is None:
        values["vault"] = os.path.join(user_data_dir(environ), "knowledge")
    for name in ("vault", "data_dir"):
        _refuse_undecodable(name, values[name], set_by[name])
    return Settings(**values, set_by=set_by)


def unknown_setting(name: str) -> str:
    from difflib import get_close_matches  # only for a mistake

    close = [known for known in BY_NAME if name in known] or get_close_matches(name, BY_NAME, n=1)
    hint = f"did you mean {close[0]}?" if close else "`co config show` lists them"
    return f"unknown setting {name!r}: {hint}"


def _project_lines(project: str | None) -> list[tuple[str, object, str]]:
    return list(_read_file(project_settings_file(project), project)) if project else []


def _read_file(file: str, project: str | None) -> Iterator[tuple[str, object, str]]:
    """The names and values of a settings.toml, each with its file:line; nothing if there is none."""
    if not os.path.exists(file) or os.path.isdir(file):
        return
    if project is not None and not os.path.realpath(file).startswith(os.path.realpath(project) + os.sep):
        raise SettingsError(f"{file} is a link out of the project: replace it with a file")
    text, table = read_toml(file)
    for name, raw in table.items():
        found = re.search(rf"^[ \t]*(\[?\"?){re.escape(name)}\b", text, re.MULTILINE)
        yield name, raw, f"{file}:{text.count(chr(10), 0, found.start()) + 1 if found else 1}"


def read_toml(file: str) -> tuple[str, dict[str, Any]]:
    """The text of a TOML file, and its values; nothing if there is none. Raises SettingsError with the line."""
    text = ""
    try:
        with open_regular(file) as stream:
            data = stream.read(MAX_FILE_BYTES + 1)
        if len(data) > MAX_FILE_BYTES:
            raise SettingsError(f"{file}: larger than {MAX_FILE_BYTES:,} bytes: shorten it")
        import tomllib  # 5 ms, and most searches read no such file

        text = data.decode("utf-8").replace("\r\n", "\n")
        return text, tomllib.loads(text)
    except (FileNotFoundError, NotADirectoryError):
        return "", {}
    except UnicodeDecodeError:
        raise SettingsError(f"{file}:1: not UTF-8 text; save it as UTF-8") from None
    except ValueError as error:  # of tomllib
        place = re.search(r"\(at line (\d+)", str(error))
        line = place[1] if place else str(text.count("\n") + 1)
        raise SettingsError(f"{file}:{line}: not valid TOML: {error}") from None
    except OSError as error:
        cure = f"; `{permission_cure(file)}`" if isinstance(error, PermissionError) else ""
        raise SettingsError(f"{file}: cannot be read: {error.strerror}{cure}") from None


def refuse_unsafe(setting: Setting, value: Any, origin: str, project: str) -> None:
    """Raise SettingsError for a value that a checked-in file may not choose."""
    name, yourself = setting.name, f"choose {value!r} yourself with {setting.environment}"
    if setting.project_choices and value not in setting.project_choices:
        allowed = ", ".join(setting.project_choices)
        raise SettingsError(f"{origin}: a project may set {name} to {allowed} only; {yourself}")
    if setting.project_most and value > setting.project_most:
        raise SettingsError(f"{origin}: a project may set {name} to {setting.project_most:,.0f} at most; {yourself}")
    if setting.kind in ("path", "paths"):
        root = os.path.realpath(project)
        for path in value if setting.kind == "paths" else (value,):
            if not is_inside(os.path.realpath(path), root):
                raise SettingsError(f"{origin}: a project may not point {name} outside itself ({path})")


def _own_vault(project: str) -> str:
    """A project's vault. A clone may have a link in its place, which must not lead out of the project."""
    vault = project_vault(project)
    if not os.path.realpath(vault).startswith(os.path.realpath(project) + os.sep):
        raise SettingsError(f"{vault} is a link out of the project: if you trust it, name it with CO_VAULT")
    return vault


def _current_folder() -> str:
    try:
        return os.getcwd()
    except FileNotFoundError:
        raise SettingsError("the current folder was deleted: cd to one that exists") from None


def _refuse_undecodable(name: str, path: str, origin: str) -> None:
    if "\0" in path:
        raise SettingsError(f"{origin}: the path of {name} has a NUL character: {path!r}")
    try:
        path.encode()
    except UnicodeEncodeError:
        raise SettingsError(f"{origin}: the path of {name} is not valid UTF-8, rename it: {path!r}") from None


def _checked(setting: Setting, raw: object, origin: str, base: str) -> Value:
    """`raw` as this setting's type, or a SettingsError that says what is expected."""
    wrong = f"{origin}: {setting.name} must be"
    if setting.kind in ("number", "share", "bytes", "count"):
        return _number(setting, raw, wrong)
    if setting.kind in ("list", "paths", "hosts"):
        parts: Any = raw.split(",") if isinstance(raw, str) else raw
        if type(parts) not in (list, tuple) or not all(isinstance(part, str) for part in parts):
            raise SettingsError(f"{wrong} a list of texts, not {raw!r}")
        stripped = [part.strip() for part in parts if part.strip()]
        for part in stripped if setting.kind == "hosts" else ():
            read_host(part, origin)
        return tuple(_absolute(part, base) for part in stripped) if setting.kind == "paths" else tuple(stripped)
    if setting.kind == "engine" and raw != setting.default:
        return _database_address(raw, wrong)
    if setting.kind == "weights" and isinstance(raw, str):
        try:
            read_weights(raw)
        except InvalidInputError as error:
            raise SettingsError(f"{origin}: {setting.name}: {error}") from None
    given: Any = raw
    if not isinstance(given, str | os.PathLike) or not os.fspath(given):
        raise SettingsError(f"{wrong} a text, not {raw!r}")
    text: str = os.fspath(given)
    if setting.choices and text not in setting.choices:
        raise SettingsError(f"{wrong} one of {', '.join(setting.choices)}, not {text!r}")
    return _absolute(text, base) if setting.kind == "path" else text


def read_host(entry: str, origin: str) -> IPv4Network | IPv6Network | str:
    """`127.0.0.1` and `10.1.0.0/16` as networks, `wiki.example.org` as a name; anything else is a SettingsError."""
    import ipaddress  # 10 ms, and most people have no such setting

    text = entry.strip().strip("[]").lower().rstrip(".")
    try:
        return ipaddress.ip_network(text, strict=False)
    except ValueError:
        if HOST.fullmatch(text) and not NUMERIC_LABEL.match(text.rsplit(".", 1)[-1]):
            return text
    raise SettingsError(f"{origin}: {entry!r} is neither a host name nor an address or network such as 10.1.0.0/16")


def _database_address(raw: object, wrong: str) -> str:
    """Without a password: settings are shown and logged."""
    if not isinstance(raw, str) or not raw.startswith(("postgresql://", "postgres://")):
        raise SettingsError(f"{wrong} sqlite or postgresql://user@host/database")
    if re.search(r"://[^?@]*:[^?@]*@|password=", raw, re.IGNORECASE):
        raise SettingsError(f"{wrong} an address without a password: put that into PGPASSWORD or ~/.pgpass")
    return raw


def _absolute(path: str, base: str) -> str:
    return os.path.normpath(os.path.join(base, os.path.expanduser(path)))


def _number(setting: Setting, raw: object, wrong: str) -> float | int:
    kind = setting.kind
    try:
        if isinstance(raw, bool) or not isinstance(raw, str | int | float):
            raise ValueError
        number = float(raw)
        if kind in ("bytes", "count") and not number.is_integer():
            raise ValueError
    except (ValueError, OverflowError):
        raise SettingsError(f"{wrong} a number, not {raw!r}") from None
    if kind == "share" and not setting.least <= number <= 1:
        raise SettingsError(f"{wrong} between {setting.least:g} and 1, not {number:g}")
    if kind == "number" and not 0 < number < 1e6:
        raise SettingsError(f"{wrong} above 0 and below 1,000,000, not {number:g}")
    if kind == "bytes" and number < 1:
        raise SettingsError(f"{wrong} at least 1, not {number:g}")
    if kind == "count" and number < 0:
        raise SettingsError(f"{wrong} at least 0, not {number:g}")
    return int(number) if kind in ("bytes", "count") else number
