"""Dates in questions in other languages: what is one, and what only looks like one."""

from __future__ import annotations

import time
from datetime import date, datetime, timedelta

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from co_cli.notes.date_words import LANGUAGES
from co_cli.notes.dates import describe, find_period
from tests.command import Co
from tests.folder import Vault

SUNDAY = datetime(2026, 11, 15, 10, 30)
SAME = {
    "pricing last week": {
        "de": "Preise letzte Woche", "fr": "les prix de la semaine dernière", "es": "precios de la semana pasada",
        "it": "prezzi della settimana scorsa", "pt": "preços na semana passada", "nl": "prijzen van vorige week",
        "zh": "上周的价格", "ja": "先週の価格",
    },
    "pricing last month": {
        "de": "Preise vom letzten Monat", "fr": "prix du mois dernier", "es": "precios del mes pasado",
        "it": "prezzi lo scorso mese", "pt": "preços no mês passado", "nl": "prijzen afgelopen maand",
        "zh": "上个月的价格", "ja": "先月の価格",
    },
    "pricing last quarter": {
        "de": "Preise im letzten Quartal", "fr": "prix du trimestre dernier", "es": "precios del trimestre pasado",
        "it": "prezzi del trimestre scorso", "pt": "preços do último trimestre", "nl": "prijzen vorig kwartaal",
        "zh": "上季度的价格",
    },
    "pricing last weekend": {
        "de": "Preise letztes Wochenende", "fr": "prix du week-end dernier", "es": "precios del fin de semana pasado",
        "it": "prezzi dello scorso fine settimana", "pt": "preços no fim de semana passado",
        "nl": "prijzen vorig weekend", "zh": "上周末的价格", "ja": "先週末の価格",
    },
    "pricing last Friday": {
        "de": "Preise letzten Freitag", "fr": "prix de vendredi dernier", "es": "precios del viernes pasado",
        "it": "prezzi di venerdì scorso", "pt": "preços na sexta-feira passada", "nl": "prijzen afgelopen vrijdag",
    },
    "pricing yesterday": {
        "de": "Preise GESTERN", "fr": "les prix d’hier", "es": "precios de ayer", "it": "prezzi di ieri",
        "pt": "preços de ontem", "nl": "prijzen van gisteren", "zh": "昨天的价格", "ja": "昨日の価格",
    },
    "pricing day before yesterday": {
        "de": "Preise vorgestern", "fr": "prix avant-hier", "es": "precios de anteayer", "it": "prezzi l'altro ieri",
        "pt": "preços anteontem", "nl": "prijzen eergisteren", "zh": "前天的价格", "ja": "おとといの価格",
    },
    "what did I do today": {
        "de": "was habe ich heute gemacht", "fr": "qu'est-ce que j'ai fait aujourd'hui", "es": "qué hice hoy",
        "it": "cosa ho fatto oggi", "pt": "o que eu fiz hoje", "nl": "wat heb ik vandaag gedaan",
        "zh": "我今天做了什么", "ja": "今日何をした",
    },
    "pricing in the last 3 days": {
        "de": "Preise in den letzten drei Tagen", "fr": "les prix ces trois derniers jours",
        "es": "precios en los últimos tres días", "it": "prezzi negli ultimi tre giorni",
        "pt": "preços nos últimos três dias", "nl": "prijzen in de afgelopen drie dagen",
        "zh": "最近三天的价格", "ja": "過去三日間の価格",
    },
    "pricing since March": {
        "de": "Preise seit März", "fr": "les prix depuis mars", "es": "precios desde marzo", "it": "prezzi da marzo",
        "pt": "preços desde março", "nl": "prijzen sinds maart", "zh": "三月以来的价格", "ja": "3月以降の価格",
    },
    "pricing since Monday": {
        "de": "Preise seit Montag", "fr": "les prix depuis lundi", "es": "precios desde el lunes",
        "it": "prezzi da lunedì", "pt": "preços desde segunda-feira", "nl": "prijzen sinds maandag",
    },
    "pricing before 3 May 2025": {
        "de": "Preise vor dem 3. Mai 2025", "fr": "les prix avant le 3 mai 2025",
        "es": "precios antes del 3 de mayo de 2025", "it": "prezzi prima del 3 maggio 2025",
        "pt": "preços antes de 3 de maio de 2025", "zh": "2025年5月3日之前的价格", "ja": "2025年5月3日より前の価格",
    },
    "pricing until June": {
        "de": "Preise bis Juni", "fr": "les prix jusqu'en juin", "es": "precios hasta junio",
        "it": "prezzi fino a giugno", "pt": "preços até junho", "nl": "prijzen tot juni",
        "zh": "六月为止的价格", "ja": "6月までの価格",
    },
    "what did I do in August": {
        "de": "was habe ich im August gemacht", "fr": "qu'ai-je fait en août", "es": "qué hice en agosto",
        "it": "cosa ho fatto ad agosto", "pt": "o que eu fiz em agosto", "nl": "wat heb ik in augustus gedaan",
    },
    "notes of 1 May 2025": {
        "de": "Notizen vom 1. Mai 2025", "fr": "notes du 1er mai 2025", "es": "notas del 1 de mayo de 2025",
        "it": "note del 1 maggio 2025", "pt": "notas de 1 de maio de 2025", "nl": "notities van 1 mei 2025",
        "zh": "2025年5月1日的笔记", "ja": "2025年5月1日のメモ",
    },
    "tomorrow": {
        "de": "was ist morgen", "fr": "demain", "es": "mañana", "it": "domani", "pt": "amanhã", "nl": "morgen",
        "zh": "明天", "ja": "明日",
    },
    "day after tomorrow": {
        "de": "übermorgen", "fr": "après-demain", "es": "pasado mañana", "it": "dopodomani",
        "pt": "depois de amanhã", "nl": "overmorgen", "zh": "后天", "ja": "明後日",
    },
    "next week": {
        "de": "nächste Woche", "fr": "la semaine prochaine", "es": "la semana que viene",
        "it": "la settimana prossima", "pt": "a semana que vem", "nl": "volgende week", "zh": "下周", "ja": "来週",
    },
    "this weekend": {
        "de": "dieses Wochenende", "fr": "ce week-end", "es": "este fin de semana", "it": "questo fine settimana",
        "pt": "neste fim de semana", "nl": "dit weekend", "zh": "这个周末", "ja": "今週末",
    },
    "in two weeks": {
        "de": "in zwei Wochen", "fr": "dans deux semaines", "es": "dentro de dos semanas", "it": "tra due settimane",
        "pt": "em duas semanas", "nl": "over twee weken", "zh": "两周后", "ja": "2週間後",
    },
    "the next three days": {
        "de": "in den nächsten drei Tagen", "fr": "les trois prochains jours", "es": "los próximos tres días",
        "it": "nei prossimi tre giorni", "pt": "nos próximos três dias", "nl": "de komende drie dagen",
        "zh": "未来三天", "ja": "今後三日間",
    },
    "pricing between June and July": {
        "de": "Preise zwischen Juni und Juli", "fr": "les prix entre juin et juillet",
        "es": "precios entre junio y julio", "it": "prezzi tra giugno e luglio", "pt": "preços entre junho e julho",
        "nl": "prijzen tussen juni en juli", "zh": "六月到七月的价格", "ja": "6月から7月までの価格",
    },
}  # fmt: skip
AGO = {
    "de": "Preise vor {} Tagen", "fr": "les prix il y a {} jours", "es": "precios hace {} días",
    "it": "prezzi {} giorni fa", "pt": "preços há {} dias", "nl": "prijzen {} dagen geleden",
    "zh": "{}天前的价格", "ja": "{}日前の価格",
}  # fmt: skip
NOT_A_PERIOD = {
    "de": ("Mai Tai", "im Mai war es kalt", "was ist hier passiert", "die letzte Woche im August",
           "in den letzten Wochen", "am Freitag liefern wir", "vor drei Türen", "nach Plan", "der letzte Tag", "Juli"),
    "fr": ("hier", "mars et Vénus", "les planètes avant Mars Express", "sept nains", "le 7 sept",
           "la dernière semaine d'août", "les derniers jours",
           "lundi fermé", "avant tout", "une mai", "en mai fais"),
    "es": ("mayo y ketchup", "los lunes cerrado", "la última semana de agosto", "hasta luego",
           "los últimos días", "desde cero", "antes de Mayo Clinic",
           "desde Julio Iglesias", "hace calor"),
    "it": ("mai più", "non è mai stato facile", "da capo", "sei mesi", "fa caldo",
           "l'ultima settimana di agosto", "negli ultimi mesi"),
    "pt": ("segunda opinião", "a segunda semana", "nos últimos dias", "até logo", "há problemas"),
    "nl": ("mei 5 euro", "wat is hier gebeurd", "planning voor mei", "na afloop", "de laatste dagen"),
    "zh": ("下周的会议", "本周五的会议", "上上周的价格", "近年来的价格", "大前天的价格", "二十三天前的故障", "第三天前",
           "月亮", "上天", "三月的价格", "价格" * 30 + "昨天"),
    "ja": ("来週の会議", "今週の金曜日の会議", "先々週の価格", "先日の会議", "昨年度の予算", "月の石", "5月の価格"),
}  # fmt: skip


