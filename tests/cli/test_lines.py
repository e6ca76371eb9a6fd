"""`co search --lines`: every matching line with its number, as ripgrep prints it."""

from __future__ import annotations

from pathlib import Path

import pytest

from co_cli import KnowledgeBase
from co_cli.searching.matching_lines import MatchingLine
from tests.cli.screen import on_terminal, plain
from tests.command import Co, commit, git
from tests.folder import Vault

POOLS = """---
title: Pools
owner: "[[Mara Lind]]"
---
# Deploys

Nothing here.
The blue
pool deploys first, blue before green.

Seven.

Eight.
Deploying ä deploy.
"""


@pytest.fixture(autouse=True)
def pools(vault: Vault) -> None:
    vault.write("articles/pools.md", POOLS)
    vault.write("memories/rotation.md", "---\ntags: [ops]\ncreated: 2026-03-01\n---\nRotation: we deploy on Mondays.\n")
    vault.write("memories/soup.md", "Soup is on Thursdays.\n")


def test_lines_in_a_pipe_have_path_and_number(co: Co, vault: Vault) -> None:
    article, memory = vault.path("articles/pools.md"), vault.path("memories/rotation.md")

    ran = co("search", "deploy", "--lines")

    of_article = [f"{article}:{line}" for line in ("5:# Deploys", "9:pool deploys first, blue before green.")]
    of_article.append(f"{article}:14:Deploying ä deploy.")
    of_memory = [f"{memory}:5:Rotation: we deploy on Mondays."]
    assert ran.out.splitlines() in ([*of_article, *of_memory], [*of_memory, *of_article])
    assert (ran.code, ran.err) == (0, "")
    assert co("search", "deploy", "--lines", "--tag", "ops").out.splitlines() == of_memory
    assert co("search", "deploy tag:ops", "--lines").out.splitlines() == of_memory
    assert co("search", "deploy", "--lines", "--until", "2026-04").out.splitlines() == of_memory
    assert co("search", "deploy", "--lines", "--kind", "article").out.splitlines() == of_article
    assert len(co("search", "deploy soup", "--lines", "-n", "1").out.splitlines()) in (1, 3)
    assert co("search", "zeppelin", "--lines") == (1, "", "")


@pytest.mark.parametrize("backend", ["hybrid", "fts5", "grep"])
def test_context_surrounds_what_matches(co: Co, vault: Vault, backend: str) -> None:
    path = vault.path("articles/pools.md")

    out = co("search", '"blue pool" Eight', "-C", "1", "--backend", backend).out

    numbered = ["7-Nothing here.", "8:The blue", "9:pool deploys first, blue before green.", "10-", "--"]
    numbered += ["12-", "13:Eight.", "14-Deploying ä deploy."]
    assert out.splitlines() == [
        line if line == "--" else f"{path}{line.lstrip('1234567890')[0]}{line}" for line in numbered
    ]


@pytest.mark.parametrize(
    ("query", "lines"),
    [
        ('"Deploying"', {14}),
        ('"rotate"', set[int]()),
        ("mara", {3}),
        ("/d[a-z]+s f/", {9}),
        ("seven OR eight", {11, 13}),
        ("ploying", {14}),
    ],
)
def test_whatever_a_query_asks_for_is_in_its_lines(kb: KnowledgeBase, query: str, lines: set[int]) -> None:
    kb.sync()

    found = kb.local.lines(query)

    assert {line.number for file in found.files for line in file.lines} == lines
    assert found.state == ("found" if lines else "absent")


@pytest.mark.parametrize(
    ("query", "lines"),
    [('task-todo:""', {1}), ("task:call", {1, 2}), ("line:(oaks call)", {1, 2, 3}), ("task-done:oaks", {2})],
)
def test_lines_and_tasks_that_are_asked_for_are_the_only_ones(
    kb: KnowledgeBase, vault: Vault, query: str, lines: set[int]
) -> None:
    text = "- [ ] call Mara about oaks\n- [x] call Ben about oaks\n- oaks and call\noaks\ncall\nwalnuts\n"
    vault.write("memories/tasks.md", text)
    kb.sync()

    (file,) = kb.local.lines(query).files

    assert {line.number for line in file.lines} == lines


