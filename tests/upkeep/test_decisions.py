"""What is decided about a finding can be taken back, and leaves the notes as they were."""

from __future__ import annotations

import time
from concurrent.futures import ThreadPoolExecutor

import pytest

from co_cli.entrance.knowledge_base import KnowledgeBase
from co_cli.ground.errors import InvalidInputError
from co_cli.upkeep.decisions import Action, decide, undo
from co_cli.upkeep.review import Dismissals, review
from co_cli.upkeep.review_checks import ReviewItem
from tests.folder import Vault

OLD = "---\ncreated: 2024-03-01\n---\nThe door code is 1111.\n"
NEW = "---\ncreated: 2025-01-01 # after the break-in\nupdated: 2025-01-02\n---\nThe door code is 2222.\n"
ACTIONS: tuple[Action, ...] = ("forget", "supersede", "keep")


@pytest.fixture(autouse=True)
def two_codes(vault: Vault) -> None:
    vault.write("memories/old.md", OLD)
    vault.write("memories/new.md", NEW)


def findings(kb: KnowledgeBase) -> list[ReviewItem]:
    kb.sync()
    return review(kb.vault, time.time(), len).items


@pytest.mark.parametrize("action", ACTIONS)
def test_undo_brings_back_the_finding_and_every_byte_of_its_notes(
    kb: KnowledgeBase, vault: Vault, action: Action
) -> None:
    [finding] = findings(kb)

    decision = decide(kb.vault, finding, action, time.time())
    assert findings(kb) == []
    undo(kb.vault, decision)

    assert findings(kb) == [finding]
    assert {path: vault.read(path) for path in vault.notes()} == {"memories/old.md": OLD, "memories/new.md": NEW}


def test_undo_of_a_supersession_keeps_what_was_written_since(kb: KnowledgeBase, vault: Vault) -> None:
    [finding] = findings(kb)
    decision = decide(kb.vault, finding, "supersede", time.time())
    kb.update("memory:new", "The door code is 3333.")

    undo(kb.vault, decision)

    assert kb.note("memory:new").body.strip() == "The door code is 3333."
    assert kb.note("memory:new").supersedes == ()


def test_a_finding_is_only_decided_in_a_way_that_it_offers(kb: KnowledgeBase, vault: Vault) -> None:
    vault.write("memories/old.md", "See [[nowhere]].\n")
    [finding] = findings(kb)

    with pytest.raises(InvalidInputError, match="supersede is not possible"):
        decide(kb.vault, finding, "supersede", time.time())


def test_findings_that_are_kept_at_the_same_time_are_all_remembered(kb: KnowledgeBase) -> None:
    def keep(key: str) -> None:
        Dismissals(kb.settings.data_dir, kb.root).add(1.0, key)

    keys = {f"key-{number}" for number in range(20)}
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(keep, keys))

    assert Dismissals(kb.settings.data_dir, kb.root).keys() == keys
