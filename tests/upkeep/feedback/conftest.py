"""A vault in which one note has all the words, and others have the meaning; and somebody who prefers the others."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

import pytest

from co_cli.activity import judgements
from co_cli.activity.judgements import Judgement
from co_cli.entrance.knowledge_base import KnowledgeBase
from tests.folder import Vault

PAIRS = """
tea coffee, cat kitten, bird sparrow, sea ocean, road street, city town, job career, war battle, film movie,
song melody, wine beer, gold silver, moon planet, hill mountain, cow cattle, pen pencil, door window, coat
jacket, plane aircraft, sick ill, tree forest, kettle teapot, train railway, bread bakery, server computer,
piano music, honey bees, river water, doctor hospital, car engine, dog puppy, money bank, garden flowers,
school teacher, ship boat, rain weather, shoe boots, king queen, fish salmon, house building
"""
QUESTIONS = [pair.split() for pair in PAIRS.split(",")]
"""A word to search for, and the note that means it."""
Judge = Callable[..., None]


@pytest.fixture
def words(vault: Vault) -> Vault:
    listed = ", ".join(word for word, _ in QUESTIONS)
    vault.write("memories/list.md", f"Shopping words: {listed}. What is the best one?")
    for _, note in QUESTIONS:
        vault.write(f"memories/{note}.md", f"{note.capitalize()}.")
    return vault


@pytest.fixture
def judge_answers(words: Vault, data_dir: Path) -> Judge:
    """Judge the notes with the meaning good, which the default weights rank second."""

    def judge(count: int = len(QUESTIONS)) -> None:
        with KnowledgeBase.open(words.root, data_dir) as kb, kb.activity.database.writing() as connection:
            for word, note in QUESTIONS[:count]:
                judgement = Judgement(f"memory:{note}", word, True)
                judgements.put(connection, kb.root, (kb.root, f"memories/{note}.md"), judgement, time.time())

    return judge
