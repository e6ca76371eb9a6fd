"""Turn a file that is not Markdown into text that can be searched and opened at its lines.

Plain text and code keep their lines; everything else becomes Markdown with a heading for each page, slide or sheet. The
same bytes always give the same text. Whatever the bytes are, the result is a Document or a NotTextError with a one-line
reason: one broken or hostile file must not stop the indexing of a folder.
"""

from __future__ import annotations

import re
from importlib.util import find_spec
from typing import Any, NamedTuple

from co_cli.ground.paths import install_line
from co_cli.ground.values import to_utf8
from co_cli.notes.encoding import NotTextError
from co_cli.notes.markdown import Heading
from co_cli.sources.worker import MOST_TEXT, load_parser, reason_of, run_parser

BINARY = frozenset(
    """
    png jpg jpeg jpe gif bmp tif tiff webp heic heif avif ico icns psd ai eps svg svgz raw cr2 nef dng xcf sketch fig
    zip gz tgz bz2 tbz xz txz zst lz lz4 lzma 7z rar tar cab iso dmg img pkg deb rpm apk ipa jar war ear whl egg
    mp3 wav flac ogg oga opus m4a aac aiff wma mid midi mp4 m4v mov avi mkv webm wmv flv mpg mpeg 3gp
    ttf otf woff woff2 eot exe dll so dylib a o obj lib class pyc pyo pyd wasm bin elf com msi app node
    db sqlite sqlite3 db3 mdb accdb dbf sdf rdb ldb frm ibd parquet feather arrow avro orc npy npz pkl pickle joblib h5
    hdf5 hdf nc mat rds rda rdata sav dta safetensors gguf ggml onnx pt pth ckpt pb tflite
    key pem p12 pfx p8 jks keystore kdbx gpg asc pgp crt cer der
    pages numbers keynote mobi azw azw3 djvu xps one vsd vsdx pub msg pst ost
    blend fbx glb gltf stl 3ds dwg dxf step stp max unitypackage pcap pcapng dat swp swo bak tmp part crdownload torrent
    """.split()
)
"""Never read: pictures, archives, audio, video, fonts, programs, databases, models, and keys, which are secret."""
BINARY_NAMES = frozenset("id_rsa id_ed25519 id_ecdsa id_dsa .ds_store thumbs.db core".split())
GENERATED = frozenset(
    """
    package-lock.json npm-shrinkwrap.json yarn.lock pnpm-lock.yaml bun.lock bun.lockb deno.lock composer.lock
    gemfile.lock poetry.lock pipfile.lock uv.lock pdm.lock pixi.lock cargo.lock go.sum go.work.sum flake.lock mix.lock
    pubspec.lock podfile.lock package.resolved gradle.lockfile conan.lock conda-lock.yml packages.lock.json
    .terraform.lock.hcl
    """.split()
)
GENERATED_ENDINGS = tuple(".min.js .min.css .min.mjs .js.map .css.map .bundle.js .chunk.js .tsbuildinfo".split())
UNSUPPORTED = frozenset("odt ott fodt odp otp fodp ods ots fods epub rtf".split())
LIBRARIES = {
    "pdf": ("pypdfium2", "pdf:read_pdf"),
    **dict.fromkeys(("docx", "docm", "dotx"), ("docx", "office:read_word")),
    **dict.fromkeys(("pptx", "pptm", "ppsx", "potx"), ("pptx", "office:read_slides")),
    **dict.fromkeys(("xlsx", "xlsm", "xltx"), ("openpyxl", "office:read_sheets")),
}
"""The package of the extra `documents` for files with this ending, and our reader, which needs it."""
READERS = {
    **dict.fromkeys(("html", "htm", "xhtml"), "mail:read_html"),
    "eml": "mail:read_mail",
    "ipynb": "text:read_notebook",
    "canvas": "text:read_canvas",
}
"""Our readers for files with this ending. Every other file is read as plain text."""
TEXT_READER = "text:read_text"
INSTALL_READERS = install_line("documents")
NEEDS_EXTRA = f'needs the extra "documents": {INSTALL_READERS}'

MB = 1_000_000
LARGEST_TEXT = 10 * MB
LARGEST_DOCUMENT = 100 * MB
"""For documents that may contain pictures, which are skipped."""
SMALL = 50_000
"""Bytes. So little text is read in this process, unless a package of the extra parses it; the rest in the worker."""
LONGEST_TITLE = 200
ESCAPES = re.compile(r"\x1b(?:\[[0-?]*[ -/]*[@-~]|[@-Z\\-_])")
CONTROL = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u2028\u2029\ufffe\uffff]")
"""Characters that a terminal would obey, and those that look like the end of a line. Tabs and line ends stay."""


class Document(NamedTuple):
    """The text of one file, or of one page, slide or sheet of it."""

    title: str | None = None
    """The document's own title, if it has one."""
    text: str = ""
    """Lines end with a line feed. Markdown if `headings` is None."""
    metadata: dict[str, object] = {}  # noqa: RUF012
    """author, created, updated, pages, slides, sheets, …; dates are ISO text."""
    problem: str | None = None
    """What is wrong with the file, or missing from the text."""
    headings: tuple[Heading, ...] | None = None
    """The sections of text that is not Markdown. In code, `#` starts a comment."""


