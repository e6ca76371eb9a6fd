"""Markdown of a note as HTML: its links, its lines, and nothing that a browser would obey."""

from __future__ import annotations

import re
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path
from time import process_time

import pytest

from co_cli.notes.note import read_note
from co_cli.server import rendering
from co_cli.server.rendering import ATTRIBUTES, CLASSES, MATHS, MOST_MARKS, TAGS, render
from tests.safety.hostile import HOSTILE, OBEYED, note

ATTACKS = [
    "<script>alert(1)</script>",
    "<img src=x onerror=alert(1)>",
    "<svg onload=alert(1)><a xlink:href='javascript:alert(1)'>x</a></svg>",
    "<a href='javascript:alert(1)' onclick=alert(1) target=_blank>x</a>",
    "<a href='&#106;avascript:alert(1)'>x</a>",
    "[x](javascript:alert(1)) [y](data:text/html,<script>alert(1)</script>) ![z](javascript:alert(1))",
    '[[x|<img src=x onerror=alert(1)>]] ![[a.png|" onerror="alert(1)]] ![[../../etc/passwd.png]]',
    "<style>body{display:none}</style><div style='position:fixed;inset:0'>x</div>",
    "<iframe srcdoc='<script>alert(1)</script>'></iframe><object data=x></object><embed src=x>",
    "<form action='http://evil.example'><input name=a><button formaction='javascript:alert(1)'>x</button></form>",
    "<base href='http://evil.example/'><meta http-equiv=refresh content='0;url=http://evil.example'><link rel=import>",
    "<math><mtext><table><mglyph><style><!--</style><img title='--&gt;&lt;img src=x onerror=alert(1)&gt;'>",
    "<noscript><p title='</noscript><img src=x onerror=alert(1)>'></noscript>",
    "<p id=main class=problem data-theme=dark>x</p><template><img src=x onerror=alert(1)></template>",
    '```"><script>alert(1)</script>\n<script>alert(1)</script>\n```',
    "| a |\n|--|\n| <script>alert(1)</script> ![x](http://evil.example/x.png) |",
    "> [!<img src=x onerror=alert(1)>] x\n\n> [!note]- <script>alert(1)</script>\n> <iframe src=x></iframe>",
    "x[^<img>] y[^a]\n\n[^<img>]: z\n[^a]: <svg onload=alert(1)> [x](javascript:alert(1))\n",
    r"$\text{<img src=x onerror=alert(1)>}$ $\href{javascript:alert(1)}{x}$ $\style{position:fixed}{x}$ $\class{x}{y}$",
    "$$\n</math><script>alert(1)</script>\n$$\n\n<math href='javascript:alert(1)'><mi>x</mi>",
    "<math><mtext><img src=x onerror=alert(1)></mtext><annotation-xml encoding='text/html'><script>alert(1)</script>",
    '- [<] x\n- ["] y\n- [ ] <input onfocus=alert(1) autofocus>\n\n==<script>alert(1)</script>==',
    '```"onclick="alert(1)\nx\n```\n\n```html\n<script>alert(1)</script>\n```',
    '<li data-task="<script>">x</li><div class="callout" style="position:fixed" onclick=alert(1)>y</div>',
]


