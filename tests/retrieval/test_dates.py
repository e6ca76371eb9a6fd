"""Dates in a query: which time is meant, what narrows, and what is only content."""

from __future__ import annotations

import time
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from co_cli.knowledge_base import KnowledgeBase
from co_cli.retrieval.dates import Dates, Since, date_in, dates_of, fits, nearer_in_time, placed, read_dates, told
from co_cli.retrieval.fuse import Scored
from co_cli.retrieval.question import may_name_a_date
from co_cli.tools import Toolbox
from tests.command import Co
from tests.vault import Vault

NOW = datetime(2026, 11, 15, 10, 30, tzinfo=UTC).timestamp()  # a Sunday


def understood(query: str) -> str | None:
    read = read_dates(query, NOW)
    if read is None or isinstance(read, Since):
        return None
    assert may_name_a_date(query)
    return f"{told(read).partition(': ')[2]}{'' if read.narrows else ' perhaps'}"


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("what did we decide yesterday", "2026-11-14"),
        ("what did we decide last week", "2026-11-02 to 2026-11-08"),
        ("notes from last month about pricing", "2026-10-01 to 2026-10-31"),
        ("last weekend", "2026-11-07 to 2026-11-08"),
        ("what happened last Friday?", "2026-11-13"),
        ("what changed in the last 3 days", "2026-11-12 to 2026-11-15"),
        ("decisions of the past two weeks", "2026-11-01 to 2026-11-15"),
        ("what did I note 2 days ago", "2026-11-13"),
        ("what did I note a week ago", "2026-11-02 to 2026-11-08"),
        ("everything since yesterday", "since 2026-11-14"),
        ("who joined since 2026-03-01", "since 2026-03-01"),
        ("who joined after May 2025", "since 2025-06-01"),
        ("what did we know before March", "before 2026-03-01"),
        ("deploys until 3 May 2025", "before 2025-05-04"),
        ("what did we learn in May", "2026-05-01 to 2026-05-31 perhaps"),
        ("what did we learn in December", "2025-12-01 to 2025-12-31 perhaps"),
        ("what did we learn in may 2025", "2025-05-01 to 2025-05-31 perhaps"),
        ("the May report", "2026-05-01 to 2026-05-31 perhaps"),
        ("what did Mara paint on October 13, 2023?", "2023-10-13 perhaps"),
        ("what was planned for 3rd of June 2024", "2024-06-03 perhaps"),
        ("this year", "2026-01-01 to 2026-12-31 perhaps"),
        ("last year", "2025-01-01 to 2025-12-31 perhaps"),
        ("I cannot train today", "2026-11-15 perhaps"),
        ("who beat them in 2015", "2015-01-01 to 2015-12-31 perhaps"),
        ("get last month number", "2026-10-01 to 2026-10-31 perhaps"),
        ("the week before August 3, 2023", "2023-07-20 to 2023-08-16 perhaps"),
        ("the last week of August 2023", "2023-08-01 to 2023-08-31 perhaps"),
    ],
)
def test_a_date_is_understood(query: str, expected: str) -> None:
    assert understood(query) == expected


@pytest.mark.parametrize(
    "query",
    [
        "may I deploy", "May I deploy", "march on", "what did we say last time", "the last mile", "next week",
        "on Monday we ship", "room 2015", "HTTP 2019 error", "May and June and July", "", "how do we deploy",
    ],
)  # fmt: skip
def test_what_is_no_date_is_content(query: str) -> None:
    assert understood(query) is None


def test_a_long_story_is_never_narrowed() -> None:
    story = "yesterday " + "and then we walked on and on " * 5

    assert understood(story) == "2026-11-14 perhaps"


@given(text=st.text(max_size=60), now=st.floats(0, 4e9))
def test_nothing_that_is_typed_fails(text: str, now: float) -> None:
    for query in (text, f"since {text}", f"{text} ago", f"in {text} 2020", f"{text} February 29"):
        read = read_dates(query, now)
        if isinstance(read, Dates):
            assert read.since is None or read.until is None or read.since < read.until
            assert told(placed(read, [now]))


def test_since_something_asks_for_a_note_that_is_called_so() -> None:
    read = read_dates("what broke since the big release?", NOW)

    assert isinstance(read, Since)
    assert (read.how, read.name) == ("since", "the big release")
    assert told(dates_of(read, NOW)) == '"since the big release": since 2026-11-15'
    assert told(dates_of(read._replace(how="before"), NOW)).endswith("before 2026-11-15")


def test_a_month_without_a_year_is_the_last_one_that_anything_is_of() -> None:
    read = read_dates("what did we learn in May", NOW)
    assert isinstance(read, Dates)
    moment = datetime(2023, 5, 9, tzinfo=UTC).timestamp()

    assert told(placed(read, [moment])).endswith("2023-05-01 to 2023-05-31")
    assert placed(read, []) == read
    assert fits(placed(read, [moment]), moment) == 1


