"""What a person sees on a terminal, and what a program sees in a pipe."""

from __future__ import annotations

import io
import os
import re
from datetime import UTC, datetime
from pathlib import Path

import pytest

from co_cli.cli.terminal import ProgressBar, age, count_of, size_of
from tests.cli.screen import ESCAPES, on_terminal, plain, widest
from tests.command import Co, write_script
from tests.folder import Vault

NOW = datetime(2026, 11, 14, 12, tzinfo=UTC).timestamp()


@pytest.fixture
def trees(vault: Vault) -> None:
    vault.write(
        "memories/oaks-live-for-centuries-and-their-wood-is-hard-and-heavy.md",
        "---\ntitle: Oaks live for centuries and their wood is hard, heavy and good for ships\ntags: [tree, old]\n---\n"
        + "Oaks live for centuries, and whoever plants one plants it for somebody else. " * 5,
    )
    vault.write("memories/sakura.md", "---\ntitle: 桜\n---\n" + "春になると、公園の桜が一斉に咲きます。centuries " * 6)


def test_co_alone_fits_a_small_terminal_with_the_line_to_begin_with(tmp_path: Path) -> None:
    shown = plain(on_terminal(tmp_path)).splitlines()

    assert shown[2].startswith('  co demo "who decides what ships"')
    assert "`co help --all` lists all of them" in shown[-1]
    assert (len(shown) < 24, max(map(len, shown)) <= 80) == (True, True)


@pytest.mark.medium
def test_a_message_is_broken_between_words_and_never_in_a_command_or_a_path(co: Co) -> None:
    drawn = plain(on_terminal(co.folder, "chat", "hello"))
    lines = drawn.splitlines()

    assert "`co config set model ollama:qwen3`" in drawn
    assert (len(lines) > 1, max(map(len, lines)) <= 80) == (True, True)
    assert " ".join(lines) == co("chat", "hello").err.strip()
    checked = plain(on_terminal(co.folder, "doctor", columns=50)).splitlines()
    assert {line[:4] for line in checked} <= {"ok", "ok  ", "    "}, "what goes on is below what it goes on with"
    folder = co.folder / ("long" * 20)
    assert f"\n{folder}" in plain(on_terminal(co.folder, "list", "--vault", str(folder)))


@pytest.mark.medium
@pytest.mark.usefixtures("trees")
def test_a_terminal_gets_colour_and_lines_that_fit(co: Co, vault: Vault) -> None:
    for columns, shown in ((80, 80), (50, 50), (0, 80)):  # a terminal may not know its width
        drawn = on_terminal(co.folder, "search", "centuries", "--backend", "fts5", columns=columns)

        assert "\x1b[1;33mcenturies\x1b[0m" in drawn
        lines = [line for line in plain(drawn).split("\n") if "memory:" not in line]  # a ref is never broken
        assert shown - 20 < widest("\n".join(lines)) <= shown
        assert [line for line in lines if line[:1].isalpha()] == []  # a long title is indented like what follows
    for environ in ({"NO_COLOR": "1"}, {"TERM": "dumb"}):
        assert not ESCAPES.search(on_terminal(co.folder, "list", **environ))


@pytest.mark.medium
def test_what_a_terminal_cuts_from_a_snippet_is_marked(co: Co, vault: Vault) -> None:
    words = [f"word{number}" for number in range(24)]
    vault.write("memories/ink.md", " ".join([*words, "ink", *words]))

    lines = plain(on_terminal(co.folder, "search", "ink", columns=60)).splitlines()
    shown = [line.strip() for line in lines if "word" in line and "memory:" not in line][-2:]

    assert (shown[0][0], shown[1][-1]) == ("…", "…")
    assert max(map(len, lines)) <= 60


@pytest.mark.medium
def test_a_terminal_gets_the_best_hits_and_whole_words_are_highlighted(co: Co, vault: Vault) -> None:
    vault.write(
        "memories/ink.md", "---\ntitle: Ink\n---\n" + "Filler without any meaning. " * 20 + "I mix ink in inns."
    )
    for number in range(8):
        vault.write(f"memories/oak{number}.md", f"---\ntitle: Oak {number}\n---\nOak trees grow in the park.")
    vault.write("memories/pen.md", "---\ntitle: Pens\n---\nA pen needs ink.")

    best, named = (on_terminal(co.folder, "search", query) for query in ("how do I mix ink", "pens"))
    five = plain(on_terminal(co.folder, "search", "oak trees"))

    assert (best.count("memory:"), named.count("memory:")) == (2, 2)
    assert named.index("memory:pen") < named.index("merely near") < named.index("memory:ink")
    assert re.findall(r"\x1b\[1;33m(.+?)\x1b", best) == ["ink", "mix", "ink"]
    assert [line for line in plain(best).splitlines() if "Filler" in line][1:] == []  # two lines, one with the matches
    assert (five.count("memory:"), "5. Oak" in five) == (5, True)
    assert plain(on_terminal(co.folder, "search", "oak trees", "-n", "7")).count("memory:") == 7
    assert len(co("search", "oak trees", "--json").json["hits"]) > 5


