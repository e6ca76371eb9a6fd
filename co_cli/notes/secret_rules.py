"""The forms of secrets: about 350 rules of Betterleaks and gitleaks as data, and our own for what those lack.

`.ci/secret_rules.py` makes `secret_rules.tsv`; ours are in `own_secret_rules.tsv`. `NAME_RULE` looks for a name such as
`DB_PASSWORD` or `API key` and a value in any way that people write it: `_is_password` decides whether it is a secret
after `:`, `=` and `is`, and the stricter `_is_generated` where nothing marks it as a value.
Patterns are compiled when they are needed, because every command imports this module.
"""

from __future__ import annotations

import functools
import math
import os
import re
from binascii import a2b_base64
from collections import Counter
from collections.abc import Callable, Iterator
from typing import NamedTuple

MAX_RULE_ENTROPY = 3.0
"""Bits per character. Some rules ask for 3.5, but one in seven hexadecimal keys has less."""
MIN_PASSWORD_ENTROPY = 2.5
CHANGE = r"(?<=[a-z])(?=[A-Z0-9])|(?<=[A-Z])(?=[0-9])|(?<=[0-9])(?=[A-Za-z])|(?<=[A-Za-z0-9])(?=[!@#$%^&*?~+=])"
MIN_CHANGES = 3
"""Between letters, capitals, digits and signs: `OAuth2Client` has two."""
MAX_MATCHES = 10_000
"""Of one rule in one text, or cells below a heading such as `password`: a second. The rest counts as a secret."""
UNCHECKED = "part with too many names of secrets to be checked"

PLACEHOLDER = (
    r"(?i)x{4,}|\*{3,}|\.{3,}|…|<|\$\{|^\$(?!aact_)[A-Za-z_]\w*|"
    r"\{\{|example|your[-_ ]|change-?me|placeholder|redacted|dummy|0123456|abcdefgh"
)
EXAMPLE_PASSWORDS = ("pass", "password", "passwd", "passw0rd", "secret", "admin", "test", "tiger", "token")
CODE_START = r"--|\$\(|[A-Za-z]:\\|\\\\"
"""An option, a command or a file of Windows."""
CODE_SIGN = r"[()\[\]{}\\|]"
CALL = r"([A-Za-z_$][\w.$]*)[(\[{]"
NAMES = r"\W*(?:(?:[^\W\d]+\d*|\d+)\b\W*)*"
"""Nothing but words and numbers between signs."""
TEMPLATE = r"\{\w*\}|%\(|%s"
NO_SECRET = (
    r"^[A-Za-z_]+(?:[.:][A-Za-z_]\w*)+$|^\w*_\w*[A-Za-z]$|://|^[\w.+-]+@[\w-]+\.[\w.-]+$|^[@#][\w-]+$|^\d{4}-\d\d-\d\d(?!\d)"
    r"|^[$€£]?\d[\d.,]*(?:/\w+)?$|^[~.]?/[\w./-]*$|^v?\d+(?:\.\d+)+[\w.+-]*$"
)
"""`module.name`, `a_name`, an address, `@bex`, `#channel`, a date, a price, a path, a version; but nothing random."""
WORD = r"(?=[A-Z]?[a-z]*[aeiouy]|[AEIOU])[A-Z][a-z]+"
SMALL_WORD = r"(?=[a-z]*[aeiouy])[a-z]{2,}"
CAPITAL_WORDS = rf"(?:{SMALL_WORD}|[A-Za-z](?=[A-Z][a-z]))?(?:{WORD}|[A-Z]{{2,4}}(?![a-z]))*"
WORDS = (
    rf"^{SMALL_WORD}(?:{WORD})+[A-Z]?\d{{0,2}}$|(?i:^(?:argon2|bcrypt|scrypt|pbkdf2|scram-|sha-?\d|md5|oauth2?|totp|fido2"
    r"|hs\d{3}|rs\d{3}|aes-?\d{3}|ed25519|rsa-?\d{4}|1password|base64$|utf-?8)\S{0,20}$)"
)
"""`camelCase2` and the names of algorithms."""
POINTER = (
    r"^(?:arn|ssm|vault):|^projects/|"
    r"^(?i:see|ask|look|check|kept|stored|in|from|siehe|steht|vedi|ver|zie|zobacz)[-_:/](?:[A-Za-z]+[-_:/])*"
    r"(?:(?i:ticket|issue|vault|wiki|page|seite|pagina|docs?|runbook|safe|keychain|keepass|bitwarden|1password|lastpass)"
    r"(?:[-_:/#](?:[A-Z]{2,10}-)?\d{1,6})?|[A-Z]{2,10}-\d{1,6})$"
)
"""Says where a secret is kept: `arn:aws:secretsmanager:…`, `see-ticket-OPS-4412`."""
UUID = r"(?i)[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}"
COMMIT = r"[0-9a-f]{40}"
GIT_WORD = r"(?i)\b(?:git|commits?|committed|sha-?1?|revision|checkout|branch|merged?|cache|etag|digest)\b"


