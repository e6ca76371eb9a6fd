"""The page of a person, project or thing."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from tests.server.browser import until
from tests.server.conftest import Server


def test_an_entity_lists_what_other_notes_say_about_it(page: Any, server: Server) -> None:
    root = Path(server.kb.root)
    (root / "entities").mkdir()
    (root / "entities" / "mara-lind.md").write_text("---\ntype: person\naliases: [ML]\n---\nLeads the bridge team.\n")
    (root / "memories" / "noon.md").write_text("Mara Lind wants reviews before noon.\n")
    (root / "memories" / "steel.md").write_text("Ask ML about steel.\n")
    server.kb.sync()

    page.goto(f"{server.url}/note/entity:mara-lind")
    named = page.wait_for_selector("h3:has-text('Named in') + ul")

    assert sorted(named.inner_text().split("\n")) == ["Noon", "Steel"]
    page.click("h3:has-text('Named in') + ul a:has-text('Noon')")
    until(page, "document.querySelector('h1')?.innerText === 'Noon'")
