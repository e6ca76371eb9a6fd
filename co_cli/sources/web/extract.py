"""Extract the title and the main text of a web page as Markdown.

The main text is what the page marks as such (`main`, `article`), else what readability finds. markdownify renders it.
The text is somebody else's: it brings no tags, no links between notes and no raw HTML into the vault. libxml2 and
markdownify take quadratic time for some pages, so a large page is read in the worker process.
"""

from __future__ import annotations

import html
import re
from collections.abc import Iterator
from itertools import islice
from typing import TYPE_CHECKING, Any, NamedTuple
from urllib.parse import urljoin

import lxml.html
import markdownify
import readability

from co_cli.ground.errors import PageRefusedError
from co_cli.notes.encoding import decode_page
from co_cli.notes.frontmatter import read_frontmatter
from co_cli.notes.markdown import CODE, LINK, TAG, headings
from co_cli.sources.worker import TOO_LONG, run_parser

if TYPE_CHECKING:
    from co_cli.sources.web.fetch import Fetched

etree: Any = vars(lxml)["etree"]  # these have no types
lxml_html: Any = lxml.html
Markdownify: Any = markdownify.MarkdownConverter
Readability: Any = readability.Document

LONGEST_TITLE = 200
COPY_IT = "copy what your browser shows into `co note article add -`"
LARGE = 50_000
"""Characters of markup that are read in another process."""
MOST_ELEMENTS = 20_000
"""Of the main text. More are rendered without links, emphasis and tables."""
MARKED = 140
"""Letters that an element marked as the main text has at least; less is a teaser."""
ALL_TEXT = 2.0
"""A `least_share` that no main text has: all text."""
LEAST_LETTERS = 40
"""On a page with scripts. Less is what such a page shows until its scripts have run."""
CONTROL = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f]")
"""What a terminal would obey; tabs and line ends stay."""
MARKUP = re.compile(r"\s*(?:<!--(?:(?!-->).)*+-->\s*)*+<(?:!doctype|html|head|body|\?xml)\b", re.I | re.S)
NO_TEXT = "script style noscript template iframe object embed canvas svg math audio video title meta link".split()
FRAMES = [*NO_TEXT, *"map dialog nav aside menu button select textarea datalist".split()]
ROLES = "navigation banner contentinfo complementary dialog alertdialog search menu menubar toolbar".split()
NOISE = re.compile(
    r"(?<![a-z])(?:ads?|advert\w*|anchorjs|banner|breadcrumbs?|comments?|consent|cookies?|disqus|editsection|footer|"
    r"headerlink|masthead|menu|nav|navbar|navigation|newsletter|pager|pagination|permalink|popup|promo|recommend\w*|"
    r"related|share|sharing|sidebar|skip|skiplink|social|sponsor\w*|subscri\w*|toc|toolbar|widget)(?![a-z])",
    re.I,
)
"""Classes and ids of what surrounds a text."""
LAYOUT = ".//table[not(.//th)][.//td//h1 or .//td//h2 or .//td//table or .//td[count(.//p) > 1]]"
BLOCKS = "p div section article main ul ol li dl dd dt table tr pre blockquote br hr figure h1 h2 h3 h4 h5 h6".split()
LINE_MARK = re.compile(r"^([ \t]*)(#{1,6}(?=\s)|~~~|\d{1,9}(?=[.)]\s)|[-+](?=\s)|>(?=\s|$))", re.M)
LANGUAGE = re.compile(
    r"(?:^|[ -])(?:language-|lang-|highlight-source-|highlight-|brush: ?)(?!text|plain|default)([a-z0-9+#]+)"
)


class Page(NamedTuple):
    title: str
    text: str


def read_page(fetched: Fetched, seconds: float = 30.0, least_share: float = 0.0) -> Page:
    """The text of a page, as `extract` finds it. Raises PageRefusedError if there is none, or if it takes too long."""
    plain = fetched.media_type.startswith("text/") and fetched.media_type != "text/html"
    text = decode_page(fetched.body, fetched.charset, markup=not plain)
    try:
        if "\0" in text[:8_192]:
            raise PageRefusedError("it holds binary data, not text")
        is_markup = not plain and (fetched.media_type or MARKUP.match(text))
        page = extract(text, fetched.url, seconds, least_share) if is_markup else _read_plain(text, fetched.url)
    except PageRefusedError as error:
        raise PageRefusedError(f"{fetched.url}: {error}") from None
    title = " ".join(CONTROL.sub(" ", page.title).split())[:LONGEST_TITLE].strip() or _title_from(fetched.url)
    return Page(title, CONTROL.sub("", page.text))


