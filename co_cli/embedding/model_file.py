"""The model files of the reader and the encoder: weights that were trained here, run by onnxruntime.

`model/NAME.bin` has the weights, `NAME.onnx` next to it only the graph, which reads its matrices from there.
benchmarks/reader and benchmarks/encoder say how they were trained.

The file: b"RDR3", the length of a JSON header (uint32), the header {layers, heads, tensors: [[name, shape, kind,
offset, bytes]]}, the data. Kinds: f16; columns (a float16 scale for each column, then a byte for each value,
plus 128); rows (a float16
scale for each 32 values of a row, then two values a byte, the low half first, each plus 8).
"""

from __future__ import annotations

import atexit
import importlib.util
import json
import os
import struct
from collections.abc import Sequence
from functools import cache
from threading import RLock
from typing import TYPE_CHECKING, Any, NamedTuple
from zlib import crc32

from co_cli.embedding.space import VOCABULARY
from co_cli.embedding.word_pieces import WordPieces
from co_cli.ground.errors import ModelMissingError

if TYPE_CHECKING:
    from concurrent.futures import ThreadPoolExecutor

    import numpy as np
    from numpy.typing import NDArray

    Numbers = NDArray[np.float32]

FOLDER = os.path.join(os.path.dirname(os.path.abspath(__file__)), "model")
THREADS = min(4, os.cpu_count() or 1)
"""Texts that a process reads side by side, each by one thread: two threads for one text take a quarter longer."""
GROUP = 32
"""Values that share a scale in the word table."""
native = RLock()
"""Held while a model is loaded, or run outside of the pool, and from the end of the program on: a daemon thread that
returns from onnxruntime when Python has ended is stopped inside C++, and that aborts the program."""
atexit.register(native.acquire)


def can_run() -> bool:
    """Whether onnxruntime is there, which has no wheels for some platforms. Imports nothing."""
    return importlib.util.find_spec("onnxruntime") is not None


class ModelFile:
    """A model of this package. Loaded by the first call; after that it can be used from several threads."""

    def __init__(self, name: str, sums: tuple[str, str], folder: str = FOLDER) -> None:
        """`sums`: the checksums of weights and graph, as `python -m benchmarks.reader.export` prints them."""
        self._stem, self._sums = os.path.join(folder, name), sums
        self._loaded: RunningModel | None = None

    @property
    def loaded(self) -> bool:
        return self._loaded is not None

    def load(self) -> RunningModel:
        """Read once. Raises ModelMissingError if a file is not the one that was released, or nothing can run it."""
        if self._loaded is None:
            with native:
                self._loaded = self._loaded or self._read()
        return self._loaded

    def _read(self) -> RunningModel:
        weights, graph = (f"{self._stem}.{kind}" for kind in ("bin", "onnx"))
        content = _checked(weights, self._sums[0])
        _checked(graph, self._sums[1])
        try:
            onnxruntime = importlib.import_module("onnxruntime")
        except ImportError as error:
            raise ModelMissingError(f"onnxruntime cannot be loaded ({error}): `pip install onnxruntime`") from error
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = 1
        # as fast, and loaded in half of the time
        options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
        session = onnxruntime.InferenceSession(graph, options, providers=["CPUExecutionProvider"])
        return RunningModel(_word_pieces(), Table(content), session)


class RunningModel(NamedTuple):
    """A model that can be asked."""

    pieces: WordPieces
    table: Table
    session: Any

    def run(self, tokens: Sequence[int], second: int | None = None) -> Any:
        """What the graph gives for these tokens. From place `second` on they are the second of two texts."""
        return self.session.run(None, {"states": self.table.sums(tokens, second)})[0]


def checksum(content: bytes) -> str:
    """Finds damage, an eighth of the time that sha256 takes: 70 ms of each cold search."""
    return f"{crc32(content):08x}"


def _checked(path: str, wanted: str) -> bytes:
    """The content of a file of the package, which must be the one that was released."""
    fix = "`pip install --force-reinstall co-cli`"
    try:
        with open(path, "rb") as file:
            content = file.read()
    except OSError as error:
        raise ModelMissingError(f"{path} cannot be read ({error.strerror}): {fix}") from error
    if checksum(content) != wanted:
        raise ModelMissingError(f"{path} is damaged: {fix}")
    return content


@cache
def _word_pieces() -> WordPieces:
    """One for all models, which have the same words."""
    with open(VOCABULARY, encoding="utf-8") as lines:
        return WordPieces(lines.read().splitlines())


@cache
def pool() -> ThreadPoolExecutor:
    """The threads of all models of this process: many searches at once bring no more threads than there are cores."""
    from concurrent.futures import ThreadPoolExecutor  # slow to import

    return ThreadPoolExecutor(THREADS, "co-model")


class Table:
    """The embeddings of words, places and kinds, summed. Words stay packed: most are never read."""

    def __init__(self, content: bytes) -> None:
        _, arrays = read_arrays(content, ("w.weight", "p.weight", "t.weight"))
        self._words, self._places, self._types = arrays.values()

    def sums(self, tokens: Sequence[int], second: int | None = None) -> Numbers:
        """What a graph reads."""
        import numpy as np

        numbers = np.array(tokens)
        types = np.zeros(len(tokens), int)
        types[len(tokens) if second is None else second :] = 1
        sums: Numbers = self._words.rows(numbers) + self._places[: len(tokens)] + self._types[types]
        return sums


class PackedRows(NamedTuple):
    """A matrix with four bits a value and a scale for each group of 32."""

    scales: NDArray[np.float16]
    values: NDArray[np.uint8]

    def rows(self, numbers: NDArray[Any]) -> Numbers:
        import numpy as np

        packed, scales = self.values[numbers], self.scales[numbers].astype(np.float32)
        values = np.stack([packed & 15, packed >> 4], axis=-1).astype(np.float32) - 8
        return (values.reshape(*scales.shape, GROUP) * scales[..., None]).reshape(*numbers.shape, -1)


def read_arrays(content: bytes, names: Sequence[str]) -> tuple[dict[str, Any], dict[str, Any]]:
    """The header, and those of its matrices, in float32 or packed."""
    import numpy as np

    (length,) = struct.unpack_from("<I", content, 4)
    header: dict[str, Any] = json.loads(content[8 : 8 + length])
    arrays: dict[str, Any] = {}
    for name, shape, kind, offset, size in header["tensors"]:
        data = memoryview(content)[8 + length + offset : 8 + length + offset + size]
        if name not in names:
            continue
        if kind == "f16":
            arrays[name] = np.frombuffer(data, np.float16).reshape(shape).astype(np.float32)
        elif kind == "columns":
            scales = np.frombuffer(data, np.float16, shape[1]).astype(np.float32)
            values = np.frombuffer(data, np.uint8, offset=2 * shape[1]).reshape(shape)
            arrays[name] = (values.astype(np.float32) - 128) * scales
        else:
            scales = np.frombuffer(data, np.float16, shape[0] * shape[1] // GROUP).reshape(shape[0], -1)
            values = np.frombuffer(data, np.uint8, offset=2 * scales.size).reshape(shape[0], -1)
            arrays[name] = PackedRows(scales, values)
    return header, {name: arrays[name] for name in names}
