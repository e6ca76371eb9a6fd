"""Hostile files: whatever the bytes, the answer is a document or a one-line reason, and it comes soon."""

from __future__ import annotations

import json
import os
import re
import time
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from co_cli.notes.encoding import NotTextError
from co_cli.sources import worker
from co_cli.sources.documents import Document, read_document
from co_cli.sources.worker import MOST_TEXT
from tests.sources.document_files import book, changed, lines_of, packed, pdf, slides, unpacked, word, workbook
from tests.sources.test_extraction import MANY

ENDINGS = """
    txt rst org adoc tex csv json jsonl yaml toml xml html py js go c sql sh ipynb pdf docx pptx xlsx odt epub rtf eml
    doc odd
""".split()
OFFICE = ("docx", "pptx", "xlsx")
ARCHIVES = (*OFFICE, "epub")
BOMB = '<!DOCTYPE x [<!ENTITY a "ha">{}<!ENTITY s SYSTEM "file:///etc/passwd">]>'.format(
    "".join(f'<!ENTITY {chr(98 + level)} "{f"&{chr(97 + level)};" * 20}">' for level in range(9))
)


NESTED = "<w:sdt>" * 5_000 + "</w:sdt>" * 5_000
WIDE = (
    '<w:tbl><w:tr><w:tc><w:tcPr><w:gridSpan w:val="999999999"/></w:tcPr><w:p><w:r><w:t>x</w:t></w:r></w:p></w:tc>'
    "<w:tc><w:p/></w:tc></w:tr></w:tbl>"
)
FAR = '<row r="999999999"><c r="ZZZ999999999"><v>1e999</v></c></row>'


@cache
def good() -> dict[str, bytes]:
    """A readable document by ending."""
    return {
        "docx": word(("Mooring", "Heading 1"), ("Tie to the ring.", ""), title="Rules"),
        "pptx": slides(("Tides", "High at noon"), notes="The moon."),
        "xlsx": workbook(Fees=[["Berth", 46082]]),
        "epub": book("<h1>Mooring</h1><p>Tie to the ring.</p>"),
        "pdf": pdf(lines_of("The ferry leaves at seven.")),
        "eml": b"From: a@b.example\nSubject: =?utf-8?q?x?=\n"
        b"Content-Type: multipart/mixed; boundary=x\n\n--x\n\nhello\n--x--\n",
        "ipynb": json.dumps({"cells": [{"cell_type": "code", "source": ["x"], "outputs": [{"text": "y"}]}]}).encode(),
        "html": b"<html><head><title>T</title></head><body><main><h1>H</h1><p>Words of it.</p></main></body></html>",
    }


def extreme() -> list[tuple[str, bytes]]:
    """Small files by name that ask for much work."""
    return [
        ("a.docx", changed(word(), "word/document.xml", "<w:sectPr", NESTED + "<w:sectPr")),
        ("a.docx", changed(word(), "word/document.xml", "<w:sectPr", WIDE + "<w:sectPr")),
        ("a.json", b"[" * 200_000 + b"]" * 200_000),
        ("a.ipynb", b'{"cells":' + b"[" * 200_000),
        ("a.html", b"<div>" * 100_000 + b"x"),
        ("a.html", b"<p>" + b" " * 900_000 + b"word</p>"),
        ("a.py", b"def a(x):\n    return x\n\n" * 20_000),
        ("a.xlsx", workbook(a=[["x" * 32_000] * 5] * 40)),
        ("a.xlsx", changed(workbook(a=[[1]]), "xl/worksheets/sheet1.xml", "<row", FAR + "<row")),
        (
            "a.eml",
            b"From: x\n"
            + b"".join(b"Content-Type: multipart/mixed; boundary=b%d\n\n--b%d\n" % (n, n) for n in range(400)),
        ),
        ("a.eml", b"From: x\nTo: " + b"=?utf-8?q?x?= " * 400_000 + b"\n\nhello\n"),
        ("a.eml", b"From: x\nContent-Type: multipart/mixed; boundary=x\n\n" + b"--x\n\n" * 300_000),
        ("a.ipynb", b'{"cells":[' + b"[]," * 1_000_000 + b"[]]}"),
        ("a.py", b"(" * 900_000),
        ("a.c", b"a " * 400_000),
        ("a.rst", b"=" * 900_000),
        ("a.js", (b"const " * 60 + b"\n") * 3_000),
        ("a.txt", b"\xe9" * 900_000),
        ("a.csv", b"," * 900_000),
    ]