def extract(markup: str, url: str = "", seconds: float = 30.0, least_share: float = 0.0) -> Page:
    """The title and the main text, or all text if the main text has a smaller share of the letters than `least_share`.

    Raises PageRefusedError.
    """
    if len(markup) <= LARGE:
        return extract_here(markup, url, least_share)
    data = markup.encode("utf-8", "replace")
    parts, problem = run_parser(f"{__name__}:extract_in_worker", data, url, least_share, seconds=seconds)
    if parts:
        return Page(*parts[0])
    if problem == TOO_LONG:
        problem = f"its text was not found in {seconds:g} seconds (the setting web_seconds); {COPY_IT}"
    raise PageRefusedError(problem)


def extract_in_worker(data: bytes, url: str, least_share: float) -> Iterator[Page]:
    yield extract_here(data.decode(), url, least_share)


def extract_here(markup: str, url: str = "", least_share: float = 0.0) -> Page:
    """The same in this process, whatever it costs."""
    parser = lxml_html.HTMLParser(remove_comments=True, remove_pis=True, encoding="utf-8")
    try:
        data = markup.replace("\0", "").encode("utf-8", "replace")
        tree: Any = lxml_html.document_fromstring(data, parser=parser)
    except etree.LxmlError:
        raise PageRefusedError("there is no text in the page") from None
    scripted = tree.find(".//script") is not None
    title = _title(tree)
    url = _joined(url, next(iter(tree.xpath("//base/@href")), ""))
    etree.strip_elements(tree, *NO_TEXT, with_tail=False)
    letters = _letters(tree)
    if any("depth" in entry.message for entry in parser.error_log):  # libxml2 reads no further
        text = _render_plainly(markup)
    else:
        if least_share <= 1:
            _drop_frames(tree)
            tree = _main(tree)
            if _letters(tree) < letters * least_share:
                return extract_here(markup, url, ALL_TEXT)
        text = _render(tree, url)
    letters = sum(1 for _ in islice(re.finditer(r"\w", text), LEAST_LETTERS))
    if not letters or (scripted and letters < LEAST_LETTERS):
        why = "no text in the page itself, only scripts, which are not run" if scripted else "no text in the page"
        raise PageRefusedError(f"there is {why}; {COPY_IT}")
    return Page(title, text)


def _title(tree: Any) -> str:
    """The heading that the page's head agrees with, else what the head says, else the first heading."""
    shared = tree.xpath("//meta[@property='og:title' or @name='og:title']/@content")[:1]
    found = [*shared, *(title.text_content() for title in tree.xpath("//title[not(ancestor::svg)]")[:1])]
    names = [name for name in map(_line, found) if name]
    headings = [_line(heading.text_content()).rstrip("¶#§ ") for heading in tree.xpath("//h1")[:50]]
    agreed = [heading for heading in headings if any(heading.casefold() in name.casefold() for name in names)]
    return max(agreed, key=len, default="") or next(iter([*names, *headings]), "")


def _drop_frames(tree: Any) -> None:
    """Drop what surrounds the text: by what an element is, or by its name unless it has most of the text."""
    most = _letters(tree) / 2
    for element in [*tree.iterdescendants("*")]:
        tag, names = element.tag, f"{element.get('class') or ''} {element.get('id') or ''}"
        certain = (
            tag in FRAMES
            or element.get("role") in ROLES
            or element.get("hidden") is not None
            or element.get("aria-hidden") == "true"
            or (tag == "a" and element.text_content().strip() in ("¶", "#", "§", "🔗"))
        )
        likely = (
            tag == "footer"
            or (tag == "header" and next(element.iterancestors("article", "main", "blockquote"), None) is None)
            or (tag not in ("html", "body", "article", "main", "pre", "code") and NOISE.search(names))
        )
        if (certain or (likely and _letters(element) <= most)) and element.getparent() is not None:
            element.drop_tree()
    for table in tree.xpath(LAYOUT):
        for part in [*table.iter("table", "tbody", "tr", "td")]:
            part.tag = "div"


