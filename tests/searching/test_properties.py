"""The fields of a note's frontmatter are text: they are found, shown and explained like the rest of it."""

from __future__ import annotations

import pytest

from co_cli import KnowledgeBase
from co_cli.notes.properties import properties_of
from co_cli.tools import Toolbox
from tests.command import Co
from tests.folder import Vault

FILM = """---
title: Blade Runner
director: "[[Ridley Scott]]"
cast: ["[[people/harrison-ford|Harrison Ford]]", "Rutger Hauer"]
composer: [[Vangelis]]
year: 1982
aliases: [Perfect Machine]
description: Neo-noir in Los Angeles
seen: true
---
A hunter of androids doubts.
"""


@pytest.fixture(autouse=True)
def films(vault: Vault) -> None:
    vault.write("memories/blade-runner.md", FILM)
    vault.write("memories/soup.md", "Soup is on Thursdays.")
    vault.write("memories/radio.md", "The harbour master's radio is on channel 12.")


@pytest.mark.parametrize("backend", ["hybrid", "fts5", "grep"])
@pytest.mark.parametrize(
    ("query", "shown"),
    [
        ("ridley scott", "director: Ridley Scott"),
        ("harrison", "cast: Harrison Ford (people/harrison-ford), Rutger Hauer"),
        ("vangelis", "composer: Vangelis"),
        ("1982", "year: 1982"),
        ("perfect machine", "aliases: Perfect Machine"),
        ("noir", "description: Neo-noir in Los Angeles"),
    ],
)
def test_a_property_is_found_and_shown_before_the_text(co: Co, backend: str, query: str, shown: str) -> None:
    ran = co("search", query, "--backend", backend)

    lines = ran.out.splitlines()
    assert lines[:2] == ["1. Blade Runner  memory:blade-runner", f"   {shown} · A hunter of androids doubts."]
    assert f"matches: {query.replace(' ', ', ')}" in lines[2]
    assert "weak" not in lines[2]


def test_python_and_agents_get_the_properties_that_matched(kb: KnowledgeBase) -> None:
    kb.sync()

    hit = kb.search("what did Ridley Scott do about androids?").hits[0]

    assert hit.properties == ("director: Ridley Scott",)
    assert hit.snippet == "director: Ridley Scott · A hunter of androids doubts."
    assert [hit.snippet[first:last] for first, last in hit.marks] == ["Ridley", "Scott", "androids"]
    assert "\ndirector: Ridley Scott\nA hunter" in Toolbox(kb).call("recall_memory", {"query": "Ridley Scott"}).text
    assert kb.search("androids").hits[0].properties == ()
    assert kb.search("blade runner").hits[0].snippet == "A hunter of androids doubts.", "the title has it"


def test_the_reader_reads_what_matched(co: Co, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("CO_KNOWLEDGE_READER")

    out = co("search", "who directed it: Ridley Scott?", "--read").out

    assert "weak" not in out.partition("\n\n")[0]


def test_a_note_is_shown_with_its_properties(co: Co) -> None:
    lines = co("show", "blade-runner").out.splitlines()

    assert lines[2:7] == [
        "director: Ridley Scott",
        "cast: Harrison Ford (people/harrison-ford), Rutger Hauer",
        "composer: Vangelis",
        "year: 1982",
        "aliases: Perfect Machine",
    ]


def test_why_names_words_of_properties(co: Co) -> None:
    out = co("note", "why", "Ridley Scott", "memory:blade-runner").out

    assert 'has "Ridley", "Scott"' in out


def test_what_is_no_text_is_no_property() -> None:
    metadata: dict[str, object] = {
        "title": "T",
        "created": "2026-03-01",
        "seen": True,
        "none": None,
        "empty": [],
        "map": {"a": "b"},
    }

    assert properties_of({**metadata, "x": ["a", ["[[b]]", ["c"]], 0.5, "  "]}) == {"x": "a, b, 0.5"}
