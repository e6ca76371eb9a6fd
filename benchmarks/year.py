"""A made-up year of a person's notes with facts that change and expire: is the fact that holds found first?

Everything follows from a seed. The notes are files in a vault that is synced and searched like any other, and the year
ends now. They are asked twice: once where notes say what they supersede, and once where only their dates tell.
"""

from __future__ import annotations

import os
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from random import Random
from typing import Any, NamedTuple

from benchmarks.measuring import BenchRow
from benchmarks.vaults import Bar
from co_cli.entrance.knowledge_base import KnowledgeBase
from co_cli.ground.settings import Settings, load_settings
from co_cli.ground.values import moment_text
from co_cli.notes.editing import render_note
from co_cli.notes.refs import without_lines

DAY = 86_400.0
YEAR = 365
THINGS = """
dentist, gym, bank, landlord, barber, florist, bakery, garage, library, kindergarten, choir, allotment, vet, optician,
notary, tailor, plumber, cleaner, accountant, insurer, swimming club, yoga class, language school, driving school,
music teacher, book club, chess club, pottery class, sailing club, climbing hall, pharmacy, surgeon, physiotherapist,
midwife, translator, printer, carpenter, electrician, gardener, babysitter, locksmith, butcher, fishmonger, brewery,
observatory, theatre, museum, archive, ferry office, post office
"""
NAMES = """
Abel Bruno Carla Dana Edith Farid Greta Hugo Ines Jonas Karim Lena Mika Nora Olaf Petra Quentin Rosa Samir Tilda Ugo
Vera Wanda Xenia Yusuf Zoe
"""
STREETS = "Harbour Mill Castle Garden Station Church River Orchard Market Bridge Meadow Quarry Tower Chapel Forest"
WEEKDAYS = "Monday Tuesday Wednesday Thursday Friday Saturday Sunday"


class Kind(NamedTuple):
    """What can be known of a thing: two ways to put it down, and how somebody asks."""

    said: tuple[str, str]
    questions: tuple[str, ...]
    value: Callable[[Random], str]


def _pick(words: str) -> Callable[[Random], str]:
    return lambda random: random.choice(words.split())


def _number(first: int, last: int) -> Callable[[Random], str]:
    return lambda random: str(random.randint(first, last))


def _phone(random: Random) -> str:
    return f"0{random.randint(30, 99)} {random.randint(100_000, 999_999)}"


def _login(random: Random) -> str:
    return f"{random.choice(NAMES.split()).lower()}{random.randint(2, 99)}"


KINDS = (
    Kind(
        ("My {thing} has the name {value} & Co.", "I found a {thing} by the name of {value} & Co."),
        ("what is the name of my {thing}", "what is my {thing} called, by name"),
        _pick(NAMES),
    ),
    Kind(
        ("My day for the {thing} is {value}.", "{value} is the day on which I go to the {thing}."),
        ("on which day of the week do I have the {thing}", "what day is for the {thing}, Monday or Friday"),
        _pick(WEEKDAYS),
    ),
    Kind(
        ("The price of the {thing} is {value} euros a month.", "The {thing} wants a price of {value} euros a month."),
        ("what price do I pay for the {thing}", "how much money is the price of the {thing}"),
        _number(11, 240),
    ),
    Kind(
        ("The address of the {thing} is {value} Street.", "The {thing} has its address in {value} Street."),
        ("what is the address of the {thing}", "in which street is the {thing}"),
        _pick(STREETS),
    ),
    Kind(
        ("The phone number of the {thing} is {value}.", "You reach the {thing} by phone under {value}."),
        ("how do I phone the {thing}", "which phone number does the {thing} have"),
        _phone,
    ),
    Kind(
        ("I sign in at the {thing} as {value}@post.example.", "To sign in at the {thing} I am {value}@post.example."),
        ("how do I sign in at the {thing}", "with which e-mail do I sign in at the {thing}"),
        _login,
    ),
    Kind(
        ("{value} is the person to ask at the {thing}.", "At the {thing} I ask a person called {value}."),
        ("which person do I ask for at the {thing}", "who is the person to ask at the {thing}"),
        _pick(NAMES),
    ),
    Kind(
        ("The {thing} opens at {value} o'clock.", "In the morning the {thing} opens at {value}."),
        ("when does the {thing} open", "from what time on is the {thing} open"),
        _number(6, 14),
    ),
)


class Fact(NamedTuple):
    """One thing that is known, as one or two notes. Days are those of the year."""

    question: str
    slug: str
    first: str
    day: int
    later: str = ""
    """What took its place; empty: nothing did."""
    changed: int = YEAR
    ends: int | None = None
    """The day after which it does not hold."""


class Asked(NamedTuple):
    """A question at a day, and the note that must be first; None: the note that must not be there."""

    question: str
    day: int | None
    """None: now, without saying a date."""
    answer: str | None
    not_any_more: str = ""
    kind: str = ""


WAYS: dict[str, dict[str, Any]] = {"ignoring time": {"outdated": True}, "as it ships": {}}
"""Options of search; one that ignores time answers the same whatever day is asked about."""


