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
from co_cli.embedding.providers import open_embedder
embedder = open_embedder("static")
print(len(embedder.embed([{text}], "document")[0]), len(embedder.embed([{text}], "query")[0]))
"""

    assert run(NO_NETWORK + code).split() == ["1024", "1024"]


def test_a_cold_query_imports_nothing_dear() -> None:
    code = """
import sys
import co_cli, typing
before = set(sys.modules)
from co_cli.embedding.providers import open_embedder, space_of
assert space_of("static") == open_embedder("static").space
assert open_embedder("static").embed(["how do we calm an angry customer"], "query")[0]
print(*sorted(set(sys.modules) - before))
"""
    imported = run(code).split()

    dear = {
        "numpy",
        "json",
        "hashlib",
        "pathlib",
        "dataclasses",
        "importlib.resources",
        "unicodedata",
        "socket",
        "asyncio",
    }
    assert dear & set(imported) == set()
    assert "co_cli.embedding.static_cold" in imported
    assert "co_cli.embedding.static_batch" not in imported


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
    pytest.importorskip("numpy", reason="nothing takes over without numpy: pip install numpy")

    assert run(code).split() == ["False", "True"]


def test_without_numpy_much_text_is_embedded_all_the_same() -> None:
    code = """
import sys

class NoNumpy:
    def find_spec(self, name, path=None, target=None):
        if name == "numpy":
            raise ModuleNotFoundError("No module named 'numpy'", name="numpy")

sys.meta_path.insert(0, NoNumpy())
from co_cli.embedding.static import COLD_CHARACTERS, StaticEmbedder
print(len(StaticEmbedder().embed(["word " * COLD_CHARACTERS], "document")[0]))
"""

    assert run(code).split() == ["1024"]


@pytest.mark.parametrize("provider", ["minilm", "ollama", "openai", "gemini"])
def test_a_space_is_known_without_importing_what_is_behind_it(provider: str) -> None:
    code = f"""
import sys
from co_cli.embedding.providers import open_embedder, space_of
print(space_of("{provider}") == open_embedder("{provider}").space)
print({{"numpy", "onnxruntime", "ollama", "httpx", "pydantic", "pydantic_ai", "openai"}} & set(sys.modules))
"""

    assert run(code).split("\n")[:2] == ["True", "set()"]
