"""An element of a page into Markdown: markdownify, with fences that hold, and nothing that acts in a vault."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import lxml
import lxml.html
import markdownify

from co_cli.notes.markdown import TAG
from co_cli.sources.extraction_plain import nested_too_deep, plainly

if TYPE_CHECKING:
    from co_cli.sources.fetching_exchange import Deadline

lxml_html: Any = lxml.html
lxml_etree: Any = vars(lxml)["etree"]  # compiled, and without types
MarkdownConverter: Any = markdownify.MarkdownConverter

LANGUAGE = re.compile(r"(?:^|(?<=[ -]))(?:language-|lang-|highlight-source-|highlight-|brush: ?)([A-Za-z0-9+#]+)")
NO_LANGUAGE = ("text", "none", "plain", "plaintext", "default", "notranslate", "highlight", "source", "auto")
RAW = re.compile(r"<(?=[A-Za-z/!?])")
MARK = r"([ \t]*)(#{1,6}(?=\s)|~~~|\d{1,9}(?=[.)]\s)|[-+](?=\s)|>(?=\s|$))"
LINE_MARK, LATER_LINE_MARK = re.compile("^" + MARK, re.M), re.compile(r"(?<=\n)" + MARK, re.M)
EMPTY_RUN = re.compile(r"\s{100,}")
"""Means nothing, and takes markdownify's regular expressions the square of its length."""
BLOCKS = "p div section article ul ol li dl dd dt table pre blockquote br hr h1 h2 h3 h4 h5 h6".split()


def render(element: Any, deadline: Deadline | None = None) -> str:
    """Markdown that ends with one line end; empty if the element holds nothing. Raises TimeoutError."""
    if nested_too_deep(element):
        return rendered_plainly(element, deadline)
    lxml_etree.strip_tags(element, "span", "font")  # thousands of them in code, and nothing in Markdown
    markup = lxml_html.tostring(element, encoding="unicode", method="html", with_tail=False)
    markup = EMPTY_RUN.sub("\n", markup)
    converter = _Converter(heading_style="ATX", bullets="-", bs4_options="lxml")
    converter.deadline = deadline
    text: str = converter.convert(markup)
    text = re.sub(r"[ \t]+$", "", text.replace("\xa0", " "), flags=re.M)
    text = re.sub(r"\n{3,}", "\n\n", text).strip("\n")
    return text + "\n" if text.strip() else ""


def rendered_plainly(element: Any, deadline: Deadline | None = None) -> str:
    """What is left of a page that is too large to be rendered: as harmless as the other. Raises TimeoutError."""
    converter = _Converter()

    def escaped(text: str) -> str:
        if deadline:
            deadline.left()
        return LINE_MARK.sub(_escaped_mark, converter.escape(text, set()))

    return plainly(element, escaped).replace("\xa0", " ")


def _language(pre: Any) -> str:
    """Of a code block, as its author or a highlighter named it: on itself, inside it, or up to two levels above."""
    around = [pre, *pre.find_all("code", limit=1), *list(pre.parents)[:2]]
    if pre.get("lang"):
        return _word(pre["lang"])
    for element in around:
        for found in LANGUAGE.finditer(" ".join(element.get("class") or ())):
            if found[1].lower() not in NO_LANGUAGE:
                return _word(found[1])
    return ""


def _word(text: str) -> str:
    return re.sub(r"[^\w+#-]", "", text)[:20].lower()


