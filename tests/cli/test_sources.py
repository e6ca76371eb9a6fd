"""Folders and files that are searched where they lie: `co add`, `sources`, `refresh`, `remove`, `tree`."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from co_cli.knowledge_base import KnowledgeBase
from co_cli.sources.origin import registry_file
from tests.command import Co
from tests.meaning.servers import TurnedOllama
from tests.vault import Vault


@pytest.fixture
def handbook(tmp_path: Path) -> Path:
    """A folder of somebody's documents."""
    root = tmp_path / "handbook"
    (root / "guides").mkdir(parents=True)
    (root / "guides" / "deploy.md").write_text("# Deploys\n\nBlue takes the traffic before green does.\n")
    (root / "zebras.txt").write_text("Zebras have stripes.\n")
    (root / "keys.py").write_text('def rotate():\n    """Turn the signing keys over."""\n')
    (root / "logo.png").write_bytes(b"\x89PNG\r\n\x1a\n\0\0")
    return root


def state(root: Path) -> dict[str, tuple[bytes, int]]:
    """Every file of a folder, to see that nothing there was touched."""
    return {
        str(path.relative_to(root)): (path.read_bytes(), path.stat().st_mtime_ns)
        for path in root.rglob("*")
        if path.is_file()
    }


def refs(co: Co, *arguments: str) -> list[str]:
    return [hit["ref"] for hit in co("search", *arguments, "--json").json["hits"]]


def test_a_folder_is_found_beside_the_notes_and_is_not_touched(co: Co, vault: Vault, handbook: Path) -> None:
    vault.write("memories/green.md", "Green is the slower pool.")
    before = state(handbook)

    ran = co("add", str(handbook))

    assert (ran.code, ran.err) == (0, "")
    assert ran.out == f"{handbook}  created folder:handbook: 3 new, 1 binary\n"
    assert refs(co, "signing keys")[0] == "folder:handbook/keys.py#L1-2"
    assert "memory:green" in refs(co, "which pool is slower")
    assert state(handbook) == before
    assert vault.notes() == ["memories/green.md"]


def test_a_hit_opens_at_its_lines_and_says_where_its_file_is(co: Co, vault: Vault, handbook: Path) -> None:
    co("add", str(handbook))

    (ref,) = refs(co, "traffic blue green", "--limit", "1")
    shown = co("show", ref)
    whole = co("show", "folder:handbook/guides/deploy.md", "--json").json

    assert ref == "folder:handbook/guides/deploy.md#L1-3"
    assert "Blue takes the traffic" in shown.out
    assert str(handbook / "guides/deploy.md") in shown.out
    assert (whole["ref"], whole["path"]) == ("folder:handbook/guides/deploy.md", str(handbook / "guides/deploy.md"))
    assert co("show", str(handbook / "zebras.txt")).out.endswith("\n\nZebras have stripes.\n")


def test_adding_again_follows_the_policy(co: Co, vault: Vault, handbook: Path) -> None:
    co("add", str(handbook))

    again = co("add", str(handbook))
    stopped = co("add", str(handbook), "--on-conflict", "error")
    renewed = co("add", str(handbook), "--on-conflict", "overwrite")

    assert again.out == f"{handbook}  skipped folder:handbook: a source already; nothing changed there\n"
    assert (stopped.code, stopped.out) == (2, "")
    assert "`co source refresh folder:handbook` reads it again" in stopped.err
    assert "updated folder:handbook: read anew: 3 new" in renewed.out
    assert len(co("source", "list", "--json").json) == 1


def test_refresh_reports_what_changed_and_keeps_what_is_missing(co: Co, vault: Vault, handbook: Path) -> None:
    co("add", str(handbook))
    (handbook / "guides/deploy.md").write_text("# Deploys\n\nGreen takes the traffic now.\n")
    (handbook / "zebras.txt").unlink()
    (handbook / "new.md").write_text("Okapis hide.\n")
    os.rename(handbook / "keys.py", handbook / "guides" / "keys.py")

    (row,) = co("source", "refresh", "folder:handbook", "--json").json

    assert (row["outcome"], row["added"], row["changed"]) == ("updated", ["new.md"], ["guides/deploy.md"])
    assert (row["moved"], row["missing"]) == ([["keys.py", "guides/keys.py"]], ["zebras.txt"])
    hit = co("search", "zebras", "--json").json["hits"][0]
    assert (hit["ref"], hit["missing"]) == ("folder:handbook/zebras.txt#L1-1", True)
    assert "missing" in co("search", "zebras").out
    gone = co("show", "folder:handbook/zebras.txt")
    assert gone.code == 3
    assert "`co source refresh folder:handbook --drop-missing` forgets it" in gone.err
    assert "1 missing" in co("source", "list").out

    dropped = co("source", "refresh", "handbook", "--drop-missing")

    assert "1 dropped" in dropped.out
    assert not any("zebras" in ref for ref in refs(co, "zebras"))