class Rule(NamedTuple):
    """One form of secret: the group `secret` of its pattern, or of what follows it."""

    name: str
    """Empty: the group `name` says what it is."""
    keywords: tuple[str, ...]
    """In lower case. The pattern is tried only near one of them; an empty one is everywhere."""
    pattern: str
    accept: Callable[[re.Match[str], str], bool] | None = None
    """A further check of the match and its secret."""
    min_entropy: float = 0.0
    reach: int = 1_500
    """Characters after the keyword in which the secret ends."""
    before: int = 100
    """Characters before the keyword in which the match begins."""
    follow: tuple[tuple[str, Callable[[re.Match[str], str, str], bool]], ...] = ()
    """What may follow a name, with a check that also gets the name: the secret is there."""
    wraps: bool = False
    """Whether the secret is also found if it is broken over two lines: its form alone says what it is."""


class SecretSpan(NamedTuple):
    """A match of a rule."""

    start: int
    end: int
    name: str


def matches(rule: Rule, text: str, windows: list[tuple[int, int]]) -> Iterator[SecretSpan]:
    """Secrets of one form in these parts of the text."""
    pattern = re.compile(rule.pattern)
    found = (match for start, end in windows for match in pattern.finditer(text, start, end))
    for number, match in enumerate(found):
        if number == MAX_MATCHES:
            yield SecretSpan(match.start(), len(text), UNCHECKED)
            return
        if rule.follow:
            yield from _following(match, rule)
            continue
        secret = match["secret"]
        if entropy(secret) > rule.min_entropy and (not rule.accept or rule.accept(match, secret)):
            yield SecretSpan(*match.span("secret"), rule.name)


def _following(match: re.Match[str], rule: Rule) -> Iterator[SecretSpan]:
    name = match["name"].lower()
    if re.match(POINTER, _word_around(match)):
        return
    for form, accept in rule.follow:
        after = re.compile(form).match(match.string, match.end())
        if after and accept(after, name, after["secret"]):
            yield SecretSpan(*after.span("secret"), _kind(name))
            break


def cells(text: str) -> Iterator[SecretSpan]:
    """Secrets in the columns of Markdown tables whose heading is a name such as `password`."""
    place, heading, checked = 0, "", 0
    columns: list[str] = []
    for line in text.split("\n") if "|" in text else ():
        if "|" not in line:
            columns = []
        elif re.fullmatch(RULER, line):
            columns = [found["name"].lower() if (found := re.search(NAME, cell)) else "" for cell in _split(heading)]
            columns = columns if any(columns) else []
        elif columns:
            checked += min(len(columns), line.count("|"))
            if checked > MAX_MATCHES:
                yield SecretSpan(place, len(text), UNCHECKED)
                return
            yield from _row(line, place, columns)
        place, heading = place + len(line) + 1, line


