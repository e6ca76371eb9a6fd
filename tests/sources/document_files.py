"""Files of every kind that a folder may hold, made by hand from what their formats ask for, and no more."""

from __future__ import annotations

import io
import zipfile
import zlib
from collections.abc import Mapping, Sequence

WORD = "http://schemas.openxmlformats.org/wordprocessingml/2006/main"
DRAWING = "http://schemas.openxmlformats.org/drawingml/2006/main"
SLIDES = "http://schemas.openxmlformats.org/presentationml/2006/main"
CELLS = "http://schemas.openxmlformats.org/spreadsheetml/2006/main"
RELATION = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"
RELATIONS = "http://schemas.openxmlformats.org/package/2006/relationships"
OPEN = "urn:oasis:names:tc:opendocument:xmlns"
CORE = "http://schemas.openxmlformats.org/package/2006/metadata/core-properties"
DUBLIN = 'xmlns:dc="http://purl.org/dc/elements/1.1/" xmlns:dcterms="http://purl.org/dc/terms/"'


def packed(parts: Mapping[str, str | bytes]) -> bytes:
    """A ZIP file of these parts."""
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w", zipfile.ZIP_DEFLATED) as file:
        for name, content in parts.items():
            file.writestr(zipfile.ZipInfo(name, (2026, 1, 1, 0, 0, 0)), content, zipfile.ZIP_DEFLATED)
    return stream.getvalue()


def relations(*targets: tuple[str, str]) -> str:
    """Ids are r1, r2, …; each of a kind, to a part."""
    inner = "".join(
        f'<Relationship Id="r{count}" Type="{RELATION}/{kind}" Target="{target}"/>'
        for count, (kind, target) in enumerate(targets, start=1)
    )
    return f'<Relationships xmlns="{RELATIONS}">{inner}</Relationships>'


def core(title: str = "", author: str = "") -> str:
    return (
        f'<cp:coreProperties xmlns:cp="{CORE}" {DUBLIN}>'
        f"<dc:title>{title}</dc:title><dc:creator>{author}</dc:creator>"
        "<dcterms:created>2026-03-01T09:30:00Z</dcterms:created></cp:coreProperties>"
    )


def paragraph(text: str, style: str = "", inside: str = "") -> str:
    properties = f'<w:pPr><w:pStyle w:val="{style}"/></w:pPr>' if style else ""
    return f"<w:p>{properties}<w:r><w:t>{text}</w:t></w:r>{inside}</w:p>"


def word(body: str, title: str = "", parts: Mapping[str, str] | None = None) -> bytes:
    styles = (
        f'<w:styles xmlns:w="{WORD}"><w:style w:styleId="berschrift1"><w:name w:val="heading 1"/></w:style>'
        '<w:style w:styleId="Own"><w:name w:val="House heading"/><w:basedOn w:val="Two"/></w:style>'
        '<w:style w:styleId="Two"><w:name w:val="heading 2"/></w:style>'
        '<w:style w:styleId="A"><w:name w:val="a"/><w:basedOn w:val="B"/></w:style>'
        '<w:style w:styleId="B"><w:name w:val="b"/><w:basedOn w:val="A"/></w:style>'
        '<w:style w:styleId="Titel"><w:name w:val="Title"/></w:style></w:styles>'
    )
    return packed(
        {
            "_rels/.rels": relations(("officeDocument", "word/document.xml"), ("core-properties", "docProps/core.xml")),
            "word/_rels/document.xml.rels": relations(("styles", "styles.xml"), ("footnotes", "footnotes.xml")),
            "word/document.xml": f'<w:document xmlns:w="{WORD}"><w:body>{body}</w:body></w:document>',
            "word/styles.xml": styles,
            "docProps/core.xml": core(title, "Ada"),
            **(parts or {}),
        }
    )


def slides(*contents: str, notes: str = "") -> bytes:
    ids = "".join(f'<p:sldId id="{256 + count}" r:id="r{count}"/>' for count in range(1, len(contents) + 1))
    presentation = (
        f'<p:presentation xmlns:p="{SLIDES}" xmlns:r="{RELATION}"><p:sldIdLst>{ids}</p:sldIdLst></p:presentation>'
    )
    listed = [("slide", f"slides/slide{count}.xml") for count in range(1, len(contents) + 1)]
    parts = {
        "_rels/.rels": relations(("officeDocument", "ppt/presentation.xml")),
        "ppt/presentation.xml": presentation,
        "ppt/_rels/presentation.xml.rels": relations(*listed),
    }
    for count, content in enumerate(contents, start=1):
        parts[f"ppt/slides/slide{count}.xml"] = slide(content)
    if notes:
        parts["ppt/slides/_rels/slide1.xml.rels"] = relations(("notesSlide", "../notesSlides/notesSlide1.xml"))
        parts["ppt/notesSlides/notesSlide1.xml"] = slide(shape(notes, "body"))
    return packed(parts)


