"""Links, inline tags and headings, and what only looks like them."""

from __future__ import annotations

import pytest

from co_cli.notes.markdown import headings, inline_tags, links


@pytest.mark.parametrize(
    ("body", "targets"),
    [
        ("see [[oak]]", ("oak",)),
        ("see [[oak|the tree]] and [[oak#roots]]", ("oak",)),
        ("see [the tree](oak.md)", ("oak.md",)),
        ("see [the tree](trees/oak.md#roots 'a title')", ("trees/oak.md",)),
        ("see [the tree](<old%20oak.md>) and [x](old%20oak.md)", ("old oak.md",)),
        ("![[picture.png]] ![p](picture.png)", ("picture.png",)),
        ("[site](https://example.org) [mail](mailto:a@b.c) [here](#below) [cdn](//x.y/z)", ()),
        ("`[[code]]` and\n```\n[[fenced]]\n```\n[[oak]]", ("oak",)),
        ("[[]] [[ ]] []()", ()),
        ("[[two\nlines]]", ()),
    ],
)
def test_links_to_other_notes_are_found(body: str, targets: tuple[str, ...]) -> None:
    assert links(body) == targets


@pytest.mark.parametrize(
    ("body", "tags"),
    [
        ("about #deploy and #Ops", ("deploy", "Ops")),
        ("#deploy at the start, (#ops) in brackets", ("deploy", "ops")),
        ("#ops/deploy/blue", ("ops/deploy/blue",)),
        ("#größe #日本", ("größe", "日本")),
        ("issue #12 and #2026", ()),
        ("#2026-plan", ("2026-plan",)),
        ("# Heading\n## Another", ()),
        ("a#b c##d &#39;", ()),
        ("https://example.org/#top [x](page.md#part)", ()),
        ("`#code`\n```\n#include <a>\n```\n#real", ("real",)),
        ("~~~\n#fenced\n~~~", ()),
        ("#tag. #tag, #tag", ("tag",)),
    ],
)
def test_inline_tags_are_found(body: str, tags: tuple[str, ...]) -> None:
    assert inline_tags(body) == tags


def test_headings_know_their_level_text_and_line() -> None:
    text = "# One\n\n```\n# code\n```\n### Three ###\n#nospace\n    # indented code\n~~~\n## no\n~~~\n## Two"

    assert [tuple(heading) for heading in headings(text.split("\n"))] == [
        (1, "One", 0),
        (3, "Three", 5),
        (2, "Two", 11),
    ]


def test_an_unclosed_fence_reaches_to_the_end() -> None:
    assert list(headings(["```", "# no", "", "# no"])) == []
    assert inline_tags("```\n#no\n") == ()
