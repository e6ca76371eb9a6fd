"""The lines of a hit contain its text, its marks are the matched words, and its ref opens the note."""

from __future__ import annotations

import time

import pytest

from co_cli.entrance.knowledge_base import KnowledgeBase
from co_cli.ground.hits import Hit
from co_cli.notes.refs import lines_of
from tests.folder import Vault

GUIDE = """---
title: Deploying
tags: [ops]
---
# Deploying

How we ship.

## Rolling back

Press the red button.

```sh
# not a heading

./rollback --now
```

## Afterwards

Write a postmortem about the outage.
"""


def lines_at(vault: Vault, hit: Hit) -> list[str]:
    text = vault.read(str(vault.path(hit.path).relative_to(vault.root)))
    return text.replace("\r\n", "\n").split("\n")[hit.lines[0] - 1 : hit.lines[1]]


def marked(hit: Hit) -> list[str]:
    return [hit.snippet[start:end] for start, end in hit.marks]


@pytest.mark.parametrize(
    ("ending", "head", "backend"), [("\n", True, "hybrid"), ("\r\n", True, "grep"), ("\r\n", False, "fts5")]
)
def test_the_lines_of_an_article_s_hit_hold_its_text(
    kb: KnowledgeBase, vault: Vault, ending: str, head: bool, backend: str
) -> None:
    text = GUIDE if head else GUIDE.split("---\n", 2)[2]
    vault.write("articles/guides/deploy.md", text.replace("\n", ending))
    kb.sync()

    hit = kb.search("postmortem outage", backend=backend).hits[0]

    assert lines_at(vault, hit)[0] == "## Afterwards"
    assert lines_at(vault, hit)[-1] == "Write a postmortem about the outage."
    assert hit.heading == "Afterwards"
    assert hit.ref == f"article:guides/deploy#L{hit.lines[0]}-{hit.lines[1]}"
    assert lines_of(hit.ref) == hit.lines
    assert marked(hit) == ["postmortem", "outage"]


def test_every_ref_opens_its_note(kb: KnowledgeBase, vault: Vault) -> None:
    paths = [
        "memories/a b.md",
        "memories/ä.md",
        "articles/x/y.md",
        "inbox/loose.md",
        "top.markdown",
        "memories/two\nlines.md",
        *(f"memories/{name}" for name in ("a.markdown", "a.markdown.md", "x.md", "x.md.md", "a#L1.md", "a.md")),
    ]
    for path in paths:
        vault.write(path, "The word oak.")
    kb.sync()

    hits = kb.search("oak", limit=20, backend="fts5").hits

    assert {kb.note(hit.ref).path for hit in hits} == set(paths)
    assert {hit.path for hit in hits} == {str(vault.path(path)) for path in paths}


def test_a_note_has_one_hit_however_many_of_its_sections_match(kb: KnowledgeBase, vault: Vault) -> None:
    sections = "".join(f"## Deploy {number}\n\nDeploy deploy deploy number {number}.\n\n" for number in range(120))
    vault.write("articles/many.md", f"# Deploys\n\n{sections}")
    for number in range(8):
        vault.write(
            f"memories/{number}.md", f"Among many other things, number {number} also mentions one deploy at its end."
        )
    kb.sync()

    for backend in ("fts5", "grep", "hybrid"):
        refs = [hit.path for hit in kb.search("deploy", limit=9, backend=backend).hits]
        assert len(refs) == len(set(refs)) == 9, backend


def test_the_marks_of_a_snippet_are_the_matched_words(kb: KnowledgeBase, vault: Vault) -> None:
    vault.write("memories/note.md", "Press the red button, then " + "wait and " * 60 + "drink a Café in 東京都.")
    kb.sync()

    expected = {"button": ["button"], "BUTTONS pressing": ["Press", "button"], '"red button"': ["red button"]}
    for query, words in {**expected, "東京": ["東京"], "cafe": ["Café"], "/b[a-z]+n/": ["button"]}.items():
        assert marked(kb.search(query, backend="fts5").hits[0]) == words


def test_a_note_that_says_one_word_over_and_over_is_found_at_once(kb: KnowledgeBase, vault: Vault) -> None:
    vault.write("memories/echo.md", "hello " * 40_000 + "and goodbye")
    kb.sync()
    started = time.process_time()

    hit = kb.search("hello").hits[0]

    assert hit.ref == "memory:echo"
    assert hit.snippet.startswith("hello hello")
    assert time.process_time() - started < 5
