"""Instructions say which vault a memory is: to MCP clients over stdio and HTTP, and to pydantic-ai agents."""

from __future__ import annotations

from pathlib import Path

import pytest
from pydantic_ai import Agent

from co_cli.agent import Knowledge
from tests.agent.conftest import offline_and_patient as offline_and_patient
from tests.agent.scripted import Call, Script
from tests.folder import Vault
from tests.mcp.talking import Place, http_server, over_http, over_stdio


@pytest.mark.slow
def test_a_client_is_told_the_name_the_path_and_the_size_of_the_vault(tmp_path: Path) -> None:
    place = Place(tmp_path / "harbour notes")
    for number in range(3):
        place.vault.write(f"memories/{number}.md", f"Boat {number} is blue.")
    vault = f"the vault 'vault' ({place.vault.root}"

    with over_stdio(place) as talk:
        first = talk.client.instructions or ""
        served = talk.client.server_info
        talk.call_tool("list_memories", {})
    with http_server(place) as (_, address), over_http(address) as talk:
        later = talk.client.instructions or ""

    assert vault in first
    assert f"{vault}, 3 notes)" in later
    assert served is not None
    assert served.title == "co-cli: vault"


def test_the_vault_of_a_project_has_the_name_of_the_project(tmp_path: Path) -> None:
    place = Place(tmp_path)
    (tmp_path / "ferry" / ".co-cli" / "knowledge").mkdir(parents=True)

    with over_stdio(place, "--vault", str(tmp_path / "ferry" / ".co-cli" / "knowledge")) as talk:
        instructions = talk.client.instructions or ""

    assert f"the vault 'ferry' ({tmp_path / 'ferry' / '.co-cli' / 'knowledge'}" in instructions


@pytest.mark.usefixtures("offline_and_patient")
def test_an_agent_with_two_vaults_is_told_which_tools_belong_to_which(tmp_path: Path) -> None:
    own, team = Vault(tmp_path / "own"), Vault(tmp_path / "team")
    own.write("memories/tone.md", "---\nloading: always\n---\nSpeak plainly.\n")
    team.write("memories/tone.md", "---\nloading: always\n---\nSign with the team's name.\n")
    script = Script([("team_recall_memory", {"query": "how do we sign"})], "With the team's name.")
    mine = Knowledge(own.root, data_dir=tmp_path / "data")
    theirs = Knowledge(team.root, data_dir=tmp_path / "data", id="team").prefix_tools("team")

    Agent(script.model, capabilities=[mine, theirs]).run_sync("How do I sign a letter?")

    told = script.instructions
    assert f"notes in the vault 'own' ({own.root}" in told
    assert f"notes in the vault 'team' ({team.root}" in told
    assert "call recall_memory." in told
    assert "call team_recall_memory." in told
    assert "call team_update_memory instead" in told
    assert "Notes from the vault 'team', which team_read_note opens," in script.everything
    assert "Sign with the team's name." in script.told


@pytest.mark.usefixtures("offline_and_patient")
def test_answers_and_descriptions_name_the_tools_as_the_agent_has_them(tmp_path: Path) -> None:
    save: Call = ("team_save_memory", {"content": "The code of the door is 2222."})
    script = Script([("team_save_memory", {"content": "The code of the door is 1111."})], [save], "Saved.")
    ask = Script([("team_read_note", {"ref": "memory:no-such-note"})], [("team_find", {})], "Nothing.")
    team = Knowledge(Vault(tmp_path / "team").root, data_dir=tmp_path / "data", id="team").prefix_tools("team")

    Agent(script.model, capabilities=[team]).run_sync("The code is 1111, no, 2222.")
    Agent(ask.model, capabilities=[team]).run_sync("What is noted?")

    assert ", team_save_memory again, the same content, supersedes=" in script.told
    assert "team_search_knowledge and team_list_memories give refs" in ask.everything
    described = {tool.name: tool.description or "" for tool in script.infos[-1].function_tools}
    assert "For a new fact use team_save_memory." in described["team_update_memory"]
    assert "Like team_recall_memory, in notes" in described["team_search_knowledge"]


@pytest.mark.usefixtures("offline_and_patient")
def test_a_note_that_one_vault_gave_does_not_hide_one_of_the_same_name_in_another(tmp_path: Path) -> None:
    own, team = Vault(tmp_path / "own"), Vault(tmp_path / "team")
    own.write("memories/signature.md", "Letters to friends are signed with Love, Ana.\n")
    team.write("memories/signature.md", "Letters to customers are signed with the team's name.\n")
    mine = Knowledge(own.root, data_dir=tmp_path / "data", context=False)
    theirs = Knowledge(team.root, data_dir=tmp_path / "data", id="team").prefix_tools("team")
    script = Script([("read_note", {"ref": "memory:signature"})], "With love.", "With the team's name.", "As before.")
    agent = Agent(script.model, capabilities=[mine])

    first = agent.run_sync("Read how I sign.")
    both = Agent(script.model, capabilities=[mine, theirs])
    second = both.run_sync("How are letters to customers signed?", message_history=first.all_messages())

    assert "signed with the team's name" in script.told
    both.run_sync("How are letters to customers signed?", message_history=second.all_messages())
    assert "signed with the team's name" not in script.told, "it is not given twice"
