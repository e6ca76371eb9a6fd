"""A vault of generated notes, the same for the same seed: sentences of real words, as rare as words are.

The words are those of the embedded model's vocabulary, which is ordered by frequency, drawn by the law of Zipf and
Mandelbrot; the commonest content word stands in a few notes of a hundred and most in a few of ten thousand. A long tail
of made-up names lets the vocabulary grow with the corpus, as it does in a real vault.
"""

from __future__ import annotations

import os
import random
import time
from bisect import bisect
from collections.abc import Iterator
from itertools import accumulate

from co_cli.embedding.static import StaticModel
from co_cli.index.tokens import is_stop_word

PEOPLE = "Ada Bruno Chidi Dilek Elif Farid Greta Hana Ivo Jun Kaja Lena Mateo Nadia Oskar Priya".split()
REASONS = (
    "because the old one was never tested;after ten quiet minutes;unless somebody asks first;when the queue is empty;"
    "before the weekly review;since the last incident;so that nobody is woken at night;until the contract ends;"
    "as agreed with the customer;while the backup runs;although it costs more;if the sensor is cold"
).split(";")
CATEGORIES = ("fact", "decision", "preference", "procedure", "correction")
FOLDERS = (*("memories",) * 8, "articles/guides", "inbox")
"""A memory is what most notes are."""
SYLLABLES = "ka lo mi ra ten vor sul pan dre bi qua nel tos ari fen gul hex jor wyn zet".split()
TAIL = 20_000
FLATTENED = 50
"""Mandelbrot's constant: the first words are not as much more frequent than the next as Zipf alone would have it."""
EPOCH = 1_700_000_000


def real_words() -> list[str]:
    """The content words of the embedded model's vocabulary, the frequent ones first."""
    tokens = StaticModel().tokens()
    return [token for token in tokens if len(token) > 3 and token.isalpha() and not is_stop_word(token)]


class Writer:
    """Sentences out of one seed."""

    def __init__(self, seed: int) -> None:
        self._random = random.Random(seed)
        self._words = [*real_words(), *(_name(number) for number in range(TAIL))]
        self._weights = list(accumulate(1 / (rank + FLATTENED) for rank in range(len(self._words))))

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
            f"tags: [{', '.join(dict.fromkeys(self._word() for _ in range(choose.randrange(1, 4))))}]",
            f"category: {choose.choice(CATEGORIES)}",
            f"importance: {choose.randrange(1, 10) / 10}",
            "---",
        ]
        article = not folder.startswith("memories")
        body = self._article() if article else self._sentences(choose.randrange(1, 5))
        slug = "-".join(title.lower().split())
        return f"{folder}/{slug}-{number}.md", "\n".join(head) + f"\n{body}\n"

    def sentence(self) -> str:
        one, two, three, four, five = (self._word() for _ in range(5))
        person, reason = self._random.choice(PEOPLE), self._random.choice(REASONS)
        shape = self._random.randrange(5)
        if shape == 0:
            return f"{person} says the {one} {two} of {three} will {four} the {five}."
        if shape == 1:
            return f"The {one} {two} goes to {three} {reason}."
        if shape == 2:
            return f"Ask {person} about {one}: a {two} {three} never has {four} or {five}."
        if shape == 3:
            minutes = self._random.randrange(2, 90)
            return f"{one.capitalize()} is the {two} {three}; its {four} takes {minutes} minutes of {five}."
        return f"We keep the {one} {two} and {three}, {reason}; {four} comes with {five}."

    def _title(self) -> str:
        return f"The {self._word()} {self._word()} of the {self._word()}"

    def _article(self) -> str:
        sections = [self._sentences(3)]
        for _ in range(self._random.randrange(1, 5)):
            heading = f"## {self._word().capitalize()} {self._word()}"
            sections.append(f"{heading}\n\n{self._sentences(self._random.randrange(3, 9))}")
        return "\n\n".join(sections)

    def _sentences(self, count: int) -> str:
        return " ".join(self.sentence() for _ in range(count))

    def _word(self) -> str:
        return self._words[bisect(self._weights, self._random.random() * self._weights[-1], 0, len(self._words) - 1)]


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
