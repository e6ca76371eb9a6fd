"""Working memory: a note that is in every prompt, with a size limit, which the model edits in place."""

from __future__ import annotations

import pytest

from co_cli.entrance.knowledge_base import KnowledgeBase
from co_cli.ground.errors import KnowledgeError
from co_cli.tools import Toolbox
from tests.chat_server import ChatServer, calls, text
from tests.command import Co
from tests.folder import Vault

BLOCK = (
    "---\ntitle: Current task\nloading: always\nlimit: 60\nowner: mara\n---\n- Paint the bridge.\n- Order the steel.\n"
)


@pytest.fixture
def block(vault: Vault) -> Vault:
    vault.write("memories/task.md", BLOCK)
    return vault


@pytest.mark.medium
def test_a_model_edits_a_block_which_the_next_prompt_has(co: Co, server: ChatServer, block: Vault) -> None:
    edit = {"ref": "memory:task", "old": "Order the steel.", "new": "Steel: 3 May."}
    server.play(calls(("update_memory", edit)), text("Noted."), text("Steel comes on 3 May."))

    first = co("chat", "The steel comes on 3 May.", "--json").json
    co("chat", "--no-history", "What is next?")

    assert first["saved"] == ["memory:task"]
    assert block.read("memories/task.md").endswith("\n- Paint the bridge.\n- Steel: 3 May.\n")
    assert "loading: always\nlimit: 60\nowner: mara\n" in block.read("memories/task.md")
    assert 'why="always" size="38 of 60 characters"' in server.said("user", 0)
    assert "- Steel: 3 May." in server.said("user", 2)


REFUSED = {
    "old does not occur: read it first": {"old": "Buy paint", "new": "Sell paint"},
    "occurs 2 times: give more of the text around it": {"old": "the", "new": "a"},
    "84 characters, and its limit is 60; nothing was changed": {
        "old": "bridge.",
        "new": "bridge, and then " + "row " * 9,
    },
    "61 characters, and its limit is 60; nothing was changed": {"content": "x" * 61},
    "give one of content, append, or old and new": {"old": "steel", "new": "iron", "content": "Iron."},
    "was changed meanwhile": {"old": "steel", "new": "iron", "version": "000000000000"},
}


@pytest.mark.parametrize("problem", REFUSED)
def test_an_edit_that_does_not_fit_changes_nothing_and_says_why(kb: KnowledgeBase, block: Vault, problem: str) -> None:
    with pytest.raises(KnowledgeError, match=problem) as error:
        Toolbox(kb).call("update_memory", {"ref": "memory:task", **REFUSED[problem]})

    assert "\n" not in str(error.value)
    assert block.read("memories/task.md") == BLOCK


def test_empty_new_text_removes_the_old_one(kb: KnowledgeBase, block: Vault) -> None:
    receipt = Toolbox(kb).call("update_memory", {"ref": "memory:task", "old": "- Paint the bridge.\n", "new": ""})

    assert receipt.data["outcome"] == "updated"
    assert block.read("memories/task.md").endswith("---\n- Order the steel.\n")
