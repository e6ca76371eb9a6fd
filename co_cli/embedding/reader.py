"""The reader: a small cross-encoder that reads a question and a passage together and says how well the one is answered.

It runs on numpy, or faster on onnxruntime if that is installed (the extra `reader`). Both read the same weights,
`model/reader-NAME.bin`; `reader-NAME.onnx` next to them is only the graph. benchmarks/reader/README.md says how they
were trained.

The file: b"RDR2", the length of a JSON header (uint32), the header {layers, heads, tensors: [[name, shape, kind,
offset, bytes]]}, the data. Kinds: f16; columns (a float16 scale for each column, then int8 values); rows (a float16
scale for each 32 values of a row, then two values a byte, the low half first, each plus 8).
"""

from __future__ import annotations

import importlib
import json
import os
import struct
import time
from array import array
from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from functools import cache
from itertools import accumulate, islice
from math import log
from threading import Lock
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from co_cli.embedding.minilm import WordPieces
from co_cli.embedding.space import VOCABULARY
from co_cli.ground.errors import ModelMissingError

if TYPE_CHECKING:
    from concurrent.futures import ThreadPoolExecutor

    import numpy as np
    from numpy.typing import NDArray

    Numbers = NDArray[np.float32]

FOLDER = os.path.join(os.path.dirname(os.path.abspath(__file__)), "model")
START, END = 101, 102
QUESTION_TOKENS, PASSAGE_TOKENS = 48, 768
PAIR_TOKENS = 128
"""Tokens of a question and a window together. A longer passage is read in the window that matches best."""
TOGETHER = 2
"""Pairs that a thread reads at once."""
THREADS = min(4, os.cpu_count() or 1)
"""Groups that a process reads side by side, each by one thread: two threads for one group take a quarter longer."""
MOST_KEPT = 20_000
"""Scores that are kept for the next time that somebody asks, about 400 bytes each."""
GROUP = 32
"""Values that share a scale in the word table."""


class Model(NamedTuple):
    """One of the readers that can be chosen."""

    name: str
    sha256: str
    graph_sha256: str
    weight: float
    """Of what it says, beside the weights of meaning and words, which add up to 1."""
    scale: float
    """What a score is divided by before it becomes a signal of 0 to 1: plain odds hardly tell good passages apart."""


SMALL = Model(
    "small",
    "f93f536cca6012c524691310399b54784e3c0acab506c7295bbb4e4359ab7795",
    "5d11991f128ece2edf3b1ea3c5f4db6b7f8fd7f92095f5f12448090b5d4f2409",
    1.2,
    4.0,
)
LARGE = Model(
    "large",
    "55b83d005dec6755971cf68aa4c3325fe92422784fba8b4c87e53641001b9a03",
    "9ad31ac427471d0f902afbf8d6712b030d0cc247a87282c6493a3c1ec32dce45",
    1.2,
    4.0,
)
MODELS = {model.name: model for model in (SMALL, LARGE)}


class Runtime(Protocol):
    """The embeddings of the tokens of pairs, [token, dimension] each, into their scores."""

    def __call__(self, pairs: Sequence[Numbers], /) -> list[float]: ...


