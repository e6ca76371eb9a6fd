"""A folder as people have them: documents of every kind, code, pictures, broken files, links, what tools leave behind.

Made the same way each time from a number, and quickly: 2,000 files take about a second. The manifest says what should
become of each of them, and by which words it can be found.
"""

from __future__ import annotations

import json
import os
import random
import sys
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from tests.sources.document_files import lines_of, packed, pdf, quickly

SUBJECTS = "harbour ferry lantern mooring tide berth crane pilot anchor quay sluice beacon cargo rudder dredger".split()
DEEDS = "opens closes sinks rises leaves arrives waits turns drifts holds".split()
FOLDERS = (
    "",
    "guides",
    "guides/night shift",
    "Straße/Übung",
    "港",
    "a/b/c/d/e/f/g/h/i/j",
    "src",
    "src/harbour",
    "2026/03",
)
INDEXED, BINARY, IGNORED, SKIPPED = "indexed", "binary", "ignored", "skipped"


class Expected(NamedTuple):
    """What should become of a file."""

    outcome: str
    """indexed · binary: listed, never read · ignored: as if it were not there · skipped: and why"""
    words: tuple[str, ...] = ()
    """Each of them stands in this file and in no other."""


def make_mixed_folder(root: Path, files: int = 2_000, seed: int = 6) -> dict[str, Expected]:
    """Fill `root`; path inside it (with `/`) to what is expected. At least 120 files, of which most are ordinary."""
    made = _Making(root, random.Random(seed))
    made.odd_ones()
    kinds = [kind for kind, share in SHARES.items() for _ in range(share)]
    while len(made.manifest) < files:
        made.ordinary(made.random.choice(kinds))
    return made.manifest


def edit_some(root: Path, manifest: dict[str, Expected], count: int = 10) -> dict[str, Expected]:
    """Write other words into some of the files that are indexed; which ones, and what is expected of them now."""
    edited: dict[str, Expected] = {}
    for path in _some(manifest, count, start=0):
        words = tuple(f"edited{word}" for word in manifest[path].words[:1])
        (root / path).write_bytes(_CONTENTS[path.rsplit(".", 1)[1]](_prose(words[0], random.Random(path)), words[0]))
        edited[path] = Expected(INDEXED, words)
    return edited


def delete_some(root: Path, manifest: dict[str, Expected], count: int = 5) -> list[str]:
    """Remove some of the files that are indexed, none of those that `edit_some` edits."""
    gone = _some(manifest, count, start=1)
    for path in gone:
        (root / path).unlink()
    return gone


def _some(manifest: dict[str, Expected], count: int, start: int) -> list[str]:
    """Spread over the kinds of files, the same ones each time."""
    plain = sorted(
        path for path, expected in manifest.items() if expected.outcome == INDEXED and "/ordinary-" in f"/{path}"
    )
    by_kind = sorted(plain[start::2], key=lambda path: (plain.index(path) % 97, path))
    return sorted(by_kind[:count])