def _row(line: str, place: int, columns: list[str]) -> Iterator[SecretSpan]:
    start = place + (1 if line.startswith("|") else 0)
    for name, cell in zip(columns, _split(line), strict=False):
        value = re.fullmatch(VALUE_CELL, cell) if name else None
        if value and _is_marked(value, name, value["secret"]):
            yield SecretSpan(start + value.start("secret"), start + value.end("secret"), _kind(name))
        start += len(cell) + 1


def _split(line: str) -> list[str]:
    return line.removeprefix("|").split("|")


def entropy(text: str) -> float:
    """Bits per character."""
    return -sum(count / len(text) * math.log2(count / len(text)) for count in Counter(text).values())


def _kind(name: str) -> str:
    return name if WEAK_NAME.search(name) else "password"


def _is_real(match: re.Match[str], secret: str) -> bool:
    return not re.search(PLACEHOLDER, secret)


def looks_random(text: str) -> bool:
    """Names have no long run of mixed letters and digits, or of letters in changing case."""
    runs = [run for run in re.split(r"[^A-Za-z0-9]+", text) if len(run) >= 16 and not run.isdigit()]
    return any(not run.isalpha() or _is_scrambled(run) for run in runs)


def _is_random(match: re.Match[str], secret: str) -> bool:
    return bool(looks_random(secret) or re.fullmatch(UUID, secret)) and _is_real(match, secret)


def _is_dense(match: re.Match[str], secret: str) -> bool:
    """Random, also in base64, whose signs part the runs."""
    return _is_random(match, secret) or (_is_real(match, secret) and len(re.findall(CHANGE, secret)) >= 2 * MIN_CHANGES)


def _is_url_password(match: re.Match[str], secret: str) -> bool:
    port = secret.isdigit() and len(secret) < 6
    return not port and secret.lower() not in EXAMPLE_PASSWORDS and secret != match["user"] and _is_real(match, secret)


def _is_value(match: re.Match[str], secret: str) -> bool:
    """Neither a placeholder nor code nor a hint."""
    quoted = match.groupdict().get("quote")
    if not _is_real(match, secret) or re.search(TEMPLATE, secret) or (not quoted and _is_code(match, secret)):
        return False
    if re.search(POINTER, secret) or re.search(WORDS, secret) or secret.strip("+*!?").lower() in EXAMPLE_PASSWORDS:
        return False
    return not re.search(NO_SECRET, secret) or _is_random(match, secret)


def _is_code(match: re.Match[str], text: str) -> bool:
    """Source code after `token =`: a call, an index, a union of types. A password may have the same signs."""
    if re.match(CODE_START, text):
        return True
    if not re.search(CODE_SIGN, text):
        return False
    balanced = all(text.count(opened) == text.count(closed) for opened, closed in ("()", "[]", "{}"))
    ended = match.string[match.end("secret") :][:1] in ("", "\n") and not text.endswith(("(", "[", "{"))
    call = re.match(CALL, text)
    if call is None or re.fullmatch(NAMES, text):
        words = re.findall(r"[A-Za-z]{4,}", text)
        spoken = all(word.islower() or word.isupper() or re.fullmatch(CAPITAL_WORDS, word) for word in words)
        return bool(re.fullmatch(NAMES, text)) and (balanced or not ended) and spoken
    changes = len(re.findall(CHANGE, call[1]))
    return (balanced or not ended) and (changes < MIN_CHANGES or 3 * changes < len(call[1]))


def _is_scrambled(text: str) -> bool:
    """Letters in changing case that make no words: `KeePassXC` and `camelCase` do."""
    return (
        text.isascii()
        and text.isalpha()
        and len(re.findall("[a-z][A-Z]", text)) > 1
        and not re.fullmatch(CAPITAL_WORDS, text)
    )


