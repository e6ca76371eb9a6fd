"""Markdown of a note as HTML: its links, its lines, and nothing that a browser would obey."""

from __future__ import annotations

import re
from dataclasses import replace
from html.parser import HTMLParser

import pytest

from co_cli.notes.note import read_note
from co_cli.server import rendering
from co_cli.server.rendering import ATTRIBUTES, MOST_MARKS, TAGS, render
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
        assert tag in TAGS
        allowed = ATTRIBUTES.get(tag, set()) | {"rel", "class"}
        assert set(attributes) <= allowed, (tag, attributes)
        assert attributes.get("class", "missing") == "missing"
        assert re.match(r"https?:|mailto:|/note/|/\?q=", attributes.get("href") or "/note/"), attributes
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


def test_links_lead_to_notes_files_the_web_or_a_search() -> None:
    html = html_of(
        "[[Oak|the oak]] [d](guides/deploy.md#top) [[Gone]] [p](plans/a%20b.pdf) [w](https://example.org/) ![[Oak]]",
        **{"Oak": "memory:oak", "guides/deploy.md": "article:guides/deploy"},
    )
    links = [attributes for tag, attributes in Elements(html).found if tag == "a"]

    assert [link.get("href") for link in links] == [
        "/note/memory:oak", "/note/article:guides/deploy", "/?q=Gone", None, "https://example.org/", "/note/memory:oak",
    ]  # fmt: skip
    assert links[2]["class"] == "missing"
    assert links[3]["data-file"] == "plans/a b.pdf"
    assert "the oak" in Elements(html).text


def test_links_to_a_heading_of_the_note_name_its_line() -> None:
    named = "[a](#rolling-back) [[#Rolling back]] [b](#nowhere)"
    body = f"---\ntitle: X\n---\n{named}\n\n## `Rolling` back!\n\n## Rolling back\n"

    links = [attributes for tag, attributes in Elements(html_of(body)).found if tag == "a"]

    assert [link.get("href") for link in links] == ["#L6", "#L6", None]


def test_pictures_are_files_of_the_vault_and_never_loaded_from_the_web() -> None:
    found = Elements(html_of("![tide](img/tide.png) ![[bell.JPG|the bell]] ![far](https://example.org/x.png)")).found

    assert [
        (tag, one.get("data-file"), one.get("alt"), one.get("href")) for tag, one in found if tag in ("img", "a")
    ] == [
        ("img", "img/tide.png", "tide", None),
        ("img", "bell.JPG", "the bell", None),
        ("a", None, None, "https://example.org/x.png"),
    ]


def test_each_block_has_the_lines_of_the_file_it_comes_from() -> None:
    body = "---\ntitle: x\n---\n# One\n\ntwo\nthree\n\n- four\n- five\n\n| a |\n|--:|\n| b |\n\n```\nsix\n```\n"
    found = Elements(html_of(body)).found

    lines = {(tag, one["data-line"], one["data-end"]) for tag, one in found if "data-line" in one}
    assert {("h1", "4", "4"), ("p", "6", "7"), ("li", "9", "9"), ("tr", "14", "14"), ("code", "16", "18")} <= lines
    assert ("td", {"align": "right"}) in found


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
