"""Find the element of a page that holds its main text, freed of what frames it.

Where the author marked it (`main`, `article`) that is it; elsewhere readability's scores decide which block it is.
What is taken out is decided here, and by what an element says it is: readability's own rules lose short lists.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any
from urllib.parse import urljoin

import lxml.html
from readability import Document

from co_cli.errors import PageRefusedError
from co_cli.sources.extraction_parsing import parse
from co_cli.sources.extraction_plain import RENDERED, count_elements

if TYPE_CHECKING:
    from co_cli.sources.fetching_exchange import Deadline

lxml_html: Any = lxml.html
Readability: Any = Document

DROPPED = frozenset(
    """
    script style noscript template iframe frame object embed applet canvas svg math audio video map dialog nav aside
    menu button select textarea datalist head link meta
    """.split()
)
IN_HEAD = ("title", "meta", "link", "base", "script", "style", "noscript", "template")
DROPPED_ROLES = frozenset(
    "navigation banner contentinfo complementary dialog alertdialog search menu menubar toolbar".split()
)
NOISE = frozenset(
    """
    ad ads advert advertisement adsbygoogle banner breadcrumb breadcrumbs comment comments cookie cookies consent
    disqus editsection footer headerlink anchorjs masthead menu nav navbar navigation newsletter pager pagination
    permalink popup promo recommended recommendations related share sharebar sharing sidebar skip skiplink social
    sponsor sponsored subscribe subscription toc toolbar tracking widget
    """.split()
)
"""Names that authors give, as classes and ids, to what frames a text."""
ENOUGH = 140
"""Letters: an element marked as the main one holds at least so many, or it is a teaser."""
SCRAP = 80
"""Letters: a block this short, beside one that holds the text, is a menu, a notice or a line of the imprint."""
TOO_MUCH = 0.5
"""Whatever it is called, what holds this share of the page's text is no frame."""
MOST_ELEMENTS = 200_000


def find_main(markup: str, url: str, deadline: Deadline | None = None) -> tuple[str, Any, bool]:
    """The page's title, the element with its main text (or None), and whether it has scripts. Raises TimeoutError.

    All of a very large page that marks no main text is its main text: to weigh its blocks takes too long.
    """
    tree = _parse(markup, url)
    if tree is None:
        return "", None, False
    scripted = tree.find(".//script") is not None
    titles = _titles(tree)
    _make_links_absolute(tree, url)
    body = _body(tree)
    _drop_frames(body, deadline)
    _open_layout_tables(body)
    headings: list[Any] = body.xpath(".//h1")
    element = _marked(body)
    if element is None:
        element = body if count_elements(body) > RENDERED else _scored(body)
    inside: list[Any] = element.xpath(".//h1")
    return _title(titles, inside or headings), element, scripted


def _parse(markup: str, url: str) -> Any:
    tree = parse(markup)
    if tree is None:
        return None
    if sum(1 for _ in zip(range(MOST_ELEMENTS + 1), tree.iter(), strict=False)) > MOST_ELEMENTS:
        raise PageRefusedError(f"{url}: it has more than {MOST_ELEMENTS:,} elements")
    return tree


def _body(tree: Any) -> Any:
    """The page's body. The parser, which is older than `main` and `article`, may have left some of it in the head."""
    body = tree.find("body")
    if body is None:
        body = lxml_html.Element("body")
        for element in [child for child in tree if child.tag not in ("head", "body")]:
            body.append(element)
        tree.append(body)
    strays = [child for head in tree.findall("head") for child in head if child.tag not in IN_HEAD]
    for place, element in enumerate(strays):
        body.insert(place, element)
    return body


def _make_links_absolute(tree: Any, url: str) -> None:
    """Those that are shown; a link inside the page leads to a place that it does not have here."""
    base = next((found for found in tree.xpath("//base/@href") if found.strip()), "")
    url = _joined(url, base) or url
    for name, element in [("href", found) for found in tree.iter("a")] + [("src", found) for found in tree.iter("img")]:
        target = element.get(name)
        if target is None:
            continue
        target = "" if target.startswith("#") else _joined(url, target)
        if target:
            element.set(name, target)
        else:
            del element.attrib[name]


def _joined(url: str, target: str) -> str:
    """Empty for what is no address."""
    try:
        return urljoin(url, target.strip())
    except ValueError:
        return ""


def _drop_frames(body: Any, deadline: Deadline | None) -> None:
    whole = _letters(body)
    for element in [*body.iterdescendants("*")]:
        if deadline:
            deadline.left()
        if _is_frame(element) or (_may_be_frame(element) and _letters(element) <= whole * TOO_MUCH):
            _drop(element)


