"""A ref to some lines of a note names the same text after the note was edited elsewhere, and says if it was changed."""

from __future__ import annotations

import re
from collections.abc import Callable

import pytest

from tests.command import Co
from tests.folder import Vault
from tests.mcp.talking import Place, Talk

FRONT = "---\ntitle: Kiln\ncreated: 2026-01-01\n---\n"
ABOVE = "# Kiln\n\nThe kiln stands in the yard.\n\n"
INSIDE = "## Glazing\n\nGlaze at 1,240 degrees.\n\nWait nine hours for it to cool.\n"
BELOW = "\n## Clay\n\nClay comes from the river.\n"
KILN = FRONT + ABOVE + INSIDE + BELOW


def glazing(place: Place, talk: Talk) -> str:
    """The ref that a recall gives for the lines about glazing."""
    place.vault.write("articles/kiln.md", KILN)
    found = talk.call_tool("recall_article", {"query": "glaze degrees wait hours to cool"}).content[0].text
    (ref,) = re.findall(r'ref="(article:kiln#L9-13~\w{4})"', found)
    return ref


EDITS: dict[str, tuple[Callable[[str], str], str]] = {
    "frontmatter": (lambda text: text.replace("title", "updated: 2026-02-02\nowner: Ana\ntitle"), "are 11-15 now"),
    "above": (lambda text: text.replace("The kiln", "Two lines\n\nmore.\n\nThe kiln"), "are 13-17 now"),
    "shorter above": (lambda text: text.replace("The kiln stands in the yard.\n\n", ""), "are 7-11 now"),
    "below": (lambda text: text + "\nAnd more.\n", ""),
    "inside, longer": (lambda text: text.replace("degrees.\n", "degrees.\n\nOpen no door.\n"), "are 9-15 now"),
    "inside, the same": (lambda text: text.replace("1,240", "1,260"), ""),
    "its last line": (lambda text: text.replace("nine hours", "ten hours"), "was changed since"),
    "its first line and above": (
        lambda text: text.replace("Glazing", "Glazes").replace("# K", "\n# K"),
        "changed since",
    ),
}


@pytest.mark.parametrize("edit", EDITS)
def test_a_ref_of_lines_names_its_text_after_an_edit(served: tuple[Place, Talk], edit: str) -> None:
    place, talk = served
    ref = glazing(place, talk)
    change, remark = EDITS[edit]
    place.vault.write("articles/kiln.md", change(KILN))

    text = talk.call_tool("read_note", {"ref": ref}).content[0].text
    (resource,) = talk.read_resource(f"co://article/{ref.removeprefix('article:')}").contents

    body = text.partition(">\n")[2].partition("\n</note>")[0]
    after = re.search(r"(## Glaz.*?to cool\.)\n", change(KILN), re.DOTALL)
    assert after is not None
    assert body == resource.text == after[1]
    assert remark in text
    assert bool(remark) == ("when the ref was given" in text or "since the ref was given" in text)


def test_a_ref_whose_text_is_gone_says_so(served: tuple[Place, Talk]) -> None:
    place, talk = served
    ref = glazing(place, talk)
    place.vault.write("articles/kiln.md", KILN.replace(INSIDE, "It was sold.\n\nOn 1 May.\n\nTo Bo.\n"))

    text = talk.call_tool("read_note", {"ref": ref}).content[0].text

    assert "this text was changed since the ref was given" in text
    assert "It was sold." in text
    place.vault.write("articles/kiln.md", "Short.")
    gone = talk.call_tool("read_note", {"ref": ref})
    assert gone.is_error
    assert "the text of this note is on the lines 1 to 1" in gone.content[0].text


def test_a_tool_that_changes_the_note_takes_such_a_ref(served: tuple[Place, Talk]) -> None:
    place, talk = served
    ref = glazing(place, talk)

    tagged = talk.call_tool("update_memory", {"ref": ref, "tags": ["clay"]})
    edited = talk.call_tool("update_memory", {"ref": ref, "old": "nine hours", "new": "ten hours"})

    assert not tagged.is_error
    assert not edited.is_error
    assert "Wait ten hours" in place.vault.read("articles/kiln.md")
    assert "tags:" in place.vault.read("articles/kiln.md")


def test_a_command_opens_it_and_counts_lines_of_the_file_without_a_mark(
    co: Co, vault: Vault, served: tuple[Place, Talk]
) -> None:
    ref = glazing(*served)
    vault.write("articles/kiln.md", KILN.replace("title", "owner: Ana\ntitle"))

    marked, plain = co("show", ref), co("show", "article:kiln#L10-14")

    assert "note: these lines were 9-13 when the ref was given, and are 10-14 now" in marked.out
    for shown in (marked, plain):
        assert "Glaze at 1,240 degrees." in shown.out
        assert "river" not in shown.out
    lines = co("search", "--lines", "glaze degrees").out
    assert "12" in lines, "as an editor counts them"
