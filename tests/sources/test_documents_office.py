"""Word, PowerPoint, Excel, OpenDocument and EPUB: what their authors wrote, in its order."""

from __future__ import annotations

import pytest

from co_cli.notes.note import NotTextError
from co_cli.sources import documents_sheets
from co_cli.sources.documents import read_document
from tests.sources.document_files import (
    WORD,
    book,
    open_document,
    packed,
    paragraph,
    shape,
    slides,
    word,
    workbook,
)


def refusal(name: str, data: bytes) -> str:
    with pytest.raises(NotTextError) as refused:
        read_document(name, data)
    return str(refused.value)


def test_a_word_document_keeps_headings_lists_and_tables() -> None:
    numbered = '<w:p><w:pPr><w:numPr><w:ilvl w:val="{}"/></w:numPr></w:pPr><w:r><w:t>{}</w:t></w:r></w:p>'
    table = "".join(
        f"<w:tr>{''.join(f'<w:tc>{paragraph(cell)}</w:tc>' for cell in row)}</w:tr>"
        for row in (("Berth", "Fee"), ("A|1", "12 euro"))
    )
    body = (
        paragraph("Harbour rules", "Titel")
        + paragraph("Mooring", "berschrift1")
        + paragraph("Tie to the ring.")
        + paragraph("At night", "Own")
        + numbered.format(0, "rope")
        + numbered.format(1, "of hemp")
        + numbered.format(0, "fender")
        + f"<w:tbl>{table}</w:tbl>"
        + paragraph("# no heading", "A")
    )

    document = read_document("rules.docx", word(body, title="Rules of the harbour"))

    assert document.title == "Rules of the harbour"
    assert document.metadata == {"author": "Ada", "created": "2026-03-01T09:30:00Z"}
    assert document.text == (
        "# Harbour rules\n\n# Mooring\n\nTie to the ring.\n\n## At night\n\n- rope\n  - of hemp\n- fender\n\n"
        "| Berth | Fee |\n| --- | --- |\n| A\\|1 | 12 euro |\n\n\\# no heading\n"
    )


def test_a_word_document_without_a_title_is_called_by_its_title_paragraph() -> None:
    assert (
        read_document("a.docx", word(paragraph("The quay", "Titel"), title="Microsoft Word - x.doc")).title
        == "The quay"
    )
    assert read_document("a.docx", word(paragraph("The quay"))).title is None


def test_tracked_changes_are_read_as_if_accepted_and_notes_follow() -> None:
    body = paragraph(
        "The ferry leaves at ",
        inside="<w:del><w:r><w:delText>six</w:delText></w:r></w:del><w:ins><w:r><w:t>seven</w:t></w:r></w:ins>"
        '<w:r><w:footnoteReference w:id="2"/></w:r><w:r><w:instrText>PAGE</w:instrText></w:r>'
        "<w:r><w:tab/><w:t>x</w:t></w:r>",
    )
    notes = f'<w:footnotes xmlns:w="{WORD}"><w:footnote w:type="separator" w:id="0">{paragraph("-")}</w:footnote>'
    notes += f'<w:footnote w:id="2">{paragraph("Except on Sundays.")}</w:footnote></w:footnotes>'

    document = read_document("a.docx", word(body, parts={"word/footnotes.xml": notes}))

    assert document.text == "The ferry leaves at seven[^2]\tx\n\n[^2]: Except on Sundays.\n"


def test_text_in_a_box_is_read_once() -> None:
    box = f"<w:txbxContent>{paragraph('Boxed words')}</w:txbxContent>"
    markup = "http://schemas.openxmlformats.org/markup-compatibility/2006"
    body = (
        f'<w:p><w:r><mc:AlternateContent xmlns:mc="{markup}"><mc:Choice>{box}</mc:Choice>'
        f"<mc:Fallback>{box}</mc:Fallback></mc:AlternateContent></w:r></w:p>"
    )

    assert read_document("a.docx", word(body)).text == "Boxed words\n"


def test_slides_have_their_numbers_titles_points_and_notes() -> None:
    first = shape("Tides", "ctrTitle") + shape("High at noon\nLow at six", "body") + shape("17", "sldNum")
    second = shape("A box\nof text") + shape("Fees", "title")

    document = read_document("tides.pptx", slides(first, second, notes="Speak of the moon."))

    assert document.metadata["slides"] == 2
    assert document.text == (
        "## Slide 1: Tides\n\n- High at noon\n- Low at six\n\nNotes: Speak of the moon.\n\n"
        "## Slide 2: Fees\n\nA box\nof text\n"
    )


def test_sheets_show_values_as_a_person_sees_them() -> None:
    rows = (
        '<row r="1"><c r="A1" t="s"><v>0</v></c><c r="B1" t="s"><v>1</v></c>'
        '<c r="C1" t="inlineStr"><is><t>Paid</t></is></c></row>'
        '<row r="3"><c r="A3" t="s"><v>2</v></c><c r="B3" s="1"><v>46082</v></c><c r="C3" t="b"><v>1</v></c>'
        '<c r="E3"><f>1/3</f><v>0.30000000000000004</v></c></row>'
        '<row r="4"><c r="B4" s="2"><v>46082.395833333336</v></c>'
        '<c r="C4" s="3"><v>2.5</v></c><c r="D4" t="s"><v>99</v></c></row>'
    )

    document = read_document("fees.xlsx", workbook({"Fees 2026": rows, "Empty": ""}, ["Berth", "Since", "A|1"]))

    assert document.metadata["sheets"] == 2
    assert document.text == (
        "## Sheet Fees 2026\n\n| Berth | Since | Paid |  |  |\n| --- | --- | --- | --- | --- |\n"
        "| A\\|1 | 2026-03-01 | TRUE |  | 0.3 |\n|  | 2026-03-01 09:30:00 | 2.5 |  |  |\n\n## Sheet Empty\n"
    )


