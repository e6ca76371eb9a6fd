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


@pytest.mark.slow
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


SECOND = COPY.replace("091200", "101200")


@pytest.mark.medium
@pytest.mark.parametrize(("key", "text"), [("f", "Ask at the quay."), ("a", THERE)], ids=["keep", "take"])
def test_the_review_shows_the_merged_text_next_to_the_second_copy(
    co: Co, vault: Vault, editor: Callable[..., None], key: str, text: str
) -> None:
    for path in ("memories/ferry.md", COPY, SECOND):
        vault.write(path, f"{HERE if path == 'memories/ferry.md' else THERE}\n")
    editor("echo 'Ask at the quay.' > $1")

    with terminal(co.folder, "note", "review", "--only", "conflict") as screen:
        screen.expect("keep both")
        screen.sendline("e")
        screen.expect("2 of 2")
        screen.expect("keep both")
        shown = plain(screen.before)
        screen.sendline(key)
        screen.expect("memory:ferry (keeps|has)")
        screen.read()

    assert "-Ask at the quay." in shown
    assert vault.read("memories/ferry.md").strip() == text
    assert vault.notes() == ["memories/ferry.md"]
    assert any("Ask at the quay." in path.read_text() for path in vault.root.rglob("*.md"))


@pytest.mark.medium
@pytest.mark.parametrize("key", ["a", "e"])
@pytest.mark.parametrize(
    "text", [HERE, f"<<<<<<< HEAD\n{HERE}\n=======\n{THERE}\n>>>>>>> other\n"], ids=["a copy", "markers of git"]
)
def test_a_version_is_not_written_over_a_note_that_was_changed_since_the_review(
    co: Co, vault: Vault, editor: Callable[..., None], key: str, text: str
) -> None:
    vault.write("memories/ferry.md", text)
    if text == HERE:
        vault.write(COPY, THERE)
    editor("echo 'Ask at the quay.' > $1")
    changed = text.replace("at seven", "at eight")

    with terminal(co.folder, "note", "review", "--only", "conflict") as screen:
        screen.expect("merge in your editor")
        vault.write("memories/ferry.md", changed)
        screen.sendline(key)
        screen.expect("was changed since: nothing was done; run the review again")
        screen.sendline("q")
        screen.read()

    assert vault.read("memories/ferry.md") == changed


@pytest.mark.medium
@pytest.mark.parametrize(
    "text", ["", f"<<<<<<< HEAD\n{HERE}\n=======\n>>>>>>> other\n"], ids=["a copy", "markers of git"]
)
def test_the_review_keeps_this_version_if_the_other_one_is_empty(co: Co, vault: Vault, text: str) -> None:
    vault.write("memories/ferry.md", text or f"{HERE}\n")
    if not text:
        vault.write(COPY, "")

    with terminal(co.folder, "note", "review", "--only", "conflict") as screen:
        screen.expect("keep this version")
        screen.sendline("f")
        screen.expect("memory:ferry keeps its version")
        screen.read()

    assert vault.notes() == ["memories/ferry.md"]
    assert vault.read("memories/ferry.md") == f"{HERE}\n"


@pytest.mark.medium
@pytest.mark.parametrize("key", "fae")
def test_a_version_in_another_encoding_than_utf_8_keeps_its_bytes(
    co: Co, vault: Vault, editor: Callable[..., None], key: str
) -> None:
    here, there = ("Die Fähre fährt um sieben.\n".encode("cp1252"), "Die Fähre fährt um neun.\n".encode("cp1252"))
    note, copy = vault.root / "memories/ferry.md", vault.root / COPY
    note.parent.mkdir(exist_ok=True)
    note.write_bytes(here)
    copy.write_bytes(there)
    editor("grep -v '^[<=>]' $1 > $1.new && mv $1.new $1")

    with terminal(co.folder, "note", "review", "--only", "conflict") as screen:
        screen.expect("keep both")
        screen.sendline(key)
        screen.expect("memory:ferry (keeps|has)|save both as UTF-8 first")
        shown = plain(screen.after)
        screen.sendline("q")
        screen.read()

    assert note.read_bytes() == (there if key == "a" else here)
    assert copy.exists() is ("UTF-8" in shown) is (key == "e")


