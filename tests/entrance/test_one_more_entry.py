"""A filter or a field of notes that is added to its table works everywhere without another change."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

import co_cli
from tests.folder import Vault
from tests.postgres import new_database

pytestmark = pytest.mark.slow

FILTER = """
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
FILTERED = """
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

FIELD = """
    author: Annotated[str | None, NoteField("text", ("--by", "--written-by"), "who wrote it", for_agents=True)]
"""
SAVED = """
import os
from pathlib import Path
import co_cli
from co_cli.entrance.knowledge_base import KnowledgeBase
from co_cli.server.access_tokens import AccessTokens
from co_cli.tools import Toolbox
from tests.command import Co
from tests.server.conftest import serving, token

assert co_cli.__file__.startswith(os.environ["PYTHONPATH"].split(os.pathsep)[0])
co = Co(Path())
saved = {"co": co("remember", "Cedars.", "--written-by", "Ann", "--json").json["ref"]}
changed = {"co": co("remember", "Elms.", "--json").json["ref"]}
co("edit", changed["co"], "--by", "Ann")
with KnowledgeBase.open() as kb:
    saved["python"], changed["python"] = kb.remember("Oaks.", author="Ann").ref, kb.remember("Firs.").ref
    kb.update(changed["python"], author="Ann")
    tools = Toolbox(kb)
    for name in ("save_memory", "update_memory"):
        assert "author" in next(tool for tool in tools.tools if tool.name == name).parameters["properties"]
    saved["tool"] = tools.call("save_memory", {"content": "Limes.", "author": "Ann"}).data["ref"]
    changed["tool"] = kb.remember("Pines.", author="Bob").ref
    tools.call("update_memory", {"ref": changed["tool"], "author": "Ann"})
    with serving(kb, AccessTokens.of(kb.vault)) as server:
        secret = token(kb)
        with server.client(Authorization=f"Bearer {secret}") as client:
            saved["http"] = client.post("/api/v1/notes", json={"content": "Yews.", "author": "Ann"}).json()["ref"]
            changed["http"] = kb.remember("Figs.").ref
            client.put(f"/api/v1/notes/{changed['http']}", json={"author": "Ann"})
        with KnowledgeBase.connect(server.url, secret) as remote:
            saved["remote"], changed["remote"] = remote.remember("Ashes.", author="Ann").ref, kb.remember("Palms.").ref
            remote.update(changed["remote"], author="Ann")
    refs = [*saved.values(), *changed.values()]
    wrong = {ref: kb.note(ref).metadata for ref in refs if kb.note(ref).metadata.get("author") != "Ann"}
    assert not wrong, wrong
    kb.update(refs[0], author="")
    assert "author" not in kb.note(refs[0]).metadata
print(len(refs), "ways")
"""


def run_changed(module: str, table: str, entry: str, script: str, settings: dict[str, str], folder: Path) -> str:
    """What a script prints, or its errors, where a table of the package has one more entry."""
    package, ours, file = folder / "changed" / "co_cli", Path(co_cli.__file__).parent, Path(module)
    for place in (ours, ours / file.parent):
        copy = package / place.relative_to(ours)
        copy.mkdir(parents=True)
        for one in place.iterdir():
            if one not in (ours / file.parent, ours / file):
                (copy / one.name).symlink_to(one)
    before, head, rest = (ours / file).read_text("utf-8").partition(f"class {table}(TypedDict, total=False):\n")
    docstring, _, entries = rest.partition("\n\n")
    (package / file).write_text(f"{before}{head}{docstring}\n{entry}{entries}", "utf-8")
    path = {"PYTHONPATH": os.pathsep.join((str(package.parent), str(Path(__file__).parents[2])))}
    ran = subprocess.run(
        [sys.executable, "-c", script],
        env=os.environ | settings | path,
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
    )
    return ran.stdout if ran.returncode == 0 else ran.stderr


@pytest.mark.parametrize("engine", ["sqlite", pytest.param("postgres", marks=pytest.mark.postgres)])
def test_a_filter_is_one_entry(engine: str, vault: Vault, data_dir: Path, tmp_path: Path) -> None:
    vault.write("memories/one.md", "---\nauthor: Ann\n---\nAn oak.")
    vault.write("memories/two.md", "---\nauthor: Bob\n---\nAnother oak.")
    settings = {"CO_VAULT": str(vault.root), "CO_DATA_DIR": str(data_dir)}
    settings |= {"CO_ENGINE": "sqlite" if engine == "sqlite" else new_database()}

    said = run_changed("index/filter_table.py", "FilterOptions", FILTER, FILTERED, settings, tmp_path)

    assert said == "12 ways\n"


def test_a_field_of_notes_is_one_entry(vault: Vault, data_dir: Path, tmp_path: Path) -> None:
    settings = {"CO_VAULT": str(vault.root), "CO_DATA_DIR": str(data_dir)}

    said = run_changed("ground/saves.py", "NoteFields", FIELD, SAVED, settings, tmp_path)

    assert said == "10 ways\n"
