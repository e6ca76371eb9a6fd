"""The state of everything for the page: doctor, sources, index, settings, and two ways to rank side by side."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import cache
from typing import Any, Literal, NamedTuple

from pydantic import BaseModel

from co_cli.activity import record_refs
from co_cli.embedding.model_file import can_run
from co_cli.embedding.reader import CrossEncoder
from co_cli.entrance.local import LocalKnowledgeBase
from co_cli.ground.errors import InvalidInputError, SettingsError, VaultError
from co_cli.ground.hits import Backend, SearchResult
from co_cli.ground.settings import BY_NAME, SETTINGS
from co_cli.ground.summaries import Status
from co_cli.retrieval.profiles import PROFILES
from co_cli.searching.requests import Options, build_request, find
from co_cli.server.cached_answers import kept_until_changed
from co_cli.server.jobs import Jobs, JobState, Report
from co_cli.server.routes import is_owner, route
from co_cli.upkeep.doctor import Finding, examine
from co_cli.upkeep.settings_file import own_settings_file, read_value, settings_now, write_setting
from co_cli.vault.origins import SourceState
from co_cli.vault.ranking import learned_weights
from co_cli.version import __version__


class ShownSetting(NamedTuple):
    """A setting, and where its value comes from."""

    value: Any
    origin: str
    """`default`, `project`, a flag, a variable, or file:line."""
    help: str
    environment: str


class ChangeableSetting(NamedTuple):
    """A setting that people change, and what it takes."""

    name: str
    kind: str
    """choice, or what to type: bytes, count or text"""
    choices: tuple[str, ...]
    value: Any
    default: Any
    origin: str
    fixed: bool
    """Whether something comes before your own file: a variable, a flag or the project."""
    in_use: Any
    """The value that this server started with."""
    help: str
    environment: str


class SettingsAnswer(NamedTuple):
    file: str
    """Where changes are written: your own settings.toml."""
    may_change: bool
    """Only in `co web`, by the person who started it."""
    settings: Sequence[ChangeableSetting]


class NewSetting(BaseModel):
    """Another value for a setting; without one, the default or what else sets it."""

    name: str
    value: str | None = None


class Health(NamedTuple):
    """Everything but the doctor's checks, which take longer."""

    version: str
    status: Status
    sources: Sequence[SourceState]
    waiting: dict[str, int]
    """How many files have changed since they were read, by the path of a source."""
    learned: dict[str, float] | None
    """Weights that feedback taught."""
    settings: dict[str, ShownSetting]
    profiles: dict[str, dict[str, float]]
    """What can be compared: the weights of each profile."""


class DoctorAnswer(NamedTuple):
    job: JobState
    findings: Sequence[Finding] = ()


class RankingChoice(BaseModel):
    """Another way to rank; what is not given is as in the settings."""

    backend: Backend | None = None
    profile: str | None = None
    weights: dict[str, float] | None = None
    reader: Literal["on", "off"] | None = None


class Compare(BaseModel):
    q: str
    left: RankingChoice = RankingChoice()
    right: RankingChoice = RankingChoice()
    limit: int = 10


class Compared(NamedTuple):
    left: SearchResult
    right: SearchResult


CHANGEABLE = (
    "capture",
    "capture_days",
    "context_tokens",
    "knowledge_search_backend",
    "knowledge_reader",
    "knowledge_embedding_provider",
    "knowledge_profile",
    "model",
    "query_log",
    "count_use",
    "secrets",
)
"""What people change, in the order of the page. `co config set` changes all settings."""
_doctors: Jobs[list[Finding]] = Jobs()
_reader = cache(CrossEncoder)
"""Of those who compare, where the vault has none."""


@route("GET", "/health")
@kept_until_changed(lambda kb: learned_weights(kb.vault.ranking))
def show_health(kb: LocalKnowledgeBase) -> Health:
    """Show the state of the sources, the index and the settings."""
    sources = kb.sources.states()
    waiting: dict[str, int] = {}
    for origin in (kb.index.origin, *kb.index.linked):
        try:
            waiting[origin.path] = kb.index.of(origin).waiting()
        except VaultError:  # not there now, as its row says
            continue
    values, origins = vars(kb.settings), kb.settings.set_by
    return Health(
        __version__,
        kb.status(),
        sources,
        waiting,
        learned_weights(kb.vault.ranking),
        {
            setting.name: ShownSetting(values[setting.name], origins[setting.name], setting.help, setting.environment)
            for setting in SETTINGS
        },
        {name: dict(profile.weights) for name, profile in PROFILES.items()},
    )


