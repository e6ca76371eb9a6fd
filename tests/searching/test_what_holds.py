"""Which notes are valid: search.db and a search of the files give the same answer."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from co_cli.entrance.knowledge_base import KnowledgeBase
from tests.folder import Vault

NAMES = [f"note-{letter}" for letter in "abcdefgh"]
DAYS = [f"202{year}-0{month}-11" for year in (3, 4, 5) for month in (2, 7)]
LATER = "2031-05-05"


def write_family(vault: Vault, chance: random.Random) -> None:
    """Notes that supersede each other in every way, sensible or not."""
    for name in NAMES:
        fields = {"title": f"The {name} of all", "created": chance.choice(DAYS)}
        other = chance.choice([*NAMES, "nobody"])
        called = chance.choice([f"memory:{other}", f"'[[{other}]]'", f"The {other} of all", other])
        for key, odds in (("supersedes", 0.4), ("superseded_by", 0.2)):
            if chance.random() < odds:
                fields[key] = called
        if chance.random() < 0.2:
            fields["valid_from"] = chance.choice([*DAYS, LATER])
        if chance.random() < 0.2:
            fields["valid_until"] = chance.choice([*DAYS, LATER])
        front = "".join(f"{key}: {value}\n" for key, value in fields.items())
        vault.write(f"memories/{name}.md", f"---\n{front}---\nThe office has moved, says {name}.\n")


def held(kb: KnowledgeBase, backend: str, as_of: str | None = None) -> set[str]:
    return {hit.ref for hit in kb.search("office moved", backend=backend, as_of=as_of, limit=50).hits}


@pytest.mark.parametrize("seed", range(10))
def test_the_index_and_the_files_agree_on_what_is_valid(vault: Vault, kb: KnowledgeBase, seed: int) -> None:
    write_family(vault, random.Random(seed))
    kb.sync()

    for moment in (None, *DAYS, LATER):
        assert held(kb, "fts5", moment) == held(kb, "grep", moment), moment
    assert {one.ref for one in kb.notes() if kb.outdated(kb.note(one.ref)) is None} == held(kb, "grep")


def test_a_note_is_superseded_only_when_the_newer_one_is_there(vault: Vault, kb: KnowledgeBase) -> None:
    vault.write("memories/old.md", "---\nsuperseded_by: new\n---\nThe office is in Lisbon.\n")
    vault.write("memories/new.md", f"---\nvalid_from: {LATER}\n---\nThe office is in Porto.\n")
    kb.sync()

    for backend in ("fts5", "grep"):
        assert {hit.ref for hit in kb.search("office", backend=backend).hits} == {"memory:old"}
    assert kb.outdated(kb.note("memory:old")) is None
    assert kb.outdated(kb.note("memory:new")) == "not valid yet"


def test_in_another_tier_the_refs_name_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, home: Path) -> None:
    team, project = Vault(tmp_path / "team"), home / "project"
    (project / ".co-cli" / "knowledge").mkdir(parents=True)
    monkeypatch.setenv("CO_TEAM_VAULT", str(team.root))
    monkeypatch.chdir(project)
    team.write("memories/old.md", "See [[new]]. The office is in Lisbon.\n")
    team.write("memories/new.md", "---\nsupersedes: old\n---\nThe office is in Porto.\n")

    with KnowledgeBase.open(None, tmp_path / "data") as kb:
        kb.sync()

        assert kb.outdated(kb.note("team:memory:old")) == "superseded by team:memory:new"
        assert [link.ref for link in kb.links("team:memory:old")[0]] == ["team:memory:new"]
        assert [link.ref for link in kb.links("team:memory:new")[1]] == ["team:memory:old"]
        assert [hit.ref for hit in kb.search("office").hits] == ["team:memory:new"]
        assert kb.why("office", "team:memory:old").lost_in == "validity"
