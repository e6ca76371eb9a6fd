"""Word, PowerPoint and Excel files: what their authors wrote, in its order."""

from __future__ import annotations

import io
from datetime import datetime

import docx
import pptx
import pytest
import xlsxwriter  # comes with python-pptx
from pptx.util import Inches

from co_cli.notes.encoding import NotTextError
from co_cli.sources.documents import read_document
from tests.sources.document_files import changed, packed, saved, slides, unpacked, word, workbook

FILES = {"docx": word(("x", "")), "pptx": slides(("x", "y")), "xlsx": workbook(a=[["x"]])}


def refusal(name: str, data: bytes) -> str:
    with pytest.raises(NotTextError) as refused:
        read_document(name, data)
    return str(refused.value)


def test_a_word_document_keeps_headings_lists_and_tables() -> None:
    document = docx.Document()
    own = document.styles.add_style("House heading", 1)
    own.base_style = document.styles["Heading 2"]
    document.add_paragraph("Harbour rules", "Title")
    document.add_paragraph("Mooring", "Heading 1")
    document.add_paragraph("Tie to the ring.")
    document.add_paragraph("At night", own)
    document.add_paragraph("rope", "List Bullet")
    document.add_paragraph("fender", "List Number")
    table = document.add_table(2, 2)
    for row, cells in zip(table.rows, (("Berth", "Fee"), ("A|1", "12 euro")), strict=True):
        for cell, text in zip(row.cells, cells, strict=True):
            cell.text = text
    document.add_paragraph("# no heading")

    found = read_document("rules.docx", saved(document))

    assert found.title == "Harbour rules"
    assert found.text == (
        "# Harbour rules\n\n# Mooring\n\nTie to the ring.\n\n## At night\n\n- rope\n- fender\n\n"
        "| Berth | Fee |\n| --- | --- |\n| A\\|1 | 12 euro |\n\n\\# no heading\n"
    )


def test_the_title_and_the_dates_come_from_the_properties() -> None:
    found = read_document("rules.docx", word(("The quay", "Title"), title="Rules of the harbour"))

    assert found.title == "Rules of the harbour"
    assert found.metadata == {"author": "Ada", "created": "2026-03-01T09:30:00Z", "updated": "2026-03-01T09:30:00Z"}
    assert read_document("a.docx", word(("The quay", "Title"), title="Microsoft Word - x.doc")).title == "The quay"
    assert read_document("a.docx", word(("The quay", ""))).title is None


def test_tracked_changes_are_accepted_and_boxes_and_content_controls_read_once() -> None:
    runs = (
        "The ferry leaves at </w:t></w:r><w:del><w:r><w:delText>six</w:delText></w:r></w:del>"
        "<w:ins><w:r><w:t>seven</w:t></w:r></w:ins><w:r><w:instrText>PAGE</w:instrText><w:tab/><w:t>x"
    )
    box = "<w:txbxContent><w:p><w:r><w:t>Boxed words</w:t></w:r></w:p></w:txbxContent>"
    markup = 'xmlns:mc="http://schemas.openxmlformats.org/markup-compatibility/2006"'
    boxes = (
        f"<w:p><w:r><mc:AlternateContent {markup}><mc:Choice>{box}</mc:Choice><mc:Fallback>{box}</mc:Fallback>"
        "</mc:AlternateContent></w:r></w:p><w:sdt><w:sdtContent><w:p><w:r><w:t>Controlled words</w:t></w:r></w:p>"
        "</w:sdtContent></w:sdt><w:sectPr"
    )
    data = changed(word(("TEXT", "")), "word/document.xml", "TEXT", runs)

    found = read_document("a.docx", changed(data, "word/document.xml", "<w:sectPr", boxes))

    assert found.text == "The ferry leaves at seven\tx\n\nBoxed words\n\nControlled words\n"


def test_a_workbook_as_excel_writes_it_is_read_up_to_20_000_rows() -> None:
    stream = io.BytesIO()
    book = xlsxwriter.Workbook(stream)
    sheet = book.add_worksheet("Fees")
    sheet.write_row(0, 0, ["Berth", "Berth", "Fee"])
    sheet.write_formula(1, 2, "=6*7", None, 42)
    sheet.write_string(19_999, 0, "last")
    sheet.write_string(20_000, 0, "too much")
    book.close()

    found = read_document("fees.xlsx", stream.getvalue())

    assert found.text.startswith("## Sheet Fees\n\n| Berth | Berth | Fee |\n| --- | --- | --- |\n|  |  | 42 |\n")
    assert found.problem == "only the first 20,000 rows of Fees are read"
    assert "too much" not in found.text


def test_footnotes_follow_the_text() -> None:
    data = word(("The ferry leaves at seven.", ""))
    space = "http://schemas.openxmlformats.org/wordprocessingml/2006/main"
    relation = "http://schemas.openxmlformats.org/officeDocument/2006/relationships/footnotes"
    notes = "".join(
        f'<w:footnote w:id="{number}"{kind}><w:p><w:r><w:t>{text}</w:t></w:r></w:p></w:footnote>'
        for number, kind, text in ((0, ' w:type="separator"', "-"), (2, "", "Except on Sundays."))
    )
    parts = unpacked(
        changed(
            data,
            "word/_rels/document.xml.rels",
            "</Relationships>",
            (f'<Relationship Id="rId99" Type="{relation}" Target="footnotes.xml"/></Relationships>'),
        )
    )

    found = read_document(
        "a.docx", packed({**parts, "word/footnotes.xml": f'<w:footnotes xmlns:w="{space}">{notes}</w:footnotes>'})
    )

    assert found.text == "The ferry leaves at seven.\n\nExcept on Sundays.\n"


