"""The project's vault, your own and the team's, searched together."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.command import Co, commit, git, refs
from tests.folder import Vault


@pytest.fixture
def project(co: Co, home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A project with a vault as the current folder, and no vault in the environment."""
    monkeypatch.delenv("CO_VAULT")
    root = tmp_path / "project"
    (root / ".co-cli").mkdir(parents=True)
    monkeypatch.chdir(root)
    return root


def own(home: Path) -> Vault:
    return Vault(home / ".local/share/co-cli/knowledge")


@pytest.fixture
def three(co: Co, project: Path, home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, Vault]:
    """A note about tea in each tier."""
    vaults = {
        "user": own(home),
        "project": Vault(project / ".co-cli/knowledge"),
        "team": Vault(tmp_path / "team"),
    }
    monkeypatch.setenv("CO_TEAM_VAULT", str(vaults["team"].root))
    for tier, vault in vaults.items():
        vault.write(f"memories/tea-{tier}.md", f"Tea of the {tier} is drunk at four.")
    return vaults


def test_one_search_spans_all_three_and_says_where_a_hit_lives(co: Co, three: dict[str, Vault]) -> None:
    found = co("search", "when is tea drunk", "--json").json

    assert {hit["ref"] for hit in found["hits"]} == {
        "user:memory:tea-user",
        "memory:tea-project",
        "team:memory:tea-team",
    }
    assert found["searched"]["notes"] == 3
    paths = {hit["ref"]: hit["path"] for hit in found["hits"]}
    assert paths["team:memory:tea-team"] == str(three["team"].path("memories/tea-team.md"))
    assert all(abs(sum(hit["signals"].values()) - hit["score"]) < 0.001 for hit in found["hits"])


def test_among_equals_the_user_comes_first_and_then_the_project(co: Co, three: dict[str, Vault]) -> None:
    for vault in three.values():
        for path in vault.notes():
            vault.delete(path)
    for number, vault in enumerate(three.values()):
        vault.write(f"memories/note-{number}.md", f"---\ntitle: Kettle\n---\nThe kettle is blue. {number}{number}\n")
    three["team"].write("memories/lid.md", "The lid of the kettle is red.")

    assert refs(co, "kettle blue", "--limit", "3") == ["user:memory:note-0", "memory:note-1", "team:memory:note-2"]
    assert refs(co, "which lid is red")[0] == "team:memory:lid"  # what answers best still does


def test_the_same_note_in_two_tiers_appears_once_from_the_highest(co: Co, three: dict[str, Vault]) -> None:
    for tier, text in (("team", "Coffee is at nine."), ("user", "Coffee is at ten.")):
        three[tier].write("memories/coffee.md", text)
    for tier in ("team", "project"):
        three[tier].write(f"memories/milk-{tier}.md", "Milk is in the left fridge.")

    assert [ref for ref in refs(co, "when is coffee") if "coffee" in ref] == ["user:memory:coffee"]
    assert [ref for ref in refs(co, "milk fridge") if "milk" in ref] == ["memory:milk-project"]


def test_a_listing_by_date_shows_the_same_note_of_two_tiers_once(co: Co, three: dict[str, Vault]) -> None:
    for vault in three.values():
        for path in vault.notes():
            vault.delete(path)
    for tier in ("team", "user"):
        three[tier].write("memories/coffee.md", f"Coffee of the {tier}.")
        three[tier].write(f"memories/milk-{tier}.md", "Milk is in the left fridge.")
        three[tier].write(f"memories/{tier}.md", f"---\ntitle: Only the title of {tier}\n---\n")

    listed = ["team:memory:team", "user:memory:coffee", "user:memory:milk-user", "user:memory:user"]
    assert sorted(refs(co, "today")) == listed, "notes without a text are different notes"
    assert len(refs(co, "today", "--limit", "3")) == 3


def test_a_ref_with_a_tier_is_shown_changed_and_forgotten_there(co: Co, three: dict[str, Vault]) -> None:
    co("index", "sync")

    assert "Tea of the user" in co("show", "user:memory:tea-user").out
    assert co("show", "memory:tea-team", "--json").json["ref"] == "team:memory:tea-team"
    assert co("edit", "team:memory:tea-team", "--tag", "drinks").out == "updated team:memory:tea-team\n"
    assert "tags: [drinks]" in three["team"].read("memories/tea-team.md")
    assert co("forget", "user:memory:tea-user").out.startswith("forgotten user:memory:tea-user")
    assert three["user"].notes() == []
    assert "user:memory:tea-user" not in refs(co, "tea")


def test_writing_goes_to_the_tier_that_is_named_and_else_to_the_project(co: Co, three: dict[str, Vault]) -> None:
    for tier in ("user", "team", "project"):
        ran = co("remember", f"Biscuits for the {tier} are in tin {tier}.", "--title", f"Tin {tier}", "--tier", tier)
        assert ran.out == f"created {'' if tier == 'project' else tier + ':'}memory:tin-{tier}\n"
    co("remember", "Sugar is out.", "--title", "Sugar")

    assert "memories/tin-user.md" in three["user"].notes()
    assert "memories/tin-team.md" in three["team"].notes()
    assert {"memories/tin-project.md", "memories/sugar.md"} < set(three["project"].notes())
    assert set(refs(co, "biscuits tin")) >= {"user:memory:tin-user", "team:memory:tin-team", "memory:tin-project"}


