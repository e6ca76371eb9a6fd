"""Folders and files that are indexed in place: `co add` and `co source list|refresh|remove|tree`."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from co_cli.entrance.knowledge_base import KnowledgeBase
from co_cli.ground.errors import InvalidInputError
from co_cli.ground.paths import install_line
from co_cli.sources.origin import registry_file
from co_cli.tools import Toolbox
from tests.command import Co, refs, write_script
from tests.folder import Vault
from tests.sources.document_files import book, lines_of, pdf, word


@pytest.fixture
def handbook(tmp_path: Path) -> Path:
    root = tmp_path / "handbook"
    (root / "guides").mkdir(parents=True)
    (root / "guides" / "deploy.md").write_text("# Deploys\n\nBlue takes the traffic before green does.\n")
    (root / "zebras.txt").write_text("Zebras have stripes.\n")
    (root / "keys.py").write_text('def rotate():\n    """Turn the signing keys over."""\n')
    (root / "logo.ico").write_bytes(b"\x89PNG\r\n\x1a\n\0\0")
    return root


def state(root: Path) -> dict[str, tuple[bytes, int]]:
    """All files of a folder, to see that nothing there was touched."""
    files = [path for path in root.rglob("*") if path.is_file()]
    return {str(path.relative_to(root)): (path.read_bytes(), path.stat().st_mtime_ns) for path in files}


def test_a_folder_is_searched_with_the_notes_and_is_not_touched(co: Co, vault: Vault, handbook: Path) -> None:
    vault.write("memories/green.md", "Green is the slower pool.")
    before = state(handbook)

    ran = co("add", str(handbook))

    where = f"in the vault {vault.root}\n"
    assert (ran.code, ran.out, ran.err) == (0, f"{handbook}  created folder:handbook: 3 new, 1 binary\n{where}", "")
    assert refs(co, "signing keys")[0] == "folder:handbook/keys.py#L1-2"
    assert "memory:green" in refs(co, "which pool is slower")
    shown = co("show", refs(co, "traffic blue green", "--limit", "1")[0]).out
    assert "Blue takes the traffic" in shown
    assert str(handbook / "guides/deploy.md") in shown
    whole = co("show", "folder:handbook/guides/deploy.md", "--json").json
    assert (whole["ref"], whole["path"]) == ("folder:handbook/guides/deploy.md", str(handbook / "guides/deploy.md"))
    assert co("show", str(handbook / "zebras.txt")).out.endswith("\n\nZebras have stripes.\n")
    ran = co("forget", "folder:handbook/zebras.txt")
    assert ran.code == 2
    assert f"it belongs to a linked source; edit {handbook / 'zebras.txt'}" in ran.err
    assert state(handbook) == before
    assert vault.notes() == ["memories/green.md"]


def test_each_file_of_a_mixed_folder_is_indexed_listed_or_skipped_with_the_reason(
    co: Co, vault: Vault, tmp_path: Path
) -> None:
    folder = tmp_path / "mixed"
    indexed = {
        "a.md": b"# Mooring\n\nOne long line.",
        "a.rst": b"Tides\n=====\n\nHigh at noon.",
        "a.csv": b"berth,fee\nA1,12\n",
        "a.html": b"<main><p>The ferry leaves at seven in the morning, every day.</p></main>",
        "a.pdf": pdf(lines_of("Lanterns are lit at dusk.")),
        "a.eml": b"From: ada@example.org\nSubject: Berths\n\nAll berths are taken.\n",
        "a.ipynb": json.dumps({"cells": [{"cell_type": "markdown", "source": "Depths"}]}).encode(),
        "Straße/港.txt": "Der Kran steht still.".encode("latin-1"),
        "Makefile": b"all:\n\tmake tea\n",
    }
    skipped = {
        "noise.txt": bytes(range(256)) * 9,
        "broken.docx": b"PK nothing",
        "uv.lock": b"x",
        "old.rtf": b"{\\rtf",
        "big.txt": b"x " * 5_000_001,
    }
    binary = {"a.zip": b"PK", "id_rsa": b"secret", "movie.mp4": b"x"}
    ignored = {"node_modules/x.txt": b"x", "draft.md~": b"x", ".hidden/secret.md": b"x", "build/out.txt": b"x"}
    for path, data in {**indexed, **skipped, **binary, **ignored, ".gitignore": b"build/\n"}.items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_bytes(data)
    (folder / "link.md").symlink_to(folder / "a.md")

    (row,) = co("add", str(folder), "--json").json

    reasons = {one["path"]: one["reason"] for one in row["skipped"]}
    assert set(row["added"]) == set(indexed)
    assert {path for path, reason in reasons.items() if reason == "binary"} == set(binary)
    assert set(reasons) == {*binary, *skipped, "link.md"}
    assert all(len(reason) > 5 for reason in reasons.values())
    assert refs(co, "lanterns dusk")[0].startswith("folder:mixed/a.pdf")
    (again,) = co("add", str(folder), "--json").json
    assert (again["outcome"], again["added"], again["changed"], again["missing"]) == ("skipped", [], [], [])
    listed = co("source", "list", "--json").json[0]
    assert (listed["notes"], listed["skipped"], listed["binary"]) == (len(indexed), len(skipped) + 1, len(binary))


def test_doctor_names_the_file_of_a_folder_to_edit_and_the_limit_that_applies(co: Co, handbook: Path) -> None:
    (handbook / "broken.md").write_text("---\ntitle: T\nx: [1\n---\nStill about zebras.\n")
    with (handbook / "log.txt").open("wb") as stream:
        stream.truncate(15_000_000)
    co("add", str(handbook))

    found = {one["fix"]: one["text"] for one in co("doctor", "--json").json if one["check"] == "folder:handbook"}

    exclude = f"change {handbook / 'log.txt'}, or exclude it in a .coignore"
    assert set(found) == {f"edit {handbook / 'broken.md'}", exclude}
    limit = "15,000,000 bytes; the limit for such files is 10,000,000"
    assert found[exclude].endswith(limit)
    assert "folder:handbook  4 unchanged\n" in co("index", "sync").out

    (handbook / ".coignore").write_text("log.txt\n")
    co("index", "sync")
    assert "log.txt" not in co("doctor").out


def test_documents_are_read_once_their_reader_is_installed(
    co: Co, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "papers"
    folder.mkdir()
    (folder / "a.pdf").write_bytes(pdf(lines_of("Lanterns are lit at dusk.")))
    with monkeypatch.context() as without:
        without.setattr("co_cli.sources.documents.formats.find_spec", lambda name: None)
        assert install_line("documents") in co("add", str(folder)).err
        assert co("source", "refresh", "papers").out.endswith("unchanged folder:papers: 1 skipped\n")
        cures = [one["fix"] for one in co("doctor", "--json").json if one["check"] == "folder:papers"]
        assert cures == [install_line("documents")]
        (tmp_path / "b.pdf").write_bytes((folder / "a.pdf").read_bytes())
        alone = co("add", str(tmp_path / "b.pdf"))
        assert (alone.code, alone.out) == (2, "")
        assert f'b.pdf: needs the extra "documents": {install_line("documents")}' in alone.err
        assert len(co("source", "list", "--json").json) == 1

    assert co("index", "sync").code == 0

    assert refs(co, "lanterns")[0].startswith("folder:papers/a.pdf")


def test_a_book_is_searched_and_opened_and_one_with_drm_is_skipped_with_one_line(
    co: Co, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "books"
    folder.mkdir()
    method = b'<e><EncryptionMethod Algorithm="http://www.w3.org/2001/04/xmlenc#aes128-cbc"/></e>'
    (folder / "quay.epub").write_bytes(book("<h1>Dusk</h1><p>Lanterns are lit at dusk.</p>"))
    (folder / "bought.epub").write_bytes(book("<p>Secret.</p>", more={"META-INF/encryption.xml": method}))
    (folder / "macros.docm").write_bytes(word(("Lanterns with macros.", "")))
    opener = write_script(tmp_path / "bin" / "xdg-open", "true")
    monkeypatch.setenv("PATH", str(opener.parent), prepend=os.pathsep)
    monkeypatch.setattr("sys.platform", "linux")

    added = co("add", str(folder))

    assert [line for line in added.err.splitlines() if "bought" in line or "DRM" in line] == [
        "  skipped bought.epub: protected by DRM: only the app of its shop can read it"
    ]
    hit = co("search", "when are lanterns lit", "--json").json["hits"][0]
    assert (hit["ref"], hit["title"]) == ("folder:books/quay.epub#L1-3", "The Quay")
    assert co("open", "folder:books/quay.epub").out == f"opened {folder / 'quay.epub'}\n"
    assert "opening it could run it" in co("open", "folder:books/macros.docm").err
    assert co("note", "article", "add", str(folder / "quay.epub")).code == 0
    assert "# Dusk\n\nLanterns" in co("show", "article:quay").out


def test_adding_again_follows_the_policy_and_keeps_the_name(co: Co, vault: Vault, handbook: Path) -> None:
    co("add", str(handbook))

    again = co("add", str(handbook))
    stopped = co("add", str(handbook), "--on-conflict", "error")
    renewed = co("add", str(handbook), "--on-conflict", "overwrite")
    renamed = co("add", str(handbook), "--name", "other")

    assert again.out == f"{handbook}  skipped folder:handbook: a source already; nothing changed there\n"
    assert (stopped.code, stopped.out) == (2, "")
    assert "`co source refresh folder:handbook` reads it again" in stopped.err
    assert "updated folder:handbook: read again: 3 new" in renewed.out
    assert (renamed.code, "`co source remove folder:handbook` first" in renamed.err) == (2, True)
    assert len(co("source", "list", "--json").json) == 1


def test_refresh_reports_changes_and_removes_deleted_notes(co: Co, vault: Vault, handbook: Path) -> None:
    co("add", str(handbook))
    (handbook / "guides/deploy.md").write_text("# Deploys\n\nGreen takes the traffic now.\n")
    (handbook / "zebras.txt").unlink()
    (handbook / "new.md").write_text("Okapis hide.\n")
    os.rename(handbook / "keys.py", handbook / "guides" / "keys.py")

    (row,) = co("source", "refresh", "folder:handbook", "--json").json

    assert (row["outcome"], row["added"], row["changed"]) == ("updated", ["new.md"], ["guides/deploy.md"])
    assert (row["moved"], row["removed"]) == ([["keys.py", "guides/keys.py"]], ["zebras.txt"])
    assert row["missing"] == []
    found = co("search", "zebras", "--json").json
    assert not any("zebras" in hit["ref"] for hit in found["hits"])
    assert found["degraded"] == []
    assert co("show", "folder:handbook/zebras.txt").code == 2
    assert "missing" not in co("source", "list").out


def test_a_note_that_was_deleted_in_a_folder_is_not_found_any_more(co: Co, vault: Vault, handbook: Path) -> None:
    co("add", str(handbook))
    assert refs(co, "zebras stripes")[0] == "folder:handbook/zebras.txt#L1-1"
    (handbook / "zebras.txt").unlink()

    assert not any("zebras" in ref for ref in refs(co, "zebras stripes"))
    synced = co("index", "sync", "--json").json["linked"]["folder:handbook"]
    assert (synced["kept"], co("source", "list", "--json").json[0]["missing"]) == ([], 0)


def test_most_files_of_a_source_gone_at_once_are_kept_and_named(co: Co, vault: Vault, handbook: Path) -> None:
    for number in range(5):
        (handbook / f"okapi{number}.md").write_text(f"Okapi number{number} hides.\n")
    co("add", str(handbook))
    for number in range(5):
        (handbook / f"okapi{number}.md").unlink()

    found, again = (co("search", "okapi number3", "--json").json for _ in range(2))

    for one in (found, again):
        assert (one["hits"][0]["ref"], one["hits"][0]["missing"]) == ("folder:handbook/okapi3.md#L1-1", True)
        assert "folder:handbook" in one["degraded"][0]
        assert "`co source refresh folder:handbook --drop-missing`" in one["degraded"][0]
    assert co("search", "okapi number3", "--source", "memory", "--json").json["degraded"] == []
    shown = co("show", "folder:handbook/okapi3.md")
    assert (shown.code, "`co source refresh folder:handbook --drop-missing`" in shown.err) == (3, True)
    assert "5 missing" in co("source", "list").out
    refreshed, named = co("source", "refresh", "--all", "--json"), co("source", "refresh", "handbook")
    assert (refreshed.code, len(refreshed.json[0]["missing"]), named.code) == (1, 5, 1)
    assert co("source", "refresh", "handbook", "--drop-missing").out.endswith(", 5 dropped\n")
    dropped = co("search", "okapi number3", "--json").json
    assert not any("okapi" in hit["ref"] for hit in dropped["hits"])
    assert dropped["degraded"] == []


def test_refresh_exits_with_1_if_a_source_is_not_there(co: Co, vault: Vault, handbook: Path, tmp_path: Path) -> None:
    (tmp_path / "alone.txt").write_text("Tigers live alone.")
    co("add", str(handbook), str(tmp_path / "alone.txt"))
    assert co("source", "refresh", "--all").code == 0

    (tmp_path / "alone.txt").unlink()
    ran = co("source", "refresh", "--all")
    assert (ran.code, "1 missing" in ran.out) == (1, True)

    handbook.rename(tmp_path / "elsewhere")
    assert co("source", "refresh", "handbook").code == 1


def test_refresh_takes_a_ref_a_path_or_a_glob_of_a_source(co: Co, vault: Vault, handbook: Path) -> None:
    co("add", str(handbook))
    names = ("folder:handbook/zebras.txt", str(handbook / "zebras.txt"), str(handbook / "guides"), "*.txt")
    for number, name in enumerate((*names, str(handbook / "z*"), "folder:handbook/*")):
        (handbook / "zebras.txt").write_text(f"Zebras have {number} stripes.\n")
        (row,) = co("source", "refresh", name, "--json").json
        assert (row["ref"], row["changed"]) == ("folder:handbook", ["zebras.txt"]), name
    assert "no source or saved page is called '*.rst'" in co("source", "refresh", "*.rst").err


@pytest.mark.parametrize("empty", [True, False], ids=["an empty mount point", "no folder"])
def test_a_folder_that_is_not_mounted_keeps_its_notes(co: Co, vault: Vault, handbook: Path, empty: bool) -> None:
    co("add", str(handbook))
    os.rename(handbook, handbook.parent / "elsewhere")
    if empty:
        handbook.mkdir()

    found = co("search", "zebras", "--json").json
    assert (found["hits"][0]["ref"], found["hits"][0]["missing"]) == ("folder:handbook/zebras.txt#L1-1", True)
    assert ("folder:handbook" in found["degraded"][0], len(found["degraded"])) == (True, 1)
    assert "file missing" in co("list", "--kind", "folder").out
    by_file = co("search", "zebras", "--backend", "grep", "--json").json
    assert by_file["state"] == ("absent" if empty else "inconclusive")
    assert empty or "folder:handbook" in by_file["degraded"][0]
    listed = co("source", "list", "--json").json[0]
    assert (listed["notes"], listed["there"]) == (3, empty)
    if empty:
        handbook.rmdir()
    else:
        refreshed = co("source", "refresh", "handbook")
        assert (refreshed.code, "cannot be read" in refreshed.err) == (1, True)
    os.rename(handbook.parent / "elsewhere", handbook)
    co("index", "sync")
    assert co("source", "list", "--json").json[0]["missing"] == 0
    assert co("search", "zebras", "--json").json["hits"][0]["missing"] is False


def test_a_search_can_be_narrowed_to_one_source(co: Co, vault: Vault, handbook: Path, tmp_path: Path) -> None:
    vault.write("memories/zebra.md", "A zebra was seen.")
    (tmp_path / "zoo").mkdir()
    (tmp_path / "zoo" / "list.txt").write_text("Zebra, okapi, giraffe.\n")
    co("add", str(handbook), str(tmp_path / "zoo"))

    assert refs(co, "zebra", "--source", "memory") == ["memory:zebra"]
    assert {ref.split("/")[0] for ref in refs(co, "zebra", "--source", "folder")} == {"folder:zoo", "folder:handbook"}
    assert refs(co, "zebra", "--source", "zoo", "--source", "memory") == ["memory:zebra", "folder:zoo/list.txt#L1-1"]
    for backend in ("hybrid", "fts5", "grep"):
        assert refs(co, "zebra", "--source", "folder:zoo", "--backend", backend) == ["folder:zoo/list.txt#L1-1"]
    wrong = co("search", "zebra", "--source", "nowhere")
    assert (wrong.code, wrong.err.count("\n"), "folder:zoo" in wrong.err) == (2, 1, True)
    (tmp_path / "other").mkdir()
    assert co("--vault", str(tmp_path / "other"), "search", "zebras", "--json").json["hits"] == []


def test_a_file_in_two_sources_is_indexed_once(co: Co, vault: Vault, handbook: Path) -> None:
    vault.write("memories/zebra.md", "A zebra was seen.")
    co("add", str(handbook))

    inside = co("add", str(handbook / "guides"))
    around = co("add", str(handbook.parent))
    own = co("add", str(vault.root))

    assert "is in folder:handbook, and so it is searched already" in inside.err
    assert "`co source remove folder:handbook` first" in around.err
    assert "is in the vault" in own.err
    assert {ran.code for ran in (inside, around, own)} == {2}
    co("source", "remove", "handbook")
    co("add", str(vault.root.parent), "--name", "around")
    found = refs(co, "zebra seen")
    assert "memory:zebra" in found
    assert not any("zebra.md" in ref for ref in found)
    assert co("show", str(vault.path("memories/zebra.md")), "--json").json["ref"] == "memory:zebra"


def test_tree_draws_the_files_and_says_which_are_not_read(co: Co, vault: Vault, handbook: Path) -> None:
    vault.write("memories/green.md", "Green.")
    co("add", str(handbook))

    ran = co("source", "tree")

    assert ran.out == (
        f"vault  {vault.root}\n└─ memories/\n   └─ green.md\n\nfolder:handbook  {handbook}\n"
        "├─ guides/\n│  └─ deploy.md\n├─ keys.py\n├─ logo.ico  (binary)\n└─ zebras.txt\n"
    )
    assert "guides/  (1 files)" in co("source", "tree", "handbook", "--depth", "1").out
    assert co("source", "tree", "handbook", "--json").json[0]["files"]["logo.ico"] == "binary"


def test_links_in_an_obsidian_vault_resolve_as_obsidian_resolves_them(co: Co, vault: Vault, tmp_path: Path) -> None:
    brain = tmp_path / "Second Brain"
    pages = {
        ".obsidian/app.json": '{"userIgnoreFilters": ["Templates/", "Old Stuff/", "/^x/"]}',
        "Index.md": "Start at [[Projects/Plan]], [[alpha|the first]], ![[Diagram#Core]], [[Nowhere]].",
        "Plan.md": "---\nprovenance: user\n---\nThe plan at the root.",
        "Projects/Plan.md": "---\naliases: [Roadmap]\ntags: [work/alpha]\n---\nSee [[Plan]] and [here](../Alpha.md).",
        "Projects/Notes.md": "Back to [[Plan]] from here. #work/beta",
        "Alpha.md": "Alpha itself: [[Alpha]].",
        "Deep/Diagram.md": "# Core\n\nBoxes and arrows.",
        "Templates/Daily.md": "[[Alpha]] template",
        "Old Stuff/a.md": "[[Alpha]] old",
        ".trash/gone.md": "[[Alpha]] trashed",
    }
    for path, text in pages.items():
        (brain / path).parent.mkdir(parents=True, exist_ok=True)
        (brain / path).write_text(text)

    ran = co("add", str(brain))

    name = "obsidian:second-brain"
    assert f"created {name}: 6 new" in ran.out
    index = co("show", f"{name}/Index", "--json").json
    targets = [f"{name}/Projects/Plan", f"{name}/Alpha", f"{name}/Deep/Diagram", None]
    assert [(one["ref"], one["there"]) for one in index["links"]] == [(ref, ref is not None) for ref in targets]
    plan = co("show", f"{name}/Projects/Plan", "--json").json
    with KnowledgeBase.open() as kb:
        assert kb.note(f"{name}/Plan").provenance == "import"  # whatever it says: it may be anybody's vault
    assert [one["ref"] for one in plan["links"]] == [f"{name}/Plan", f"{name}/Alpha"]
    assert [one["ref"] for one in plan["linked_from"]] == [f"{name}/Index"]
    assert f"linked from: {name}/Index, {name}/Projects/Plan" in co("show", f"{name}/Alpha").out
    root = co("show", f"{name}/Plan", "--json").json
    assert [one["ref"] for one in root["linked_from"]] == [f"{name}/Projects/Notes", f"{name}/Projects/Plan"]
    assert refs(co, "Roadmap")[0].startswith(f"{name}/Projects/Plan")
    tagged = {ref.split("#")[0] for ref in refs(co, "plan", "--tag", "work")}
    assert tagged == {f"{name}/Projects/Plan", f"{name}/Projects/Notes"}


def test_mistakes_are_one_line(co: Co, vault: Vault, handbook: Path, data_dir: Path) -> None:
    none = co("source", "remove", "nothing")
    co("add", str(handbook))
    expected = {
        ("source", "remove", "nothing"): "there is no source 'nothing'; the sources here are folder:handbook",
        ("source", "tree", "nothing"): "the sources here are folder:handbook",
        ("source", "refresh", "folder:nothing"): "the sources here are folder:handbook",
        ("source", "refresh", "article:x", "--drop-missing"): "the sources here are folder:handbook",
        ("source", "tree", "--depth", "0"): "--depth must be at least 1",
        ("add", ".", "--name", "Two Words"): "such as 'two-words', not 'Two Words'",
        ("add", ".", "--as", "pile"): "not 'pile'",
        ("add", "/"): "name the folders in it that hold your texts",
        ("add", "/proc"): "name the folders in it that hold your texts",
        ("add", "/sys/kernel"): "name the folders in it that hold your texts",
        ("add", str(data_dir)): "keeps its own files",
    }

    ran = {arguments: co(*arguments) for arguments in expected}

    assert "none was added yet: `co add PATH` adds one" in none.err
    assert [a for a, one in ran.items() if (one.code, one.out, one.err.count("\n")) != (2, "", 1)] == []
    assert {a: one.err for a, one in ran.items() if expected[a] not in one.err} == {}
    assert len(co("source", "list", "--json").json) == 1


def test_a_ref_opens_only_what_is_indexed(co: Co, vault: Vault, handbook: Path) -> None:
    """Neither a file next to an added one nor a hidden or ignored one."""
    (handbook / ".env").write_text("TOKEN=abc")
    (handbook / ".git").mkdir()
    (handbook / ".git" / "config").write_text("[secret]")
    (handbook / ".gitignore").write_text("private.txt\n")
    (handbook / "private.txt").write_text("my diary")
    co("add", str(handbook))
    for path in (".env", ".git/config", "private.txt", "../handbook/.env", "logo.ico"):
        for ref in (f"folder:handbook/{path}", str(handbook / path)):
            ran = co("show", ref)
            assert (ran.code, ran.out, ran.err.count("\n")) == (2, "", 1), ref
    co("source", "remove", "handbook")
    co("add", str(handbook / "zebras.txt"), "--name", "one")

    assert co("show", "folder:one/zebras.txt").code == 0
    assert co("show", "folder:one/keys.py").code == 2


def test_our_own_files_are_not_searched(co: Co, vault: Vault, data_dir: Path) -> None:
    co("search", "my private question")

    co("add", str(data_dir.parent), "--name", "around")

    assert not any(data_dir.name + "/" in ref for ref in refs(co, "my private question", "--source", "around"))


@pytest.mark.medium
def test_two_processes_add_the_same_folder_once(co: Co, vault: Vault, handbook: Path) -> None:
    with ThreadPoolExecutor(2) as pool:
        ran = list(pool.map(lambda _: co.process("add", str(handbook)), range(2)))

    assert [one.code for one in ran] == [0, 0]
    assert [row["source"] for row in co("source", "list", "--json").json] == ["folder:handbook"]


@pytest.mark.slow
@pytest.mark.skipif(sys.platform == "win32", reason="there is no SIGINT to send there")
def test_a_first_add_that_is_stopped_keeps_what_it_indexed_and_the_next_goes_on(
    co: Co, vault: Vault, tmp_path: Path
) -> None:
    many = tmp_path / "many"
    many.mkdir()
    for number in range(3_000):
        (many / f"{number:04}.txt").write_text(f"File {number} says something of its own.\n" * 20)
    adding = subprocess.Popen([sys.executable, "-m", "co_cli", "add", str(many)], cwd=co.folder)
    indexed = 0
    while not indexed:
        assert adding.poll() is None
        listed = co("source", "list", "--no-sync", "--json").json
        indexed = listed[0]["notes"] if listed else 0
    adding.send_signal(signal.SIGINT)  # while it is indexing

    assert adding.wait(180) == 130
    (kept,) = co("source", "list", "--no-sync", "--json").json
    assert indexed <= kept["notes"] < 3_000
    assert refs(co, "File 3 says something", "--no-sync")
    (row,) = co("add", str(many), "--json").json
    assert (row["outcome"], len(row["added"])) == ("updated", 3_000 - kept["notes"])
    assert co("source", "list", "--json").json[0]["notes"] == 3_000


def test_what_becomes_ignored_is_removed_and_not_missing(co: Co, vault: Vault, handbook: Path) -> None:
    co("add", str(handbook))
    (handbook / ".coignore").write_text("zebras.txt\n")

    assert "folder:handbook  1 left out, 2 unchanged\n" in co("index", "sync").out
    assert not any("zebras" in ref for ref in refs(co, "zebras stripes"))
    (handbook / "guides" / "deploy.md").unlink()
    (handbook / ".coignore").write_text("zebras.txt\nkeys.py\n")
    assert "1 removed, 1 left out" in co("source", "refresh", "handbook").out


@pytest.fixture
def odd(tmp_path: Path) -> Path:
    """A folder with files of every kind that is not indexed."""
    folder = tmp_path / "odd"
    (folder / "sub dir").mkdir(parents=True)
    (folder / "sub dir" / "a note.md").write_text("Oaks live long.")
    (folder / "sub dir" / "wide.txt").write_bytes("Elms fall ill.".encode("utf-16"))
    (folder / "logo.ico").write_bytes(b"\x89PNG\x00")
    (folder / "nul.md").write_bytes(b"a\x00b")
    (folder / "link.txt").symlink_to(folder / "sub dir" / "a note.md")
    try:
        Path(os.fsdecode(os.fsencode(folder) + b"/caf\xe9.txt")).write_text("Ash.")
    except OSError:
        pytest.skip("this file system only has names that are valid UTF-8")
    return folder


def test_add_refresh_list_and_tree_count_the_same_skipped_files(co: Co, vault: Vault, odd: Path) -> None:
    added, refreshed = co("add", str(odd)), co("source", "refresh", "odd")
    (row,) = co("source", "list", "--json").json
    (tree,) = co("source", "tree", "odd", "--json").json

    assert "2 new, 1 binary, 3 skipped" in added.out
    assert "2 unchanged, 1 binary, 3 skipped" in refreshed.out
    assert (row["notes"], row["binary"], row["skipped"]) == (2, 1, 3)
    assert sorted(reason for reason in tree["files"].values() if reason) == [
        "binary",
        "not a text file",
        "symbolic link, not followed",
        "the name is not valid UTF-8; rename it",
    ]
    assert "caf" in co("source", "tree", "odd").out


def test_a_part_of_a_source_is_refreshed_by_its_short_name_and_only_its_troubles_are_listed(
    co: Co, vault: Vault, odd: Path
) -> None:
    co("add", str(odd))
    for name in ("odd/sub dir", "odd/sub dir/wide.txt", "folder:odd/sub dir", str(odd / "sub dir"), "*wide*"):
        ran = co("source", "refresh", name)
        assert (ran.code, ran.err.count("\n"), "wide.txt: line 1: UTF-16" in ran.err) == (0, 1, True), name
    assert co("source", "refresh", "odd/sub dir/a note.md").err == ""

    (odd / "sub dir" / "wide.txt").unlink()
    gone = co("source", "refresh", "odd/sub dir/wide.txt")

    assert "1 removed" in gone.out
    assert gone.err == ""
    assert "wide" not in co("source", "refresh", "odd").err
    assert co("source", "refresh", "odd/nothing").code == 2


@pytest.mark.medium
def test_nothing_is_called_absent_while_a_linked_file_could_not_be_searched(
    co: Co, vault: Vault, handbook: Path
) -> None:
    vault.write("memories/green.md", "Green is the slower pool.")
    (handbook / "huge.md").write_bytes(b"okapi " * 2_000_000)
    (handbook / "broken.pdf").write_bytes(b"%PDF-1.7 and nothing else")
    co("add", str(handbook))

    for options in ((), ("--no-sync",), ("--backend", "fts5"), ("--backend", "grep")):
        found = co("search", "quaggaweed", *options, "--json").json
        assert (found["state"], options) == ("inconclusive", options)
        assert "folder:handbook/huge.md" in found["degraded"][0]
        assert "folder:handbook/broken.pdf" in found["degraded"][0]
        assert "logo.ico" not in found["degraded"][0]
    assert co("search", "quaggaweed", "--source", "memory", "--json").json["state"] == "absent"
    assert co("search", "zebras stripes", "--json").json["degraded"] == []


def test_markdown_of_a_linked_folder_may_be_as_large_as_other_text(
    co: Co, vault: Vault, handbook: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CO_KNOWLEDGE_MAX_NOTE_BYTES", "1000")
    (handbook / "long.md").write_text("# Okapis\n\n" + "They hide well.\n\n" * 200 + "The last one is a quagga.\n")
    vault.write("memories/long.md", "Okapi. " * 200)

    ran = co("add", str(handbook))

    assert "4 new" in ran.out
    assert refs(co, "quagga")[0].startswith("folder:handbook/long.md")
    assert co("search", "quaggaweed", "--json").json["degraded"] == [
        "not searched, and may answer it: memories/long.md; see `co doctor`"
    ]


def test_you_edit_notes_of_a_linked_folder_and_their_other_bytes_stay(
    co: Co, vault: Vault, handbook: Path, editor: Callable[..., None]
) -> None:
    spaced = handbook / "guides" / "Okapi facts.md"
    spaced.write_bytes(b"---\r\nodd:   yes\r\n---\r\nOkapis have striped legs.\r\n")
    co("add", str(handbook))
    editor('sed -i s/striped/dotted/ "$1"')

    for name in ("Okapi facts", "folder:handbook/guides/Okapi facts.md", str(spaced), "guides/Okapi facts.md"):
        spaced.write_bytes(spaced.read_bytes().replace(b"dotted", b"striped"))
        ran = co("edit", name)
        assert (ran.code, ran.out) == (0, "updated folder:handbook/guides/Okapi facts.md\n"), ran.err
        assert spaced.read_bytes() == b"---\r\nodd:   yes\r\n---\r\nOkapis have dotted legs.\r\n"
    assert refs(co, "dotted legs")[0].startswith("folder:handbook/guides/Okapi facts.md")
    assert co("edit", "Okapi facts", "--add-tag", "zoo").code == 0
    assert spaced.read_bytes().startswith(b"---\r\nodd:   yes\r\ntags: [zoo]\r\n---\r\n")
    assert co("list", "handbook", "--tag", "zoo", "--json").json[0]["title"] == "Okapi facts"
    assert co("edit", "keys.py").out.startswith("unchanged: folder:handbook/keys.py")
    assert sorted(os.listdir(handbook)) == ["guides", "keys.py", "logo.ico", "zebras.txt"]  # and no trash
    assert vault.notes() == []


@pytest.mark.usefixtures("vault")
def test_an_edit_of_a_linked_note_loses_no_text(co: Co, handbook: Path, editor: Callable[..., None]) -> None:
    deploy = handbook / "guides" / "deploy.md"
    co("add", str(handbook))
    editor(f'echo Theirs. > {deploy}; echo Mine. > "$1"')

    ran = co("edit", "Deploys")

    assert ran.code != 0
    assert deploy.read_text() == "Theirs.\n"
    assert Path(ran.err.rsplit(" kept in ", 1)[1].strip()).read_text() == "Mine.\n"
    assert "give --based-on" in co("edit", str(deploy), "--body", "Mine.").err
    assert "is not Markdown" in co("edit", "zebras.txt", "--title", "x").err
    assert deploy.read_text() == "Theirs.\n"
    assert state(handbook)["zebras.txt"][0] == b"Zebras have stripes.\n"


def test_a_source_marked_read_only_is_not_edited(
    co: Co, vault: Vault, handbook: Path, editor: Callable[..., None], data_dir: Path
) -> None:
    co("add", str(handbook))
    co("add", str(handbook), "--read-only")
    before = state(handbook)
    editor('echo x >> "$1"')

    for options in ((), ("--title", "x")):
        ran = co("edit", "Deploys", *options)
        assert (ran.code, "folder:handbook was added with --read-only" in ran.err) == (2, True)
    assert state(handbook) == before
    co("add", str(handbook.parent / "home"), "--name", "home")  # the mark survives a change of the list
    assert "read_only = true" in Path(registry_file(str(data_dir))).read_text()


def test_agents_python_and_http_cannot_write_to_a_linked_folder(kb: KnowledgeBase, handbook: Path) -> None:
    kb.sources.add(str(handbook), source="folder")
    before, ref = state(handbook), "folder:handbook/guides/deploy.md"

    for call in (
        lambda: kb.update(ref, title="x"),
        lambda: kb.forget(ref),
        lambda: Toolbox(kb).call("update_memory", {"ref": ref, "content": "x"}),
        lambda: Toolbox(kb).call("forget_memory", {"ref": ref}),
    ):
        with pytest.raises(InvalidInputError, match="it belongs to a linked source"):
            call()
    assert state(handbook) == before
