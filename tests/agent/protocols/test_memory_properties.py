"""Whatever is written, replaced and inserted, a file says what a plain model of it says."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from co_cli.agent.anthropic_memory import MemoryToolProtocol
from co_cli.entrance.knowledge_base import KnowledgeBase
from co_cli.notes.frontmatter import read_frontmatter

TEXT = st.text(
    st.one_of(st.sampled_from("ab-# \n"), st.characters(codec="utf-8", exclude_characters="\r\0")), max_size=40
)
"""What models write: few distinct letters, so that texts repeat; line ends; now and then anything at all."""
NAMES = st.sampled_from(["a.txt", "b.md", "c", "d/e.xml", "d/f.md", "g/h/i"])
KEYS = "path old_path new_path file_text old_str new_str insert_line insert_text view_range".split()
ANYTHING = st.one_of(
    st.none(), st.integers(), st.text(), st.lists(st.integers(), max_size=3), st.just("/memories/x/y.txt")
)


def has_own_frontmatter(text: str) -> bool:
    """Then the file says one line more than was written: who wrote it."""
    front = read_frontmatter(text)
    return front.body > front.start and not front.problem


def inserted(text: str, line: int, block: str) -> str | None:
    """The protocol's insert, by lines: after so many of them, or nothing happens."""
    lines = text.split("\n")
    ended = lines[-1] == ""
    if ended:
        lines.pop()
    if line > len(lines):
        return None
    new = block.removesuffix("\n").split("\n")
    at_the_end = line == len(lines)
    return "\n".join([*lines[:line], *new, *lines[line:]]) + ("\n" if ended or at_the_end else "")


def seen(memory: MemoryToolProtocol, path: str) -> str:
    return memory.files.read(memory.files.locate(path.split("/")[2:])[0])[0]


@settings(max_examples=40, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    command=st.fixed_dictionaries(
        {"command": st.sampled_from(["view", "create", "str_replace", "insert", "delete", "rename", "?"])},
        optional=dict.fromkeys(KEYS, ANYTHING),
    )
)
def test_whatever_is_sent_is_answered_with_text(command: dict[str, Any], memory: MemoryToolProtocol) -> None:
    answer = memory.answer(command).text

    assert answer
    answer.encode()


class Files(RuleBasedStateMachine):
    """A few files, each command on any of them, against a dictionary of what they should say."""

    def __init__(self) -> None:
        super().__init__()
        self.folder = tempfile.TemporaryDirectory()
        root = Path(self.folder.name)
        (root / "vault").mkdir()
        self.kb = KnowledgeBase.open(root / "vault", root / "data")
        self.memory = MemoryToolProtocol(self.kb)
        self.model: dict[str, str] = {}

    def teardown(self) -> None:
        self.kb.close()
        self.folder.cleanup()

    @initialize()
    def start(self) -> None:
        self.kb.sync()

    @rule(name=NAMES, text=TEXT.filter(lambda text: not has_own_frontmatter(text)))
    def create(self, name: str, text: str) -> None:
        answer = self.memory.answer({"command": "create", "path": f"/memories/{name}", "file_text": text})
        assert answer.refused == (name in self.model)
        self.model.setdefault(name, text)

    @precondition(lambda self: self.model)
    @rule(data=st.data())
    def edit(self, data: st.DataObject) -> None:
        name = data.draw(st.sampled_from(sorted(self.model)))
        text = self.model[name]
        line, block = data.draw(st.integers(0, 4)), data.draw(TEXT)
        command: dict[str, Any] = {"command": "insert", "insert_line": line, "insert_text": block}
        expected = inserted(text, line, block)
        if data.draw(st.booleans()):
            old = data.draw(TEXT | st.sampled_from(["", *text]))
            command = {"command": "str_replace", "old_str": old, "new_str": block}
            expected = text.replace(old, block) if old and text.count(old) == 1 else None
        if expected is not None and has_own_frontmatter(expected):
            return
        command["path"] = f"/memories/{name}"
        assert self.memory.answer(command).refused == (expected is None)
        self.model[name] = text if expected is None else expected

    @rule(name=NAMES)
    def delete(self, name: str) -> None:
        answer = self.memory.answer({"command": "delete", "path": f"/memories/{name}"})
        assert answer.refused == (name not in self.model)
        self.model.pop(name, None)

    @rule(old=NAMES, new=NAMES)
    def rename(self, old: str, new: str) -> None:
        answer = self.memory.answer(
            {"command": "rename", "old_path": f"/memories/{old}", "new_path": f"/memories/{new}"}
        )
        assert answer.refused == (old not in self.model or new in self.model)
        if not answer.refused:
            self.model[new] = self.model.pop(old)

    @invariant()
    def says_what_the_model_says(self) -> None:
        for name, text in self.model.items():
            assert seen(self.memory, f"/memories/{name}") == text

    @invariant()
    def the_index_knows_the_same_files(self) -> None:
        paths = {row.path for row in self.kb.index.notes.docs()}
        assert paths == {f"memories/{name if name.endswith('.md') else name + '.md'}" for name in self.model}


TestFiles = pytest.mark.medium(Files.TestCase)
TestFiles.settings = settings(max_examples=15, stateful_step_count=15, deadline=None)