def test_parts_of_words_are_lines_of_grep(co: Co) -> None:
    assert len(co("search", "eploy", "--lines", "--backend", "grep").out.splitlines()) == 4


def test_case_counts_where_it_is_asked_for(kb: KnowledgeBase) -> None:
    kb.sync()

    found = kb.local.lines("deploy", case=True)

    assert {line.text for file in found.files for line in file.lines} == {
        "Deploying ä deploy.",
        "Rotation: we deploy on Mondays.",
    }


def test_python_gets_lines_with_marks(kb: KnowledgeBase) -> None:
    kb.sync()

    (file,) = kb.local.lines("deploy", around=1, sources="article").files

    assert file.ref == "article:pools"
    assert file.lines[-1] == MatchingLine(14, "Deploying ä deploy.", ((0, 9), (12, 18)))
    assert file.lines[-2] == MatchingLine(13, "Eight.")


def test_editors_get_a_column_in_bytes_for_each_match(co: Co, vault: Vault) -> None:
    path = vault.path("articles/pools.md")

    lines = co("search", "deploy", "--vimgrep", "--kind", "article").out.splitlines()

    assert lines[-2:] == [f"{path}:14:1:Deploying ä deploy.", f"{path}:14:14:Deploying ä deploy."]


def test_json_has_files_with_lines(co: Co, vault: Vault) -> None:
    found = co("search", "mondays", "--lines", "--json").json

    line = {"number": 5, "text": "Rotation: we deploy on Mondays.", "marks": [[23, 30]]}
    path = str(vault.path("memories/rotation.md"))
    assert found["files"] == [{"ref": "memory:rotation", "title": "Rotation", "path": path, "lines": [line]}]
    assert found["state"] == "found"


@pytest.mark.medium
def test_a_terminal_shows_each_path_once_and_escapes_control_characters(co: Co, vault: Vault) -> None:
    path = vault.write("memories/odd.md", "A zeppelin \x1b[31mred.\n\nAnother zeppelin.\n")

    drawn = on_terminal(co.folder, "search", "zeppelin", "--lines", PAGER="cat")

    assert plain(drawn).splitlines() == [str(path), "1:A zeppelin \\x1b[31mred.", "3:Another zeppelin."]
    assert "Nothing found: no line of 4 notes matches." in on_terminal(co.folder, "search", "xylophone", "--lines")


def test_only_turns_of_that_time_and_documents_have_lines(co: Co, vault: Vault, tmp_path: Path) -> None:
    turns = "## Ben · 2026-11-02T09:00:00Z\n\nThe bridge?\n\n## Ann · 2026-11-05T09:00:00Z\n\nThe bridge!\n"
    vault.write("conversations/talk.md", turns)
    folder = tmp_path / "handbook"
    folder.mkdir()
    (folder / "bridge.html").write_text("<html><body><h1>Top</h1><p>A gangway of oak.</p></body></html>")
    co("add", str(folder))

    talk = co("search", "bridge", "--lines", "--since", "2026-11-04").out
    assert talk == f"{vault.path('conversations/talk.md')}:7:The bridge!\n"
    assert co("search", "gangway", "--lines").out.endswith("A gangway of oak.\n")


def test_lines_of_the_past_are_those_of_the_past(co: Co, vault: Vault) -> None:
    git(vault.root, "init", "-q")
    vault.write("memories/door.md", "The door code is 1111.\n")
    commit(vault.root, "Door", at=1_700_000_000)
    vault.write("memories/door.md", "New line.\nThe door code is 2222.\n")

    out = co("search", "door code", "--lines", "--as-of", "2023-12-01").out

    assert out.endswith(":1:The door code is 1111.\n")


def test_what_lines_cannot_do_is_said_in_one_line(co: Co) -> None:
    for given, said in (
        (("--server", "http://127.0.0.1:1"), "--lines: the files are on the server"),
        (("--paths",), "--lines and --paths: choose one"),
    ):
        ran = co("search", "deploy", "--lines", *given)
        assert (ran.code, ran.out, ran.err.count("\n")) == (2, "", 1)
        assert said in ran.err
