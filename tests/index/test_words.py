"""Which notes a query finds by words, and in which order."""

from __future__ import annotations

import pytest

from co_cli.index import words
from co_cli.index.connection import Database
from co_cli.index.knowledge_index import KnowledgeIndex
from co_cli.index.match import read_query
from tests.vault import Vault


@pytest.fixture
def team(vault: Vault, index: KnowledgeIndex) -> KnowledgeIndex:
    notes = {
        "blue": "---\ntitle: Deploys\ntags: [ops, ops/deploy]\n---\nThe blue pool takes traffic first.",
        "green": "The green pool follows after ten quiet minutes of traffic.",
        "swim": "The pool in the garden is blue, and nobody swims first.",
        "order": "First the pool, then blue paint.",
        "who": "To be or not to be: that is what they are.",
        "cafe": "Le café naïf de Zürich: crème brûlée, Straße.",
        "code": "Call snake_case_names() with C++ and node.js v1.10 -> done.",
        "party": "🎉 we shipped it",
        "alias": "---\naliases: [Kubernetes, k8s]\ndescription: The cluster of the shop.\n---\nRuns everything.",
    }
    for name, text in notes.items():
        vault.write(f"memories/{name}.md", text)
    index.sync()
    return index


def found(index: KnowledgeIndex, query: str) -> list[str]:
    ids = [match.passage_id for match in index.search(query)]
    return [passage.path.removeprefix("memories/").removesuffix(".md") for passage in index.passages(ids)]


def test_notes_with_all_the_words_stand_before_notes_with_some(team: KnowledgeIndex) -> None:
    names = found(team, "blue pool traffic")

    assert names[0] == "blue"
    assert set(names[1:]) == {"green", "swim", "order"}
    assert [match.all_terms for match in team.search("blue pool traffic")] == [True, False, False, False]


def test_when_no_note_has_all_the_words_some_are_enough(team: KnowledgeIndex) -> None:
    assert set(found(team, "how many minutes does a zebra swim")) == {"green", "swim"}


def test_stop_words_find_nothing_beside_other_words(team: KnowledgeIndex) -> None:
    assert "who" not in found(team, "what is the traffic to be")
    assert found(team, "what are they zebra") == []


def test_stop_words_count_when_there_are_no_others(team: KnowledgeIndex) -> None:
    assert found(team, "to be or not to be") == ["who"]
    assert found(team, '"to be or not to be"') == ["who"]


def test_stop_words_beside_a_phrase_are_not_demanded(team: KnowledgeIndex) -> None:
    assert found(team, 'what is "green pool" for you') == ["green"]


def test_a_phrase_must_stand_as_it_is_typed(team: KnowledgeIndex) -> None:
    assert found(team, '"blue pool"') == ["blue"]
    assert found(team, '"pool blue"') == []
    assert found(team, '"the green pool" quiet') == ["green"]
    assert found(team, '"blue pool" zebra') == ["blue"]  # a word that nobody has demands nothing, here as elsewhere


def test_a_refused_word_does_not_occur(team: KnowledgeIndex) -> None:
    assert set(found(team, "pool -traffic")) == {"swim", "order"}
    assert set(found(team, 'pool -"blue pool"')) == {"green", "swim", "order"}
    assert found(team, "blue-pool") == found(team, "blue pool")


def test_a_query_of_refusals_alone_looks_for_those_words(team: KnowledgeIndex) -> None:
    assert set(found(team, "-traffic")) == {"blue", "green"}


@pytest.mark.parametrize("query", ["cafe", "CAFÉ", "cafe\u0301", "naif", "ZURICH", "creme brulee", "straße"])
def test_case_and_accents_do_not_matter(team: KnowledgeIndex, query: str) -> None:
    assert found(team, query) == ["cafe"]


@pytest.mark.parametrize("query", ["deploying", "deployed", "minute", "follow", "shipping"])
def test_endings_do_not_matter(team: KnowledgeIndex, query: str) -> None:
    assert len(found(team, query)) == 1


@pytest.mark.parametrize("query", ["snake_case_names", "snake case", "c++", "node.js", "v1.10", "1.10"])
def test_names_of_code_are_found(team: KnowledgeIndex, query: str) -> None:
    assert found(team, query)[0] == "code"


@pytest.mark.parametrize(
    ("query", "names"), [("🎉", ["party"]), ("->", ["code"]), ("🚀", []), ("???", []), ("()", ["code"])]
)
def test_a_query_of_symbols_is_looked_for_as_it_is(team: KnowledgeIndex, query: str, names: list[str]) -> None:
    assert found(team, query) == names


