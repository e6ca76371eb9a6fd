"""What a person sees on a terminal, and what a program sees in a pipe."""

from __future__ import annotations

import io
from datetime import UTC, datetime

import pytest

from co_cli.cli.terminal import ProgressBar, age, count_of, printable, size_of
from tests.cli.screen import ESCAPES, on_terminal, plain, widest
from tests.command import Co
from tests.vault import Vault

NOW = datetime(2026, 11, 14, 12, tzinfo=UTC).timestamp()


@pytest.fixture
def trees(vault: Vault) -> None:
    vault.write(
        "memories/oaks-live-for-centuries-and-their-wood-is-hard-and-heavy.md",
        "---\ntitle: Oaks live for centuries and their wood is hard, heavy and good for ships\ntags: [tree, old]\n---\n"
        + "Oaks live for centuries, and whoever plants one plants it for somebody else. " * 5,
    )
    vault.write("memories/sakura.md", "---\ntitle: 桜\n---\n" + "春になると、公園の桜が一斉に咲きます。centuries " * 6)


@pytest.mark.usefixtures("trees")
def test_a_terminal_gets_colour_and_lines_that_fit(co: Co, vault: Vault) -> None:
    for command in (["search", "centuries"], ["note", "recall", "centuries"], ["list"], ["config", "show"]):
        drawn = on_terminal(co.folder, *command)

        assert "\x1b[" in drawn
        lines = [
            line for line in plain(drawn).split("\n") if str(vault.root.parent) not in line
        ]  # a path is never broken
        assert 60 < widest("\n".join(lines)) <= 80, command


@pytest.mark.usefixtures("trees")
def test_matched_words_are_highlighted(co: Co) -> None:
    drawn = on_terminal(co.folder, "search", "centuries", "--backend", "fts5")

    assert "\x1b[1;33mcenturies\x1b[0m" in drawn


@pytest.mark.usefixtures("trees")
@pytest.mark.parametrize("environ", [{"NO_COLOR": "1"}, {"TERM": "dumb"}])
def test_colour_can_be_refused(co: Co, environ: dict[str, str]) -> None:
    assert not ESCAPES.search(on_terminal(co.folder, "search", "centuries", "--no-sync", **environ))


@pytest.mark.usefixtures("trees")
def test_a_pipe_gets_neither_colour_nor_wrapped_lines(co: Co) -> None:
    ran = co.process("search", "whoever plants", "--backend", "fts5")

    assert "\x1b" not in ran.out
    assert max(map(len, ran.out.splitlines())) > 80
    assert "\x1b[" in co.process("search", "oaks", env={"CLICOLOR_FORCE": "1"}).out


def test_escape_sequences_in_notes_are_shown_not_obeyed(co: Co, vault: Vault) -> None:
    evil = "\x1b]0;owned\x07\x1b[2J\u202edesrever"
    vault.write(
        "memories/evil.md",
        f'---\ntitle: "Evil \\e[31m title"\ntags: ["\\e[1mtag"]\n---\n# Head {evil}\nzebra {evil} text\n',
    )
    vault.write("articles/evil.md", f"# Title {evil}\n\n## Part {evil}\n\nzebra {evil}\n")
    vault.write("memories/\x1b[31mname.md", "zebra name")

    for command in (
        ["search", "zebra"],
        ["note", "recall", "zebra"],
        ["list"],
        ["show", "memory:evil"],
        ["show", "article:evil"],
        ["index", "sync"],
        ["index", "rebuild"],
    ):
        drawn = plain(on_terminal(co.folder, *command))
        assert not {"\x1b", "\x07", "\u202e", "\x9b"} & set(drawn), command
    assert "\\x1b" in plain(on_terminal(co.folder, "show", "memory:evil"))


@pytest.mark.usefixtures("trees")
def test_a_terminal_that_does_not_know_its_width_gets_80_columns(co: Co) -> None:
    assert 70 < widest(on_terminal(co.folder, "note", "recall", "plants", "--backend", "fts5", columns=0)) <= 80


@pytest.mark.usefixtures("trees")
def test_a_narrow_terminal_is_respected(co: Co) -> None:
    drawn = plain(on_terminal(co.folder, "note", "recall", "plants", "--backend", "fts5", columns=50))

    lines = [line for line in drawn.split("\n") if not line.startswith("  memory:")]  # a ref is never broken
    assert 40 < widest("\n".join(lines)) <= 50


@pytest.mark.parametrize(
    ("moment", "words"),
    [
        ("2026-11-14T11:00:00Z", "today"),
        ("2026-11-13T11:00:00Z", "1 day ago"),
        ("2026-11-01T11:00:00Z", "1 week ago"),
        ("2026-09-01T11:00:00Z", "2 months ago"),
        ("2020-11-14T11:00:00Z", "6 years ago"),
        ("2026-11-17T13:00:00Z", "in 3 days"),
        ("not a moment", "not a moment"),
    ],
)
def test_ages_are_in_words(moment: str, words: str) -> None:
    assert age(moment, NOW) == words


@pytest.mark.parametrize(("count", "words"), [(0, "0 notes"), (1, "1 note"), (2000, "2,000 notes")])
def test_counts_are_in_words(count: int, words: str) -> None:
    assert count_of(count, "note") == words


def test_memories_are_counted_in_english() -> None:
    assert count_of(2, "memory") == "2 memories"


@pytest.mark.parametrize(
    ("size", "words"), [(10, "10 bytes"), (1500, "1.5 KB"), (2_500_000, "2.5 MB"), (3_000_000_000, "3.0 GB")]
)
def test_sizes_are_in_words(size: int, words: str) -> None:
    assert size_of(size) == words


@pytest.mark.parametrize(
    ("text", "shown"),
    [("a\x1b[0m", "a\\x1b[0m"), ("\u202e", "\\u202e"), ("\r", "\\x0d"), ("tab\there", "tab\there"), ("é🎉", "é🎉")],
)
def test_control_characters_are_spelled_out(text: str, shown: str) -> None:
    assert printable(text) == shown


def test_a_progress_bar_says_nothing_about_work_that_takes_a_blink() -> None:
    stream = io.StringIO()
    bar = ProgressBar("indexing", stream)
    bar(10, 10)
    bar.done()

    assert stream.getvalue() == ""


def test_a_progress_bar_tells_how_far_long_work_is() -> None:
    stream = io.StringIO()
    bar = ProgressBar("indexing", stream)
    bar.started -= 10
    bar.shown -= 10
    bar(500, 1000)

    assert stream.getvalue() == "indexing 500 of 1,000 (50 a second, 10 s left)\n"
