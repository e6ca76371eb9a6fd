"""What a parser gets to see of a page: the same page, without what takes it the square of its length."""

from __future__ import annotations

import re
import time

import lxml.html
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from co_cli.sources.documents import read_document
from co_cli.sources.extraction_markdown import render
from co_cli.sources.extraction_parsing import MOST_ATTRIBUTES, harmless, parse

MANY = 200_000
NAMES = " ".join(f"a{number}" for number in range(MANY))
"""It took libxml2 some five minutes to read a tag that has them."""
TOKENS = """
    <p> </p> <b> <div <a title="a<b" x=1 / > /> word <!-- --> -- !> <!doctype <? ?> <script> </script> <style> </style>
    <title> </title> <textarea> </textarea> < </ ' " = &amp; <![CDATA[ ]]> <table> <td> </3 <SCRIPT> é
""".split()


@pytest.mark.parametrize(
    "markup",
    [
        f"<p>Oaks live long.</p><div {NAMES}>Beeches do not.</div>",
        f'<p>Oaks live long.</p><!-- <a b=" --><div {NAMES} b="x">Beeches do not.</div>',
        f'<p>Oaks live long.</p><!x <a b="><div {NAMES} b="x">Beeches do not.</div>',
        f"<p>Oaks live long.</p><textarea><a b='</textarea><div {NAMES} b='x'>Beeches do not.</div>",
        f"<p>Oaks live long.</p></p b='><div {NAMES}'>Beeches do not.</div>",
        f'<p>Oaks live long.</p><script>\'<a b="\'</script><div {NAMES} b="x">Beeches do not.</div>',
        "<p>Oaks live long.</p><div " + NAMES.replace(" ", "='>' ") + "='>'>Beeches do not.</div>",
    ],
    ids=["plain", "comment", "odd comment", "textarea", "end tag", "script", "quoted"],
)
def test_a_tag_of_very_many_attributes_takes_no_time(markup: str) -> None:
    started = time.process_time()

    text = read_document("page.html", markup.encode()).text

    assert time.process_time() - started < 20
    assert text == "Oaks live long.\n\nBeeches do not.\n"


def test_the_first_attributes_of_a_tag_stay() -> None:
    tree = parse(f"<p class=x {NAMES}>Oaks live long.</p>")

    paragraph = tree.find(".//p")
    assert paragraph.get("class") == "x"
    assert len(paragraph.attrib) == MOST_ATTRIBUTES


@pytest.mark.parametrize(
    "markup",
    [
        "<p title='a < b'>x<br/><img src=a/b.png alt=\"1 > 0\">y</p>",
        "<script src='x'/>one<script>if (a<b) '</p>'</SCRIPT >two<style>a>b{}</style>three",
        "<title>a <b> c</title><textarea>a <b> c</textarea><p>d",
        "<!doctype html><p><?xml version='1.0'?><!--> one --> two <!-- a > b --!> three </> four",
        "<p>a <3 b </p x='>'><p>1 < 2 <![CDATA[ c ]]> d</p>",
        "<p a='x'b=\"y\"/c==d\n e = 'f'>word",
    ],
)
def test_nothing_else_of_a_page_is_changed(markup: str) -> None:
    assert shown(parse(markup)) == shown(lxml.html.document_fromstring(markup))


@given(st.lists(st.sampled_from(TOKENS), max_size=30).map(" ".join) | st.lists(st.sampled_from(TOKENS)).map("".join))
@settings(max_examples=50)
def test_whatever_a_page_says_each_bracket_in_it_begins_a_tag_or_nothing(markup: str) -> None:
    """So no state that a parser may be in makes it begin a tag elsewhere."""
    clean = harmless(markup)

    assert harmless(clean) == clean
    for begin in re.finditer(r"<(?=/?[A-Za-z])", clean):
        tag = re.compile(r"""<[^<>"']*+(?:"[^"<]*+"|'[^'<]*+'|[^<>"']++|["'])*?>""").match(clean, begin.start())
        assert tag, clean


