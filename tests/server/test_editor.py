"""The editor of the page, and the libraries that are vendored for it."""

from __future__ import annotations

import gzip
import hashlib
import re

from co_cli.server.page_files import FOLDER

VENDOR = FOLDER / "vendor"


def test_vendored_files_are_those_that_their_readme_names_with_licence_and_checksum() -> None:
    about = (VENDOR / "README.md").read_text(encoding="utf-8")
    named = {name: digest for digest, name in re.findall(r"^([0-9a-f]{64})  (\S+)$", about, re.MULTILINE)}

    found = {file.name: hashlib.sha256(file.read_bytes()).hexdigest() for file in VENDOR.iterdir()}
    del found["README.md"]

    assert named == found
    assert {name for name in named if name.endswith(".js")} == {
        name.replace(".LICENSE", ".js") for name in named if name.endswith(".LICENSE")
    }


def test_vendored_files_take_less_than_250_kb_compressed() -> None:
    assert sum(len(gzip.compress(file.read_bytes())) for file in VENDOR.iterdir()) < 250_000
