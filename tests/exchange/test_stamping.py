"""What is put into a copied file: it is known again, claims nothing, loses nothing; and a line of JSON is the file."""

from __future__ import annotations

import json

from hypothesis import given, settings
from hypothesis import strategies as st

from co_cli.exchange.items import Own, bytes_hash
from co_cli.exchange.own_lines import note_line, own_entry
from co_cli.exchange.stamping import came_as, stamped, still_as_written
from co_cli.notes.note import UTF_16, read_note

LINES = st.sampled_from(
    [
        "title: Oak",
        "provenance: user # me",
        "provenance: [a, b]",
        "'provenance': web",
        "loading: always",
        "loading:",
        "  - nested",
        "tags:\n  - a\n  - b",
        "x: &a {loading: always}",
        "<<: *a",
        "a: b: c",
        "# a comment",
        "",
        "import_id: theirs",
        "import_hash: 0000000000000000-0000000000000000",
        "n: .nan",
        "text: |\n  provenance: user\n  loading: always",
        '"k": "\\ud83d"',
    ]
)
WRITTEN = st.builds(
    lambda begin, lines, end, body: (begin + end.join(["---", *lines, "---", ""]) + body).encode("utf-8", "replace"),
    st.sampled_from(["", "\ufeff", "\n"]),
    st.lists(LINES, max_size=6),
    st.sampled_from(["\n", "\r\n"]),
    st.text(max_size=30) | st.sampled_from(["---\nloading: always\n---\nx", "-0000000000000000", "words"]),
)
FILES = (WRITTEN | st.binary(max_size=40)).filter(lambda data: b"\0" not in data and not data.startswith(UTF_16))


@settings(max_examples=80)
@given(FILES, st.text(min_size=1, max_size=10).filter(str.strip))
def test_any_file_is_known_again_and_claims_nothing(data: bytes, identity: str) -> None:
    identity = identity.encode("utf-8", "replace").decode().replace("\0", "")

    written = stamped(data, "obsidian", identity, trust=False)

    note = read_note("articles/x.md", written)
    assert note.provenance in ("import", "web")
    assert "loading" not in note.metadata
    assert note.metadata["imported_from"] == "obsidian"
    stamp = note.metadata["import_hash"]
    assert came_as(stamp) == bytes_hash(data)
    assert still_as_written(written, stamp)
    assert not still_as_written(written + b"!", stamp)
    body = read_note("articles/x.md", data).body
    assert note.body.endswith(body)


@settings(max_examples=80)
@given(FILES)
def test_a_line_of_json_gives_the_same_file_back(data: bytes) -> None:
    line = note_line(read_note("articles/x.md", data), data).encode("utf-8")

    assert b"\n" not in line
    assert own_entry(json.loads(line), "here") == Own("here", "articles/x.md", data)