def test_refresh_names_what_it_saw(co: Co, vault: Vault, handbook: Path) -> None:
    co("add", str(handbook))
    (handbook / "zebras.txt").unlink()
    (handbook / "keys.py").write_text("def other(): ...\n")
    for number in range(12):
        (handbook / f"new-{number:02}.txt").write_text(f"New {number}.")

    lines = co("source", "refresh", "handbook").out.splitlines()

    assert lines[0] == f"{handbook}  updated folder:handbook: 12 new, 1 changed, 1 missing, 1 unchanged, 1 binary"
    assert lines[1:] == [
        *(f"  new new-{number:02}.txt" for number in range(10)),
        "  and 4 more files; --json lists them all",
    ]


def test_what_comes_back_is_missing_no_more(co: Co, vault: Vault, handbook: Path) -> None:
    co("add", str(handbook))
    os.rename(handbook / "zebras.txt", handbook.parent / "away.txt")
    co("index", "sync")
    os.rename(handbook.parent / "away.txt", handbook / "zebras.txt")
    co("index", "sync")

    assert co("search", "zebras", "--json").json["hits"][0]["missing"] is False


@pytest.mark.parametrize("empty", [True, False], ids=["an empty mount point", "no folder"])
def test_a_folder_that_is_not_mounted_keeps_its_notes(co: Co, vault: Vault, handbook: Path, empty: bool) -> None:
    co("add", str(handbook))
    os.rename(handbook, handbook.parent / "elsewhere")
    if empty:
        handbook.mkdir()

    ran = co("search", "zebras", "--json").json

    assert ran["hits"][0]["ref"] == "folder:handbook/zebras.txt#L1-1"
    listed = co("source", "list", "--json").json[0]
    assert (listed["notes"], listed["there"]) == (3, empty)
    if not empty:
        refreshed = co("source", "refresh", "handbook")
        assert refreshed.code == 3
        assert "cannot be read" in refreshed.err
    else:
        handbook.rmdir()
    os.rename(handbook.parent / "elsewhere", handbook)
    co("index", "sync")
    assert co("source", "list", "--json").json[0]["missing"] == 0


def test_remove_takes_it_out_and_leaves_the_files(co: Co, vault: Vault, handbook: Path, data_dir: Path) -> None:
    before = state(handbook)
    co("add", str(handbook))

    ran = co("source", "remove", "folder:handbook")

    assert ran.out == (f"{handbook}  removed folder:handbook: 3 notes are out of the index; the files are untouched\n")
    assert state(handbook) == before
    assert refs(co, "zebras") == []
    assert "[[source]]" not in Path(registry_file(str(data_dir))).read_text()
    assert co("source", "remove", "handbook").code == 2


def test_a_single_file_is_a_source_too(co: Co, vault: Vault, handbook: Path) -> None:
    ran = co("add", str(handbook / "zebras.txt"), "--name", "stripes")

    assert "created folder:stripes: 1 new" in ran.out
    assert refs(co, "zebras") == ["folder:stripes/zebras.txt#L1-1"]
    assert not any("keys.py" in ref for ref in refs(co, "signing keys"))
    (handbook / "zebras.txt").write_text("Zebras bray.\n")
    assert "bray" in co("search", "zebras").out


def test_a_search_can_be_narrowed_to_one_source(co: Co, vault: Vault, handbook: Path, tmp_path: Path) -> None:
    vault.write("memories/zebra.md", "A zebra was seen.")
    (tmp_path / "zoo").mkdir()
    (tmp_path / "zoo" / "list.txt").write_text("Zebra, okapi, giraffe.\n")
    co("add", str(handbook), str(tmp_path / "zoo"))

    assert refs(co, "zebra", "--source", "memory") == ["memory:zebra"]
    assert refs(co, "zebra", "--source", "folder:zoo") == ["folder:zoo/list.txt#L1-1"]
    assert {ref.split("/")[0] for ref in refs(co, "zebra", "--source", "folder")} == {"folder:zoo", "folder:handbook"}
    assert refs(co, "zebra", "--source", "zoo", "--source", "memory") == ["memory:zebra", "folder:zoo/list.txt#L1-1"]
    for backend in ("fts5", "grep"):
        assert refs(co, "zebra", "--source", "zoo", "--backend", backend) == ["folder:zoo/list.txt#L1-1"]
    wrong = co("search", "zebra", "--source", "nowhere")
    assert (wrong.code, wrong.err.count("\n")) == (2, 1)
    assert "folder:zoo" in wrong.err