@route("GET", "/settings")
def list_settings(kb: LocalKnowledgeBase) -> SettingsAnswer:
    """List the settings that people change, with what each takes and where its value comes from."""
    return _settings(kb)


@route("PUT", "/settings/{name}", role="admin")
def change_setting(kb: LocalKnowledgeBase, asked: NewSetting) -> SettingsAnswer:
    """Write a setting to your own settings.toml. Only `co web` does that."""
    found = next((setting for setting in _settings(kb).settings if setting.name == asked.name), None)
    if not is_owner():
        raise InvalidInputError(
            "settings of `co serve` are changed where it runs: `co config set`, then start it again"
        )
    if found is None:
        raise InvalidInputError(f"the page does not change {asked.name}: `co config set` does")
    if found.fixed:
        raise InvalidInputError(f"{asked.name} is set by {found.origin}, which comes before your own file")
    value = read_value(asked.name, asked.value) if asked.value else None
    file = own_settings_file()
    try:
        write_setting(file, asked.name, value)
    except OSError as error:
        raise SettingsError(f"{file} cannot be written: {error.strerror}") from None
    return _settings(kb)


def _settings(kb: LocalKnowledgeBase) -> SettingsAnswer:
    now, file = settings_now(kb.settings), own_settings_file()
    rows = [
        ChangeableSetting(
            name,
            (setting := BY_NAME[name]).kind,
            setting.choices,
            getattr(now, name),
            setting.default,
            now.set_by[name],
            now.set_by[name] != "default" and not now.set_by[name].startswith(f"{file}:"),
            getattr(kb.settings, name),
            setting.help,
            setting.environment,
        )
        for name in CHANGEABLE
    ]
    return SettingsAnswer(file, is_owner(), rows)


@route("GET", "/status")
def show_status(kb: LocalKnowledgeBase) -> Status:
    """Show numbers about the vault and its index."""
    return kb.status()


@route("POST", "/doctor", role="read")
def start_doctor(kb: LocalKnowledgeBase) -> DoctorAnswer:
    """Check everything.

    It runs in the background; if it runs already, this joins it.
    """
    return _examine(kb, fix=False)


@route("POST", "/doctor/fix", role="admin")
def fix_index(kb: LocalKnowledgeBase) -> DoctorAnswer:
    """Check everything, and apply the safe fixes: to the index, never to notes."""
    return _examine(kb, fix=True)


def _examine(kb: LocalKnowledgeBase, fix: bool) -> DoctorAnswer:
    def work(report: Report) -> list[Finding]:
        return examine(kb.vault, fix, lambda done, total: report("files", done, total))

    _doctors.start(kb, work)
    return show_doctor(kb)


@route("GET", "/doctor")
def show_doctor(kb: LocalKnowledgeBase) -> DoctorAnswer:
    """Show how far the doctor is, or what it found."""
    job = _doctors.last(kb)
    return DoctorAnswer(job.state, job.result or ()) if job else DoctorAnswer(JobState())


@route("POST", "/compare", role="read")
def compare_rankings(kb: LocalKnowledgeBase, asked: Compare) -> Compared:
    """Answer one query in two ways. Reading may take as long as it takes, and nothing is logged."""
    return Compared(_search(kb, asked, asked.left), _search(kb, asked, asked.right))


def _search(kb: LocalKnowledgeBase, asked: Compare, ranking: RankingChoice) -> SearchResult:
    options = Options(asked.limit, **ranking.model_dump(exclude={"reader"}), read=False)
    request = build_request(kb.vault, asked.q, options)
    reads = request.backend == "hybrid" and (ranking.reader or kb.settings.knowledge_reader) == "on"
    reader = kb.vault.reader or _reader() if reads and can_run() else None
    request = replace(request, reader=reader, read_always=True, read_seconds=None)
    found = find(kb.index, request)
    record_refs(*(hit.ref for hit in found.hits))
    return found
