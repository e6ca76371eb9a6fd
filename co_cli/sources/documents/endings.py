"""Tell from a file's name whether it holds text, which library reads it, and how large it may be.

Only names are looked at. The readers check the bytes.
"""

from __future__ import annotations

BINARY = frozenset(
    """
    png jpg jpeg jpe gif bmp tif tiff webp heic heif avif ico icns psd ai eps svg svgz raw cr2 nef dng xcf sketch fig
    zip gz tgz bz2 tbz xz txz zst lz lz4 lzma 7z rar tar cab iso dmg img pkg deb rpm apk ipa jar war ear whl egg
    mp3 wav flac ogg oga opus m4a aac aiff wma mid midi
    mp4 m4v mov avi mkv webm wmv flv mpg mpeg 3gp
    ttf otf woff woff2 eot
    exe dll so dylib a o obj lib class pyc pyo pyd wasm bin elf com msi app node
    db sqlite sqlite3 db3 mdb accdb dbf sdf rdb ldb frm ibd parquet feather arrow avro orc npy npz pkl pickle joblib h5
    hdf5 hdf nc mat rds rda rdata sav dta safetensors gguf ggml onnx pt pth ckpt pb tflite
    key pem p12 pfx p8 jks keystore kdbx gpg asc pgp crt cer der
    pages numbers keynote mobi azw azw3 djvu xps one vsd vsdx pub msg pst ost
    blend fbx glb gltf stl 3ds dwg dxf step stp max unitypackage
    pcap pcapng dat swp swo bak tmp part crdownload torrent
    """.split()
)
"""Never read: pictures, archives, audio, video, fonts, programs, databases, models, and keys, which are secret."""
BINARY_ENDINGS = (".tar.gz", ".tar.bz2", ".tar.xz", ".tar.zst")
NAMELESS_BINARY = frozenset("id_rsa id_ed25519 id_ecdsa id_dsa .ds_store thumbs.db core".split())

GENERATED = frozenset(
    """
    package-lock.json npm-shrinkwrap.json yarn.lock pnpm-lock.yaml bun.lock bun.lockb deno.lock composer.lock
    gemfile.lock poetry.lock pipfile.lock uv.lock pdm.lock pixi.lock cargo.lock go.sum go.work.sum flake.lock mix.lock
    pubspec.lock podfile.lock package.resolved gradle.lockfile conan.lock conda-lock.yml packages.lock.json
    .terraform.lock.hcl
    """.split()
)
GENERATED_ENDINGS = tuple(".min.js .min.css .min.mjs .js.map .css.map .bundle.js .chunk.js .tsbuildinfo".split())

LIBRARIES = {
    "pdf": "pypdfium2",
    **dict.fromkeys(("docx", "docm", "dotx"), "docx"),
    **dict.fromkeys(("pptx", "pptm", "ppsx", "potx"), "pptx"),
    **dict.fromkeys(("xlsx", "xlsm", "xltx"), "openpyxl"),
}
"""Which package of the extra `documents` reads files with this ending."""
UNSUPPORTED = frozenset("odt ott fodt odp otp fodp ods ots fods epub rtf".split())

MB = 1_000_000
LARGEST_TEXT = 10 * MB
LARGEST_DOCUMENT = 100 * MB
"""For documents that may contain pictures, which are skipped."""


def ending_of(name: str) -> str:
    """In lower case, without the dot; empty for `Makefile` and `.profile`."""
    stem, dot, ending = name.rpartition("/")[2].rpartition(".")
    return ending.lower() if dot and stem else ""


def is_binary_name(name: str) -> bool:
    """Whether the file holds no text, or a secret. It is listed and never opened."""
    last = name.rpartition("/")[2].lower()
    return ending_of(last) in BINARY or last.endswith(BINARY_ENDINGS) or last in NAMELESS_BINARY


def is_generated_name(name: str) -> bool:
    """Whether it is a lock file, a bundle, a source map, …"""
    last = name.rpartition("/")[2].lower()
    return last in GENERATED or last.endswith(GENERATED_ENDINGS)


def largest_size(name: str) -> int:
    """In bytes. `read_document` refuses larger files of this name."""
    return LARGEST_DOCUMENT if ending_of(name) in (*LIBRARIES, "eml", "ipynb") else LARGEST_TEXT