def test_another_vault_does_not_see_it(co: Co, vault: Vault, handbook: Path, tmp_path: Path) -> None:
    co("add", str(handbook))
    other = tmp_path / "other"
    other.mkdir()

    assert co("--vault", str(other), "search", "zebras", "--json").json["hits"] == []
    assert co("--vault", str(other), "source", "list").code == 1


def test_what_is_read_in_place_is_not_written(co: Co, vault: Vault, handbook: Path) -> None:
    co("add", str(handbook))
    before = state(handbook)

    for arguments in (("forget",), ("edit", "--title", "x")):
        ran = co(arguments[0], "folder:handbook/zebras.txt", *arguments[1:])
        assert ran.code == 2
        assert f"its file is {handbook / 'zebras.txt'}" in ran.err

    assert state(handbook) == before


def test_the_same_text_is_not_searched_twice(co: Co, vault: Vault, handbook: Path) -> None:
    co("add", str(handbook))

    inside = co("add", str(handbook / "guides"))
    around = co("add", str(handbook.parent))
    own = co("add", str(vault.root))

    assert "is in folder:handbook, and so it is searched already" in inside.err
    assert "`co source remove folder:handbook` first" in around.err
    assert "is in the vault" in own.err
    assert {ran.code for ran in (inside, around, own)} == {2}


def test_a_vault_in_a_folder_that_is_added_is_searched_once(co: Co, vault: Vault) -> None:
    vault.write("memories/zebra.md", "A zebra was seen.")
    (vault.root.parent / "notes.txt").write_text("Nothing striped here.\n")

    co("add", str(vault.root.parent), "--name", "around")

    assert refs(co, "zebra seen")[0] == "memory:zebra"
    assert not any("zebra.md" in ref for ref in refs(co, "zebra seen")[1:])


def test_what_git_ignores_and_tools_leave_behind_is_left_out(co: Co, vault: Vault, handbook: Path) -> None:
    (handbook / ".gitignore").write_text("build/\n*.log\n")
    for path in ("build/out.txt", "x.log", "node_modules/pkg/readme.md", "draft.md~", ".hidden/secret.md"):
        (handbook / path).parent.mkdir(parents=True, exist_ok=True)
        (handbook / path).write_text("zebra zebra zebra")

    co("add", str(handbook))

    assert refs(co, "zebra zebra", "--source", "folder")[0] == "folder:handbook/zebras.txt#L1-1"
    assert "out.txt" not in co("source", "tree").out


