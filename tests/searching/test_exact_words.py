"""A word that only one note has finds that note, in a hybrid search too."""

from __future__ import annotations

from pathlib import Path

import pytest

from co_cli import KnowledgeBase
from co_cli.tools import Toolbox
from tests.command import Co
from tests.folder import Vault

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


@pytest.mark.medium
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


def test_a_note_with_all_words_comes_before_a_title_with_one(kb: KnowledgeBase, vault: Vault, co: Co) -> None:
    vault.write("memories/harbour.md", "---\ntitle: Harbour\n---\nThe harbour, the harbour and again the harbour.")
    vault.write("memories/both.md", f"{'Of ships and other things. ' * 20} A zeppelin was seen above the harbour.")
    for number in range(120):  # more than a search looks at
        vault.write(f"memories/h{number}.md", f"Harbour {number}")
    kb.sync()

    for backend in ("fts5", "hybrid"):
        found = co("search", "zeppelin harbour", "--backend", backend, "--json").json
        assert found["hits"][0]["ref"] == "memory:both", backend
    assert len(kb.search("zeppelin harbour", limit=20, backend="fts5").hits) == 20, "those with most words follow"


def test_a_note_with_two_of_three_words_comes_before_those_with_one(kb: KnowledgeBase, vault: Vault) -> None:
    for name in ("kato", "miren", "sol"):
        vault.write(f"memories/{name}.md", f"---\ntitle: {name}\n---\n{name} keeps the spare keys in a drawer.")
    vault.write("memories/pair.md", "Last summer the whole street met for dinner, and Kato wrote to Miren about it.")
    kb.sync()

    assert kb.search("kato miren sol", backend="fts5").hits[0].ref == "memory:pair"
    hits = kb.search("kato miren sol", backend="hybrid", read=False).hits
    assert max(hits, key=lambda hit: hit.signals["words"]).ref == "memory:pair"


def test_a_part_of_a_word_is_found_when_nothing_else_is(kb: KnowledgeBase, vault: Vault, co: Co) -> None:
    short_notes(vault)
    vault.write("memories/feeds.md", "---\ntitle: Feeds\n---\nTwo letters about productivityhacks and gardens.")
    kb.sync()

    for backend in ("hybrid", "fts5"):
        lines = co("search", "ivityhack", "--backend", backend).out.splitlines()
        assert lines[0] == "1. Feeds  memory:feeds"
        assert lines[2].startswith("   a part of: productivityhacks \u00b7 ")
        assert lines[3:] == ['no note has the word "ivityhack": searched for words with this part: "productivityhacks"']
    found = kb.search("ivityhack")
    assert [(hit.ref, hit.part_of, hit.weak) for hit in found.hits] == [("memory:feeds", ("productivityhacks",), False)]
    assert found.hits[0].snippet[slice(*found.hits[0].marks[0])] == "productivityhacks"
    assert found.state == "found"
    assert 'has "productivityhacks"' in co("note", "why", "ivityhack", "memory:feeds").out
    assert kb.search("IVITYHACK arden").hits[0].part_of == ("productivityhacks", "gardens")


def test_a_part_of_a_word_is_no_misspelling_of_another(kb: KnowledgeBase, co: Co, vault: Vault) -> None:
    vault.write("memories/releases.md", "Odalys has the last word on releases.")
    vault.write("memories/leave.md", "Everybody has thirty days of leave; ask about releases of pay.")
    kb.sync()

    lone, with_another = kb.search("dalys"), kb.search("dalys releases")

    assert [(hit.ref, hit.part_of) for hit in lone.hits] == [("memory:releases", ("odalys",))]
    assert with_another.hits[0].ref == "memory:releases"
    assert with_another.understood == ('no note has "dalys": searched for "odalys"',)
    assert kb.search("dayys").understood == ('no note has "dayys": searched for "days"',)


def test_words_of_a_tiny_vault_count_as_much_as_those_of_a_large_one(
    kb: KnowledgeBase, vault: Vault, tmp_path: Path
) -> None:
    """No word is rare in a folder of one file, and yet it has all of them."""
    short_notes(vault)
    vault.write("memories/spring.md", "In spring the serial number of the engine is checked.")
    folder = tmp_path / "boat"
    folder.mkdir()
    (folder / "engine.md").write_text("The impeller of the engine is changed in spring; the spare is in the toolbox.")
    kb.local.sources.add(str(folder))
    kb.sync()

    for meaning in (True, False):
        hits = kb.search("impeller spring engine toolbox serial", meaning=meaning).hits
        assert hits[0].ref.startswith("folder:boat/engine.md")
        assert hits[0].signals["words"] > hits[1].signals["words"] > 0


def test_why_names_the_words_that_were_searched_for(kb: KnowledgeBase, co: Co, vault: Vault) -> None:
    vault.write("memories/keys.md", "Every request has an idempotency key.")
    kb.sync()

    assert '"idempotency"' in co("note", "why", "idempotncy key", "memory:keys").out
    assert "lacks" not in co("note", "why", "idempotncy key", "memory:keys").out


def test_a_part_of_a_word_is_not_looked_for_where_more_is_said(kb: KnowledgeBase, vault: Vault) -> None:
    short_notes(vault)
    vault.write("memories/feeds.md", "A letter about productivityhacks.")
    vault.write("memories/hack.md", "The hack of the year.")
    kb.sync()

    for query in ("hacks", "ivityhack letter", "ivityhack zeppelin", '"ivityhack"', "ivityhack -letter", "vi"):
        assert all(not hit.part_of for hit in kb.search(query).hits), query
    assert kb.search("ivityhack", tags=["nothing"]).hits == []
    assert kb.search("xivityhack").state == "absent"


SIGNS = {
    "\U0001f375": "tea",
    "\u2764": "heart",
    "\u2764\ufe0f": "heart",
    "++": "code",
    "->": "code",
    '"++"': "code",
    "\U0001f375 =>": "tea",
    "tag:drinks \U0001f375": "tea",
}


@pytest.mark.parametrize("query", SIGNS)
def test_signs_that_are_no_words_are_looked_up_as_text(kb: KnowledgeBase, vault: Vault, co: Co, query: str) -> None:
    vault.write("memories/tea.md", "---\ntags: [drinks]\n---\nMatcha \U0001f375 => at four.")
    vault.write("memories/heart.md", "We \u2764\ufe0f harbours.")
    vault.write("memories/code.md", "In C, i++ and p->x are common.")
    vault.write("memories/cocoa.md", "---\ntags: [drinks]\n---\nCocoa, at five?")
    kb.sync()
    ref = f"memory:{SIGNS[query]}"

    for backend in ("hybrid", "fts5", "grep"):
        found = kb.search(query, backend=backend)
        assert (found.state, [hit.ref for hit in found.hits]) == ("found", [ref]), backend
    assert ref in co("search", "--", query).out
    assert f'<note ref="{ref}"' in Toolbox(kb).call("search_knowledge", {"query": query}).text
    assert "Rank 1" in co("note", "why", "--", query, ref).out
    assert "lacks" not in co("note", "why", "--", query, "memory:cocoa").out


def test_signs_next_to_words_need_not_be_there(kb: KnowledgeBase, vault: Vault) -> None:
    vault.write("memories/tea.md", "Matcha \U0001f375 at four.")
    vault.write("memories/cake.md", "Cake at five.")
    kb.sync()

    assert kb.search("\U0001f375 cake -> five", backend="fts5").hits[0].ref == "memory:cake"
    assert kb.search("\U0001f95f").state == kb.search("?").state == "absent"
