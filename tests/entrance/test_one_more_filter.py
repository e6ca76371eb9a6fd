"""A filter that is added to the table works everywhere without another change."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

import co_cli
from tests.folder import Vault
from tests.postgres import new_database

TABLE = Path("index", "filter_table.py")
ENTRY = """
    author: Annotated[
        str | None,
        Filter(
            "text",
            ("--by", "--written-by"),
            "was written by",
            requires=lambda author, filters: _has_fields([("author", author)], filters),
            for_agents=True,
        ),
    ]
"""
EVERYWHERE = """
import os
from pathlib import Path
import co_cli
from co_cli.entrance.knowledge_base import KnowledgeBase
from co_cli.server.access_tokens import AccessTokens
from co_cli.tools import Toolbox
from tests.command import Co
from tests.server.conftest import serving, token

def co(*arguments):
    found = Co(Path())(*arguments, "--json").json
    return [one["ref"] for one in (found["hits"] if isinstance(found, dict) else found)]

def refs(hits):
    return [hit.ref for hit in hits]

assert co_cli.__file__.startswith(os.environ["PYTHONPATH"].split(os.pathsep)[0])
found = {
    "co search": co("search", "oak", "--written-by", "ANN"),
    "co search --backend grep": co("search", "oak", "--written-by", "ann", "--backend", "grep"),
    "co list": co("list", "--by", "ann"),
}
with KnowledgeBase.open() as kb:
    found["python"] = refs(kb.search("oak", author="ann").hits)
    found["python by words"] = refs(kb.search("oak", author="ann", backend="fts5").hits)
    found["python list"] = refs(kb.notes(author="ann"))
    answer = Toolbox(kb).call("search_knowledge", {"query": "oak", "author": "ann"})
    found["tool"] = [hit["ref"] for hit in answer.data["hits"]] + answer.data["ignored"]
    with serving(kb, AccessTokens.of(kb.vault)) as server:
        secret = token(kb)
        with server.client(Authorization=f"Bearer {secret}") as client:
            for path in ("/search?q=oak&written_by=ann", "/notes?written_by=ann"):
                answer = client.get(f"/api/v1{path}").json()
                found[path] = [one["ref"] for one in (answer["hits"] if "hits" in answer else answer)]
            answer = client.post("/api/v1/search", json={"q": "oak", "author": "ann"}).json()
            found["POST /search"] = [hit["ref"] for hit in answer["hits"]]
        with KnowledgeBase.connect(server.url, secret) as remote:
            found["remote"] = refs(remote.search("oak", author="ann").hits)
            found["remote list"] = refs(remote.notes(author="ann"))
wrong = {how: refs for how, refs in found.items() if refs != ["memory:one"]}
assert not wrong, wrong
print(len(found), "ways")
"""


@pytest.mark.slow
@pytest.mark.parametrize("engine", ["sqlite", pytest.param("postgres", marks=pytest.mark.postgres)])
def test_a_filter_is_one_entry(engine: str, vault: Vault, data_dir: Path, tmp_path: Path) -> None:
    vault.write("memories/one.md", "---\nauthor: Ann\n---\nAn oak.")
    vault.write("memories/two.md", "---\nauthor: Bob\n---\nAnother oak.")
    package, ours = tmp_path / "changed" / "co_cli", Path(co_cli.__file__).parent
    for folder in (ours, ours / TABLE.parent):
        copy = package / folder.relative_to(ours)
        copy.mkdir(parents=True)
        for one in folder.iterdir():
            if one != ours / TABLE.parent and one != ours / TABLE:
                (copy / one.name).symlink_to(one)
    before, head, rest = (ours / TABLE).read_text("utf-8").partition("class FilterOptions(TypedDict, total=False):\n")
    docstring, _, entries = rest.partition("\n\n")
    (package / TABLE).write_text(f"{before}{head}{docstring}\n{ENTRY}{entries}", "utf-8")

    settings = {"CO_VAULT": str(vault.root), "CO_DATA_DIR": str(data_dir)}
    settings |= {"CO_ENGINE": "sqlite" if engine == "sqlite" else new_database()}
    settings |= {"PYTHONPATH": os.pathsep.join((str(package.parent), str(Path(__file__).parents[2])))}
    ran = subprocess.run(
        [sys.executable, "-c", EVERYWHERE],
        env=os.environ | settings,
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )

    assert (ran.returncode, ran.stdout) == (0, "12 ways\n"), ran.stderr
