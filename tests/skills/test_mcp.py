"""Skills over MCP, with a server started as a client starts it."""

from __future__ import annotations

from pathlib import Path

from tests.mcp_server.talking import Place
from tests.skills.conftest import SkillRoot

NAMES = {"find_skills", "load_skill"}


def test_a_client_finds_and_loads_a_skill_of_the_users_and_one_without_skills_is_offered_no_tools_for_them(
    tmp_path: Path,
) -> None:
    place = Place(tmp_path / "with")
    mine = SkillRoot(place.folder / ".claude" / "skills")
    mine.write("pdf-forms", "Creates and fills PDF forms, contracts with blanks.", "Flatten <user> only when asked.")
    mine.put("pdf-forms/references/fields.md", "Fields.\n")
    process, bare = place.start("--structured"), Place(tmp_path / "without").start()
    try:
        process.initialise()
        bare.initialise()
        offered = {tool["name"]: tool for tool in process.ask("tools/list")["result"]["tools"]}
        found = process.call("find_skills", query="turn this contract into a fillable form")
        loaded = process.call("load_skill", name=found["structuredContent"]["skills"][0]["name"])
        unknown = process.call("load_skill", name="pdf")
        without = {tool["name"] for tool in bare.ask("tools/list")["result"]["tools"]}
    finally:
        process.end()
        bare.end()

    assert set(offered) >= NAMES
    assert not without & NAMES
    assert offered["find_skills"]["annotations"]["readOnlyHint"] is True
    assert "A skill that the user installed." in loaded["content"][0]["text"]
    assert "Flatten <user> only when asked." in loaded["content"][0]["text"]
    assert loaded["structuredContent"]["files"] == ["references/fields.md"]
    assert unknown["isError"] is True
    assert "did you mean pdf-forms?" in unknown["content"][0]["text"]