def test_the_gitignore_of_a_folder_counts_below_it(
    co: Co, vault: Vault, handbook: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CO_KNOWLEDGE_EXCLUDE", "diary*")
    files = {
        ".gitignore": "*.log\n!diary.md\n",
        "diary.md": "nor may the one at the root",
        "web/.gitignore": "dist/\n/top.txt\n!kept.log\n!diary.txt\n",
        "web/dist/out.txt": "built",
        "web/top.txt": "only here",
        "web/deep/top.txt": "not this",
        "web/deep/other.log": "left out",
        "web/deep/kept.log": "the nearer file has the last word",
        "web/diary.txt": "but not over the settings",
        "top.txt": "nor over its neighbours",
        "dist/out.txt": "either",
    }
    for path, text in files.items():
        (handbook / path).parent.mkdir(parents=True, exist_ok=True)
        (handbook / path).write_text(text)

    co("add", str(handbook))

    [tree] = [one for one in co("source", "tree", "--json").json if one["source"] == "folder:handbook"]
    seen = set(tree["files"]) & files.keys()
    assert seen == {"web/deep/top.txt", "web/deep/kept.log", "top.txt", "dist/out.txt"}
    assert co("show", "folder:handbook/web/top.txt").code == 2
    (handbook / "web" / ".gitignore").write_text("")
    assert co("source", "refresh", "handbook", "--json").json[0]["added"] == ["web/dist/out.txt", "web/top.txt"]


def test_a_line_that_is_no_pattern_matches_nothing_and_stops_nobody(co: Co, vault: Vault, handbook: Path) -> None:
    vault.write(".coignore", "bin\\\n!\n\\\ndraft*\n")
    vault.write("memories/draft.md", "Not yet.")
    (handbook / "guides" / ".gitignore").write_text("bin\\\n*.log\n")
    (handbook / "guides" / "b.log").write_text("Nothing.")

    assert co("add", str(handbook)).code == 0
    assert co("remember", "Elms fall ill.").code == 0

    assert refs(co, "zebras")
    tree = co("source", "tree").out
    assert "deploy.md" in tree
    assert "b.log" not in tree
    assert "draft" not in tree


def test_tree_draws_the_files_and_says_which_are_not_read(co: Co, vault: Vault, handbook: Path) -> None:
    vault.write("memories/green.md", "Green.")
    co("add", str(handbook))

    ran = co("source", "tree")

    assert ran.out == (
        f"vault  {vault.root}\n└─ memories/\n   └─ green.md\n\nfolder:handbook  {handbook}\n"
        "├─ guides/\n│  └─ deploy.md\n├─ keys.py\n├─ logo.png  (binary)\n└─ zebras.txt\n"
    )
    assert "guides/  (1 files)" in co("source", "tree", "handbook", "--depth", "1").out
    assert co("source", "tree", "handbook", "--json").json[0]["files"]["logo.png"] == "binary"


def test_links_in_an_obsidian_vault_resolve_as_obsidian_resolves_them(co: Co, vault: Vault, tmp_path: Path) -> None:
    brain = tmp_path / "Second Brain"
    (brain / ".obsidian").mkdir(parents=True)
    (brain / ".obsidian" / "app.json").write_text('{"userIgnoreFilters": ["Templates/", "Old Stuff/", "/^x/"]}')
    pages = {
        "Index.md": "Start at [[Projects/Plan]], [[alpha|the first]], ![[Diagram#Core]], [[Nowhere]].",
        "Plan.md": "The plan at the root.",
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

    assert "created obsidian:second-brain: 6 new" in ran.out
    index = co("show", "obsidian:second-brain/Index", "--json").json
    assert index["links"] == [
        {"ref": "obsidian:second-brain/Projects/Plan", "target": "Projects/Plan", "there": True},
        {"ref": "obsidian:second-brain/Alpha", "target": "alpha", "there": True},
        {"ref": "obsidian:second-brain/Deep/Diagram", "target": "Diagram", "there": True},
        {"ref": None, "target": "Nowhere", "there": False},
    ]
    plan = co("show", "obsidian:second-brain/Projects/Plan", "--json").json
    assert [one["ref"] for one in plan["links"]] == ["obsidian:second-brain/Plan", "obsidian:second-brain/Alpha"]
    assert [one["ref"] for one in plan["linked_from"]] == ["obsidian:second-brain/Index"]
    alpha = co("show", "obsidian:second-brain/Alpha").out
    assert "linked from: obsidian:second-brain/Index, obsidian:second-brain/Projects/Plan" in alpha
    root = co("show", "obsidian:second-brain/Plan", "--json").json
    assert [one["ref"] for one in root["linked_from"]] == [
        "obsidian:second-brain/Projects/Notes",
        "obsidian:second-brain/Projects/Plan",
    ]
    assert refs(co, "Roadmap")[0].startswith("obsidian:second-brain/Projects/Plan")
    assert {ref.split("#")[0] for ref in refs(co, "plan", "--tag", "work")} == {
        "obsidian:second-brain/Projects/Plan",
        "obsidian:second-brain/Projects/Notes",
    }


def test_deleting_search_db_brings_everything_back(co: Co, vault: Vault, handbook: Path, data_dir: Path) -> None:
    co("add", str(handbook))
    for file in data_dir.glob("search.db*"):
        file.unlink()

    assert refs(co, "zebras")[0] == "folder:handbook/zebras.txt#L1-1"
    assert co("index", "rebuild").code == 0
    assert refs(co, "zebras", "--no-sync")[0] == "folder:handbook/zebras.txt#L1-1"


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("source", "remove", "nothing"), "none was added yet: `co add PATH` adds one"),
        (("source", "tree", "nothing"), "there is no source 'nothing'"),
        (("source", "tree", "--depth", "0"), "--depth is at least 1"),
        (("add", ".", "--name", "Two Words"), "a name is written as in 'two-words'"),
        (("source", "refresh", "article:x", "--drop-missing"), "--drop-missing is for sources"),
        (("add", ".", "--as", "pile"), "invalid choice"),
    ],
)
def test_a_mistake_is_one_line(co: Co, vault: Vault, arguments: tuple[str, ...], words: str) -> None:
    ran = co(*arguments)

    assert (ran.code, ran.out) == (2, "")
    assert words in ran.err