@pytest.mark.medium
@pytest.mark.usefixtures("trees")
def test_titles_are_links_in_terminals_that_show_links(co: Co, vault: Vault) -> None:
    file = vault.write("memories/blue oak.md", "Blue oaks.")
    linked = f"\x1b]8;;file://{str(file).replace(' ', '%20')}\x1b\\"

    assert linked in on_terminal(co.folder, "search", "blue oaks", WEZTERM_PANE="0")
    assert "\x1b]8" not in on_terminal(co.folder, "search", "blue oaks")
    vault.path(".obsidian").mkdir()
    drawn = on_terminal(co.folder, "search", "blue oaks", WEZTERM_PANE="0")
    assert f"\x1b]8;;obsidian://open?path={str(file).replace('/', '%2F').replace(' ', '%20')}\x1b" in drawn


@pytest.mark.medium
@pytest.mark.usefixtures("trees")
def test_what_is_longer_than_the_screen_is_paged_on_a_terminal_only(
    co: Co, vault: Vault, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PAGER", "sed s/^/paged:/")
    vault.write("articles/long.md", "Elms fall ill.\n\n" * 12)
    for number in range(25):
        vault.write(f"articles/{number}.md", "Oaks live long.")

    assert plain(on_terminal(co.folder, "show", "long")).startswith("paged:Long  article:long")
    assert "\npaged:article:7" in plain(on_terminal(co.folder, "list", "article"))
    assert plain(on_terminal(co.folder, "show", "sakura")).startswith("桜  memory:sakura")
    assert plain(on_terminal(co.folder, "list", "memory")).startswith("memory:")
    assert co("list", "article").out.startswith("article:")


@pytest.mark.medium
def test_a_long_list_is_shown_if_the_pager_does_not_exist(co: Co, vault: Vault, tmp_path: Path) -> None:
    write_script(tmp_path / "bin" / "less", "test -t 0 || exec cat")  # the real one waits for a key
    for number in range(30):
        vault.write(f"articles/{number}.md", "Oaks live long.")
    missing = {"PATH": f"{tmp_path / 'bin'}:{os.environ['PATH']}", "PAGER": "no-such-pager -R", "MANPAGER": "neither"}

    assert plain(on_terminal(co.folder, "list", "article", **missing)).count("article:") == 30


@pytest.mark.usefixtures("trees")
def test_a_pipe_gets_neither_colour_nor_wrapped_lines(co: Co, monkeypatch: pytest.MonkeyPatch) -> None:
    ran = co("search", "whoever plants", "--backend", "fts5")

    assert "\x1b" not in ran.out
    assert max(map(len, ran.out.splitlines())) > 80
    monkeypatch.setenv("CLICOLOR_FORCE", "1")
    assert "\x1b[" in co("search", "oaks").out


def test_ages_counts_and_sizes_are_in_words() -> None:
    ages = {
        "2026-11-14T11:00:00Z": "today",
        "2026-11-13T13:00:00Z": "yesterday",
        "2026-11-15T00:00:00Z": "tomorrow",
        "2026-11-12T13:00:00Z": "2 days ago",
        "2026-11-01T11:00:00Z": "1 week ago",
        "2026-09-01T11:00:00Z": "2 months ago",
        "2020-11-14T11:00:00Z": "6 years ago",
        "2026-11-17T13:00:00Z": "in 3 days",
        "not a moment": "not a moment",
    }
    assert {moment: age(moment, NOW) for moment in ages} == ages
    counts = {
        (1, "note"): "1 note",
        (2000, "note"): "2,000 notes",
        (2, "memory"): "2 memories",
        (0, "search"): "0 searches",
    }
    assert {given: count_of(*given) for given in counts} == counts
    sizes = {10: "10 bytes", 1500: "1.5 KB", 2_500_000: "2.5 MB", 3_000_000_000: "3.0 GB"}
    assert {size: size_of(size) for size in sizes} == sizes


@pytest.mark.parametrize(
    ("term", "is_terminal", "seconds", "shown"),
    [
        ("xterm", True, 10, "\r\x1b[K[############............] indexing 500 of 1,000, about 10 s left"),
        ("xterm", True, 0, ""),
        ("xterm", False, 10, "indexing 500 of 1,000, about 10 s left\n"),
        ("xterm", False, 5, ""),
        ("dumb", True, 10, "indexing 500 of 1,000, about 10 s left\n"),
    ],
)
def test_long_work_shows_its_progress_as_a_bar_where_it_can_be_erased_and_as_lines_elsewhere(
    term: str, is_terminal: bool, seconds: int, shown: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TERM", term)
    stream = io.StringIO()
    stream.isatty = lambda: is_terminal  # type: ignore[method-assign]
    bar = ProgressBar("indexing", stream)
    bar.started -= seconds
    bar.shown -= seconds
    bar(500, 1000)
    bar(501, 1000)

    assert stream.getvalue() == shown


def test_a_log_gets_a_line_once_it_is_clear_that_work_takes_long() -> None:
    stream = io.StringIO()
    bar = ProgressBar("indexing", stream, "files")
    bar.passages(0, 10_000)
    assert stream.getvalue() == ""

    bar.started -= 2
    bar.passages(100, 10_000)
    bar.passages(200, 10_000)

    assert stream.getvalue() == "meaning: 100 of 10,000 passages, about 3 min left\n"


def test_a_bar_says_what_it_counts_and_is_there_before_the_first_of_many(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERM", "xterm")
    stream = io.StringIO()
    stream.isatty = lambda: True  # type: ignore[method-assign]
    bar = ProgressBar("adding", stream, "files")

    bar(0, 5_590)

    assert stream.getvalue().partition("] ")[2] == "adding 0 of 5,590 files"
    few = ProgressBar("adding", io.StringIO(), "files")
    few.visible = True
    few(0, 3)
    assert not few.drawn