@pytest.mark.parametrize("query", ["kubernetes", "K8S", "cluster", "alias"])
def test_titles_aliases_and_descriptions_are_searched_too(team: KnowledgeIndex, query: str) -> None:
    assert found(team, query) == ["alias"]


def test_tags_are_searched_too(team: KnowledgeIndex) -> None:
    assert found(team, "ops") == ["blue"]


def test_a_title_weighs_more_than_a_mention(vault: Vault, index: KnowledgeIndex) -> None:
    vault.write("memories/mention.md", "---\ntitle: Other things\n---\nWe talked about rollback once.")
    vault.write("memories/rollback.md", "---\ntitle: Rollback\n---\nHow we go back to the last release.")
    index.sync()

    assert found(index, "rollback") == ["rollback", "mention"]


def test_a_word_in_a_heading_finds_the_section_below_it(vault: Vault, index: KnowledgeIndex) -> None:
    vault.write(
        "articles/guide.md",
        "# Guide\n\nIntroduction.\n\n## Rolling back\n\n### Fast\n\nPress the button.\n\n## Empty ending\n",
    )
    index.sync()

    (fast,) = index.passages([match.passage_id for match in index.search("rolling")])
    (ending,) = index.passages([match.passage_id for match in index.search('"empty ending"')])

    assert (fast.heading, fast.body) == ("Rolling back > Fast", "Press the button.")
    assert (ending.first_line, ending.last_line) == (11, 11)


def test_a_first_line_that_starts_with_a_tag_is_no_heading(vault: Vault, index: KnowledgeIndex) -> None:
    vault.write("articles/log.md", "#deploy went wrong on Sunday\nand was repaired.\n")
    index.sync()

    assert len(index.search('"went wrong on sunday"')) == 1


def test_the_rarest_words_of_a_text_come_first(team: KnowledgeIndex) -> None:
    assert team.rarest("pool, green zebra", 3) == ["green", "pool"]


def test_an_excluded_word_of_a_neighbour_excludes_nothing(index: KnowledgeIndex, vault: Vault) -> None:
    vault.write("articles/trees.md", "# Trees\n\n## Oaks\n\nOaks live long.\n\n## Elms\n\nElms are gone.\n")
    index.sync()

    assert len(index.search("oaks -elms")) == 1
    assert index.search("oaks -long") == []


def test_a_phrase_is_enough_when_nothing_has_the_other_words_of_the_question(
    index: KnowledgeIndex, vault: Vault
) -> None:
    vault.write("articles/clock.md", "# Clock\n\n## Bell\n\nIt says `strike: ok`.\n\n## Hands\n\nThey turn.\n")
    vault.write("memories/strike.md", "A strike is an ok thing to ask about.")
    index.sync()

    assert len(index.search('what on earth does "strike: ok" denote?')) == 1
    assert index.search('"they turn"')[0].passage_id != index.search('"strike: ok"')[0].passage_id
    assert len(index.search('"they turn"')) == 1  # what stands beside a passage is not in it


def test_rows_are_marked_alike_whether_matches_are_run_through_or_rows_looked_for(
    team: KnowledgeIndex, monkeypatch: pytest.MonkeyPatch
) -> None:
    query = read_query("blue pool traffic first")
    matches = team.search(query, relaxed=True)
    ids = [match.passage_id for match in matches]
    answers: list[tuple[dict[int, str], float]] = []

    for sought in (0, 10**9):  # always look for rows, always run through
        monkeypatch.setattr(words, "SOUGHT", sought)
        answers.append((team.marked(query, ids), team.coverage(query, matches)))

    assert answers[0] == answers[1]
    assert len(answers[0][0]) == len(ids) == 4


def test_a_word_is_counted_anew_in_the_next_transaction(
    vault: Vault, index: KnowledgeIndex, database: Database
) -> None:
    vault.write("memories/one.md", "A zebra.")
    index.sync()
    with database.reading() as connection:
        assert words.passages_with(connection, "zebra") == 1

    vault.write("memories/two.md", "Another zebra.")
    elsewhere = Database(database.path, database.extension)  # as another process would
    KnowledgeIndex(elsewhere, str(vault.root)).sync()
    elsewhere.close()

    with database.reading() as connection:
        assert words.passages_with(connection, "zebra") == 2
        assert words.passages_with(connection, "zebra") == 2
