"""Make the pictures of terminals in docs/ from real output: `python -m benchmarks.terminal_picture`.

terminal.svg is `co demo`, and obsidian.svg an Obsidian vault that is added and searched. coding-agent.svg is Claude
Code with co set up in it, if `.ci/clients` installed it: its prompt and hook are real, its model says what
tests/hooks/clients has it say.
"""

from __future__ import annotations

import io
import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

from rich.console import Console
from rich.text import Text

from tests.chat_server import text
from tests.hooks.clients.agents import Agent, program
from tests.hooks.clients.model_server import ModelServer
from tests.importers.exports import BRAIN, write_files

QUESTION = "who decides what ships"
MOTOR = "when did I last service the motor"
NOTE = "Deploys go to the blue pool first. Blue takes traffic for ten quiet minutes, then green follows."
PROMPT = "how do the deploys to the blue pool work?"
ANSWER = "Blue first. It takes traffic for ten quiet minutes, then green follows."
DOCS = Path(__file__).resolve().parents[1] / "docs"


def main() -> None:
    with tempfile.TemporaryDirectory() as home:
        write_files(Path(home, "Obsidian", "brain"), BRAIN)
        _draw("terminal.svg", _terminal(home, f'co demo "{QUESTION}"'))
        _draw("obsidian.svg", _terminal(home, "co add ~/Obsidian/brain", f'co search "{MOTOR}" --limit 2'))
    if program("claude-code").exists():
        _draw("coding-agent.svg", _coding_agent())


def _terminal(home: str, *commands: str) -> str:
    """What these commands print in a terminal, below each of them."""
    surroundings = {**os.environ, "HOME": home, "COLUMNS": "80", "FORCE_COLOR": "1", "TERM": "xterm-256color"}
    shown = ""
    for command in commands:
        typed = f"{sys.executable} -m co_cli {command.removeprefix('co ')}"
        printed = subprocess.run(
            ["script", "-qec", typed, "/dev/null"], env=surroundings, cwd=home, capture_output=True, check=True
        ).stdout.decode()
        # without the progress bar, which the terminal erases
        lines = [line.rpartition("\r")[2] for line in printed.replace("\r\n", "\n").split("\n")]
        while not Text.from_ansi(lines[-1]).plain.strip():
            lines.pop()
        shown += "\n".join([f"$ {command}", *lines, "", ""])
    return shown.replace(home, "~")


def _coding_agent() -> str:
    """A note is saved, co is set up, Claude Code is asked, and what it was given is counted."""
    with tempfile.TemporaryDirectory() as folder, ModelServer([text(ANSWER)]) as server:
        agent = Agent("claude-code", Path(folder), server, CO_KNOWLEDGE_EMBEDDING_PROVIDER="static", COLUMNS="80")
        shown = [_co(agent, "remember", NOTE), _co(agent, "setup", "claude-code")]
        shown.append(f'$ claude -p "{PROMPT}"\n{agent.ask(PROMPT)}')
        if NOTE not in server.asked():
            raise SystemExit("the hook was late, and the model was not given the note: try again")
        return "\n".join([*shown, _co(agent, "feedback", "stats")]).replace(str(agent.home), "~")


def _co(agent: Agent, *words: str) -> str:
    ran = subprocess.run(
        [sys.executable, "-m", "co_cli", *words],
        cwd=agent.project,
        env=agent.environment,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,  # 1 means that nobody searched yet
    )
    typed = " ".join(f'"{word}"' if " " in word else word for word in words)
    return f"$ co {typed}\n{ran.stdout}"


def _draw(name: str, shown: str) -> None:
    console = Console(record=True, width=82, file=io.StringIO(), force_terminal=True)
    console.print(Text.from_ansi(shown))
    picture = console.export_svg(title="co")
    # rich's picture loads its font from elsewhere; any monospaced one will do
    (DOCS / name).write_text(re.sub(r"@font-face \{.*?\}\s*", "", picture, flags=re.S), "utf-8")


if __name__ == "__main__":
    main()