class _Making:
    def __init__(self, root: Path, chance: random.Random) -> None:
        self.root, self.random = root, chance
        self.manifest: dict[str, Expected] = {}
        self._folders: set[Path] = set()

    def ordinary(self, kind: str) -> None:
        """One that has nothing odd about it."""
        number = len(self.manifest)
        folder = self.random.choice(FOLDERS)
        path = f"{folder}/ordinary-{number}.{kind}" if folder else f"ordinary-{number}.{kind}"
        if kind in PICTURES:
            self.write(path, PICTURES[kind] + self.random.randbytes(300), BINARY)
        else:
            token = self.token()
            self.write(path, _CONTENTS[kind](_prose(token, self.random), token), INDEXED, token)

    def token(self) -> str:
        """A word that no other file has."""
        return f"zq{len(self.manifest):05d}w{self.random.randrange(10**6):06d}"

    def write(self, path: str, data: bytes, outcome: str, *words: str) -> None:
        full = self.root / path
        if full.parent not in self._folders:
            full.parent.mkdir(parents=True, exist_ok=True)
            self._folders.add(full.parent)
        full.write_bytes(data)
        self.manifest[path] = Expected(outcome, words)

    def odd_ones(self) -> None:
        self._odd_names()
        self._odd_encodings()
        self._broken()
        self._generated()
        self._hidden()
        self._huge()
        self._links()

    def _odd_names(self) -> None:
        names = [
            "with space.md",
            "Größe.txt",
            "港の規則.txt",
            "🚢 ahoy.md",
            "it's.txt",
            "100%.md",
            "-rf.txt",
            "a[1].md",
            "b#1.txt",
        ]
        names += [
            "no_ending",
            "Makefile",
            "UPPER.TXT",
            "two..dots.md",
            "trailing.dot.txt",
            "x" * 150 + ".txt",
            "readme.unknown",
        ]
        if sys.platform not in ("win32", "darwin"):
            names += ["two\nlines.txt", "tab\there.md", 'quote".txt', "what?.md", "back\\slash.txt"]
        for name in names:
            token = self.token()
            self.write(f"odd names/{name}", _prose(token, self.random).encode(), INDEXED, token)
        token = self.token()
        self.write(
            "/".join(f"level {depth}" for depth in range(40)) + "/deep.md",
            f"# Deep\n\n{token}\n".encode(),
            INDEXED,
            token,
        )
        for name in ("empty.md", "empty.txt", "empty.py"):
            self.write(f"odd names/{name}", b"", INDEXED)

    def _odd_encodings(self) -> None:
        for name, encoding in (
            ("latin.txt", "latin-1"),
            ("windows.csv", "cp1252"),
            ("bom.txt", "utf-8-sig"),
            ("wide.txt", "utf-16"),
        ):
            token = self.token()
            text = f"Grüße aus der Straße: für den Kapitän schöne Brücken und Äpfel über {token}.\n" * 3
            self.write(f"encodings/{name}", text.encode(encoding), INDEXED, token)
        token = self.token()
        japanese = (
            f"港の規則についての説明です。船は毎朝七時に出発します。雨の日は待合室を利用してください。{token}\n" * 3
        )
        self.write("encodings/japanese.txt", japanese.encode("shift_jis"), INDEXED, token)
        token = self.token()
        damaged = f"Über {token} führt der Weg zur Brücke.\n".encode() + b"one \xff broken byte\n"
        self.write("encodings/damaged.md", damaged, INDEXED, token)
        self.write("encodings/windows lines.txt", f"one\r\n{(token := self.token())}\r\n".encode(), INDEXED, token)

    def _broken(self) -> None:
        """Names that promise text over bytes that hold none."""
        noise = self.random.randbytes(2_000)
        for name, data in {
            "noise.txt": b"\0\1\2" + noise,
            "noise.md": b"\0\1\2" + noise,
            "noise.json": b"\0" + noise,
            "noise": b"\x7fELF\2\1\1\0" + noise,
            "cut.docx": quickly("docx", "x", "y")[:-50],
            "text.docx": b"this is not a zip file",
            "old.doc": b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + b"\0" * 600,
            "empty.pdf": b"",
            "cut.pdf": b"%PDF-1.4\n1 0 obj\n<<",
            "text.pdf": b"no pdf at all",
            "scanned.pdf": pdf(None, None),
            "scripts.html": b"<html><body><script>draw()</script></body></html>",
            "cells.ipynb": b"{",
            "book.epub": packed({"chapter.xhtml": "<p>Not read.</p>"}),
            "plan.odt": packed({"content.xml": "<p>Not read.</p>"}),
            "letter.rtf": b"{\\rtf1 Not read.}",
        }.items():
            self.write(f"broken/{name}", data, f"{SKIPPED}: no text")
        for name in ("photo.jpg", "song.mp3", "archive.tar.gz", "data.sqlite", "font.woff2", "tool.exe", "secret.pem"):
            self.write(f"binary/{name}", noise, BINARY)

    def _generated(self) -> None:
        self.write("generated/package-lock.json", b"{}", f"{SKIPPED}: generated")
        self.write("generated/app.min.js", b"var a=1", f"{SKIPPED}: generated")
        self.write("generated/bundle.js", b"function a(b){return b+1};" * 2_000, f"{SKIPPED}: generated")
        self.write("generated/blob.txt", b"QUJD" * 5_000, f"{SKIPPED}: generated")

    def _hidden(self) -> None:
        for path in (".git/config", ".hidden.md", ".cache/page.html", "guides/.draft.txt", "src/.venv/lib/x.py"):
            self.write(path, b"never found", IGNORED)
        for path in (
            "node_modules/left/index.js",
            "node_modules/left/readme.md",
            "src/node_modules/x.ts",
            "src/__pycache__/x.txt",
        ):
            self.write(path, b"never found", IGNORED)

    def _huge(self) -> None:
        """Larger than anybody would read, and mostly holes: they cost no space on the disk."""
        for name, size in (("huge.log", 3_000_000_000), ("huge.md", 1_000_000_000), ("huge.pdf", 2_000_000_000)):
            self.write(f"huge/{name}", b"text at the start\n", f"{SKIPPED}: too large")
            os.truncate(self.root / "huge" / name, size)

    def _links(self) -> None:
        """To a file, a folder, outside, nothing, itself, and to a folder above."""
        outside = self.root.parent / f"{self.root.name} outside"
        outside.mkdir(exist_ok=True)
        (outside / "secret.md").write_text("never found", "utf-8")
        for name, target in {
            "file.md": "../odd names/with space.md",
            "folder": "../guides",
            "outside.md": str(outside / "secret.md"),
            "outside": str(outside),
            "nothing.txt": "there-is-none",
            "itself.md": "itself.md",
            "above": "..",
            "password.txt": "/etc/passwd",
        }.items():
            link = self.root / "links" / name
            link.parent.mkdir(exist_ok=True)
            try:
                link.symlink_to(target)
            except OSError:  # Windows, for those who may not
                continue
            self.manifest[f"links/{name}"] = Expected(f"{SKIPPED}: symbolic link")