class CrossEncoder:
    """Loaded by the first call; after that it can be used from several threads."""

    def __init__(self, model: Model = SMALL, folder: str = FOLDER, onnx: bool = True) -> None:
        self.model = model
        self._folder, self._onnx = folder, onnx
        self._loading = Lock()
        self._kept: dict[bytes, float] = {}
        self._keeping = Lock()
        self._loaded: tuple[WordPieces, Table, Runtime] | None = None
        self.pairs_read, self.pairs_kept, self.seconds_read = 0, 0, 0.0
        """What was read so far, what was known already, and how long searches waited for both."""

    def scores(self, question: str, texts: Sequence[str], seconds: float | None = None) -> list[float | None]:
        """A score for each text; None for those, from the end, for which these seconds of processor time are too few.

        Time in which others use the processor does not count, or a busy machine would give another answer.
        It is the logarithm of the odds that the question is answered, if no text has a higher one. A text's score does
        not depend on the other texts, nor on what is read at the same time.
        """
        pieces, table, run = self._load()
        started = time.monotonic()
        asked = pieces.pieces(question, QUESTION_TOKENS)
        room = PAIR_TOKENS - 3 - len(asked)
        pairs = [Pair(asked, best_window(asked, pieces.pieces(text, PASSAGE_TOKENS), room)) for text in texts]
        keys = [pair.key for pair in pairs]
        found = {key: self._kept[key] for key in keys if key in self._kept}
        new = [(key, pair) for key, pair in dict(zip(keys, pairs, strict=True)).items() if key not in found]

        spent: list[float] = []

        def read(group: Sequence[tuple[bytes, Pair]]) -> list[tuple[bytes, float]]:
            if seconds is not None and sum(spent) > seconds:
                return []
            began = time.thread_time()
            scores = run([table.sums(pair.asked, pair.window) for _, pair in group])
            spent.append(time.thread_time() - began)
            return [(key, score) for (key, _), score in zip(group, scores, strict=True)]

        groups = [new[start : start + TOGETHER] for start in range(0, len(new), TOGETHER)]
        with one_blas_thread() if new and isinstance(run, NumpyRuntime) else nullcontext():
            for scores in _pool().map(read, groups) if new else ():
                found.update(scores)
        self._keep(found)
        with self._keeping:
            self.pairs_read += len(new)
            self.pairs_kept += len(keys) - len(new)
            self.seconds_read += time.monotonic() - started
        return [found.get(key) for key in keys]

    def _keep(self, scores: Mapping[bytes, float]) -> None:
        with self._keeping:
            self._kept.update(scores)
            for key in list(islice(self._kept, max(0, len(self._kept) - MOST_KEPT))):  # the oldest
                del self._kept[key]

    def _load(self) -> tuple[WordPieces, Table, Runtime]:
        """Read once."""
        with self._loading:
            self._loaded = self._loaded or self._read()
            return self._loaded

    def _read(self) -> tuple[WordPieces, Table, Runtime]:
        stem = os.path.join(self._folder, f"reader-{self.model.name}")
        content = _checked(f"{stem}.bin", self.model.sha256)
        with open(VOCABULARY, encoding="utf-8") as lines:
            pieces = WordPieces(lines.read().splitlines())
        header, arrays = read_arrays(content)
        run: Runtime | None = self._onnx_runtime(stem) if self._onnx else None
        return pieces, Table(arrays), run or NumpyRuntime(header["layers"], header["heads"], arrays)

    def _onnx_runtime(self, stem: str) -> Runtime | None:
        try:
            onnxruntime = importlib.import_module("onnxruntime")
        except ImportError:  # not installed, or not for this machine
            return None
        _checked(f"{stem}.onnx", self.model.graph_sha256)
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = 1
        session = onnxruntime.InferenceSession(f"{stem}.onnx", options, providers=["CPUExecutionProvider"])
        return lambda pairs: [float(session.run(["score"], {"states": states})[0]) for states in pairs]


def _checked(path: str, sha256: str) -> bytes:
    """The content of a file of the package, which must be the one that was released."""
    import hashlib  # loads OpenSSL, which takes 4 ms

    fix = "`pip install --force-reinstall co-cli`"
    try:
        with open(path, "rb") as file:
            content = file.read()
    except OSError as error:
        raise ModelMissingError(f"{path} cannot be read ({error.strerror}): {fix}") from error
    if hashlib.sha256(content).hexdigest() != sha256:
        raise ModelMissingError(f"{path} is damaged: {fix}")
    return content


class Pair(NamedTuple):
    """The tokens of a question, and those of a passage that are read with it."""

    asked: Sequence[int]
    window: Sequence[int]

    @property
    def key(self) -> bytes:
        return array("H", (*self.asked, END, *self.window)).tobytes()


@cache
def _pool() -> ThreadPoolExecutor:
    """The threads of all searches of this process: many searches at once bring no more threads than there are cores."""
    from concurrent.futures import ThreadPoolExecutor  # slow to import

    return ThreadPoolExecutor(THREADS, "co-reader")