class _Converter(MarkdownConverter):
    deadline: Deadline | None = None

    def __init__(self, **options: Any) -> None:
        MarkdownConverter.__init__(self, **options)
        self._of_lists: dict[int, dict[int, int]] = {}
        self._headed: dict[int, bool] = {}

    def escape(self, text: str, parent_tags: set[str]) -> str:
        escaped: str = MarkdownConverter.escape(self, text.replace("\\", "\\\\"), parent_tags)
        escaped = escaped.replace("`", "&#96;")  # a lone one would be half of a code span
        escaped = RAW.sub(r"\\<", escaped).replace("[[", "[\\[")
        return TAG.sub(lambda found: "\\" + found[0], escaped)

    def process_text(self, el: Any, parent_tags: set[str] | None = None) -> str:
        """What begins a line must not begin a heading, a list or a code block."""
        if self.deadline:
            self.deadline.left()
        text = str(MarkdownConverter.process_text(self, el, parent_tags))
        if "_noformat" in (parent_tags or ()):
            return text
        before = el.previous_sibling
        starts = before is None or before.name in BLOCKS
        return (LINE_MARK if starts else LATER_LINE_MARK).sub(_escaped_mark, text)

    def convert_pre(self, el: Any, text: str, parent_tags: set[str]) -> str:
        """With a fence that does not stand in the code."""
        if not text.strip():
            return ""
        mark = "~" if "```" in text else "`"
        fence = mark * (1 + max([2, *(len(run) for run in re.findall(f"{mark}{{3,}}", text))]))
        return f"\n\n{fence}{_language(el)}\n{_unframed(text)}\n{fence}\n\n"

    def convert_li(self, el: Any, text: str, parent_tags: set[str]) -> str:
        """As markdownify does it, which counts the items before each item."""
        text = text.strip()
        if not text:
            return "\n"
        mark = f"{self._number(el)}. " if el.parent is not None and el.parent.name == "ol" else "- "
        return mark + re.sub(r"\n(?=[^\n])", "\n" + " " * len(mark), text) + "\n"

    def _number(self, item: Any) -> int:
        numbers = self._of_lists.get(id(item.parent))
        if numbers is None:
            start = str(item.parent.get("start") or "")
            first = int(start) if re.fullmatch("[0-9]{1,9}", start) else 1
            items = item.parent.find_all("li", recursive=False)
            numbers = {id(one): number for number, one in enumerate(items, start=first)}
            self._of_lists[id(item.parent)] = numbers
        return numbers[id(item)]

    def convert_tr(self, el: Any, text: str, parent_tags: set[str]) -> str:
        """As markdownify does it, which looks through the whole table at each row."""
        row = f"|{text}\n"
        part = el.parent
        if part is None or el.find_previous_sibling() is not None:
            return row
        cells = el.find_all(["td", "th"])
        columns = sum(int(str(_narrow(cell).get("colspan") or 1)) for cell in cells)
        line = f"| {' | '.join(['---'] * columns)} |\n"
        alone = part.name == "thead" and el.find_next_sibling("tr") is None
        if alone or all(cell.name == "th" for cell in cells):
            return row + line
        if part.name != "tbody" or not self._has_head(part.parent) or part.find_previous_sibling() is None:
            return f"| {' | '.join([''] * columns)} |\n{line}{row}"
        return row

    def _has_head(self, table: Any) -> bool:
        if id(table) not in self._headed:
            self._headed[id(table)] = table.find("thead") is not None
        return self._headed[id(table)]

    def convert_td(self, el: Any, text: str, parent_tags: set[str]) -> str:
        return str(MarkdownConverter.convert_td(self, _narrow(el), text.replace("|", "\\|"), parent_tags))

    def convert_th(self, el: Any, text: str, parent_tags: set[str]) -> str:
        return str(MarkdownConverter.convert_th(self, _narrow(el), text.replace("|", "\\|"), parent_tags))

    def convert_a(self, el: Any, text: str, parent_tags: set[str]) -> str:
        """A link that leads to another page; of any other only the words."""
        href = str(el.get("href") or "")
        if not re.match(r"(?:https?|mailto):", href, re.I):
            return text
        el["href"] = re.sub(r"[\s<>()]", lambda found: f"%{ord(found[0]):02X}", href)
        el.attrs.pop("title", None)
        return str(MarkdownConverter.convert_a(self, el, text, parent_tags))

    def convert_img(self, el: Any, text: str, parent_tags: set[str]) -> str:
        """By its description; a picture without one says nothing here."""
        alt = " ".join(str(el.get("alt") or "").split())
        source = str(el.get("src") or "")
        if not alt or not re.match(r"https?:", source, re.I) or "_inline" in parent_tags or "a" in parent_tags:
            return self.escape(alt, parent_tags)
        source = re.sub(r"[\s<>()]", lambda found: f"%{ord(found[0]):02X}", source)
        return f"![{self.escape(alt, parent_tags).replace(']', '')}]({source})"

    def convert_input(self, el: Any, text: str, parent_tags: set[str]) -> str:
        return "[x]" if el.has_attr("checked") else "[ ]"


def _escaped_mark(found: re.Match[str]) -> str:
    return f"{found[1]}{found[2]}\\" if found[2].isdigit() else f"{found[1]}\\{found[2]}"


def _narrow(cell: Any) -> Any:
    """Over some columns, but not over a thousand, which would be a thousand times the text."""
    columns = str(cell.get("colspan") or "1")
    cell["colspan"] = columns if re.fullmatch("[1-9]", columns) else "9" if re.fullmatch("[0-9]{2,}", columns) else "1"
    return cell


def _unframed(code: str) -> str:
    return re.sub(r"\A(?:[ \t]*\n)+|\s+\Z", "", code)
