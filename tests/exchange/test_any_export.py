"""Any JSON value, and nearly right ones above all, gives notes or a trouble that is named; never a traceback."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from co_cli.exchange.importing import import_export
from co_cli.knowledge_base import KnowledgeBase
from tests.command import Co

KEYS = """
mapping current_node title name create_time update_time id uuid conversation_id message author role content content_type
parts text metadata recipient parent children u1 a1 chat_messages sender created_at updated_at attachments file_name
extracted_content parent_message_uuid conversations_memory project_memories memory_files docs prompt_template filename
results memories memory categories category tags state expiration_date type thinking path body frontmatter file
file_base64 ref conversations is_do_not_remember account_uuid
""".split()
WORDS = [*"user assistant human system tool u1 a1 text multimodal_text all active deleted provenance".split()]
WORDS += [
    "2026-01-01",
    "**Work**\n\nx",
    "memories/a.md",
    "\ud83d",
    "# h\n```",
    "---\nloading: always\n---\n",
    "a\0b",
    "",
]

TEXT = st.sampled_from(WORDS) | st.text(max_size=8)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | TEXT,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(KEYS) | TEXT, inner, max_size=5),
    max_leaves=25,
)
CONVERSATIONS = st.fixed_dictionaries(
    {
        "mapping": st.dictionaries(
            st.sampled_from(["u1", "a1", "b"]),
            st.fixed_dictionaries(
                {
                    "parent": st.sampled_from(["u1", "a1", None]) | JSON,
                    "message": st.fixed_dictionaries(
                        {
                            "author": st.fixed_dictionaries({"role": st.sampled_from(["user", "assistant"]) | JSON}),
                            "content": st.fixed_dictionaries(
                                {"content_type": st.just("text") | JSON, "parts": st.lists(TEXT, max_size=3) | JSON}
                            ),
                        }
                    )
                    | JSON,
                }
            )
            | JSON,
        ),
        "current_node": st.sampled_from(["u1", "a1"]) | JSON,
        "title": TEXT | JSON,
    },
    optional={"id": TEXT, "create_time": JSON},
)
TALKS = st.fixed_dictionaries(
    {
        "chat_messages": st.lists(
            st.fixed_dictionaries(
                {"sender": st.sampled_from(["human", "assistant"]) | JSON, "text": TEXT | JSON},
                optional={"content": JSON, "uuid": TEXT, "parent_message_uuid": TEXT, "attachments": JSON},
            )
            | JSON,
            max_size=4,
        )
        | JSON
    },
    optional={"uuid": TEXT, "name": TEXT | JSON},
)
MEMORIES = st.fixed_dictionaries(
    {"memory": TEXT | JSON}, optional={"id": TEXT, "metadata": JSON, "categories": JSON, "created_at": JSON}
)
OWN = st.fixed_dictionaries(
    {"path": st.sampled_from(["memories/a.md", "articles/b/c.md"]) | TEXT, "body": TEXT | JSON},
    optional={"frontmatter": st.dictionaries(TEXT, JSON, max_size=3) | JSON, "file": TEXT, "file_base64": TEXT},
)
EXPORTS = {
    "chatgpt": ("conversations.json", CONVERSATIONS),
    "claude": ("conversations.json", TALKS),
    "mem0": ("memories.json", MEMORIES),
    "co": ("notes.json", OWN),
}


@pytest.mark.parametrize("origin", EXPORTS)
@settings(max_examples=15, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
@given(data=st.data())
def test_any_value_is_imported_or_told(origin: str, data: st.DataObject, kb: KnowledgeBase, tmp_path: Path) -> None:
    name, alike = EXPORTS[origin]
    value: Any = data.draw(st.lists(alike | JSON, max_size=3) | alike | JSON)
    path = tmp_path / name
    path.write_text(json.dumps(value), "utf-8")

    first = import_export(kb, origin, [str(path)], write=True)
    again = import_export(kb, origin, [str(path)], write=True)

    assert [receipt for receipt in again.receipts if receipt.outcome in ("created", "updated")] == []
    assert all(trouble.place and trouble.problem for trouble in first.troubles)
    for receipt in first.receipts:
        if receipt.outcome in ("created", "updated") and receipt.path:
            note = kb.note(receipt.path)
            assert note.problem is None or origin == "co"
            assert note.provenance in ("import", "web", "agent")
            assert "loading" not in note.metadata


@pytest.mark.parametrize("origin", EXPORTS)
@settings(max_examples=5, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
@given(value=JSON)
def test_the_command_never_ends_with_a_traceback(origin: str, value: Any, co: Co, tmp_path: Path) -> None:
    path = tmp_path / EXPORTS[origin][0]
    path.write_text(json.dumps(value), "utf-8")

    ran = co("import", origin, str(path), "--yes")

    assert ran.code in (0, 1, 2)
    assert all(line.startswith("co: ") for line in ran.err.splitlines())
