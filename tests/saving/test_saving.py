"""A save is a duplicate only if the texts are equal; otherwise it is a new note, and similar memories are named."""

from __future__ import annotations

from pathlib import Path

import pytest

from co_cli.entrance.knowledge_base import KnowledgeBase
from co_cli.ground.settings import load_settings
from co_cli.notes.subjects import title_from
from tests.folder import Vault

BACKUP = "The nightly backup of the harbour database runs at dawn on the old server in the loft."
DIFFERENT_THINGS = [
    ("Mara lives in Lisbon with her two cats.", "Maria lives in Lisbon with her two cats."),
    ("Jon prefers tea in the morning.", "Joan prefers tea in the morning."),
    ("The invoice of Brandt is due in May.", "The invoice of Brand is due in May."),
    ("Anne's birthday is on 3 May.", "Anna's birthday is on 3 May."),
    ("The staging server is called gull.", "The staging server is called gulls."),
    ("The parser is written in C.", "The parser is written in C++."),
    ("Room 12 holds eight people and has a projector.", "Room 13 holds eight people and has a projector."),
    ("The key of the north shed hangs in the kitchen.", "The key of the south shed hangs in the kitchen."),
    ("Use version 1.10 of the driver in production.", "Use version 1.1 of the driver in production."),
    ("Dr. Lee sees patients on the second floor.", "Dr. Leigh sees patients on the second floor."),
    ("Scripts begin with set -e here.", "Scripts begin with set +e here."),
    ("Alert when load < limit on blue.", "Alert when load > limit on blue."),
    ("The sensor reads 5 metres at dawn.", "The sensor reads -5 metres at dawn."),
    ("Lunch may cost $40 a head.", "Lunch may cost €40 a head."),
    ("Compare refs with == in the store.", "Compare refs with != in the store."),
    ("✅ deploy on a quiet day", "❌ deploy on a quiet day"),
    ("Green follows after ten quiet minutes.", "Green follows after twenty quiet minutes."),
    ("We deploy on Tuesday morning.", "We deploy on Thursday morning."),
]
CONTRADICTIONS = [
    ("We indent with tabs.", "We indent with spaces."),
    ("The standup is on Tuesdays.", "The standup is on Wednesdays."),
    ("Alice owns the deploy key.", "Bob owns the deploy key."),
    ("Deploy on Fridays.", "Never deploy on Fridays."),
]


def test_the_same_words_again_are_a_duplicate_and_write_nothing(kb: KnowledgeBase, vault: Vault) -> None:
    first = kb.remember(BACKUP, tags=["ops"])
    before = vault.files()
    text = vault.read(before[0])

    for again in (BACKUP, f"**{BACKUP.upper()}**", f"  {BACKUP[:-1]}!\n", BACKUP.replace(" ", "\n"), f"- {BACKUP}"):
        repeated = kb.remember(again, tags=["database"], category="fact", fields={"importance": 0.9})
        assert (repeated.outcome, repeated.ref, repeated.related) == ("duplicate", first.ref, ())
        assert repeated.detail == f"{first.ref} says this already"
    assert vault.files() == before
    assert vault.read(before[0]) == text


@pytest.mark.medium
def test_one_different_word_makes_another_note_and_the_first_keeps_every_byte(kb: KnowledgeBase) -> None:
    for one, other in (*DIFFERENT_THINGS, *CONTRADICTIONS):
        first = kb.remember(one)
        before = Path(first.path).read_bytes()

        second = kb.remember(other)

        assert (second.outcome, Path(first.path).read_bytes()) == ("created", before)
        assert [kb.note(saved.ref).body.strip() for saved in (first, second)] == [one, other]
        if (one, other) in CONTRADICTIONS:
            assert first.ref in [found.ref for found in second.related]
        elif (one, other) in DIFFERENT_THINGS[:4]:
            assert second.related == (), "another name is another subject"


def test_related_says_why_by_words_or_by_meaning(kb: KnowledgeBase) -> None:
    words = kb.remember("The office wifi is slow on rainy days in the north wing.")
    meaning = kb.remember("Pull requests need two approvals.")

    by_words = kb.remember("The office wifi is slow on rainy days in the south wing.").related
    by_meaning = kb.remember("A pull request needs 2 approvals.").related

    assert [(one.ref, one.why) for one in by_words] == [(words.ref, "90% the same words")]
    assert [(one.ref, one.why) for one in by_meaning] == [(meaning.ref, "close in meaning")]


