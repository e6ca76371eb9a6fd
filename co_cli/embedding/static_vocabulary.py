"""The embedded model's vocabulary, searched two ways for the longest token at the start of a string.

`ScannedVocabulary` searches the bytes as they lie in the file: nothing to build, tens of microseconds a word.
`IndexedVocabulary` builds a dictionary first: about ten milliseconds in a fresh process, then a microsecond a word.
"""

from __future__ import annotations

BLOCK = 4096
STEM = 3
"""How many bytes of an unknown word its first piece is sought by."""


class IndexedVocabulary:
    """For more than a handful of words."""

    def __init__(self, vocabulary: bytes) -> None:
        self._row_of = {token: row for row, token in enumerate(vocabulary.decode().split("\n"))}
        self._longest_token = max(map(len, self._row_of))

    def longest(self, rest: str, continued: bool) -> tuple[int, int] | None:
        row_of, lead = self._row_of, "##" if continued else ""
        for length in range(min(len(rest), self._longest_token), 0, -1):
            row = row_of.get(lead + rest[:length])
            if row is not None:
                return row, length
        return None


class ScannedVocabulary:
    """For one query in a fresh process."""

    def __init__(self, vocabulary: bytes) -> None:
        self._lines = b"\n%b\n" % vocabulary
        self._is_ascii = vocabulary.isascii()
        self._rows_before_block = [0]
        self.scanned = 0
        """Bytes looked at so far: when they have cost more than an index would, it is time for one."""

    def longest(self, rest: str, continued: bool) -> tuple[int, int] | None:
        if self._is_ascii and not rest.isascii():
            return None  # no token could ever cover it
        lead = b"\n##" if continued else b"\n"
        sought = rest.encode("utf-8", "surrogatepass")
        is_long = len(sought) > STEM
        if not (continued and is_long):  # most words are known; the rest of an unknown one seldom is
            at = self._find(lead + sought + b"\n")
            if at >= 0:
                return self._row(at), len(rest)
        if is_long:
            found = self._longest_with_stem(lead, sought)
            if found is not None:
                return found
        for length in range(min(len(sought) - 1, STEM - 1), 0, -1):
            at = self._find(lead + sought[:length] + b"\n")
            if at >= 0:
                return self._row(at), len(sought[:length].decode())
        return None

    def _longest_with_stem(self, lead: bytes, sought: bytes) -> tuple[int, int] | None:
        """One pass over every token that begins like `sought`, instead of one for each length it might have."""
        stem, lines = lead + sought[:STEM], self._lines
        best, best_at = b"", -1
        at = lines.find(stem)
        while at >= 0:
            end = lines.find(b"\n", at + 1)
            token = lines[at + len(lead) : end]
            if len(token) > len(best) and sought.startswith(token):
                best, best_at = token, at
            at = lines.find(stem, end)
        self.scanned += len(lines)
        return (self._row(best_at), len(best.decode())) if best else None

    def _find(self, line: bytes) -> int:
        at = self._lines.find(line)
        self.scanned += at if at >= 0 else len(self._lines)
        return at

    def _row(self, at: int) -> int:
        """The number of lines before `at`, counted block by block and remembered."""
        before, lines = self._rows_before_block, self._lines
        block = at // BLOCK
        while len(before) <= block:
            start = (len(before) - 1) * BLOCK
            before.append(before[-1] + lines.count(b"\n", start, start + BLOCK))
        return before[block] + lines.count(b"\n", block * BLOCK, at)