class Elements(HTMLParser):
    """The tags and attributes of some HTML, as a browser would see them, and its text."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.found: list[tuple[str, dict[str, str | None]]] = []
        self.text = ""
        self.feed(html)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found.append((tag, dict(attrs)))

    def handle_data(self, data: str) -> None:
        self.text += data

    def handle_comment(self, data: str) -> None:
        raise AssertionError(f"a comment that nobody sees: {data}")


def html_of(body: str, **links: str) -> str:
    return render(read_note("articles/x.md", body.encode()), links)


@pytest.mark.parametrize("body", [*ATTACKS, *(note(hostile) for hostile in HOSTILE.values())])
def test_nothing_in_a_note_is_obeyed_by_a_browser(body: str) -> None:
    html = html_of(body)

    for tag, attributes in Elements(html).found:
        assert tag in TAGS | MATHS
        allowed = ATTRIBUTES.get(tag, set()) | {"rel", "class"}
        assert set(attributes) <= allowed, (tag, attributes)
        assert set((attributes.get("class") or "").split()) <= CLASSES.get(tag, set())
        assert re.match(r"https?:|mailto:|/note/|#L\d", attributes.get("href") or "/note/"), attributes
    assert OBEYED.search(html.replace("\n", " ")) is None


def test_what_html_would_hide_is_shown() -> None:
    seen = Elements(
        html_of(
            "a <!-- obey --> b\n\n<div hidden>also<!-- this --></div>\n\n<script>and this</script>\n\n"
            "<template>a template</template> <SVG><text>a </text><desc>drawing</desc></SVG>\n\n"
            "<math><mi>a formula</mi></math>"
        )
    ).text

    shown = ("<!-- obey -->", "also", "<!-- this -->", "and this", "a template", "drawing", "a formula")
    assert all(text in seen for text in shown)
    assert "\\u{202e}" in html_of("evil \u202etxt")


def test_links_lead_to_notes_files_the_web_or_a_new_note() -> None:
    html = html_of(
        "[[Oak|the oak]] [d](guides/deploy.md#top) [[Gone]] [p](plans/a%20b.pdf) [w](https://example.org/) ![[Oak]]",
        **{"Oak": "memory:oak", "guides/deploy.md": "article:guides/deploy"},
    )
    links = [attributes for tag, attributes in Elements(html).found if tag == "a"]

    assert [link.get("href") for link in links] == [
        "/note/memory:oak", "/note/article:guides/deploy#top", "/note/?title=Gone", None, "https://example.org/",
        "/note/memory:oak",
    ]  # fmt: skip
    assert [link.get("class") for link in links] == [None, None, "missing", None, None, "embed"]
    assert links[3]["data-file"] == "plans/a b.pdf"
    assert "the oak" in Elements(html).text


def test_links_to_a_heading_of_the_note_name_its_line() -> None:
    named = "[a](#rolling-back) [[#Rolling back]] [b](#nowhere)"
    body = f"---\ntitle: X\n---\n{named}\n\n## `Rolling` back!\n\n## Rolling back\n"

    links = [attributes for tag, attributes in Elements(html_of(body)).found if tag == "a"]

    assert [link.get("href") for link in links] == ["#L6", "#L6", None]


def test_pictures_are_files_of_the_vault_and_never_loaded_from_the_web() -> None:
    body = "![tide](img/tide.png) ![[bell.JPG|the bell]] ![far](https://example.org/x.png) ![[small.png|120]]"
    found = Elements(html_of(body)).found

    assert [
        (tag, one.get("data-file"), one.get("alt"), one.get("href")) for tag, one in found if tag in ("img", "a")
    ] == [
        ("img", "img/tide.png", "tide", None),
        ("img", "bell.JPG", "the bell", None),
        ("a", None, None, "https://example.org/x.png"),
        ("img", "small.png", "small.png", None),
    ]
    assert [one["width"] for _, one in found if "width" in one] == ["120"]


def test_each_block_has_the_lines_of_the_file_it_comes_from() -> None:
    body = "---\ntitle: x\n---\n# One\n\ntwo\nthree\n\n- four\n- five\n\n| a |\n|--:|\n| b |\n\n```\nsix\n```\n"
    found = Elements(html_of(body)).found

    lines = {(tag, one["data-line"], one["data-end"]) for tag, one in found if "data-line" in one}
    assert {("h1", "4", "4"), ("p", "6", "7"), ("li", "9", "9"), ("tr", "14", "14"), ("code", "16", "18")} <= lines
    assert ("td", {"align": "right", "dir": "auto"}) in found


def test_tasks_have_their_sign_and_their_line() -> None:
    found = Elements(
        html_of("---\ntitle: x\n---\n- [ ] *one*\n  1. [x] two\n- [-] three\n- [four] no\n- [ ]no\n")
    ).found

    tasks = [(one.get("data-task"), one["data-line"]) for tag, one in found if tag == "li"]
    assert tasks == [(" ", "4"), ("x", "5"), ("-", "6"), (None, "7"), (None, "8")]


def test_a_callout_has_a_title_and_can_be_folded() -> None:
    html = html_of(
        "> [!WARNING] Mind the *gap*\n> text\n> - [ ] task\n\n> [!faq]-\n> folded\n\n> [!own]+ Open\n\n> [x] a quote\n"
    )

    assert html.startswith('<div class="callout" data-callout="warning" data-line="1" data-end="3"')
    assert '<p class="callout-title" data-line="1" data-end="1">Mind the <em>gap</em></p>\n<p data-line="2"' in html
    assert '<li data-task=" " data-line="3"' in html
    assert '<details class="callout" data-callout="question" data-line="5"' in html
    assert '<summary class="callout-title" data-line="5" data-end="5">Faq</summary>\n<p data-line="6"' in html
    assert 'open="" data-line="8"' in html
    assert "<blockquote" in html


def test_a_footnote_and_its_reference_lead_to_each_other_and_none_is_hidden() -> None:
    html = html_of(
        "---\ntitle: x\n---\nTwo[^b], one[^a], two[^b], none[^c].\n\n[^a]: First.\n[^b]: Second.\n[^unused]: Kept."
    )

    references = re.findall(r'<sup><a class="footnote" href="(#L\d+)"[^>]*>(\d)</a></sup>', html)
    assert references == [("#L7", "1"), ("#L6", "2"), ("#L7", "1")]
    assert re.findall(r'data-footnote="(\w+)" data-line="(\d)"', html) == [("2", "6"), ("1", "7"), ("unused", "8")]
    assert html.count('href="#L4"') == 2, "back to where it is used"
    assert "none[^c]" in html


def test_the_text_of_an_inline_footnote_is_at_the_end_with_the_next_number_and_leads_back() -> None:
    html = html_of("- One[^a] and two^[**Page** 12, [site](https://x.example)].\n\nNone: ^[] x^[open\n\n[^a]: First.")

    references = re.findall(r'<sup><a class="footnote" href="(#L\d+)"[^>]*>(\d)</a></sup>', html)
    assert references == [("#L5", "1"), ("#L1", "2")]
    last = html.rpartition('<div class="footnote"')[2]
    assert re.match(r' data-footnote="2"[^>]*>\s*<p><strong>Page</strong> 12, <a h', last)
    assert 'href="#L1" title="Back"' in last
    assert "None: ^[] x^[open" in html


def test_formulas_are_mathml_and_prices_are_not() -> None:
    html = html_of(
        "$a^2$ costs $5 or $6\n\\$x$ `$y$` and $$\\frac{1}{2}$$\n\n$$\na\n- b\n$$\n\n$\\nosuchcommand x$ $\\frac{$\n"
    )

    assert '<math display="inline"><mrow><msup><mi>a</mi><mn>2</mn></msup></mrow></math> costs $5 or $6\n$x$' in html
    assert "<mfrac>" in html
    assert "<code>$y$</code>" in html
    assert (
        '<p data-line="4" data-end="7"><math display="block"><mrow><mi>a</mi><mo>−</mo><mi>b</mi></mrow></math></p>'
        in html
    )
    assert "<code>\\nosuchcommand x</code> <code>\\frac{</code>" in html, "what cannot be done is shown as its text"


def test_code_has_colours_and_keeps_its_text() -> None:
    code = 'def f(x):  # why\n    return "<b>" + 1\n'
    html = html_of(f"```python\n{code}```\n\n```nosuchlanguage\n{code}```\n\n```\n{code}```\n")

    assert '<code data-line="1" data-end="4" data-language="python"><span class="code-keyword">def</span>' in html
    assert '<span class="code-string">"&lt;b&gt;"</span>' in html
    assert html.count("<span") == 6
    assert Elements(html).text.count(code) == 3


@pytest.mark.medium
def test_code_after_the_time_for_one_note_has_no_colours() -> None:
    short, slow = "```python\nreturn 1\n```\n\n", f"```perl\n{'m{' * 9_000}\n```\n\n"
    started = process_time()
    html = html_of(short + slow * 3 + short)

    assert process_time() - started < 10, "half a second on an idle machine; without a limit, 20"
    assert html.count("<span") == 2, "only the first block has colours: a keyword and a number"
    assert Elements(html).text.count("m{" * 9_000) == 3
    assert Elements(html).text.count("return 1") == 2


def test_highlights_and_the_direction_of_each_block() -> None:
    html = html_of("==so *very*== a == b\n\n- c\n\n> d\n")

    assert '<p data-line="1" data-end="1" dir="auto"><mark>so <em>very</em></mark> a == b</p>' in html
    assert '<ul dir="auto">' in html
    assert '<blockquote data-line="5" data-end="5" dir="auto">' in html


@pytest.mark.slow
@pytest.mark.parametrize(
    "body",
    ["==a " * 9_000, "$a " * 9_000, "$$x\n" * 6_000, "[^1]: x\n\n" + "[^" * 9_000, "$" + "{" * 990 + "$", "^[" * 9_000],
    ids=["highlights", "dollars", "formulas", "footnotes", "nested formula", "inline footnotes"],
)
def test_text_that_only_looks_like_markdown_does_not_take_long(body: str) -> None:
    started = process_time()
    html_of(body)

    assert process_time() - started < 10, "two seconds at worst on an idle machine"


def test_a_body_that_would_take_too_long_is_shown_as_plain_text() -> None:
    html = html_of("[" * (MOST_MARKS + 1))

    assert html.startswith('<pre><code data-line="1" data-end="1">[[[')


def test_a_body_that_is_not_markdown_keeps_its_lines() -> None:
    note = replace(read_note("articles/x.md", b"a < b\n# c\n"), sections=())

    html = render(note, {})

    assert (
        html
        == '<pre><code data-line="1" data-end="1">a &lt; b\n</code><code data-line="2" data-end="2"># c\n</code></pre>'
    )


def test_everything_passes_one_sanitiser(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rendering, "sanitise", str)

    assert "<script>alert(1)</script>" in html_of("<script>alert(1)</script>")


def test_the_page_lets_through_what_the_sanitiser_does_and_nothing_else() -> None:
    source = Path(rendering.__file__).with_name("page").joinpath("parts", "prose.js").read_text()
    listed = re.search(r"const TAGS = new Set\(\((.*?)\)\.split", source, re.S)
    assert listed

    assert set("".join(re.findall(r'"([^"]*)"', listed[1])).split()) == TAGS | MATHS
