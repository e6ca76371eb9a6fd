"""Other programs are found in environments of their own, and a row says why one is missing."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from benchmarks import peers
from benchmarks.__main__ import main
from benchmarks.environments import Environments, NotInstalledError, Program
from benchmarks.mcp import INITIALIZE, mcp_server
from benchmarks.peers import Peer
from co_cli.ground.errors import KnowledgeError
from tests.evaluation.tiny_set import trees

ECHO = """
import json, sys
for line in sys.stdin:
    request = json.loads(line)
    if "id" in request:
        print(json.dumps({"jsonrpc": "2.0", "method": "notifications/message", "params": {}}))
        print(json.dumps({"jsonrpc": "2.0", "id": request["id"], "result": {"asked": request["method"]}}), flush=True)
"""


@pytest.mark.skipif(sys.platform == "win32", reason="site-packages is elsewhere on Windows")
def test_a_program_is_found_with_its_version_or_the_reason_is_given(tmp_path: Path) -> None:
    (tmp_path / "basic-memory/lib/python3.12/site-packages/basic_memory-0.24.1.dist-info").mkdir(parents=True)
    about = tmp_path / "qmd/node_modules/@tobilu/qmd/package.json"
    about.parent.mkdir(parents=True)
    about.write_text('{"version": "2.8.3"}')
    places = Environments(str(tmp_path))

    found = [
        places.find(Program("basic-memory", ("basic-memory",))),
        places.find(Program("qmd", ("@tobilu/qmd",), True)),
    ]

    assert [one.version for one in found] == ["0.24.1", "2.8.3"]
    assert found[1].path.startswith(str(tmp_path / "qmd/node_modules/.bin"))
    with pytest.raises(NotInstalledError, match=r"mem0: install it there, or add --install$"):
        places.find(Program("mem0", ("mem0ai",)))
    with pytest.raises(NotInstalledError, match=r"^it needs Python 3\.99 or newer"):
        Environments(str(tmp_path), install=True).find(Program("later", ("later",), python=(3, 99)))


def test_a_server_is_asked_until_it_answers_and_one_that_ends_is_reported(tmp_path: Path) -> None:
    with mcp_server([sys.executable, "-c", ECHO], {}, str(tmp_path)) as server:
        assert server.ask(**INITIALIZE) == {"asked": "initialize"}
        assert server.ask("tools/list") == {"asked": "tools/list"}
    assert server.process.poll() is not None

    with (
        mcp_server([sys.executable, "-c", "raise SystemExit('no key')"], {}, str(tmp_path)) as server,
        pytest.raises(KnowledgeError, match="did not answer initialize: no key"),
    ):
        server.ask(**INITIALIZE)


@pytest.mark.slow
@pytest.mark.skipif(sys.platform == "win32", reason="the benchmark asks `ps` for the memory of processes")
def test_servers_are_compared_on_one_set_and_those_that_are_missing_are_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(peers, "REPEATS", 1)
    monkeypatch.setattr(peers, "PEERS", (peers.PEERS[0], Peer("qmd", ("qmd", "mcp"), Program("qmd", ("qmd",), True))))

    assert main(["peers", str(trees(tmp_path / "trees")), "--environments", str(tmp_path), "--json"]) == 0

    rows = {row["name"]: row for row in json.loads(capsys.readouterr().out)["rows"]}
    figures = {name.rpartition(": ")[2]: row["value"] for name, row in rows.items()}
    assert figures["tools"] == 9
    assert figures["nDCG@10"] > 0.9
    assert figures["notes that indexing changed"] == 0
    assert "install it there" in rows["qmd"]["skipped"]


def test_the_real_model_must_be_installed_on_request(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["real_model", "--environments", str(tmp_path)]) == 2

    said = capsys.readouterr().err
    assert said == f"benchmarks: not in {tmp_path / 'real-model'}: install it there, or add --install\n"
