"""The verbs of KnowledgeBase, as the documentation promises them."""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import fields
from pathlib import Path
from typing import Any

import pytest

from co_cli import KnowledgeBase, KnowledgeError
from co_cli.agent import CoDeps
from co_cli.ground.errors import InvalidInputError, UnknownRefError, VaultError
from co_cli.index.filter_table import OPTIONS
from co_cli.searching.requests import Options, SearchOptions
from tests.folder import Vault

READING = {"open", "os.listdir", "os.scandir", "subprocess.Popen", "socket.connect"}


def test_a_memory_from_saving_to_restoring(vault: Vault, data_dir: Path) -> None:
    with KnowledgeBase.open(vault=vault.root, data_dir=data_dir) as kb:
        report = kb.sync()
        assert (report.added, report.changed, report.removed, report.unchanged, report.skipped) == ([], [], [], 0, [])

        saved = kb.remember(
            "Blue takes traffic first.", title="Deploys", tags=["deploy"], category="decision", provenance="user"
        )
        assert (saved.ref, saved.outcome) == ("memory:deploys", "created")
        assert Path(saved.path) == vault.path("memories/deploys.md")

        found = kb.search("blue traffic", sources=["memory"], tags=["deploy"], category="decision", until="today")
        assert (found.state, found.degraded) == ("found", [])
        hit = found.hits[0]
        assert (hit.ref, hit.source, hit.path, hit.title) == (saved.ref, "memory", saved.path, "Deploys")
        assert hit.snippet == "Blue takes traffic first."
        assert hit.tags == ("deploy",)
        assert 0 < hit.score <= 1
        assert hit.signals["words"] > 0

        assert kb.note(hit.ref).body.strip() == "Blue takes traffic first."
        assert [note.ref for note in kb.notes(source="memory", tags=["deploy"])] == [saved.ref]
        kb.forget(saved.ref)
        assert kb.search("blue traffic", backend="fts5").state == "absent"
        assert kb.restore(saved.ref).outcome == "restored"
        assert kb.search("blue traffic", backend="fts5").state == "found"
        assert kb.status().notes == {"memory": 1}


def test_reading_an_attribute_opens_no_file_and_no_database(vault: Vault, data_dir: Path) -> None:
    vault.write("memories/oak.md", "Oaks live long.")
    opened: list[str] = []
    watching = False
    sys.addaudithook(lambda event, _: opened.append(event) if watching and event in READING else None)

    with KnowledgeBase.open(vault=vault.root, data_dir=data_dir) as kb:
        for value in (kb, kb.vault, kb.index, kb.activity):
            names = [name for name, member in vars(type(value)).items() if isinstance(member, property)]
            _ = [getattr(value, name) for name in names]  # modules are imported
            watching = True
            _ = [getattr(value, name) for name in names]
            watching = False

    assert opened == []
    assert [path.name for path in data_dir.iterdir()] == []


def test_a_save_leaves_nothing_waiting_and_the_next_sync_changes_nothing(kb: KnowledgeBase) -> None:
    kb.sync()

    kb.remember("The kettle is in the loft.")

    assert kb.index.waiting() == 0
    report = kb.sync()
    assert (report.touched, report.unchanged) == (0, 1)


def test_a_saved_note_that_is_deleted_before_any_sync_is_forgotten(kb: KnowledgeBase, vault: Vault) -> None:
    kb.sync()
    saved = kb.remember("The kettle is in the loft.")

    Path(saved.path).unlink()
    report = kb.sync()

    assert report.removed == ["memories/the-kettle-is-in-the-loft.md"]
    assert kb.search("kettle", backend="fts5").state == "absent"
    assert kb.status().notes == {}


