"""Formats that are read without the extra: text, code, HTML, mail and notebooks."""

from __future__ import annotations

import json
import sys

import pytest

from co_cli.ground.paths import install_line
from co_cli.notes.encoding import NotTextError
from co_cli.sources.documents import Document, read_document
from co_cli.sources.documents.formats import is_binary_name, largest_size
from co_cli.sources.folder import FolderAdapter
from co_cli.sources.worker import MOST_TEXT


def read(name: str, content: str | bytes) -> Document:
    return read_document(name, content.encode() if isinstance(content, str) else content)


def refusal(name: str, content: str | bytes) -> str:
    with pytest.raises(NotTextError) as refused:
        read(name, content)
    reason = str(refused.value)
    assert "\n" not in reason
    return reason


def sections(document: Document) -> list[tuple[int, str, int]]:
    """Level, text, and line from 1, as an editor counts."""
    return [(found.level, found.text, found.line + 1) for found in document.headings or ()]


def test_a_binary_file_is_known_by_its_name_and_not_opened() -> None:
    binary = "a.png photo.JPG b.tar.gz c.zip d.mp3 e.mp4 f.woff2 g.exe h.so i.pyc j.db l.parquet m.svg n.pem id_rsa"
    texts = "a.txt b.py c.PDF d.docx e.html Makefile .profile f.unknown notes.2026 zip png.txt readme"

    assert [name for name in binary.split() if "binary" not in refusal(name, "this would be text")] == []
    assert [name for name in texts.split() if is_binary_name(name)] == []


def test_text_keeps_its_lines_and_loses_what_a_terminal_would_obey() -> None:
    content = '{"harbour": 1}\n\n  indented, with "quotes" <and> # signs\nlast line without an end'
    for name in "a.txt a.csv a.json a.jsonl a.yaml a.toml a.xml a.rst a.org Makefile a.odd".split():
        document = read(name, content)
        assert document == Document(None, content, {}, None, document.headings), name
        assert document.headings is not None, "it is not Markdown: `#` starts no heading"
    assert read("a.txt", "one\r\ntwo\r\n").text == read("a.txt", "one\rtwo\r").text == "one\ntwo\n"
    assert read("empty.txt", "").text == ""
    log = read("a.log", "\x1b[31mred\x1b[0m\x07 alert\x9b2J\u2028same line\ud800".encode("utf-8", "surrogatepass"))
    assert "\x1b" not in log.text
    assert "red alert" in log.text
    assert log.text.encode("utf-8")
    assert len(log.text.splitlines()) == 1


LETTER = (
    "Grüße aus der Straße: über Äpfel und Öl für den Kapitän. Die Fähre fährt um fünf, schöne Brücken überall.\n" * 4
)
JAPANESE = "港の規則についての説明です。船は毎朝七時に出発します。雨の日は待合室を利用してください。\n" * 4
RUSSIAN = "Правила порта: паром отправляется каждый день в семь часов утра. В дождь ждите в зале.\n" * 4


def test_text_in_another_encoding_is_decoded() -> None:
    old = [(LETTER, "latin-1"), (LETTER, "cp1252"), (JAPANESE, "shift_jis"), (JAPANESE, "euc_jp"), (RUSSIAN, "cp1251")]
    marked = {"utf-16": b"", "utf-16-le": b"\xff\xfe", "utf-16-be": b"\xfe\xff", "utf-8-sig": b""}

    documents = {encoding: (read("letter.txt", text.encode(encoding)), text) for text, encoding in old}
    problems = {document.problem for document, _ in documents.values()}

    assert [encoding for encoding, (document, text) in documents.items() if document.text != text] == []
    assert problems == {"line 1: not UTF-8, read as what it looks like; save it as UTF-8"}
    assert [name for name, mark in marked.items() if read("a.txt", mark + LETTER.encode(name)).text != LETTER] == []


WESTERN = {
    "fr": "# Café\nLe garçon a reçu la clé à Besançon. Très élégant, déjà vu, où êtes-vous?\n",
    "sv": "Båten ligger på land över vintern.\n",
    "da": "Båden står på land hele vinteren. Før frosten skal vandet tømmes, og batterierne tages med hjem.\n",
    "pt": "A reunião é na segunda-feira. Não há água.\n",
}
NEIGHBOURING = {
    ("pl", "cp1250"): "Spotkanie odbędzie się w środę\n",
    ("cs", "cp1250"): "Schůzka je ve středu, přineste klíče\n",
    ("hu", "cp1250"): "A találkozó szerdán lesz, hozzátok a kulcsokat. Köszönöm, őszi idő.\n",
    ("tr", "cp1254"): "Toplantı çarşamba günü. Lütfen anahtarları getirin, teşekkürler.\n",
    ("lt", "cp1257"): "Susitikimas trečiadienį, atsineškite raktus. Ačiū už pagalbą, žiūrėkite žemėlapį.\n",
}


