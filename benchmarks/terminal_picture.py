"""Make docs/terminal.svg from the real output of `co demo`: `python -m benchmarks.terminal_picture`."""

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

QUESTION = "who decides what ships"
PICTURE = Path(__file__).resolve().parents[1] / "docs" / "terminal.svg"


def main() -> None:
    with tempfile.TemporaryDirectory() as home:
        surroundings = {**os.environ, "HOME": home, "COLUMNS": "80", "FORCE_COLOR": "1", "TERM": "xterm-256color"}
        command = f'{sys.executable} -m co_cli demo "{QUESTION}"'
        shown = subprocess.run(
            ["script", "-qec", command, "/dev/null"], env=surroundings, capture_output=True, check=True
        ).stdout.decode()
    console = Console(record=True, width=82, file=io.StringIO(), force_terminal=True)
    # without the progress bar, which the terminal erases
    answer = "\n".join(line.rpartition("\r")[2] for line in shown.replace("\r\n", "\n").split("\n"))
    console.print(Text.from_ansi(f'$ co demo "{QUESTION}"\n{answer}'))
    picture = console.export_svg(title="co")
    # rich's picture loads its font from elsewhere; any monospaced one will do
    PICTURE.write_text(re.sub(r"@font-face \{.*?\}\s*", "", picture, flags=re.S), "utf-8")


if __name__ == "__main__":
    main()