def test_the_index_searches_with_the_backend_and_the_weights_of_the_settings(
    vault: Vault, data_dir: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    vault.write("memories/kettle.md", "The kettle is in the loft.")
    monkeypatch.setenv("CO_KNOWLEDGE_HYBRID_VECTOR_WEIGHT", "0.2")
    monkeypatch.setenv("CO_KNOWLEDGE_HYBRID_TEXT_WEIGHT", "0.8")
    with KnowledgeBase.open(vault.root, data_dir) as kb:
        kb.sync()
        [hit] = kb.index.search("where is the kettle")
        assert hit.signals == kb.search("where is the kettle").hits[0].signals
        assert hit.signals["words"] > 0.7 > 0.2 > hit.signals["meaning"] > 0
        assert CoDeps(kb).knowledge_index.search("where is the kettle") == [hit]

    for backend, found in (("fts5", ["memory:kettle"]), ("grep", [])):
        monkeypatch.setenv("CO_KNOWLEDGE_SEARCH_BACKEND", backend)
        with KnowledgeBase.open(vault.root, data_dir) as kb:
            assert kb.index.search("where do we heat water") == [], f"{backend} knows no meaning"
            assert [hit.ref for hit in kb.index.search("kettles")] == found, f"{backend} and stems"
            [hit] = kb.index.search("kettle", source="memory", limit=1)
            assert hit.signals == kb.search("kettle").hits[0].signals


def test_update_changes_what_is_found(kb: KnowledgeBase) -> None:
    saved = kb.remember("It is in the loft.", title="Kettle", tags=["house"])

    kb.update(saved.ref, "It is in the cellar.", tags=["house", "cellar"], fields={"importance": 0.9})

    assert kb.search("cellar", backend="fts5").hits[0].ref == saved.ref
    assert kb.search("loft", backend="fts5").hits == []
    assert kb.notes(tags=["cellar"], fields={"importance": "0.9"})[0].ref == saved.ref


def test_every_error_is_a_knowledge_error(kb: KnowledgeBase, tmp_path: Path) -> None:
    with pytest.raises(KnowledgeError):
        kb.remember("  ")
    with pytest.raises(InvalidInputError):
        kb.search("x", limit=0)
    with pytest.raises(VaultError, match="co init"):
        KnowledgeBase.open(tmp_path / "nowhere")
    (tmp_path / "file.md").write_text("x")
    with pytest.raises(VaultError, match="is a file"):
        KnowledgeBase.open(tmp_path / "file.md")


def test_indexing_and_searching_never_write_to_a_note(kb: KnowledgeBase, vault: Vault) -> None:
    file = vault.write("memories/oak.md", b"\xef\xbb\xbf---\r\nx: 1\r\n---\r\nOaks \xff live.\r\n")
    before = (file.read_bytes(), file.stat().st_mtime_ns, file.stat().st_ino)

    kb.sync()
    kb.search("oaks")
    kb.rebuild()
    kb.doctor(fix=True)

    assert (file.read_bytes(), file.stat().st_mtime_ns, file.stat().st_ino) == before


def test_a_ref_that_no_file_can_have_is_unknown(kb: KnowledgeBase) -> None:
    for ref in ("a\0b", "memory:oak\0", "/x\0y", "\0"):
        for ask in (kb.note, kb.forget, kb.restore, kb.links, kb.file_of):
            with pytest.raises((UnknownRefError, InvalidInputError)):
                ask(ref)


def test_a_query_that_is_no_text_and_unknown_options_are_invalid_input(kb: KnowledgeBase) -> None:
    anything: Any = kb
    for query in (None, 7, b"oaks"):
        with pytest.raises(InvalidInputError, match="the query must be a text, not"):
            anything.search(query)
    with pytest.raises(InvalidInputError, match="there is no option 'tag': did you mean tags"):
        anything.search("oaks", tag="tree")
    with pytest.raises(InvalidInputError, match="there is no option 'colour': there are any_tag, as_of"):
        anything.why("oaks", "memory:oak", colour="green")
    with pytest.raises(InvalidInputError, match="there is no option 'min_score'"):
        anything.notes(min_score=0.3)


def test_the_typed_options_are_those_that_a_search_reads() -> None:
    read = {field.name for field in fields(Options)} - {"filters"}
    assert {*SearchOptions.__annotations__, "limit"} == read | {*OPTIONS}


@pytest.mark.slow
def test_pyright_sees_an_unknown_option(tmp_path: Path) -> None:
    pyright = Path(sys.executable).with_name("pyright")
    if not pyright.exists():
        pytest.skip("pyright is not installed")
    lines = (
        'search("oaks", tags=["tree"], since="7d")',
        'search("oaks", tag="tree")',
        "search(None)",
        "notes(colour=1)",
    )
    calls = "".join(f"    kb.{line}\n" for line in lines)
    file = tmp_path / "program.py"
    file.write_text(f"from co_cli import KnowledgeBase\n\nwith KnowledgeBase.open() as kb:\n{calls}")

    command = (pyright, "--outputjson", "--pythonpath", sys.executable, str(file))
    ran = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=120, check=False)

    wrong = {one["range"]["start"]["line"] - 3 for one in json.loads(ran.stdout)["generalDiagnostics"]}
    assert [lines[number] for number in sorted(wrong)] == list(lines[1:])


@pytest.mark.parametrize("said", ["x", "nobody", "User's"])
def test_a_provenance_that_nobody_knows_is_refused(kb: KnowledgeBase, said: str) -> None:
    expected = "provenance must be one of user, agent, web, import, not"
    with pytest.raises(InvalidInputError, match=expected):
        kb.remember("Blue first.", provenance=said)
    ref = kb.remember("Blue first.", provenance="Agent").ref
    with pytest.raises(InvalidInputError, match=expected):
        kb.update(ref, fields={"provenance": said})

    assert kb.note(ref).provenance == "agent"
