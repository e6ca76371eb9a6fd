"""Blocks, headings, links and inline tags, and what only looks like them."""

from __future__ import annotations

import pytest

from co_cli.notes.markdown import beginning, blocks, headings, inline_tags, plain_snippet
from co_cli.notes.note import read_note
from co_cli.notes.wikilinks import find_links, resolve_link

PATHS = ["Plan.md", "Work/Plan.md", "Work/Alpha/Plan.md", "Home/Plan.md", "Home/Garden/Plan.md"]


LINKS = {
    "see [[oak|the tree]] and [[oak#roots]]": ("oak",),
    "see [the tree](trees/oak.md#roots 'a title')": ("trees/oak.md",),
    "see [the tree](<old%20oak.md>) and [x](old%20oak.md)": ("old oak.md",),
    "![[picture.png]] ![p](picture.png)": ("picture.png",),
    "[site](https://example.org) [mail](mailto:a@b.c) [here](#below) [cdn](//x.y/z)": (),
    "`[[code]]` and\n```\n[[fenced]]\n```\n[[oak]]": ("oak",),
    "[[]] [[ ]] []() [[two\nlines]]": (),
}


TAGS = {
    "#deploy at the start, (#Ops) in brackets": ("deploy", "Ops"),
    "#ops/deploy/blue": ("ops/deploy/blue",),
    "#größe #日本 #2026-plan": ("größe", "日本", "2026-plan"),
    "issue #12 and #2026, a#b c##d &#39;": (),
    "# Heading\n## Another": (),
    "https://example.org/#top [x](page.md#part)": (),
    "`#code`\n```\n#include <a>\n```\n#real. #real, #real": ("real",),
    "~~~\n#fenced": (),
    "Links are #0969da or #FFF, hover #8250dfcc, borders #ddd, #fafafa, #aabbcc, #f00 and #39c.": (),
    "#e2e #2fa #b2b #cafe #facade #decade #3d #abc #c0ffee-plan": (
        "e2e", "2fa", "b2b", "cafe", "facade", "decade", "3d", "abc", "c0ffee-plan",
    ),
    "- a list\n\n    ```css\n    a { color: #link }\n    ```\n- #real": ("real",),
    "> ```\n> x: #quoted\n> ```\n> #real": ("real",),
    "Text.\n\n    #include <a>\n\n#real": ("real",),
    "- item\n    #real goes on": ("real",),
    "- ```npm i``` and #real": ("real",),
    "<pre>#html\n#b</pre> <code>#c</code> <div>\n#real</div>": ("real",),
}  # fmt: skip


def test_links_and_inline_tags_are_found_outside_of_code() -> None:
    assert {body: find_links(body) for body in LINKS} == LINKS
    assert {body: inline_tags(body) for body in TAGS} == TAGS


def test_headings_know_their_level_text_and_line() -> None:
    text = "# One\n\n```\n# code\n```\n### Three ###\n#nospace\n    # indented code\n~~~\n## no\n~~~\n## Two"

    assert [tuple(heading) for heading in headings(text.split("\n"))] == [
        (1, "One", 0),
        (3, "Three", 5),
        (2, "Two", 11),
    ]


def test_blocks_are_what_an_author_wrote_as_one_thing() -> None:
    for text, kinds in (
        ("one\ntwo\n\nthree", ["paragraph 1-2", "paragraph 4-4"]),
        ("one\n# two\nthree", ["paragraph 1-1", "heading 2-2", "paragraph 3-3"]),
        ("Title\n===\ntext", ["heading 1-2", "paragraph 3-3"]),
        ("Part\n---\ntext", ["heading 1-2", "paragraph 3-3"]),
        ("two\nlines\n---\ntext", ["paragraph 1-4"]),
        ("\n---\n\ntext", ["paragraph 2-2", "paragraph 4-4"]),
        ("> said\n---", ["paragraph 1-2"]),
        ("```\na\n\n# b\n```\nc", ["code 1-5", "paragraph 6-6"]),
        ("```\na\n```python\nb\n```\nc", ["code 1-5", "paragraph 6-6"]),
        ("~~~\na\n```\n", ["code 1-4"]),
        ("    a\n\n\tb\n\nc", ["code 1-3", "paragraph 5-5"]),
        ("text\n    goes on", ["paragraph 1-2"]),
        ("- a\n- b\n\n- c\n\ntext", ["list 1-4", "paragraph 6-6"]),
        ("- a\n\n  more\n\n      code\nlazy", ["list 1-6"]),
        ("- a\ngoes on\n1. b\n# c", ["list 1-3", "heading 4-4"]),
        ("1. a\n   ```\n   x\n\n   # y\n   ```\n2. b", ["list 1-7"]),
        ("- a\n  ```\n  x\n\ntext", ["list 1-3", "paragraph 5-5"]),
        ("* * *\n- - -", ["paragraph 1-2"]),
        ("text\n- a", ["paragraph 1-1", "list 2-2"]),
        ("| a | b |\n|---|:-:|\n| 1 | 2 |\ntext", ["table 1-3", "paragraph 4-4"]),
        ("so:\na | b\n- | -\n1 | 2", ["paragraph 1-1", "table 2-4"]),
        ("a | b\nno table", ["paragraph 1-2"]),
        ("#tag\n#", ["paragraph 1-2"]),
        ("", []),
    ):
        assert [f"{block.kind} {block.start + 1}-{block.end}" for block in blocks(text.split("\n"))] == kinds, text


