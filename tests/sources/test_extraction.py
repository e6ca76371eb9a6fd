"""What is kept of a page, and what of it is not. The pages are in tests/sources/pages, written for these tests."""

from __future__ import annotations

import contextlib
import time
from pathlib import Path

import pytest

from co_cli.ground.errors import PageRefusedError
from co_cli.notes.encoding import decode_page
from co_cli.notes.markdown import inline_tags
from co_cli.notes.wikilinks import find_links
from co_cli.sources.web.addresses import read_url
from co_cli.sources.web.extract import LARGE, Page, extract, read_page
from co_cli.sources.web.fetch import Fetched, Validators

PAGES = Path(__file__).parent / "pages"
URL = "https://site.example/docs/retries/"


def read(body: str | bytes, media_type: str = "text/html", charset: str = "", url: str = URL) -> Page:
    data = body.encode() if isinstance(body, str) else body
    return read_page(Fetched(read_url(url), media_type, charset, data, Validators()))


def read_file(name: str) -> Page:
    return read((PAGES / f"{name}.html").read_bytes())


KEPT = {
    "documentation": (
        "Retries",
        [
            "## Backoff",
            "```python\nfrom quayside import job\n\n@job(max_retries=5)",
            "| `backoff` | 2.0 | factor between two pauses |",
            "[dead letters](https://site.example/docs/queues/#dead-letters)",
        ],
        ["cookies", "Pricing", "Installation guide", "All rights", "analytics", "¶"],
    ),
    "lists": (
        "Packing for a week on the water",
        [
            "- Two woollen jumpers\n- Waterproofs:\n  - jacket with a hood\n",
            "1. Check the oil and the water filter.\n2. ",
        ],
        ["Routes", "Windlass Pro"],
    ),
    "japanese": ("潮見時計の手入れ", ["## 必要な道具", "- 細い筆\n- 中性の石鹸"], ["お問い合わせ", "著作権"]),
    "wiki": (
        "Tidal lock (engineering)",
        ["A **tidal lock** is a [lock](https://site.example/wiki/Lock)", "the tide.[1] Because", "*making a level*"],
        ["Donate", "[edit", "Privacy", "Random article", "Contents"],
    ),
    "readme": (
        "knots",
        [
            "[a bowline](https://harbour.example/mooring/knots/blob/main/docs/bowline.md)",
            "`rope|string`",
            "```shell\npip install knots\nknots tie",
            "- [x] bowline\n- [ ] sheet bend",
        ],
        ["Enterprise", "Issues 12", "Terms"],
    ),
    "forum": (
        "Rusty bilge pump - Old Boats Forum",
        ["bilge pump has seized", "Soak the shaft", "It was the capacitor"],
        ["Register", "BoardWare"],
    ),
}


def test_the_main_text_of_a_page_is_kept_and_what_surrounds_it_is_not() -> None:
    for name, (title, kept, dropped) in KEPT.items():
        page = read_file(name)

        assert page.title == title
        assert [text for text in kept if text not in page.text] == [], name
        assert [text for text in dropped if text in page.text] == [], name
        assert page.text.endswith("\n")


def test_a_page_without_text_of_its_own_is_refused_with_the_reason() -> None:
    expected = {
        (PAGES / "script_only.html").read_text(): "only scripts, which are not run",
        "<html><body><p>Loading...</p><script>go()</script></body></html>": "only scripts, which are not run",
        "<html><head><title>T</title></head><body> </body></html>": "no text in the page",
        "": "no text in the page",
        "<!-- nothing -->": "no text in the page",
        "<html><body><nav><a href='/'>Home</a></nav></body></html>": "no text in the page",
    }
    for markup, words in expected.items():
        with pytest.raises(PageRefusedError, match=words):
            read(markup)
    for body, media_type in ((b"\x89PNG\0\0", ""), (b"a\0b", "text/plain"), (b" \n", "text/plain")):
        with pytest.raises(PageRefusedError):
            read(body, media_type)


def test_a_page_brings_no_tags_no_links_between_notes_and_no_markup_into_the_vault() -> None:
    page = read(
        "<main><p>Vote for #oaks and [[secret-note]], &lt;script&gt;alert(1)&lt;/script&gt;</p><p># no heading</p>"
        "<p>```</p><p>- no item</p><p>1. neither</p><p>a_b * c \\ d</p>"
        "<p><a href='javascript:alert(1)'>click</a> <a href='data:text/html,x'>here</a> <a href='#top'>up</a></p>"
        "<p><img src='data:image/png;base64,AAAA' alt='dot'> <img src='/x.png'></p>"
        "<pre><code>#!/bin/sh\n```\nrm [[x]] #y</code></pre></main>"
    )

    assert inline_tags(page.text) == ()
    assert find_links(page.text) == ()
    assert "<script" not in page.text.replace("\\<script", "")
    assert "javascript:" not in page.text
    assert "data:" not in page.text
    assert "click here up" in page.text
    assert "~~~\n#!/bin/sh\n```\nrm [[x]] #y\n~~~" in page.text
    assert "\\# no heading" in page.text
    assert "\\- no item\n\n1\\. neither" in page.text


