"""Servers of a team: each has a clone of one repository, and all have one database."""

from __future__ import annotations

import subprocess
import time
from pathlib import Path

import psycopg

from co_cli.entrance.knowledge_base import KnowledgeBase
from co_cli.ground.settings import load_settings
from co_cli.server.access_tokens import team_of as server_team_of
from co_cli.vault.team.keeper import Keeper
from co_cli.vault.team.team_vault import TeamVault
from tests.server.browser import PATIENCE


def git(folder: Path, *arguments: str) -> str:
    identity = ("-c", "user.name=Nils", "-c", "user.email=nils@example.org", "-c", "init.defaultBranch=main")
    done = subprocess.run(["git", *identity, *arguments], cwd=folder, capture_output=True, check=True)
    return done.stdout.decode().strip()


def commit(folder: Path, path: str, text: str | None, message: str = "By hand") -> None:
    """Change one file by hand and commit it."""
    file = folder / path
    file.parent.mkdir(parents=True, exist_ok=True)
    if text is None:
        file.unlink()
    else:
        file.write_text(text, "utf-8")
    git(folder, "add", "--all", path)
    git(folder, "commit", "--quiet", "-m", message)


class Team:
    """A bare repository with one note, a person's clone of it, and servers."""

    def __init__(self, place: Path, address: str) -> None:
        self.place, self.address = place, address
        self.remote, self.clone = place / "notes.git", place / "nils"
        self.replica = ""
        self._open: list[KnowledgeBase] = []
        git(place, "init", "--quiet", "--bare", str(self.remote))
        git(place, "clone", "--quiet", str(self.remote), str(self.clone))
        commit(self.clone, "memories/oak.md", "Oaks live long.\n")
        git(self.clone, "push", "--quiet", "origin", "HEAD")

    def server(self, name: str, provider: str = "static") -> KnowledgeBase:
        """Another server with a clone of its own, or the one that has it already. Slow vectors wait."""
        folder = self.place / name
        if not folder.exists():
            git(self.place, "clone", "--quiet", str(self.remote), str(folder))
        return self.open(folder, provider)

    def open(self, folder: Path, provider: str = "static") -> KnowledgeBase:
        flags = {"vault": str(folder), "data_dir": str(self.place / f"{folder.name}-data")}
        environ = {
            "CO_ENGINE": self.address,
            "CO_ENGINE_REPLICA": self.replica,
            "CO_KNOWLEDGE_READER": "off",
            "CO_KNOWLEDGE_EMBEDDING_PROVIDER": provider,
        }
        kb = KnowledgeBase.open(settings=load_settings(flags, environ))
        self._open.append(kb)
        kb.sync(seconds=None if provider == "static" else 0)
        return kb

    def push(self, path: str, text: str | None) -> None:
        """What a person does who uses git: pull, edit, commit, push."""
        git(self.clone, "pull", "--quiet", "--rebase")
        commit(self.clone, path, text)
        git(self.clone, "push", "--quiet")

    def pushed(self, path: str) -> str:
        """What the remote has."""
        return git(self.remote, "show", f"HEAD:{path}")

    def ask(self, statement: str) -> list[tuple[object, ...]]:
        with psycopg.connect(self.address) as connection:
            cursor = connection.execute(statement.encode())
            return cursor.fetchall() if cursor.description else []

    def close(self) -> None:
        for kb in self._open:
            kb.close()


def team_of(kb: KnowledgeBase) -> TeamVault:
    team = server_team_of(kb.vault)
    assert team
    return team


def kept_texts(folder: Path) -> list[str]:
    """Texts that were moved aside."""
    return [file.read_text() for file in sorted((folder / ".git" / "co-kept").rglob("*.md"))]


def keep(kb: KnowledgeBase, audit_days: int = 0) -> None:
    """One round of the keeper. It waits for the lease, which is free some time after the last connection is closed."""
    keeper, end = Keeper(team_of(kb), lambda: audit_days), time.monotonic() + PATIENCE
    while True:
        with keeper.lease() as lease:
            if lease:
                keeper.round(lease)
                return
        assert time.monotonic() < end, "another server keeps the vault"
        time.sleep(0.05)
