"""A word that only one note has finds that note, in a hybrid search too."""

from __future__ import annotations

from pathlib import Path

from co_cli import KnowledgeBase
from tests.command import Co
from tests.vault import Vault

TOPICS = "tides clocks bells harbours letters invoices gulls varnish radios ladders".split()


def short_notes(vault: Vault) -> None:
    for number in range(60):
        topic = TOPICS[number % len(TOPICS)]
        vault.write(f"memories/n{number}.md", f"Serial numbers of {topic} are written in the day book, entry {number}.")


def long_note(vault: Vault, code: str) -> None:
    words = " ".join(f"{TOPICS[place % len(TOPICS)]} minute{place % 37}" for place in range(300))
    vault.write(f"memories/minutes-{code.lower()}.md", f"---\ntitle: Minutes\n---\n{words} {code} {words}\n")


def test_a_rare_word_in_a_long_note_comes_first(kb: KnowledgeBase, vault: Vault) -> None:
    short_notes(vault)
    codes = ["INC20410", "ERR4705QX", "TK99812"]
    for code in codes:
        long_note(vault, code)
    kb.sync()

    for code in codes:
        assert kb.search(code, limit=3).hits[0].ref == f"memory:minutes-{code.lower()}"


def test_another_vault_in_the_same_file_does_not_hide_it(
    kb: KnowledgeBase, vault: Vault, data_dir: Path, tmp_path: Path
) -> None:
    vault.write("memories/one.md", "The word zanzibarian stands here only.")
    short_notes(vault)
    kb.sync()
    other = tmp_path / "other"
    other.mkdir()
    neighbour = Vault(other)
    for number in range(150):
        neighbour.write(f"memories/o{number}.md", f"Quite other things about {number}. " * 30)
    with KnowledgeBase.open(other, data_dir) as second:
        second.sync()

    assert kb.search("zanzibarian", limit=1).hits[0].ref == "memory:one"


def test_a_question_that_quotes_what_no_note_has_is_answered_without_the_quotes(
    kb: KnowledgeBase, vault: Vault, co: Co
) -> None:
    vault.write("memories/song.md", "Mara plays Vivaldi on the violin every winter evening.")
    vault.write("memories/soup.md", "Soup is on Thursdays.")
    kb.sync()
    question = 'would Mara enjoy the song "The Four Seasons" by Vivaldi?'

    found = kb.search(question)

    assert found.hits[0].ref == "memory:song"
    assert found.understood == ("no note has the quoted words as they are",)
    assert "no note has the quoted words as they are" in co("search", question).out
    assert kb.search('what did "Mara plays" on the violin').understood == ()  # a note has it, and must


def test_a_phrase_with_few_other_words_is_required(kb: KnowledgeBase, vault: Vault) -> None:
    vault.write("memories/song.md", "Mara plays Vivaldi on the violin.")
    kb.sync()

    for query in ('"violin Mara"', 'the "violin Mara"', '"violin Mara" Vivaldi', '"violin Mara" Vivaldi plays -soup'):
        assert kb.search(query).state == "absent"
