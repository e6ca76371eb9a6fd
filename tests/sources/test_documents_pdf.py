"""PDF files, read by the real reader in its process: pages, columns, passwords, scans, and files that never end."""

from __future__ import annotations

import io
import time
from collections.abc import Iterator

import pytest

from co_cli.notes.encoding import NotTextError
from co_cli.sources import worker
from co_cli.sources.documents import Document, read_document
from tests.sources.document_files import assembled, lines_of, pdf


@pytest.fixture(autouse=True)
def end_worker() -> Iterator[None]:
    yield
    worker.end_worker()


def read(data: bytes) -> Document:
    return read_document("a.pdf", data)


def refusal(data: bytes) -> str:
    with pytest.raises(NotTextError) as refused:
        read(data)
    return str(refused.value)


@pytest.mark.medium
def test_each_page_has_a_heading() -> None:
    pages = [lines_of("The ferry leaves at seven.\n# no heading"), lines_of("Lanterns (green) are lit at dusk: 5 €.")]

    document = read(pdf(*pages, title="Ferry rules"))

    assert document.title == "Ferry rules"
    assert document.metadata == {"author": "Ada", "created": "2026-03-01T09:30:00+01:00", "pages": 2}
    assert document.text == (
        "## Page 1\n\nThe ferry leaves at seven.\n\\# no heading\n\n"
        "## Page 2\n\nLanterns (green) are lit at dusk: 5 €.\n"
    )
    assert document.problem is None
    assert "Words." in read(pdf(lines_of("Words.")).replace(b"startxref", b"startxxxx")).text, "its table is broken"


def test_scanned_pages_are_counted_and_blank_ones_are_not() -> None:
    document = read(pdf(lines_of("Words."), None, [], None))

    assert document.text == "## Page 1\n\nWords.\n"
    assert document.problem
    assert document.problem.startswith("2 of 4 pages have no text (scanned?): ")
    assert document.metadata["pages"] == 4
    assert refusal(pdf(None, None)).startswith("no text on its 2 pages (scanned?): ")


def test_a_file_with_a_password_is_refused_and_one_that_opens_without_is_read() -> None:
    pypdf = pytest.importorskip("pypdf", reason="it makes the encrypted file")
    writers = [pypdf.PdfWriter(clone_from=io.BytesIO(pdf(lines_of("A secret berth.")))) for _ in range(2)]
    writers[0].encrypt("needed", algorithm="RC4-128")
    writers[1].encrypt("", owner_password="only to change it", algorithm="RC4-128")
    locked, open_to_read = io.BytesIO(), io.BytesIO()
    writers[0].write(locked)
    writers[1].write(open_to_read)

    assert refusal(locked.getvalue()) == "protected by a password: save a copy without one"
    assert "A secret berth." in read(open_to_read.getvalue()).text


def test_what_is_not_a_pdf_is_refused() -> None:
    for data in (b"", b"plain text", b"%PDF-1.4\n", b"%PDF-1.4\n" + b"\0" * 5_000, pdf([])[:60]):
        assert refusal(data).startswith(("broken", "empty file"))


def test_text_that_cannot_be_decoded_is_reported_and_not_indexed() -> None:
    """Fonts without a table of characters give `7KHIHUU\\` for `The ferry`, or private characters."""
    for unreadable in (False, True):
        document = read(undecodable("The ferry leaves at seven", private=unreadable))

        assert document.text == "## Page 1\n\nBefore.\n"
        assert document.problem == (
            "1 of 2 pages have text that cannot be decoded: `ocrmypdf --force-ocr` reads it from the picture"
        )


@pytest.mark.medium
def test_a_page_that_never_ends_costs_only_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    read(pdf(lines_of("The reader is started and imported.")))
    started = time.monotonic()

    with monkeypatch.context() as hasty:
        hasty.setattr(worker, "SECONDS_A_PART", 1.0)
        document = read(endless())

    assert time.monotonic() - started < 40
    assert document.text == "## Page 1\n\nBefore.\n"
    assert document.problem == "read in part: it takes too long"
    assert "Words." in read(pdf(lines_of("Words."))).text  # another process reads the next file


def test_a_reader_that_was_killed_is_started_again() -> None:
    read(pdf(lines_of("One.")))
    process = worker._process
    assert process is not None
    process.kill()
    process.wait()

    assert "Two." in read(pdf(lines_of("Two."))).text


def undecodable(text: str, private: bool) -> bytes:
    """Two pages. The font of the second has glyphs, and no characters or only private ones."""
    resources = b"/Resources << /Font << /F %d 0 R >> >>"
    page = b"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 595 842] " + resources + b" /Contents %d 0 R >>"
    described = b"/FontDescriptor << /Type /FontDescriptor /FontName /A+X /Flags 4 /FontBBox [0 0 1000 1000] >>"
    glyphs = "".join(f"{ord(letter) - 29:04x}" for letter in text).encode()
    characters = b"/ToUnicode 11 0 R " if private else b""
    return assembled(
        [
            b"<< /Type /Catalog /Pages 2 0 R >>",
            b"<< /Type /Pages /Count 2 /Kids [5 0 R 7 0 R] >>",
            b"<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica >>",
            b"<< /Title (Undecodable) >>",
            page % (3, 6),
            _stream(b"", b"BT /F 12 Tf 60 700 Td (Before.) Tj ET"),
            page % (9, 8),
            _stream(b"", b"BT /F 12 Tf 60 700 Td <%s> Tj ET" % glyphs),
            b"<< /Type /Font /Subtype /Type0 /BaseFont /A+X /Encoding /Identity-H %s/DescendantFonts [10 0 R] >>"
            % characters,
            b"<< /Type /Font /Subtype /CIDFontType2 /BaseFont /A+X /DW 600 %s "
            b"/CIDSystemInfo << /Registry (Adobe) /Ordering (Identity) /Supplement 0 >> >>" % described,
            _stream(
                b"",
                b"begincmap 1 begincodespacerange <0000> <FFFF> endcodespacerange "
                b"1 beginbfrange <0000> <00FF> <E000> endbfrange endcmap",
            ),
        ]
    )


def endless() -> bytes:
    """Two pages. The second draws a form that draws another one many times, which draws another one many times, …"""
    depth, times = 12, 40
    resources = b"<< /Font << /F 3 0 R >> /XObject << /X %d 0 R >> >>"
    objects = [
        b"<< /Type /Catalog /Pages 2 0 R >>",
        b"<< /Type /Pages /Count 2 /Kids [5 0 R 7 0 R] >>",
        b"<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica >>",
        b"<< /Title (Endless) >>",
        b"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 595 842] /Resources %s /Contents 6 0 R >>" % (resources % 9),
        _stream(b"", b"BT /F 12 Tf 60 700 Td (Before.) Tj ET"),
        b"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 595 842] /Resources %s /Contents 8 0 R >>" % (resources % 9),
        _stream(b"", b"/X Do"),
    ]
    for level in range(depth):
        inner = b"/X Do " * times if level < depth - 1 else b"BT /F 1 Tf (x) Tj ET"
        form = b"/Type /XObject /Subtype /Form /BBox [0 0 595 842] /Resources %s " % (resources % (10 + level))
        objects.append(_stream(form, inner))
    return assembled(objects)


def _stream(entries: bytes, content: bytes) -> bytes:
    return b"<< %s/Length %d >>\nstream\n%s\nendstream" % (entries, len(content), content)