@pytest.mark.slow
@pytest.mark.medium
@pytest.mark.usefixtures("languages")
def test_with_the_extra_a_german_memory_in_other_words_is_related(kb: KnowledgeBase) -> None:
    first = kb.remember("Die Besprechung beginnt montags um neun Uhr.")
    kb.remember("Die Katze heißt Miso.")
    kb.embed()

    german = kb.remember("Die Besprechung fängt am Montag um 9 Uhr an.")

    assert [(one.ref, one.why) for one in german.related] == [(first.ref, "close in meaning")]
    assert kb.remember("Der Hund heißt Udon.").related == ()


def test_what_has_little_in_common_is_not_related(kb: KnowledgeBase) -> None:
    kb.remember("Bex likes the green kettle.")
    kb.remember("The cat is called Miso.")

    assert kb.remember("Anselm sends invoices on Mondays.").related == ()
    assert kb.remember("The dog is called Udon.").related == ()


def test_at_most_three_memories_are_named(kb: KnowledgeBase) -> None:
    for city in "Lisbon Porto Faro Braga".split():
        kb.remember(f"Mara lives in {city} with her two cats.")

    assert len(kb.remember("Mara lives in Evora with her two cats.").related) == 3


def test_a_title_is_the_subject_of_a_text_that_names_none(kb: KnowledgeBase) -> None:
    kb.remember("Prefers tea in the morning, without sugar.", title="Mara")

    assert kb.remember("Prefers coffee in the morning, without sugar.", title="Bex").related == ()
    assert [one.ref for one in kb.remember("Prefers coffee in the morning without sugar.", title="Mara").related] == [
        "memory:mara"
    ]


def test_only_memories_about_the_same_subject_are_superseded(kb: KnowledgeBase) -> None:
    other, old = kb.remember("Bo prefers metric units."), kb.remember("Ana prefers metric units.")

    new = kb.remember("Ana prefers imperial units.", on_related="supersede")

    assert kb.note(new.ref).supersedes == (old.ref,)
    assert kb.outdated(kb.note(other.ref)) is None


@pytest.mark.parametrize(
    ("old", "decoy", "new"),
    [
        (
            "The sign at the gate of the park says no dogs.",
            "It says no cats.",
            'The sign at the gate of the park says "no cats".',
        ),
        ("Run the backup of gull with -verbose on.", "A backup of gull.", "Run the backup of gull with -verbose off."),
        ("Backups of gull run at dusk daily.", "Other things. #ops", "Backups of gull run at dusk #ops."),
        ("The standup has been at nine since May.", "A standup.", "The standup has been at nine since Monday."),
    ],
)
def test_phrases_exclusions_tags_and_dates_in_a_memory_are_plain_text(
    kb: KnowledgeBase, old: str, decoy: str, new: str
) -> None:
    first = kb.remember(old, fields={"created": "2020-01-01"})
    kb.remember(decoy, on_related="keep")

    assert first.ref in [one.ref for one in kb.remember(new).related]


@pytest.mark.parametrize(("threshold", "related"), [("0.75", True), ("0.95", False)])
def test_the_threshold_is_a_setting(vault: Vault, data_dir: Path, threshold: str, related: bool) -> None:
    environ = {"CO_KNOWLEDGE_DUPLICATE_THRESHOLD": threshold, "CO_KNOWLEDGE_EMBEDDING_PROVIDER": "none"}
    settings = load_settings({"vault": str(vault.root), "data_dir": str(data_dir)}, environ)

    with KnowledgeBase.open(settings=settings) as kb:
        kb.remember(BACKUP)

        assert bool(kb.remember(BACKUP.replace("dawn", "dusk")).related) is related


def test_a_note_that_was_edited_since_is_compared_as_it_is_now(kb: KnowledgeBase, vault: Vault) -> None:
    first = kb.remember(BACKUP)
    path = "memories/" + Path(first.path).name
    vault.write(path, vault.read(path) + "\nSince March it also copies the pictures to the second shed.\n")

    second = kb.remember(BACKUP)

    assert second.outcome == "created"
    assert "second shed" in vault.read(path)


def test_a_note_whose_file_is_gone_is_neither_a_duplicate_nor_related(kb: KnowledgeBase, vault: Vault) -> None:
    first = kb.remember(BACKUP)
    vault.delete("memories/" + Path(first.path).name)

    assert kb.remember(BACKUP.replace("dawn", "dusk")).related == ()
    assert kb.remember(BACKUP).outcome == "created"