def test_a_link_means_what_it_means_in_obsidian() -> None:
    expected = {
        ("plan", "Index.md"): "Plan.md",
        ("Plan.md", "Index.md"): "Plan.md",
        ("Plan#^block", "Index.md"): "Plan.md",
        ("Plan", "Work/Index.md"): "Plan.md",  # a path from the root comes first
        ("Alpha/Plan", "Index.md"): "Work/Alpha/Plan.md",
        ("./Plan", "Work/Index.md"): "Work/Plan.md",
        ("../Plan", "Home/Garden/Index.md"): "Home/Plan.md",
        ("/Home/Plan", "Work/Index.md"): "Home/Plan.md",
        ("Elsewhere/Plan", "Index.md"): None,
        ("lan", "Index.md"): None,
    }

    assert {asked: resolve_link(*asked, PATHS) for asked in expected} == expected
    near = [resolve_link("Plan", linking, PATHS[1:]) for linking in ("Home/Garden/Index.md", "Index.md")]
    assert near == ["Home/Garden/Plan.md", "Home/Plan.md"], "the own folder first, then the shortest path"


def test_a_title_is_plain_text() -> None:
    titles = {
        "[Tor Project](https://www.torproject.org/)": "Tor Project",
        "[Wiki (en)](https://en.wikipedia.org/wiki/Tor_(network)) and [two][ref]": "Wiki (en) and two",
        '[![Build](b.svg)](https://ci.example.org "CI") co-cli': "Build co-cli",
        "**Bold** and *soft*, __both__ ***three*** of `get_width`": "Bold and soft, both three of get_width",
        "[[Mara Lind|Mara]] asks [[Jonas]]": "Mara asks Jonas",
        "snake_case_name, 2 * 3 * 4, array[0] and [draft]": "snake_case_name, 2 * 3 * 4, array[0] and [draft]",
        "C* and __init__.py": "C* and __init__.py",
    }

    for written, title in titles.items():
        assert read_note("articles/a.md", f"# {written}\n\nText.".encode()).title == title
        assert read_note("articles/a.md", f"---\ntitle: '{written}'\n---\nText.".encode()).title == title
    assert read_note("articles/a.md", b"# ![](x.png)\n\n# Real\n").title == "Real"


BEGINNINGS = {
    "# A title\n\nThe **blue** pool takes [traffic](x.md) first, see [[green|the other]].": (
        "The blue pool takes traffic first, see the other."
    ),
    "![[photo.png]] ![A (big) tree](tree.png)\nIt stands.": "It stands.",
    "- [ ] Paint it\n- [x] Wash it\n1. Sell it": "Paint it Wash it Sell it",
    "> [!note] Beware\n> of the ==dog==.": "Beware of the dog.",
    "| a | b |\n| --- | :-: |\n| 1 | 2 |": "a · b 1 · 2",
    "```\ncode\n```\nText.[^1] <b>Bold</b> %%hidden%%end\n\n#tag #other": "Text. Bold end",
    "one two three four five six seven eight": "one two three four five six…",
    "#tag": "",
}


@pytest.mark.parametrize("body", BEGINNINGS)
def test_the_beginning_of_a_text_is_as_markdown_shows_it(body: str) -> None:
    assert beginning(body, 100 if "eight" not in body else 30) == BEGINNINGS[body]


@pytest.mark.parametrize(
    ("snippet", "shown"),
    [
        ("…see [[people/mara|«Mara»]] and **«bold» _it_**…", "…see «Mara» and «bold» it…"),
        (
            "## «Rolling» back - [ ] water the *«plants»* [the «doc»](a.md)",
            "«Rolling» back water the «plants» the «doc»",
        ),
        ("> [!note]- «Title» of ==«it»==", "«Title» of «it»"),
        ("| a | b | |---|--:| | «c» | d |", "a | b |  | «c» | d |"),
        ("said[^1] «so» ~~not~~ [^1]: «why»", "said «so» not «why»"),
        ("2 > 1, a * b * c, snake_case, a == b, #«tag»", "2 > 1, a * b * c, snake_case, a == b, #«tag»"),
        ("[«a](b) c»", "«a c»"),
    ],
)
def test_a_snippet_is_text_and_its_marks_stay_on_their_words(snippet: str, shown: str) -> None:
    def without_marks(text: str) -> tuple[str, list[tuple[int, int]]]:
        marks: list[tuple[int, int]] = []
        while "«" in text:
            first = text.index("«")
            marks.append((first, text.index("»") - 1))
            text = text.replace("«", "", 1).replace("»", "", 1)
        return text, marks

    text, marks = without_marks(snippet)
    wanted, places = without_marks(shown)

    assert plain_snippet(text, marks) == (wanted, tuple(places))