def test_the_doctor_looks_at_sources_too(co: Co, vault: Vault, handbook: Path) -> None:
    co("add", str(handbook))
    assert "ok  folder:handbook: the index agrees with the files (notes: 3)" in co("doctor").out

    (handbook / "zebras.txt").unlink()
    assert "folder:handbook: files changed since the last sync: 1" in co("doctor").out
    co("index", "sync")
    found = co("doctor").out
    assert "notes that are kept though their files are gone: 1" in found
    assert "cure: co source refresh folder:handbook --drop-missing" in found
    os.rename(handbook, handbook.parent / "away")
    ran = co("doctor")
    assert (ran.code, "folder:handbook is not there now" in ran.out) == (0, True)
    assert "beside  folder:handbook (3 notes)" in co("index", "status").out


def test_a_ref_opens_only_what_is_indexed(co: Co, vault: Vault, handbook: Path) -> None:
    """A file beside an added one, a hidden one and an ignored one are nobody's to read by a ref."""
    (handbook / ".env").write_text("TOKEN=abc")
    (handbook / ".git").mkdir()
    (handbook / ".git" / "config").write_text("[secret]")
    (handbook / ".gitignore").write_text("private.txt\n")
    (handbook / "private.txt").write_text("my diary")
    co("add", str(handbook))
    for path in (".env", ".git/config", "private.txt", "../handbook/.env", "logo.png"):
        for ref in (f"folder:handbook/{path}", str(handbook / path)):
            ran = co("show", ref)
            assert (ran.code, ran.out) == (2, ""), ref
            assert ran.err.count("\n") == 1
    co("source", "remove", "handbook")
    co("add", str(handbook / "zebras.txt"), "--name", "one")

    assert co("show", "folder:one/zebras.txt").code == 0
    assert co("show", "folder:one/keys.py").code == 2


@pytest.mark.parametrize("path", ["/", "/proc", "/sys/kernel", "/dev"])
def test_the_system_is_no_source(co: Co, vault: Vault, path: str) -> None:
    ran = co("add", path)

    assert (ran.code, ran.out) == (2, "")
    assert "name the folders in it that hold your texts" in ran.err
    assert co("source", "list").code == 1


def test_what_we_keep_for_ourselves_is_not_searched(co: Co, vault: Vault, data_dir: Path) -> None:
    co("remember", "Oaks live long.")
    co("search", "my private question")
    assert "keeps its own files" in co("add", str(data_dir)).err

    co("add", str(data_dir.parent), "--name", "around")

    assert not any(data_dir.name + "/" in ref for ref in refs(co, "my private question", "--source", "around"))


def test_two_who_add_the_same_folder_at_once_add_it_once(co: Co, vault: Vault, handbook: Path) -> None:
    with ThreadPoolExecutor(4) as pool:
        ran = list(pool.map(lambda _: co.process("add", str(handbook)), range(4)))

    assert [one.code for one in ran] == [0, 0, 0, 0]
    assert [row["source"] for row in co("source", "list", "--json").json] == ["folder:handbook"]


def test_a_name_stays_until_the_source_is_removed(co: Co, vault: Vault, handbook: Path) -> None:
    co("add", str(handbook))

    ran = co("add", str(handbook), "--name", "other")

    assert ran.code == 2
    assert "`co source remove folder:handbook` first, to call it 'other'" in ran.err


def test_what_cannot_be_read_is_counted_the_same_everywhere(co: Co, vault: Vault, handbook: Path) -> None:
    (handbook / "link.md").symlink_to(handbook / "zebras.txt")

    added = co("add", str(handbook)).out
    listed = co("source", "list", "--json").json[0]

    assert "1 skipped" in added
    assert (listed["skipped"], listed["binary"]) == (1, 1)
    assert "link.md  (symbolic link, not followed)" in co("source", "tree", "handbook").out


