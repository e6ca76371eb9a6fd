"""What `pip install co-cli` installs is enough for every command: here no package of an extra can be imported."""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import sys
import venv
from importlib import metadata
from pathlib import Path

import httpx2
import pytest
from packaging.requirements import Requirement

from co_cli.cli.parsing import COMMANDS, split_command
from co_cli.entrance.knowledge_base import KnowledgeBase
from tests.chat_server import ChatServer, text
from tests.command import Co, write_script
from tests.folder import Vault
from tests.hooks.events import PROMPT, given
from tests.searching.watching.test_watch_command import running
from tests.server.processes import serving, web_process

pytestmark = pytest.mark.slow

RUN_EACH = """
import json, shlex, shutil, sys
from pathlib import Path
from tests.command import Co

for line in json.load(sys.stdin):
    if line.startswith("mv "):
        shutil.move(*line.split()[1:])
        continue
    ran = Co(Path())(*shlex.split(line))
    if ran.code:
        print(f"co {line}: {ran.code}", ran.err)
"""
LINES = """
--version --verbose
init project
demo oaks
setup claude-code --dry-run
config show
config set knowledge_reader_ms 2000
config unset knowledge_reader_ms
config trust
config completion bash
remember "Elms live for decades in the park."
list
show memory:oak
open memory:oak
edit memory:oak --title Oaks
search oaks
search "how long do oaks live"
chat "how long do oaks live?"
note recall oaks
note why oaks memory:oak
note tags
note context oaks
note history memory:oak
note article add trees.txt
note review --list
note extract
add docs
source add more
source list
source tree
source skipped
source refresh --all
source remove docs
index sync
index status
index rebuild
index reembed
index verify
remember --vault project/.co-cli "Ashes are rare."
mv project moved
index move project moved
skill list
feedback give memory:oak good -q oaks
feedback tune
feedback stats
checkpoint list
checkpoint show talk
checkpoint remove talk
data export --to exported
data import co exported
data backup
data restore
token create --name ada --role read
token list
token rotate ada
token revoke ada
token log
forget memory:oak
note restore memory:oak
doctor
doctor --report
eval
"""
PROCESSES = {"hook", "index watch", "mcp", "serve", "web"}
"""Commands that run until they are stopped, or read standard input."""


@pytest.fixture(scope="session")
def core_python(tmp_path_factory: pytest.TempPathFactory) -> str:
    """Python in an environment with the required packages alone: links to those of this environment."""
    folder = tmp_path_factory.mktemp("core")
    venv.create(folder, with_pip=False, symlinks=True)
    [packages] = folder.glob("lib/python*/site-packages")
    for name in required("co-cli"):
        found = metadata.distribution(name)
        files = [file for file in found.files or () if name != "co-cli" or file.parts[0].endswith(".dist-info")]
        for top in {file.parts[0] for file in files} - {"..", "__pycache__"}:
            link(Path(str(found.locate_file(top))), packages / top)
    (packages / "co.pth").write_text(f"{Path(__file__).parents[2]}\n")
    return str(folder / "bin" / "python")


def required(name: str, *extras: str) -> set[str]:
    """A package and everything that it requires."""
    names, left = set[tuple[str, ...]](), [(name, *extras)]
    while left:
        wanted = left.pop()
        if wanted not in names:
            names.add(wanted)
            for needed in map(Requirement, metadata.requires(wanted[0]) or ()):
                if not needed.marker or any(needed.marker.evaluate({"extra": extra}) for extra in ("", *wanted[1:])):
                    left.append((needed.name, *sorted(needed.extras)))
    return {wanted[0] for wanted in names}


def link(package: Path, place: Path) -> None:
    """Several packages may share a folder without `__init__.py`, such as `opentelemetry`."""
    if package.is_file() or (package / "__init__.py").exists() or place.suffix == ".dist-info":
        with contextlib.suppress(FileExistsError):  # a package that is required under two spellings of its name
            place.symlink_to(package)
    else:
        place.mkdir(exist_ok=True)
        for inside in package.iterdir():
            link(inside, place / inside.name)


@pytest.fixture
def core(core_python: str, co: Co, vault: Vault, monkeypatch: pytest.MonkeyPatch) -> Co:
    """A vault, and `co` in that environment, with default settings."""
    monkeypatch.setattr(sys, "executable", core_python)
    monkeypatch.delenv("CO_KNOWLEDGE_READER")
    monkeypatch.delenv("CO_KNOWLEDGE_EMBEDDING_PROVIDER")
    vault.write("memories/oak.md", "---\ntags: [tree]\n---\nOaks live for centuries.")
    return co


def test_every_command_works(
    core: Co, vault: Vault, data_dir: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("docs/a.md", "more/b.md", "trees.txt"):
        (core.folder / name).parent.mkdir(exist_ok=True, parents=True)
        (core.folder / name).write_text("Trees are tall.")
    vault.write("questions.jsonl", '{"question": "how old are oaks?", "answers": ["memory:oak"], "kind": "words"}\n')
    for program in ("xdg-open", "claude"):
        write_script(tmp_path / "bin" / program, "true")
    monkeypatch.setenv("PATH", str(tmp_path / "bin"), prepend=os.pathsep)
    with KnowledgeBase.open(vault.root, data_dir) as kb:
        kb.checkpoints.save("talk", "What was said.", [], {})
    lines = [line for line in LINES.splitlines() if line]
    assert {split_command(line.split())[0] for line in lines} >= set(COMMANDS) - PROCESSES
    with ChatServer([text("For centuries.")]) as model:
        monkeypatch.setenv("OLLAMA_BASE_URL", model.url)
        monkeypatch.setenv("CO_MODEL", "ollama:qwen3")
        command = [sys.executable, "-c", RUN_EACH]
        ran = subprocess.run(
            command, input=json.dumps(lines), capture_output=True, text=True, timeout=120, cwd=core.folder
        )
    assert (ran.stdout, ran.stderr) == ("", "")


def test_servers_hooks_and_watching_work(core: Co, vault: Vault) -> None:
    assert "memory:oak" in given(core, "claude-code", PROMPT, prompt="For how long do the oaks live?")
    assert core.process("mcp").code == 0
    with web_process() as (url, _):
        assert httpx2.get(url.removesuffix("/api/v1")).status_code == 200
    with serving({}) as server, server.client() as client:
        assert client.get("/readyz").status_code == 200
    with running(core.folder) as watch:
        vault.write("memories/elm.md", "Elms live long.")
        assert "memory:elm" in watch.line()
