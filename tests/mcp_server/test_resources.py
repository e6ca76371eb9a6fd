"""Addresses of notes, and pages of a listing that others write to."""

from __future__ import annotations

import os

import pytest
from hypothesis import given
from hypothesis import strategies as st

from co_cli.errors import InvalidInputError
from co_cli.knowledge_base import KnowledgeBase
from co_cli.mcp.resources import list_page, open_resource, ref_of, uri_of
from co_cli.service.freshness import Freshener
from tests.vault import Vault


@given(st.sampled_from(["memory", "article"]), st.text(min_size=1).filter(lambda name: name.strip() == name))
def test_an_address_leads_back_to_its_ref(source: str, name: str) -> None:
    name = name.encode("utf-8", "replace").decode()
    uri = uri_of(f"{source}:{name}")

    assert ref_of(uri) == f"{source}:{name}"
    assert uri.isascii()
    assert not set(uri) & set(" #?<>\"'\\\n")


@pytest.mark.parametrize("uri", ["", "co://", "co://memory", "co://memory/", "co://url/x", "http://memory/x"])
def test_what_is_no_address_of_ours_has_no_ref(uri: str) -> None:
    assert ref_of(uri) is None


def test_an_address_with_lines_opens_those_lines(kb: KnowledgeBase, vault: Vault) -> None:
    vault.write("articles/park.md", "# Park\n\nOaks.\n\nElms.\n")

    assert open_resource(kb, Freshener(kb), "co://article/park#L3-5").text == "Oaks.\n\nElms."


@pytest.mark.skipif(os.sep != "/", reason="names that Windows does not have")
def test_whatever_a_note_is_called_its_resource_can_be_opened(kb: KnowledgeBase, vault: Vault) -> None:
    names = "oak|oak | oak|a\\b|\\|x\\..\\..\\y|a#L3|a%5Cb|a?b|x:y|a\nb|a\r|x\xa0|a.md".split("|")
    for name in names:
        vault.write(f"memories/{name}.md", f"This is {name!r}.")

    listed = list_page(kb, Freshener(kb), None).notes

    opened = {open_resource(kb, Freshener(kb), uri_of(note.ref)).text for note in listed}
    assert opened == {f"This is {name!r}." for name in names}


def refs(kb: KnowledgeBase, size: int, meanwhile: list[str] | None = None) -> list[str]:
    """Every ref of the listing, page by page; between two pages these notes are forgotten."""
    found: list[str] = []
    cursor = None
    while True:
        page = list_page(kb, Freshener(kb), cursor, size)
        found += [note.ref for note in page.notes]
        cursor = page.cursor
        if cursor is None:
            return found
        while meanwhile:
            kb.forget(meanwhile.pop())


def test_pages_go_on_where_the_last_one_ended_though_many_notes_share_a_moment(kb: KnowledgeBase, vault: Vault) -> None:
    for number in range(40):
        vault.write(f"memories/n{number:02}.md", f"---\ncreated: 2026-03-01T09:00:00Z\n---\nNote {number}.")
    vault.write("memories/newer.md", "---\ncreated: 2026-04-01\n---\nNewer.")
    vault.write("memories/older.md", "---\ncreated: 2026-02-01\n---\nOlder.")

    listed = refs(kb, size=3)

    assert listed == ["memory:newer", *(f"memory:n{number:02}" for number in range(40)), "memory:older"]


def test_a_note_forgotten_at_the_end_of_a_page_hides_no_other(kb: KnowledgeBase, vault: Vault) -> None:
    for day in range(1, 10):
        vault.write(f"memories/d{day}.md", f"---\ncreated: 2026-03-0{day}\n---\nDay {day}.")
    kb.sync()

    listed = refs(kb, size=3, meanwhile=["memory:d7"])

    assert listed == [f"memory:d{day}" for day in range(9, 0, -1)]


@pytest.mark.parametrize("cursor", ["x", "bm9uc2Vuc2U=", "WzEsMl0=", "W10=", "\ud800", "bnVsbA=="])
def test_a_cursor_that_is_not_ours_is_refused(kb: KnowledgeBase, cursor: str) -> None:
    with pytest.raises(InvalidInputError, match="begin again"):
        list_page(kb, Freshener(kb), cursor)