@pytest.fixture(scope="module", autouse=True)
def end_worker() -> Iterator[None]:
    yield
    worker.end_worker()


def answer(name: str, data: bytes) -> Document | str:
    """The document, checked, or the reason; no unexpected exception is behind it."""
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


def worked() -> float:
    """CPU seconds of this process and of those that read, which does not depend on how busy the machine is."""
    worker.end_worker()
    return sum(os.times()[:4])


def _answer(name: str, data: bytes) -> Document | NotTextError:
    try:
        return read_document(name, data)
    except NotTextError as error:
        return error


@given(
    st.sampled_from(ENDINGS),
    st.binary(max_size=600) | st.text(max_size=400).map(lambda text: text.encode("utf-8", "replace")),
)
@settings(max_examples=120, deadline=None)
def test_any_bytes_under_any_name_are_a_document_or_refused(ending: str, data: bytes) -> None:
    assert answer(f"a.{ending}", data)


@given(
    st.sampled_from((*ARCHIVES, "pdf", "eml", "ipynb", "html")),
    st.lists(st.tuples(st.floats(0, 1), st.binary(max_size=4)), min_size=1, max_size=6),
)
@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])
def test_a_damaged_document_is_read_or_refused(ending: str, damage: list[tuple[float, bytes]]) -> None:
    data = bytearray(good()[ending])
    for place, bytes_there in damage:
        start = int(place * len(data))
        data[start : start + len(bytes_there)] = bytes_there
    assert answer(f"a.{ending}", bytes(data))


@pytest.mark.medium
@given(st.sampled_from(ARCHIVES), st.data())
@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.too_slow])
def test_a_document_with_damaged_parts_is_read_or_refused(ending: str, data: st.DataObject) -> None:
    parts = unpacked(good()[ending])
    name = data.draw(st.sampled_from(sorted(parts)))
    old, new = data.draw(
        st.tuples(st.sampled_from([b'"', b"1", b"w:", b"/", b"<", b"r1", b"xml", b">"]), st.binary(max_size=3))
    )
    parts[name] = parts[name].replace(old, new, data.draw(st.integers(1, 3)))
    if data.draw(st.booleans()):
        del parts[data.draw(st.sampled_from(sorted(parts)))]
    assert answer(f"a.{ending}", packed(parts))


def test_the_documents_that_are_damaged_here_can_be_read() -> None:
    assert [ending for ending, data in good().items() if not isinstance(answer(f"a.{ending}", data), Document)] == []


@pytest.mark.slow
def test_zip_bombs_are_refused_at_once() -> None:
    """One large part, a lie about its size, and many large parts together; pictures are not unpacked."""
    size = 34_000_000
    started = worked()
    for ending in OFFICE:
        bomb = packed({**unpacked(good()[ending]), "custom/item.xml": b"<w>" + b" " * size})
        assert len(bomb) < 200_000
        assert answer(f"a.{ending}", bomb) == "its text is larger than 32 MB when unpacked"
    honest = packed({**unpacked(good()["docx"]), "custom/item.xml": b" " * size})
    lie = honest.replace(size.to_bytes(4, "little"), (100).to_bytes(4, "little"))
    assert lie != honest
    assert isinstance(answer("a.docx", lie), str)
    parts = {f"custom/item{number}.xml": b" " * 20_000_000 for number in range(6)}
    assert "larger than" in str(answer("a.docx", packed({**unpacked(good()["docx"]), **parts})))
    picture = packed({**unpacked(good()["docx"]), "word/media/image.png": b" " * size})
    assert isinstance(answer("a.docx", picture), Document)
    assert worked() - started < 30


def test_files_with_entities_are_refused(connections: list[str]) -> None:
    for name, part, encoding in (
        ("a.docx", "word/document.xml", "utf-8"),
        ("a.docx", "docProps/core.xml", "utf-16"),
        ("a.pptx", "ppt/slides/slide1.xml", "utf-8"),
        ("a.xlsx", "xl/worksheets/sheet1.xml", "utf-16"),
    ):
        parts = unpacked(good()[name[2:]])
        text = re.sub(r"<\?xml[^>]*>", "", parts[part].decode())
        for word_there in ("Tie to the ring.", "Rules", "High at noon", "46082", "Berth"):
            text = text.replace(word_there, f"before &j; &s; after {word_there}")
        parts[part] = (BOMB + text).encode(encoding)

        assert answer(name, packed(parts)) == "broken: its XML contains a DTD; open it and save it again", part
    assert connections == []


