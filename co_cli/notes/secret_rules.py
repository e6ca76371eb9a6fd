"""The forms of secrets: about 350 rules of Betterleaks and gitleaks as data, and our own for what those lack.

The data is `secret_rules.tsv`, made by `.ci/secret_rules.py`. Our own rules look for a name such as `DB_PASSWORD` or
`API key` and a value in the way that files, commands and notes write it. Whether the value is a secret is decided by
`_is_password` after `:`, `=` and `is`, and by the stricter `_is_generated` where nothing marks it as a value.
"""

from __future__ import annotations

import functools
import math
import os
import re
import string
from collections import Counter
from collections.abc import Callable, Iterator
from typing import NamedTuple

RULES_FILE = os.path.join(os.path.dirname(__file__), "secret_rules.tsv")
MAX_RULE_ENTROPY = 3.0
"""Bits per character. Some rules ask for 3.5, but one in seven hexadecimal keys has less."""
MIN_PASSWORD_ENTROPY = 2.5
CHANGE = re.compile(
    r"(?<=[a-z])(?=[A-Z0-9])|(?<=[A-Z])(?=[0-9])|(?<=[0-9])(?=[A-Za-z])|(?<=[A-Za-z0-9])(?=[!@#$%^&*?~+=])"
)
MIN_CHANGES = 3
"""Between letters, capitals, digits and signs: `OAuth2Client` has two."""

PLACEHOLDER = re.compile(
    r"(?i)x{4,}|\*{3,}|\.{3,}|…|<|\$\{|^\$[A-Za-z_]\w*|"
    r"\{\{|example|your[-_ ]|change-?me|placeholder|redacted|dummy|0123456|abcdefgh"
)
EXAMPLE_PASSWORDS = ("pass", "password", "passwd", "passw0rd", "secret", "admin", "test", "tiger", "token")
CODE = re.compile(r"[()\[\]{}\\|]|^--")
"""Source code after `token =`: a call, an index. In quotes, only what a template fills in."""
TEMPLATE = re.compile(r"\{\w*\}|%\(|%s")
NO_SECRET = re.compile(
    r"^[A-Za-z_]+(?:[.:][A-Za-z_]\w*)+$|^\w*_\w*[A-Za-z]$|://|^[\w.+-]+@[\w-]+\.[\w.-]+$|^[@#][\w-]+$|^\d{4}-\d\d-\d\d(?!\d)"
    r"|^[$€£]?\d[\d.,]*(?:/\w+)?$|^[~.]?/[\w./-]*$|^v?\d+(?:\.\d+)+[\w.+-]*$"
)
"""`module.name`, `a_name`, an address, `@bex`, `#channel`, a date, a price, a path, a version; but nothing random."""
WORDS = re.compile(
    r"^[a-z]{2,}(?:[A-Z][a-z]+)+[A-Z]?\d{0,2}$|(?i:^(?:argon2|bcrypt|scrypt|pbkdf2|scram-|sha-?\d|md5|oauth2?|totp|fido2"
    r"|hs\d{3}|rs\d{3}|aes-?\d{3}|ed25519|rsa-?\d{4}|1password|base64$|utf-?8)\S{0,20}$)"
)
"""`camelCase2` and the names of algorithms."""
POINTER = re.compile(
    r"^(?:arn|ssm|vault):|^projects/|"
    r"^(?i:see|ask|look|check|kept|stored|in|from)[-_:/](?:[A-Za-z]+[-_:/])*"
    r"(?:(?i:ticket|issue|vault|wiki|page|docs?|runbook|safe|keychain|keepass|bitwarden|1password|lastpass)"
    r"(?:[-_:/#](?:[A-Z]{2,10}-)?\d{1,6})?|[A-Z]{2,10}-\d{1,6})$"
)
"""Says where a secret is kept: `arn:aws:secretsmanager:…`, `see-ticket-OPS-4412`."""
COMMIT = re.compile(r"[0-9a-f]{40}")
GIT_WORD = re.compile(r"(?i)\b(?:git|commits?|committed|sha-?1?|revision|checkout|branch|merged?|cache|etag|digest)\b")