@pytest.mark.parametrize(
    ("name", "text", "is_copy"),
    [
        ("ferry 2.md", THERE, False),
        ("ferry (1).md", HERE, False),
        ("ferry-DESKTOP-1A2B3C.md", THERE, False),
        ("ferry (Mara's conflicted copy 2026-11-18).md", "Something else.", True),
        ("ferry (conflicted copy 2026-11-18 091200).md", THERE, True),
        ("boat (conflicted copy 2026-11-18 091200).md", THERE, False),
    ],
)
def test_a_file_is_a_copy_only_if_its_name_says_so_clearly_and_the_other_file_is_there(
    co: Co, vault: Vault, name: str, text: str, is_copy: bool
) -> None:
    vault.write("memories/ferry.md", HERE)
    vault.write(f"memories/{name}", text)

    assert (len(co("list", "--json").json) == 1) is is_copy


@pytest.fixture
def meetings(vault: Vault) -> Vault:
    """Three notes of one template."""
    for number, decision in (("", "The quay gets a lamp."), (" 2", "Bex drives."), (" 3", "The shed is painted.")):
        day = f"2026-11-0{number or '1'}".replace("0 ", "0")
        text = f"# Meeting\n\nDate: {day}\nPeople: Mara, Bex, Lind\nPlace: the shed\n\nAgenda, decisions:\n{decision}\n"
        vault.write(f"articles/Meeting{number}.md", text)
    return vault


def test_notes_of_one_template_are_all_searched_and_only_the_review_asks_about_them(co: Co, meetings: Vault) -> None:
    meetings.write("articles/Meeting 4.md", "The ferry was late.")

    assert "article:Meeting 2" in refs(co, "who drives")[0]
    assert "article:Meeting 3" in refs(co, "which building is painted")[0]
    assert len(co("list", "--json").json) == 4
    assert co("source", "skipped", "--json").json == []
    found = co("note", "review", "--json").json["findings"]
    about = [(item["title"], item["copy"], item["refs"]) for item in found if item["kind"] == "conflict"]
    assert about == [
        ("Meeting", f"articles/Meeting {n}.md", ["article:Meeting", f"article:Meeting {n}"]) for n in (2, 3)
    ]
    assert not [item for item in found if item["kind"] in ("near-duplicate", "possible-conflict")]


@pytest.mark.medium
def test_the_review_asks_once_about_two_notes_that_are_kept_and_forgets_one_that_is_a_copy(
    co: Co, meetings: Vault
) -> None:
    with terminal(co.folder, "note", "review", "--only", "conflict") as screen:
        for key in "kf":
            screen.expect("keep both")
            screen.sendline(key)
        screen.expect("keeps its version")
        screen.read()

    assert co("note", "review", "--only", "conflict", "--json").json["findings"] == []
    assert meetings.notes() == ["articles/Meeting 2.md", "articles/Meeting.md"]
    assert len(co("list", "--json", "--no-sync").json) == 2


def test_copies_with_the_same_text_are_two_findings_that_say_so(co: Co, vault: Vault) -> None:
    for name in ("", ".sync-conflict-20261118-091200-ABC1234", ".sync-conflict-20261119-101200-ABC1234"):
        vault.write(f"memories/ferry{name}.md", HERE)

    found = co("note", "review", "--only", "conflict", "--json").json["findings"]

    assert len({item["key"] for item in found}) == 2
    assert all(item["reason"].endswith("is another version of it, with the same text") for item in found)


def test_a_conflict_of_git_in_the_frontmatter_is_shown(co: Co, vault: Vault) -> None:
    sides = "<<<<<<< HEAD\ntags: [boat]\n=======\ntags: [ferry]\n>>>>>>> other"
    vault.write("memories/ferry.md", f"---\ntitle: Ferry\n{sides}\n---\n{HERE}\n")
    vault.write("memories/quay.md", "---\ntitle: [Quay\n---\nNo conflict, only a mistake.\n")

    [item] = co("note", "review", "--only", "conflict", "--json").json["findings"]

    assert "tags: [boat]" in item["replaced"]
    assert "tags: [ferry]" in item["proposed"]


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
