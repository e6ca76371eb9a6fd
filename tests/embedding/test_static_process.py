"""The embedded model in a fresh process: what it imports, and that it stays off the network."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

import co_cli.embedding

ROOT = Path(co_cli.embedding.__file__).parents[2]


def run(code: str) -> str:
    done = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        timeout=60,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


NO_NETWORK = """
import sys

def refuse(event, arguments):
    if event.startswith("socket."):
        raise RuntimeError(f"touched the network: {event} {arguments}")

sys.addaudithook(refuse)
"""


def test_the_guard_of_the_next_tests_notices_a_socket() -> None:
    code = NO_NETWORK + "import socket\ntry:\n    socket.socket()\nexcept RuntimeError as error:\n    print(error)"

    assert "touched the network" in run(code)


@pytest.mark.parametrize("text", ["'how do we calm an angry customer'", "'Caf\\u00e9 ' * 20_000"])
def test_the_embedded_model_never_touches_the_network(text: str) -> None:
    code = f"""
from co_cli.embedding.embedders import Embedders
embedders = Embedders("static")
embedder = embedders.of(embedders.space)
print(len(embedder.embed([{text}], "document")[0]), len(embedder.embed([{text}], "query")[0]))
"""

    assert run(NO_NETWORK + code).split() == ["1024", "1024"]


def test_a_query_in_a_fresh_process_imports_no_slow_package() -> None:
    code = """
import sys
from co_cli.embedding.embedders import Embedders
embedders = Embedders("static")
assert embedders.of(embedders.space).embed(["how do we calm an angry customer"], "query")[0]
print(*{"numpy", "asyncio", "socket", "httpx", "ollama", "pydantic_ai", "onnxruntime"} & set(sys.modules))
"""

    assert run(code).split() == []


def test_numpy_takes_over_when_there_is_much_to_embed() -> None:
    code = """
import sys
from co_cli.embedding.static import COLD_CHARACTERS, StaticEmbedder
embedder = StaticEmbedder()
embedder.embed(["a few words"], "query")
print("numpy" in sys.modules)
embedder.embed(["word " * COLD_CHARACTERS], "document")
print("numpy" in sys.modules)
"""

    assert run(code).split() == ["False", "True"]


@pytest.mark.parametrize("provider", ["minilm", "ollama", "openai", "gemini"])
def test_a_space_is_known_without_importing_what_is_behind_it(provider: str) -> None:
    code = f"""
import sys
from co_cli.embedding.embedders import Embedders
embedders = Embedders("{provider}")
print(embedders.of(embedders.space).space == embedders.space)
print({{"numpy", "onnxruntime", "ollama", "httpx", "pydantic", "pydantic_ai", "openai"}} & set(sys.modules))
"""

    assert run(code).split("\n")[:2] == ["True", "set()"]