def understood(query: str, now: datetime = SUNDAY) -> str | None:
    period, rest = find_period(query, now.timestamp())
    if period is None:
        assert rest == query
        return None
    assert period.phrase in query
    return describe(period).removeprefix(f'"{period.phrase}": ')


@pytest.mark.parametrize("language", LANGUAGES)
def test_a_date_phrase_means_what_the_english_one_means(language: str) -> None:
    queries = {english: others[language] for english, others in SAME.items() if language in others}

    assert len(queries) >= 11
    assert {query: understood(query) for query in queries.values()} == {
        query: understood(english) for english, query in queries.items()
    }


@pytest.mark.slow
@pytest.mark.medium
@given(day=st.dates(date(1990, 1, 1), date(2090, 1, 1)), count=st.integers(1, 999))
@example(day=date(2024, 2, 29), count=366)
def test_the_calendar_is_the_same_in_each_language(day: date, count: int) -> None:
    now = datetime(day.year, day.month, day.day, 12)

    for language, query in AGO.items():
        assert understood(query.format(count), now) == understood(f"pricing {count} days ago", now), language
    for english, others in SAME.items():
        assert {understood(query, now) for query in others.values()} == {understood(english, now)}, english


def test_friday_of_last_week_is_not_the_last_friday_in_chinese_and_japanese() -> None:
    assert [understood(query) for query in ("上周五的会议", "上星期日的会议", "先週の金曜日の会議")] == [
        "2026-11-06",
        "2026-11-08",
        "2026-11-06",
    ]


