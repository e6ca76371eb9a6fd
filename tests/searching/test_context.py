"""Which notes come unasked: few, for good reasons, and hardly ever for a prompt that is about something else."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from shutil import copytree

import pytest

from co_cli.entrance.knowledge_base import KnowledgeBase
from co_cli.ground.paths import sample_vault
from co_cli.upkeep.feedback import judge
from tests.folder import Vault
from tests.searching.everyday_prompts import HELD_OUT, TUNED_ON, with_chatter


@pytest.fixture(scope="module")
def sample(tmp_path_factory: pytest.TempPathFactory) -> Iterator[KnowledgeBase]:
    folder = tmp_path_factory.mktemp("sample")
    copytree(sample_vault(), folder / "vault")
    with KnowledgeBase.open(folder / "vault", folder / "data") as kb:
        kb.sync()
        yield kb


def reasons(kb: KnowledgeBase, prompt: str) -> dict[str, str]:
    return {note.ref.partition("#")[0]: note.why for note in kb.matching_notes(prompt, ()).notes}


@pytest.mark.slow
@pytest.mark.parametrize(
    "prompts",
    [TUNED_ON, HELD_OUT, with_chatter(TUNED_ON), with_chatter(HELD_OUT)],
    ids=["tuned on", "held out", "tuned on, with chatter", "held out, with chatter"],
)
def test_an_everyday_prompt_rarely_adds_a_memory(sample: KnowledgeBase, prompts: list[str]) -> None:
    brought = {prompt: reasons(sample, prompt) for prompt in prompts}

    assert len(prompts) == 40
    assert [prompt for prompt, why in brought.items() if "recalled" in why.values()] == []
    assert len([prompt for prompt, why in brought.items() if "contextual" in why.values()]) <= 4


@pytest.mark.medium
def test_most_questions_in_a_memorys_own_words_add_it(sample: KnowledgeBase) -> None:
    lines = (Path(sample_vault()) / "questions.jsonl").read_text("utf-8").splitlines()
    asked = [question for question in map(json.loads, lines) if question["kind"] == "words"]
    asked = [question for question in asked if any(ref.startswith("memory:") for ref in question["answers"])]
    always = {note.ref for note in sample.always_notes().notes}

    answered = [
        question for question in asked if {*reasons(sample, question["question"]), *always} & set(question["answers"])
    ]

    assert len(asked) >= 35
    assert len(answered) / len(asked) > 0.7


@pytest.mark.medium
def test_a_question_among_other_sentences_is_still_that_question(sample: KnowledgeBase) -> None:
    question = "How do I restart plover without sending a warning twice?"
    alone = reasons(sample, question)

    assert "memory:drain-plover-before-restarting" in alone
    assert reasons(sample, f"Good morning! I have five minutes. {question} Thanks a lot.") == alone
    assert reasons(sample, f"{'Some log line that says nothing. ' * 400}\n{question}") == alone


def test_always_notes_are_ordered_by_importance(kb: KnowledgeBase, vault: Vault) -> None:
    for name, importance in (("small", 0.1), ("great", 0.9), ("plain", None)):
        said = f"importance: {importance}\n" if importance else ""
        vault.write(f"memories/{name}.md", f"---\nloading: always\n{said}---\nA {name} matter.")
    kb.sync()

    assert [note.title for note in kb.always_notes().notes] == ["Great", "Plain", "Small"]


def test_ratings_decide_between_notes_that_fit_alike(kb: KnowledgeBase, vault: Vault) -> None:
    names = ("first", "second", "third")
    for name in names:
        vault.write(f"memories/{name}.md", "Oaks live for a thousand years in this forest.")
        vault.write(f"memories/always-{name}.md", f"---\nloading: always\n---\nThe {name} rule.")
    kb.sync()

    def added() -> list[str]:
        return [note.ref for note in kb.matching_notes("Do oaks live for a thousand years in this forest?", ()).notes]

    before = added()
    (left_out,) = {f"memory:{name}" for name in names} - {*before}
    judge(kb.vault, before[0], good=False)
    judge(kb.vault, left_out, good=True, how="heard")
    judge(kb.vault, "memory:always-second", good=False, how="heard")

    assert added() == [left_out, before[1]]
    assert [note.ref for note in kb.always_notes().notes][-1] == "memory:always-second"


def test_the_matching_section_of_a_contextual_article_is_added(kb: KnowledgeBase, vault: Vault) -> None:
    sections = "\n\n".join(
        f"## {name}\n\n{f'All about {name} and nothing else. ' * 40}" for name in ("oaks", "elms", "yews")
    )
    vault.write("articles/trees.md", f"---\nloading: contextual\n---\n# Trees\n\n{sections}\n")
    kb.sync()

    (note,) = kb.matching_notes("Tell me all about elms", ()).notes

    assert note.why == "contextual"
    assert note.ref.startswith("article:trees#L")
    assert "elms" in note.text
    assert "yews" not in note.text


@pytest.mark.parametrize(
    ("path", "front", "text"),
    [
        ("memories/invoices.md", "", "They go out on the first of the month, in euros."),
        ("memories/billing.md", "tags: [work/invoices]\n", "The bills go out on the first of the month, in euros."),
        ("memories/sent.md", "title: Invoices go out on the first of the month\n", "In euros, as a PDF."),
        ("memories/money.md", "aliases: [invoice]\n", "Bills go out on the first of the month, in euros."),
        ("articles/office.md", "", "# Office\n\n## Desks\n\nBook one.\n\n## Invoices\n\nIn euros, as a PDF."),
    ],
    ids=["title", "tag", "subject", "alias", "heading"],
)
def test_a_contextual_note_is_added_when_the_prompt_shares_its_keywords(
    kb: KnowledgeBase, vault: Vault, path: str, front: str, text: str
) -> None:
    vault.write(path, f"---\nloading: contextual\n{front}---\n{text}\n")
    vault.write("memories/zoology.md", "---\nloading: contextual\n---\nMammals are sorted by family.\n")
    kb.sync()

    (note,) = kb.matching_notes("Please write an invoice for the zoo", ()).notes

    assert note.why == "contextual"
    assert path.removesuffix(".md").partition("/")[2] in note.ref
    assert "in euros" in note.text.casefold()
    assert kb.matching_notes("Write a haiku about the first snow in the mountains", ()).notes == []


def test_a_note_that_is_never_to_be_loaded_is_found_only_by_asking(kb: KnowledgeBase, vault: Vault) -> None:
    vault.write("memories/oaks.md", "Oaks live for a thousand years.")
    kb.sync()
    prompt = "Do oaks live for a thousand years?"
    assert reasons(kb, prompt) == {"memory:oaks": "recalled"}

    kb.update("memory:oaks", fields={"loading": "never"})

    assert reasons(kb, prompt) == {}
    assert kb.search(prompt).hits[0].ref == "memory:oaks"


def test_an_unmarked_article_is_not_added(kb: KnowledgeBase, vault: Vault) -> None:
    vault.write("articles/oaks.md", "Oaks live for a thousand years.")
    kb.sync()

    assert kb.matching_notes("Do oaks live for a thousand years?", ()).notes == []


def test_a_vault_that_cannot_be_searched_gives_nothing_and_says_so(
    kb: KnowledgeBase, vault: Vault, data_dir: Path
) -> None:
    vault.write("memories/oak.md", "---\nloading: always\n---\nOaks live long.")
    kb.close()
    data_dir.mkdir(exist_ok=True)
    (data_dir / "search.db").mkdir()

    assert kb.always_notes().notes == kb.matching_notes("Do oaks live long?", ()).notes == []
    assert "search.db" in kb.always_notes().degraded[0]