def best_window(asked: Sequence[int], passage: Sequence[int], room: int) -> Sequence[int]:
    """The stretch that has most of the question's tokens; the first one if they are equal."""
    if len(passage) <= room:
        return passage
    # BERT numbers its tokens from frequent to rare
    rarity = {token: log(token) - 6 for token in asked if token > 999}
    sums = list(accumulate((rarity.get(token, 0.0) for token in passage), initial=0.0))
    starts = range(0, len(passage) - room // 2, room // 2)
    start = min(starts, key=lambda start: (sums[start] - sums[min(start + room, len(passage))], start))
    return passage[start : start + room]


class Table:
    """The embeddings of words, places and kinds, summed. Words stay packed: most are never read."""

    def __init__(self, arrays: dict[str, Any]) -> None:
        self._words, self._places, self._types = (arrays[name] for name in ("w.weight", "p.weight", "t.weight"))

    def sums(self, asked: Sequence[int], window: Sequence[int]) -> Numbers:
        """What a runtime reads: the embeddings of [CLS] question [SEP] window [SEP]."""
        import numpy as np

        tokens = np.array([START, *asked, END, *window, END])
        types = (np.arange(len(tokens)) >= len(asked) + 2).astype(int)
        sums: Numbers = self._words.rows(tokens) + self._places[: len(tokens)] + self._types[types]
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


class PackedColumns(NamedTuple):
    """A matrix with eight bits a value and a scale for each column."""

    scales: Numbers
    values: Numbers

    def product(self, inputs: Numbers) -> Numbers:
        """The inputs are rounded to eight bits, too: onnxruntime does it, and both shall give the same scores."""
        import numpy as np

        step = np.maximum(np.abs(inputs).max(-1, keepdims=True) / 127, 1e-9)
        outputs: Numbers = np.rint(inputs / step) @ self.values
        outputs *= step
        outputs *= self.scales
        return outputs


@cache
def _libraries() -> Any:
    from threadpoolctl import ThreadpoolController  # 10 ms, and only to read

    return ThreadpoolController()


_limiting = Lock()


@contextmanager
def one_blas_thread() -> Generator[None]:
    """Let numpy's products use one thread each, in the whole process; after that as many as before.

    Of several readings at once, one does so, because only the thread that sets a limit can lift it. If it ends before
    the others, they are a little slower.
    """
    if not _limiting.acquire(blocking=False):
        yield
        return
    try:
        with _libraries().limit(limits=1, user_api="blas"):
            yield
    finally:
        _limiting.release()


class NumpyRuntime:
    """The model as plain matrix products."""

    def __init__(self, layers: int, heads: int, arrays: dict[str, Any]) -> None:
        self._layers, self._heads, self._arrays = layers, heads, arrays

    def __call__(self, pairs: Sequence[Numbers], /) -> list[float]:
        import numpy as np

        ends = list(accumulate(map(len, pairs)))
        own = [slice(end - len(pair), end) for pair, end in zip(pairs, ends, strict=True)]
        states = self._norm("ln", np.concatenate(pairs))
        for layer in range(self._layers):
            name = f"L.{layer}."
            mixed = self._linear(f"{name}qkv", states)
            mixed = np.concatenate([self._attention(mixed[rows]) for rows in own])
            states = self._norm(f"{name}l1", states + self._linear(f"{name}o", mixed))
            inner = self._linear(f"{name}f2", _gelu(self._linear(f"{name}f1", states)))
            states = self._norm(f"{name}l2", states + inner)
        return [self._head(states[rows]) for rows in own]  # one by one: the last bits of a product depend on its size

    def _head(self, states: Numbers) -> float:
        """The score of one pair."""
        import numpy as np

        both = np.concatenate([states[0], states.mean(0)])[None]
        return float(self._linear("h2", np.tanh(self._linear("h1", both)))[0, 0])

    def _linear(self, name: str, inputs: Numbers) -> Numbers:
        matrix = self._arrays[f"{name}.weight"]
        outputs: Numbers = matrix.product(inputs) if isinstance(matrix, PackedColumns) else inputs @ matrix
        outputs += self._arrays[f"{name}.bias"]
        return outputs

    def _attention(self, mixed: Numbers) -> Numbers:
        """The values of one pair's tokens, each mixed by how much it looks at the others."""
        import numpy as np

        queries, keys, values = mixed.reshape(len(mixed), 3, self._heads, -1).transpose(1, 2, 0, 3)
        shares = queries @ keys.swapaxes(1, 2)
        shares *= np.float32(queries.shape[-1] ** -0.5)
        shares -= shares.max(-1, keepdims=True)
        np.exp(shares, out=shares)
        shares /= shares.sum(-1, keepdims=True)
        return (shares @ values).swapaxes(0, 1).reshape(len(mixed), -1)

    def _norm(self, name: str, states: Numbers) -> Numbers:
        import numpy as np

        states = states - states.mean(-1, keepdims=True)
        states /= np.sqrt(np.einsum("...i,...i->...", states, states)[..., None] / states.shape[-1] + 1e-12)
        states *= self._arrays[f"{name}.weight"]
        states += self._arrays[f"{name}.bias"]
        return states


def _gelu(inputs: Numbers) -> Numbers:
    """The approximation with tanh that the model was trained with."""
    import numpy as np

    outputs = inputs * inputs
    outputs *= np.float32(0.044715)
    outputs += 1
    outputs *= inputs
    outputs *= np.float32(0.7978845608)
    np.tanh(outputs, out=outputs)
    outputs += 1
    outputs *= inputs
    outputs *= np.float32(0.5)
    return outputs


def read_arrays(content: bytes) -> tuple[dict[str, Any], dict[str, Any]]:
    """The header, and the matrices in float32 or packed."""
    import numpy as np

    (length,) = struct.unpack_from("<I", content, 4)
    header: dict[str, Any] = json.loads(content[8 : 8 + length])
    arrays: dict[str, Any] = {}
    for name, shape, kind, offset, size in header["tensors"]:
        data = memoryview(content)[8 + length + offset : 8 + length + offset + size]
        if kind == "f16":
            arrays[name] = np.frombuffer(data, np.float16).reshape(shape).astype(np.float32)
        elif kind == "columns":
            scales = np.frombuffer(data, np.float16, shape[1]).astype(np.float32)
            values = np.frombuffer(data, np.int8, offset=2 * shape[1]).reshape(shape).astype(np.float32)
            arrays[name] = PackedColumns(scales, values)
        else:
            scales = np.frombuffer(data, np.float16, shape[0] * shape[1] // GROUP).reshape(shape[0], -1)
            values = np.frombuffer(data, np.uint8, offset=2 * scales.size).reshape(shape[0], -1)
            arrays[name] = PackedRows(scales, values)
    return header, arrays
