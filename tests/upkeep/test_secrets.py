"""Tokens, keys and passwords are found and never shown whole; words that stand for one are left alone."""

from __future__ import annotations

import pytest

from co_cli.notes.secrets import entropy, find_secrets, redact

GITHUB = "ghp_aB3dE5fG7hI9jK1lM3nO5pQ7rS9tU1vW3xY5"
FOUND = [
    ("a GitHub token", f"Use {GITHUB} for the bot."),
    ("an AWS access key", "key AKIAIOSFODNN7EXAMPL2 in the console"),
    ("a Slack token", "xoxb-123456789012-abcDEF456ghi"),
    ("an API key", "OPENAI=sk-proj-a1B2c3D4e5F6g7H8i9J0k1L2"),
    ("a Google API key", "AIzaSyA1b2C3d4E5f6G7h8I9j0K1l2M3n4O5p6Q"),
    ("a Stripe key", "sk_live_4eC39HqLyjWDarjtT1zdp7dc"),
    ("a signed token", "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0In0.dozjgNryP4J3jVmNHl0w5N"),
    ("a private key", "-----BEGIN OPENSSH PRIVATE KEY-----\nb3BlbnNzaC1rZXk="),
    ("a password in an address", "postgres://shop:hunter2!x@db.local/shop"),
    ("a password", "The password is Tr0ub4dor&3."),
    ("a passphrase", "passphrase: harbour-71-Quince"),
    ("a api_key", 'api_key = "9f8e7d6c5b4a3f2e1d0c"'),
]
CLEAN = [
    "The password is in the safe behind the picture.",
    "password: changeme-please-1",
    "token: <your-token-here-123>",
    "api_key = ${API_KEY_2}",
    "Use sk-xxxxxxxxxxxxxxxxxxxxxxxx as a placeholder.",
    "The secret is explained in the second chapter.",
    "Tokens are counted by tokenizers, and a key opens a door.",
    "https://example.org/token:page-2",
    "The door code is 1111.",
]


@pytest.mark.parametrize(("what", "text"), FOUND)
def test_a_secret_is_found_and_not_given_away(what: str, text: str) -> None:
    found = find_secrets(text)

    assert [secret.what for secret in found] == [what]
    if what != "a private key":
        longest = max(text.replace("@", " ").replace('"', " ").split(), key=len)
        assert longest not in found[0].shown
        assert longest not in redact(text)


@pytest.mark.parametrize("text", CLEAN)
def test_what_only_talks_of_secrets_is_left_alone(text: str) -> None:
    assert find_secrets(text) == []
    assert redact(text) == text


def test_a_secret_that_stands_twice_is_one_with_its_line() -> None:
    assert [(secret.line) for secret in find_secrets(f"first\n{GITHUB}\n{GITHUB}")] == [2]


def test_entropy_is_bits_a_character() -> None:
    assert (entropy(""), entropy("aaaa"), entropy("abcd")) == (0.0, 0.0, 2.0)