@pytest.mark.usefixtures("project")
def test_a_tier_that_is_not_configured_names_the_setting(co: Co) -> None:
    ran = co("remember", "x", "--tier", "team")

    assert (ran.code, "set team_vault (CO_TEAM_VAULT)" in ran.err) == (2, True)


@pytest.mark.usefixtures("project")
def test_two_people_of_a_team_lose_nothing_when_git_merges_them(
    co: Co, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A team tier is a git clone: concurrent saves, an edit and a removal merge without losing either's."""

    def as_(person: str, *arguments: str) -> None:
        monkeypatch.setenv("CO_TEAM_VAULT", str(tmp_path / person))
        ran = co(*arguments)
        assert ran.code == 0, ran.err

    origin = tmp_path / "origin.git"
    git(tmp_path, "init", "-q", "--bare", str(origin))
    git(tmp_path, "clone", "-q", str(origin), "ann")
    first = Vault(tmp_path / "ann")
    first.write("memories/shared.md", "---\ntitle: Shared\ntags: [a]\n---\nThe depot opens at six.\n")
    commit(tmp_path / "ann", "first")
    git(tmp_path / "ann", "push", "-q", "origin", "HEAD")
    git(tmp_path, "clone", "-q", str(origin), "bob")

    as_("ann", "remember", "Ann keeps the keys.", "--title", "Keys", "--tier", "team")
    as_("bob", "remember", "Bob keeps the van.", "--title", "Van", "--tier", "team")
    as_("bob", "remember", "Both of us know the code.", "--title", "Keys", "--tier", "team")
    as_("ann", "edit", "team:memory:shared", "--tag", "b")
    for person in ("ann", "bob"):
        commit(tmp_path / person, person)
    git(tmp_path / "bob", "push", "-q", "origin", "HEAD")
    git(tmp_path / "ann", "pull", "-q", "--no-rebase", "--no-edit", check=False)  # both wrote keys.md

    text = "\n".join(path.read_text() for path in (tmp_path / "ann" / "memories").glob("*.md"))
    assert all(words in text for words in ("Ann keeps the keys.", "Bob keeps the van.", "Both of us know the code."))
    assert "tags: [b]" in text
    monkeypatch.setenv("CO_TEAM_VAULT", str(tmp_path / "ann"))
    assert refs(co, "who keeps the van")[0] == "team:memory:van"


def test_a_forgotten_note_of_a_tier_is_restored_there(co: Co, three: dict[str, Vault]) -> None:
    co("forget", "user:memory:tea-user", "memory:tea-project")

    listed = co("list", "--trash", "--json").json
    assert [(one["tier"], one["path"]) for one in listed] == [
        (None, "memories/tea-project.md"),
        ("user", "memories/tea-user.md"),
    ]
    assert three["user"].path(listed[1]["trash"]).exists()
    names = [line.partition("  ")[0] for line in co("list", "--trash").out.splitlines()]
    assert names == ["memory:tea-project", "user:memory:tea-user"]
    assert co("config", "completion", "--words", "note", "restore", "").out.split() == [
        "memory:tea-project",
        "user:memory:tea-user",
    ]
    status = co("index", "status").out
    assert "trash   1 note, user: 1 note\n" in status
    assert f"vault   {three['project'].root} (project)\n" in status
    assert co("note", "restore", names[1]).out.startswith("restored user:memory:tea-user, forgotten 20")
    assert three["user"].notes() == ["memories/tea-user.md"]
    assert co("index", "status", "--json").json["trashed_in_tiers"] == {}


def test_a_project_cannot_link_its_vault_to_another_folder(co: Co, project: Path, tmp_path: Path) -> None:
    outside = Vault(tmp_path / "outside")
    outside.write("memories/zebra.md", "A zebra.")
    (project / ".co-cli" / "knowledge").symlink_to(outside.root)

    for arguments in (("search", "zebra"), ("remember", "x")):
        ran = co(*arguments)
        assert (ran.code, ran.out) == (2, "")
        assert "is a link out of the project" in ran.err
    assert outside.notes() == ["memories/zebra.md"]


def test_a_project_does_not_choose_what_of_your_own_vault_is_indexed(
    co: Co, three: dict[str, Vault], project: Path, monkeypatch: pytest.MonkeyPatch, home: Path
) -> None:
    three["user"].write("drafts/idea.md", "A draft about kites.")
    (project / ".co-cli" / "settings.toml").write_text('knowledge_exclude = ["drafts/"]\n')
    co("index", "sync")
    monkeypatch.chdir(home)

    assert [ref.split("#")[0] for ref in refs(co, "kites", "--no-sync")][:1] == ["article:/drafts/idea"]


@pytest.fixture
def brain(home: Path) -> Path:
    """An Obsidian vault."""
    root = home / "Obsidian" / "brain"
    (root / ".obsidian").mkdir(parents=True)
    (root / "Okapis.md").write_text("Okapis have striped legs.\n")
    return root


@pytest.mark.medium
def test_a_source_of_your_own_vault_is_searched_in_every_project(
    co: Co, project: Path, home: Path, brain: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(home)
    added = co("add", str(brain))
    assert f"in your own vault, {own(home).root}: searched from every folder" in added.out
    assert refs(co, "striped legs") == ["obsidian:brain/Okapis#L1-1"]

    for folder in (project, project / "src"):
        folder.mkdir(exist_ok=True)
        monkeypatch.chdir(folder)
        for options in ([], ["--source", "brain"], ["--backend", "grep"]):
            assert refs(co, "striped legs", *options) == ["obsidian:brain/Okapis#L1-1"]
        assert "striped legs" in co("show", "Okapis").out
    listed = co("source", "list")
    assert "obsidian:brain  1 note, of your own vault" in listed.out
    assert co("source", "list", "--json").json[-1]["vault"] == str(own(home).root)
    (project / "vault").mkdir()
    assert refs(co, "striped legs", "--vault", str(project / "vault")) == []  # your own vault is not searched there
    monkeypatch.setenv("CO_TIERS", "off")
    assert refs(co, "striped legs") == []


def test_add_in_a_project_makes_what_is_outside_of_it_searchable_everywhere_unless_told_otherwise(
    co: Co, project: Path, home: Path, brain: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    docs = tmp_path / "docs"
    for folder, text in ((docs, "Zebras are in the docs."), (project / "specs", "Otters are in the specs.")):
        folder.mkdir()
        (folder / "animals.md").write_text(f"{text}\n")
    co("init")
    vault, mine = project / ".co-cli" / "knowledge", home / ".local/share/co-cli/knowledge"

    both = co("add", str(brain), "specs")
    assert f"in your own vault, {mine}: searched from every folder and in every project; --project adds" in both.out
    assert f"in this project's vault, {vault}: searched only here\n" in both.out
    here = co("add", str(docs), "--project", "--json").json
    assert (here[0]["vault"], here[0]["outcome"]) == (str(vault), "created")
    assert co("add", str(docs), "--json").json[0]["outcome"] == "skipped"  # where it was added before
    assert refs(co, "striped legs")[:1] == ["obsidian:brain/Okapis#L1-1"]
    assert refs(co, "zebras in the docs")[:1] == ["folder:docs/animals.md#L1-1"]

    monkeypatch.chdir(home)
    assert refs(co, "striped legs") == ["obsidian:brain/Okapis#L1-1"]
    assert {row["source"] for row in co("source", "list", "--json").json} == {"obsidian:brain"}
    assert "--project: this folder is not in a project" in co("add", str(docs), "--project").err
    monkeypatch.chdir(project)
    monkeypatch.setenv("CO_TIERS", "off")  # your own vault is not searched here
    assert co("add", str(brain), "--json").json[0]["vault"] == str(vault)


def test_sources_of_two_vaults_keep_their_names_apart_and_no_file_is_found_twice(
    co: Co, project: Path, home: Path, brain: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    docs, other = tmp_path / "docs", tmp_path / "other" / "docs"
    for folder in (docs / "deep", other):
        folder.mkdir(parents=True)
    (docs / "deep" / "zebras.md").write_text("Zebras have stripes.\n")
    co("init")
    co("add", str(docs / "deep"), "--name", "docs", "--project")

    monkeypatch.chdir(home)
    assert "created folder:docs-2" in co("add", str(docs)).out
    assert "created folder:docs-3" in co("add", str(other)).out
    co("add", str(brain))
    monkeypatch.chdir(project)
    assert refs(co, "zebras stripes") == ["folder:docs/zebras.md#L1-1", "obsidian:brain/Okapis#L1-1"]
    assert refs(co, "zebras", "--backend", "grep") == ["folder:docs/zebras.md#L1-1"]
    again = co("add", str(brain), "--project")
    assert (again.code, "is in obsidian:brain of your own vault" in again.err) == (2, True)
    removed = co("source", "remove", "brain")
    assert "it was a source of your own vault" in removed.out
    monkeypatch.chdir(home)
    assert "obsidian" not in co("source", "list").out


def test_a_skill_added_to_your_own_vault_is_offered_in_every_project(
    co: Co, project: Path, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    skill = home / "skills" / "pdf-forms"
    skill.mkdir(parents=True)
    (skill / "SKILL.md").write_text("---\nname: pdf-forms\ndescription: Fill in PDF forms.\n---\nSteps.\n")
    monkeypatch.chdir(home)
    co("add", str(home / "skills"), "--as", "skill")

    monkeypatch.chdir(project)
    assert "pdf-forms" in co("skill", "list").out
