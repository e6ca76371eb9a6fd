"""Date phrases of eight other languages, matched into the parts that English phrases have.

The words of each language are in `date_words.json`, its phrases in `FORMS`. Only what is clearly a date counts: a month
needs a preposition, a day or a year, because "mai" is also "never" and "mars" a planet; a weekday needs "last" or
"since". Words have no accents, like the text that they are compared with, and "_" is a space. Patterns are compiled
when a query has words of their language that can be part of a date.
"""

from __future__ import annotations

import json
import os
import re
import unicodedata
from collections.abc import Iterator, Sequence
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
    """In the singular, and without days: "in the last weeks" is not a date."""
    units: dict[str, str]
    """The same and days, as they follow a number."""
    ago: str
    ahead: str
    """The opposite of "ago"."""
    between: Sequence[str]
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
FORMS = {
    "de": (BEFORE_NOUN, AHEAD, BETWEEN, AGO_FIRST, *GERMANIC),
    "fr": (BEFORE_NOUN, AHEAD, BETWEEN, AFTER_NOUN, AGO_FIRST, *ROMANCE),
    "es": (BEFORE_NOUN, AHEAD, BETWEEN, AFTER_NOUN, AGO_FIRST, *ROMANCE),
    "it": (BEFORE_NOUN, AHEAD, BETWEEN, AFTER_NOUN, AGO_LAST, *ROMANCE),
    "pt": (BEFORE_NOUN, AHEAD, BETWEEN, AFTER_NOUN, AGO_FIRST, AGO_LAST, AFTER_TOMORROW, *ROMANCE),
    "nl": (BEFORE_NOUN, AHEAD, BETWEEN, AGO_LAST, *GERMANIC),
    "zh": (
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
    "ja": (
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
}
"""The phrases of each language, those of preferred forms first."""
with open(f"{os.path.splitext(__file__)[0]}.json", encoding="utf-8") as file:
    LANGUAGES = {name: DateWords(**words) for name, words in json.load(file).items()}
SPACELESS = ("zh", "ja")
CAPITAL_MONTHS = ("de",)  # elsewhere a month with a capital is a name: Mars, Mayo, Julio
ENGLISH = frozenset("a in no do as april august september november".split())
"""Words that are English, too: alone with a number they are not a hint."""
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
        return [re.compile(_fill(form, {**some, **ends})) for form in FORMS[language]]
    articles = rf"(?:(?:{table.articles.replace(' ', '|')})(?:\s+|(?<=')))*".replace("_", r"\s+")
    any_how, end = group("how", " ".join(table.how.values())), rf"(?:\s+|(?<=')){articles}"
    hows = {
        "in": f"(?:{any_how}{end}|{articles})",
        "how": f"{any_how}{end}",
        "open": f"{group('how', open_ended)}{end}",
    }
    around = r"(?<![\w./:#@-])", r"(?![\w-]|[.:/]\w)"
    return [re.compile(f"(?a:{around[0]}{_fill(form, {**some, **hows})}{around[1]})") for form in FORMS[language]]


def _fill(form: str, patterns: dict[str, str]) -> str:
    return re.sub(r"\{([a-z]+)\}", lambda match: patterns[match[1]], form)