class Rule(NamedTuple):
    """One form of secret: the group `secret` of its pattern, else the first group that matched, else all of it."""

    name: str
    """Empty: the group `name` says what it is."""
    keywords: tuple[str, ...]
    """In lower case. The pattern is tried only near one of them, or everywhere if there are none."""
    pattern: str
    accept: Callable[[re.Match[str], str], bool] | None = None
    """A further check of the match and its secret."""
    min_entropy: float = 0.0
    reach: int = 1_500
    """Characters after the keyword in which the secret ends."""
    follow: tuple[tuple[str, Callable[[re.Match[str], str, str], bool]], ...] = ()
    """What may follow a name, with a check that also gets the name: the secret is there."""
    wraps: bool = False
    """Whether the secret is also found if it is broken over two lines: its form alone says what it is."""


class Found(NamedTuple):
    """A match of a rule."""

    start: int
    end: int
    name: str


def matches(rule: Rule, text: str, windows: list[tuple[int, int]]) -> Iterator[Found]:
    """Secrets of one form in these parts of the text."""
    pattern = compiled(rule.pattern)
    for match in (match for start, end in windows for match in pattern.finditer(text, start, end)):
        if rule.follow:
            yield from _following(match, rule)
            continue
        groups = (number for number, group in enumerate(match.groups(), 1) if group)
        group = "secret" if "secret" in pattern.groupindex else next(groups, 0)
        if entropy(match[group]) > rule.min_entropy and (not rule.accept or rule.accept(match, match[group])):
            yield Found(*match.span(group), rule.name)


def _following(match: re.Match[str], rule: Rule) -> Iterator[Found]:
    name = match["name"].lower()
    if POINTER.match(_word_around(match)):
        return
    for form, accept in rule.follow:
        after = compiled(form).match(match.string, match.end())
        if after and accept(after, name, after["secret"]):
            yield Found(*after.span("secret"), _kind(name))
            break


def cells(text: str) -> Iterator[Found]:
    """Secrets in the columns of Markdown tables whose heading is a name such as `password`."""
    place, heading = 0, ""
    columns: list[str] = []
    for line in text.split("\n") if "|" in text else ():
        if "|" not in line:
            columns = []
        elif RULER.fullmatch(line):
            columns = [
                found["name"].lower() if (found := compiled(NAME).search(cell)) else "" for cell in _split(heading)
            ]
        elif any(columns):
            yield from _row(line, place, columns)
        place, heading = place + len(line) + 1, line


def _row(line: str, place: int, columns: list[str]) -> Iterator[Found]:
    start = place + (1 if line.startswith("|") else 0)
    for name, cell in zip(columns, _split(line), strict=False):
        value = compiled(VALUE_CELL).fullmatch(cell) if name else None
        if value and _is_marked(value, name, value["secret"]):
            yield Found(start + value.start("secret"), start + value.end("secret"), _kind(name))
        start += len(cell) + 1


def _split(line: str) -> list[str]:
    return line.removeprefix("|").split("|")


def entropy(text: str) -> float:
    """Bits per character."""
    return -sum(count / len(text) * math.log2(count / len(text)) for count in Counter(text).values())


def _kind(name: str) -> str:
    return name if WEAK_NAME.search(name) else "password"


def _is_real(match: re.Match[str], secret: str) -> bool:
    return not PLACEHOLDER.search(secret)


def _is_random(match: re.Match[str], secret: str) -> bool:
    """Names have no long run of mixed letters and digits, or of letters in changing case."""
    runs = [run for run in re.split(r"[^A-Za-z0-9]+", secret) if len(run) >= 16 and not run.isdigit()]
    return _is_real(match, secret) and any(not run.isalpha() or len(re.findall("[a-z][A-Z]", run)) >= 3 for run in runs)


