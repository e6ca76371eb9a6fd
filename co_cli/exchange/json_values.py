"""The values of a JSON file one by one: the members of a list, the lines of JSON Lines, or the one object it holds.

Only one value is in memory at a time, so that an export of half a gigabyte needs no more than its longest
conversation. What is broken or cut off raises Unreadable with the number of the value; those before it have been
handed out.
"""

from __future__ import annotations

import codecs
import json
import re
from collections.abc import Iterator

from co_cli.exchange.archive import Export, Member, Source, Unreadable

CHUNK = 1 << 20
LINES = (".jsonl", ".ndjson", ".jsonl.gz")
LONGEST_VALUE = 100_000_000
BLANKS = re.compile(r"[ \t\r\n]*")
HALF_READ = 16
"""What stands so close to the end of what was read may only be half a word, or `1` the beginning of `1.5`."""
DELIMITERS = tuple(" \t\r\n,]")


def numbered_values(export: Export, member: Member) -> Iterator[tuple[int, object]]:
    """The values of a member of an export, each with its number; for JSON Lines that of its line."""
    with export.open(member) as stream:
        if member.name.lower().endswith(LINES):
            yield from json_lines(stream)
        else:
            yield from enumerate(json_values(stream), 1)


def json_values(stream: Source, longest: int = LONGEST_VALUE) -> Iterator[object]:
    """Of a list its members; else every value that stands in the file, one after the other."""
    reading = _Reading(stream, longest)
    if reading.next_letter() == "":
        raise Unreadable("it is empty")
    if reading.next_letter() != "[":
        while reading.next_letter():
            yield reading.value()
        return
    reading.skip()
    if reading.next_letter() == "]":
        return
    while True:
        yield reading.value()
        match reading.next_letter():
            case ",":
                reading.skip()
            case "]":
                return
            case "":
                raise Unreadable(f"it ends after item {reading.count:,}, in the middle; download it again")
            case letter:
                raise Unreadable(f"no JSON after item {reading.count:,}: {letter!r} stands where a comma should")


def json_lines(stream: Source, longest: int = LONGEST_VALUE) -> Iterator[tuple[int, object]]:
    """Of JSON Lines each value with its line's number; a line that cannot be read comes as Unreadable."""
    rest, number = b"", 0
    while True:
        data = stream.read(CHUNK)
        *lines, rest = (rest + data).split(b"\n")
        if not data and rest:
            lines, rest = [rest], b""
        for line in lines:
            number += 1
            if line.strip():
                yield number, _line(line)
        if not data:
            return
        if len(rest) > longest:
            raise Unreadable(f"line {number + 1:,} is longer than {longest:,} bytes")


def _line(line: bytes) -> object:
    try:
        return _decoder().decode(line.decode("utf-8-sig", "replace").strip())
    except (ValueError, RecursionError) as error:
        return Unreadable(_problem(error))


def _decoder() -> json.JSONDecoder:
    """Control characters inside texts are read; a number of thousands of digits is no reason to stop."""
    return json.JSONDecoder(strict=False, parse_int=lambda digits: int(digits) if len(digits) < 400 else float(digits))


class _Reading:
    """What was read of a stream and not yet used."""

    def __init__(self, stream: Source, longest: int) -> None:
        self.stream, self.longest = stream, longest
        self.letters = codecs.getincrementaldecoder("utf-8-sig")("replace")
        self.decoder = _decoder()
        self.text, self.at, self.count = "", 0, 0
        self.ended = False

    def more(self) -> bool:
        """At least as much again as is waiting: a long value is not read over and over."""
        if self.ended:
            return False
        data = self.stream.read(max(CHUNK, len(self.text) - self.at))
        self.ended = not data
        self.text = self.text[self.at :] + self.letters.decode(data, final=self.ended)
        self.at = 0
        return True

    def next_letter(self) -> str:
        """The next letter that is no blank, which stays where it is; empty at the end."""
        while True:
            blanks = BLANKS.match(self.text, self.at)
            self.at = blanks.end() if blanks else self.at
            if self.at < len(self.text):
                return self.text[self.at]
            if not self.more():
                return ""

    def skip(self) -> None:
        self.at += 1

    def value(self) -> object:
        self.next_letter()
        number = self.count + 1
        while True:
            try:
                value, end = self.decoder.raw_decode(self.text, self.at)
                if self.ended or end + HALF_READ < len(self.text) or self.text[end : end + 1] in DELIMITERS:
                    self.at, self.count = end, number
                    return value
                problem = ""
            except RecursionError:
                raise Unreadable(f"item {number:,}: nested too deep to be an export") from None
            except ValueError as error:
                problem = _problem(error)
                place = getattr(error, "pos", 0)
                if place + HALF_READ < len(self.text) and "Unterminated" not in str(error):
                    raise Unreadable(f"item {number:,}: no JSON ({problem})") from None
            if len(self.text) - self.at > self.longest:
                raise Unreadable(f"item {number:,} is longer than {self.longest:,} letters")
            if not self.more() and problem:
                raise Unreadable(f"item {number:,}: it ends in the middle, or is no JSON ({problem})")


def _problem(error: BaseException) -> str:
    if isinstance(error, RecursionError):
        return "nested too deep"
    said = getattr(error, "msg", None) or str(error)
    return said[0].lower() + said[1:]
