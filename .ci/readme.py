"""The README as a package index shows it: its links and pictures lead to the repository, at the tag of the version.

Hatchling runs this for every build. The address is `Repository` in pyproject's `[project.urls]`; without one, links
become plain text and pictures are left out, because a package index cannot follow a path.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from hatchling.metadata.plugin.interface import MetadataHookInterface

PATH = re.compile(r"(!?)\[([^\]]*)\]\((?!https?:|#)([^)]+)\)")
"""A link or a picture whose target is a file of the repository."""


class ReadmeHook(MetadataHookInterface):
    def update(self, metadata: dict[str, Any]) -> None:
        text = Path(self.root, "README.md").read_text("utf-8")
        address = metadata.get("urls", {}).get("Repository")
        metadata["readme"] = {"content-type": "text/markdown", "text": for_index(text, address, metadata["version"])}


def for_index(text: str, address: str | None, version: str) -> str:
    """The README with absolute addresses, or without paths if the repository has none."""

    def replace(found: re.Match[str]) -> str:
        picture, words, path = found.groups()
        if not address:
            return "" if picture else words
        return f"{picture}[{words}]({address.rstrip('/')}/{'raw' if picture else 'blob'}/v{version}/{path})"

    return PATH.sub(replace, text)
