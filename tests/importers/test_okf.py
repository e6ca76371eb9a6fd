"""Bundles of the Open Knowledge Format 0.2: written, read, read in place, and nothing is lost on the way."""

from __future__ import annotations

from pathlib import Path

import pytest

from co_cli.notes.frontmatter import read_frontmatter
from tests.command import Co, refs
from tests.folder import Vault

NOTE = """---
title: Releases
kind: article
tags: [ops]
created: 2026-03-01T09:00:00Z
valid_until: 2999-12-31
source_url: https://example.org/release
importance: 0.8
owner: {team: [web, api]}
---
See [[Mara]]. Blue takes traffic first.
"""
CONCEPT = """---
type: Attested Computation
title: Revenue for fiscal year
description: Recognized revenue, per Finance's definition.
tags: [finance]
status: stable
runtime: bigquery
parameters:
  - { name: year, type: integer, required: true }
executor: { resource: references/run.md, receipt: [job_id, result] }
attester: { resource: references/revenue.py }
generated: { by: reference_agent/gemini-2.5-pro, at: 2026-06-20T22:53:05Z }
verified: { by: human:ahormati, at: 2026-06-25T09:00:00Z }
stale_after: 2026-09-23T00:00:00Z
sources:
  - { id: policy, resource: https://wiki.acme/revenue, author: team:fpa, usage_count: 5000 }
usage_window: { from: 2026-06-01T00:00:00Z, to: 2026-06-30T00:00:00Z }
---

# Computation

Revenue sums what was recognized.[^policy]
"""


def fields(text: str) -> dict[str, object]:
    return read_frontmatter(text).metadata


@pytest.fixture
def bundle(tmp_path: Path) -> Path:
    folder = tmp_path / "finance"
    (folder / "computations").mkdir(parents=True)
    (folder / "index.md").write_text(
        '---\nokf_version: "0.2"\n---\n\n# Finance\n\n* [Revenue](computations/revenue.md)\n'
    )
    (folder / "log.md").write_text("# Log\n\n## 2026-06-20\n* **Creation**: Revenue.\n")
    (folder / "computations" / "revenue.md").write_text(CONCEPT)
    return folder


def test_a_vault_becomes_a_conformant_bundle_and_comes_back_with_every_field(
    co: Co, vault: Vault, tmp_path: Path
) -> None:
    vault.write("articles/release.md", NOTE)
    vault.write("memories/mara.md", "Mara has the keys.\n")
    vault.write("articles/index.md", "A note with a name that is reserved.\n")
    out, back = tmp_path / "bundle", Vault(tmp_path / "back")

    assert co("data", "export", "--format", "okf", "--to", str(out)).out.startswith("3 notes exported")

    concepts = {str(path.relative_to(out)): path.read_text() for path in out.rglob("*.md")}
    listings = {name for name in concepts if name.endswith(("index.md", "log.md"))}
    assert listings == {"index.md", "log.md", "articles/index.md", "memories/index.md"}
    assert [name for name in {*concepts} - listings if not fields(concepts[name]).get("type")] == []
    assert fields(concepts["index.md"]) == {"okf_version": "0.2"}
    assert "* [Releases](<release.md>)" in concepts["articles/index.md"]
    assert "## 2026-03-01\n* **Creation**: [Releases](</articles/release.md>)" in concepts["log.md"]
    release = fields(concepts["articles/release.md"])
    assert fields(NOTE).items() <= release.items()
    assert release["generated"] == {"by": "human:owner", "at": "2026-03-01T09:00:00Z"}
    assert release["sources"] == [{"resource": "https://example.org/release", "title": "Releases"}]

    assert co("data", "import", "okf", str(out), "--yes", "--vault", str(back.root)).code == 0
    assert back.notes() == ["articles/index-note.md", "articles/release.md", "memories/mara.md"]
    assert release.items() <= fields(back.read("articles/release.md")).items()
    assert back.read("articles/release.md").endswith("Blue takes traffic first.\n")


def test_a_bundle_is_imported_and_exported_again_with_every_field(
    co: Co, vault: Vault, bundle: Path, tmp_path: Path
) -> None:
    assert co("data", "import", "okf", str(bundle), "--yes").code == 0
    assert vault.notes() == ["articles/finance/computations/revenue.md"]
    assert co("data", "export", "--format", "okf", "--to", str(tmp_path / "again")).code == 0

    again = fields((tmp_path / "again/articles/finance/computations/revenue.md").read_text())

    assert fields(CONCEPT).items() <= again.items()


def test_a_bundle_is_read_in_place_with_its_fields(co: Co, vault: Vault, bundle: Path) -> None:
    co("add", str(bundle))

    found = refs(co, "how is revenue recognized", "--outdated")
    assert [ref.split("#")[0] for ref in found] == ["folder:finance/computations/revenue.md"]
    assert refs(co, "how is revenue recognized", "--where", "type=Attested Computation", "--outdated") == found
    assert refs(co, "how is revenue recognized") == []  # it is stale since September 2026
    shown = co("show", "folder:finance/computations/revenue.md", "--json").json
    assert shown["created"].startswith("2026-06-20T22:53:05")
    reasons = {row["path"]: row["reason"] for row in co("source", "skipped", "finance", "--json").json}
    assert reasons == dict.fromkeys(("index.md", "log.md"), "a listing of an OKF bundle")


