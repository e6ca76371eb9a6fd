"""Keys, tokens, passwords and card numbers are found and never shown whole; what only looks like one is left alone."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from co_cli.errors import SecretError
from co_cli.notes.secrets import entropy, find_secrets, gives_away, redact, without_secrets
from tests.safety.fake_secrets import KINDS, LOOKALIKES, make, secret_of

SEEDS = range(5)
REPOSITORY = Path(__file__).parents[2]
OURS = ("README.md", "AGENTS.md", "CHANGELOG.md", "SECURITY.md", "docs", "knowledge", ".co-cli", "co_cli/service")


@pytest.mark.parametrize("kind", KINDS)
def test_a_secret_is_found_and_not_given_away(kind: str) -> None:
    for seed in SEEDS:
        text, secret = f"Bex said:\nsee {make(KINDS[kind], seed)} there", secret_of(kind, seed)
        found = find_secrets(text)

        assert [one.line for one in found] == [2], text
        assert secret not in found[0].shown
        redacted = redact(text)
        assert secret not in redacted
        assert find_secrets(redacted) == []
        assert redacted.startswith("Bex said:\nsee ")


@pytest.mark.parametrize("form", LOOKALIKES)
def test_what_only_looks_like_a_secret_is_left_alone(form: str) -> None:
    for seed in SEEDS:
        assert find_secrets(make(form, seed)) == []
        assert redact(make(form, seed)) == make(form, seed)


def test_the_tables_are_long_enough() -> None:
    assert len(KINDS) >= 60
    assert len(LOOKALIKES) >= 60


def test_no_false_alarm_in_the_sample_vault_the_docs_and_the_program() -> None:
    texts = [
        path
        for name in OURS
        for path in ([REPOSITORY / name] if (REPOSITORY / name).is_file() else sorted((REPOSITORY / name).rglob("*")))
        if path.suffix in (".md", ".jsonl", ".py", ".toml", ".sql")
    ]

    assert len(texts) > 200
    alarms = {path.name: find_secrets(path.read_text("utf-8")) for path in texts}
    assert {name: found for name, found in alarms.items() if found} == {}


def test_a_secret_that_stands_twice_is_one_with_its_first_line_and_both_are_masked() -> None:
    token = make("ghp_{A36}")

    assert [one.line for one in find_secrets(f"first\n{token}\n{token}")] == [2]
    assert token not in redact(f"{token} {token}")


def test_a_password_is_masked_also_where_no_word_gives_it_away() -> None:
    word = make("{A4}-{A5}!{d3}")

    assert word not in redact(f"The password is {word}. Yes, {word}")


def test_a_title_that_was_cut_out_of_a_text_is_known_to_give_its_secret_away() -> None:
    token = make("ghp_{A36}")

    assert gives_away(f"Use {token[:20]}", f"Use {token} for the bot")
    assert gives_away(f"Use {token[:20].replace('_', '')}", f"Use {token} for the bot")
    assert not gives_away("Use the bot", f"Use {token} for the bot")


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


@pytest.mark.parametrize(
    "hostile",
    ["password: ", "-----BEGIN PRIVATE KEY-----", "http://a:b@", "ghp_", "eyJ", "4111 1111 ", "sk-a1", "twitter = a1 "],
)
def test_a_hostile_text_takes_no_longer_than_a_long_one(hostile: str) -> None:
    started = time.process_time()
    find_secrets((hostile * 100_000)[:200_000])

    assert time.process_time() - started < 10


def test_entropy_is_bits_a_character() -> None:
    assert (entropy(""), entropy("aaaa"), entropy("abcd")) == (0.0, 0.0, 2.0)
