"""Instructions say which vault a memory is: to MCP clients over stdio and HTTP, and to pydantic-ai agents."""

from __future__ import annotations

from pathlib import Path

import pytest
from pydantic_ai import Agent

from co_cli.agent import Knowledge
from tests.agent.conftest import offline_and_patient as offline_and_patient
from tests.agent.scripted import Script
from tests.mcp_server.talking import Place, http_server, over_http, over_stdio
from tests.vault import Vault


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


@pytest.mark.slow
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
