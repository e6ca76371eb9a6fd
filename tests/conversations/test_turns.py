"""Turns as Markdown and back, and a search over them by words, speaker and time."""

from __future__ import annotations

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from co_cli.entrance.knowledge_base import KnowledgeBase
from co_cli.notes.note import read_note
from co_cli.notes.transcripts import SpokenTurn, nested, own_lines, read_turns, render_turns, speaker_of
from co_cli.saving.turns import KeptSession, keep_turns
from co_cli.sources.passages import passages_of
from tests.folder import Vault

DAY = 86_400.0
PIECES = ["## User · 2026-01-01T00:00:00Z", "# a", "```", "~~~", "``` x", "- ```", "    code", "text", "", "==", "> q"]


@given(st.lists(st.lists(st.sampled_from(PIECES), min_size=1, max_size=6).map("\n".join), min_size=1, max_size=4))
def test_whatever_is_said_stays_in_its_turn(texts: list[str]) -> None:
    said = [SpokenTurn(f"Speaker {number}", text, 1.7e9 + number) for number, text in enumerate(texts)]

    found = read_turns(render_turns(said))

    assert [(turn.speaker, turn.at) for turn in found] == [(turn.speaker, turn.at) for turn in said]
    assert [turn.text.split() for turn in found] == [nested(text).split() for text in texts]


def test_many_code_blocks_take_linear_time() -> None:
    marks = [f"{'`' * length}\n{'`' * length}" for length in range(3, 220)]
    text = "\n".join([*marks, *["- a", "b"] * 20_000, "~~~"])
    started = time.process_time()

    found = nested(text)

    assert time.process_time() - started < 10, "a tenth of a second on an idle machine"
    assert found == text + "\n~~~"


def test_a_turn_knows_its_lines_and_the_notes_that_were_given_for_it() -> None:
    said = [SpokenTurn("User", "Which pool?"), SpokenTurn("Assistant", "Blue.\n\nThen green.", 1.7e9, ("memory:a b",))]
    text = f"---\nkind: conversation\n---\n{render_turns(said)}"
    note = read_note("conversations/x.md", text.encode())

    user, assistant = read_turns(note.body, note.body_line)

    lines = text.split("\n")
    assert lines[user.line - 1] == "## User"
    assert (lines[assistant.line - 1].split(" · ")[0], lines[assistant.last - 1]) == ("## Assistant", "Then green.")
    assert assistant.given == ("memory:a b",)


def test_quotes_code_and_what_programs_paste_are_not_the_speakers_own_words() -> None:
    text = "Mine.\n> quoted\n```\ncode\n```\n<context from='page'>\npasted\n</context>\nMine again."
    (turn,) = read_turns(render_turns([SpokenTurn("User", text)]))

    own = [text.split("\n")[line - turn.line - 2] for line in sorted(own_lines(turn))]

    assert own == ["Mine.", "Mine again."]


@pytest.mark.parametrize(
    ("role", "name", "speaker"),
    [
        ("human", "", "User"),
        ("assistant", "", "Assistant"),
        ("assistant", "assistant", "Assistant"),
        ("assistant", "Claude", "Assistant Claude"),
        ("agent", "", "Assistant"),
        ("user", "Mara", "Mara"),
        ("tool", "User", "Tool User"),
        ("system", "", "Tool"),
        ("", "", "Unknown"),
        ("Mara · 2020", "", "Mara 2020"),
    ],
)
def test_a_speaker_has_one_name_and_a_program_cannot_pass_for_a_person(role: str, name: str, speaker: str) -> None:
    assert speaker_of(role, name) == speaker


def test_each_turn_is_a_passage_with_speaker_date_and_neighbours() -> None:
    said = [SpokenTurn(who, f"{who} says something.", 1_700_000_000.0) for who in ("Ada", "Bex", "Cem", "Dan")]
    said.append(SpokenTurn("Eve", "A long story. " * 200))
    text = f"---\nkind: conversation\n---\n{render_turns(said)}"

    passages = passages_of(read_note("conversations/x.md", text.encode()))

    third = passages[2]
    assert (third.heading, third.text, third.said) == ("Cem, 14 November 2023, 22:13", "Cem says something.", 1.7e9)
    assert third.around == "Ada: Ada says something.\nBex: Bex says something.\nDan: Dan says something."
    assert len(passages) > 5, "a long turn is cut"
    assert {passage.heading for passage in passages[4:]} == {"Eve"}
    assert text.split("\n")[third.first_line - 1].startswith("## Cem")


def test_what_did_we_discuss_last_week_finds_turns_of_that_week_only(
    kb: KnowledgeBase, vault: Vault, monkeypatch: pytest.MonkeyPatch
) -> None:
    now = time.time()
    monkeypatch.setattr(time, "time", lambda: now)
    turns = [
        SpokenTurn("User", "Shall we repaint the harbour wall in white?", now - 60 * DAY),
        SpokenTurn("User", "The harbour wall needs red paint instead.", now - 7 * DAY),
        SpokenTurn("User", "The harbour wall is dry now.", now),
    ]
    kept = keep_turns(kb.vault, KeptSession("s-1"), turns)
    vault.write("memories/wall.md", f"---\ncreated: {time.strftime('%Y-%m-%d', time.gmtime(now))}\n---\nHarbour wall.")
    kb.sync()

    everything = kb.search("harbour wall paint", sources="conversation")
    for backend in ("hybrid", "grep"):
        found = kb.search("harbour wall", since=now - 8 * DAY, until=now - 6 * DAY, backend=backend)
        assert [hit.snippet for hit in found.hits] == ["The harbour wall needs red paint instead."], backend
    asked = kb.search("what did we discuss last week about the harbour wall")

    assert len(everything.hits) == 3, "each turn is a hit of its own"
    assert [hit.snippet for hit in asked.hits] == ["The harbour wall needs red paint instead."]
    assert asked.hits[0].created == time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(now - 7 * DAY))
    assert kb.note(asked.hits[0].ref).ref == kept.ref
    assert [note.ref for note in kb.notes("conversation", since=now - 8 * DAY, until=now - 6 * DAY)] == [kept.ref]
