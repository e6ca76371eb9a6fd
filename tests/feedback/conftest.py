"""A small vault with somebody who rated forty answers in it."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

import pytest

from co_cli.activity.feedback import Ranked, put_judgement
from co_cli.knowledge_base import KnowledgeBase
from tests.vault import Vault

Tell = Callable[..., None]


@pytest.fixture
def trees(vault: Vault) -> Vault:
    vault.write("memories/oak.md", "Oaks live for a very long time.")
    vault.write("memories/elm.md", "Elms fall ill when beetles come.")
    return vault


@pytest.fixture
def tell(trees: Vault, data_dir: Path) -> Tell:
    """Judgements as a door would write them, with candidates as a search might have ranked them.

    Each time elm is good and stands second: it is nearer in meaning, and oak has more of the words. With `torn`, every
    other time oak is the good one.
    """

    def tell(count: int = 40, torn: bool = False, start: int = 0) -> None:
        shown = [
            ("memory:oak", {"words": 0.75 * 0.3, "meaning": 0.25 * 0.7}),
            ("memory:elm", {"words": 0.25 * 0.3, "meaning": 0.40 * 0.7}),
        ]
        with KnowledgeBase.open(trees.root, data_dir) as kb:
            assert kb.embedders.space is not None
            ranked = Ranked(kb.embedders.space.key, 0.7, 0.3, shown)
            with kb.activity.database.writing() as connection:
                for number in range(start, start + count):
                    name = "oak" if torn and number % 2 else "elm"
                    place, text = (kb.root, f"memories/{name}.md"), f"question {number}"
                    told = f"memory:{name}", True, "said", time.time(), text, text, ranked
                    put_judgement(connection, kb.root, place, *told)

    return tell
