"""Files made to harm: whatever the bytes, the answer is a document or one line that says why not, and soon."""

from __future__ import annotations

import io
import json
import os
import time
import zipfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from co_cli.notes.note import NotTextError
from co_cli.sources import documents_pdf, documents_zip
from co_cli.sources.documents import MOST_TEXT, Document, read_document
from tests.sources.document_files import (
    book,
    lines_of,
    open_document,
    packed,
    paragraph,
    pdf,
    shape,
    slides,
    word,
    workbook,
)

ENDINGS = """
    txt rst org adoc tex csv json jsonl yaml toml xml html py js go c sql sh ipynb pdf docx pptx xlsx odt odp ods
    fodt epub rtf eml doc odd
""".split()
GOOD = {
    "docx": word(paragraph("Mooring", "berschrift1") + paragraph("Tie to the ring."), title="Rules"),
    "pptx": slides(shape("Tides", "title") + shape("High at noon", "body"), notes="The moon."),
    "xlsx": workbook({"Fees": '<row><c r="A1" t="s"><v>0</v></c><c r="B1" s="1"><v>46082</v></c></row>'}, ["Berth"]),
    "odt": open_document('<text:h text:outline-level="1">Quay</text:h><text:p>Long.</text:p>'),
    "epub": book({"one": "<h1>One</h1><p>It opens at dawn.</p>"}),
    "pdf": pdf(lines_of("The ferry leaves at seven.")),
    "rtf": rb"{\rtf1\ansi\ansicpg1252{\fonttbl{\f0 A;}}\f0 Gr\'fc\'dfe \u8364?\par x}",
    "eml": b"From: a@b.example\nSubject: =?utf-8?q?x?=\n"
    b"Content-Type: multipart/mixed; boundary=x\n\n--x\n\nhello\n--x--\n",
    "ipynb": json.dumps({"cells": [{"cell_type": "code", "source": ["x"], "outputs": [{"text": "y"}]}]}).encode(),
    "html": b"<html><head><title>T</title></head><body><main><h1>H</h1><p>Words of a page.</p></main></body></html>",
}
BOMB = '<!DOCTYPE x [<!ENTITY a "ha">{}<!ENTITY s SYSTEM "file:///etc/passwd">]>'.format(
    "".join(f'<!ENTITY {chr(98 + level)} "{f"&{chr(97 + level)};" * 20}">' for level in range(9))
)


@pytest.fixture(scope="module", autouse=True)
def no_reader_is_left() -> Iterator[None]:
    yield
    documents_pdf.end_reader()


def answer(name: str, data: bytes) -> Document | str:
    """The document, checked, or the one line; nothing that was not foreseen happened on the way to it."""
    started = time.monotonic()
    found = _answer(name, data)
    assert time.monotonic() - started < 90
    if isinstance(found, NotTextError):
        assert found.__cause__ is None
        assert "\n" not in str(found)
        assert len(str(found)) < 400
        return str(found)
    assert found.text.encode("utf-8")[:1] is not None
    assert "\0" not in found.text
    assert len(found.text) <= MOST_TEXT
    assert found.title is None or ("\n" not in found.title and found.title.strip())
    json.dumps(found.metadata)
    lines = found.text.count("\n") + 1
    assert all(0 <= heading.line < lines for heading in found.headings or ())
    return found


def _answer(name: str, data: bytes) -> Document | NotTextError:
    try:
        return read_document(name, data)
    except NotTextError as error:
        return error


@given(st.sampled_from(ENDINGS), st.binary(max_size=600))
@settings(max_examples=100)
def test_any_bytes_under_any_name_are_a_document_or_refused(ending: str, data: bytes) -> None:
    answer(f"a.{ending}", data)


@given(st.sampled_from(ENDINGS), st.text(max_size=400))
@settings(max_examples=100)
def test_any_text_under_any_name_is_a_document_or_refused(ending: str, text: str) -> None:
    answer(f"a.{ending}", text.encode("utf-8", "replace"))


@given(
    st.sampled_from(sorted(GOOD)), st.lists(st.tuples(st.floats(0, 1), st.binary(max_size=4)), min_size=1, max_size=6)
)
@settings(max_examples=100, suppress_health_check=[HealthCheck.too_slow])
def test_a_damaged_document_is_read_or_refused(ending: str, damage: list[tuple[float, bytes]]) -> None:
    data = bytearray(GOOD[ending])
    for place, bytes_there in damage:
        start = int(place * len(data))
        data[start : start + len(bytes_there)] = bytes_there
    answer(f"a.{ending}", bytes(data))


@given(st.sampled_from(["docx", "pptx", "xlsx", "odt", "epub"]), st.data())
@settings(max_examples=120, suppress_health_check=[HealthCheck.too_slow])
def test_a_document_with_damaged_parts_is_read_or_refused(ending: str, data: st.DataObject) -> None:
    with zipfile.ZipFile(io.BytesIO(GOOD[ending])) as file:
        parts = {name: file.read(name) for name in file.namelist()}
    name = data.draw(st.sampled_from(sorted(parts)))
    old, new = data.draw(
        st.tuples(st.sampled_from([b'"', b"1", b"w:", b"/", b"<", b"r1", b"xml", b">"]), st.binary(max_size=3))
    )
    parts[name] = parts[name].replace(old, new, data.draw(st.integers(1, 3)))
    if data.draw(st.booleans()):
        del parts[data.draw(st.sampled_from(sorted(parts)))]
    answer(f"a.{ending}", packed(parts))


@pytest.mark.parametrize("ending", sorted(GOOD))
def test_the_documents_that_are_damaged_here_are_whole_before(ending: str) -> None:
    assert isinstance(answer(f"a.{ending}", GOOD[ending]), Document)