@pytest.mark.skipif(sys.platform == "win32", reason="there is no SIGINT to send there")
def test_a_first_add_that_is_stopped_leaves_nothing(co: Co, vault: Vault, tmp_path: Path, data_dir: Path) -> None:
    many = tmp_path / "many"
    many.mkdir()
    for number in range(6_000):
        (many / f"{number}.txt").write_text(f"File {number} says something of its own.")
    adding = subprocess.Popen([sys.executable, "-m", "co_cli", "add", str(many)], cwd=co.folder)
    while not Path(registry_file(str(data_dir))).exists():
        assert adding.poll() is None
        time.sleep(0.005)
    adding.send_signal(signal.SIGINT)  # listed, and at work

    assert adding.wait(180) == 130
    assert co("source", "list").code == 1


def test_what_becomes_ignored_is_forgotten_and_not_missing(co: Co, vault: Vault, handbook: Path) -> None:
    co("add", str(handbook))
    (handbook / ".coignore").write_text("zebras.txt\n")

    assert "folder:handbook  1 left out, 2 unchanged\n" in co("index", "sync").out
    assert not any("zebras" in ref for ref in refs(co, "zebras stripes"))
    (handbook / "guides" / "deploy.md").unlink()
    (handbook / ".coignore").write_text("zebras.txt\nkeys.py\n")
    ran = co("source", "refresh", "handbook").out
    assert "1 missing, 1 left out" in ran
    assert "  missing guides/deploy.md\n  left out keys.py\n" in ran


def test_a_note_of_a_vault_in_an_added_folder_is_the_vaults(co: Co, vault: Vault) -> None:
    vault.write("memories/oak.md", "Oaks live long.")
    co("add", str(vault.root.parent), "--name", "around")

    assert co("show", str(vault.path("memories/oak.md")), "--json").json["ref"] == "memory:oak"
    assert co("edit", "memory:oak", "--tag", "tree").out == "updated memory:oak\n"


def test_without_an_index_a_folder_that_is_not_there_does_not_stop_the_files(
    co: Co, vault: Vault, handbook: Path
) -> None:
    vault.write("memories/zebra.md", "A zebra was seen.")
    co("add", str(handbook))
    os.rename(handbook, handbook.parent / "away")

    assert refs(co, "zebra", "--backend", "grep") == ["memory:zebra"]


def test_a_refresh_asks_a_server_only_for_what_changed(
    co: Co, vault: Vault, handbook: Path, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest
) -> None:
    pytest.importorskip("ollama", reason="the genuine ollama client is not installed: pip install ollama")
    server = TurnedOllama()
    request.addfinalizer(server.close)
    for name, value in (("PROVIDER", "ollama"), ("MODEL", "refreshing"), ("HOST", server.url)):
        monkeypatch.setenv(f"CO_KNOWLEDGE_EMBEDDING_{name}", value)

    co("add", str(handbook))
    before = len(server.documents)
    (handbook / "zebras.txt").write_text("Zebras bray at night.\n")
    os.rename(handbook / "keys.py", handbook / "guides" / "keys.py")
    co("source", "refresh", "handbook")

    assert before == 3
    assert len(server.documents) == before + 1


def test_where_a_document_is_and_what_links_to_it_is_told_without_reading_it(
    vault: Vault, data_dir: Path, handbook: Path
) -> None:
    """Reading a PDF takes its time."""
    with KnowledgeBase.open(vault.root, data_dir) as kb:
        kb.origins.add(str(handbook))
        (handbook / "zebras.txt").write_bytes(b"\0 nothing that could be read")

        assert kb.file_of("folder:handbook/zebras.txt") == str(handbook / "zebras.txt")
        assert kb.links("folder:handbook/zebras.txt") == ([], [])


def test_a_list_without_notes_says_where_to_look(co: Co, handbook: Path) -> None:
    co("add", str(handbook))

    assert co("list").out == "No notes here: `co source list` lists what else is searched.\n"


def test_the_passages_of_the_vaults_own_sources_are_counted(co: Co, vault: Vault) -> None:
    vault.write("memories/oak.md", "Oaks live long.")
    page = "---\nsource_url: https://site.example/elms\n---\n"
    vault.write("articles/elm.md", page + "".join(f"# Elm {number}\n\n{'word ' * 200}\n\n" for number in range(3)))
    vault.write("articles/yew.md", "# Yews\n\nThey grow slowly.")
    co("index", "sync")

    rows = {row["source"]: (row["notes"], row["passages"]) for row in co("source", "list", "--json").json}

    assert rows == {"article": (2, 4), "memory": (1, 1), "url": (1, 3)}
    assert (
        sum(passages for source, (_, passages) in rows.items() if source != "url")
        == co("index", "status", "--json").json["passages"]
    )
