"""`co remember`, `list`, `show`, `edit`, `forget` and `co note restore`."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.cli.screen import on_terminal, plain
from tests.command import Co, write_script
from tests.folder import Vault

Editor = Callable[..., None]
NOTE = "---\ntitle: 'Oaks'  # mine\ntags: [tree]\nunknown: kept\n---\nOaks live long.\n"


def test_remember_writes_a_note_that_reads_well(co: Co, vault: Vault) -> None:
    named = ("--title", "Blue: first", "-t", "Deploy", "-t", "#ops", "--category", "decision", "--provenance", "agent")
    fields = ("--importance", "0.8", "--set", "domain=billing", "--set", "reviewed=2026-03-01")

    ran = co("remember", "Blue takes traffic first.", *named, *fields)

    assert (ran.code, ran.out, ran.err) == (0, "created memory:blue-first\n", "")
    lines = vault.read("memories/blue-first.md").splitlines()
    assert lines.pop(3).startswith("created: 20")
    assert lines == [
        "---",
        'title: "Blue: first"',
        "kind: memory",
        "tags: [deploy, ops]",
        "category: decision",
        "provenance: agent",
        "domain: billing",
        "reviewed: 2026-03-01",
        "importance: 0.8",
        "---",
        "Blue takes traffic first.",
    ]


@pytest.mark.medium
@pytest.mark.parametrize("name", ["vi", "nano", "notepad"])
def test_without_a_chosen_editor_a_usual_one_opens(
    co: Co, vault: Vault, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    script = write_script(tmp_path / "bin" / name, 'echo "Blue takes traffic first." > "$1"')
    monkeypatch.setenv("PATH", str(script.parent))

    assert plain(on_terminal(co.folder, "remember")) == "created memory:blue-takes-traffic-first\n"
    assert "set EDITOR" in co("edit", "memory:blue-takes-traffic-first").err  # a script does not wait for an editor


@pytest.mark.medium
def test_bare_remember_opens_the_editor_in_a_terminal(co: Co, vault: Vault, editor: Editor) -> None:
    editor('echo "Blue takes traffic first." > "$1"')
    assert plain(on_terminal(co.folder, "remember", "-t", "ops")) == "created memory:blue-takes-traffic-first\n"
    assert "tags: [ops]" in vault.read("memories/blue-takes-traffic-first.md")

    editor("true")
    assert "nothing was saved" in on_terminal(co.folder, "remember")
    editor('echo "The door is open." > "$1"')
    words = plain(on_terminal(co.folder, "remember", "--supersedes", "nowhere")).split()
    assert words[-4:-1] == ["is", "kept", "in"], "in lines of whole words"
    assert Path(words[-1]).read_text() == "The door is open.\n"


def test_remember_reads_standard_input(co: Co, vault: Vault) -> None:
    assert co("remember", stdin="From a pipe.\n\nTwo paragraphs.\n").code == 0
    receipt = co("remember", "-", "--title", "Dash", "--json", stdin="Another.").json

    assert vault.read("memories/from-a-pipe.md").endswith("---\nFrom a pipe.\n\nTwo paragraphs.\n")
    path = str(vault.path("memories/dash.md"))
    assert receipt == {
        "ref": "memory:dash", "path": path, "outcome": "created", "detail": "", "related": [], "masked": 0,
        "seq": None, "receipt": None,
    }  # fmt: skip


def test_standard_input_is_utf_8_with_or_without_a_byte_order_mark(co: Co, vault: Vault) -> None:
    assert co("remember", stdin="\ufeffKöln ist weit.").out == "created memory:koln-ist-weit\n"
    assert vault.read("memories/koln-ist-weit.md").endswith("---\nKöln ist weit.\n")

    for command in (
        ("remember", "-"),
        ("edit", "memory:koln-ist-weit", "--body", "-"),
        ("note", "article", "add", "-"),
    ):
        for encoding in ("latin-1", "utf-16"):
            ran = co(*command, stdin="Köln ist schön.".encode(encoding))
            assert (ran.code, ran.err.startswith("co: stdin is not valid UTF-8: ")) == (2, True), ran
    assert vault.notes() == ["memories/koln-ist-weit.md"]
    assert "weit" in vault.read("memories/koln-ist-weit.md")


def test_list_shows_the_newest_first_and_filters(co: Co, vault: Vault) -> None:
    vault.write("memories/old.md", "---\ntags: [tree]\ncreated: 2020-01-01\n---\nOld.")
    vault.write("memories/new.md", "---\ncreated: 2026-01-01\n---\nNew.")
    vault.write("articles/page.md", "---\ncreated: 2023-01-01\n---\nPage.")

    assert [line.split()[0] for line in co("list").out.splitlines()] == ["memory:new", "article:page", "memory:old"]
    assert [note["ref"] for note in co("list", "memory", "--json").json] == ["memory:new", "memory:old"]
    assert [note["ref"] for note in co("list", "-n", "1", "--json").json] == ["memory:new"]
    assert [note["ref"] for note in co("list", "--tag", "tree", "--json").json] == ["memory:old"]


def test_an_empty_list_names_the_filter(co: Co, vault: Vault) -> None:
    vault.write("memories/old.md", "---\ntags: [tree, people]\n---\nOld.")

    nothing = co("list", "--tag", "trees")
    assert (nothing.code, nothing.out) == (
        1,
        "No notes with --tag trees.\nNo note has the tag trees: did you mean tree?\n",
    )
    assert co("list", "--tag", "nope").out.endswith("No note has the tag nope: `co note tags` lists all tags\n")
    assert co("list", "--since", "2090-01-01").out == "No notes with --since 2090-01-01.\n"
    assert co("list", "article").out == "No notes.\n"
    assert (co("list", "--tag", "none", "--json").json, co("list", "--tag", "none", "--json").code) == ([], 1)


def test_show_takes_a_ref_a_name_or_a_path(co: Co, vault: Vault) -> None:
    file = vault.write("memories/oak.md", NOTE)
    co("index", "sync")

    for ref in ("memory:oak", "oak", "oak.md", "memories/oak.md", "Oak", "memory:oak#L6", str(file)):
        assert co("show", ref).out == f"Oaks  memory:oak\n#tree · {file}\nunknown: kept\n\nOaks live long.\n", ref
    shown = co("show", "oak", "--json").json
    assert (shown["ref"], shown["title"], shown["body"]) == ("memory:oak", "Oaks", "Oaks live long.\n")
    assert shown["metadata"] == {"title": "Oaks", "tags": ["tree"], "unknown": "kept"}
    assert len(co("show", "oak", "oak", "--json").json) == 2


@pytest.mark.medium
def test_notes_of_added_sources_are_listed_and_opened_by_title_alias_file_name_or_path(
    co: Co, vault: Vault, tmp_path: Path
) -> None:
    vault.write("memories/oak.md", NOTE)
    vault.write("inbox/elm.md", "---\ntitle: Tall elms\n---\nElms stand.")
    file = tmp_path / "wood" / "plans" / "Zeta.md"
    file.parent.mkdir(parents=True)
    file.write_text("---\ntitle: The Zeta plan\naliases: [Zed]\n---\nPlant zelkovas.")
    (tmp_path / "wood" / "oaks.md").write_text("# Oaks\n\nOaks elsewhere.")
    co("add", str(tmp_path / "wood"))

    refs = {note["ref"] for note in co("list", "--json").json}
    assert refs == {"memory:oak", "article:/inbox/elm", "folder:wood/oaks.md", "folder:wood/plans/Zeta.md"}
    for name in ("the zeta plan", "Zed", "Zeta", "zeta.md", "plans/Zeta.md", "/folder:wood/plans/Zeta.md"):
        assert "Plant zelkovas." in co("show", name).out, name
    for name in ("tall elms", "article:inbox/elm", "article:/inbox/elm", "/article:inbox/elm"):
        assert "Elms stand." in co("show", name).out, name
    assert "Oaks live long." in co("show", "Oaks").out  # the vault comes first
    vault.write("memories/oak2.md", NOTE)
    co("index", "sync")
    assert co("show", "oaks").err == "co: 'oaks' is the name of several notes: memory:oak, memory:oak2\n"


@pytest.mark.medium
def test_commands_take_the_number_of_a_result_of_the_last_search(
    co: Co, vault: Vault, editor: Editor, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    vault.write("memories/oak.md", NOTE)
    article = vault.write("articles/elm.md", "# Elms\n\nOld.\n\n## Age\n\nElms live long with oaks, elms and oaks.\n")
    opener = write_script(tmp_path / "bin" / "xdg-open", 'echo "$1" > "$0.opened"')
    monkeypatch.setenv("PATH", str(opener.parent), prepend=os.pathsep)
    monkeypatch.setattr("sys.platform", "linux")
    editor('echo More. >> "$1"')

    lines = co("search", "long life of elms", "--backend", "fts5").out.splitlines()
    co("search", "oaks", "--json")  # shows no numbers
    assert [line.split()[0] for line in lines if "  article:elm#" in line or "  memory:oak" in line] == ["1.", "2."]
    assert "Old." in co("show", "1").out  # the whole note
    assert co("open", "1").out == f"opened {article}\n"
    assert Path(f"{opener}.opened").read_text() == f"{article}\n"
    assert (co("edit", "2").code, vault.read("memories/oak.md")) == (0, f"{NOTE}More.\n")
    assert co("feedback", "give", "1", "good").out.startswith("rated good: article:elm (Elms)")
    assert co("note", "why", "long life of elms", "1").out.startswith("Elms  article:elm\n")
    assert co("note", "history", "1").out.startswith("Elms  article:elm\n")
    for command in ("show", "open", "edit", "forget"):
        ran = co(command, "3")
        assert (ran.code, ran.err) == (2, "co: no note '3', and the last search had 2 results\n")
    assert co("show", "3" * 5_000).code == 2
    assert co("forget", "2").out.startswith("forgotten memory:oak;")
    co("remember", "Elms die young.", "--supersedes", "1")
    assert "supersedes: article:elm\n" in vault.read("memories/elms-die-young.md")
    vault.write("memories/3.md", "Three.")
    assert "Three." in co("show", "3").out


def test_show_raw_is_the_file_byte_for_byte(co: Co, vault: Vault) -> None:
    vault.write("memories/oak.md", b"\xef\xbb\xbf---\r\ntitle: T\r\n---\r\ncaf\xe9\r\n")

    assert co("show", "oak", "--raw").out == "\ufeff---\r\ntitle: T\r\n---\r\ncaf\ufffd\r\n"


def test_a_ref_may_name_lines(co: Co, vault: Vault) -> None:
    vault.write("articles/plan.md", "one\ntwo\nthree\nfour\nfive\n")

    for ref in ("article:plan#L3-4", "plan#L3-4", "articles/plan.md#L3-4"):
        assert co("show", ref).out.splitlines()[-2:] == ["three", "four"]
        assert co("show", ref, "--json").json["body"] == "three\nfour"
    for lines in ("#L99", "#L4-3", "#L0"):
        ran = co("show", f"article:plan{lines}")
        assert (ran.code, "lines 1 to 5" in ran.err) == (2, True)


def test_show_lists_the_links_of_a_note_before_the_first_sync(co: Co, vault: Vault) -> None:
    vault.write("memories/oak.md", "Oaks live long. See [[elm#Age]], [[gone]] and [[map.png]].")
    vault.write("memories/map.png", "")
    vault.write("memories/elm.md", "Elms live shorter.")

    before = co("show", "memories/oak.md", "--json").json["links"]
    co("index", "sync")
    after = co("show", "oak", "--json").json["links"]
    vault.write("memories/oak.md", "Oaks live long. See [[elm]].")

    assert [(one["target"], one["there"]) for one in before] == [(one["target"], one["there"]) for one in after]
    assert [one["there"] for one in after] == [True, False, True]
    assert [one["ref"] for one in after] == ["memory:elm", None, None]
    assert co("show", "oak").out.endswith("links: memory:elm\n")


def test_edit_by_field_changes_those_lines_only(co: Co, vault: Vault) -> None:
    for options, before, after in (
        (("--title", "Elms"), "title: 'Oaks'  # mine", "title: Elms  # mine"),
        (("--tag", "Big", "--tag", "old"), "tags: [tree]", "tags: [big, old]"),
        (("--set", "unknown=0.5"), "unknown: kept", "unknown: 0.5"),
        (("--set", "unknown="), "unknown: kept\n", ""),
        (("--category", "fact"), "unknown: kept\n", "unknown: kept\ncategory: fact\n"),
    ):
        vault.write("memories/oak.md", NOTE)
        assert co("edit", "oak", *options).out == "updated memory:oak\n"
        assert vault.read("memories/oak.md") == NOTE.replace(before, after)


def test_edit_that_changes_nothing_writes_nothing(co: Co, vault: Vault) -> None:
    file = vault.write("memories/oak.md", NOTE)
    before = file.stat()

    assert co("edit", "oak", "--title", "Oaks", "--tag", "tree").out == "unchanged memory:oak\n"
    assert co("edit", "oak", "--add-tag", "Tree").out == "unchanged memory:oak\n"
    assert (file.stat().st_ino, file.stat().st_mtime_ns) == (before.st_ino, before.st_mtime_ns)


def test_edit_keeps_the_updated_field_true(co: Co, vault: Vault) -> None:
    vault.write("memories/oak.md", "---\nupdated: 2020-01-01\n---\nOaks.")

    co("edit", "oak", "--set", "x=1")

    assert "updated: 2020" not in vault.read("memories/oak.md")
    assert "updated: 20" in vault.read("memories/oak.md")


def test_edit_gives_a_note_a_new_text(co: Co, vault: Vault) -> None:
    vault.write("memories/oak.md", NOTE)

    assert co("edit", "oak", "--body", "-", stdin="Acorns.").code == 0

    assert vault.read("memories/oak.md").startswith("---\ntitle: 'Oaks'  # mine\ntags: [tree]\nunknown: kept\n")
    assert vault.read("memories/oak.md").endswith("---\nAcorns.\n")
    assert co("search", "acorns", "--no-sync", "--backend", "fts5").code == 0


def test_a_title_that_was_the_first_sentence_follows_a_new_text(co: Co) -> None:
    co("remember", "Blue takes traffic first.")
    co("remember", "Red waits.", "--title", "Order of pools")

    co("edit", "blue-takes-traffic-first", "--body", "Green takes traffic first. Blue waits.")
    co("edit", "order-of-pools", "--body", "Red goes home.")

    assert co("show", "blue-takes-traffic-first", "--json").json["title"] == "Green takes traffic first"
    assert co("show", "order-of-pools", "--json").json["title"] == "Order of pools"


def test_edit_opens_the_editor_and_indexes_what_it_left(co: Co, vault: Vault, editor: Editor) -> None:
    vault.write("memories/oak.md", NOTE)
    editor('echo "Acorns fall." >> "$1"')
    assert co("edit", "oak").out == "updated memory:oak\n"
    assert co("search", "acorns", "--no-sync", "--backend", "fts5").code == 0

    editor('test "$1" = --wait && echo "Visual." >> "$2"', "VISUAL", " --wait")  # comes first, and may have options
    assert co("edit", "oak").code == 0
    assert vault.read("memories/oak.md").endswith("Visual.\n")

    editor("true", "VISUAL")
    assert co("edit", "oak", "--json").json["outcome"] == "unchanged"
    editor("printf -- '---\\ntitle: [oops\\n---\\nBody' > \"$1\"", "VISUAL")
    assert co("edit", "oak").out.startswith("updated: memory:oak, line ")


def test_list_sorts_by_title_ref_age_or_change(co: Co, vault: Vault) -> None:
    for day, name, title in ((3, "a", "Willow"), (1, "b", "Elm"), (2, "c", "Oak")):
        vault.write(f"memories/{name}.md", f"---\ntitle: {title}\ncreated: 2026-03-0{day}\n---\nText {name}.\n")
    os.utime(vault.path("memories/c.md"), (2e9, 2e9))

    def order(*options: str) -> str:
        return " ".join(row["title"] for row in co("list", "--json", *options).json)

    assert order() == "Willow Oak Elm"
    assert order("--sort", "oldest") == "Elm Oak Willow"
    assert order("--sort", "ref") == "Willow Elm Oak"
    assert order("--sort", "title", "-n", "2") == "Elm Oak"
    assert order("--sort", "changed").startswith("Oak ")


def test_forget_and_restore(co: Co, vault: Vault) -> None:
    vault.write("memories/oak.md", NOTE)

    gone = co("forget", "oak", "oak")
    restores = "`co note restore memory:oak` restores it"
    assert gone.out == f"forgotten memory:oak; {restores}, and `co forget --erase memory:oak` deletes it for good\n"
    assert co("search", "oaks", "--no-sync", "--backend", "fts5").code == 1
    assert co("list", "--trash").out.startswith("memory:oak  Oaks  forgotten today  (.trash/")
    [trashed] = co("list", "--trash", "--json").json
    assert (trashed["path"], trashed["title"]) == ("memories/oak.md", "Oaks")
    assert trashed["forgotten"].startswith("20")
    assert co("show", "memory:oak").err == "co: memory:oak was forgotten: `co note restore memory:oak` restores it\n"
    assert co("note", "restore", "oak", "nope").code == 2
    assert vault.notes() == []

    vault.write("memories/oak.md", "New.")
    assert "exists again" in co("note", "restore", "oak").err
    vault.delete("memories/oak.md")
    assert co("note", "restore", "memory:oak").out == f"restored memory:oak, forgotten {trashed['forgotten']}\n"
    assert vault.read("memories/oak.md") == NOTE
    assert co("search", "oaks", "--no-sync", "--backend", "fts5").code == 0
    assert (co("list", "--trash").out, co("list", "--trash").code) == ("The trash is empty.\n", 0)
    assert co("forget", "oak", "elm").code == 2
    assert vault.notes() == ["memories/oak.md"]


@pytest.mark.parametrize(
    ("written", "then"),
    [
        ("tags: [Ops, 'Two Words',  Deploy]  # mine", "tags: [Ops, Two Words, release]  # mine"),
        ("tags: []", "tags: [release]"),
        ("tag: [B2, deploy, B1]", "tag: [B2, B1, release]"),
        (
            "tags:\n  - Ops  # first\n  - Deploy\n  - 'Zwei Wörter'",
            "tags:\n  - Ops  # first\n  - 'Zwei Wörter'\n  - release",
        ),
        ("tags:\n- Deploy\n- 2024", "tags:\n- 2024\n- release"),
        ("tags: Ops, Deploy, Über", "tags: [Ops, Über, release]"),
        ("tags: Ops Deploy", "tags: [Ops, release]"),
        ("tags: [Ops,\n  Deploy, Über]", "tags: [Ops, Über, release]"),
        ("tags: [Ops, '#', Deploy]", 'tags: [Ops, "#", release]'),
    ],
)
def test_tags_that_stay_keep_their_spelling_and_order(co: Co, vault: Vault, written: str, then: str) -> None:
    """Only the lines of the field change, and comments on them stay."""
    file = vault.write("memories/blue.md", f"---\n{written}\nodd:   [ x ]\n---\nBlue first.\n")

    again = ("--add-tag", "OPS") if "Ops" in written else ()
    drop = ("--drop-tag", "deploy") if "eploy" in written else ()
    assert co("edit", "blue", "--add-tag", "release", *again, *drop).code == 0

    assert file.read_text().startswith(f"---\n{then}\nodd:   [ x ]\n")


def test_a_tag_that_cannot_be_removed_changes_nothing(co: Co, vault: Vault) -> None:
    file = vault.write("memories/blue.md", "---\ntags: [deploy]\n---\nBlue first. #pools\n")
    before = file.read_bytes()

    for options, problem in (
        (("--drop-tag", "pools"), "pools is in its text: edit that"),
        (("--drop-tag", "nope"), "nope is not one of its tags"),
        (("--add-tag", "a", "--tag", "b"), "--tag gives all the tags"),
    ):
        ran = co("edit", "blue", *options)
        assert (ran.code, problem in ran.err) == (2, True)
    assert file.read_bytes() == before


def test_an_automatic_category_is_shown_as_such_and_can_be_filtered(co: Co, vault: Vault) -> None:
    assert co("remember", "Mara prefers tea.", "--title", "Tea").code == 0
    assert co("remember", "Blue is first.", "--title", "Blue", "--category", "decision").code == 0

    assert "auto_category: preference\n" in vault.read("memories/tea.md")
    assert "preference (automatic)" in co("show", "memory:tea").out
    assert "(automatic)" not in co("show", "memory:blue").out
    assert co("show", "memory:tea", "--json").json["category"] == "preference"
    assert [one["ref"] for one in co("list", "--category", "preference", "--json").json] == ["memory:tea"]


@pytest.mark.medium
def test_a_forgotten_note_is_restored_by_whatever_it_was_shown_by(co: Co, vault: Vault, home: Path) -> None:
    file = vault.write("My Notes/blue pool.md", "---\ntitle: Blue pool first\naliases: [BPF]\n---\nBlue first.\n")
    co("index", "sync")

    for name in (
        "Blue pool first",
        "blue-pool-first",
        "bpf",
        "blue pool",
        "My Notes/blue pool.md",
        str(file),
        os.path.relpath(file),
        "article:/My Notes/blue pool",
    ):
        assert co("show", name).code == 0, name
        forgotten = co("forget", name)
        assert "`co note restore 'article:/My Notes/blue pool'`" in forgotten.out
        ran = co("note", "restore", name)
        assert (ran.code, ran.out.split(", ")[0]) == (0, "restored article:/My Notes/blue pool"), (name, ran.err)
    for path in ("memories/one.md", "memories/two.md"):
        vault.write(path, "---\ntitle: Twins\n---\nBoth.")
        co("forget", path)
    several = co("note", "restore", "twins")
    assert (several.code, "is the name of several notes in the trash" in several.err) == (2, True)
