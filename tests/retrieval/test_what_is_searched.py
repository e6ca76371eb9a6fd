"""Where words are looked for, what comes first, and how dates in a query are read; through `co` and KnowledgeBase."""

from __future__ import annotations

import os
import time
from datetime import datetime, timedelta

import pytest

from co_cli.entrance.knowledge_base import KnowledgeBase
from co_cli.retrieval.profiles import PROFILES
from tests.command import Co
from tests.folder import Vault


def refs(kb: KnowledgeBase, query: str, **options: object) -> list[str]:
    return [hit.ref.partition("#")[0] for hit in kb.search(query, **options).hits]  # type: ignore[arg-type]


def write_fillers(vault: Vault, count: int = 20) -> None:
    topics = "tides clocks bells harbours letters invoices gulls varnish radios ladders".split()
    for number in range(count):
        vault.write(f"memories/f{number}.md", f"Serial numbers of {topics[number % 10]}, entry {number} of the book.")


PLACES = {
    "tag": "---\ntags: [walrus]\n---\nSaturday at noon.",
    "alias": "---\naliases: [The otter move]\n---\nSaturday at noon.",
    "frontmatter": "---\nowner: Badger\n---\nSaturday at noon.",
    "list": "---\npeople: [Mara, Weasel]\n---\nSaturday at noon.",
    "heading": "# Move\n\nIntro.\n\n## With the lynx\n\nSaturday at noon.",
    "zanzibar cutover": "---\ntitle: The final move\n---\nWe switch at noon on Saturday.",
}
ASKED = ("walrus", "otter", "badger", "weasel", "lynx", "zanzibar")


def test_words_are_found_wherever_a_note_has_them(kb: KnowledgeBase, vault: Vault) -> None:
    write_fillers(vault)
    for name, text in PLACES.items():
        vault.write(f"articles/{name}.md", text)
    kb.sync()

    for query, name in zip(ASKED, PLACES, strict=True):
        assert refs(kb, query)[0] == f"article:{name}"
        assert refs(kb, query, backend="fts5") == [f"article:{name}"]


def test_a_note_with_the_name_that_was_asked_for_comes_first(kb: KnowledgeBase, vault: Vault) -> None:
    front = "title: Winter plan\naliases: [The frost list]\ncreated: 2019-01-01\n"
    vault.write("memories/cold-season.md", f"---\n{front}---\nCover the taps.\n")
    for number in range(12):
        text = f"The winter plan of the cold season: frost, a list and more frost in winter, plan {number}."
        vault.write(f"memories/p{number}.md", f"---\nseverity: critical\n---\n{text}\n")
    kb.sync()

    names = ("Winter plan", "winter PLAN?", "cold-season", "The frost list", "memory:cold-season", "cold_season")
    for query, profile in [(name, "default") for name in names] + [(names[0], name) for name in PROFILES]:
        first, second, *_ = kb.search(query, profile=profile).hits
        assert (first.ref, "name" in second.signals) == ("memory:cold-season", False), (query, profile)
        assert first.signals["name"] > 0
        assert sum(first.signals.values()) == pytest.approx(first.score, abs=1e-9)


PEOPLE = (
    "Tomasz W\u00f3jcik, Marcus Lindqvist, Hannah Brandt, Priya Raman, Elena Petrova, Diego Fern\u00e1ndez, "
    "Aoife Byrne, Kenji Mori, Lucia Conti, Samuel Okafor, Ingrid Dahl, Yusuf Demir"
).split(", ")


@pytest.fixture
def people(kb: KnowledgeBase, vault: Vault) -> KnowledgeBase:
    """A note for each person, and notes that mention them more often than their own do."""
    for name in PEOPLE:
        vault.write(f"articles/People/{name}.md", "Works in the office on the second floor. Likes coffee and sailing.")
        first, last = name.split()
        for number, subject in enumerate(("launch", "budget", "survey", "harbour wall")):
            text = f"{first} and {last} spoke about the {subject}: {first} agrees, {last} asks {first} for a plan."
            vault.write(f"memories/{first.lower()}{number}.md", f"---\ntitle: The {subject} call\n---\n{text}")
    kb.sync()
    return kb


def test_a_person_is_found_by_one_of_the_names_before_notes_that_mention_it(people: KnowledgeBase, co: Co) -> None:
    for name in PEOPLE:
        for query in name.lower().split():
            assert refs(people, query)[0] == f"article:People/{name}", query

    why = co("note", "why", "lindqvist", "article:People/Marcus Lindqvist").out
    assert "the query is a part of its title, and that comes first" in why


def test_a_misspelled_name_finds_the_person_first(people: KnowledgeBase) -> None:
    found = people.search("marucs")

    assert found.understood == ('no note has "marucs": searched for "marcus"',)
    assert found.hits[0].title == "Marcus Lindqvist"


def test_irregular_forms_of_a_word_are_one_word(kb: KnowledgeBase, vault: Vault) -> None:
    for number in range(12):
        vault.write(f"memories/t{number}.md", f"Travel report {number}: travel by train, travel costs.")
    vault.write("memories/memo.md", "Finance froze travel spending until the end of the quarter.")
    vault.write("memories/shelf.md", "Two women wrote that their children have bad teeth.")
    kb.sync()

    assert refs(kb, "travel freeze")[0] == refs(kb, "travel freeze", backend="fts5")[0] == "memory:memo"
    for query in ("freezing", "frozen"):
        assert refs(kb, query, backend="fts5") == ["memory:memo"]
    for query in ("woman", "writing", "child", "tooth"):
        assert refs(kb, query, backend="fts5") == ["memory:shelf"]


