"""An ordinary mistake is one line on stderr with the cure, exit code 2, and no traceback."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.command import Co, Ran
from tests.vault import Vault


def complaint(ran: Ran, code: int = 2) -> str:
    assert (ran.code, ran.out) == (code, "")
    assert ran.err.startswith("co")
    assert ran.err.endswith("\n")
    assert ran.err.count("\n") == 1
    assert "Traceback" not in ran.err
    return ran.err


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["serch", "x"], "unknown command 'serch': did you mean `co search`?"),
        (["frobnicate"], "unknown command 'frobnicate': `co --help` lists the commands"),
        (["--frob"], "--frob"),
        (["--vault"], "--vault"),
        (["search"], "query"),
        (["search", " "], "the query is empty"),
        (["search", "x", "--frob"], "--frob"),
        (["search", "x", "--limit", "0"], "limit is between 1 and 1000, not 0"),
        (["search", "x", "--limit", "many"], "many"),
        (["list", "--limit", "0"], "limit"),
        (["list", "--limit", "-3"], "limit"),
        (["search", "x", "--since", "soon"], "since is a date like"),
        (["search", "x", "--where", "wood"], "--where takes KEY=VALUE, not 'wood'"),
        (["search", "x", "--backend", "google"], "google"),
        (["search", "x", "--source", "book"], "book"),
        (["list", "books"], "books"),
        (["list", "--trash", "--tag", "x"], "--trash lists everything that was forgotten; leave out --tag"),
        (
            ["note", "article", "add", "a.md", "--title", "T"],
            "--title: only for standard input (-); a.md is copied as it is",
        ),
        (["remember", ""], "nothing to remember"),
        (["remember"], "nothing to remember"),
        (["remember", "x", "--importance", "7"], "between 0 and 1"),
        (["remember", "x", "--importance", "nan"], "between 0 and 1"),
        (["remember", "x", "--set", "domain"], "--set takes KEY=VALUE"),
        (["remember", "x", "--set", "bad key: x=1"], "bad key: x"),
        (["show"], "ref"),
        (["note", "restore", "oak"], "no note 'oak'"),
        (["edit", "oak", "--title", "x"], "no note 'oak'"),
        (
            ["config", "show", "search_backnd"],
            "unknown setting 'search_backnd': did you mean knowledge_search_backend?",
        ),
        (["config", "show", "profile"], "did you mean knowledge_profile?"),
        (["config", "show", "zzz"], "unknown setting 'zzz': `co config show` lists them"),
        (["note", "article", "add"], "path"),
        (["note", "article", "remove", "x"], "remove"),
        (["config", "completion", "tcsh"], "tcsh"),
        (["demo", " "], "the query is empty"),
    ],
)
def test_wrong_usage_is_one_line(co: Co, arguments: list[str], says: str) -> None:
    assert says in complaint(co(*arguments))


COMMANDS_WITH_A_VAULT = [
    ["search", "x"],
    ["note", "recall", "x"],
    ["list"],
    ["show", "x"],
    ["remember", "x"],
    ["edit", "x"],
    ["forget", "x"],
    ["note", "restore", "x"],
    ["index", "sync"],
    ["index", "rebuild"],
    ["index", "status"],
    ["doctor"],
]


@pytest.mark.parametrize("command", COMMANDS_WITH_A_VAULT, ids=lambda command: command[0])
def test_a_vault_that_does_not_exist_is_one_line_and_is_not_made(co: Co, tmp_path: Path, command: list[str]) -> None:
    nowhere = tmp_path / "nowhere"

    assert f"no vault at {nowhere}: `co init --vault {nowhere}` makes one" in complaint(
        co("--vault", str(nowhere), *command)
    )
    assert not nowhere.exists()


@pytest.mark.parametrize("command", COMMANDS_WITH_A_VAULT, ids=lambda command: command[0])
def test_a_file_instead_of_a_vault_is_one_line(co: Co, vault: Vault, command: list[str]) -> None:
    file = vault.write("memories/oak.md", "Oaks.")

    assert f"{file} is a file" in complaint(co(*command, "--vault", str(file)))


@pytest.mark.parametrize(
    ("ref", "closest"),
    [
        ("memory:oek", "memory:oak"),
        ("oka", "memory:oak"),
        ("article:old-elms", "article:trees/old-elm"),
        ("ELM", "article:trees/old-elm"),
    ],
)
@pytest.mark.parametrize("command", ["show", "forget", "edit"])
def test_an_unknown_ref_names_the_closest_ones(co: Co, vault: Vault, command: str, ref: str, closest: str) -> None:
    vault.write("memories/oak.md", "Oaks.")
    vault.write("articles/trees/old-elm.md", "Elms.")
    co("index", "sync")

    said = complaint(co(command, ref))

    assert f"no note {ref!r}: did you mean " in said
    assert closest in said


def test_an_unknown_ref_in_a_vault_never_synced_still_names_the_closest(co: Co, vault: Vault) -> None:
    vault.write("memories/oak.md", "Oaks.")

    assert "did you mean memory:oak?" in complaint(co("show", "oek"))


def test_a_ref_unlike_any_other_points_at_the_list(co: Co, vault: Vault) -> None:
    vault.write("memories/oak.md", "Oaks.")

    assert "`co list` shows every ref" in complaint(co("show", "zzzzzzzz"))


@pytest.mark.parametrize(
    "ref", ["../../etc/passwd", "/etc/passwd", "memory:../../../etc/passwd", "memory:", "", "a\0b", "\x1b[31m"]
)
def test_a_ref_cannot_lead_out_of_the_vault(co: Co, ref: str) -> None:
    assert "\x1b" not in complaint(co("show", ref))


def test_a_note_that_is_no_text_is_one_line(co: Co, vault: Vault) -> None:
    vault.write("memories/binary.md", b"\0\1\2")

    for command in (["show", "binary"], ["edit", "binary", "--title", "x"], ["forget", "binary"]):
        assert "memories/binary.md is not a note: not a text file" in complaint(co(*command))


def test_a_note_in_utf_16_is_not_mangled_by_an_edit(co: Co, vault: Vault) -> None:
    data = "---\ntitle: T\n---\nBody.".encode("utf-16")
    vault.write("memories/wide.md", data)

    assert "UTF-16; save it as UTF-8" in complaint(co("edit", "wide", "--title", "x"))
    assert vault.path("memories/wide.md").read_bytes() == data


def test_broken_frontmatter_is_not_edited_and_the_line_is_said(co: Co, vault: Vault) -> None:
    file = vault.write("memories/oak.md", "---\ntitle: T\nx: [1\n---\nBody.")

    assert "memories/oak.md:3: " in complaint(co("edit", "oak", "--tag", "x"))
    assert file.read_text() == "---\ntitle: T\nx: [1\n---\nBody."


@pytest.mark.parametrize("owner", ["user", "project"])
def test_a_broken_settings_file_is_said_with_file_and_line(co: Co, home: Path, owner: str) -> None:
    file = home / (".config/co-cli/settings.toml" if owner == "user" else ".co-cli/settings.toml")
    file.parent.mkdir(parents=True)
    file.write_text('# mine\nknowledge_search_backend = "fts5\n')

    for command in (["search", "x"], ["config", "show"], ["list"], ["demo", "x"]):
        assert f"{file}:2: not valid TOML" in complaint(co(*command))


@pytest.mark.parametrize("owner", ["user", "project"])
def test_an_unknown_setting_names_the_file_the_line_and_the_closest_setting(co: Co, home: Path, owner: str) -> None:
    file = home / (".config/co-cli/settings.toml" if owner == "user" else ".co-cli/settings.toml")
    file.parent.mkdir(parents=True)
    file.write_text('# mine\n\nsearch_backend = "fts5"\n')

    for command in (["search", "x"], ["config", "show"], ["doctor"]):
        assert f"{file}:3: unknown setting 'search_backend': did you mean knowledge_search_backend?" in complaint(co(*command))


def test_a_malformed_variable_is_said_by_name(co: Co, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CO_KNOWLEDGE_SEARCH_BACKEND", "google")

    assert "CO_KNOWLEDGE_SEARCH_BACKEND: knowledge_search_backend is one of grep, fts5, hybrid" in complaint(
        co("search", "x")
    )


def test_words_that_are_not_utf_8_do_no_harm(co: Co, vault: Vault, tmp_path: Path) -> None:
    odd = "caf\udce9"  # how Python hands over the byte E9
    assert co("remember", odd, "--title", odd, "--tag", odd, "--category", odd).code == 0
    assert "\\u" not in vault.read("memories/caf.md")
    assert co("search", odd, "--tag", odd, "--where", f"x={odd}", "--category", odd).code == 1
    complaint(co("show", odd))
    complaint(co("config", "show", odd))
    (tmp_path / odd).mkdir()
    assert "not valid UTF-8" in complaint(co("list", "--vault", str(tmp_path / odd)))


def test_a_note_whose_name_is_not_utf_8_can_be_shown(co: Co, vault: Vault) -> None:
    vault.write("memories/caf\udce9.md", "Coffee.")

    assert co("show", "caf\udce9").out.endswith("Coffee.\n")


def test_a_folder_that_was_deleted_underneath_is_one_line(
    co: Co, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "gone").mkdir()
    monkeypatch.chdir(tmp_path / "gone")
    (tmp_path / "gone").rmdir()

    assert "the current folder was deleted" in complaint(co("list"))


def test_restoring_over_a_new_note_is_one_line(co: Co, vault: Vault) -> None:
    vault.write("memories/oak.md", "Old.")
    co("forget", "oak")
    vault.write("memories/oak.md", "New.")

    assert "exists again" in complaint(co("note", "restore", "oak"))


def test_something_broken_is_exit_code_3_with_the_cure(co: Co, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")

    ran = co("index", "sync", "--data-dir", str(tmp_path / "file"))

    assert str(tmp_path / "file") in complaint(ran, code=3)


@pytest.mark.parametrize(
    "arguments", [["--help"], ["-h"], [], ["help"], ["help", "search"], ["search", "--help"], ["--version"]]
)
def test_help_is_printed_on_standard_output(co: Co, arguments: list[str]) -> None:
    ran = co(*arguments)

    assert (ran.code, ran.err) == (0, "")
    assert ran.out.startswith(("usage: co", "co 0."))


def test_an_option_that_is_misspelled_is_told_the_right_one(co: Co, vault: Vault) -> None:
    assert "did you mean --tag?" in co("search", "oaks", "--tga", "tree").err
    assert "did you mean --limit?" in co("list", "--limt=3").err
    assert "write -- before words that begin with a dash" in co("search", "oaks", "-x").err
