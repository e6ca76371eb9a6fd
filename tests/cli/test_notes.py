"""`co remember`, `list`, `show`, `edit`, `forget`, `restore`."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import apsw
import pytest

from tests.command import Co
from tests.vault import Vault

Editor = Callable[..., None]
NOTE = "---\ntitle: 'Oaks'  # mine\ntags: [tree]\nunknown: kept\n---\nOaks live long.\n"


@pytest.fixture
def editor(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Editor:
    """Make `$EDITOR` a script of these shell lines; the note is `$1`."""

    def choose(lines: str, variable: str = "EDITOR") -> None:
        script = tmp_path / "my editor.sh"
        script.write_text(f"#!/bin/sh\n{lines}\n")
        script.chmod(0o755)
        monkeypatch.setenv(variable, f"'{script}' --wait" if "--wait" in lines else f"'{script}'")

    return choose


def test_remember_writes_a_note_that_reads_well(co: Co, vault: Vault) -> None:
    ran = co(
        *(
            "remember",
            "Blue takes traffic first.",
            "--title",
            "Blue: first",
            "-t",
            "Deploy",
            "-t",
            "#ops",
            "--category",
            "decision",
        ),
        *("--provenance", "agent", "--importance", "0.8", "--set", "domain=billing", "--set", "reviewed=2026-03-01"),
    )

    assert (ran.code, ran.out, ran.err) == (0, "created memory:blue-first\n", "")
    lines = vault.read("memories/blue-first.md").splitlines()
    assert lines[3].startswith("created: 20")
    del lines[3]
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


def test_remember_reads_standard_input(co: Co, vault: Vault) -> None:
    assert co("remember", stdin="From a pipe.\n\nTwo paragraphs.\n").code == 0
    assert co("remember", "-", "--title", "Dash", stdin="Another.").code == 0
    assert vault.read("memories/from-a-pipe.md").endswith("---\nFrom a pipe.\n\nTwo paragraphs.\n")
    assert vault.notes() == ["memories/dash.md", "memories/from-a-pipe.md"]


def test_remember_as_json_is_a_receipt(co: Co, vault: Vault) -> None:
    receipt = co("remember", "Oaks live long.", "--json").json

    assert receipt == {
        "ref": "memory:oaks-live-long",
        "path": str(vault.path("memories/oaks-live-long.md")),
        "outcome": "created",
        "detail": "",
        "related": [],
        "masked": 0,
    }
    again = co("remember", "oaks live LONG!", "--json").json
    assert (again["ref"], again["outcome"]) == ("memory:oaks-live-long", "duplicate")


def test_a_duplicate_is_said_in_one_line_that_names_the_note_once(co: Co) -> None:
    co("remember", "Oaks live long.")

    assert co("remember", "Oaks live long.").out == "duplicate: memory:oaks-live-long says this already\n"


@pytest.mark.parametrize(
    ("content", "title"),
    [
        ("Call get_span_width() before wrap_text().", "Call get_span_width() before wrap_text()"),
        ("_Blue_ first, then __green__. Always.", "Blue first, then green"),
        ("- **Mara** keeps `snake_case_` names", "Mara keeps snake_case names"),
    ],
)
def test_a_title_made_of_the_text_leaves_marks_out_and_names_whole(co: Co, content: str, title: str) -> None:
    ref = co("remember", content, "--json").json["ref"]

    assert co("show", ref, "--json").json["title"] == title


@pytest.mark.parametrize("title", ["../../x", "/etc/passwd", "CON", "x" * 300, "🎉", "\x1b[31mred", "a\nb"])
def test_remember_stays_in_the_vault_whatever_the_title(co: Co, vault: Vault, title: str) -> None:
    ran = co("remember", "Words.", "--title", title)

    assert ran.code == 0
    assert len(vault.notes()) == 1
    assert vault.notes()[0].startswith("memories/")
    assert vault.notes()[0].count("/") == 1


def test_list_shows_the_newest_first_and_filters(co: Co, vault: Vault) -> None:
    vault.write("memories/old.md", "---\ntags: [tree]\ncreated: 2020-01-01\n---\nOld.")
    vault.write("memories/new.md", "---\ncreated: 2026-01-01\n---\nNew.")
    vault.write("articles/page.md", "---\ncreated: 2023-01-01\n---\nPage.")

    assert [line.split()[0] for line in co("list").out.splitlines()] == ["memory:new", "article:page", "memory:old"]
    assert [note["ref"] for note in co("list", "memory", "--json").json] == ["memory:new", "memory:old"]
    assert [note["ref"] for note in co("list", "-n", "1", "--json").json] == ["memory:new"]
    assert [note["ref"] for note in co("list", "--tag", "tree", "--json").json] == ["memory:old"]
    nothing = co("list", "--tag", "none")
    assert (nothing.code, nothing.out.splitlines()[0]) == (1, "No notes with --tag.")
    assert (co("list", "--tag", "none", "--json").json, co("list", "--tag", "none", "--json").code) == ([], 1)


@pytest.mark.parametrize(
    "ref", ["memory:oak", "oak", "oak.md", "memories/oak.md", "MEMORY:OAK".lower(), "Oak", "memory:oak#L6"]
)
def test_show_takes_a_ref_a_name_or_a_path(co: Co, vault: Vault, ref: str) -> None:
    vault.write("memories/oak.md", NOTE)
    co("index", "sync")

    ran = co("show", ref)

    assert ran.code == 0
    assert ran.out.splitlines() == [
        "Oaks  memory:oak",
        f"#tree · {vault.path('memories/oak.md')}",
        "",
        "Oaks live long.",
    ]


def test_show_takes_an_absolute_path(co: Co, vault: Vault) -> None:
    assert co("show", str(vault.write("memories/oak.md", NOTE)), "--raw").out == NOTE


def test_show_raw_is_the_file_byte_for_byte(co: Co, vault: Vault) -> None:
    vault.write("memories/oak.md", b"\xef\xbb\xbf---\r\ntitle: T\r\n---\r\ncaf\xe9\r\n")

    assert (
        co.process("show", "oak", "--raw").out.encode("utf-8")
        == "\ufeff---\r\ntitle: T\r\n---\r\ncaf\ufffd\r\n".encode()
    )


def test_show_lines_of_an_article(co: Co, vault: Vault) -> None:
    vault.write("articles/a.md", "---\nx: 1\n---\n" + "".join(f"line {number}\n" for number in range(4, 20)))

    shown = co("show", "article:a#L10-12").out.splitlines()

    assert shown[3:] == ["line 10", "line 11", "line 12"]


def test_show_as_json_has_the_whole_note(co: Co, vault: Vault) -> None:
    vault.write("memories/oak.md", NOTE)

    shown = co("show", "oak", "--json").json

    assert (shown["ref"], shown["title"], shown["body"]) == ("memory:oak", "Oaks", "Oaks live long.\n")
    assert shown["metadata"] == {"title": "Oaks", "tags": ["tree"], "unknown": "kept"}
    assert len(co("show", "oak", "oak", "--json").json) == 2


@pytest.mark.parametrize(
    ("options", "before", "after"),
    [
        (("--title", "Elms"), "title: 'Oaks'  # mine", "title: Elms  # mine"),
        (("--tag", "Big", "--tag", "old"), "tags: [tree]", "tags: [big, old]"),
        (("--set", "unknown=0.5"), "unknown: kept", "unknown: 0.5"),
        (("--set", "unknown="), "unknown: kept\n", ""),
        (("--category", "fact"), "unknown: kept\n", "unknown: kept\ncategory: fact\n"),
    ],
)
def test_edit_by_field_changes_those_lines_only(
    co: Co, vault: Vault, options: tuple[str, ...], before: str, after: str
) -> None:
    vault.write("memories/oak.md", NOTE)

    ran = co("edit", "oak", *options)

    assert (ran.code, ran.out) == (0, "updated memory:oak\n")
    assert vault.read("memories/oak.md") == NOTE.replace(before, after)


def test_edit_that_changes_nothing_writes_nothing(co: Co, vault: Vault) -> None:
    file = vault.write("memories/oak.md", NOTE)
    before = file.stat()

    ran = co("edit", "oak", "--title", "Oaks", "--tag", "tree")

    assert ran.out == "unchanged memory:oak\n"
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


def test_edit_opens_the_editor_and_indexes_what_it_left(co: Co, vault: Vault, editor: Editor) -> None:
    vault.write("memories/oak.md", NOTE)
    editor('echo "Acorns fall." >> "$1"')

    assert co.process("edit", "oak").out == "updated memory:oak\n"
    assert co("search", "acorns", "--no-sync", "--backend", "fts5").code == 0


def test_visual_comes_before_editor_and_may_have_options(co: Co, vault: Vault, editor: Editor) -> None:
    vault.write("memories/oak.md", NOTE)
    editor('test "$1" = --wait && echo "Visual." >> "$2"', "VISUAL")

    assert co("edit", "oak").code == 0
    assert vault.read("memories/oak.md").endswith("Visual.\n")


def test_an_editor_that_changes_nothing_is_said(co: Co, vault: Vault, editor: Editor) -> None:
    vault.write("memories/oak.md", NOTE)
    editor("true")

    assert co("edit", "oak", "--json").json["outcome"] == "unchanged"


def test_an_editor_that_leaves_broken_frontmatter_is_told_the_line(co: Co, vault: Vault, editor: Editor) -> None:
    vault.write("memories/oak.md", NOTE)
    editor("printf -- '---\\ntitle: [oops\\n---\\nBody' > \"$1\"")

    ran = co("edit", "oak")

    assert ran.code == 0
    assert ran.out.startswith("updated: memory:oak, line ")


@pytest.mark.parametrize(
    ("lines", "code", "says"), [("exit 4", 2, "ended with 4"), ('rm "$1"', 2, "the note is unchanged")]
)
def test_an_editor_that_fails_is_one_line(
    co: Co, vault: Vault, editor: Editor, lines: str, code: int, says: str
) -> None:
    vault.write("memories/oak.md", NOTE)
    editor(lines)

    ran = co("edit", "oak")

    assert (ran.code, ran.err.count("\n")) == (code, 1)
    assert says in ran.err


def test_without_an_editor_the_path_is_said(co: Co, vault: Vault) -> None:
    vault.write("memories/oak.md", NOTE)

    ran = co("edit", "oak")

    assert ran.code == 2
    assert str(vault.path("memories/oak.md")) in ran.err


def test_forget_and_restore(co: Co, vault: Vault) -> None:
    vault.write("memories/oak.md", NOTE)

    gone = co("forget", "oak")
    assert gone.code == 0
    assert gone.out.startswith("forgotten memory:oak; `co note restore memory:oak`")
    assert co("search", "oaks", "--no-sync", "--backend", "fts5").code == 1
    assert co("list", "--trash").out.startswith("memories/oak.md  (.trash/")
    assert co("list", "--trash", "--json").json[0]["path"] == "memories/oak.md"

    assert co("note", "restore", "oak").out == "restored memory:oak\n"
    assert vault.read("memories/oak.md") == NOTE
    assert co("search", "oaks", "--no-sync", "--backend", "fts5").code == 0
    assert (co("list", "--trash").out, co("list", "--trash").code) == ("The trash is empty.\n", 1)


def test_forget_and_restore_as_json(co: Co, vault: Vault) -> None:
    vault.write("memories/oak.md", NOTE)

    gone = co("forget", "oak", "--json").json
    back = co("note", "restore", "memory:oak", "--json").json

    assert gone[0]["ref"] == back[0]["ref"] == "memory:oak"
    assert back[0]["outcome"] == "restored"


def test_forgetting_several_is_all_or_nothing(co: Co, vault: Vault) -> None:
    vault.write("memories/oak.md", NOTE)

    assert co("forget", "oak", "elm").code == 2
    assert vault.notes() == ["memories/oak.md"]


def test_who_wants_no_vectors_gets_none_with_the_first_note_either(
    co: Co, data_dir: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CO_KNOWLEDGE_EMBEDDING_PROVIDER", "none")

    co("remember", "Oaks live long")

    connection = apsw.Connection(str(data_dir / "search.db"))
    assert connection.execute("select count(*) from spaces").get == 0
    connection.close()


def test_a_title_that_was_the_first_sentence_follows_a_new_text(co: Co, vault: Vault) -> None:
    co("remember", "Blue takes traffic first.")

    co("edit", "blue-takes-traffic-first", "--body", "Green takes traffic first. Blue waits.")

    shown = co("show", "blue-takes-traffic-first", "--json").json
    assert (shown["title"], shown["ref"]) == ("Green takes traffic first", "memory:blue-takes-traffic-first")


def test_a_title_of_ones_own_stays_with_a_new_text(co: Co, vault: Vault) -> None:
    co("remember", "Blue takes traffic first.", "--title", "Order of pools")
    vault.write("memories/oak.md", "Oaks live long.")
    vault.write("articles/elm.md", "---\ntitle: Elms\n---\n# Elms\n\nTall.\n")

    co("edit", "order-of-pools", "--body", "Green takes traffic first.")
    co("edit", "oak", "--body", "Oaks live for centuries.")
    co("edit", "elm", "--body", "They grow taller every year.")

    assert co("show", "order-of-pools", "--json").json["title"] == "Order of pools"
    assert vault.read("memories/oak.md") == "Oaks live for centuries.\n"
    assert co("show", "elm", "--json").json["title"] == "Elms"


@pytest.mark.parametrize("written", ["tag: [Two Words]", 'tags: ["Two Words"]', "tags:\n- Two Words"])
def test_a_tag_is_dropped_however_the_file_says_it(co: Co, vault: Vault, written: str) -> None:
    file = vault.write("memories/blue.md", f"---\n{written}\n---\nBlue pool first.\n")

    assert co("edit", "blue", "--drop-tag", "two words").out == "updated memory:blue\n"

    assert file.read_text() == "---\n---\nBlue pool first.\n"


def test_a_tag_is_added_and_taken_away_and_the_others_stay(co: Co, vault: Vault) -> None:
    vault.write("memories/blue.md", "---\ntags: [deploy, ops]\n# mine\n---\nBlue first. #pools\n")

    assert co("edit", "blue", "--add-tag", "#Release", "--drop-tag", "ops").code == 0

    assert "tags: [deploy, release]\n# mine\n" in vault.read("memories/blue.md")
    assert co("show", "blue", "--json").json["tags"] == ["deploy", "release", "pools"]


@pytest.mark.parametrize(
    ("written", "then"),
    [
        ("tags: [Ops, 'Two Words',  Deploy]  # mine", "tags: [Ops, 'Two Words', release]  # mine"),
        ('tags: [Deploy, Ops, "two words",]', 'tags: [Ops, "two words", release]'),
        ("tags: [ deploy ]", "tags: [release]"),
        ("tags: []", "tags: [release]"),
        ("tag: [B2, deploy, B1]", "tag: [B2, B1, release]"),
        ("tags:\n  - Ops  # first\n  - Deploy\n\n  # and\n  - 'Zwei Wörter'", None),
        ("tags:\n- Deploy\n- 2024", "tags:\n- 2024\n- release"),
        ("tags: Ops, Deploy, Über", "tags: Ops, Über, release"),
        ("tags: Ops Deploy", "tags: Ops release"),
        ("tags: [Ops,\n  Deploy, Über]", "tags: [Ops, Über, release]"),
        ("tags: [Ops, '#', Deploy]", "tags: [Ops, '#', release]"),
    ],
)
def test_tags_that_stay_are_not_written_again(co: Co, vault: Vault, written: str, then: str | None) -> None:
    """The owner's spelling, order, quotes and comments are the owner's."""
    file = vault.write("memories/blue.md", f"---\n{written}\nodd:   [ x ]\n---\nBlue first.\n")
    if then is None:
        then = "tags:\n  - Ops  # first\n\n  # and\n  - 'Zwei Wörter'\n  - release"

    again = ("--add-tag", "OPS") if "Ops" in written else ()
    drop = ("--drop-tag", "deploy") if "eploy" in written else ()
    assert co("edit", "blue", "--add-tag", "release", *again, *drop).code == 0

    assert file.read_text().startswith(f"---\n{then}\nodd:   [ x ]\n")


def test_a_tag_that_is_there_in_other_letters_changes_nothing(co: Co, vault: Vault) -> None:
    file = vault.write("memories/blue.md", "---\ntags: [Deploy, 'Two Words']\n---\nBlue first.\n")

    assert co("edit", "blue", "--add-tag", "deploy", "--add-tag", "two words").out == "unchanged memory:blue\n"
    assert file.read_text() == "---\ntags: [Deploy, 'Two Words']\n---\nBlue first.\n"


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (("--drop-tag", "pools"), "pools is in its text: edit that"),
        (("--drop-tag", "nope"), "nope is not one of its tags"),
        (("--add-tag", "a", "--tag", "b"), "--tag gives all the tags"),
    ],
)
def test_a_tag_that_cannot_be_taken_away_is_told_and_nothing_changes(
    co: Co, vault: Vault, options: tuple[str, ...], said: str
) -> None:
    vault.write("memories/blue.md", "---\ntags: [deploy]\n---\nBlue first. #pools\n")

    ran = co("edit", "blue", *options)

    assert (ran.code, said in ran.err) == (2, True)
    assert "tags: [deploy]\n" in vault.read("memories/blue.md")


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