def _is_password(match: re.Match[str], name: str, secret: str) -> bool:
    """After `:`, `=` or `is`: letters mixed with digits or signs, few of them repeated, and no commit."""
    if not _is_value(match, secret) or (WEAK_NAME.search(name) and _is_phrase(secret)):
        return False
    if name == "token" and re.fullmatch(COMMIT, secret) and re.search(GIT_WORD, _line_around(match)):
        return False
    if name == "auth":
        return _is_dense(match, secret)
    word = secret.lstrip("@#~$")
    letters = any(map(str.islower, word)) or any(map(str.isupper, word))
    digits, signs = any(map(str.isdigit, word)), any(sign in word for sign in "!@#$%^&*?~+")
    mixed = (digits and letters) or (signs and (digits or letters))
    if not WEAK_NAME.search(name):  # an unquoted value with a bracket was judged not to be code
        mixed = mixed or _is_scrambled(word) or (not match.groupdict().get("quote") and re.search(CODE_SIGN, word))
    return bool(mixed or _is_random(match, secret)) and entropy(secret) >= MIN_PASSWORD_ENTROPY


def _is_marked(match: re.Match[str], name: str, secret: str) -> bool:
    """In a table, a list or after `for …`: a password has letters and digits, and everything else is random."""
    if not _is_password(match, name, secret) or _is_phrase(secret):
        return False
    return _is_generated(match, name, secret) if WEAK_NAME.search(name) else any(map(str.isdigit, secret))


def _is_generated(match: re.Match[str], name: str, secret: str) -> bool:
    """Where nothing but a name stands before it: something that nobody writes as a word."""
    if not _is_password(match, name, secret) or _is_phrase(secret):
        return False
    changes = len(re.findall(CHANGE, secret))
    return changes >= MIN_CHANGES and (_is_dense(match, secret) or not WEAK_NAME.search(name))


def _is_argument(match: re.Match[str], name: str, secret: str) -> bool:
    """As `_is_generated`, if the name is the first argument of a call: `define('DB_PASSWORD', '…')`."""
    before = match.string[max(0, match.start() - 100) : match.start()]
    return bool(re.search(r"\w\(\s{0,3}[\"'`][\w.-]+$", before)) and _is_generated(match, name, secret)


def _stands_alone(match: re.Match[str], secret: str) -> bool:
    """As `_is_generated`, for rules that name no name."""
    return _is_generated(match, "password", secret)


def _is_phrase(text: str) -> bool:
    """Words and numbers joined by signs, such as `ERC-20/BEP-20`, `gpt-4o-2024-08-06` or a key combination."""
    pieces = re.split(r"[-/+.:_]+", text)
    return len(pieces) > 2 and all(
        len(piece) < 4 or (len(piece) < 13 and (piece.isalpha() or piece.isdigit())) for piece in pieces
    )


def _is_given(match: re.Match[str], secret: str) -> bool:
    """A password of a command, not an option, a variable or a file."""
    if secret.startswith(("-", "$", "/", "@", "env:", "file:", "stdin")):
        return False
    return secret.rstrip("0123456789").lower() not in EXAMPLE_PASSWORDS and _is_real(match, secret)


def _is_encoded_key(match: re.Match[str], secret: str) -> bool:
    return b" PRIVATE KEY" in a2b_base64(secret[:80])


def _is_of_web_key(match: re.Match[str], secret: str) -> bool:
    """A private part of a JSON web key, which has a type."""
    around = match.string[max(0, match.start() - 4_000) : match.end() + 4_000]
    return '"kty"' in around and _is_real(match, secret)


def _has_digit(match: re.Match[str], secret: str) -> bool:
    return any(map(str.isdigit, secret)) and _is_real(match, secret)


def _is_seed(match: re.Match[str], secret: str) -> bool:
    """Twelve or more words that make no sentence."""
    words = re.findall(r"[a-z]+", secret)
    return len(words) % 3 == 0 and not re.search(r"\b(?:the|are|and|for|with|that|not|you|your|was|has|its)\b", secret)


def _word_around(match: re.Match[str]) -> str:
    before = re.search(r"\S*$", match.string[max(0, match.start() - 200) : match.start()])
    return (before[0] if before else "") + match[0]


def _line_around(match: re.Match[str]) -> str:
    text = match.string
    end = text.find("\n", match.end())
    return text[text.rfind("\n", 0, match.start()) + 1 : len(text) if end < 0 else end]


