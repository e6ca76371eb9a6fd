"""Keys, tokens, passwords and card numbers are found and never shown whole; what only looks like one is left alone."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

import pytest

from co_cli.ground.errors import SecretError
from co_cli.notes.secret_rules import Rule, matches, rules_by_keyword
from co_cli.notes.secrets import find_secrets, mask, redact, reveals_secret, without_secrets
from tests.safety.fake_secrets import FORMS, KINDS, LOOKALIKES, make, secret_of, secrets_of
from tests.safety.rule_examples import Example

SEEDS = range(5)
REPOSITORY = Path(__file__).parents[2]
OURS = ("README.md", "AGENTS.md", "CHANGELOG.md", "SECURITY.md", "docs", "knowledge", ".co-cli", "co_cli/saving")


def test_every_kind_of_secret_is_found_and_masked() -> None:
    assert len(KINDS) >= 60
    for form in KINDS.values():
        for seed in SEEDS:
            text, secret = f"Bex said:\nsee {make(form, seed)} there", secret_of(form, seed)
            found, redacted = find_secrets(text), redact(text)

            assert [one.line for one in found] == [2], text
            assert secret not in found[0].shown
            assert left_over(secret, redacted) == set()
            assert find_secrets(redacted) == []
            assert redacted.startswith("Bex said:\nsee ")


def test_every_way_to_write_a_secret_down_is_found_and_masked() -> None:
    assert len(FORMS) >= 100
    for form in FORMS:
        for seed in SEEDS:
            text = f"Bex said this.\n\n{make(form, seed)}\n"
            redacted = redact(text)

            assert find_secrets(text), text
            assert not any(left_over(secret, redacted) for secret in secrets_of(form, seed)), (text, redacted)
            assert redacted.startswith("Bex said this.\n\n")


def left_over(secret: str, redacted: str) -> set[str]:
    """Every 8 characters of a secret that a text still has."""
    return {part for start in range(len(secret) - 7) if (part := secret[start : start + 8]) in redacted}


@pytest.mark.slow
def test_a_mask_hides_the_secret_of_every_rule() -> None:
    rules = {rule for rules in rules_by_keyword().values() for rule in rules}
    forms = [make(form, seed) for form in (*KINDS.values(), *FORMS) for seed in SEEDS]
    others = {rule for rule in rules if "(?a:" in rule.pattern}
    for rule in others:
        example = next(one for seed in range(40) if found(rule, (one := Example(rule.pattern, seed)).text))
        redacted = redact(f"{rule.keywords[0]}\n{example.text}\n").partition("\n")[2]
        redacted = redacted.replace(mask(example.secret), "")  # which says what kind of private key it is

        assert [part for part in example.stretches(8) if part in redacted] == [], (rule.name, example.text, redacted)

    assert len(others) > 340
    assert [rule.name for rule in rules - others if not any(found(rule, text) for text in forms)] == []


def found(rule: Rule, text: str) -> bool:
    return any(matches(rule, text, [(0, len(text))]))


@pytest.mark.slow
def test_a_mask_hides_all_of_a_long_secret() -> None:
    for form in (
        "password: {p400}",
        "password: {p150}!{p150}",
        'password: "{p150},{p150}"',
        "sonar.login=squ_{h40}",
        "sk-{A300}",
        "bedrock-api-key-YmVkcm9jay5hbWF6b25hd3MuY29t{b300}",
        "Authorization: Bearer {A3000}",
        "Cookie: sessionid={A700}; lang=de",
        "https://api.weather.test/?sig={A300}",
        "mysql -u root -p{p300} shop",
    ):
        text = make(form)
        redacted = redact(f"Bex: {text} and so on")

        assert [left_over(secret, redacted) for secret in secrets_of(form) if left_over(secret, redacted)] == [], text
        assert redacted.endswith("and so on")


def test_what_only_looks_like_a_secret_is_left_alone() -> None:
    assert len(LOOKALIKES) >= 270
    for text in (make(form, seed) for form in LOOKALIKES for seed in SEEDS):
        assert find_secrets(text) == [], text
        assert redact(text) == text


def test_no_false_alarm_in_the_sample_vault_the_docs_and_the_program() -> None:
    texts = [
        path
        for name in OURS
        for path in ([REPOSITORY / name] if (REPOSITORY / name).is_file() else sorted((REPOSITORY / name).rglob("*")))
        if path.suffix in (".md", ".jsonl", ".py", ".toml", ".sql")
    ]

    assert len(texts) > 150
    alarms = {path.name: find_secrets(path.read_text("utf-8")) for path in texts}
    assert {name: found for name, found in alarms.items() if found} == {}


def test_a_title_that_was_cut_out_of_a_text_is_known_to_give_its_secret_away() -> None:
    token = make("ghp_{A36}")

    assert reveals_secret(f"Use {token[:20]}", f"Use {token} for the bot")
    assert reveals_secret(f"Use {token[:20].replace('_', '')}", f"Use {token} for the bot")
    assert not reveals_secret("Use the bot", f"Use {token} for the bot")


def test_an_escape_of_markdown_hides_nothing() -> None:
    token = make("github_pat_{A82}").replace("_", "\\_")

    assert redact(f"a \\_ b\n{token} c \\- d") == "a \\_ b\ngith… (95 characters) c \\- d"


def test_letters_that_change_their_number_in_lower_case_hide_nothing() -> None:
    assert len(find_secrets(f"İİİİ {make('ghp_{A36}')}")) == 1


def test_what_was_there_before_is_not_complained_of_again() -> None:
    old, new = make("ghp_{A36}", 1), make("ghp_{A36}", 2)

    assert without_secrets(f"{old} changed", "refuse", before=old) == f"{old} changed"
    assert without_secrets(f"{old} {new}", "redact", before=old).startswith(f"{old} ghp_…")
    with pytest.raises(SecretError, match=r"pat \(line 1: ghp_… \(40 characters\)\), and nothing was saved") as raised:
        without_secrets(f"{old} {new}", "refuse", before=old)
    assert new[4:] not in str(raised.value)


def test_no_secret_hides_behind_more_matches_than_are_checked() -> None:
    token = make("password: {p12}")
    for decoys in ("pw=\n" * 20_000, "| password |\n| --- |\n" + "| no |\n" * 20_000 + "\n"):
        redacted = redact(f"{decoys}{token}")

        assert left_over(token.split()[1], redacted) == set()
        assert "part with too many names of secrets" in find_secrets(f"{decoys}{token}")[0].what


@pytest.mark.slow
def test_a_hostile_text_takes_no_longer_than_a_long_one() -> None:
    for hostile in (
        "password: ",
        "-----BEGIN PRIVATE KEY-----",
        "http://a:b@",
        "ghp_",
        "eyJ",
        "4111 1111 ",
        "sk-a1",
        "twitter = a1 ",
        "| password |\n| --- |\n",
        "echo a | sudo -s",
        "ghp_a1B2c3d4\n",
        "pw=",
        "| a1b2c3d4 |\n",
        "hasło do ",
        "otp aaaa ",
        "Cookie: a; ",
        "wallet 1. abandon ",
    ):
        started = time.process_time()
        find_secrets((hostile * 50_000)[:100_000])

        assert time.process_time() - started < 5, hostile


def test_a_long_line_of_prose_costs_less_than_to_look_for_every_keyword_in_it() -> None:
    words = "the boat was late and everyone on the quay waited for news of it in the rain because nobody had a radio —"
    line = " ".join(f"{word} {number}" for number in range(300) for word in words.split())
    keywords = [*rules_by_keyword()]

    looking = min(cpu_time(lambda: [keyword in line for keyword in keywords]) for _ in range(5))
    scanning = min(cpu_time(lambda end=end: find_secrets(f"{line}{end}")) for end in range(5))

    assert scanning < looking


def cpu_time(work: Callable[[], object]) -> float:
    started = time.process_time()
    work()
    return time.process_time() - started