def _is_dense(match: re.Match[str], secret: str) -> bool:
    """Random, also in base64, whose signs part the runs."""
    return _is_random(match, secret) or (_is_real(match, secret) and len(CHANGE.findall(secret)) >= 2 * MIN_CHANGES)


def _is_url_password(match: re.Match[str], secret: str) -> bool:
    port = secret.isdigit() and len(secret) < 6
    return not port and secret.lower() not in EXAMPLE_PASSWORDS and secret != match["user"] and _is_real(match, secret)


def _is_value(match: re.Match[str], secret: str) -> bool:
    """Neither a placeholder nor code nor a hint."""
    quoted = match.groupdict().get("quote")
    if not _is_real(match, secret) or (TEMPLATE if quoted else CODE).search(secret):
        return False
    if POINTER.search(secret) or WORDS.search(secret) or secret.strip("+*!?").lower() in EXAMPLE_PASSWORDS:
        return False
    return not NO_SECRET.search(secret) or _is_random(match, secret)


def _is_password(match: re.Match[str], name: str, secret: str) -> bool:
    """After `:`, `=` or `is`: letters mixed with digits or signs, few of them repeated, and no commit."""
    if not _is_value(match, secret) or (WEAK_NAME.search(name) and _is_phrase(secret)):
        return False
    if name == "token" and COMMIT.fullmatch(secret) and GIT_WORD.search(_line_around(match)):
        return False
    if name == "auth":
        return _is_dense(match, secret)
    word = secret.lstrip("@#~$")
    letters = any(map(str.islower, word)) or any(map(str.isupper, word))
    digits, signs = any(map(str.isdigit, word)), any(sign in word for sign in "!@#$%^&*?~+")
    mixed = (digits and letters) or (signs and (digits or letters))
    return (mixed or _is_random(match, secret)) and entropy(secret) >= MIN_PASSWORD_ENTROPY


def _is_marked(match: re.Match[str], name: str, secret: str) -> bool:
    """In a table, a list or after `for …`: a password has letters and digits, and everything else is random."""
    if not _is_password(match, name, secret) or _is_phrase(secret):
        return False
    return _is_generated(match, name, secret) if WEAK_NAME.search(name) else any(map(str.isdigit, secret))


def _is_generated(match: re.Match[str], name: str, secret: str) -> bool:
    """Where nothing but a name stands before it: something that nobody writes as a word."""
    if not _is_password(match, name, secret) or _is_phrase(secret):
        return False
    changes = len(CHANGE.findall(secret))
    return changes >= MIN_CHANGES and (_is_dense(match, secret) or not WEAK_NAME.search(name))


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
    return secret.rstrip(string.digits).lower() not in EXAMPLE_PASSWORDS and _is_real(match, secret)


def _has_digit(match: re.Match[str], secret: str) -> bool:
    return any(map(str.isdigit, secret)) and _is_real(match, secret)