def _is_card(match: re.Match[str], secret: str) -> bool:
    """Luhn's checksum. Numbers with few different digits are examples."""
    digits = [int(digit) for digit in secret if digit.isdigit()]
    doubled = [2 * digit - 9 * (digit > 4) for digit in digits[-2::-2]]
    return len(set(digits)) > 3 and (sum(digits[-1::-2]) + sum(doubled)) % 10 == 0


EDGE = r"(?:(?<![^\W_])|(?-i:(?<=[a-z])(?=[A-Z])))"
"""Where a word begins, also within a longer name: DB_PASSWORD, clientSecret."""
PASSWORD = (
    r"passw(?:or)?ds?|passphrase|passcode|passwort|kennwort|mot de passe|contrase[ñn]a|senha|palavra-passe"
    r"|parola d['’]ordine|wachtwoord|lösenord(?:et)?|passord(?:et)?|adgangskoden?|salasana|has[łl]o|heslo|jelszó"
    r"|şifre(?:si)?|пароль|密[码碼]|パスワード|비밀번호"
)
"""The word in other languages, too. `IS` and `ABOUT` have how their sentences go on."""
NAME = (
    rf"(?i)(?P<name>{PASSWORD}|{EDGE}(?:pass|pwd?|psk"
    r"|secret(?:[ _-]?access)?[ _-]?key(?:_base)?|(?:(?:client|app|shared|webhook|jwt)[ _-]?)?secret"
    r"|(?:api|app|access|account|private|encryption|signing|master|licen[cs]e|deploy|service|storage|recovery"
    r"|fernet|hmac|unseal|shared[ _-]?access)[ _-]?key"
    r"|(?:(?:auth|access|refresh|bearer|api|bot|session)[ _-]?)?token|auth))"
    r"(?:[ _-]key)?(?:[ _-]?(?:\d{1,2}|b(?:ase)?64|prod(?:uction)?|stag(?:e|ing)|dev|test|live|old|new))?(?![^\W_])"
)
WEAK_NAME = re.compile("secret|key|token|auth")
"""Names that also stand for other things than secrets."""
TAG = r"</?[a-z]\w{0,9}>"
END_OF_NAME = rf"(?:[\"'`*_~\])}}]|>(?!=)|{TAG}){{0,4}}"
ABOUT = (
    r"(?: ?\([^()\n]{1,40}\)| (?:(?:for|of|to|on|at|from|in|für|vom|von|zum|zur|im|der|des|de|del|della|di|per|do|da"
    r"|para|pour|du|dla|voor|van|till?|k) |dell['’])[^\n:=|\"`]{1,40}?)"
)
IS = r"\s{1,9}(?:is|was|are|ist|war|lautet|est|es|è|é|e[\u0300\u0301]|era|foi|jest|brzmi|luidt|är|er|je)(?=[\s:])"
BEFORE_VALUE = rf"(?:\s?[|>][+-]?(?=[ \t]*\n))?(?:\s|[*_~(|]|{TAG}){{0,12}}"
VALUE = (
    r"(?:(?P<quote>[\"'`])(?=[^\s\"'`]{8,}+(?P=quote))|[\"'`]?)"
    r"(?P<secret>(?(quote)[^\s\"'`]{8,}|[^\s\"'`,;|<>]{7,199}[^\s\"'`,;|<>.!?)\]*_~:]))"
)
VALUE_WITH_BARS = VALUE.replace(",;|<>]{7", ",;<>]{7")
"""`a|b` is a password after `:`, and two cells in a table."""
VALUE_CELL = rf"[\s*_]*{VALUE}[\s*_\"'`]*"
RULER = r"[ \t>]*\|?[ \t]*:?-[-:| \t]*"
"""The line below the headings of a table."""
NAMED = (
    (
        rf"(?i){END_OF_NAME}(?:\.{{0,40}}\s{{0,9}}(?:=>|[:=]{{1,3}})|{IS}:?|(?<=>)){BEFORE_VALUE}{VALUE_WITH_BARS}",
        _is_password,
    ),
    (rf"(?i){END_OF_NAME}[,]?\s{{1,20}}[\"']?value[\"']?\s{{0,3}}[:=]\s{{0,9}}{VALUE}", _is_password),
    (rf"(?i){END_OF_NAME}\s{{1,3}}(?=[\"'`]){VALUE}", _is_marked),
    (rf"(?i){END_OF_NAME}(?:\s{{0,9}}(?:->|→|\|)|\s{{1,3}}[-–—](?=\s)){BEFORE_VALUE}{VALUE}", _is_marked),
    (rf"(?i){END_OF_NAME}{ABOUT}(?:\s?[:=]|{IS}){BEFORE_VALUE}{VALUE}", _is_marked),
    (
        rf"(?im){END_OF_NAME}:?[*_]{{0,2}}[ \t]*\n(?:[ \t>]*\n)?[ \t>*-]*(?:`{{3,}}\w*\n[ \t>]*)?{VALUE}[`]?[ \t]*$",
        _is_marked,
    ),
    (rf"(?i){END_OF_NAME}\(\s{{0,9}}(?=[\"'`]){VALUE}", _is_generated),
    (rf"(?i){END_OF_NAME}\s{{0,3}},\s{{0,9}}(?=[\"'`]){VALUE}", _is_argument),
    (rf"(?i){END_OF_NAME}(?:{ABOUT})?\s{{1,3}}(?:to|as|auf|en|à)\s{{1,3}}{VALUE}", _is_generated),
    (rf"(?i){END_OF_NAME}[ \t]{{1,3}}(?:--?\w+ )?\(?{VALUE}", _is_generated),
)
"""What follows a name: `: value`, `, value: …`, `"value"`, `-> value`, ` for … is value`, its own line, `("value")`,
`, "value"`, ` to value`, ` value`."""
USER = r"[\w.@+-]{1,60}"
NAME_KEYWORDS = """
    pass pw psk kennwort contrase senha parola wachtwoord senord adgangskode salasana hasł haslo heslo jelszó şifre
    ароль 密 パスワード 비밀번호 secret key token auth""".split()
