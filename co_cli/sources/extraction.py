"""A web page's markup into its main text as Markdown, and its title.

What frames the text (navigation, banners, forms, comments, advertisements) is left out; headings, lists, tables, quotes
and code blocks stay what they are, and links become absolute. The text is somebody else's: it brings no tags, no links
between notes and no raw HTML into the vault. A page without text of its own is an error that says so.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from itertools import islice
from typing import NamedTuple
from urllib.parse import urljoin

from co_cli.errors import PageRefusedError
from co_cli.notes.frontmatter import read_frontmatter
from co_cli.notes.markdown import CODE, LINK, TAG, headings
from co_cli.sources.extraction_encoding import decode_page
from co_cli.sources.fetching import Fetched
from co_cli.sources.fetching_exchange import Deadline

LONGEST_TITLE = 200
HARDLY_ANYTHING = 40
"""Letters: less than this, on a page that has scripts, is what such a page shows until its scripts have run."""
CONTROL = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f]")
"""What a terminal would obey; tabs and line ends stay."""
MARKUP = re.compile(r"\s*(?:<!--(?:(?!-->).)*+-->\s*)*+<(?:!doctype|html|head|body|\?xml)\b", re.I | re.S)


class Page(NamedTuple):
    """What is kept of a page."""

    title: str
    text: str


def read_page(fetched: Fetched, seconds: float | None = None) -> Page:
    """The page that was fetched, as text. Raises PageRefusedError if there is none in it, or if it takes too long."""
    url = str(fetched.url)
    plain = fetched.media_type.startswith("text/") and fetched.media_type != "text/html"
    text = decode_page(fetched.body, fetched.charset, markup=not plain)
    if "\0" in text[:8_192]:
        raise PageRefusedError(f"{url}: it holds binary data, not text")
    if not plain and (fetched.media_type or MARKUP.match(text)):
        page = read_markup(text, url, seconds)
    else:
        page = read_plain(text, url)
    title = " ".join(CONTROL.sub(" ", page.title).split())[:LONGEST_TITLE].strip() or _title_from(url)
    return Page(title, CONTROL.sub("", page.text))


def read_markup(markup: str, url: str, seconds: float | None = None) -> Page:
    """`seconds` bound the work: a page of many elements takes many times as long as it took to come."""
    from co_cli.sources.extraction_main import find_main  # lxml and its friends take a while to import
    from co_cli.sources.extraction_markdown import render, rendered_plainly
    from co_cli.sources.extraction_plain import RENDERED, count_elements

    deadline = None if seconds is None else Deadline(seconds)
    try:
        title, element, scripted = find_main(markup, url, deadline)
        if element is not None and count_elements(element) > RENDERED:
            text = rendered_plainly(element, deadline)
        else:
            text = "" if element is None else render(element, deadline)
    except RecursionError:
        raise PageRefusedError(f"{url}: its elements are nested too deep to be read") from None
    except TimeoutError:
        raise PageRefusedError(
            f"{url}: its text was not found in {seconds:g} seconds (the setting web_seconds); "
            "copy what your browser shows into `co article add -`"
        ) from None
    letters = len(list(islice(re.finditer(r"\w", text), HARDLY_ANYTHING)))
    if not letters or (scripted and letters < HARDLY_ANYTHING):
        why = "no text in the page itself, only scripts, which are not run" if scripted else "no text in the page"
        raise PageRefusedError(f"{url}: there is {why}; copy what your browser shows into `co article add -`")
    return Page(title, text)


def read_plain(text: str, url: str) -> Page:
    """Markdown and plain text stay as they are, except for what would mean something in this vault."""
    text = text.replace("\r\n", "\n").replace("\r", "\n")
    front = read_frontmatter(text)
    body = text[front.body :].strip("\n")
    if not re.search(r"\w", body):
        raise PageRefusedError(f"{url}: there is no text in it")
    own = front.metadata.get("title")
    title = own if isinstance(own, str) else next((found.text for found in headings(body.split("\n"))), "")
    return Page(title, _outside_code(body, lambda part: without_meaning(_absolute(part, url))).rstrip() + "\n")


def without_meaning(text: str) -> str:
    """`#tags` and `[[links]]` of a page are no tags and links of ours."""
    return TAG.sub(lambda found: "\\" + found[0], text).replace("[[", "[\\[")


def _outside_code(text: str, change: Callable[[str], str]) -> str:
    parts: list[str] = []
    place = 0
    for code in CODE.finditer(text):
        parts += [change(text[place : code.start()]), code[0]]
        place = code.end()
    return "".join([*parts, change(text[place:])])


def _absolute(text: str, url: str) -> str:
    def one(found: re.Match[str]) -> str:
        try:
            target = urljoin(url, found[1])
        except ValueError:
            return found[0]
        return found[0].replace(found[1], target, 1)

    return LINK.sub(one, text)


def _title_from(url: str) -> str:
    """The last part of the path, else the host."""
    host, _, path = url.split("://", 1)[-1].partition("/")
    name = path.split("?")[0].rstrip("/").rsplit("/", 1)[-1]
    return re.sub(r"\.\w{1,5}$", "", name).replace("-", " ").replace("_", " ").strip() or host
