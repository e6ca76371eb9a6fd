"""Documents for the tests, made by the libraries that read them, and PDFs made by hand."""

from __future__ import annotations

import io
import zipfile
import zlib
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

MADE = datetime(2026, 3, 1, 9, 30, tzinfo=UTC)


def saved(document: Any) -> bytes:
    """The bytes of a document, workbook or presentation."""
    stream = io.BytesIO()
    document.save(stream)
    return stream.getvalue()


def packed(parts: Mapping[str, str | bytes]) -> bytes:
    """A ZIP file of these parts; the same parts give the same bytes."""
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w", zipfile.ZIP_DEFLATED) as file:
        for name, content in parts.items():
            file.writestr(zipfile.ZipInfo(name, (2026, 1, 1, 0, 0, 0)), content, zipfile.ZIP_DEFLATED)
    return stream.getvalue()


def unpacked(data: bytes) -> dict[str, bytes]:
    with zipfile.ZipFile(io.BytesIO(data)) as file:
        return {name: file.read(name) for name in file.namelist()}


def changed(data: bytes, part: str, old: str, new: str) -> bytes:
    """The same file with other XML in one of its parts."""
    parts = unpacked(data)
    assert old.encode() in parts[part]
    return packed({**parts, part: parts[part].replace(old.encode(), new.encode())})


def word(*paragraphs: tuple[str, str], title: str = "") -> bytes:
    """Each paragraph is its text and the name of its style."""
    import docx

    document = docx.Document()
    document.core_properties.title, document.core_properties.author = title, "Ada"
    document.core_properties.created = document.core_properties.modified = MADE
    for text, style in paragraphs:
        document.add_paragraph(text, style or None)
    return saved(document)


def slides(*contents: tuple[str, str], notes: str = "") -> bytes:
    """Each slide is its title and its points, one a line."""
    import pptx

    presentation = pptx.Presentation()
    for title, points in contents:
        slide: Any = presentation.slides.add_slide(presentation.slide_layouts[1])
        slide.shapes.title.text, slide.placeholders[1].text = title, points
        if notes:
            slide.notes_slide.notes_text_frame.text = notes
    return saved(presentation)


def workbook(**sheets: Sequence[Sequence[object]]) -> bytes:
    import openpyxl

    book: Any = openpyxl.Workbook()
    book.remove(book.active)
    for name, rows in sheets.items():
        sheet = book.create_sheet(name)
        for row in rows:
            sheet.append(row)
    return saved(book)


def book(*chapters: str, title: str = "The Quay", more: Mapping[str, str | bytes] | None = None) -> bytes:
    """An EPUB; each chapter is the XHTML of its body. Files and manifest are in another order than the spine."""
    names = [f"part {number}.xhtml" for number in range(len(chapters))]
    page = '<?xml version="1.0"?><html xmlns="http://www.w3.org/1999/xhtml"><head><title/></head><body>{}</body></html>'
    items = "".join(
        f'<item id="c{place}" href="text/{name.replace(" ", "%20")}" media-type="application/xhtml+xml"/>'
        for place, name in reversed([*enumerate(names)])
    )
    spine = "".join(f'<itemref idref="c{place}"/>' for place in range(len(names)))
    opf = (
        '<package xmlns="http://www.idpf.org/2007/opf" xmlns:dc="http://purl.org/dc/elements/1.1/"><metadata>'
        f"<dc:title>{title}</dc:title><dc:creator>Ada Lind</dc:creator><dc:creator>Bo Ek</dc:creator>"
        '<dc:language>en</dc:language></metadata><manifest><item id="nav" href="nav.xhtml" properties="nav"'
        f' media-type="application/xhtml+xml"/>{items}</manifest><spine><itemref idref="nav"/>{spine}</spine></package>'
    )
    container = (
        '<container xmlns="urn:oasis:names:tc:opendocument:xmlns:container"><rootfiles>'
        '<rootfile full-path="OEBPS/book.opf" media-type="application/oebps-package+xml"/></rootfiles></container>'
    )
    texts = {f"OEBPS/text/{name}": page.format(body) for name, body in zip(names, chapters, strict=True)}
    return packed(
        {
            "mimetype": "application/epub+zip",
            "META-INF/container.xml": container,
            **dict(reversed(texts.items())),
            "OEBPS/nav.xhtml": page.format("<nav><ol><li>Contents</li></ol></nav>"),
            "OEBPS/book.opf": opf,
            **(more or {}),
        }
    )


def pdf(*pages: Sequence[tuple[int, int, str]] | None, compressed: bool = True, title: str = "") -> bytes:
    """Each page is texts with their places from the lower left corner; None is a page with a picture and no text."""
    objects: list[bytes] = [
        b"<< /Type /Catalog /Pages 2 0 R >>",
        b"",
        b"<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica /Encoding /WinAnsiEncoding >>",
    ]
    objects.append(f"<< /Title ({title}) /Author (Ada) /CreationDate (D:20260301093000+01'00') >>".encode())
    picture = (
        b"<< /Type /XObject /Subtype /Image /Width 1 /Height 1 /ColorSpace /DeviceGray /BitsPerComponent 8 /Length 1 >>"
    )
    objects.append(picture + b"\nstream\n\x80\nendstream")
    kids: list[int] = []
    for page in pages:
        content = b"q 500 0 0 700 50 50 cm /P Do Q" if page is None else b"\n".join(map(_drawn, page))
        stream = zlib.compress(content) if compressed else content
        how = b"/Filter /FlateDecode " if compressed else b""
        objects.append(b"<< %s/Length %d >>\nstream\n%s\nendstream" % (how, len(stream), stream))
        resources = b"<< /Font << /F 3 0 R >> /XObject << /P 5 0 R >> >>"
        objects.append(
            b"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 595 842] /Resources %s /Contents %d 0 R >>"
            % (resources, len(objects))
        )
        kids.append(len(objects))
    objects[1] = b"<< /Type /Pages /Count %d /Kids [%s] >>" % (len(kids), b" ".join(b"%d 0 R" % kid for kid in kids))
    return assembled(objects)


def assembled(objects: Sequence[bytes]) -> bytes:
    """Objects 1, 2, … with the table of their places; the first is the catalogue, the fourth the information."""
    data = bytearray(b"%PDF-1.4\n")
    places: list[int] = []
    for count, content in enumerate(objects, start=1):
        places.append(len(data))
        data += b"%d 0 obj\n%s\nendobj\n" % (count, content)
    start = len(data)
    data += b"xref\n0 %d\n0000000000 65535 f \n" % (len(objects) + 1)
    data += b"".join(b"%010d 00000 n \n" % place for place in places)
    data += b"trailer << /Size %d /Root 1 0 R /Info 4 0 R >>\nstartxref\n%d\n%%%%EOF\n" % (len(objects) + 1, start)
    return bytes(data)


def _drawn(placed: tuple[int, int, str]) -> bytes:
    across, up, text = placed
    escaped = text.replace("\\", "\\\\").replace("(", "\\(").replace(")", "\\)")
    return b"BT /F 12 Tf %d %d Td (%s) Tj ET" % (across, up, escaped.encode("cp1252"))


def lines_of(text: str) -> list[tuple[int, int, str]]:
    """A page of text, from its top."""
    return [(60, 780 - 14 * place, line) for place, line in enumerate(text.split("\n"))]