def facts_of_a_year(seed: int = 7, facts: int = 400, changes: int = 80, ends: int = 40) -> list[Fact]:
    """Facts, the first of which change and the next of which expire; the others stay."""
    random = Random(seed)
    things = [thing.strip() for thing in THINGS.split(",")]
    subjects = [(thing, number) for thing in things for number in range(len(KINDS))]
    random.shuffle(subjects)
    found: list[Fact] = []
    for place, (thing, number) in enumerate(subjects[:facts]):
        kind = KINDS[number]
        slug = f"{thing.replace(' ', '-')}-{number}"
        value = kind.value(random)
        day = random.randint(0, 150 if place < changes + ends else 330)
        question = random.choice(kind.questions).format(thing=thing)
        first, second = random.sample(kind.said, 2)
        fact = Fact(question, slug, first.format(thing=thing, value=value), day)
        if place < changes:
            other = kind.value(random)
            while other == value:
                other = kind.value(random)
            later = second.format(thing=thing, value=other)
            fact = fact._replace(later=later, changed=day + random.randint(30, 200))
        elif place < changes + ends:
            fact = fact._replace(ends=day + random.randint(30, 180))
        found.append(fact)
    return found


def write_year(vault: str, facts: Sequence[Fact], end: float, linked: bool) -> None:
    """As files. `linked`: a note that takes the place of another one says so."""
    folder = os.path.join(vault, "memories")
    os.makedirs(folder, exist_ok=True)
    start = end - YEAR * DAY

    def write(slug: str, text: str, fields: dict[str, object]) -> None:
        with open(os.path.join(folder, f"{slug}.md"), "w", encoding="utf-8") as stream:
            stream.write(render_note(fields, text + "\n"))

    for fact in facts:
        fields: dict[str, object] = {"created": moment_text(start + fact.day * DAY)}
        if fact.ends is not None:
            fields["valid_until"] = moment_text(start + fact.ends * DAY)
        write(fact.slug, fact.first, fields)
        if fact.later:
            fields = {"created": moment_text(start + fact.changed * DAY)}
            if linked:
                fields["supersedes"] = f"memory:{fact.slug}"
            write(f"{fact.slug}-new", fact.later, fields)


def questions_of(facts: Sequence[Fact], seed: int = 7) -> list[Asked]:
    """What changed and what expired, and as many that stayed: now, and at days before and after."""
    random = Random(seed + 1)
    found: list[Asked] = []
    changed = [fact for fact in facts if fact.later]
    ended = [fact for fact in facts if fact.ends is not None]
    stayed = [fact for fact in facts if not fact.later and fact.ends is None][: len(changed)]
    for fact in changed:
        found.append(Asked(fact.question, None, f"{fact.slug}-new", kind="changed"))
        before = random.randint(fact.day + 1, fact.changed - 1)
        found.append(Asked(fact.question, before, fact.slug, kind="before it changed"))
        after = random.randint(fact.changed + 1, YEAR)
        found.append(Asked(fact.question, after, f"{fact.slug}-new", kind="after it changed"))
    for fact in ended:
        assert fact.ends is not None
        found.append(Asked(fact.question, None, None, fact.slug, "expired"))
        during = fact.day + 1 + random.randint(0, (fact.ends - fact.day) // 2)
        found.append(Asked(fact.question, during, fact.slug, kind="before it expired"))
    found += [Asked(fact.question, None, fact.slug, kind="stayed") for fact in stayed]
    return found


def bench_year(bar: Bar | None = None) -> list[BenchRow]:
    with tempfile.TemporaryDirectory(prefix="co-bench-") as work:
        settings = load_settings({"data_dir": os.path.join(work, "data")}, environ={"HOME": work}, start=work)
        return live_a_year(work, settings, time.time(), facts_of_a_year(), bar)


def live_a_year(
    work: str, settings: Settings, end: float, year: Sequence[Fact], bar: Bar | None = None
) -> list[BenchRow]:
    """How often the first hit is what holds: now, and on a day of the year."""
    asked = questions_of(year)
    rows: list[BenchRow] = []
    for linked in (True, False):
        vault = os.path.join(work, "linked" if linked else "silent")
        os.makedirs(vault)
        write_year(vault, year, end, linked)
        with KnowledgeBase.open(settings=replace(settings, vault=vault, data_dir=f"{vault}-data")) as kb:
            kb.sync()
            for way, options in WAYS.items():
                right: dict[bool, list[bool]] = {True: [], False: []}
                for number, question in enumerate(asked, 1):
                    right[question.day is None].append(_is_right(kb, options, question, end))
                    if bar:
                        bar(number, len(asked))
                name = f"{way}, {'with' if linked else 'without'} `supersedes`"
                for now, when in ((True, "today"), (False, "on a day of the year")):
                    rows.append(BenchRow(f"{name}: right {when}", sum(right[now]) / len(right[now]), "of 1"))
    return rows


def _is_right(kb: KnowledgeBase, options: dict[str, Any], asked: Asked, end: float) -> bool:
    as_of = None if asked.day is None or options else end - (YEAR - asked.day) * DAY
    refs = [without_lines(hit.ref) for hit in kb.search(asked.question, as_of=as_of, **options).hits]
    if asked.answer is None:
        return f"memory:{asked.not_any_more}" not in refs
    return refs[:1] == [f"memory:{asked.answer}"]
