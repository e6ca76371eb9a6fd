"""What a German and a Chinese user get: a vault of twelve notes each, asked in the notes' words.

The embedded model is made for English. Questions that share words with the note are all answered; of six more in each
language that shared none, such as "unser Haustier" for the cat, none was.
"""

from __future__ import annotations

import pytest

from tests.command import Co
from tests.folder import Vault

pytestmark = pytest.mark.slow

GERMAN = {
    "auslieferung": "Wir liefern dienstags und donnerstags vor dem Mittag aus, niemals am Freitag.",
    "rechnungen": "Rechnungen über 500 Euro gibt Frau Lindner frei. Kleinere darf jeder selbst bezahlen.",
    "schluessel": "Der Schlüssel zum Serverraum hängt in der Küche hinter dem Kalender.",
    "heizung": "Die Heizung im Büro springt morgens erst um acht Uhr an. Wer früher kommt, braucht einen Pullover.",
    "sicherung": "Die Datenbank wird jede Nacht um zwei gesichert und sieben Tage lang aufgehoben.",
    "urlaub": "Urlaubsanträge gehen spätestens vier Wochen vorher an Herrn Öztürk.",
    "drucker": "Der Etikettendrucker klemmt bei feuchtem Wetter. Die Walze reinigen hilft.",
    "kunde": "Die Bäckerei Grünwald bestellt immer telefonisch und zahlt bar.",
    "festplatte": "Die Festplatte war voll, weil die Protokolle nicht mehr gelöscht wurden.",
    "parken": "Besucher parken im Hof. Die Schranke öffnet sich mit dem Code an der Pforte.",
    "katze": "Die Katze heißt Mokka und darf nicht in das Lager.",
    "besprechung": "Die Besprechung am Montag dauert höchstens zwanzig Minuten, im Stehen.",
}
GERMAN_QUESTIONS = {
    "wann liefern wir aus": "auslieferung",
    "wer gibt Rechnungen frei": "rechnungen",
    "wo ist der Schlüssel zum Serverraum": "schluessel",
    "Heizung im Büro": "heizung",
    "wie lange wird die Datenbank aufgehoben": "sicherung",
    "Urlaubsanträge": "urlaub",
    "Etikettendrucker klemmt": "drucker",
    "wie zahlt die Bäckerei Grünwald": "kunde",
    "warum war die Festplatte voll": "festplatte",
    "wo parken Besucher": "parken",
    "wie heißt die Katze": "katze",
    "wie lange dauert die Besprechung am Montag": "besprechung",
}
CHINESE = {
    "deploy": "我们在星期二和星期四上午发布新版本，星期五从不发布。",
    "invoice": "超过五百元的发票由林女士批准，小额的每个人可以自己付。",
    "key": "机房的钥匙挂在厨房的日历后面。",
    "heating": "办公室的暖气早上八点才开，来得早的人要穿毛衣。",
    "backup": "数据库每天夜里两点备份，保留七天。",
    "vacation": "请假申请最晚提前四个星期交给王先生。",
    "printer": "标签打印机在潮湿的天气容易卡纸，清洁滚筒就好了。",
    "customer": "绿林面包店总是打电话订货，用现金付款。",
    "disk": "磁盘满了，因为日志没有再被删除。",
    "parking": "访客把车停在院子里，门口有密码。",
    "cat": "猫叫摩卡，不可以进仓库。",
    "meeting": "星期一的会议最多二十分钟，大家站着开。",
}
CHINESE_QUESTIONS = {
    "什么时候发布新版本": "deploy",
    "谁批准发票": "invoice",
    "机房的钥匙在哪里": "key",
    "办公室的暖气": "heating",
    "数据库备份保留多久": "backup",
    "请假申请交给谁": "vacation",
    "打印机卡纸": "printer",
    "面包店怎么付款": "customer",
    "为什么磁盘满了": "disk",
    "访客停车": "parking",
    "猫叫什么": "cat",
    "星期一的会议多长": "meeting",
}


@pytest.mark.parametrize(
    ("notes", "questions"),
    [(GERMAN, GERMAN_QUESTIONS), (CHINESE, CHINESE_QUESTIONS)],
    ids=["German", "Chinese"],
)
def test_words_find_notes_that_are_not_english_with_vectors_and_without(
    co: Co, vault: Vault, notes: dict[str, str], questions: dict[str, str]
) -> None:
    for name, text in notes.items():
        vault.write(f"memories/{name}.md", text)

    for options in ((), ("--no-meaning",)):
        hits = {query: co("search", query, "--json", *options).json["hits"] for query in questions}
        found = {query: first["ref"] for query, (first, *_) in hits.items()}
        assert found == {query: f"memory:{name}" for query, name in questions.items()}, options


@pytest.mark.usefixtures("languages")
@pytest.mark.parametrize(
    ("notes", "answered", "absent"),
    [
        (
            GERMAN,
            ["Wie nennen wir unser Haustier?", "Wer darf teure Einkäufe genehmigen?"],
            ["Welcher Komponist schrieb die meisten Opern?", "Wie viele Planeten haben einen Ring?"],
        ),
        (CHINESE, ["我们的宠物有名字吗", "谁可以同意付款"], ["月亮离地球有多远", "那位作曲家写了几部歌剧"]),
    ],
    ids=["German", "Chinese"],
)
def test_with_the_extra_a_question_that_nothing_answers_is_absent(
    co: Co, vault: Vault, notes: dict[str, str], answered: list[str], absent: list[str]
) -> None:
    for name, text in notes.items():
        vault.write(f"memories/{name}.md", text)
    co("index", "sync")  # with the vectors of all, however busy the machine is

    states = {query: co("search", query, "--json").json["state"] for query in (*answered, *absent)}

    assert states == {**dict.fromkeys(answered, "found"), **dict.fromkeys(absent, "absent")}


def test_doctor_recommends_a_multilingual_model_for_notes_that_are_not_english(co: Co, vault: Vault) -> None:
    for name, text in GERMAN.items():
        vault.write(f"memories/{name}.md", text)
    co("index", "sync")

    assert "knowledge_embedding_provider languages" in co("doctor").out

    for number in range(12 * len(GERMAN)):
        vault.write(f"memories/english-{number}.md", f"The oak and the elm stand by the river, number {number}.")
    co("index", "sync")
    assert "knowledge_embedding_provider languages" not in co("doctor").out


@pytest.mark.parametrize(
    "text",
    ["Blue takes traffic first.", "Releasing checklist", "Staging deploys need two approvals before anyone can merge."],
)
def test_doctor_does_not_take_terse_english_for_another_language(co: Co, vault: Vault, text: str) -> None:
    for number in range(13):
        vault.write(f"memories/{number}.md", f"{text} {number}")
    co("index", "sync")

    assert "embeddinggemma" not in co("doctor").out