def slide(content: str) -> str:
    return f'<p:sld xmlns:p="{SLIDES}" xmlns:a="{DRAWING}"><p:cSld><p:spTree>{content}</p:spTree></p:cSld></p:sld>'


def shape(text: str, kind: str = "", level: int = 0) -> str:
    place = f'<p:ph type="{kind}"/>' if kind else ""
    lines = "".join(f'<a:p><a:pPr lvl="{level}"/><a:r><a:t>{line}</a:t></a:r></a:p>' for line in text.split("\n"))
    return f"<p:sp><p:nvSpPr><p:nvPr>{place}</p:nvPr></p:nvSpPr><p:txBody>{lines}</p:txBody></p:sp>"


def workbook(
    sheets: Mapping[str, str], shared: Sequence[str] = (), parts: Mapping[str, str | bytes] | None = None
) -> bytes:
    listed = "".join(
        f'<sheet name="{name}" sheetId="{count}" r:id="r{count}"/>' for count, name in enumerate(sheets, start=1)
    )
    targets = [("worksheet", f"worksheets/sheet{count}.xml") for count in range(1, len(sheets) + 1)]
    content: dict[str, str | bytes] = {
        "_rels/.rels": relations(("officeDocument", "xl/workbook.xml")),
        "xl/workbook.xml": f'<workbook xmlns="{CELLS}" xmlns:r="{RELATION}"><sheets>{listed}</sheets></workbook>',
        "xl/_rels/workbook.xml.rels": relations(*targets, ("sharedStrings", "sharedStrings.xml")),
        "xl/sharedStrings.xml": f'<sst xmlns="{CELLS}">{"".join(f"<si><t>{text}</t></si>" for text in shared)}</sst>',
        "xl/styles.xml": f'<styleSheet xmlns="{CELLS}"><numFmts><numFmt numFmtId="164" formatCode="dd.mm.yyyy"/>'
        '<numFmt numFmtId="165" formatCode="0.0&quot; days&quot;"/></numFmts><cellXfs><xf numFmtId="0"/>'
        '<xf numFmtId="14"/><xf numFmtId="164"/><xf numFmtId="165"/></cellXfs></styleSheet>',
    }
    for count, rows in enumerate(sheets.values(), start=1):
        content[f"xl/worksheets/sheet{count}.xml"] = (
            f'<worksheet xmlns="{CELLS}"><sheetData>{rows}</sheetData></worksheet>'
        )
    return packed({**content, **(parts or {})})


def open_document(body: str, kind: str = "text", parts: Mapping[str, str] | None = None) -> bytes:
    spaces = " ".join(f'xmlns:{name}="{OPEN}:{name}:1.0"' for name in ("office", "text", "table", "meta"))
    spaces += f' xmlns:draw="{OPEN}:drawing:1.0" xmlns:presentation="{OPEN}:presentation:1.0" {DUBLIN}'
    return packed(
        {
            "content.xml": f"<office:document-content {spaces}><office:body><office:{kind}>{body}</office:{kind}>"
            "</office:body></office:document-content>",
            "meta.xml": f"<office:document-meta {spaces}><office:meta><dc:title>Quay plan</dc:title>"
            "<meta:initial-creator>Ada</meta:initial-creator></office:meta></office:document-meta>",
            **(parts or {}),
        }
    )


def book(chapters: Mapping[str, str], title: str = "The lock") -> bytes:
    items = "".join(f'<item id="{name}" href="{name}.xhtml"/>' for name in chapters)
    spine = "".join(f'<itemref idref="{name}"/>' for name in chapters)
    return packed(
        {
            "META-INF/container.xml": '<container xmlns="urn:oasis:names:tc:opendocument:xmlns:container"><rootfiles>'
            '<rootfile full-path="OEBPS/book.opf"/></rootfiles></container>',
            "OEBPS/book.opf": f'<package xmlns="http://www.idpf.org/2007/opf" {DUBLIN}><metadata>'
            f"<dc:title>{title}</dc:title><dc:creator>B. Keeper</dc:creator></metadata>"
            f"<manifest>{items}</manifest><spine>{spine}</spine></package>",
            **{f"OEBPS/{name}.xhtml": f"<html><body>{content}</body></html>" for name, content in chapters.items()},
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
