"""The language of a text, from its script and its most common words."""

from __future__ import annotations

import pytest

from co_cli.notes.language import guess_language

SENTENCES = {
    "ar": "الاجتماع في مكتب المدير يوم الاثنين بعد الظهر.",
    "cs": "Schůzka byla přeložena, protože kolega je nemocný.",
    "da": "Mødet er flyttet til tirsdag, hvis hun også kommer efter frokost af en grund.",
    "de": "Die Heizung im Keller wird am Dienstag gewartet.",
    "el": "Η συνάντηση μεταφέρθηκε την Τρίτη.",
    "en": "The heating engineer comes on Tuesday.",
    "es": "La reunión del martes se hace en la oficina de Marta.",
    "fa": "جلسه روز سه‌شنبه در دفتر گفتگو برگزار می‌شود.",
    "fr": "Le chauffage de la cave est vérifié avec le voisin mardi.",
    "hi": "बैठक मंगलवार को होगी।",
    "hu": "A megbeszélés kedden lesz, mert hétfőn nem érünk rá.",
    "it": "La riunione di martedì è nell'ufficio della direttrice.",
    "ja": "会議は火曜日の午後に行われます。",
    "ko": "회의는 화요일 오후에 열립니다.",
    "nl": "De verwarming in de kelder wordt dinsdag nagekeken.",
    "pl": "Spotkanie zostało przeniesione na wtorek, bo nie ma go w biurze.",
    "pt": "A reunião de terça não é no escritório da diretora.",
    "ro": "Întâlnirea este marți, pentru că luni nu avem timp.",
    "ru": "Встреча перенесена на вторник, потому что его не будет.",
    "sv": "Mötet är flyttat till tisdag och hon kommer inte.",
    "th": "การประชุมจะมีขึ้นในวันอังคาร",
    "tr": "Toplantı salı gününe alındı, çünkü müdür bugün yok.",
    "uk": "Зустріч перенесли на вівторок, бо його не буде.",
    "vi": "Cuộc họp được chuyển sang thứ ba.",
    "zh": "会议改到星期二下午举行。",
}


@pytest.mark.parametrize("language", SENTENCES)
def test_a_sentence_tells_its_language(language: str) -> None:
    assert guess_language(SENTENCES[language]) == language


@pytest.mark.parametrize("text", ["", "  \n", "42 %", "Kubernetes", "Anna Berg", "`git commit -m x`", "🙂"])
def test_a_text_that_tells_nothing_has_no_language(text: str) -> None:
    assert guess_language(text) == ""


def test_code_and_addresses_do_not_count() -> None:
    text = (
        "Der Dienst startet so:\n```\nif not is_ready and the_end: return this\n```\nSiehe https://the.and/of/to?is=in"
    )
    assert guess_language(text) == "de"


def test_names_in_another_script_do_not_count() -> None:
    assert guess_language("The town of 東京 is where she lives with her family.") == "en"
    assert guess_language("GitHub Actions は毎晩テストを実行します。") == "ja"


def test_the_language_shows_in_the_beginning_of_a_long_text() -> None:
    assert guess_language(SENTENCES["fr"] + " " + SENTENCES["en"] * 10_000) in ("fr", "en")
    assert guess_language(SENTENCES["fr"] * 10 + SENTENCES["en"] * 10_000) == "fr"
