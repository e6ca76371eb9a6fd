"""Words are found in the language of their passage, which is guessed, stored, filtered, and said in frontmatter."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from co_cli.entrance.knowledge_base import KnowledgeBase
from co_cli.ground.errors import InvalidInputError
from tests.command import Co
from tests.folder import Vault
from tests.postgres import new_database
from tests.server.conftest import serving

NOTES = {
    "memories/ziegen.md": "Die Ziegen auf der Alm sind gegen Würmer behandelt, und das Tor ist geschlossen.",
    "memories/kuehe.md": "Die Kühe stehen im Stall, weil das Wetter zu schlecht für die Wiesen ist.",
    "memories/chevaux.md": "Les chevaux sont dans les prés, et le vétérinaire vient pour une vaccination.",
    "memories/hasard.md": "Un raccourci pour ouvrir les notes les plus anciennes dans le dossier.",
    "memories/собаки.md": "Мы кормили больших собак утром и вечером, потому что они работали в поле.",
    "memories/goats.md": "The goats were treated for worms, and the deployments of the farm's server are done.",
    "memories/server.md": "Wir machen das Deployment auf dem Server nur mit einer Freigabe von der Leitung.",
    "memories/zh.md": "我们先把流量切到蓝色池,然后再切绿色池。",
}
ANSWERS = {
    "Ziege": "ziegen",
    "behandeln": "ziegen",
    "geschlossene Tore": "ziegen",
    "Kuh": "kuehe",
    "Kuehe Ställe": "kuehe",
    "cheval vacciné": "chevaux",
    "vaccinations": "chevaux",
    "ancienne": "hasard",
    "собака": "собаки",
    "goat": "goats",
    "蓝色": "zh",
}
ENGINES = ["sqlite", pytest.param("postgres", marks=pytest.mark.postgres)]


@pytest.fixture(params=ENGINES)
def world(
    request: pytest.FixtureRequest, vault: Vault, data_dir: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[KnowledgeBase]:
    if request.param == "postgres":
        monkeypatch.setenv("CO_ENGINE", new_database())
    for path, text in NOTES.items():
        vault.write(path, text)
    with KnowledgeBase.open(vault=vault.root, data_dir=data_dir) as kb:
        kb.sync()
        yield kb


def names(found: Any) -> list[str]:
    return [Path(hit.path).stem for hit in found.hits]


@pytest.mark.parametrize("backend", ["fts5", "hybrid"])
def test_a_word_is_found_whatever_its_ending_in_its_language(world: KnowledgeBase, backend: str) -> None:
    assert {query: " ".join(names(world.search(query, backend=backend))[:1]) for query in ANSWERS} == ANSWERS


def test_what_was_found_is_marked(world: KnowledgeBase) -> None:
    [hit] = world.search("Ziege", backend="fts5").hits

    assert [hit.snippet[first:last] for first, last in hit.marks] == ["Ziegen"]


def test_an_english_word_is_found_in_notes_in_other_languages(world: KnowledgeBase) -> None:
    assert {*names(world.search("deployments", backend="fts5"))} == {"goats", "server"}


def test_stop_words_of_the_question_s_language_do_not_count(world: KnowledgeBase) -> None:
    assert names(world.search("une note au hasard dans le dossier", backend="fts5")) == ["hasard"]
    assert names(world.search("ist das für die Leitung?", backend="fts5")) == ["server"]
    assert names(world.search("où est l'ancienne note?", backend="fts5")) == ["hasard"]


def test_a_choice_of_words_and_a_quote_are_found_in_every_language(world: KnowledgeBase) -> None:
    assert {*names(world.search("Ziege OR cheval"))} == {"ziegen", "chevaux"}
    assert names(world.search('"Ziegen auf der Alm"')) == ["ziegen"]
    assert names(world.search('"Ziege auf der Alm"')) == []
    assert names(world.search("line:(Ziege Würmer)")) == ["ziegen"]


def test_a_language_is_a_filter_everywhere(world: KnowledgeBase) -> None:
    german = {"kuehe", "server", "ziegen"}

    assert {*names(world.search("Server Ziege Kuh goats", languages="de"))} == german
    assert {*names(world.search("lang:de"))} == german
    assert names(world.search("Server lang:DE-at")) == ["server"]
    assert {*names(world.search("server -lang:de", backend="fts5"))} == {"goats"}
    assert {*names(world.search("lang:(fr OR ru)"))} == {"chevaux", "hasard", "собаки"}
    assert {*names(world.search("lang:fr", backend="grep"))} == {"chevaux", "hasard"}
    assert {*names(world.search("server -lang:de", backend="grep"))} == {"goats"}
    assert {note.ref for note in world.notes(languages=["zh", "ru"])} == {"memory:zh", "memory:собаки"}


def test_an_unknown_language_is_one_line_and_exit_code_2_or_400(co: Co, kb: KnowledgeBase) -> None:
    for arguments in (("search", "oak", "--lang", "klingon"), ("list", "--lang", "xx")):
        ran = co(*arguments)
        assert (ran.code, ran.out, len(ran.err.splitlines())) == (2, "", 1), arguments
        assert "is not a language that co knows: use one of am, ar, bg" in ran.err
    with pytest.raises(InvalidInputError, match="klingon"):
        kb.search("oak", languages=["de", "klingon"])
    with serving(kb) as server, server.client() as client:
        assert client.get("/api/v1/search", params={"q": "oak", "lang": "klingon"}).status_code == 400
        said = client.get("/api/v1/search", params={"q": "oak lang:klingon"}).json()["understood"]
        assert said == ["`lang:klingon` is not a language that co knows: searched as words"], "in a query it is text"
        assert client.get("/api/v1/search", params={"q": "oak", "lang": "de"}).status_code == 200


def test_frontmatter_says_the_language(vault: Vault, co: Co) -> None:
    vault.write("memories/namen.md", "---\nlanguage: de-AT\n---\nKaspar Egger, Ziegen")
    vault.write("memories/irrtum.md", "---\nlanguage: en\n---\nDie Ziegen sind auf der Alm und nicht im Stall.")
    vault.write("memories/code.md", "---\nlanguage: Python\n---\nThe goats are counted by a script.")

    found = {code: [hit["ref"] for hit in co("search", f"lang:{code}", "--json").json["hits"]] for code in ("de", "en")}

    assert found == {"de": ["memory:namen"], "en": ["memory:code", "memory:irrtum"]}
    assert [hit["ref"] for hit in co("search", "Ziege", "--backend", "fts5", "--json").json["hits"]] == ["memory:namen"]


def test_a_misspelled_word_is_respelled_as_a_note_has_it(world: KnowledgeBase) -> None:
    found = world.search("vetrinaire", backend="fts5")

    assert names(found) == ["chevaux"]
    assert any("searched for" in line for line in found.understood)


def test_the_lines_that_match_have_the_word_in_any_form(vault: Vault, co: Co) -> None:
    vault.write("articles/hof.md", "# Hof\n\nDie Ziege ist krank und nicht im Stall.\n\nDer Hund ist bei den Ziegen.\n")

    ran = co("search", "Ziegen", "--lines", "--json")

    assert [line["text"] for line in ran.json["files"][0]["lines"]] == [
        "Die Ziege ist krank und nicht im Stall.",
        "Der Hund ist bei den Ziegen.",
    ]