def test_a_word_that_many_titles_share_names_none_of_them(kb: KnowledgeBase, vault: Vault) -> None:
    for number in range(25):
        vault.write(f"memories/p{number}.md", f"---\ntitle: Plan {number} for the harbour\n---\nOf no interest.")
    kb.sync()

    assert not any("name" in hit.signals for hit in kb.search("harbour", limit=30).hits)
    assert "name" in kb.search("plan 7").hits[0].signals


def test_a_query_that_found_nothing_suggests_words_that_are_spelled_alike(
    kb: KnowledgeBase, vault: Vault, co: Co
) -> None:
    write_fillers(vault)
    vault.write("Projects/Zanzibar cutover.md", "We switch at noon, says Wilhelmina.\n")
    kb.sync()

    assert kb.search("Zanzibra", backend="fts5").suggestions == ("zanzibar",)
    assert kb.search("wilhelmna ladders", backend="fts5", tags=["none"]).suggestions == (), "filters left nothing of it"
    assert kb.search("ladders").suggestions == ()
    assert kb.search('"ladders varnish"').suggestions == (), "its words are here, though not so"
    ran = co("search", "Wilhelmna", "--backend", "fts5")
    assert (ran.code, "Words that occur here: wilhelmina?" in ran.out) == (1, True)


def test_a_prefix_finds_what_it_begins(kb: KnowledgeBase, vault: Vault, co: Co) -> None:
    write_fillers(vault)
    vault.write("memories/planet.md", "Planets and the Zanzibar ferry.")
    kb.sync()

    for beginning in ("zanz", "plan", "the zanziba"):
        assert kb.search(beginning, prefix=True).hits[0].ref == "memory:planet", beginning
        assert kb.search(beginning, prefix=True).state == "found"
    assert kb.search("plan", backend="fts5").hits[0].part_of == ("planet",), "without, it is a part of a word"
    assert co("search", "zanz", "--prefix", "--json").json["hits"][0]["ref"] == "memory:planet"


@pytest.fixture
def diary(vault: Vault, kb: KnowledgeBase, monkeypatch: pytest.MonkeyPatch) -> KnowledgeBase:
    """A note of every day of the last five weeks, at noon of local time. The clock stands still."""
    now = time.time()
    monkeypatch.setattr(time, "time", lambda: now)
    noon = datetime.fromtimestamp(now).replace(hour=12, minute=0, second=0, microsecond=0)
    for days in range(35):
        file = vault.write(f"memories/day{days:02}.md", f"Some boats, day {days} back.")
        moment = (noon - timedelta(days)).timestamp()
        os.utime(file, (moment, moment))
    kb.sync()
    return kb


def last_week() -> list[str]:
    today = datetime.fromtimestamp(time.time()).weekday()
    return [f"memory:day{days:02}" for days in range(today + 1, today + 8)]


def test_a_question_that_is_only_a_date_lists_the_notes_of_that_time_newest_first(diary: KnowledgeBase, co: Co) -> None:
    asked = ("what did I do last week", "what did we talk about last week?", "What did we discuss last week?")
    for query in (*asked, "last week", "notes from last week?", "Last week's notes"):
        found = diary.search(query)
        assert [hit.ref for hit in found.hits] == last_week(), query
        assert found.state == "found"
        assert 'last week": 20' in found.understood[0].lower()
    assert co("search", "last week", "-n", "2").out.splitlines()[0].endswith(last_week()[0])
    assert "0.00" not in co("search", "last week").out, "a listing has no scores"


def test_days_to_come_are_listed_with_the_daily_note_first(diary: KnowledgeBase, vault: Vault, co: Co) -> None:
    today = datetime.fromtimestamp(time.time()).date()
    tomorrow, monday = today + timedelta(1), today + timedelta(7 - today.weekday())
    daily = {tomorrow, monday, monday + timedelta(9)}
    for day in daily:
        vault.write(f"articles/daily/{day}.md", "Call the harbour office.")
    vault.write("memories/later.md", f"---\ncreated: {tomorrow}T23:00:00\n---\nPaint the boat.")
    diary.sync()

    for query in ("tomorrow", "what do I have tomorrow?", "was ist morgen", "demain", "\u660e\u65e5"):
        assert refs(diary, query)[:2] == [f"article:daily/{tomorrow}", "memory:later"], query
    assert refs(diary, "next week")[-1] == f"article:daily/{monday}"
    assert f"daily/{monday + timedelta(9)}" in co("search", "in two weeks").out
    assert "memory:day00" in refs(diary, "boats tomorrow"), "a note about it may be older"


def test_a_date_next_to_other_words_narrows_the_search(diary: KnowledgeBase) -> None:
    found = diary.search("which boats did I see last week", limit=20)

    assert {hit.ref for hit in found.hits} == set(last_week())
    assert all(hit.signals for hit in found.hits), "ranked, not listed"


def test_a_date_of_which_there_is_nothing_does_not_hide_the_rest(diary: KnowledgeBase) -> None:
    found = diary.search("boats before 2001")

    assert found.hits
    assert found.understood[0].endswith("nothing was found, all notes were searched")