def _prose(token: str, chance: random.Random) -> str:
    subject, other = chance.sample(SUBJECTS, 2)
    deeds = [chance.choice(DEEDS) for _ in range(3)]
    return (
        f"The {subject} {deeds[0]} when the {other} {deeds[1]}. Ask for {token} at the gate.\n\n"
        f"After that nobody {deeds[2]}, and the {subject} is shut.\n"
    )


PICTURES = {"png": b"\x89PNG\r\n\x1a\n\0", "jpg": b"\xff\xd8\xff\xe0\0", "zip": b"PK\3\4\0", "woff2": b"wOF2\0"}
SHARES = {
    **{
        "md": 30,
        "txt": 12,
        "rst": 6,
        "html": 8,
        "py": 8,
        "js": 4,
        "go": 3,
        "c": 2,
        "sql": 2,
        "json": 3,
        "csv": 3,
        "yaml": 2,
    },
    **{"pdf": 5, "docx": 4, "pptx": 2, "xlsx": 2, "eml": 1, "ipynb": 1},
    **{"png": 4, "jpg": 2, "zip": 1, "woff2": 1},
}
"""How many of a hundred ordinary files are of which kind."""
_Content = Callable[[str, str], bytes]


def _code(comment: str, start: str, end: str) -> _Content:
    """Prose as comments, and a function."""
    return lambda prose, token: (
        "".join(f"{comment} {line}\n" if line else "\n" for line in prose.split("\n")) + start.format(token) + end
    ).encode()


_CONTENTS: dict[str, _Content] = {
    "md": lambda prose, token: f"---\ntitle: About {token}\ntags: [quay]\n---\n# About {token}\n\n{prose}".encode(),
    "txt": lambda prose, _: prose.encode(),
    "rst": lambda prose, token: f"About {token}\n{'=' * 40}\n\n{prose}".encode(),
    "html": lambda prose, token: (
        f"<html><head><title>About {token}</title></head><body><nav>Home Fees</nav><main><h1>About {token}</h1>"
        f"<p>{prose.strip()}</p></main><footer>All rights reserved</footer></body></html>"
    ).encode(),
    "py": _code("#", "def moor_{}(boat):\n", "    return boat\n"),
    "js": _code("//", "export function moor_{}(boat) {{\n", "  return boat\n}\n"),
    "go": _code("//", "func moor_{}(boat int) int {{\n", "\treturn boat\n}\n"),
    "c": _code("//", "int moor_{}(int boat)\n", "{\n  return boat;\n}\n"),
    "sql": _code("--", "create table moor_{} (\n", "  boat int\n);\n"),
    "json": lambda prose, token: json.dumps({"name": token, "text": prose}, indent=2).encode(),
    "csv": lambda prose, token: f'name,text\n{token},"{" ".join(prose.split())}"\n'.encode(),
    "yaml": lambda prose, token: (
        f"name: {token}\ntext: |\n  {prose.strip().replace(chr(10), chr(10) + '  ')}\n".encode()
    ),
    "pdf": lambda prose, token: pdf(
        lines_of(prose.strip()), lines_of(f"The second page of {token}."), title=f"On {token}"
    ),
    **{
        ending: lambda prose, token, ending=ending: quickly(ending, token, prose) for ending in ("docx", "pptx", "xlsx")
    },
    "eml": lambda prose, token: f"From: ada@quay.example\nSubject: About {token}\n\n{prose}".encode(),
    "ipynb": lambda prose, token: json.dumps({"cells": [{"cell_type": "markdown", "source": [prose]}]}).encode(),
}