def test_of_a_very_long_sheet_the_first_rows_are_read_and_it_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(documents_sheets, "MOST_ROWS", 100)
    rows = "".join(f'<row r="{row}"><c r="XFD{row}"><v>{row}</v></c></row>' for row in range(1, 200))

    document = read_document("data.xlsx", workbook({"Data": rows}))

    assert document.problem == "only the beginning is read of: Data (100 rows)"
    assert " 100 |" in document.text
    assert " 101 |" not in document.text


def test_an_open_document_keeps_headings_lists_tables_and_notes() -> None:
    body = (
        '<text:tracked-changes><text:p>gone</text:p></text:tracked-changes><text:h text:outline-level="2">Quay</text:h>'
        "<text:p>The quay<text:s text:c='2'/>is <text:span>long</text:span>.<text:note><text:note-citation>1"
        "</text:note-citation><text:note-body><text:p>In metres.</text:p></text:note-body></text:note></text:p>"
        "<text:list><text:list-item><text:p>rope</text:p><text:list><text:list-item><text:p>hemp</text:p></text:list-item>"
        "</text:list></text:list-item></text:list><table:table><table:table-row><table:table-cell><text:p>a</text:p>"
        "</table:table-cell><table:table-cell table:number-columns-repeated='99999'/></table:table-row></table:table>"
    )

    document = read_document("plan.odt", open_document(body))

    assert (document.title, document.metadata) == ("Quay plan", {"author": "Ada"})
    assert document.text == "## Quay\n\nThe quay  is long. (In metres.)\n\n- rope\n  - hemp\n\n| a |\n| --- |\n"


def test_open_slides_and_sheets_have_marks_of_their_own() -> None:
    box = "<draw:frame><draw:text-box><text:p>{}</text:p></draw:text-box></draw:frame>"
    pages = "".join(f"<draw:page>{box.format(text)}</draw:page>" for text in ("Tides", "Fees"))
    cells = "<table:table-row><table:table-cell><text:p>Berth</text:p></table:table-cell></table:table-row>"
    sheet = f'<table:table table:name="Fees">{cells}</table:table>'

    presentation = read_document("a.odp", open_document(pages, "presentation"))
    spreadsheet = read_document("a.ods", open_document(sheet, "spreadsheet"))

    assert presentation.text == "## Slide 1\n\nTides\n\n## Slide 2\n\nFees\n"
    assert presentation.metadata["slides"] == 2
    assert spreadsheet.text == "## Sheet Fees\n\n| Berth |\n| --- |\n"


def test_a_book_is_read_in_the_order_of_its_spine() -> None:
    chapters = {"two": "<h1>Later</h1><p>It closes&nbsp;at dusk.</p>", "one": "<h1>First</h1><p>It opens at dawn.</p>"}

    document = read_document("lock.epub", book(chapters))

    assert (document.title, document.metadata) == ("The lock", {"author": "B. Keeper"})
    assert document.text == "# Later\n\nIt closes at dusk.\n\n# First\n\nIt opens at dawn.\n"
    assert "no text in the book" in refusal("empty.epub", book({"one": "<img src='x.png'/>"}))


@pytest.mark.parametrize("ending", ["docx", "pptx", "xlsx", "odt", "epub"])
def test_what_is_no_document_of_its_kind_is_refused_with_a_cure(ending: str) -> None:
    whole = {
        "docx": word(""),
        "pptx": slides(""),
        "xlsx": workbook({"a": ""}),
        "odt": open_document(""),
        "epub": book({}),
    }

    assert refusal(f"a.{ending}", b"") == "empty file"
    assert "no ZIP file" in refusal(f"a.{ending}", b"just text")
    assert "no ZIP file" in refusal(f"a.{ending}", whole[ending][:-40])
    assert "broken: no " in refusal(f"a.{ending}", packed({"other.txt": "x"}))
    assert "password" in refusal(f"a.{ending}", b"\xd0\xcf\x11\xe0" + b"\0" * 500)


def test_an_open_document_with_a_password_says_so() -> None:
    manifest = {"META-INF/manifest.xml": "<manifest><encryption-data/></manifest>"}

    assert "password" in refusal("a.odt", open_document("<text:p>x</text:p>", parts=manifest))


@pytest.mark.parametrize("ending", ["docx", "pptx", "xlsx", "odt", "epub"])
def test_the_same_bytes_give_the_same_text(ending: str) -> None:
    files = {
        "docx": word(paragraph("a") * 20),
        "pptx": slides(shape("a") * 5),
        "xlsx": workbook({"a": "<row><c><v>1</v></c></row>", "b": ""}),
        "odt": open_document("<text:p>a</text:p>" * 9),
        "epub": book({"one": "<p>a</p>", "two": "<p>b</p>"}),
    }

    assert read_document(f"a.{ending}", files[ending]) == read_document(f"a.{ending}", files[ending])