@pytest.mark.parametrize("language", LANGUAGES)
def test_what_only_looks_like_a_date_does_not_narrow_a_query(language: str) -> None:
    assert [query for query in NOT_A_PERIOD[language] if understood(query) is not None] == []


def test_the_phrase_is_taken_out_of_the_query() -> None:
    rests = {
        "was haben wir letzte Woche über Preise beschlossen?": "was haben wir über Preise beschlossen?",
        "qu'avons-nous décidé la semaine dernière sur les prix": "qu'avons-nous décidé sur les prix",
        "我们上周决定的价格": "我们 决定的价格",
        "先週の会議": "会議",
    }

    assert {query: find_period(query, SUNDAY.timestamp())[1] for query in rests} == rests


def test_any_word_may_follow_a_phrase() -> None:
    queries = (
        "la semana pasada decidimos los precios",
        "esta idea de la última semana durante la reunión",
        "ce que la semaine dernière disait le client",
        "was letzte Woche im Lager kaputtging",
        "la riunione della scorsa settimana dopo pranzo",
    )

    assert [understood(query) for query in queries] == ["2026-11-02 to 2026-11-08"] * 5


def test_accents_and_case_do_not_matter() -> None:
    queries = ("LES PRIX DE LA SEMAINE DERNIERE", "precios en los ultimos 3 dias", "preise seit marz", "３日前の価格")

    assert [understood(query) for query in queries] == [
        "2026-11-02 to 2026-11-08", "2026-11-12 to 2026-11-15", "since 2026-03-01", "2026-11-12",
    ]  # fmt: skip


@given(text=st.text(max_size=40), now=st.floats(-1e13, 1e13), language=st.sampled_from(sorted(LANGUAGES)), at=st.data())
def test_no_text_makes_it_fail(text: str, now: float, language: str, at: st.DataObject) -> None:
    phrase = at.draw(st.sampled_from([others[language] for others in SAME.values() if language in others]))
    for query in (text, f"{text}{phrase}", f"{phrase} {text}", AGO[language].format(text)):
        period, _ = find_period(query, now)
        if period is not None:
            assert period.since is None or period.until is None or period.since < period.until
            assert describe(period)


@pytest.mark.parametrize(
    ("query", "notes"),
    [
        ("Heizung gestern", {"new"}),
        ("Heizung letztes Jahr", {"new", "old"}),  # may be what the note is about
        ("Heizung seit gestern", {"new"}),
        ("暖气昨天", {"new"}),
        ("was habe ich gestern geschrieben", {"new", "other"}),
    ],
)
def test_search_narrows_by_dates_in_other_languages(co: Co, vault: Vault, query: str, notes: set[str]) -> None:
    yesterday = date.fromtimestamp(time.time()) - timedelta(1)
    for name, day in (("new", yesterday), ("old", date(2020, 1, 1))):
        vault.write(f"memories/{name}.md", f"---\ncreated: {day}\n---\nDie Heizung (暖气) ging aus.")
    vault.write("memories/other.md", f"---\ncreated: {yesterday}\n---\nEin Brief kam an.")

    found = co("search", query, "--no-meaning", "--json").json

    assert {hit["ref"] for hit in found["hits"]} == {f"memory:{name}" for name in notes}