def _is_seed(match: re.Match[str], secret: str) -> bool:
    """Twelve or more words that make no sentence."""
    words = secret.split()
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
NAME = (
    r"(?i)(?P<name>passw(?:or)?ds?|passwort|passphrase|passcode|kennwort|mot de passe|contrase[ñn]a|senha|wachtwoord"
    rf"|lösenord|пароль|密[码碼]|パスワード|비밀번호|{EDGE}(?:pass|pwd?|psk"
    r"|secret(?:[ _-]?access)?[ _-]?key(?:_base)?|(?:client|app|shared|webhook|jwt)?[ _-]?secret"
    r"|(?:api|app|access|account|private|encryption|signing|master|licen[cs]e|deploy|service|storage|recovery)[ _-]?key"
    r"|shared[ _-]?access[ _-]?key|(?:auth|access|refresh|bearer|api|bot|session)?[ _-]?token|auth))"
    r"(?:[ _-]?(?:\d{1,2}|prod(?:uction)?|stag(?:e|ing)|dev|test|live|old|new))?(?![^\W_])"
)
WEAK_NAME = re.compile("secret|key|token|auth")
"""Names that also stand for other things than secrets."""
TAG = r"</?[a-z]\w{0,9}>"
END_OF_NAME = rf"(?:[\"'`*_~\])}}]|>(?!=)|{TAG}){{0,4}}"
ABOUT = r"(?: ?\([^()\n]{1,40}\)| (?:for|of|to|on|at|from|in|für|der|des|de|del|du) [^\n:=|\"`]{1,40}?)"
IS = r"\s{1,9}(?:is|was|are|ist|war|lautet|est|es)(?=[\s:])"
BEFORE_VALUE = rf"(?:\s?[|>][+-]?(?=[ \t]*\n))?(?:\s|[*_~(|]|{TAG}){{0,12}}"
VALUE = (
    r"(?:(?P<quote>[\"'`])(?=[^\s\"'`]{8,200}(?P=quote))|[\"'`]?)"
    r"(?P<secret>(?(quote)[^\s\"'`]{8,200}|[^\s\"'`,;|<>]{7,199}[^\s\"'`,;|<>.!?)\]*_~:]))"
)
VALUE_CELL = rf"[\s*_]*{VALUE}[\s*_\"'`]*"
RULER = re.compile(r"[ \t>]*\|?[ \t]*:?-[-:| \t]*")
"""The line below the headings of a table."""
NAMED = (
    (rf"(?i){END_OF_NAME}(?:\.{{0,40}}\s{{0,9}}(?:=>|[:=]{{1,3}})|{IS}:?|(?<=>)){BEFORE_VALUE}{VALUE}", _is_password),
    (rf"(?i){END_OF_NAME}[,]?\s{{1,20}}[\"']?value[\"']?\s{{0,3}}[:=]\s{{0,9}}{VALUE}", _is_password),
    (rf"(?i){END_OF_NAME}\s{{1,3}}(?=[\"'`]){VALUE}", _is_marked),
    (rf"(?i){END_OF_NAME}(?:\s{{0,9}}(?:->|→|\|)|\s{{1,3}}[-–—](?=\s)){BEFORE_VALUE}{VALUE}", _is_marked),
    (rf"(?i){END_OF_NAME}{ABOUT}(?:\s?[:=]|{IS}){BEFORE_VALUE}{VALUE}", _is_marked),
    (
        rf"(?im){END_OF_NAME}:?[*_]{{0,2}}[ \t]*\n(?:[ \t>]*\n)?[ \t>*-]*(?:`{{3,}}\w*\n[ \t>]*)?{VALUE}[`]?[ \t]*$",
        _is_marked,
    ),
    (rf"(?i){END_OF_NAME}[ \t]{{1,3}}(?:--?\w+ )?\(?{VALUE}", _is_generated),
)
"""What follows a name: `: value`, `, value: …`, `"value"`, `-> value`, ` for … is value`, its own line, ` value`."""
USER = r"[\w.@+-]{1,60}"
OWN_RULES = (
    Rule(
        "private key",
        ("-----begin",),
        r"-----BEGIN (?:[A-Z0-9]+ )*PRIVATE KEY(?: BLOCK)?-----"
        r"(?=[\s\S]{0,400}?[A-Za-z0-9+/=]{32})"  # the first line alone gives nothing away
        r"(?:[^-]{0,20000}-----END (?:[A-Z0-9]+ )*PRIVATE KEY(?: BLOCK)?-----|[A-Za-z0-9+/=\s:,-]{0,20000}(?<=\S))",
        reach=21_000,
    ),
    Rule(
        "private key",
        ("private-lines",),
        r"Private-Lines: \d{1,4}\s{1,4}(?P<secret>[A-Za-z0-9+/=\s]{40,20000}(?<=\S))",
        reach=21_000,
    ),
    Rule(
        "password in an address",
        ("://",),
        r"\b[a-z][a-z0-9+.-]{1,20}://(?P<user>[^\s:/@]{0,200}):(?P<secret>[^\s:/@]{4,200})@",
        _is_url_password,
    ),
    Rule("token in an address", ("://",), r"://(?P<secret>[A-Za-z0-9_-]{20,255})(?::x-oauth-basic)?@", _is_random),
    Rule("signature", ("sig=",), r"[?&]sig=(?P<secret>[A-Za-z0-9+/%=]{20,200})", _is_random),
    Rule(  # services without a rule of their own copy the form of a better-known one
        "API key",
        ("sk-", "ghp_", "gho_", "ghu_", "ghs_", "ghr_", "sk_live_", "sk_test_", "rk_live_", "rk_test_"),
        r"\b(?:sk-[A-Za-z0-9_-]{20,200}|gh[pousr]_[A-Za-z0-9]{30,255}|[rs]k_(?:live|test)_[0-9A-Za-z]{16,255})",
        _is_random,
        wraps=True,
    ),
    Rule("telegram bot token", (":aa",), r"(?<!\d)\d{8,10}:AA[A-Za-z0-9_-]{33}(?![A-Za-z0-9_-])", _is_real, wraps=True),
    Rule(
        "",
        (
            "pass",
            "pw",
            "psk",
            "kennwort",
            "contrase",
            "senha",
            "wachtwoord",
            "senord",
            "ароль",
            "密",
            "パスワード",
            "비밀번호",
            "secret",
            "key",
            "token",
            "auth",
        ),
        NAME,
        reach=80,
        follow=NAMED,
    ),
    Rule(
        "password",
        (" is the ", " is my ", " is our ", " as the ", " as my "),
        r"(?i)(?<!\S)[\"'`(]?(?P<secret>[^\s\"'`()<>|]{8,100})[\"'`)]?,? (?:is|as) (?:the|my|our) (?:[\w-]+ ){0,3}?"
        r"(?:password|passphrase|passcode|api key|token|secret)\b",
        _stands_alone,
        reach=100,
    ),
    Rule(
        "password",
        ("login", "credential", "creds", "user/pass", "username/pass", "zugangsdaten"),
        rf"(?i)(?:login|credentials?|creds|user(?:name)?/pass(?:word)?|zugangsdaten)\W{{1,6}}{USER} ?[/:,] ?{VALUE}",
        _stands_alone,
        reach=400,
    ),
    Rule(
        "password",
        ("machine ", "default login"),
        r"(?:machine\s+\S{1,100}|default)\s+login\s+\S{1,100}\s+password\s+(?P<secret>\S{4,200})",
        _is_real,
    ),
    Rule(
        "password",
        (":5432:", ":*:", ":3306:", ":1433:"),
        r"(?m)(?<!\S)[\w.*-]{1,100}:(?:\d{4,5}|\*):[\w*-]{1,60}:[\w*.-]{1,60}:(?P<secret>\S{6,200})",
        _is_real,
    ),
    Rule("password", ("wifi:",), r"(?i)WIFI:(?:[STH]:[^;\n]{0,100};)*P:(?P<secret>[^;\n]{8,100});", _is_real),
    Rule(
        "password",
        ("identified by", "identified with", "convertto-securestring"),
        r"(?i)(?:identified (?:with \S+ )?by|convertto-securestring(?: -string)?)"
        r" (?P<quote>['\"])(?P<secret>[^'\"\s]{6,200})",
        _is_value,
    ),
    Rule(
        "authorization",
        ("authorization", "bearer "),
        r"(?i)(?:authorization[\"'`]?\s{0,3}[:=]\s{0,3}[\"'`]?(?:(?:bearer|basic|token|apikey) )?(?:token=)?|\bbearer )"
        r"\s{0,3}(?P<secret>[A-Za-z0-9._~+/=-]{16,2000})",
        _is_dense,
    ),
    Rule(
        "cookie",
        ("cookie",),
        r"(?i)cookie[\"'`]?\s{0,3}[:=][^\n]{0,200}?\b\w{0,30}(?:sess|sid|auth|token)\w{0,30}=(?P<secret>[^\s;,\"'`]{16,500})",
        _is_dense,
    ),
    Rule(
        "password in a command",
        ("curl", "http ", "https ", "wget", "smbclient", "mosquitto"),
        r"\b(?:curl|https?|wget|smbclient|mosquitto_\w+) [^\n|]{0,300}?(?<=\s)(?:-[uUa]|--(?:proxy-)?(?:user|auth))"
        rf"[ =]?[\"']?{USER}[:%](?P<secret>[^\s\"'`]{{4,200}})",
        _is_given,
    ),
    Rule(
        "password in a command",
        (
            "mysql",
            "mariadb",
            "docker login",
            "podman login",
            "sshpass",
            "redis-cli",
            "az login",
            "oc login",
            "mongo",
            "7z",
        ),
        r"\b(?:mysql\w*|mariadb\w*|(?:docker|podman|az|oc) login|sshpass|redis-cli|mongo\w*|7z) [^\n|]{0,300}?(?<=\s)"
        r"(?:-[pawP]|--(?:pass(?:word)?|token)) ?=?[\"']?(?P<secret>[^\s\"'`]{6,200})",
        _is_given,
    ),
    Rule("password in a command", ("pass:",), r"-pass(?:in|out)? pass:(?P<secret>[^\s\"'`]{4,200})", _is_given),
    Rule(
        "password in a command",
        ("sudo -s", "--password-stdin"),
        r"\becho (?:-n )?[\"']?(?P<secret>[^\s\"'`$]{6,200})[\"']? ?\| ?[^\n|]{0,60}(?:sudo -S|--password-stdin)",
        _is_real,
    ),
    Rule(
        "recovery code",
        ("recovery code", "backup code", "scratch code", "recovery-code", "backup-code"),
        r"(?i)(?:recovery|backup|scratch)[ -]codes?\W{1,12}"
        r"(?P<secret>[a-z0-9]{4,6}[- ]?[a-z0-9]{4,6}(?:[\s,*-]{1,6}[a-z0-9]{4,6}-?[a-z0-9]{4,6}\b)*)",
        _has_digit,
    ),
    Rule(
        "seed phrase",
        ("seed", "mnemonic", "recovery phrase", "recovery words"),
        r"(?i:seed|mnemonic|(?:seed|mnemonic|recovery) (?:phrase|words))[\"'`*_]{0,3}\s?(?:is|[:=])[\"'`*_\s]{0,9}"
        r"(?P<secret>[a-z]{3,8}(?:[ ,]{1,2}[a-z]{3,8}|\s{1,3}[a-z]{3,8}){11,23})\b",
        _is_seed,
    ),
    Rule(  # with the length that its first digits say: IMEIs and product codes have the same checksum
        "card number",
        (),
        r"(?<![\w.-])(?P<secret>(?:4\d{3}|5[1-5]\d\d|2[2-7]\d\d|35\d\d|6011|6[245]\d\d)([ -]?)\d{4}\2\d{4}\2\d{4}"
        r"|3[47]\d{2}([ -]?)\d{6}\3\d{5}|3[068]\d{2}([ -]?)\d{6}\4\d{4})(?![\w.-]*\w)",
        _is_card,
    ),
)


@functools.cache
def rules_by_keyword() -> dict[str, list[Rule]]:
    """Takes a millisecond, once."""
    with open(RULES_FILE, encoding="utf-8") as file:
        rows = [line.rstrip("\n").split("\t") for line in file]
    rules = [
        Rule(
            name,
            tuple(keywords.split("|")),
            f"(?a:{pattern})",
            _is_random if random == "1" else _is_real,
            min(float(least), MAX_RULE_ENTROPY),
            wraps=True,
        )
        for name, least, random, keywords, pattern in rows
    ]
    by_keyword: dict[str, list[Rule]] = {}
    for rule in (*rules, *OWN_RULES):
        for keyword in rule.keywords or ("",):
            by_keyword.setdefault(keyword, []).append(rule)
    return by_keyword


@functools.lru_cache(maxsize=64)
def compiled(pattern: str) -> re.Pattern[str]:
    return re.compile(pattern)
