"""What a plain `pip install co-cli` can do, what each extra adds, and that AGENTS.md has a reason for each package."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tomllib
from contextlib import closing
from importlib import metadata
from pathlib import Path

import httpx2
import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from co_cli.ground.paths import install_line
from tests.chat_server import ChatServer, calls, text
from tests.command import Co
from tests.folder import Vault
from tests.house.package import REPOSITORY
from tests.mcp.talking import Place
from tests.server.browser import PATIENCE
from tests.server.processes import web_process
from tests.sources.web_server import WebServer, article

README_AGENT = re.compile(r"```python\n(from pydantic_ai import Agent\n.*?)```", re.S)
ABSENT = """
import sys
for name in {names!r}:
    sys.modules[name] = None
"""


@pytest.fixture(scope="module")
def plain(tmp_path_factory: pytest.TempPathFactory) -> str:
    """A PYTHONPATH with which a process has only what `pip install co-cli` installs."""
    needed, left = set[tuple[str, str]](), [("co-cli", "")]
    while left:
        name, extra = left.pop()
        if (name, extra) not in needed:
            needed.add((name, extra))
            required = [one for one in required_by(name) if not one.marker or one.marker.evaluate({"extra": extra})]
            left += [(canonicalize_name(one.name), chosen) for one in required for chosen in ("", *one.extras)]
    names = {name for name, _ in needed}
    given = metadata.packages_distributions().items()
    absent = {name for name, owners in given if not names & {canonicalize_name(owner) for owner in owners}}
    assert {"tiktoken", "sentencepiece", "pytest"} <= absent
    assert not {"openai", "numpy", "co_cli"} & absent
    folder = tmp_path_factory.mktemp("plain")
    (folder / "sitecustomize.py").write_text(ABSENT.format(names=sorted(absent)))
    return str(folder)


def required_by(name: str) -> list[Requirement]:
    return [Requirement(one) for one in metadata.requires(name) or ()]


@pytest.mark.slow
def test_a_plain_install_searches_adds_pages_and_serves_the_page(
    co: Co, plain: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in {"PYTHONPATH": plain, "CO_KNOWLEDGE_READER": "on", "CO_WEB_ALLOW": "127.0.0.1"}.items():
        monkeypatch.setenv(name, value)
    with closing(WebServer()) as server:
        page = server.page("/oaks", article("Oaks", "Oaks live for centuries and feed hundreds of kinds of insects."))
        added = co.process("add", page)
    found = co.process("search", "which trees get very old", "--read", "--json")

    assert (added.code, added.err) == (0, "")
    assert [hit["ref"].partition("#")[0] for hit in found.json["hits"]] == ["article:oaks"]
    assert found.json["meta"]["read"]
    with web_process() as (api, code), httpx2.Client(base_url=api, verify=False, timeout=PATIENCE) as client:
        client.headers["Authorization"] = f"Bearer {client.post('/session', json={'code': code}).json()['token']}"
        assert "<!doctype html>" in client.get(api.removesuffix("/api/v1")).text
        assert len(client.get("/search", params={"q": "insects"}).json()["hits"]) == 1


@pytest.mark.slow
def test_a_plain_install_serves_mcp(tmp_path: Path, plain: str) -> None:
    server = Place(tmp_path).start(PYTHONPATH=plain)
    server.initialise()
    saved = server.call("save_memory", content="Oaks live long.")
    code, _, err = server.end()

    assert saved["content"][0]["text"].startswith("created memory:")
    assert (code, err) == (0, "")


@pytest.mark.slow
def test_a_plain_install_runs_the_agent_of_the_readme(co: Co, vault: Vault, plain: str) -> None:
    vault.write("memories/oak.md", "Oaks live long.")
    [example] = README_AGENT.findall((REPOSITORY / "README.md").read_text("utf-8"))
    script = example + "print(agent.run_sync('How old do oaks get?').output)"
    with ChatServer([calls(("recall_memory", {"query": "oaks"})), text("Very old.")]) as server:
        env = {**os.environ, "PYTHONPATH": plain, "OLLAMA_BASE_URL": server.url}
        command = [sys.executable, "-c", script]
        ran = subprocess.run(command, env=env, cwd=co.folder, capture_output=True, text=True, timeout=120, check=False)

        assert (ran.stdout, ran.stderr) == ("Very old.\n", "")
        assert "Oaks live long." in str(server.requests[1]["messages"])


@pytest.mark.slow
@pytest.mark.parametrize(
    ("extra", "command", "settings"),
    [
        ("documents", ("add", "papers"), {}),
        ("postgres", ("index", "status"), {"CO_ENGINE": "postgresql://localhost/notes"}),
        ("openid", ("serve",), {"CO_OIDC_ISSUER": "https://id.example", "CO_OIDC_CLIENT": "co"}),
        *(
            (provider, ("index", "sync"), {"CO_KNOWLEDGE_EMBEDDING_PROVIDER": provider, "OPENAI_API_KEY": "none"})
            for provider in ("languages", "openai", "gemini", "voyage")
        ),
    ],
)
def test_a_command_that_needs_an_extra_says_how_to_install_it_on_one_line(
    co: Co, vault: Vault, plain: str, extra: str, command: tuple[str, ...], settings: dict[str, str]
) -> None:
    vault.write("memories/oak.md", "Oaks live long.")
    (co.folder / "papers").mkdir()
    (co.folder / "papers" / "oaks.pdf").write_bytes(b"%PDF-1.4")

    ran = co.process(*command, env={"PYTHONPATH": plain, **settings})

    named = [line for line in ran.err.splitlines() if install_line(extra) in line]
    assert len(named) == 1, ran
    assert "Traceback" not in ran.err


def test_agents_md_has_a_reason_for_each_package_and_for_no_other() -> None:
    project = tomllib.loads((REPOSITORY / "pyproject.toml").read_text("utf-8"))["project"]
    extras = {name: given for name, given in project["optional-dependencies"].items() if name != "all"}
    rows = re.findall(r"^\| (core|`\w+`) \| (.+?) \| (.+?) \|$", (REPOSITORY / "AGENTS.md").read_text("utf-8"), re.M)
    reasons: dict[str, list[str]] = {}
    for install, packages, reason in rows:
        assert len(reason.split()) > 2, packages
        reasons.setdefault(install.strip("`"), []).extend(packages.split(", "))

    wanted = {"core": project["dependencies"], **extras}
    assert {name: sorted(found) for name, found in reasons.items()} == {
        name: sorted(re.split(r"[ <>=;]", one)[0] for one in given) for name, given in wanted.items()
    }
    assert project["optional-dependencies"]["all"] == ["co-cli[documents,languages,postgres]"]