def test_slides_have_their_numbers_titles_points_tables_and_notes() -> None:
    presentation = pptx.Presentation()
    first = presentation.slides.add_slide(presentation.slide_layouts[1])
    first.shapes.title.text, first.placeholders[1].text = "Tides", "High at noon\nLow at six"
    first.placeholders[1].text_frame.paragraphs[1].level = 1
    first.notes_slide.notes_text_frame.text = "Speak of\nthe moon."
    second = presentation.slides.add_slide(presentation.slide_layouts[6])
    group = second.shapes.add_group_shape()
    group.shapes.add_textbox(0, 0, Inches(1), Inches(1)).text_frame.text = "A box\nof text"
    table = second.shapes.add_table(1, 2, 0, 0, Inches(1), Inches(1)).table
    table.cell(0, 0).text, table.cell(0, 1).text = "Berth", "Fee"

    found = read_document("tides.pptx", saved(presentation))

    assert found.metadata["slides"] == 2
    assert found.text == (
        "## Slide 1: Tides\n\n- High at noon\n  - Low at six\n\nNotes: Speak of the moon.\n\n"
        "## Slide 2\n\nA box\nof text\n\n| Berth | Fee |\n| --- | --- |\n"
    )


def test_sheets_show_values_as_a_person_sees_them() -> None:
    rows = [
        ["Berth", "Since", "Paid"],
        [],
        ["A|1", datetime(2026, 3, 1), True, None, 0.30000000000000004],
        [None, datetime(2026, 3, 1, 9, 30), 2.5],
    ]
    data = workbook(Fees=rows, Empty=[])

    found = read_document("fees.xlsx", data)

    assert found.metadata["sheets"] == 2
    assert found.text == (
        "## Sheet Fees\n\n| Berth | Since | Paid |  |  |\n| --- | --- | --- | --- | --- |\n"
        "| A\\|1 | 2026-03-01 | TRUE |  | 0.3 |\n|  | 2026-03-01 09:30:00 | 2.5 |  |  |\n\n## Sheet Empty\n"
    )


def test_cells_beyond_column_200_are_reported() -> None:
    found = read_document("a.xlsx", workbook(Fees=[["Berth", *[""] * 199, "lost"]], Few=[["x", *[None] * 300]]))

    assert found.problem == "only the first 200 columns of Fees are read"
    assert "lost" not in found.text


def test_the_dates_of_a_template_are_not_those_of_the_document() -> None:
    for name, document in (("a.docx", docx.Document()), ("a.pptx", pptx.Presentation())):
        document.core_properties.author = "Ada"
        assert read_document(name, saved(document)).metadata.keys() & {"author", "created", "updated"} == {"author"}
        document.core_properties.modified = datetime(2026, 3, 1, 9, 30)
        assert read_document(name, saved(document)).metadata["updated"] == "2026-03-01T09:30:00Z"


def test_a_file_of_another_type_than_its_ending_says_what_it_is() -> None:
    said = {
        f"{ending}.{name}": refusal(f"a.{name}", data)
        for ending, data in FILES.items()
        for name in FILES
        if name != ending
    }

    assert said == {
        "docx.pptx": "a Word document, not a PowerPoint file: rename it to .docx",
        "docx.xlsx": "a Word document, not an Excel workbook: rename it to .docx",
        "pptx.docx": "a PowerPoint file, not a Word document: rename it to .pptx",
        "pptx.xlsx": "a PowerPoint file, not an Excel workbook: rename it to .pptx",
        "xlsx.docx": "an Excel workbook, not a Word document: rename it to .xlsx",
        "xlsx.pptx": "an Excel workbook, not a PowerPoint file: rename it to .xlsx",
    }
    assert refusal("a.docx", b"%PDF-1.4\n") == "a PDF, not a Word document: rename it to .pdf"
    assert refusal("a.pdf", FILES["docx"]).startswith("an Office or ZIP file, not a PDF: rename it")
    unknown = changed(FILES["docx"], "[Content_Types].xml", "wordprocessingml.document.main+xml", "x+xml")
    assert "object at" not in refusal("a.docx", unknown)


def test_what_is_not_a_document_of_its_kind_is_refused_with_the_fix() -> None:
    for ending, data in FILES.items():
        assert refusal(f"a.{ending}", b"") == "empty file"
        assert "not a complete ZIP file" in refusal(f"a.{ending}", b"just text")
        assert "not a complete ZIP file" in refusal(f"a.{ending}", data[:-40])
        assert "broken, or not what its name says" in refusal(f"a.{ending}", packed({"other.txt": "x"}))
        assert "password" in refusal(f"a.{ending}", b"\xd0\xcf\x11\xe0" + b"\0" * 500)
        assert read_document(f"a.{ending}", data) == read_document(f"a.{ending}", data)