def _is_frame(element: Any) -> bool:
    """By what it is: no text, or none that belongs to the page's own."""
    match element.tag:
        case "input":
            return element.get("type") != "checkbox"
        case "a":
            return element.text_content().strip() in ("¶", "#", "§", "🔗")
        case tag:
            hidden = element.get("hidden") is not None or element.get("aria-hidden") == "true"
            return tag in DROPPED or hidden or element.get("role") in DROPPED_ROLES


def _may_be_frame(element: Any) -> bool:
    """By its place or its name, neither of which is proof."""
    match element.tag:
        case "footer":
            return True
        case "header":
            return next(element.iterancestors("article", "main", "blockquote"), None) is None
        case "article" | "main" | "body" | "pre" | "code":
            return False
        case _:
            return _is_noise(element)


def _is_noise(element: Any) -> bool:
    names = f"{element.get('class') or ''} {element.get('id') or ''}"
    if names == " ":
        return False
    return bool(NOISE.intersection(re.split(r"[^a-z0-9]+", re.sub(r"([a-z])([A-Z])", r"\1-\2", names).lower())))


def _drop(element: Any) -> None:
    if element.getparent() is not None:
        element.drop_tree()


def _open_layout_tables(body: Any) -> None:
    """Tables that place blocks beside each other are no tables."""
    for table in body.xpath(".//table[not(.//th)][.//td//h1 or .//td//h2 or .//td//table or .//td[count(.//p) > 1]]"):
        for part in [table, *table.xpath(".//tbody | .//tr | .//td")]:
            if next(part.iterancestors("table"), table) is table:
                part.tag = "div"


def _marked(body: Any) -> Any:
    """The one element that the author marked as the main text, if there is exactly one and it holds something."""
    for path in (".//main | .//*[@role='main']", ".//article | .//*[@itemprop='articleBody']"):
        found = [element for element in body.xpath(path) if _letters(element) >= ENOUGH]
        outermost = [element for element in found if not any(other in found for other in element.iterancestors())]
        if len(outermost) == 1:
            inner = [article for article in outermost[0].xpath(".//article") if _letters(article) >= ENOUGH]
            return inner[0] if len(inner) == 1 else outermost[0]
    return None


def _scored(body: Any) -> Any:
    """The block that readability holds for the main text; all of a short page."""
    if _letters(body) < 2 * ENOUGH:
        return body
    document = lxml_html.document_fromstring("<html><body></body></html>")
    document.replace(document.find("body"), body)
    chosen = _Choice(document).chosen()
    found = _innermost(body if chosen is None or _letters(chosen) < ENOUGH else chosen)
    for cell in [*found.iter("tbody", "tr", "td")]:
        if next(cell.iterancestors("table"), None) is None:  # chosen out of a table, which it no longer is
            cell.tag = "div"
    return found


def _innermost(element: Any) -> Any:
    """Down to the block that holds the text, as long as nothing but scraps stands beside it."""
    while True:
        blocks = sorted(((_letters(child), place) for place, child in enumerate(element)), reverse=True)
        beside = [letters for letters, _ in blocks[1:]]
        if not blocks or blocks[0][0] < ENOUGH or any(letters > SCRAP for letters in beside):
            return element
        if len(element) > 1 and element[blocks[0][1]].tag not in ("div", "section", "td", "center", "body"):
            return element
        element = element[blocks[0][1]]


class _Choice(Readability):
    """Readability's choice of a block, before its rules for what to take out of it."""

    found: Any = None

    def sanitize(self, node: Any, *_: Any, **__: Any) -> str:
        self.found = node
        return str(lxml_html.tostring(node, encoding="unicode"))

    def chosen(self) -> Any:
        self.summary(html_partial=True)
        return self.found


def _titles(tree: Any) -> list[str]:
    """The page's name for itself in its head: for sharing, and for the window."""
    shared = tree.xpath("//meta[@property='og:title' or @name='og:title']/@content")
    return [_line(text) for text in (*shared[:1], *(title.text_content() for title in tree.xpath("//head/title")[:1]))]


def _title(titles: list[str], headings: list[Any]) -> str:
    """The first heading, where the page's head agrees that it is the title; else what the head says."""
    heading = next((_line(found.text_content()) for found in headings), "")
    if heading and (not any(titles) or any(heading.casefold() in title.casefold() for title in titles)):
        return heading
    return next((title for title in titles if title), heading)


def _line(text: str) -> str:
    return " ".join(re.sub(r"[\x00-\x1f\x7f-\x9f]", " ", text).split())


def _letters(element: Any) -> int:
    return sum(len(part.strip()) for part in element.itertext())
