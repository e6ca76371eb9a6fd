"""Obsidian vaults that are indexed in place: which of their files are found, and what is left out."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.command import Co, refs
from tests.folder import Vault
from tests.sources.document_files import lines_of, pdf


def obsidian(tmp_path: Path, files: dict[str, str | bytes]) -> Path:
    brain = tmp_path / "brain"
    (brain / ".obsidian").mkdir(parents=True)
    for path, content in files.items():
        (brain / path).parent.mkdir(parents=True, exist_ok=True)
        (brain / path).write_bytes(content.encode() if isinstance(content, str) else content)
    return brain


@pytest.mark.medium
def test_documents_code_and_cards_of_an_obsidian_vault_are_found(co: Co, vault: Vault, tmp_path: Path) -> None:
    cards = [
        {"id": "b", "type": "text", "text": "Quaggas graze by the river.", "x": 0, "y": 90},
        {"id": "a", "type": "file", "file": "Plan.md", "x": 0, "y": 0},
        {"id": "c", "type": "group", "label": "Animals", "x": 0, "y": 40},
        {"id": "d", "type": "link", "url": "https://example.org/okapi", "x": 0, "y": 120},
    ]
    edges = [{"id": "e", "fromNode": "a", "toNode": "b", "label": "leads to"}]
    brain = obsidian(
        tmp_path,
        {
            "Plan.md": "The plan is to wait.",
            "plan.txt": "Okapis hide in the forest.",
            "plan": "A file without an ending.",
            "paper.pdf": pdf(lines_of("Gnus cross the Mara in August.")),
            "paper.pdf.md": "Remarks on the paper.",
            "v1.2.md": "What the release brought.",
            "keys.py": "def rotate():\n    'Turn the signing keys over.'\n",
            "board.canvas": json.dumps({"nodes": cards, "edges": edges}),
            "empty.canvas": "{}",
            "broken.canvas": "{",
            "all.base": 'filters:\n  and:\n    - file.hasTag("harbour")\n',
        },
    )

    ran = co("add", str(brain))

    assert "created obsidian:brain: 10 new" in ran.out
    assert "skipped broken.canvas: broken: not the JSON of a canvas" in ran.err
    expected = {
        "quaggas graze river": "obsidian:brain/board.canvas",
        "gnus cross in august": "obsidian:brain/paper.pdf",
        "okapis hide forest": "obsidian:brain/plan.txt",
        "signing keys": "obsidian:brain/keys.py",
        "hasTag harbour": "obsidian:brain/all.base",
        "a file without an ending": "obsidian:brain/./plan",
        "the plan is to wait": "obsidian:brain/Plan",
        "remarks on the paper": "obsidian:brain/paper.pdf.md",
        "what the release brought": "obsidian:brain/v1.2",
    }
    assert {query: refs(co, query)[0].partition("#")[0] for query in expected} == expected
    board = co("show", "obsidian:brain/board.canvas", "--json").json
    assert board["body"].split("\n\n") == [
        *("[[Plan.md]]", "Animals", "Quaggas graze by the river.", "https://example.org/okapi", "leads to\n")
    ]
    for ref in expected.values():
        assert co("show", ref, "--json").json["ref"] == ref


def test_templates_are_skipped_and_tree_says_what_is_left_out_and_why(co: Co, vault: Vault, tmp_path: Path) -> None:
    template = "---\ndate: {{date}}: x\n---\nA [[quagga]] of {{title}}."
    brain = obsidian(
        tmp_path,
        {
            ".obsidian/templates.json": '{"folder": "Meta/My [Templates]"}',
            ".obsidian/app.json": '{"userIgnoreFilters": ["Old/"]}',
            ".coignore": "*.log\n",
            "Meta/My [Templates]/Daily.md": template,
            "Meta/About.md": "About this vault.",
            "Old/a.md": "A quagga.",
            "run.log": "quagga",
            "node_modules/x.js": "quagga()",
            "logo.ico": b"\x89PNG",
        },
    )

    ran = co("add", str(brain))

    assert ("1 new, 1 binary" in ran.out, ran.err) == (True, "")
    left_out = next(line for line in ran.out.splitlines() if line.startswith("  left out: "))
    assert all(part in left_out for part in ("templates (1)", "excluded by .coignore (1)", "`co source skipped "))
    skipped = co("source", "skipped", "brain")
    assert "templates: 1\n  obsidian:brain/Meta/My [Templates]/\n" in skipped.out
    assert {row["path"] for row in co("source", "skipped", "--json").json} >= {"Old/", "logo.ico", "run.log"}
    assert not any("quagga" in hit["snippet"] for hit in co("search", "quagga", "--json").json["hits"])
    assert co("source", "tree", "brain", "--json").json[0]["files"] == {
        "Meta/About.md": "",
        "Meta/My [Templates]/": "templates",
        "Old/": "excluded in Obsidian's settings",
        "logo.ico": "binary",
        "node_modules/": "left by a tool, or unfinished",
        "run.log": "excluded by .coignore",
    }
    assert "├─ Old/  (excluded in Obsidian's settings)" in co("source", "tree", "brain").out
    assert "Daily" not in co("doctor").out


def test_problems_of_notes_are_one_line_with_a_count(co: Co, vault: Vault, tmp_path: Path) -> None:
    bad = {f"bad{number:02}.md": f"---\na: b: c\n---\nText {number}." for number in range(28)}
    brain = obsidian(tmp_path, {**bad, "wide.txt": "Elms fall ill.".encode("utf-16")})

    added = co("add", str(brain))
    synced = co("index", "sync").out.splitlines()
    rows = co("source", "refresh", "brain", "--json").json

    assert added.err.count("\n") == 2
    assert "28 notes have problems, such as bad00.md: line 2:" in added.err
    assert "wide.txt: line 1: UTF-16" in added.err
    told = [line.partition(",")[0] for line in synced if line.startswith("problem")]
    assert told[0] == "problem  28 notes have problems"
    assert len(rows[0]["problems"]) == 29
    assert "bad27.md: line 2" in co("doctor", "--json").out


def test_an_excalidraw_note_has_the_name_of_its_file(co: Co, tmp_path: Path) -> None:
    drawing = "---\nexcalidraw-plugin: parsed\n---\n# Excalidraw Data\n\n## Text Elements\nBlue pool first ^a1\n"
    brain = obsidian(
        tmp_path, {"Deploy plan.excalidraw.md": drawing, "Named.md": drawing.replace("---", "---\ntitle: A plan", 1)}
    )

    co("add", str(brain))

    assert sorted(note["title"] for note in co("list", "obsidian:brain", "--json").json) == ["A plan", "Deploy plan"]