def test_what_happened_is_often_written_down_a_little_later_and_never_before() -> None:
    dates = Dates("", NOW, NOW + 86_400, False)

    assert fits(dates, NOW) == 1
    assert 0 < fits(dates, NOW + 10 * 86_400) < 1
    assert fits(dates, NOW + 90 * 86_400) == fits(dates, NOW - 1) == 0


def test_notes_of_that_time_gain_and_parts_add_up() -> None:
    ranked = [Scored(number, number, score, {"words": score}) for number, score in enumerate((0.5, 0.49, 0.48))]
    dates = Dates("", NOW, NOW + 86_400, False)

    after = nearer_in_time(ranked, dates, {0: 1.0, 1: NOW + 5})

    assert [one.passage_id for one in after] == [1, 2, 0]
    assert all(sum(one.signals.values()) == pytest.approx(one.score) for one in after)
    assert nearer_in_time(ranked, dates, {0: 1.0}) == ranked


@pytest.mark.parametrize(
    ("title", "day"),
    [("2026-05-03", "2026-05-03"), ("Sync, 3 May 2026", "2026-05-03"), ("In May", None), ("Notes", None)],
)
def test_a_title_may_name_its_day(title: str, day: str | None) -> None:
    moment = date_in(title)

    assert (moment and datetime.fromtimestamp(moment, UTC).strftime("%Y-%m-%d")) == day


def ago(days: float) -> str:
    return (datetime.fromtimestamp(time.time(), UTC) - timedelta(days)).strftime("%Y-%m-%d")


@pytest.fixture
def meetings(kb: KnowledgeBase, vault: Vault) -> KnowledgeBase:
    for name, created in (("fresh", ago(1)), ("older", ago(40)), ("oldest", ago(700))):
        text = f"---\ntitle: Pricing {name}\ncreated: {created}\n---\nWe decided on a price for the boat.\n"
        vault.write(f"memories/{name}.md", text)
    vault.write("memories/launch.md", f"---\ntitle: Launch\ncreated: {ago(90)}\n---\nThe boat went to sea.\n")
    kb.sync()
    return kb


def refs(kb: KnowledgeBase, query: str) -> list[str]:
    return [hit.ref.removeprefix("memory:") for hit in kb.search(query).hits]


def test_yesterday_narrows_to_yesterday(meetings: KnowledgeBase) -> None:
    found = meetings.search("what did we decide on the price yesterday")

    assert [hit.ref for hit in found.hits] == ["memory:fresh"]
    assert found.state == "found"
    assert found.understood == (f'"yesterday": {ago(1)}, and only that was searched',)


def test_who_asks_for_nothing_but_a_time_finds_what_is_of_it(meetings: KnowledgeBase) -> None:
    assert refs(meetings, "what happened yesterday") == ["fresh"]


def test_before_a_date_narrows_too(meetings: KnowledgeBase) -> None:
    assert refs(meetings, f"which price did we decide on before {ago(300)}") == ["oldest"]


def test_since_a_note_of_that_name(meetings: KnowledgeBase) -> None:
    assert set(refs(meetings, "which price did we decide on since the launch")) >= {"fresh", "older"}
    assert "oldest" not in refs(meetings, "which price did we decide on since the launch")
    assert "oldest" in refs(meetings, "which price did we decide on since the flood")


def test_a_time_of_which_there_is_nothing_is_dropped_and_that_is_said(meetings: KnowledgeBase) -> None:
    found = meetings.search("which price did we decide on 3 days ago")

    assert len(found.hits) >= 3
    assert found.state == "found"
    assert found.degraded == []
    assert "no note is of that time" in found.understood[0]


def test_filters_that_are_given_win(meetings: KnowledgeBase) -> None:
    found = meetings.search("the price yesterday", since="2000-01-01")

    assert found.understood == ()
    assert len(found.hits) >= 3


def test_a_named_month_is_a_reason_and_no_filter(meetings: KnowledgeBase) -> None:
    month = datetime.strptime(ago(700), "%Y-%m-%d").strftime("%B %Y")
    found = meetings.search(f"which price did we decide on in {month}")

    assert {hit.ref for hit in found.hits} >= {"memory:oldest", "memory:older"}
    assert found.hits[0].ref == "memory:oldest"
    assert found.hits[0].signals["date"] == pytest.approx(0.05)
    assert all(sum(hit.signals.values()) == pytest.approx(hit.score, abs=0.001) for hit in found.hits)


def test_the_command_says_which_dates_it_understood(co: Co, meetings: KnowledgeBase) -> None:
    ran = co("search", "what did we decide on the price yesterday", "--explain")

    assert f'understood "yesterday": {ago(1)}' in ran.out
    why = co("why", "what did we decide on the price yesterday", "memory:older")
    assert why.code == 1
    assert "filters" in why.out


def test_an_agent_is_told_that_only_some_days_were_searched(meetings: KnowledgeBase) -> None:
    told_to_it = Toolbox(meetings).call("recall_memory", {"query": "what did we decide on the price yesterday"}).text

    assert told_to_it.startswith("found: 1 of 4 notes searched")
    assert f'understood "yesterday": {ago(1)}, and only that was searched' in told_to_it
