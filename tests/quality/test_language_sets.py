"""The short notes in other languages: the same notes, and questions that share words with their note or share none."""

from __future__ import annotations

import re
import unicodedata
from pathlib import Path

import pytest

from co_cli.evaluation.sets import Question, read_vault
from co_cli.notes.note import read_note

QUALITY = Path(__file__).parents[2] / "benchmarks" / "quality"
ENGLISH, LANGUAGES = QUALITY / "short_notes", QUALITY / "languages"
STOP_WORDS = {
    "de": """
        aber alle allem als also am an andere anderen auch auf aus bei beim bis da damit das dass davor dem den der des
        die dort du ein eine einem einen einer er es für gegen hat haben hier ich ihm ihn ihr ihre ihrem ihren im in ist
        kann kein keine können könnte man mehr mein meine meiner meinen mit muss müssen nach nicht nichts noch nur ob
        oder ohne sein seine seinen seiner sich sie sind so soll sollen statt über um und uns unser unsere unserem
        unseren unserer vom von vor wann warum was weg welche welchem welchen welcher welches wem wen wenn wer wie wir
        wird wo wurde zu zum zur""",
    "fr": """
        afin alors après au aux avant avec avez avons ce cela celle celles cette chez combien comment dans de depuis des
        dès deux devant du elle elles en encore est et être faire fait ils jamais jusqu la le les leur leurs lui ma mais
        même moi mon ne nos notre nous où ou par pas pendant peut plus pour pourquoi qu quand que quel quelle quelles
        quels qui quoi sa sans se ses si sinon sommes son sont sous sur tout toute toutes trop un une""",
    "es": """
        al algo algún alguna ante antes aquí así aún con cómo cuál cuándo cuánto cuántos de debe del desde después donde
        dónde durante el ella en entre es esa ese está estamos están hasta hay la las le les lo los más me mi mientras
        muy nada ninguna no nos nosotras nuestra nuestras nuestro nuestros o otra otras otro otros para pero por porque
        puede puedo que qué quien quién quienes se si sin sobre solo son su sus también tiene tienen toda todo tras un
        una uno y ya yo""",
    "zh": "我们 什么",
    "ja": "",
}  # fmt: skip
"""Only words that the sets need to be told apart by their content: articles, pronouns, prepositions, auxiliaries."""
KANJI, KANA = r"\u3005-\u3007\u3400-\u4dbf\u4e00-\u9fff", r"\u3040-\u30ff"


def content(text: str, language: str) -> set[str]:
    """What is compared: word beginnings of five letters, or pairs of characters and single kanji between kana."""
    stop_words, spaceless = set(plain(STOP_WORDS[language]).split()), language in ("zh", "ja")
    words = re.findall(r"[a-z]{3,}" if spaceless else r"[^\W\d_]{3,}", plain(text))
    runs = re.findall(f"[{KANJI}{KANA}]+", text) if spaceless else []
    pairs = {run[at : at + 2] for run in runs for at in range(len(run) - 1)}
    endings = {pair for pair in pairs if re.fullmatch(r"[\u3040-\u309f]+", pair)}
    alone = re.findall(f"(?<![{KANJI}])[{KANJI}](?![{KANJI}])", text) if language == "ja" else []
    return ({word[:5] for word in words if word not in stop_words} | pairs | set(alone)) - endings - stop_words


def plain(text: str) -> str:
    letters = unicodedata.normalize("NFD", text.lower())
    return "".join(letter for letter in letters if not unicodedata.combining(letter))


def note_text(vault: Path, question: Question) -> str:
    """All that a search can match: the title, tags, text and file name of the note that answers a question."""
    [slug] = (ref.removeprefix("memory:") for ref in question.answers)
    path = f"memories/{slug}.md"
    note = read_note(path, (vault / path).read_bytes())
    return "\n".join((note.title, *note.tags, note.body, slug))


def questions(language: str, kind: str) -> list[Question]:
    return [question for question in read_vault(str(LANGUAGES / language)).questions if question.kind == kind]


@pytest.mark.parametrize("language", STOP_WORDS)
def test_each_english_note_has_a_translation_and_two_questions(language: str) -> None:
    english = [question.answers for question in read_vault(str(ENGLISH)).questions]
    names = {path.name for path in (ENGLISH / "memories").iterdir()}

    assert {path.name for path in (LANGUAGES / language / "memories").iterdir()} == names
    for kind in ("paraphrase", "words"):
        assert [question.answers for question in questions(language, kind)] == english


@pytest.mark.parametrize("language", STOP_WORDS)
def test_a_question_in_other_words_shares_none_with_its_note_in_that_language_or_in_english(language: str) -> None:
    for question in questions(language, "paraphrase"):
        asked = content(question.text, language)
        for vault in (LANGUAGES / language, ENGLISH):
            assert asked & content(note_text(vault, question), language) == set(), question.text


@pytest.mark.parametrize("language", STOP_WORDS)
def test_a_question_in_the_notes_words_shares_some_with_it(language: str) -> None:
    for question in questions(language, "words"):
        shared = content(question.text, language) & content(note_text(LANGUAGES / language, question), language)
        assert shared, question.text