def test_xml_in_other_encodings_than_utf_8_and_utf_16_is_refused() -> None:
    """A DTD that is hidden from us, and not from the parser."""
    parts = unpacked(good()["docx"])
    text = re.sub(r"<\?xml[^>]*>", "", parts["word/document.xml"].decode())
    for encoding, declared in (("utf-7", "UTF-7"), ("utf-32", "UCS-4"), ("cp037", "IBM037"), ("latin-1", "ISO-8859-1")):
        head = f'<?xml version="1.0" encoding="{declared}"?>'
        hidden = head.encode("ascii" if encoding == "utf-7" else encoding) + (BOMB + text).encode(encoding)
        if encoding == "utf-7":
            hidden = hidden.replace(b"<!", b"+ADwAIQ-")

        found = answer("a.docx", packed({**parts, "word/document.xml": hidden}))

        assert found == "broken: its XML is neither UTF-8 nor UTF-16; open it and save it again", encoding


@pytest.mark.slow
@pytest.mark.medium
@pytest.mark.parametrize(
    ("name", "start", "repeated", "times", "end"),
    [
        ("a.eml", "From: x\nContent-Type: multipart/mixed; boundary=x\n\n", "--x\n\n", 3_000_000, ""),
        ("a.ipynb", '{"cells":[', "[],", 10_000_000, "[]]}"),
        ("a.json", "[", "[],", 3_000_000, "[]]"),
        ("a.html", "<div ", MANY, 1, ">x</div>"),
    ],
    ids=["eml", "ipynb", "json", "html"],
)
def test_every_format_is_read_within_the_limits_of_the_worker(
    name: str, start: str, repeated: str, times: int, end: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    data = (start + repeated * times + end).encode()
    answer(name, data[:20])
    monkeypatch.setattr(worker, "SECONDS_A_PART", 0.5)

    assert answer(name, data) == "it takes too long"


@pytest.mark.slow
@pytest.mark.medium
def test_a_body_that_takes_too_long_is_reported_and_the_rest_of_the_mail_is_read(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    mail = b"From: ada@quay.example\nSubject: Ferry\nContent-Type: text/html\n\n<p>Seven.</p><div %s>x</div>"
    monkeypatch.setattr(worker, "SECONDS_A_PART", 2.0)

    found = answer("a.eml", mail % MANY.encode())

    assert isinstance(found, Document)
    assert (found.title, found.text) == ("Ferry", "From: ada@quay.example\n")
    assert found.problem == "read in part: it takes too long"


def test_what_is_cut_off_is_reported() -> None:
    found = answer("a.eml", b"From: x\nSubject: s\nTo: " + b"a@quay.example, " * 2_000 + b"\n\nhello\n")
    parts = b"From: x\nContent-Type: multipart/mixed; boundary=x\n\n" + b"--x\n\nhello\n" * 300 + b"--x--\n"
    line = answer("a.txt", b"a long line of words " * (MOST_TEXT // 20))

    assert isinstance(found, Document)
    assert "hello" in found.text
    assert found.problem == "only the first 20,000 characters of To are read"
    assert getattr(answer("a.eml", parts), "problem", "") == "only its first 200 parts are read"
    assert isinstance(line, Document)
    assert line.problem == "only its first 5,000,000 characters are read: it is longer than 5,000,000 characters"


@pytest.mark.slow
def test_extreme_nesting_and_length_take_limited_time() -> None:
    for name, data in extreme():
        started = worked()
        answer(name, data)
        assert worked() - started < 15, (name, data[:20])


def test_paths_inside_a_file_cannot_leave_it(tmp_path: Path) -> None:
    before = sorted(os.listdir(tmp_path))
    for target in ("../../../../etc/passwd", "file:///etc/passwd", "/etc/passwd"):
        parts = unpacked(changed(good()["docx"], "_rels/.rels", "word/document.xml", target))

        found = answer("a.docx", packed({**parts, "../../evil.xml": "<x/>", "/etc/evil.xml": "<x/>"}))

        assert "root:" not in str(found)
        assert sorted(os.listdir(tmp_path)) == before


@pytest.mark.medium
def test_a_pdf_that_holds_a_bomb_is_read_in_bounded_memory() -> None:
    data = pdf([(10, 10, "x" * 50)] * 20_000)

    found = answer("a.pdf", data)

    assert isinstance(found, Document)
    assert len(found.text) <= 500_100
