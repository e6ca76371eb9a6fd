"""An ordinary mistake is one line on stderr with the fix, exit code 2, and no traceback."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from co_cli.cli.parsing import COMMANDS, make_parser
from tests.command import Co, Ran
from tests.folder import Vault

WRONG_USAGE = {
    ("serch", "x"): "unknown command 'serch': did you mean `co search`?",
    ("find", "x"): "did you mean `co search`?",
    ("trash",): "did you mean `co list --trash`?",
    ("version",): "did you mean `co --version`?",
    ("index", "nope"): "unknown command 'index nope'",
    ("note", "bogus"): "unknown command 'note bogus': `co note --help` lists the commands",
    ("note", "histroy"): "unknown command 'note histroy': did you mean `co note history`?",
    ("frobnicate",): "unknown command 'frobnicate': `co --help` lists the commands",
    ("--frob",): "--frob",
    ("--vault",): "--vault",
    ("search",): "query",
    ("search", " "): "the query is empty",
    ("search", "x", "--frob"): "--frob",
    ("search", "x", "-x"): "write -- before words that begin with a dash",
    ("search", "x", "--tga", "tree"): "did you mean --tag?",
    ("search", "x", "--limit", "0"): "--limit must be at least 1, not 0",
    ("list", "--limit", "9" * 5_000): "--limit must have at most 9 digits",
    ("search", "x", "--limit", "many"): "--limit must be a number, not many",
    ("search", "x", "--min-score", "high"): "--min-score must be a number, not 'high'",
    ("search", "x", "--min-score", "nan"): "min_score must be a number such as 0.3, not nan",
    ("data", "export", "--to", "x", "--server", "http://a.org"): "`co data export` does not work with --server: run it",
    ("web", "--port", "http"): "--port must be a number, not 'http'",
    ("feedback", "tune", "--apply", "--reset"): "--reset and --apply cannot be combined",
    ("note", "extract", "--tokens", "0"): "--tokens must be at least 1, not 0",
    ("search", "x", "--since", "soon"): "since must be a date like",
    ("search", "x", "--where", "wood"): "--where must be KEY=VALUE, not 'wood'",
    ("search", "x", "--backend", "google"): "--backend must be one of grep, fts5, hybrid, not 'google'",
    ("search", "x", "--profile", "google"): "google",
    ("search", "x", "--source", "book"): "a kind or source must be one of memory,",
    ("search", "x", "--weights", "words"): "weights must be NAME=NUMBER",
    ("search", "x", "--weights", "vector=0.5"): "weight",
    ("search", "x", "--weights", "words=2"): "weight",
    ("search", "x", "--weights", "words=0,meaning=0"): "words and meaning",
    ("search", "x", "--no-words", "--no-meaning"): "words",
    ("list", "--limit", "-3"): "limit",
    ("list", "--limt=3"): "did you mean --limit?",
    ("list", "books"): "books",
    ("list", "--source", "books"): "books",
    ("list", "--trash", "--tag", "x"): "--trash lists everything that was forgotten; leave out --tag",
    ("list", "--trash", "--sort", "title"): "--trash lists everything that was forgotten; leave out --sort",
    ("note", "article", "add", "a.md", "--title", "T"): "--title: only for standard input (-)",
    ("note", "article", "remove", "x"): "remove",
    ("remember",): "nothing to remember",
    ("remember", "x", "--importance", "nan"): "importance must be a number between 0 and 1, not nan",
    ("remember", "x", "--url", "arch.es"): "url must be an address such as https://example.org, not 'arch.es'",
    ("remember", "x", "--set", "updated=foo"): "updated must be a date such as 2026-03-01, not 'foo'",
    ("mcp", "--print-config"): "--print-config needs a value",
    ("remember", "x", "--set", "domain"): "--set must be KEY=VALUE",
    ("remember", "x", "--set", "bad key: x=1"): "bad key: x",
    ("remember", "x", "--ask"): "--on-related",
    ("show",): "ref",
    ("note", "restore", "oak"): "no note 'oak'",
    ("note", "why", "memory:oak", "old trees"): "(the query comes first, then the note)",
    ("note", "review", "--only", "rubbish"): "near-duplicate",
    ("config", "show", "search_backnd"): "unknown setting 'search_backnd': did you mean knowledge_search_backend?",
    ("config", "show", "nonsense"): "`co config show` lists them",
    ("config", "show", "zzz"): "unknown setting 'zzz': `co config show` lists them",
    ("config", "completion", "tcsh"): "tcsh",
    ("demo", " "): "the query is empty",
}


def complaint(ran: Ran, code: int = 2) -> str:
    assert (ran.code, ran.out) == (code, "")
    assert ran.err.startswith("co")
    assert ran.err.endswith("\n")
    assert ran.err.count("\n") == 1
    assert "Traceback" not in ran.err
    return ran.err


def test_wrong_usage_is_one_line(co: Co) -> None:
    said = {arguments: complaint(co(*arguments)) for arguments in WRONG_USAGE}

    assert {arguments: text for arguments, text in said.items() if WRONG_USAGE[arguments] not in text} == {}


def test_a_command_that_lacks_an_argument_names_it_and_its_help(co: Co) -> None:
    commands = [name for name in COMMANDS if name != "hook"]  # that never fails
    parsers = {name: make_parser(name)._actions for name in commands}  # pyright: ignore[reportPrivateUsage]
    asked = [name for name, options in parsers.items() if any(one.required and one.nargs != "*" for one in options)]

    said = {name: complaint(co(*name.split())) for name in asked}

    assert len(asked) > 10
    assert {text for text in said.values() if "missing" not in text or "--help` explains" not in text} == set()


EMPTY_LISTS = (
    "list",
    "list --trash",
    "note tags",
    "source list",
    "source tree",
    "skill",
    "data restore",
    "feedback stats",
)


def test_an_empty_list_is_a_failure_only_if_a_filter_or_a_source_was_named(co: Co) -> None:
    plain = {command: co(*command.split()).code for command in (*EMPTY_LISTS, "source refresh --all")}
    asked = {command: co(*command.split()).code for command in ("list memory", "list --tag oak", "note tags article")}

    assert set(plain.values()) == {0}, plain
    assert set(asked.values()) == {1}, asked
    assert co("list", "--json").out == "[]\n"
    assert co("list").out.startswith("No notes yet: `co remember TEXT` saves one")


def test_fields_that_no_search_could_use_are_refused(co: Co, vault: Vault) -> None:
    before = vault.write("memories/oak.md", "---\ncreated: 2026-01-02\n---\nOaks live long.\n").read_bytes()
    for field in ("importance=7", "importance=high", "importance=true", "created=foo", "valid_until=soon"):
        assert f"{field.partition('=')[0]} must be a " in complaint(co("edit", "oak", "--set", field))
    assert vault.path("memories/oak.md").read_bytes() == before

    assert co("edit", "oak", "--set", "importance=0.7", "--set", "created=").code == 0


@pytest.mark.parametrize(
    "command", [("search", "x"), ("remember", "x"), ("forget", "x"), ("index", "sync"), ("doctor",)]
)
def test_a_vault_that_does_not_exist_is_not_created(co: Co, vault: Vault, tmp_path: Path, command: tuple[str]) -> None:
    nowhere, file = tmp_path / "nowhere", vault.write("memories/oak.md", "Oaks.")

    said = complaint(co("--vault", str(nowhere), *command))

    assert f"no vault at {nowhere}: `co init --vault {nowhere}` makes one" in said
    assert not nowhere.exists()
    assert f"{file} is a file" in complaint(co(*command, "--vault", str(file)))


@pytest.mark.medium
def test_an_unknown_ref_names_the_closest_ones(co: Co, vault: Vault) -> None:
    vault.write("memories/oak.md", "Oaks.")
    vault.write("articles/trees/old-elm.md", "Elms.")
    elm = "article:trees/old-elm"

    for command in ("show", "forget", "edit"):
        for ref, closest in {"memory:oek": "memory:oak", "article:old-elms": elm, "ELM": elm}.items():
            said = complaint(co(command, ref))
            assert f"no note {ref!r}: did you mean " in said
            assert closest in said
    vault.write("memories/contact-nuala.md", "Nuala.")
    (vault.root.parent / "brain" / "Projects").mkdir(parents=True)
    (vault.root.parent / "brain" / "Projects" / "Mapping.md").write_text("Maps.")
    co("add", str(vault.root.parent / "brain"))
    assert "did you mean folder:brain/Projects/Mapping.md?" in complaint(co("show", "maping"))
    for far in ("zzzzzzzz", "door", "a", "atlas"):  # `atlas` is not far from `act-nual`
        assert "`co list` shows every ref" in complaint(co("show", far))
    co("forget", "oak")
    assert "`co list --trash` lists what is there" in complaint(co("note", "restore", "atlas"))


def test_the_beginning_of_a_title_names_the_notes_that_begin_so(co: Co, vault: Vault) -> None:
    texts = [
        f"Hannah wants the DHL notices of parcels to the {wing} wing as text messages." for wing in ("east", "west")
    ]
    starting = [co("remember", text, "--on-related", "keep", "--json").json["ref"] for text in texts]
    for name in ("hannah", "wants", "the-dhl", "hannah-wants"):
        vault.write(f"memories/{name}.md", "Something else.")

    said = complaint(co("forget", "hannah wants the dhl"))

    assert said.endswith(f"did you mean {', '.join(sorted(starting))}?\n")


WORKING = {
    "note article a.md": "`co note article add a.md`",
    "data export out": "`co data export --to out`",
    "data import brain": "`co data import obsidian brain`",
    "undo": "`co note history REF` or `co note restore REF`",
    "note undo": "`co note history REF` or `co note restore REF`",
}


@pytest.mark.parametrize("command", WORKING)
def test_what_people_type_instead_of_a_command_names_the_command_that_works(co: Co, command: str) -> None:
    assert WORKING[command] in complaint(co(*command.split()))


def test_an_unknown_command_of_a_group_names_the_closest_of_that_group_or_its_help(co: Co) -> None:
    assert "did you mean `co source list`?" in complaint(co("source", "lst"))
    assert "`co note --help` lists the commands" in complaint(co("note", "frobnicate"))


@pytest.mark.parametrize(
    "ref", ["../../etc/passwd", "/etc/passwd", "memory:../../../etc/passwd", "memory:", "", "a\0b", "\x1b[31m"]
)
def test_a_ref_cannot_lead_out_of_the_vault(co: Co, ref: str) -> None:
    assert "\x1b" not in complaint(co("show", ref))


def test_a_file_that_is_not_a_readable_note_is_not_edited(co: Co, vault: Vault) -> None:
    files = {
        "binary": (b"\0\1\2", "memories/binary.md is not a note: not a text file"),
        "wide": ("---\ntitle: T\n---\nBody.".encode("utf-16"), "UTF-16; save it as UTF-8"),
        "broken": (b"---\ntitle: T\nx: [1\n---\nBody.", "memories/broken.md:3: "),
    }
    for name, (data, problem) in files.items():
        file = vault.write(f"memories/{name}.md", data)
        assert problem in complaint(co("edit", name, "--title", "x"))
        assert file.read_bytes() == data
    for command in ("show", "forget"):
        assert "not a text file" in complaint(co(command, "binary"))


@pytest.mark.parametrize("owner", [".config/co-cli", ".co-cli"])
def test_a_wrong_settings_file_is_named_with_the_line(
    co: Co, home: Path, owner: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = home / owner / "settings.toml"
    file.parent.mkdir(parents=True)
    monkeypatch.delenv("CO_VAULT", raising=False)
    broken, unknown = '# mine\nknowledge_search_backend = "fts5\n', '# mine\nsearch_backend = "fts5"\n'

    for text, problem in ((broken, "not valid TOML"), (unknown, "did you mean knowledge_search_backend?")):
        file.write_text(text)
        for command in (("search", "x"), ("config", "show"), ("doctor",), ("demo", "x")):
            said = complaint(co(*command))
            assert f"{file}:2: " in said
            assert problem in said


def test_words_that_are_not_utf_8_do_no_harm(co: Co, vault: Vault, tmp_path: Path) -> None:
    odd = "caf\udce9"  # how Python hands over the byte E9
    assert co("remember", odd, "--title", odd, "--tag", odd, "--category", odd).code == 0
    assert "\\u" not in vault.read("memories/caf.md")
    assert co("search", odd, "--tag", odd, "--where", f"x={odd}", "--category", odd).code == 1
    complaint(co("config", "show", odd))
    (tmp_path / odd).mkdir()
    assert "not valid UTF-8" in complaint(co("list", "--vault", str(tmp_path / odd)))
    vault.write("memories/tea\udce9.md", "Coffee.")
    assert co("show", "tea\udce9").out.endswith("Coffee.\n")


def test_a_current_folder_that_was_deleted_is_one_line(co: Co, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "gone").mkdir()
    monkeypatch.chdir(tmp_path / "gone")
    (tmp_path / "gone").rmdir()

    assert "the current folder was deleted" in complaint(co("list"))


def test_something_broken_is_exit_code_3(co: Co, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")

    for command in (("index", "sync"), ("index", "rebuild")):
        assert str(tmp_path / "file") in complaint(co(*command, "--data-dir", str(tmp_path / "file")), code=3)


def test_help_is_printed_on_standard_output(co: Co) -> None:
    for words in ("--help", "-h", "", "help", "help search", "search --help", "--version", "-V"):
        ran = co(*words.split())
        assert (ran.code, ran.err) == (0, ""), words
        assert ran.out.startswith(("usage: co", "co 0.", "A memory for agents")), words
    every = co("help", "--all").out
    assert (every.count("\n  co ") > 40, every.count("--vault DIR")) == (True, 1)
    assert "co index sync" in co("help", "index").out


def test_help_shows_what_people_use_and_help_all_the_rest_by_subject(co: Co) -> None:
    listed = re.findall(r"^  (\w+) {2,}", co("--help").out.partition("Start here:")[2], re.MULTILINE)
    usual, every = co("search", "--help"), co("search", "--help-all")
    options = [re.findall(r"^  (-.+?)(?:  |$)", ran.out, re.MULTILINE) for ran in (usual, every)]

    assert (len(listed), "search" in listed) == (10, True)
    assert (len(options[0]) <= 6, len(options[1]) > 25) == (True, True)
    assert 'co search "how do we deploy"' in usual.out
    assert f"`co search --help-all` shows {len(options[1]) - len(options[0])} more options" in usual.out
    assert re.findall(r"^(\w+):$", every.out, re.MULTILINE)[2:6] == ["output", "filters", "time", "ranking"]
    assert (every.code, every.err, "--kind" in every.out) == (0, "", False)  # the same as --source
    assert co("help", "search", "--all").out == every.out