def ending_of(name: str) -> str:
    """In lower case, without the dot; empty for `Makefile` and `.profile`."""
    stem, dot, ending = name.rpartition("/")[2].rpartition(".")
    return ending.lower() if dot and stem else ""


def is_binary_name(name: str) -> bool:
    """Whether the file holds no text, or a secret. It is listed and never opened."""
    return ending_of(name) in BINARY or name.rpartition("/")[2].lower() in BINARY_NAMES


def largest_size(name: str) -> int:
    """In bytes. `read_document` refuses larger files of this name."""
    return LARGEST_DOCUMENT if ending_of(name) in (*LIBRARIES, "eml", "ipynb") else LARGEST_TEXT


def missing_extra(name: str) -> str | None:
    """What to install before this file can be read, if anything."""
    library, _ = LIBRARIES.get(ending_of(name), ("", ""))
    return NEEDS_EXTRA if library and find_spec(library) is None else None


def read_document(name: str, data: bytes) -> Document:
    """Read a file. Raises NotTextError, with the reason and the fix, if there is no text in it."""
    ending, last, missing = ending_of(name), name.rpartition("/")[2].lower(), missing_extra(name)
    if is_binary_name(name):
        raise NotTextError(f"binary (.{ending or name}): listed, not read")
    if last in GENERATED or last.endswith(GENERATED_ENDINGS):
        raise NotTextError("generated by a tool: list it in .coignore to hide it")
    if ending in UNSUPPORTED:
        raise NotTextError(f".{ending} files are not supported: save it as .docx, .xlsx, .pptx, .pdf or .txt")
    if missing:
        raise NotTextError(missing)
    if len(data) > largest_size(name):
        raise NotTextError(f"larger than {largest_size(name) // MB} MB: split it")
    try:
        return _clean(_read(name, ending, data))
    except NotTextError:
        raise
    except (RecursionError, MemoryError) as error:
        raise NotTextError(reason_of(error)) from None
    except Exception as error:
        raise NotTextError(reason_of(error)) from error


def _read(name: str, ending: str, data: bytes) -> Document:
    """The readers are imported when they are needed: lxml and email would double the time of a search."""
    if ending in LIBRARIES and not data:
        raise NotTextError("empty file")
    reader = LIBRARIES[ending][1] if ending in LIBRARIES else READERS.get(ending, TEXT_READER)
    parser, arguments = f"{__name__}.{reader}", [name] if reader == TEXT_READER else []
    if ending in LIBRARIES or len(data) > SMALL:
        answers, failure = run_parser(parser, data, *arguments)
        return _joined([_document(*answer) for answer in answers], failure)
    return _joined([*load_parser(parser)(data, *arguments)], "")


def _document(title: str | None, text: str, metadata: dict[str, object], problem: str | None, found: Any) -> Document:
    """What the worker's JSON says."""
    headings = None if found is None else tuple(Heading(*heading) for heading in found)
    return Document(title, text, metadata, problem, headings)


def _joined(parts: list[Document], failure: str) -> Document:
    if len(parts) == 1 and parts[0].headings is not None:
        return parts[0]  # plain text, with its own lines
    text = "\n\n".join(part.text.strip("\n") for part in parts if part.text)
    if failure and not text:
        raise NotTextError(failure)
    problems = [part.problem for part in parts if part.problem] + ([f"read in part: {failure}"] if failure else [])
    metadata = {key: value for part in parts for key, value in part.metadata.items()}
    title = next((part.title for part in parts if part.title), None)
    return Document(title, text + "\n" if text else "", metadata, "; ".join(problems) or None)


def _clean(document: Document) -> Document:
    """Remove control characters and whatever SQLite refuses, and limit the length."""
    text, problem = _clean_text(document.text), document.problem
    if len(text) > MOST_TEXT:
        text = text[: text.rfind("\n", 0, MOST_TEXT) + 1 or MOST_TEXT]
        lines = f"{text.count(chr(10)):,} lines" if text.endswith("\n") else f"{MOST_TEXT:,} characters"
        cut = f"only its first {lines} are read: it is longer than {MOST_TEXT:,} characters"
        problem = f"{problem}; {cut}" if problem else cut
    lines, headings = text.count("\n") + 1, document.headings
    metadata = {
        key: _line(value, 1_000) if isinstance(value, str) else value
        for key, value in document.metadata.items()
        if value not in (None, "")
    }
    if headings:
        headings = tuple(
            heading._replace(text=_line(heading.text, LONGEST_TITLE)) for heading in headings if heading.line < lines
        )
    title = _line(document.title or "", LONGEST_TITLE) or None
    return Document(title, text, metadata, to_utf8(problem) if problem else None, headings)


def _clean_text(text: str) -> str:
    text = ESCAPES.sub("", text.replace("\r\n", "\n").replace("\r", "\n"))
    return to_utf8(CONTROL.sub("", text))


def _line(text: str, longest: int) -> str:
    return " ".join(_clean_text(text).split())[:longest].strip()