NAME_RULE = Rule("", tuple(NAME_KEYWORDS), NAME, reach=50, before=20, follow=NAMED)
CHECKS = {
    "any": None,
    "real": _is_real,
    "random": _is_random,
    "dense": _is_dense,
    "url password": _is_url_password,
    "value": _is_value,
    "alone": _stands_alone,
    "given": _is_given,
    "digit": _has_digit,
    "seed": _is_seed,
    "encoded key": _is_encoded_key,
    "JSON web key": _is_of_web_key,
    "card": _is_card,
}
"""What `own_secret_rules.tsv` calls the further checks."""


@functools.cache
def rules_by_keyword() -> dict[str, list[Rule]]:
    """Takes a millisecond, once."""
    rules = [
        Rule(
            name,
            tuple(keywords.split("|")),
            f"(?a:{pattern})",
            _is_random if random == "1" else _is_real,
            min(float(least), MAX_RULE_ENTROPY),
            wraps=True,
        )
        for name, least, random, keywords, pattern in _rows("secret_rules.tsv")
    ]
    for name, check, reach, wraps, keywords, pattern in _rows("own_secret_rules.tsv"):
        pattern = pattern.replace("{USER}", USER).replace("{VALUE}", VALUE)
        own = Rule(name, tuple(keywords.split("|")), pattern, CHECKS[check], reach=int(reach), wraps=wraps == "1")
        rules.append(own)
    by_keyword: dict[str, list[Rule]] = {}
    for rule in (*rules, NAME_RULE):
        for keyword in rule.keywords:
            by_keyword.setdefault(keyword, []).append(rule)
    return by_keyword


def _rows(file: str) -> list[list[str]]:
    with open(os.path.join(os.path.dirname(__file__), file), encoding="utf-8") as lines:
        return [line.rstrip("\n").split("\t") for line in lines if not line.startswith("#")]
