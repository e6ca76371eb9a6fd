"""A vault of generated notes, the same for the same seed: sentences that read like notes, words as rare as words are.

Half of the words come from a small list, the rest from a long tail of made-up names (services, people, tickets), so
that the vocabulary grows with the corpus as it does in a real vault.
"""

from __future__ import annotations

import os
import random
import time
from bisect import bisect
from collections.abc import Iterator, Sequence
from itertools import accumulate

PEOPLE = "Ada Bruno Chidi Dilek Elif Farid Greta Hana Ivo Jun Kaja Lena Mateo Nadia Oskar Priya".split()
SYSTEMS = (
    "gateway scheduler ledger mailer indexer importer billing search checkout archive dashboard exporter"
    " queue cache proxy worker router registry planner notifier uploader crawler"
).split()
THINGS = (
    "deploy release rollback migration invoice report backup alert token password contract meeting budget roadmap"
    " incident outage review branch test feature bug customer refund shipment sensor battery firmware label translation"
    " interview onboarding holiday office printer train garden recipe museum harbour tide clock letter map"
).split()
VERBS = (
    "needs fails waits starts stops breaks doubles shrinks moves changes blocks follows replaces delays confirms"
    " improves requires ignores remembers repeats"
).split()
QUALITIES = (
    "slow quiet broken early late cheap careful nightly weekly manual shared public secret final stale empty large"
    " small brittle steady warm cold second first blue green"
).split()
REASONS = (
    "because the old one was never tested;after ten quiet minutes;unless somebody asks first;when the queue is empty;"
    "before the weekly review;since the last incident;so that nobody is woken at night;until the contract ends;"
    "as agreed with the customer;while the backup runs;although it costs more;if the sensor is cold"
).split(";")
CATEGORIES = ("fact", "decision", "preference", "procedure", "correction")
FOLDERS = ("memories", "memories", "memories", "articles/guides", "articles/incidents", "articles/people", "inbox")
SYLLABLES = "ka lo mi ra ten vor sul pan dre bi qua nel tos ari fen gul hex jor wyn zet".split()
TAIL = 20_000
EPOCH = 1_700_000_000


class Writer:
    """Sentences out of one seed."""

    def __init__(self, seed: int) -> None:
        self._random = random.Random(seed)
        self._names = [_name(number) for number in range(TAIL)]
        self._weights = list(accumulate(1 / rank for rank in range(1, TAIL + 1)))

    def note(self, number: int) -> tuple[str, str]:
        """The path and the text of one note."""
        choose = self._random
        folder = choose.choice(FOLDERS)
        if number >= 2_000 and folder != "inbox":
            folder = f"{folder}/{number // 2_000}"
        title = self._title()
        head = [
            "---",
            f"title: {title}",
            f"created: {time.strftime('%Y-%m-%dT%H:%M:%SZ', time.gmtime(EPOCH - choose.randrange(40_000_000)))}",
            f"tags: [{', '.join(dict.fromkeys(self._zipf(THINGS) for _ in range(choose.randrange(1, 4))))}]",
            f"category: {choose.choice(CATEGORIES)}",
            f"importance: {choose.randrange(1, 10) / 10}",
            "---",
        ]
        article = not folder.startswith("memories")
        body = self._article() if article else self._sentences(choose.randrange(1, 5))
        slug = "-".join(title.lower().split())
        return f"{folder}/{slug}-{number}.md", "\n".join(head) + f"\n{body}\n"

    def sentence(self) -> str:
        thing, system, verb, quality = (self._zipf(words) for words in (THINGS, SYSTEMS, VERBS, QUALITIES))
        name, person = self._zipf(self._names), self._zipf(PEOPLE)
        shape = self._random.randrange(5)
        if shape == 0:
            return f"{person} says the {quality} {thing} of {name} {verb} {self._random.choice(REASONS)}."
        if shape == 1:
            return f"The {system} {verb} the {thing} {self._random.choice(REASONS)}."
        if shape == 2:
            return f"Ask {person} about {name}: a {quality} {thing} never {verb} twice."
        if shape == 3:
            minutes = self._random.randrange(2, 90)
            return f"{name.capitalize()} is the {quality} {system}; its {thing} {verb} in {minutes} minutes."
        return f"We keep the {thing} {quality} {self._random.choice(REASONS)}, and {name} {verb}."

    def _title(self) -> str:
        thing, system, quality = (self._zipf(words) for words in (THINGS, SYSTEMS, QUALITIES))
        return f"The {quality} {thing} of the {system}"

    def _article(self) -> str:
        sections = [self._sentences(3)]
        for _ in range(self._random.randrange(1, 5)):
            heading = f"## {self._zipf(QUALITIES).capitalize()} {self._zipf(THINGS)}"
            sections.append(f"{heading}\n\n{self._sentences(self._random.randrange(3, 9))}")
        return "\n\n".join(sections)

    def _sentences(self, count: int) -> str:
        return " ".join(self.sentence() for _ in range(count))

    def _zipf(self, words: Sequence[str]) -> str:
        """The first word twice as often as the second, three times as often as the third, and so on."""
        place = bisect(self._weights, self._random.random() * self._weights[len(words) - 1], 0, len(words) - 1)
        return words[place]


def generate(notes: int, seed: int = 7) -> Iterator[tuple[str, str]]:
    """Paths inside the vault and texts."""
    writer = Writer(seed)
    return (writer.note(number) for number in range(notes))


def write_corpus(root: str, notes: int, seed: int = 7) -> list[str]:
    """Write the notes as files that nobody has touched for a while. Returns their full paths."""
    paths: list[str] = []
    for path, text in generate(notes, seed):
        full = os.path.join(root, *path.split("/"))
        os.makedirs(os.path.dirname(full), exist_ok=True)
        with open(full, "w", encoding="utf-8", newline="\n") as stream:
            stream.write(text)
        os.utime(full, (EPOCH, EPOCH))
        paths.append(full)
    return paths


def _name(number: int) -> str:
    """A made-up name: two to four syllables."""
    name = ""
    while number or len(name) < 4:
        number, place = divmod(number, len(SYLLABLES))
        name += SYLLABLES[place]
    return name