def test_a_short_text_is_read_with_the_code_page_of_its_language() -> None:
    texts = {**{(language, "cp1252"): text for language, text in WESTERN.items()}, **NEIGHBOURING}

    read_as = {key: read("letter.txt", text.encode(key[1])).text for key, text in texts.items()}

    assert read_as == texts


def test_what_holds_no_text_is_refused_under_any_name() -> None:
    expected = {
        bytes(range(256)) * 20: "not a text file",
        b"\x89PNG\r\n\x1a\n" + b"\xff" * 50: "not a text file",
        b"\xff\xfe" + bytes(range(256)) * 20: "not a text file",
        b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + b"\0" * 600: "save it as .docx",
        b"PK\x03\x04" + b"x" * 100: "not a text file",
        rb"{\rtf1\ansi Words}": "RTF is not supported: save it as .docx or .txt",
        b"QUJD" * 10_000: "no words",
    }
    for name in ("a.txt", "report.doc", "noending", "a.odd"):
        assert {data[:9]: refusal(name, data) for data, why in expected.items() if why not in refusal(name, data)} == {}
    generated = ["package-lock.json", "web/yarn.lock", "Cargo.lock", "jquery.min.js", "app.js.map"]
    assert [name for name in generated if "generated" not in refusal(name, "{}")] == []
    unsupported = "a.odt a.fodt a.odp a.ods a.rtf".split()
    assert [name for name in unsupported if "not supported: save it as .docx" not in refusal(name, "text")] == []


def test_minified_code_is_refused_and_long_prose_is_not() -> None:
    minified = "function a(b){return b+1};var c=a(2);" * 2_000
    transcript = "So I said to the ferryman that the tide was turning. " * 2_000

    assert "generated" in refusal("app.js", minified)
    assert "generated" in refusal("style.css", "a{b:c} " * 9_000)
    assert read("talk.txt", transcript).text == transcript
    assert read("messages.jsonl", json.dumps({"text": transcript})).text


