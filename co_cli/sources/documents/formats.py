"""Which files are read, and how: one table of formats, by the ending of a file's name.

A format needs an entry here and, if it is read, a parser. Whatever is not in the table is read as plain text.
"""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager
from contextvars import ContextVar
from importlib.util import find_spec
from typing import NamedTuple

from co_cli.ground.paths import install_line
from co_cli.ground.reports import BINARY as BINARY_REASON
from co_cli.ground.settings import this_process

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
_shown: ContextVar[bool] = ContextVar("shown", default=False)
PICTURES = "png jpg jpeg jpe webp bmp tif tiff"
"""Those of them whose text the extra `ocr` reads."""
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
INSTALL_PARSERS = install_line("documents")
INSTALL_OCR = install_line("ocr")
NEEDS_EXTRA = f'needs the extra "documents": {INSTALL_PARSERS}'
SCANNED_MARK, NO_TEXT_SHOWN = "(scanned?)", "a picture that shows no text"
BROKEN_PICTURE = "broken picture, or not one"
MB = 1_000_000
LARGEST_TEXT = 10 * MB


class Format(NamedTuple):
    """One kind of document."""

    name: str
    """What messages call it, with its article."""
    endings: str
    """Of file names, in lower case. The first is the usual one."""
    parser: str = ""
    """`module:function` in this folder; empty if such files are not supported."""
    library: str = ""
    """The package of the extra `documents` that the parser needs."""
    largest: int = 100 * MB
    """In bytes. Documents may contain pictures, which are skipped."""
    is_plain: bool = False
    """Neither an archive nor left to a library: a small file is read in this process, not in the worker."""
    macros: str = ""
    """Endings of files with programs in them: they are read, but never opened by another program."""


TEXT = Format("a text file", "txt", "text:read_text", largest=LARGEST_TEXT, is_plain=True)
PDF = Format("a PDF", "pdf", "pdf:read_pdf", "pypdfium2")
FORMATS = (
    PDF,
    Format("a Word document", "docx dotx", "office:read_word", "docx", macros="docm"),
    Format("a PowerPoint file", "pptx ppsx potx", "office:read_slides", "pptx", macros="pptm"),
    Format("an Excel workbook", "xlsx xltx", "office:read_sheets", "openpyxl", macros="xlsm"),
    Format("a picture", PICTURES, "pictures:read_picture", "rapidocr"),
    Format("an EPUB book", "epub", "epub:read_book"),
    Format("a web page", "html htm xhtml", "mail:read_html", largest=LARGEST_TEXT, is_plain=True),
    Format("an email", "eml", "mail:read_mail", is_plain=True),
    Format("a notebook", "ipynb", "text:read_notebook", is_plain=True),
    Format("a canvas", "canvas", "text:read_canvas", largest=LARGEST_TEXT, is_plain=True),
    Format("an OpenDocument file", "odt ott fodt odp otp fodp ods ots fods"),
    Format("an RTF file", "rtf"),
)
BY_ENDING = {ending: form for form in FORMATS for ending in f"{form.endings} {form.macros}".split()}
OPENED = tuple(f".{ending}" for form in (TEXT, *FORMATS) for ending in form.endings.split())
"""Endings of the documents that another program may open."""


def format_of(name: str) -> Format:
    return BY_ENDING.get(ending_of(name), TEXT)


def can_read_pictures() -> bool:
    """Whether the extra `ocr` is installed."""
    return find_spec("rapidocr") is not None


def reads_pictures() -> bool:
    """Whether this process does so now."""
    return (this_process.reads_pictures or _shown.get()) and can_read_pictures()


@contextmanager
def showing() -> Generator[None]:
    """Read a picture, too: somebody asked for it."""
    token = _shown.set(True)
    try:
        yield
    finally:
        _shown.reset(token)


def is_picture(name: str) -> bool:
    """Whether the extra `ocr` reads files of this name."""
    return ending_of(name) in PICTURES.split()


def is_unread_picture(name: str, skipped: str | None, problem: str | None = None) -> bool:
    """Whether the extra `ocr` could find text in a file that was skipped for this reason, or has this problem."""
    if skipped == BINARY_REASON:
        return is_picture(name)
    return SCANNED_MARK in (skipped or problem or "") and ending_of(name) == "pdf"


def ending_of(name: str) -> str:
    """In lower case, without the dot; empty for `Makefile` and `.profile`."""
    stem, dot, ending = name.rpartition("/")[2].rpartition(".")
    return ending.lower() if dot and stem else ""


def is_binary_name(name: str) -> bool:
    """Whether the file holds no text, or a secret. It is listed and never opened."""
    if is_picture(name) and reads_pictures():
        return False
    return ending_of(name) in BINARY or name.rpartition("/")[2].lower() in BINARY_NAMES


def largest_size(name: str) -> int:
    """In bytes. `read_document` refuses larger files of this name."""
    return format_of(name).largest


def missing_extra(name: str) -> str | None:
    """What to install before this file can be read, if anything."""
    library = format_of(name).library
    return NEEDS_EXTRA if library and find_spec(library) is None else None
