"""EPUB books: their chapters in the order of reading, and what is refused."""

from __future__ import annotations

import sys

import pytest

from co_cli.notes.encoding import NotTextError
from co_cli.sources.documents import read_document
from tests.sources.document_files import book, changed, packed, unpacked

ENCRYPTED = (
    '<encryption xmlns="urn:oasis:names:tc:opendocument:xmlns:container" xmlns:enc="http://www.w3.org/2001/04/xmlenc#">'
    '<enc:EncryptedData><enc:EncryptionMethod Algorithm="{}"/></enc:EncryptedData></encryption>'
)
FONT, CIPHER = "http://www.idpf.org/2008/embedding", "http://www.w3.org/2001/04/xmlenc#aes256-cbc"
PAGE = "<h1>Mooring</h1><p>Tie to the ring.</p>"


def refusal(data: bytes) -> str:
    with pytest.raises(NotTextError) as refused:
        read_document("a.epub", data)
    assert refused.value.__cause__ is None
    return str(refused.value)


def test_the_chapters_of_a_book_are_in_the_order_of_its_spine_with_their_headings() -> None:
    second = '<a id="x"/><h2>At <i/>night</h2><ul><li>rope &amp; ring</li></ul><p># no heading</p><p>Café&#160;bar</p>'

    found = read_document("quay.epub", book(PAGE, "<img/>", second))

    assert found.title == "The Quay"
    assert found.metadata == {"author": "Ada Lind, Bo Ek", "language": "en"}
    assert found.problem is None
    assert found.text == (
        "# Mooring\n\nTie to the ring.\n\n## At night\n\n- rope & ring\n\n\\# no heading\n\nCafé bar\n"
    )


def test_a_book_with_drm_is_refused_and_one_with_hidden_fonts_is_read() -> None:
    protected = book(PAGE, more={"META-INF/encryption.xml": ENCRYPTED.format(CIPHER)})
    fonts = book(PAGE, more={"META-INF/encryption.xml": ENCRYPTED.format(FONT)})

    assert refusal(protected) == "protected by DRM: only the app of its shop can read it"
    assert read_document("a.epub", fonts).text == "# Mooring\n\nTie to the ring.\n"


@pytest.mark.medium
def test_a_small_bomb_is_unpacked_in_the_worker_only_and_refused() -> None:
    bomb = book("<p>" + " " * 34_000_000 + "</p>")

    assert len(bomb) < 50_000
    assert refusal(bomb) == "its text is larger than 32 MB when unpacked"
    assert read_document("a.epub", book(PAGE, more={"cover.png": b" " * 34_000_000})).text.startswith("# Mooring")
    assert "co_cli.sources.documents.epub" not in sys.modules


def test_a_book_with_entities_reads_no_other_file_and_expands_nothing() -> None:
    entities = '<!DOCTYPE x [<!ENTITY s SYSTEM "file:///etc/passwd"><!ENTITY a "haha">]>'
    data = book(PAGE + "<p>&s; &a; end</p>", title="Quay &s;&a;")
    parts = unpacked(data)
    hostile = {name: entities.encode() + part.split(b"?>")[-1] for name, part in parts.items() if part[:1] == b"<"}

    found = read_document("a.epub", packed({**parts, **hostile}))

    assert "root:" not in str(found)
    assert "haha" not in str(found)


def test_a_broken_book_is_refused_with_the_reason() -> None:
    good = book(PAGE)
    parts = unpacked(good)
    whole = {name: part for name, part in parts.items() if name != "META-INF/container.xml"}
    missing = read_document(
        "a.epub", packed({n: part for n, part in unpacked(book(PAGE, PAGE)).items() if "1" not in n})
    )

    assert refusal(b"") == "empty file"
    assert refusal(b"%PDF-1.4\n") == "a PDF, not an EPUB book: rename it to .pdf"
    assert refusal(good[:200]) == "broken: not a complete ZIP file; open it and save it again"
    assert refusal(packed(whole)) == "broken: not an EPUB book; META-INF/container.xml is missing"
    assert refusal(changed(good, "META-INF/container.xml", "book.opf", "../../etc/passwd")).endswith("is missing")
    assert refusal(book("<img/>")) == "no text in it, only pictures"
    assert missing.problem == "1 of 2 chapters is missing"