MANY = " ".join(f"a{number}" for number in range(200_000))
"""libxml2 takes minutes to read a tag with so many attributes."""
SMALL = {
    "items": "<ol>" + "<li>word</li>" * 3_500,
    "rows of a head": "<table><thead>" + "<tr><td>word</td></tr>" * 2_000,
    "bodies": "<table>" + "<tbody><tr><td>word</td></tr></tbody>" * 1_300,
    "attributes": "<div " + MANY[:49_000] + ">word</div>",
    "quotes": "<blockquote>" * 120 + "<pre>" + "word\n" * 3_000,
    "blanks": "<p>" + "&#32;" * 9_000 + "word</p>",
    "style": f"<p style='{'background:url(x);' * 2_700}'>word</p>",
}


HOSTILE = {
    "divs": "<div>" * 30_000 + "deep down",
    "tables": "<table><tr><td>" * 2_000 + "deep down",
    "lists": "<ul><li>" * 7_000 + "deep down",
    "bold": "<b>" * 20_000 + "deep down",
    "many": "<main>" + "<p>word</p>" * 15_000,
    "entities": "<p>" + "&amp;" * 70_000,
    "link": "<a href='" + "x" * 1_000_000 + "'>long</a>",
    "classes": "<div class='" + "a-" * 500_000 + "'>text</div>",
    "brackets": "<" * 300_000,
    "comments": "<!-- -->" * 20_000 + "x y z",
    "columns": "<main><table>" + "<tr><td colspan=1000>word</td></tr>" * 2_000,
}


def test_a_table_stays_a_table_and_items_keep_their_numbers() -> None:
    cells = "<tr><th>a | b</th><th>c</th></tr><tr><td><p>one</p></td><td><code>x|y</code><br>two</td></tr>"
    items = "<ol start=7><li>a<li><ol><li>b<li>c</ol><li>d</ol>"

    assert (
        read(f"<main><table>{cells}</table></main>").text == "| a \\| b | c |\n| --- | --- |\n| one | `x\\|y` two |\n"
    )
    assert extract(items).text == "7. a\n8. 1. b\n   2. c\n9. d\n"


def test_the_title_is_the_heading_that_the_head_agrees_with_else_what_the_head_says() -> None:
    expected = {
        "<title>A &amp; B\n  | Site</title><h1>A & B</h1><p>Text.</p>": "A & B",
        "<title>Deep page</title><h1>Something else</h1><p>Text.</p>": "Deep page",
        "<meta property='og:title' content='Shared name'><title>x</title><p>Text.</p>": "Shared name",
        "<h1>Only a <em>heading</em></h1><p>Text.</p>": "Only a heading",
        "<p>Text.</p>": "retries",
        "<title>a\x1b[2Jb\x07</title><p>Text.</p>": "a [2Jb",
    }

    assert {markup: read(f"<html>{markup}</html>").title for markup in expected} == expected


# -- encodings ------------------------------------------------------------------------------------------------------


def test_the_encoding_is_found() -> None:
    expected = [
        ("Größe".encode(), "", "Größe"),
        ("Größe".encode(), "iso-8859-1", "GrÃ¶ÃŸe"),  # the server's word counts, even when it is wrong
        ("Größe".encode("latin-1"), "ISO-8859-1", "Größe"),
        ("10 € „so“".encode("cp1252"), "iso-8859-1", "10 € „so“"),
        ("Größe".encode("utf-8-sig"), "iso-8859-1", "Größe"),
        ("Größe".encode("utf-16"), "", "Größe"),
        (b"<meta charset='windows-1251'>" + "Дом".encode("cp1251"), "", "Дом"),
        (b'<meta http-equiv=x content="text/html; charset=gb2312">' + "渡船".encode("gbk"), "", "渡船"),
        (b"<?xml version='1.0' encoding='koi8-r'?>" + "Дом".encode("koi8-r"), "", "Дом"),
        (b"<meta charset=utf-8>" + "Größe".encode("cp1252"), "utf-8", "Größe"),  # who says UTF-8 and is wrong
        (b"Stra\xdfe", "no-such-thing", "Straße"),
        (b"+AGE-", "utf-7", "+AGE-"),
        (b"x\\u0041", "unicode_escape", "x\\u0041"),
        (b"abc", "base64", "abc"),
        (b"abc", "punycode", "abc"),
    ]

    assert [(body, name) for body, name, text in expected if not decode_page(body, name).endswith(text)] == []
    assert "Барометр показывает" in read_file("russian").text, "guessed"