def test_too_much_text_is_refused_or_cut_with_a_remark() -> None:
    assert "larger than 10 MB" in refusal("dump.sql", b"x" * (largest_size("dump.sql") + 1))
    assert largest_size("book.epub") == largest_size("book.pdf") > largest_size("book.txt")

    document = read("log.txt", "a line of the log of the harbour\n" * (MOST_TEXT // 30))

    assert MOST_TEXT - 40 < len(document.text) <= MOST_TEXT
    assert document.text.endswith("harbour\n")
    assert "only its first 151,515 lines" in (document.problem or "")


def test_each_format_marks_its_sections_in_its_own_way() -> None:
    expected: list[tuple[str, str, list[tuple[int, str, int]]]] = [
        (
            "a.go",
            "package a\n\n// Moor ties.\nfunc (b *Boat) Moor(x int) error {\n}\n",
            [(1, "func (b *Boat) Moor", 3)],
        ),
        (
            "a.rs",
            "pub struct Boat {\n}\n\nimpl Boat {\n    pub fn moor(&self) {}\n}\n",
            [(1, "struct Boat", 1), (1, "impl Boat", 4), (2, "fn moor", 5)],
        ),
        (
            "a.ts",
            "export class Boat {\n}\nexport const moor = async (x: number) => {\n}\nif (x) {}\n",
            [(1, "class Boat", 1), (1, "moor", 3)],
        ),
        (
            "A.java",
            "public class Boat {\n    public static void moor(int x) {\n    }\n}\n",
            [(1, "class Boat", 1), (2, "moor", 2)],
        ),
        ("a.c", "#include <x.h>\nint moor(struct boat *b)\n{\n    if (b) return 1;\n}\n", [(1, "moor", 2)]),
        ("a.sh", "#!/bin/sh\n# moors\nmoor() {\n  true\n}\n", [(1, "moor", 2)]),
        ("a.sql", "-- boats\ncreate table boat (\n  id int\n);\n", [(1, "create table boat", 1)]),
        ("a.toml", "# settings\n[tool.quay]\na = 1\n", [(1, "tool.quay", 1)]),
        ("a.rst", "=====\nQuay\n=====\n\nText.\n\nPart\n----\n\nMore.\n", [(1, "Quay", 1), (2, "Part", 7)]),
        ("a.txt", "The quay\n========\n\nText\n", [(1, "The quay", 1)]),
        ("a.org", "* Quay\ntext\n** Part\n", [(1, "Quay", 1), (2, "Part", 3)]),
        ("a.adoc", "= Quay\n\n== Part\n", [(1, "Quay", 1), (2, "Part", 3)]),
        ("a.tex", "\\section{Quay}\ntext\n\\subsection*{Part}\n", [(2, "Quay", 1), (3, "Part", 3)]),
        ("a.csv", "# a,b\n1,2\n", []),
    ]

    wrong = {name: sections(read(name, code)) for name, code, found in expected if sections(read(name, code)) != found}

    assert wrong == {}


def test_the_main_text_of_an_html_file_becomes_markdown() -> None:
    page = """<html><head><title>Mooring | Harbour</title><script>var tracked = 1</script></head><body>
    <nav><a href="/">Home</a> <a href="/fees">Fees</a></nav><main><h1>Mooring</h1><p>Use one long line from the middle
    cleat, and see <a href="fees.html">what it costs</a> or <a href="https://tides.example/now">the tides</a>.</p>
    <ul><li>rope</li><li>fender</li></ul><pre><code class="language-sh">moor --ring</code></pre>
    <p>Then walk away slowly, for the line will stretch, and the boat comes back to you if you have hurried.</p></main>
    <footer>All rights reserved</footer></body></html>"""

    document = read("mooring.html", page)

    assert document.title == "Mooring"
    assert document.headings is None
    for part in (
        "# Mooring",
        "- rope",
        "```sh\nmoor --ring\n```",
        "see what it costs or [the tides](https://tides.example/now)",
    ):
        assert part in document.text
    for part in ("Home", "tracked", "All rights"):
        assert part not in document.text


def test_a_notebook_keeps_its_texts_its_code_and_what_was_printed() -> None:
    cells = [
        {"cell_type": "markdown", "source": ["# Tides\n", "Measured at the quay."]},
        {
            "cell_type": "code",
            "source": "print(height)\n```",
            "outputs": [
                {"output_type": "stream", "text": ["4.2 metres\n"]},
                {"output_type": "display_data", "data": {"image/png": "iVBORw0KGgo", "text/plain": "<Figure>"}},
                {"output_type": "error", "ename": "TideError", "evalue": "too low", "traceback": ["\x1b[31m"]},
                {"output_type": "stream", "text": "9" * 5_000},
            ],
        },
    ]
    notebook = {"cells": cells, "metadata": {"kernelspec": {"language": "python"}}, "nbformat": 4}

    document = read("tides.ipynb", json.dumps(notebook))

    assert document.text.startswith(
        "# Tides\nMeasured at the quay.\n\n````python\nprint(height)\n```\n````\n\n```output\n4.2"
    )
    assert "TideError: too low" in document.text
    assert "iVBOR" not in document.text
    assert len(document.text) < 3_000
    assert "not the JSON of a notebook" in refusal("a.ipynb", "{")
    assert "not of a notebook" in refusal("a.ipynb", "[1]")


def test_a_message_says_who_wrote_what_and_when() -> None:
    message = (
        "From: Ada <ada@quay.example>\nTo: Ben <ben@quay.example>\nSubject: =?utf-8?q?The_f=C3=A4hre?=\n"
        "Date: Sun, 01 Mar 2026 09:30:00 +0100\nContent-Type: multipart/mixed; boundary=x\n\n"
        "--x\nContent-Type: text/plain; charset=iso-8859-1\nContent-Transfer-Encoding: quoted-printable\n\n"
        "It leaves at f=FCnf.\n--x\nContent-Type: application/pdf\nContent-Disposition: attachment; filename=plan.pdf\n"
        "\nJVBERi0=\n--x--\n"
    )

    document = read("mail.eml", message)

    assert document.title == "The fähre"
    assert document.metadata == {
        "author": "Ada <ada@quay.example>",
        "to": "Ben <ben@quay.example>",
        "created": "2026-03-01T09:30:00+01:00",
    }
    assert "It leaves at fünf." in document.text
    assert "Attached: plan.pdf" in document.text
    assert "not an email" in refusal("mail.eml", "hello\n")


def test_a_file_whose_library_is_missing_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    needed = {"a/b.PDF": "pypdfium2", "a.docx": "docx", "a.docm": "docx", "a.pptx": "pptx", "a.xlsx": "openpyxl"}
    for library in needed.values():
        monkeypatch.setitem(sys.modules, library, None)

    said = {refusal(name, b"%PDF-1.4") for name in needed} | {FolderAdapter().unread(name) for name in needed}

    assert said == {f'needs the extra "documents": {install_line("documents")}'}
    assert FolderAdapter().unread("a.txt") is None