def test_a_bundle_without_a_version_is_recognised_by_its_listings(co: Co, vault: Vault, tmp_path: Path) -> None:
    retail = tmp_path / "retail"
    for path, text in {
        "index.md": "# Subdirectories\n\n* [metrics](metrics/index.md) - Numbers.\n* [tables](tables/) - Tables.\n",
        "log.md": "# Log\n\n## 2026-06-20\n* **Update**: The margin.\n",
        "metrics/index.md": "# Metric\n\n* [Margin](margin.md)\n* [Old](/metrics/old.md) - Deprecated.\n",
        "metrics/margin.md": "---\ntype: Metric\ntitle: Margin\n---\nThe margin leaves out freight.\n",
        "metrics/old.md": "---\ntype: Metric\ntitle: Old\nstatus: deprecated\n---\nIt had freight in the margin.\n",
        "tables/index.md": "# Table\n\n* [Orders](orders.md) - Orders.\n",
        "tables/orders.md": "---\ntype: Table\ntitle: Orders\n---\nEach order of the margin.\n",
    }.items():
        (retail / path).parent.mkdir(parents=True, exist_ok=True)
        (retail / path).write_text(text)
    plain = tmp_path / "plain"
    plain.mkdir()
    (plain / "index.md").write_text("# Notes on the margin\n\n* [One](one.md)\n")
    (plain / "one.md").write_text("The margin of a page.\n")
    co("add", str(retail), str(plain))

    found = {ref.split("#")[0] for ref in refs(co, "margin")}

    concepts = {"folder:retail/metrics/margin.md", "folder:retail/tables/orders.md"}
    assert found == {*concepts, "folder:plain/index.md", "folder:plain/one.md"}
    assert "folder:retail/metrics/old.md" in {ref.split("#")[0] for ref in refs(co, "margin", "--outdated")}


def test_an_export_says_when_a_concept_was_changed_here(co: Co, vault: Vault, bundle: Path, tmp_path: Path) -> None:
    co("data", "import", "okf", str(bundle), "--yes")
    note = vault.root / "articles/finance/computations/revenue.md"
    note.write_text(note.read_text().replace("---\n", "---\nupdated: 2026-11-02\n", 1))
    co("data", "export", "--format", "okf", "--to", str(tmp_path / "again"))

    again = fields((tmp_path / "again/articles/finance/computations/revenue.md").read_text())

    assert again["generated"]["at"] == "2026-11-02T00:00:00Z"
    assert again["verified"] == fields(CONCEPT)["verified"]


@pytest.mark.parametrize("to", ["bundle", "bundle.zip"])
def test_a_note_with_a_reserved_name_gets_a_free_one(co: Co, vault: Vault, tmp_path: Path, to: str) -> None:
    notes = {"index.md": "First.\n", "Index-Note.md": "Second.\n", "index-note-2.md": "Third.\n", "log.md": "Fourth.\n"}
    for name, text in notes.items():
        vault.write(f"articles/{name}", text)
    back = Vault(tmp_path / "back")

    assert co("data", "export", "--format", "okf", "--to", str(tmp_path / to)).out.startswith("4 notes exported")
    assert co("data", "import", "okf", str(tmp_path / to), "--yes", "--vault", str(back.root)).code == 0

    assert sorted(back.read(path).splitlines()[-1] for path in back.notes()) == sorted(map(str.strip, notes.values()))
    assert back.notes() == [
        f"articles/{name}" for name in ("Index-Note.md", "index-note-2.md", "index-note-3.md", "log-note.md")
    ]


def test_a_note_that_cannot_be_a_concept_is_reported_and_the_others_are_exported(
    co: Co, vault: Vault, tmp_path: Path
) -> None:
    vault.write("articles/broken.md", "---\ntitle: [never closed\n---\nBroken.\n")
    vault.write("articles/release.md", NOTE)
    out = tmp_path / "bundle"
    co("index", "sync")  # says what is wrong with notes, once

    ran = co("data", "export", "--format", "okf", "--to", str(out))

    assert (ran.code, ran.out.partition(" to ")[0]) == (3, "1 note exported")
    assert ran.err.startswith("co: articles/broken.md: line 2: a list that is not closed")
    assert ran.err.endswith("; fix it, then export again\n")
    assert ran.err.count("\n") == 1
    assert sorted(path.name for path in (out / "articles").iterdir()) == ["index.md", "release.md"]
    assert "broken" not in (out / "articles/index.md").read_text()


def test_a_note_in_utf_16_becomes_a_concept_in_utf_8(co: Co, vault: Vault, tmp_path: Path) -> None:
    vault.write("articles/wide.md", "---\ntitle: Café\n---\nOpen at nine.\n".encode("utf-16"))

    assert co("data", "export", "--format", "okf", "--to", str(tmp_path / "bundle")).code == 0

    concept = (tmp_path / "bundle/articles/wide.md").read_bytes().decode()
    assert fields(concept)["title"] == "Café"
    assert concept.endswith("---\nOpen at nine.\n")
