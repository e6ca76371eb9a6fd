"""Guess the language of a text from its script and its most common words, in microseconds and without a model.

Languages are ISO 639-1 codes. A text whose language cannot be told, such as a name, a command or two nouns, has none:
the guess is empty, and never a language that the text merely might be in.
"""

from __future__ import annotations

import os
import re
from collections import Counter, defaultdict
from functools import cache

LOOKED_AT = 500
"""Characters of a text that are read: a language shows in its first sentences."""
COMMON_WORDS = os.path.join(os.path.dirname(os.path.abspath(__file__)), "common_words.txt")
"""A line for each language: its code, and words that hardly say what a text is about."""
SCRIPTS = {
    "ja": "\u3040-\u30ff\u31f0-\u31ff\uff66-\uff9f",
    "ko": "\u1100-\u11ff\u3130-\u318f\uac00-\ud7af",
    "zh": "\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003134f",
    "th": "\u0e00-\u0e7f",
    "lo": "\u0e80-\u0eff",
    "my": "\u1000-\u109f",
    "km": "\u1780-\u17ff",
    "el": "\u0370-\u03ff\u1f00-\u1fff",
    "he": "\u0590-\u05ff",
    "hy": "\u0530-\u058f",
    "ka": "\u10a0-\u10ff",
    "hi": "\u0900-\u097f",
    "bn": "\u0980-\u09ff",
    "pa": "\u0a00-\u0a7f",
    "gu": "\u0a80-\u0aff",
    "ta": "\u0b80-\u0bff",
    "te": "\u0c00-\u0c7f",
    "kn": "\u0c80-\u0cff",
    "ml": "\u0d00-\u0d7f",
    "si": "\u0d80-\u0dff",
    "am": "\u1200-\u137f",
    "ar": "\u0600-\u06ff\u0750-\u077f\u08a0-\u08ff",
    "ru": "\u0400-\u052f",
}
"""The letters of scripts that are not Latin, by the language that most texts in them are in."""
WRITTEN = {"ar": ("ar", "fa", "ur"), "ru": ("ru", "uk", "bg", "sr")}
"""Languages with common words or letters of their own that share such a script."""
SYLLABLES = frozenset("ja ko zh".split())
"""Their letters are worth three of others: a word has one or two."""
JAPANESE = 0.1
"""The share of kana that makes a text with Chinese characters Japanese."""
LETTERS = {
    "cs": "ěřů",
    "da": "æø",
    "de": "ßäöü",
    "es": "ñ¿¡íóú",
    "et": "õ",
    "fa": "پچژگ",
    "fr": "çêœèû",
    "hu": "őű",
    "it": "òùì",
    "lt": "ėųįš",
    "lv": "āēīļņ",
    "no": "æø",
    "pl": "łąęśżźćń",
    "pt": "ãõçíóú",
    "ro": "ățș",
    "sv": "åäö",
    "tr": "ğışç",
    "uk": "їєґі",
    "ur": "ٹڈڑں",
    "vi": "ơưđạảấầẩẫậắằẳẵặẹẻẽếềểễệỉịọỏốồổỗộớờởỡợụủứừửữựỳỵỷỹ",
}
"""Letters that few other languages have."""
LETTER_WORTH, LEAST = 0.5, 0.3
"""What a word with such a letter is worth, where a word that one language has is worth 1; and what tells nothing."""
MANY, FEWEST = 12, 2
"""A text with so many different words needs so many common ones that are no single letters, as `o` in code is."""
WORDS = re.compile(r"[^\W\d_]+(?:['’][^\W\d_]+)?")
MARKED = re.compile(r"```.*?(?:```|\Z)|`[^`\n]*`|https?://\S+|\]\([^)\s]*\)", re.DOTALL)
"""Code and addresses, which are in no language."""