def _main(tree: Any) -> Any:
    for path in (".//main | .//*[@role='main']", ".//article | .//*[@itemprop='articleBody']"):
        found = [element for element in tree.xpath(path) if _letters(element) >= MARKED]
        if len(found) == 1:
            return found[0]
    if _letters(tree) < 2 * MARKED or _elements(tree) > MOST_ELEMENTS:
        return tree
    summary: str = Readability(lxml_html.tostring(tree, encoding="unicode")).summary()
    chosen = lxml_html.document_fromstring(summary)
    return tree if _letters(chosen) < MARKED else chosen


def _letters(element: Any) -> int:
    return sum(len(part.strip()) for part in element.itertext())


def _elements(element: Any) -> int:
    return sum(1 for _ in element.iter())


def _render(element: Any, url: str) -> str:
    etree.strip_tags(element, "span", "font")  # thousands of them in code, and nothing in Markdown
    etree.strip_attributes(element, "colspan")  # a thousand columns would be a thousand times the text
    for cell in element.xpath(".//thead//td"):
        cell.tag = "th"
    etree.strip_tags(element, "thead", "tbody", "tfoot")  # markdownify searches the table for them at every row
    for numbered in element.iter("ol"):
        numbered.tag = "ul" if len(numbered) > 1_000 else "ol"  # it counts the items before each item
    markup = re.sub(r"\s{100,}", "\n", lxml_html.tostring(element, encoding="unicode", with_tail=False))
    try:
        if _elements(element) > MOST_ELEMENTS:
            raise ValueError
        text: str = _Converter(url, 2 * len(markup) + 1_000).convert(markup)
    except (RecursionError, ValueError):
        return _render_plainly(markup)
    return _tidy(text)


def _render_plainly(markup: str) -> str:
    """Headings, items and paragraphs of what is too large or nested too deep for markdownify."""
    markup = re.sub(r"(?is)<(script|style|title)\b.*?</\1\s*>|<!--.*?-->", "", markup)
    parts: list[str] = []
    for found in re.finditer(r"<(/?)([A-Za-z][\w-]*)[^<>]*>|[^<]+|<", markup):
        name, starts = (found[2] or "").lower(), not found[1]
        if not name:
            parts.append(LINE_MARK.sub(_escaped_mark, _escaped(re.sub(r"\s+", " ", html.unescape(found[0])))))
        elif name in ("td", "th"):
            parts.append(" | " if starts else "")
        elif name in BLOCKS:
            heading = re.fullmatch("h([1-6])", name)
            mark = "#" * int(heading[1]) + " " if heading else "- " if name == "li" else ""
            parts.append("\n\n" + (mark if starts else ""))
    return _tidy("\n".join(line.strip(" ").removeprefix("| ") for line in "".join(parts).split("\n")))


def _tidy(text: str) -> str:
    text = re.sub(r"[ \t]+$", "", text.replace("\xa0", " "), flags=re.M)
    return re.sub(r"\n{3,}", "\n\n", text).strip("\n") + "\n"


def _escaped(text: str) -> str:
    """Text that contains no tags, no links between notes, no code span and no raw HTML."""
    text = text.replace("\\", "\\\\").replace("*", "\\*").replace("_", "\\_").replace("`", "&#96;")
    text = re.sub(r"<(?=[A-Za-z/!?])", r"\\<", text).replace("[[", "[\\[")
    return re.sub(TAG, lambda found: "\\" + found[0], text)


def _escaped_mark(found: re.Match[str]) -> str:
    return f"{found[1]}{found[2]}\\" if found[2].isdigit() else f"{found[1]}\\{found[2]}"