def test_a_zip_that_unpacks_to_gigabytes_is_refused_at_once() -> None:
    bomb = packed({"word/document.xml": b"<w>" + b" " * 60_000_000})
    assert len(bomb) < 100_000
    started = time.process_time()

    assert answer("a.docx", bomb) == "its text is larger than 32 MB when unpacked"
    assert time.process_time() - started < 2


def test_many_large_parts_are_bounded_together(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(documents_zip, "LARGEST_WHOLE", 1_000_000)
    page = b"<p>" + b" " * 200_000 + b"word</p>"
    parts = {f"OEBPS/c{number}.xhtml": page for number in range(8)}
    items = "".join(f'<item id="c{number}" href="c{number}.xhtml"/>' for number in range(8))
    spine = "".join(f'<itemref idref="c{number}"/>' for number in range(8))
    whole = {
        "META-INF/container.xml": '<container><rootfile full-path="OEBPS/b.opf"/></container>',
        "OEBPS/b.opf": f"<package><manifest>{items}</manifest><spine>{spine}</spine></package>",
    }

    found = answer("a.epub", packed({**whole, **parts}))

    assert isinstance(found, str)
    assert "larger than" in found


@pytest.mark.parametrize(
    ("name", "part"),
    [
        ("a.docx", "word/document.xml"),
        ("a.docx", "docProps/core.xml"),
        ("a.pptx", "ppt/slides/slide1.xml"),
        ("a.xlsx", "xl/worksheets/sheet1.xml"),
        ("a.xlsx", "xl/sharedStrings.xml"),
        ("a.odt", "content.xml"),
        ("a.epub", "OEBPS/book.opf"),
        ("a.epub", "OEBPS/one.xhtml"),
    ],
)
def test_entities_are_neither_expanded_nor_fetched(name: str, part: str, connections: list[str]) -> None:
    with zipfile.ZipFile(io.BytesIO(GOOD[name[2:]])) as file:
        parts = {entry: file.read(entry) for entry in file.namelist()}
    text = parts[part].decode()
    for word_there in (
        "Tie to the ring.",
        "Rules",
        "High at noon",
        "46082",
        "Berth",
        "Long.",
        "The lock",
        "It opens at dawn.",
    ):
        text = text.replace(word_there, f"before &j; &s; after {word_there}")
    parts[part] = (BOMB + text).encode()

    found = answer(name, packed(parts))

    assert len(str(found)) < 2_000
    assert "hahaha" not in str(found)
    assert "root:" not in str(found)
    assert connections == []


def test_an_entity_bomb_in_a_plain_xml_file_is_just_text() -> None:
    found = answer("a.xml", (BOMB + "<x>&j;</x>").encode())

    assert isinstance(found, Document)
    assert found.text == BOMB + "<x>&j;</x>"


@pytest.mark.parametrize(
    ("name", "data"),
    [
        ("a.docx", word("<w:sdt>" * 5_000 + "</w:sdt>" * 5_000)),
        ("a.odt", open_document("<text:list>" * 240 + "<text:p>x</text:p>" + "</text:list>" * 240)),
        ("a.json", b"[" * 200_000 + b"]" * 200_000),
        ("a.ipynb", b'{"cells":' + b"[" * 200_000),
        ("a.html", b"<div>" * 100_000 + b"x"),
        ("a.html", b"<p>" + b" " * 900_000 + b"word</p>"),
        ("a.html", b"<p>" + b"&#32;" * 200_000 + b"word</p>"),
        ("a.html", b"<h1>Quay</h1>" + b"<p>word</p>" * 40_000),
        ("a.py", b"def a(x):\n    return x\n\n" * 40_000),
        ("a.xlsx", workbook({"a": ("<row>" + "<c><v>1.5</v></c>" * 200 + "</row>") * 400})),
        ("a.rtf", b"{\\rtf1" + b"{" * 200_000),
        (
            "a.eml",
            b"From: x\n"
            + b"".join(b"Content-Type: multipart/mixed; boundary=b%d\n\n--b%d\n" % (n, n) for n in range(400)),
        ),
        ("a.py", b"(" * 900_000),
        ("a.c", b"a " * 400_000),
        ("a.rst", b"=" * 900_000),
        ("a.js", (b"const " * 60 + b"\n") * 3_000),
        ("a.txt", b"\xe9" * 900_000),
        ("a.csv", b"," * 900_000),
        (
            "a.xlsx",
            workbook({"a": '<row><c r="ZZZ1"><v>1e999</v></c><c s="1"><v>1e300</v></c><c t="s"><v>-1</v></c></row>'}),
        ),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_what_is_nested_or_long_beyond_reason_ends_soon(name: str, data: bytes) -> None:
    started = time.process_time()

    answer(name, data)

    assert time.process_time() - started < 5


def test_names_inside_a_file_lead_nowhere_outside_it(tmp_path: Path) -> None:
    before = sorted(os.listdir(tmp_path))
    relations = (
        '<Relationships><Relationship Id="r1" Type="x/officeDocument" Target="../../../../etc/passwd"/>'
        '<Relationship Id="r2" Type="x/core-properties" Target="file:///etc/passwd"/></Relationships>'
    )
    traps = {"../../evil.txt": "x", "/etc/evil": "x", "_rels/.rels": relations, "word/document.xml": "<d><body/></d>"}

    found = answer("a.docx", packed(traps))

    assert isinstance(found, Document)
    assert found.text == ""
    assert sorted(os.listdir(tmp_path)) == before


def test_a_pdf_that_holds_a_bomb_is_read_in_bounded_memory() -> None:
    data = pdf([(10, 10, "x" * 50)] * 20_000)

    found = answer("a.pdf", data)

    assert isinstance(found, Document)
    assert len(found.text) <= 500_100