def guess_language(text: str) -> str:
    """The code of the language that the text is most likely in; empty if nothing in it tells."""
    text = text[:LOOKED_AT]
    if "`" in text or "://" in text or "](" in text:
        text = MARKED.sub(" ", text)
    script = "" if text.isascii() else _script(text)
    if script and script not in WRITTEN:
        return script
    words = Counter(WORDS.findall(text.lower().replace("’", "'")))
    worths: defaultdict[str, float] = defaultdict(float)
    table = _common()
    for word, count in words.items():
        for language, worth in table.get(word, ()):
            worths[language] += worth * min(count, 3)
        if not word.isascii():
            for language in {language for letter in word for language in _lettered().get(letter, ())}:
                worths[language] += LETTER_WORTH
    told = [(worth, language) for language, worth in worths.items() if _is_written(language, script)]
    told.sort(reverse=True)
    if not told or told[0][0] < LEAST or (len(told) > 1 and told[0][0] == told[1][0]):
        return script
    language = told[0][1]
    own = sum(len(word) > 1 for word in words.keys() & common_words(language))
    return language if own >= FEWEST or len(words) < MANY else script


def common_words(language: str) -> frozenset[str]:
    """Words of a language that hardly say what a text is about; none for one that has no list."""
    return _words_of().get(language, frozenset())


def read_language(value: object) -> str:
    """The code of a language that somebody wrote, such as `de` or `pt-BR`; empty if it is none that we know."""
    code = re.split("[-_]", str(value).strip().lower())[0] if isinstance(value, str) else ""
    return code if code in known_languages() else ""


def unknown_language(text: str) -> str:
    """What is wrong with a language that nobody knows, and the fix."""
    return f"{text!r} is not a language that co knows: use one of {', '.join(known_languages())}"


@cache
def known_languages() -> tuple[str, ...]:
    """The codes of the languages that can be told apart."""
    return tuple(sorted({*_words_of(), *SCRIPTS, *LETTERS}))


def _script(text: str) -> str:
    """The script that most of the text is written in, named after its main language; empty for Latin."""
    if not _not_latin().search(text):
        return ""
    counts = {language: len(found) for language, pattern in _patterns() if (found := pattern.findall(text))}
    worths = {language: count * (3 if language in SYLLABLES else 1) for language, count in counts.items()}
    chinese = worths.get("zh", 0)
    if worths.get("ja", 0) > JAPANESE * chinese:
        worths["ja"] = worths.get("ja", 0) + worths.pop("zh", 0)
    best = max(worths, key=worths.__getitem__)
    others = sum(map(str.isalpha, text)) - sum(counts.values())
    return best if worths[best] > others else ""


def _is_written(language: str, script: str) -> bool:
    """Whether the language is written in that script; an empty one is Latin."""
    return language in WRITTEN[script] if script else all(language not in others for others in WRITTEN.values())


@cache
def _words_of() -> dict[str, frozenset[str]]:
    with open(COMMON_WORDS, encoding="utf-8") as lines:
        named = [line.split() for line in lines if not line.startswith("#")]
    return {language: frozenset(words) for language, *words in named}


@cache
def _common() -> dict[str, list[tuple[str, float]]]:
    """The languages of each common word, and what the word is worth for each: less, the more have it."""
    languages: dict[str, list[str]] = {}
    for language, words in _words_of().items():
        for word in words:
            languages.setdefault(word, []).append(language)
    return {word: [(language, 1 / len(found)) for language in found] for word, found in languages.items()}


@cache
def _lettered() -> dict[str, list[str]]:
    """The languages of each letter that few have."""
    languages: dict[str, list[str]] = {}
    for language, letters in LETTERS.items():
        for letter in letters:
            languages.setdefault(letter, []).append(language)
    return languages


@cache
def _not_latin() -> re.Pattern[str]:
    return re.compile(f"[{''.join(SCRIPTS.values())}]")


@cache
def _patterns() -> list[tuple[str, re.Pattern[str]]]:
    """Compiled when a text first has more than ASCII."""
    return [(language, re.compile(f"[{letters}]")) for language, letters in SCRIPTS.items()]