class _Converter(Markdownify):
    def __init__(self, url: str, longest: int) -> None:
        Markdownify.__init__(self, heading_style="ATX", bullets="-", strip_pre="STRIP", bs4_options="lxml")
        self.url, self.longest = url, longest

    def process_tag(self, node: Any, parent_tags: set[str] | None = None) -> str:
        text: str = Markdownify.process_tag(self, node, parent_tags)
        if len(text) > self.longest:  # lists inside lists indent every line of theirs
            raise ValueError
        return text

    def process_text(self, el: Any, parent_tags: set[str] | None = None) -> str:
        """The start of a line must not start a heading, a list or a code block."""
        text: str = Markdownify.process_text(self, el, parent_tags)
        before = el.previous_sibling
        if "_noformat" in (parent_tags or ()):
            return text
        starts = before is None or before.name in BLOCKS
        return LINE_MARK.sub(_escaped_mark, text) if starts else LINE_MARK.sub(_escaped_mark, "x" + text)[1:]

    def escape(self, text: str, parent_tags: set[str]) -> str:
        return _escaped(text)

    def convert_pre(self, el: Any, text: str, parent_tags: set[str]) -> str:
        """With a fence that does not occur in the code, and the language that a highlighter or the author named."""
        mark = "~" if "```" in text else "`"
        fence = mark * (1 + max([2, *(len(run) for run in re.findall(f"{mark}{{3,}}", text))]))
        names = [
            " ".join(element.get("class") or ()) for element in (el, *el.find_all("code", limit=1), *[*el.parents][:2])
        ]
        language = next((found[1] for name in names if (found := LANGUAGE.search(name.lower()))), "")
        text = re.sub(r"\A(?:[ \t]*\n)+|\s+\Z", "", text)
        return f"\n\n{fence}{language}\n{text}\n{fence}\n\n" if text else ""

    def convert_td(self, el: Any, text: str, parent_tags: set[str]) -> str:
        return str(Markdownify.convert_td(self, el, text.replace("|", "\\|"), parent_tags))

    convert_th = convert_td

    def convert_a(self, el: Any, text: str, parent_tags: set[str]) -> str:
        """A link to another page; only the words of any other link."""
        target = _target(self.url, str(el.get("href") or ""), "https?:|mailto:")
        el.attrs = {"href": target}
        return str(Markdownify.convert_a(self, el, text, parent_tags)) if target else text

    def convert_img(self, el: Any, text: str, parent_tags: set[str]) -> str:
        """By its description; a picture without one says nothing here."""
        alt, source = _escaped(_line(str(el.get("alt") or ""))), _target(self.url, str(el.get("src") or ""), "https?:")
        return f"![{alt.replace(']', '')}]({source})" if alt and source and "a" not in parent_tags else alt

    def convert_input(self, el: Any, text: str, parent_tags: set[str]) -> str:
        return ("[x]" if el.has_attr("checked") else "[ ]") if el.get("type") == "checkbox" else ""


def _target(url: str, target: str, schemes: str) -> str:
    """Absolute, and so that it can stand in Markdown. Empty for a place on the same page and for other schemes."""
    joined = "" if target.startswith("#") else _joined(url, target)
    return re.sub(r"[\s<>()]", lambda found: f"%{ord(found[0]):02X}", joined) if re.match(schemes, joined) else ""


def _joined(url: str, target: str) -> str:
    try:
        return urljoin(url, target.strip())
    except ValueError:
        return url


def _line(text: str) -> str:
    return " ".join(text.split())


def _read_plain(text: str, url: str) -> Page:
    """Markdown and plain text stay as they are, except for what would mean something in this vault."""
    text = text.replace("\r\n", "\n").replace("\r", "\n")
    front = read_frontmatter(text)
    body = text[front.body :].strip("\n")
    if not re.search(r"\w", body):
        raise PageRefusedError("there is no text in it")
    own = front.metadata.get("title")
    title = own if isinstance(own, str) else next((found.text for found in headings(body.split("\n"))), "")

    def without_meaning(part: str) -> str:
        part = re.sub(LINK, lambda found: found[0].replace(found[1], _joined(url, found[1]), 1), part)
        return re.sub(TAG, lambda found: "\\" + found[0], part).replace("[[", "[\\[")

    parts: list[str] = []
    place = 0
    for code in re.finditer(CODE, body):
        parts += [without_meaning(body[place : code.start()]), code[0]]
        place = code.end()
    return Page(title, "".join([*parts, without_meaning(body[place:])]).rstrip() + "\n")


def _title_from(url: str) -> str:
    """The last part of the path, else the host."""
    host, _, path = url.split("://", 1)[-1].partition("/")
    name = path.split("?")[0].rstrip("/").rsplit("/", 1)[-1]
    return re.sub(r"\.\w{1,5}$", "", name).replace("-", " ").replace("_", " ").strip() or host
