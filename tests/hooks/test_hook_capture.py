"""A session of a coding agent becomes a conversation, while it goes on."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any

import pytest

from tests.command import Co
from tests.folder import Vault
from tests.hooks.events import event
from tests.safety.fake_secrets import KINDS, make

GITHUB = make(KINDS["github"])
SECONDS = 60
SESSION = "5b7c8c1e-0000-4000-8000-000000000001"


def said(speaker: str, text: str) -> str:
    line: dict[str, Any] = {"type": speaker, "timestamp": "2026-11-17T12:00:00Z"}
    return json.dumps({**line, "message": {"role": speaker, "content": text}}) + "\n"


class Session:
    """A session of Claude Code in a project, with its transcript."""

    def __init__(self, co: Co, vault: Vault) -> None:
        self.co, self.vault, self.transcript = co, vault, co.folder / "transcript.jsonl"

    def say(self, *lines: str) -> None:
        with self.transcript.open("a") as file:
            file.writelines(lines)

    def pause(self, what: str = "answer") -> None:
        stdin = event("claude-code", what, self.co.folder)
        ran = self.co.process("hook", "claude-code", "--seconds", "30", stdin=stdin)  # a busy machine is no bug
        assert (ran.code, ran.out, ran.err) == (0, "", "")

    def kept(self, until: str) -> str:
        """The conversation, once it has this text."""
        deadline = time.monotonic() + SECONDS
        while time.monotonic() < deadline:
            texts = [self.vault.read(path) for path in self.vault.notes() if path.startswith("conversations/")]
            if any(until in text for text in texts):
                assert len(texts) == 1
                return texts[0]
            time.sleep(0.05)
        raise AssertionError(f"{until!r} is in no conversation")


@pytest.fixture
def session(co: Co, vault: Vault, monkeypatch: pytest.MonkeyPatch) -> Session:
    monkeypatch.setenv("CO_CAPTURE", "keep")
    return Session(co, vault)


def test_what_is_said_is_kept_when_the_client_pauses_and_nothing_twice(session: Session) -> None:
    session.say(said("user", "Which harbour?"), said("assistant", "Sol."))
    session.pause()
    first = session.kept("Sol.")

    session.say(said("user", f"Thanks, the token is {GITHUB}."), said("assistant", "Noted."))
    for what in ("answer", "compaction", "end"):
        session.pause(what)
    text = session.kept("Noted.")

    assert text.startswith(first.partition("\n## ")[0].rstrip())
    assert "kind: conversation\n" in text
    assert "provenance: import\nagent: Claude Code\n" in text
    assert GITHUB not in text
    assert [text.count(turn) for turn in ("Which harbour?", "Sol.", "Thanks", "Noted.")] == [1, 1, 1, 1]


def test_the_same_words_said_again_are_kept_again(session: Session) -> None:
    session.say(said("user", "Go on."), said("assistant", "Done."))
    session.pause()
    session.kept("Done.")
    session.say(said("user", "Go on."), said("assistant", "Done."), said("user", "Enough."), said("assistant", "Bye."))
    session.pause()

    text = session.kept("Bye.")

    assert text.count("Go on.") == 2


def test_a_transcript_whose_place_was_lost_is_not_kept_twice(session: Session, data_dir: Path) -> None:
    session.say(said("user", "Which harbour?"), said("assistant", "Sol."))
    session.pause()
    session.kept("Sol.")
    for file in (data_dir / "transcripts").glob("*.json"):
        file.unlink()
    session.say(said("user", "And the pilot?"), said("assistant", "Mara."))
    session.pause()

    text = session.kept("Mara.")

    assert text.count("Sol.") == 1


def test_nothing_is_kept_unless_the_user_chose_it(
    session: Session, monkeypatch: pytest.MonkeyPatch, vault: Vault
) -> None:
    monkeypatch.setenv("CO_CAPTURE", "off")
    session.say(said("user", "Which harbour?"), said("assistant", "Sol."))
    session.pause()
    monkeypatch.setenv("CO_CAPTURE", "keep")
    session.transcript.unlink()
    session.say(said("user", "Only this."), said("assistant", "Yes."))
    session.pause()

    assert "Sol." not in session.kept("Yes.")


def test_a_session_that_was_kept_is_not_imported_again(session: Session, vault: Vault) -> None:
    session.say(said("user", "Which harbour?"), said("assistant", "Sol."))
    session.pause()
    session.kept("Sol.")
    lines = session.transcript.read_text().splitlines()
    named = [json.dumps({**json.loads(line), "sessionId": SESSION}) + "\n" for line in lines]
    session.transcript.write_text("".join(named))

    ran = session.co("data", "import", "claude-code", str(session.transcript), "--yes", "--json")

    assert [item["outcome"] for item in ran.json["items"]] == ["skipped"]
    assert "was kept while it went on" in ran.json["items"][0]["detail"]
    assert len(vault.notes()) == 1


def test_a_clone_that_is_not_trusted_keeps_no_session(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CO_CAPTURE", "keep")
    knowledge = Vault(home / "clone" / ".co-cli" / "knowledge")
    session = Session(Co(home / "clone"), knowledge)
    session.say(said("user", "Which harbour?"), said("assistant", "Sol."))

    data = event("claude-code", "answer", session.co.folder)
    ran = session.co.process("hook", "claude-code", "--capture", stdin=data)  # what `co hook` starts, to wait for it
    before = knowledge.notes()
    assert session.co.process("config", "trust", ".").code == 0
    session.co.process("hook", "claude-code", "--capture", stdin=data)

    assert (ran.code, ran.out, before) == (0, "", [])
    assert len(knowledge.notes()) == 1


def test_a_long_transcript_costs_no_more_than_its_end(session: Session) -> None:
    tool = {"type": "user", "message": {"role": "user", "content": [{"type": "tool_result", "content": "x" * 100_000}]}}
    session.say(said("user", "Which harbour?"), *[json.dumps(tool) + "\n"] * 100, said("assistant", "Sol."))
    session.pause()
    session.kept("Sol.")
    size = session.transcript.stat().st_size
    damaged = bytearray(session.transcript.read_bytes())
    damaged[8_192 : size - 1] = b"?" * (size - 8_193)  # whoever reads it again finds nothing
    session.transcript.write_bytes(damaged)
    session.say(said("user", "And the pilot?"), said("assistant", "Mara."))
    session.pause()

    assert session.kept("Mara.").count("Which harbour?") == 1
