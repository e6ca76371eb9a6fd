"""The parts of a document that is a ZIP file, unpacked within limits, whatever they say about their size."""

from __future__ import annotations

import zipfile
from io import BytesIO

from co_cli.notes.encoding import NotTextError
from co_cli.sources.documents.formats import MB

LARGEST_PART = 32 * MB
LARGEST_WHOLE = 96 * MB
BROKEN = "broken: not a complete ZIP file; open it and save it again"


class ZipParts:
    """`what` is what the document should be, for messages."""

    def __init__(self, data: bytes, what: str) -> None:
        self._left = LARGEST_WHOLE
        try:
            self._file = zipfile.ZipFile(BytesIO(data))
        except zipfile.BadZipFile:
            raise NotTextError(
                f"a PDF, not {what}: rename it to .pdf" if data.startswith(b"%PDF-") else BROKEN
            ) from None
        self._entries = {entry.filename: entry for entry in self._file.infolist()}
        self.names = self._entries.keys()

    def read(self, name: str) -> bytes:
        """One of `names`. Raises NotTextError for a bomb, and for a part with a password."""
        entry = self._entries[name]
        if entry.flag_bits & 0x1:
            raise NotTextError("protected by a password: save it without one")
        most = min(LARGEST_PART, self._left)
        try:
            with self._file.open(entry) as stream:
                part = stream.read(most + 1)
        except zipfile.BadZipFile:
            raise NotTextError(BROKEN) from None
        if len(part) > most:
            raise NotTextError(f"its text is larger than {most // MB} MB when unpacked")
        self._left -= len(part)
        return part