# -- Markdown and plain text ----------------------------------------------------------------------------------------


def test_markdown_stays_as_it_is_except_for_what_would_mean_something_here() -> None:
    page = read(
        "---\ntitle: Their title\nprovenance: user\ntags: [trusted]\n---\n\n# Heading\r\n\r\n"
        "See [docs](docs/a.md) #tag [[note]].\n\n```sh\ncat docs/a.md #tag [[note]]\n```\n",
        "text/markdown",
    )

    assert page.title == "Their title"
    assert page.text == (
        "# Heading\n\nSee [docs](https://site.example/docs/retries/docs/a.md) \\#tag [\\[note]].\n\n"
        "```sh\ncat docs/a.md #tag [[note]]\n```\n"
    )


# -- hostile pages --------------------------------------------------------------------------------------------------


def test_a_hostile_page_is_read_or_refused_and_soon() -> None:
    for name, markup in HOSTILE.items():
        started = time.process_time()
        with contextlib.suppress(PageRefusedError):
            assert len(read(markup).text) < 2 * len(markup), name
        assert time.process_time() - started < 20, name


def test_a_page_of_very_many_elements_is_read_in_a_simpler_way_and_as_harmlessly(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """markdownify took 44 seconds for 190,000 elements."""
    monkeypatch.setattr("co_cli.sources.web.extract.MOST_ELEMENTS", 30)
    rows = "".join(f"<li>Ship {n} came from <a href='/port/{n}'>port {n}</a>.</li>" for n in range(20))
    odd = "<p>#tag [[Note]] &lt;script&gt; `x` C:\\dir *star*</p><p># no heading</p><p>- no item</p><p>3. nor this</p>"
    marked = f"<article><h2>Arrivals</h2><ul>{rows}</ul>{odd}</article>"
    frame = "<nav>Menu</nav><div class='cookie-banner'>Accept</div>"
    aside = "<div>Ask at the pier.</div>"  # kept where the main text is not marked

    for body, rest in ((marked, ""), (marked.replace("article", "div"), "\nAsk at the pier.\n")):
        page = read(f"<html><head><title>Harbour</title></head><body>{frame}{body}{aside}</body></html>")

        assert page.title == "Harbour"
        assert page.text.startswith("## Arrivals\n\n- Ship 0 came from port 0.\n\n- Ship 1 came from port 1.\n")
        assert page.text.endswith("C:\\\\dir \\*star\\*\n\n\\# no heading\n\n\\- no item\n\n3\\. nor this\n" + rest)
        assert (inline_tags(page.text), find_links(page.text)) == ((), ())
        assert "\\<script>" in page.text
        assert "Menu" not in page.text
        assert "Accept" not in page.text


@pytest.mark.medium
def test_a_page_that_stalls_the_parser_is_left_when_the_time_is_up() -> None:
    started = time.monotonic()

    with pytest.raises(PageRefusedError, match=r"not found in 1 seconds \(the setting web_seconds\)"):
        extract(f"<p>Oaks live long.</p><div {MANY}>Beeches do not.</div>", seconds=1)

    assert time.monotonic() - started < 60


@pytest.mark.slow
def test_a_page_that_is_small_enough_to_be_read_at_once_takes_little_time() -> None:
    assert [name for name, markup in SMALL.items() if len(markup) >= LARGE] == []
    for name, markup in SMALL.items():
        started = time.process_time()
        assert "word" in extract(markup).text, name
        assert time.process_time() - started < 10, name


def test_what_is_nested_too_deep_for_the_parser_is_read_as_paragraphs() -> None:
    """The author of this old page closed no tag. libxml2 stops at 256 levels and says nothing about it."""
    lines = "".join(f"<font color=red><li>Ship {number} <b>came</b> in.\n" for number in range(1_000))
    page = f"<html><head><title>Arrivals</title></head><body><p>All ships.</p>{lines}<p>None is missing.</p>"

    found = extract(page)

    assert found.title == "Arrivals"
    assert found.text.startswith("All ships.\n\n- Ship 0 came in.\n\n- Ship 1 came in.\n\n")
    assert found.text.endswith("Ship 999 came in.\n\nNone is missing.\n")


@pytest.mark.medium
def test_lists_and_quotes_deep_inside_of_each_other_do_not_multiply_a_page() -> None:
    for tag in ("<ul><li>", "<blockquote>"):
        markup = tag * 120 + "<pre>" + "word\n" * 3_000 + "</pre>"

        text = extract(markup).text

        assert text.count("word") == 3_000
        assert len(text) < 2 * len(markup) + 1_000
