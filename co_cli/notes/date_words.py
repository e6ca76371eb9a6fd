"""Date phrases of eight other languages: one table of words, matched into the parts that English phrases have.

Only what is clearly a date counts: a month needs a preposition, a day or a year, because "mai" is also "never" and
"mars" a planet; a weekday needs "last" or "since". Words have no accents, like the text that they are compared with,
and "_" is a space. Patterns are compiled when a query has words of their language that can be part of a date.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator
from functools import cache
from typing import NamedTuple


class DateWords(NamedTuple):
    """The words of one language, by what English says."""

    which: dict[str, str]
    past: str
    """ "Last" before or after a number."""
    coming: str
    """The same of "next"."""
    periods: dict[str, str]
    """In the singular, and without days: "in the last weeks" is no date."""
    units: dict[str, str]
    """The same and days, as they follow a number."""
    ago: str
    ahead: str
    """The opposite of "ago"."""
    between: tuple[str, str]
    """What comes before the first of two months, and between them."""
    names: str
    """The day before yesterday to the day after tomorrow."""
    how: dict[str, str]
    articles: str
    """What may come before a date, after its preposition."""
    months: str
    weekdays: str
    counts: str
    """One to twelve, and a few."""
    generic: str
    """Words that say nothing about the subject of the notes."""
    forms: tuple[str, ...]
    ambiguous: str = ""
    """Names that mean something else in another language: they count next to one of these words of their own."""
    own: str = ""


DAY, YEAR = r"(?P<day>\d{1,2})", r"(?P<year>(?:19|20)\d\d)"
ISO = rf"{{in}}{YEAR}-(?P<number>\d\d)-{DAY}"
OF = r"(?:del?\s+)?"
ROMANCE = (
    r"{in}{period}\s+{which}",
    r"{in}{which}(?:\s+|(?<=')){period}(?!\s+(?:d[aeiou]|del|della)\b|\s+d')",  # "la última semana de agosto"
    r"{in}{name}",
    r"{in}{weekday}\s+{which}",
    r"{open}{weekday}",
    rf"{{in}}{DAY}(?:er|o)?\s+{OF}{{month}}(?:\s+{OF}{YEAR})?",
    ISO,
    rf"{{in}}{{month}}\s+{OF}{YEAR}",
    r"{how}{month}(?:\s+{which})?",
    rf"{{how}}{YEAR}",
)
GERMANIC = (
    r"{in}{which}\s+{period}(?!\s+(?:des|van)\b|\s+(?:im|vom)\s+{any})",  # "die letzte Woche im August"
    r"{in}{name}",
    r"{in}{which}\s+{weekday}",
    r"{open}{weekday}",
    rf"{{in}}{DAY}\.?\s+{{month}}(?:\s+{YEAR})?",
    ISO,
    rf"{{in}}{{month}}\s+{YEAR}",
    r"{how}(?:{which}\s+)?{month}",
    rf"{{how}}{YEAR}",
)
BEFORE_NOUN, AFTER_NOUN = r"{in}{past}\s+{count}\s+{unit}", r"{in}{count}\s+{past}\s+{unit}"
AGO_FIRST, AGO_LAST = r"{ago}\s+{count}\s+{unit}", r"{count}\s+{unit}\s+{ago}"
AHEAD = r"{ahead}\s+{count}\s+{unit}"
BETWEEN = rf"{{between}}\s+{{month}}\s+{{and}}\s+{{ending}}(?:\s+{OF}{YEAR})?"
AFTER_TOMORROW = r"(?P<name>depois\s+de\s+amanha)"
"""Not "after tomorrow"."""
NUMERALS = "一二两三四五六七八九十百千几数"
NO_WEEKDAY = "(?![个次场份条起直些样下常志程报])"
"""What makes the number or the day after a week a part of another word: 上周三个会议, 上周日常工作."""
LANGUAGES = {
    "de": DateWords(
        which={
            "last": """
                letzte letzten letztem letzter letztes vorige vorigen vorigem voriger voriges vergangene vergangenen
                vergangenem vergangener vergangenes""",
            "this": "diese diesen diesem dieser dieses",
            "next": "nachste nachsten nachstem nachster nachstes kommende kommenden kommendem kommender kommendes",
        },
        past="letzten vergangenen",
        coming="nachsten kommenden",
        periods={
            "weekend": "wochenende",
            "week": "woche",
            "month": "monat monats",
            "quarter": "quartal quartals",
            "year": "jahr jahres",
        },
        units={
            "day": "tag tage tagen",
            "week": "woche wochen",
            "month": "monat monate monaten",
            "year": "jahr jahre jahren",
        },
        ago="vor",
        ahead="in",
        between=("zwischen", "und"),
        names="vorgestern gestern heute morgen ubermorgen",
        how={
            "since": "seit",
            "after": "nach",
            "before": "vor",
            "until": "bis bis_zum",
            "in": "in im am vom von wahrend",
        },
        articles="der die das den dem des anfang mitte ende jahr",
        months="januar|janner februar marz april mai juni juli august september oktober november dezember",
        weekdays="montag dienstag mittwoch donnerstag freitag samstag|sonnabend sonntag",
        counts="ein|eine|einem|einer zwei drei vier funf sechs sieben acht neun zehn elf zwolf paar|ein_paar",
        generic="""
            was welche welchen habe haben hatte hatten ist sind war waren wurde wurden ich wir mir uns gibt gab
            es neues neue notiz notizen eintrage datei dateien alles alle zeig zeige finde liste meine unsere
            aus von der die das den und passiert gemacht getan geschrieben notiert gespeichert geandert
            besprochen gesagt bitte""",
        forms=(BEFORE_NOUN, AHEAD, BETWEEN, AGO_FIRST, *GERMANIC),
    ),
    "fr": DateWords(
        which={"last": "dernier derniere passe passee", "this": "ce cet cette", "next": "prochain prochaine"},
        past="derniers dernieres",
        coming="prochains prochaines",
        periods={
            "weekend": "week-end weekend",
            "week": "semaine",
            "month": "mois",
            "quarter": "trimestre",
            "year": "annee an",
        },
        units={"day": "jour jours", "week": "semaine semaines", "month": "mois", "year": "an ans annees"},
        ago="il_y_a",
        ahead="dans d'ici",
        between=("entre", "et"),
        names="avant-hier hier aujourd'hui demain apres-demain",
        how={
            "since": "depuis",
            "after": "apres",
            "before": "avant",
            "until": "jusqu'a jusqu'au jusqu'en",
            "in": "en au aux du de d' dans pendant durant",
        },
        articles="le la les l' ces debut fin mi",
        months="janvier fevrier mars avril mai juin juillet aout septembre octobre novembre decembre",
        weekdays="lundi mardi mercredi jeudi vendredi samedi dimanche",
        counts="un|une deux trois quatre cinq six sept huit neuf dix onze douze quelques",
        generic="""
            que qu quoi quel quelle quels quelles qui est ce c s a ai j je avons nous on y fait passe note
            notes notees notre nos mes ecrit dit parle enregistre cree change modifie fichiers documents tout
            toutes tous les le la des du de d montre liste trouve donne moi ete nouveau""",
        forms=(BEFORE_NOUN, AHEAD, BETWEEN, AFTER_NOUN, AGO_FIRST, *ROMANCE),
        ambiguous="hier",
        own="que qu quoi quelles quels qui nous avons ai j c le la les une sur avec notre nos mes depuis d notes",
    ),
    "es": DateWords(
        which={"last": "pasado pasada ultimo ultima", "this": "este esta", "next": "proximo proxima que_viene"},
        past="ultimos ultimas pasados pasadas",
        coming="proximos proximas",
        periods={"weekend": "fin_de_semana", "week": "semana", "month": "mes", "quarter": "trimestre", "year": "ano"},
        units={"day": "dia dias", "week": "semana semanas", "month": "mes meses", "year": "ano anos"},
        ago="hace",
        ahead="en dentro_de",
        between=("entre", "y"),
        names="anteayer|antes_de_ayer ayer hoy manana pasado_manana",
        how={
            "since": "desde",
            "after": "despues_de despues_del",
            "before": "antes_de antes_del",
            "until": "hasta",
            "in": "en de del durante",
        },
        articles="el la los las principios_de finales_de mediados_de",
        months="enero febrero marzo abril mayo junio julio agosto septiembre|setiembre octubre noviembre diciembre",
        weekdays="lunes martes miercoles jueves viernes sabado domingo",
        counts="un|una dos tres cuatro cinco seis siete ocho nueve diez once doce pocos|pocas|unos_pocos|unas_pocas",
        generic="""
            que cual cuales hay hubo he hemos hice hicimos paso ha han yo me nos nota notas apuntes mis
            nuestras archivos documentos todo todos todas muestra lista busca dame de del el la los las escribi
            escribimos escrito guarde guardamos guardado cambie cambiado hablamos dijimos nuevo es son y""",
        forms=(BEFORE_NOUN, AHEAD, BETWEEN, AFTER_NOUN, AGO_FIRST, *ROMANCE),
    ),
    "it": DateWords(
        which={
            "last": "scorso scorsa passato passata ultimo ultima",
            "this": "questo questa quest'",
            "next": "prossimo prossima",
        },
        past="ultimi ultime scorsi scorse",
        coming="prossimi prossime",
        periods={
            "weekend": "fine_settimana weekend",
            "week": "settimana",
            "month": "mese",
            "quarter": "trimestre",
            "year": "anno",
        },
        units={"day": "giorno giorni", "week": "settimana settimane", "month": "mese mesi", "year": "anno anni"},
        ago="fa",
        ahead="tra fra",
        between=("tra fra", "e"),
        names="l'altro_ieri|altroieri ieri oggi domani dopodomani",
        how={
            "since": "da dal dalla dall' dallo",
            "after": "dopo",
            "before": "prima_di prima_del prima_della prima_dell'",
            "until": "fino_a fino_al fino_alla fino_ad",
            "in": "in a ad nel nella nell' nei negli nelle di del della dell' degli durante",
        },
        articles="il lo la l' i gli le inizio meta",
        months="gennaio febbraio marzo aprile maggio giugno luglio agosto settembre ottobre novembre dicembre",
        weekdays="lunedi martedi mercoledi giovedi venerdi sabato domenica",
        counts="un|uno|una|un' due tre quattro cinque sei sette otto nove dieci undici dodici qualche|pochi|poche",
        generic="""
            che cosa cos quale quali e c ho abbiamo ha fatto successo detto scritto salvato cambiato annotato
            parlato io noi mi ci nota note appunti mie nostre file documenti tutto tutti tutte mostra elenca
            trova dammi di del della dei delle il la le gli i""",
        forms=(BEFORE_NOUN, AHEAD, BETWEEN, AFTER_NOUN, AGO_LAST, *ROMANCE),
    ),
    "pt": DateWords(
        which={
            "last": "passado passada ultimo ultima",
            "this": "este esta neste nesta esse essa nesse nessa",
            "next": "proximo proxima que_vem",
        },
        past="ultimos ultimas",
        coming="proximos proximas",
        periods={"weekend": "fim_de_semana", "week": "semana", "month": "mes", "quarter": "trimestre", "year": "ano"},
        units={"day": "dia dias", "week": "semana semanas", "month": "mes meses", "year": "ano anos"},
        ago="ha atras",
        ahead="em daqui_a",
        between=("entre", "e"),
        names="anteontem ontem hoje amanha depois_de_amanha",
        how={
            "since": "desde",
            "after": "depois_de depois_do depois_da apos",
            "before": "antes_de antes_do antes_da",
            "until": "ate",
            "in": "em no na nos nas de do da dos das durante",
        },
        articles="o a os as inicio_de meados_de",
        months="janeiro fevereiro marco abril maio junho julho agosto setembro outubro novembro dezembro",
        weekdays="segunda-feira terca-feira quarta-feira quinta-feira sexta-feira sabado domingo",
        counts="um|uma dois|duas tres quatro cinco seis sete oito nove dez onze doze alguns|algumas",
        generic="""
            o que qual quais ha houve eu nos a gente fiz fizemos feito aconteceu disse dissemos falamos escrevi
            escrevemos escrito salvei salvamos mudei mudou nota notas anotacoes minhas nossas arquivos
            documentos tudo todos todas mostra mostre lista liste busca de do da os as foi foram e""",
        forms=(BEFORE_NOUN, AHEAD, BETWEEN, AFTER_NOUN, AGO_FIRST, AGO_LAST, AFTER_TOMORROW, *ROMANCE),
    ),
    "nl": DateWords(
        which={"last": "vorige vorig afgelopen laatste", "this": "deze dit", "next": "volgende volgend komende komend"},
        past="afgelopen laatste",
        coming="komende volgende",
        periods={"weekend": "weekend", "week": "week", "month": "maand", "quarter": "kwartaal", "year": "jaar"},
        units={"day": "dag dagen", "week": "week weken", "month": "maand maanden", "year": "jaar"},
        ago="geleden",
        ahead="over",
        between=("tussen", "en"),
        names="eergisteren gisteren vandaag morgen overmorgen",
        how={"since": "sinds vanaf", "after": "na", "until": "tot tot_en_met", "in": "in op van tijdens"},
        articles="de het begin eind half",
        months="januari februari maart april mei juni juli augustus september oktober november december",
        weekdays="maandag dinsdag woensdag donderdag vrijdag zaterdag zondag",
        counts="een twee drie vier vijf zes zeven acht negen tien elf twaalf paar|een_paar",
        generic="""
            wat welke heb hebben had is zijn was waren er ik we wij mij ons gedaan gebeurd geschreven gezegd
            besproken bewaard veranderd nieuw nieuwe notities mijn onze bestanden documenten alles alle toon
            laat zien vind geef van de het een en""",
        forms=(BEFORE_NOUN, AHEAD, BETWEEN, AGO_LAST, *GERMANIC),
    ),
    "zh": DateWords(
        which={"last": "上 去", "this": "本 这 今", "next": "下 明"},
        past="最近 过去 近",
        coming="未来 接下来",
        periods={"weekend": "周末", "week": "周 星期 礼拜", "month": "月", "quarter": "季度", "year": "年"},
        units={"day": "天", "week": "周 星期 个星期 礼拜 个礼拜", "month": "个月", "year": "年"},
        ago="前 之前 以前",
        ahead="后 之后 以后",
        between=("", "到 至"),
        names="前天 昨天|昨日|昨晚 今天|今日 明天|明日 后天",
        how={"since": "以来 至今 起 开始", "after": "之后 以后", "before": "之前 以前 前", "until": "为止"},
        articles="",
        months="""
            1月|一月 2月|二月 3月|三月 4月|四月 5月|五月 6月|六月 7月|七月 8月|八月 9月|九月 10月|十月
            11月|十一月 12月|十二月""",
        weekdays="一 二 三 四 五 六 日|天",
        counts="一 两|二 三 四 五 六 七 八 九 十 十一 十二 几",
        generic="""
            我们 我 什么 做 写 记 说 讨论 发生 改 保存 事情 事 笔记 记录 文件 文档 所有 全部 的 了 过 吗 呢 有
            哪些 在 里 是 看 列出 显示 新 干""",
        forms=(
            rf"(?<![\d十])(?:{YEAR}年)?{{month}}{DAY}[日号]{{after}}",
            rf"(?<!\d){YEAR}年{{month}}份?{{after}}",
            rf"(?<!\d){YEAR}-(?P<number>\d\d)-{DAY}{{after}}",
            r"(?<![年\d十]){month}{and}{ending}(?:之间)?",
            rf"(?<![上下])(?P<which>上|下)个?(?P<unit>周|星期|礼拜){{weekday}}{NO_WEEKDAY}{{after}}",
            r"{past}的?{count}{unit}",
            r"{count}{unit}(?:{ago}|{ahead})",
            rf"(?<![上下])(?P<which>上|下|本|这)个?(?P<unit>周末|周|星期|礼拜|月|季度)(?!{{day}}{NO_WEEKDAY}){{after}}",
            r"(?P<which>去|今|明)(?P<unit>年){after}",
            r"(?<!大){name}{after}",
            r"(?<![年\d十]){month}份?{open}",
            rf"(?<!\d){YEAR}年{{after}}",
        ),
    ),
    "ja": DateWords(
        which={"last": "先 去 昨", "this": "今", "next": "来"},
        past="ここ 過去 直近 最近 この",
        coming="今後",
        periods={"weekend": "週末", "week": "週", "month": "月", "quarter": "四半期", "year": "年"},
        units={"day": "日", "week": "週", "month": "か月 ヶ月 カ月 ケ月 ヵ月", "year": "年"},
        ago="前",
        ahead="後",
        between=("", "から"),
        names="おととい|一昨日 昨日|きのう 今日|本日 明日|あした 明後日|あさって",
        how={"since": "以来 以降 から", "after": "より後 の後", "before": "より前 以前 の前", "until": "まで"},
        articles="",
        months="""
            1月|一月 2月|二月 3月|三月 4月|四月 5月|五月 6月|六月 7月|七月 8月|八月 9月|九月 10月|十月
            11月|十一月 12月|十二月""",
        weekdays="月 火 水 木 金 土 日",
        counts="一 二 三 四 五 六 七 八 九 十 十一 十二 数",
        generic="""
            私たち 私 何 なに を が は に で と の も した して しました やった やりました 書いた 書きました
            話した 決めた こと もの メモ ノート 記録 ファイル 文書 全部 すべて ある あった ありました か 見せて
            教えて 新しい 保存 変更""",
        forms=(
            rf"(?<![\d十])(?:{YEAR}年)?{{month}}{DAY}日{{after}}",
            rf"(?<!\d){YEAR}年{{month}}{{after}}",
            rf"(?<!\d){YEAR}-(?P<number>\d\d)-{DAY}{{after}}",
            r"(?<![年\d十]){month}{and}{ending}(?:まで|の間)?",
            r"(?<![先再])(?P<which>先|来)(?P<unit>週)の?{weekday}曜日?{after}",
            r"{past}の?{count}{unit}間?",
            r"{count}{unit}間?(?:{ago}|{ahead})",
            r"(?<![先再])(?P<which>先|今|来)(?P<unit>週末|週|月|四半期)(?!の?{day}曜){after}",
            r"(?<!一)(?P<which>去|昨|今|来)(?P<unit>年)(?!度){after}",
            r"{name}{after}",
            r"(?<![年\d十]){month}{open}",
            rf"(?<!\d){YEAR}年{{after}}",
        ),
    ),
}
SPACELESS = ("zh", "ja")
CAPITAL_MONTHS = ("de",)  # elsewhere a month with a capital is a name: Mars, Mayo, Julio
ENGLISH = frozenset("a in no do as april august september november".split())
"""Words that are English, too: alone with a number they are no hint."""
SPACELESS_HINTS = "年月日天周週期拜季昨今前おきあ"
MAX_LETTERS = 60  # in a longer query without spaces, a date is one detail of a story


class Phrase(NamedTuple):
    """A date phrase: where it is, and its parts as English says them."""

    start: int
    end: int
    parts: dict[str, str]


def find_languages(query: str) -> list[str]:
    """The languages that may have a date in a query. Cheap, because almost no query has one."""
    if not query.isascii() and any(letter in query for letter in SPACELESS_HINTS):
        if len(query) > MAX_LETTERS:
            return []
        return ["ja"] if re.search("[\u3040-\u30ff]", query) else ["zh", "ja"]
    words = set(re.findall(r"[a-z-]+|\d+", fold(query)))
    numbers = [word for word in words if word.isdecimal()]
    years = [number for number in numbers if len(number) == 4 and number.startswith(("19", "20"))]
    return [
        name
        for name, (units, others, months, hows) in _hints().items()
        if (words & units and words & others) or (numbers and words & months) or (years and words & hows)
    ]


def find_phrases(query: str, language: str) -> Iterator[Phrase]:
    """All date phrases of a language, those of preferred forms first."""
    text, table = fold(query), LANGUAGES[language]
    words, meanings = set(re.findall(r"\w+", text)), _meanings(language)
    for pattern in _patterns(language):
        for match in pattern.finditer(text):
            parts = {group: value for group, value in match.groupdict().items() if value}
            certain = parts.get("name") != table.ambiguous or words & set(table.own.split())
            alone = "month" in parts and not parts.keys() & {"day", "year"}
            planet = alone and language not in CAPITAL_MONTHS and query[match.start("month")].isupper()
            if certain and (not planet or query.isupper()):
                english = {group: meanings.get(group, {}).get(_key(value), value) for group, value in parts.items()}
                yield Phrase(match.start(), match.end(), english)


def is_generic(rest: str, language: str) -> bool:
    """Whether only words that name no subject are left of a query."""
    generic = LANGUAGES[language].generic.split()
    if language not in SPACELESS:
        return set(re.findall(r"\w+", fold(rest))) <= set(generic)
    return bool(re.fullmatch(rf"(?:{'|'.join(sorted(generic, key=len, reverse=True))}|\W)*", rest))


def fold(text: str) -> str:
    """Lower case without accents, each character in its place."""
    if text.isascii():
        return text.lower()
    return "".join(map(_fold_letter, text))


def _fold_letter(letter: str) -> str:
    if letter == "’":
        return "'"
    if "\u00c0" <= letter <= "\u024f" or "\uff10" <= letter <= "\uff19":
        letter = unicodedata.normalize("NFKD", letter)[0]
    return letter.lower() if len(letter.lower()) == 1 else letter


def _key(value: str) -> str:
    return re.sub(r"\s+", "_", value)


@cache
def _meanings(language: str) -> dict[str, dict[str, str]]:
    """By the name of a group: what its words are called in English."""
    table = LANGUAGES[language]
    listed = {"which": table.which, "unit": table.units, "how": table.how}
    found = {
        group: {word: name for name, words in named.items() for word in words.split()}
        for group, named in listed.items()
    }
    found["unit"] |= {word: name for name, words in table.periods.items() for word in words.split()}
    found["which"] = (
        dict.fromkeys(table.past.split(), "last") | dict.fromkeys(table.coming.split(), "next") | found["which"]
    )
    ordered = (("name", table.names, -2), ("month", table.months, 1), ("weekday", table.weekdays, 0))
    for group, words, first in (*ordered, ("count", table.counts, 1)):
        numbered = enumerate(words.split(), first)
        found[group] = {word: str(number) for number, words in numbered for word in words.split("|")}
    found["ending"] = found["month"]
    found["count"] |= dict.fromkeys(table.counts.split()[-1].split("|"), "3")
    return found


@cache
def _hints() -> dict[str, tuple[set[str], ...]]:
    """By language: what dates name and what comes with it (a name is both), months, and what comes before a year."""
    found: dict[str, tuple[set[str], ...]] = {}
    for language, table in LANGUAGES.items():
        if language not in SPACELESS:
            names, hows = (table.names,), (*table.how.values(),)
            units = (*table.units.values(), *table.periods.values(), table.months, table.weekdays, *names)
            others = (*table.which.values(), table.past, table.coming, table.ago, table.ahead, table.between[0])
            others = (*others, *hows, *names)
            months, before = _longest_words((table.months,)) - ENGLISH, _longest_words(hows) - ENGLISH
            found[language] = (_longest_words(units), _longest_words(others), months, before)
    return found


def _longest_words(listed: tuple[str, ...]) -> set[str]:
    """Of each entry the longest word: `despues` of `despues_de`."""
    entries = " ".join(listed).replace("|", " ").replace("'", "_").split()
    return {max(entry.split("_"), key=len) if "_" in entry else entry for entry in entries}


@cache
def _patterns(language: str) -> list[re.Pattern[str]]:
    table = LANGUAGES[language]

    def group(name: str, words: str) -> str:
        every = sorted(re.split(r"[\s|]+", words.strip()), key=len, reverse=True)
        return f"(?P<{name}>{'|'.join(every)})".replace("_", r"\s+")

    open_ended = " ".join(words for how, words in table.how.items() if how != "in")
    some = {
        "which": group("which", " ".join(table.which.values())),
        "past": group("which", f"{table.past} {table.coming}"),
        "period": group("unit", " ".join(table.periods.values())),
        "unit": group("unit", " ".join(table.units.values())),
        "ago": group("ago", table.ago),
        "ahead": group("ahead", table.ahead),
        "between": group("between", table.between[0]),
        "and": group("and", table.between[1]),
        "name": group("name", table.names),
        "month": group("month", table.months),
        "ending": group("ending", table.months),
        "any": group("month", table.months).replace("?P<month>", "?:"),
        "weekday": group("weekday", table.weekdays),
        "count": rf"(?:(?<![\d第{NUMERALS}])(?<!\d[.,]){group('count', table.counts + ' [0-9]{1,3}')})",
    }
    if language in SPACELESS:
        ends = {"open": group("how", open_ended), "after": f"{group('how', open_ended)}?"}
        ends["day"] = f"[{re.sub(r'[ |]', '', table.weekdays)}]"
        return [re.compile(_fill(form, {**some, **ends})) for form in table.forms]
    articles = rf"(?:(?:{table.articles.replace(' ', '|')})(?:\s+|(?<=')))*".replace("_", r"\s+")
    any_how, end = group("how", " ".join(table.how.values())), rf"(?:\s+|(?<=')){articles}"
    hows = {
        "in": f"(?:{any_how}{end}|{articles})",
        "how": f"{any_how}{end}",
        "open": f"{group('how', open_ended)}{end}",
    }
    around = r"(?<![\w./:#@-])", r"(?![\w-]|[.:/]\w)"
    return [re.compile(f"(?a:{around[0]}{_fill(form, {**some, **hows})}{around[1]})") for form in table.forms]


def _fill(form: str, patterns: dict[str, str]) -> str:
    return re.sub(r"\{([a-z]+)\}", lambda match: patterns[match[1]], form)