@pytest.mark.parametrize("now", ["too long", "a link out of the vault"])
def test_a_note_that_cannot_be_read_now_does_not_stop_another_save(kb: KnowledgeBase, tmp_path: Path, now: str) -> None:
    file = Path(kb.remember(BACKUP).path)
    file.write_text("x" * 2_000_001)
    if now != "too long":
        file.rename(tmp_path / "elsewhere.md")
        file.symlink_to(tmp_path / "elsewhere.md")

    again, other = kb.remember(BACKUP), kb.remember(BACKUP.replace("dawn", "dusk"))

    assert (again.outcome, other.outcome) == ("created", "created")
    assert again.ref in [one.ref for one in other.related]


def test_a_title_made_from_the_text_loses_list_markers_and_keeps_numbers() -> None:
    for text, title in (
        ("100% of the budget is spent.", "100% of the budget is spent"),
        ("3 blind mice live in the loft", "3 blind mice live in the loft"),
        ("1.5 litres a day", "1.5 litres a day"),
        (".5 litres a day", ".5 litres a day"),
        ("-5 degrees at dawn", "-5 degrees at dawn"),
        ("1. Stop the service", "Stop the service"),
        ("2) Copy the files", "Copy the files"),
        ("## Blue before green", "Blue before green"),
        ("> - **Blue** before green", "Blue before green"),
        ("My landlord is Mr. Hale. He is kind.", "My landlord is Mr. Hale"),
        ("Dr. Lee sees patients on Mondays.", "Dr. Lee sees patients on Mondays"),
    ):
        assert title_from(text) == title


@pytest.mark.parametrize(
    ("text", "category"),
    [
        ("Mara prefers tea in the morning.", "preference"),
        ("On Monday we decided to ship on Fridays.", "decision"),
        ("How to roll back: run the last tag again.", "procedure"),
        ("Jon's birthday is on 3 May.", "person"),
        ("The staging server is called gull.", "fact"),
        ("We decided how to greet whoever prefers tea.", "decision"),
        ("The door code is 1111.", None),
        ("The config lives in the loft, likewise the preferences.", None),
    ],
)
def test_a_save_without_a_category_gets_one_from_its_words_marked_as_automatic(
    kb: KnowledgeBase, text: str, category: str | None
) -> None:
    note = kb.note(kb.remember(text).ref)

    assert (note.category, note.metadata.get("auto_category"), "category" in note.metadata) == (
        category,
        category,
        False,
    )
    for backend in ("hybrid", "grep"):
        found = kb.search(text, category=category or "fact", backend=backend)
        assert bool(found.hits) is bool(category)


def test_the_users_own_category_wins_over_the_automatic_one(kb: KnowledgeBase, vault: Vault) -> None:
    own = kb.remember("Mara prefers tea.", category="gossip").ref
    assert "auto_category" not in kb.note(own).metadata

    vault.write("memories/both.md", "---\ncategory: mine\nauto_category: decision\n---\nBoth.\n")
    vault.write("memories/guessed.md", "---\nauto_category: Decision\n---\nGuessed elsewhere.\n")
    kb.sync()
    assert [one.category for one in kb.notes(category="decision")] == ["Decision"]
    assert [one.ref for one in kb.notes(category="mine")] == ["memory:both"]

    guessed = kb.remember("Jon prefers coffee.").ref
    kb.update(guessed, category="mine")
    assert "auto_category" not in kb.note(guessed).metadata
    kb.update(guessed, category="")
    assert kb.note(guessed).category is None


def test_an_automatic_category_follows_the_text_and_one_from_elsewhere_stays(kb: KnowledgeBase, vault: Vault) -> None:
    ref = kb.remember("Jon prefers coffee.").ref
    kb.update(ref, "We decided to buy coffee for Jon.")
    assert kb.note(ref).category == "decision"
    kb.update(ref, "Coffee for Jon is in the loft.")
    assert (kb.note(ref).category, "auto_category" in kb.note(ref).metadata) == (None, False)

    vault.write("memories/guessed.md", "---\nauto_category: idea\n---\nJon prefers tea.\n")
    kb.sync()
    kb.update("memory:guessed", "We decided on tea.")
    assert kb.note("memory:guessed").category == "idea"