def test_what_is_nested_too_deep_for_the_parser_is_read_as_paragraphs() -> None:
    """A page from long ago, whose author closed no tag: the parser stops at 256 levels and says nothing about it."""
    lines = "".join(f"<font color=red><li>Ship {number} <b>came</b> in.\n" for number in range(1_000))
    page = f"<html><head><title>Arrivals</title></head><body><p>All ships.</p>{lines}<p>None is missing.</p>"

    found = read_document("page.html", page.encode())

    assert found.title == "Arrivals"
    assert found.text.startswith("All ships.\n\nShip 0 came in.\n\nShip 1 came in.\n\n")
    assert found.text.endswith("Ship 999 came in.\n\nNone is missing.\n")


@pytest.mark.parametrize(
    "markup",
    [
        "<ol>" + "<li>word</li>" * 10_000 + "</ol>",
        "<table><thead>" + "<tr><td>word</td></tr>" * 3_000 + "</thead></table>",
        "<table>" + "<tbody><tr><td>word</td></tr></tbody>" * 2_000 + "</table>",
    ],
    ids=["items", "rows of a head", "bodies"],
)
def test_one_item_or_row_costs_the_same_in_a_long_list_or_table(markup: str) -> None:
    """Markdownify looks through all of it for each: 40 seconds for 4,000 bodies."""
    started = time.process_time()

    assert "word" in render(parse(markup))
    assert time.process_time() - started < 5


@pytest.mark.parametrize(
    "markup",
    [f"<p style='{'background:url(x);' * 25_000}'>word</p>", f"<style>{'@import url(x);' * 25_000}</style><p>word</p>"],
    ids=["style", "imports"],
)
def test_addresses_that_are_not_shown_cost_nothing(markup: str) -> None:
    started = time.process_time()

    assert read_document("page.html", markup.encode()).text == "word\n"
    assert time.process_time() - started < 5


@pytest.mark.parametrize("tag", ["<ul><li>", "<blockquote>"])
def test_lists_and_quotes_deep_inside_of_each_other_do_not_multiply_a_page(tag: str) -> None:
    markup = tag * 120 + "<pre>" + "word\n" * 3_000 + "</pre>"

    text = read_document("page.html", markup.encode()).text

    assert text.count("word") == 3_000
    assert len(text) < 2 * len(markup)
    assert read_document("page.html", f"{tag * 3}word".encode()).text in ("- - - word\n", "> > > word\n")


def test_items_are_numbered_as_the_page_says() -> None:
    page = "<ol start=7><li>a<li><ol><li>b<li>c</ol><li>d</ol><ol start=²><li>e</ol><ul><li>f<p>g</p></ul>"

    text = read_document("page.html", page.encode()).text

    assert text == "7. a\n8. 1. b\n   2. c\n9. d\n\n1. e\n\n- f\n\n  g\n"


def test_a_table_has_the_head_that_the_page_gives_it_or_an_empty_one() -> None:
    row = "<tr><td>{}</td><td colspan={}>{}</td></tr>"
    body = "<tbody>" + row.format("a", "²", "b") + row.format("c", 1, "d") + "</tbody>"
    head = "<thead><tr><td>A</td><td>B</td></tr></thead>"

    def text(inner: str) -> str:
        return read_document("page.html", f"<p>Fees.</p><table>{inner}</table>".encode()).text

    assert text(head + body) == "Fees.\n\n| A | B |\n| --- | --- |\n| a | b |\n| c | d |\n"
    assert text(body) == "Fees.\n\n|  |  |\n| --- | --- |\n| a | b |\n| c | d |\n"
    assert text("<tr><th colspan=30>A</th></tr>").endswith(f"\n|{' --- |' * 9}\n")
    assert text(head + body + body) == "Fees.\n\n| A | B |\n| --- | --- |\n" + "| a | b |\n| c | d |\n" * 2


def shown(tree: lxml.html.HtmlElement) -> str:
    """A tree without comments and what scripts say."""
    for element in tree.xpath("//comment() | //processing-instruction()"):
        element.drop_tree()
    for element in tree.iter("script", "style"):
        element.text = None
    return re.sub(r"<!DOCTYPE[^>]*>\s*", "", lxml.html.tostring(tree.getroottree(), encoding="unicode"))
