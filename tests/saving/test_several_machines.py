"""One vault on two machines: git, and a synchroniser that keeps both files of a conflict, as Syncthing does."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.cli.screen import plain, terminal
from tests.command import Co, commit, git, refs
from tests.folder import Vault

HERE, THERE = "The ferry leaves at seven from the north quay.", "The ferry leaves at nine from the north quay."
COPY = "memories/ferry.sync-conflict-20261118-091200-ABC1234.md"


def synchronise(here: Path, there: Path, seen: dict[str, bytes]) -> None:
    """What Syncthing does with two folders: the file of one machine wins, and the other's is kept beside it."""
    for name in {str(path.relative_to(root)) for root in (here, there) for path in root.rglob("*.md")}:
        left, right = (root / name for root in (here, there))
        texts = [file.read_bytes() if file.exists() else None for file in (left, right)]
        changed = [text != seen.get(name) for text in texts]
        if all(changed) and None not in texts and texts[0] != texts[1]:
            for root in (here, there):
                (root / name.replace(".md", ".sync-conflict-20261118-091200-ABC1234.md")).write_bytes(texts[1] or b"")
        text = texts[0] if changed[0] else texts[1]
        for file in (left, right):
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_bytes(text or b"")
        seen[name] = text or b""


@pytest.fixture
def machines(co: Co, vault: Vault, tmp_path: Path) -> tuple[Vault, Vault]:
    """Two machines that have changed the same note, and each another one, since they last met."""
    other, seen = Vault(tmp_path / "other machine"), dict[str, bytes]()
    vault.write("memories/ferry.md", "The ferry leaves at six from the north quay.")
    synchronise(vault.root, other.root, seen)
    vault.write("memories/ferry.md", HERE)
    other.write("memories/ferry.md", THERE)
    vault.write("memories/mara.md", "Mara has the keys.")
    other.write("memories/bex.md", "Bex has the van.")
    synchronise(vault.root, other.root, seen)
    return vault, other


def test_a_copy_of_a_synchroniser_is_no_note_and_the_review_shows_both_versions(
    co: Co, machines: tuple[Vault, Vault]
) -> None:
    for machine in machines:
        place = ("--vault", str(machine.root), "--data-dir", f"{machine.root}-data")
        assert sorted(refs(co, "ferry quay keys van", *place)) == ["memory:bex", "memory:ferry", "memory:mara"]
        skipped = co("source", "skipped", "--json", *place).json
        assert [row["path"] for row in skipped] == [COPY]
        [item] = co("note", "review", "--only", "conflict", "--json", *place).json["findings"]
        assert (item["refs"], item["copy"], item["actions"]) == (
            ["memory:ferry"], COPY, ["accept", "forget", "edit", "keep"],
        )  # fmt: skip
        assert (item["replaced"].strip(), item["proposed"].strip()) == (HERE, THERE)


@pytest.mark.medium
@pytest.mark.parametrize(
    ("key", "text", "left"),
    [
        ("a", THERE, ["memories/bex.md", "memories/ferry.md", "memories/mara.md"]),
        ("f", HERE, ["memories/bex.md", "memories/ferry.md", "memories/mara.md"]),
        ("k", HERE, ["memories/bex.md", "memories/ferry-version-2.md", "memories/ferry.md", "memories/mara.md"]),
        ("e", "Ask at the quay.", ["memories/bex.md", "memories/ferry.md", "memories/mara.md"]),
    ],
    ids=["take the other", "keep this", "keep both", "merge"],
)
def test_the_review_takes_one_version_keeps_both_or_merges_them(
    co: Co, machines: tuple[Vault, Vault], editor: Callable[..., None], key: str, text: str, left: list[str]
) -> None:
    editor("grep -q '<<<<<<< this version' $1 && echo 'Ask at the quay.' > $1")

    with terminal(co.folder, "note", "review", "--only", "conflict") as screen:
        screen.expect("keep both")
        shown = plain(screen.before)
        screen.sendline(key)
        screen.expect("memory:ferry|both are kept")
        screen.read()

    assert f"-{HERE}" in shown
    assert f"+{THERE}" in shown
    assert machines[0].notes() == left
    assert machines[0].read("memories/ferry.md").strip() == text
    assert co("note", "review", "--only", "conflict", "--json").json["findings"] == []
    if key == "k":
        assert THERE in co("show", "memory:ferry-version-2").out


@pytest.mark.parametrize(
    ("name", "text", "is_copy"),
    [
        ("ferry 2.md", THERE, True),
        ("ferry (1).md", HERE, True),
        ("ferry-DESKTOP-1A2B3C.md", THERE, True),
        ("ferry (Mara's conflicted copy 2026-11-18).md", "Something else.", True),
        ("ferry (conflicted copy 2026-11-18 091200).md", THERE, True),
        ("ferry 2.md", "What the second ferry costs: four crowns.", False),
        ("ferry 2026.md", THERE, False),
        ("boat 2.md", HERE, False),
    ],
)
def test_a_file_with_a_number_is_a_copy_only_beside_a_file_that_says_nearly_the_same(
    co: Co, vault: Vault, name: str, text: str, is_copy: bool
) -> None:
    vault.write("memories/ferry.md", HERE)
    vault.write(f"memories/{name}", text)

    assert (len(co("list", "--json").json) == 1) is is_copy


def test_a_note_that_git_could_not_merge_is_shown_with_both_versions(co: Co, vault: Vault, tmp_path: Path) -> None:
    vault.write("memories/ferry.md", "---\ntags: [boat]\n---\nThe ferry leaves at six.\n")
    git(vault.root, "init", "-q")
    commit(vault.root, "first")
    git(tmp_path, "clone", "-q", str(vault.root), "other")
    other = Vault(tmp_path / "other")
    other.write("memories/ferry.md", f"---\ntags: [boat]\n---\n{THERE}\n")
    commit(other.root, "there")
    vault.write("memories/ferry.md", f"---\ntags: [boat]\n---\n{HERE}\n")
    commit(vault.root, "here")
    git(vault.root, "pull", "-q", "--no-rebase", "--no-edit", str(other.root), "HEAD", check=False)
    assert "<<<<<<< HEAD" in vault.read("memories/ferry.md")

    [item] = co("note", "review", "--only", "conflict", "--json").json["findings"]

    assert item["replaced"] == f"---\ntags: [boat]\n---\n{HERE}\n"
    assert item["proposed"] == f"---\ntags: [boat]\n---\n{THERE}\n"
    assert item["actions"] == ["accept", "forget", "edit"]
