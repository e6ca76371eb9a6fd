"""The reader: a small cross-encoder that reads a question and a passage together and says how well the one is answered.

It runs on numpy, or faster on onnxruntime if that is installed (the extra `reader`). Both read the same weights,
`model/reader-NAME.bin`; `reader-NAME.onnx` next to them is only the graph. benchmarks/reader/README.md says how they
were trained.

The file: b"RDR2", the length of a JSON header (uint32), the header {layers, heads, tensors: [[name, shape, kind,
offset, bytes]]}, the data. Kinds: f16; columns (a float16 scale for each column, then int8 values); rows (a float16
scale for each 32 values of a row, then two values a byte, the low half first, each plus 8).
"""

from __future__ import annotations

import hashlib
import importlib
import json
import os
import struct
import time
from collections.abc import Iterator, Sequence
from functools import cached_property
from math import log
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from co_cli.embedding.minilm import VOCABULARY, WordPieces
from co_cli.errors import ModelMissingError

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Numbers = NDArray[np.float32]

FOLDER = os.path.join(os.path.dirname(os.path.abspath(__file__)), "model")
START, END = 101, 102
QUESTION_TOKENS, PASSAGE_TOKENS = 48, 768
PAIR_TOKENS = 128
"""Tokens of a question and a window together. A longer passage is read in the windows that match best."""
MOST_WINDOWS = 2
GROUP = 32
"""Values that share a scale in the word table."""
BATCH = 5
"""Pairs of about the same length that are read at once."""
CHUNK = 10
"""Candidates that are sorted by length together. The first ones come first, in case the time does not last."""


class Model(NamedTuple):
    """One of the readers that can be chosen."""

    name: str
    sha256: str
    graph_sha256: str
    weight: float
    """What one unit of its score adds to the score of a search."""


SMALL = Model("small", "", "", 0.07)
LARGE = Model("large", "", "", 0.1)
MODELS = {model.name: model for model in (SMALL, LARGE)}


class Runtime(Protocol):
    """Summed embeddings [pair, token, dimension] and which tokens are real into one score for each pair."""

    def __call__(self, states: Numbers, real: NDArray[np.bool_], /) -> Numbers: ...


class PassageReader:
    """Loaded by the first call; after that it can be used from several threads."""

    def __init__(self, model: Model = SMALL, folder: str = FOLDER, onnx: bool = True) -> None:
        self.model = model
        self._folder, self._onnx = folder, onnx

    def scores(self, question: str, texts: Sequence[str], seconds: float | None = None) -> list[float | None]:
        """A score for each text, more is better; None for those that were not read in time."""
        deadline = None if seconds is None else time.monotonic() + seconds
        pieces, table, run = self._loaded
        asked = pieces.pieces(question, QUESTION_TOKENS)
        found: list[float | None] = [None] * len(texts)
        longest = 0.0
        for batch in _batches(asked, [pieces.pieces(text, PASSAGE_TOKENS) for text in texts]):
            started = time.monotonic()
            if deadline is not None and started + longest > deadline:
                break
            states, real = table.sums(asked, [window for _, window in batch])
            for (place, _), score in zip(batch, run(states, real).tolist(), strict=True):
                so_far = found[place]
                found[place] = score if so_far is None else max(so_far, score)
            longest = max(longest, time.monotonic() - started)
        return found

    @cached_property
    def _loaded(self) -> tuple[WordPieces, Table, Runtime]:
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
        except ModuleNotFoundError:
            return None
        _checked(f"{stem}.onnx", self.model.graph_sha256)
        session = onnxruntime.InferenceSession(f"{stem}.onnx", providers=["CPUExecutionProvider"])
        return lambda states, real: session.run(["scores"], {"states": states, "real": real})[0]


def _checked(path: str, sha256: str) -> bytes:
    """The content of a file of the package, which must be the one that was released."""
    fix = "`pip install --force-reinstall co-cli`"
    try:
        with open(path, "rb") as file:
            content = file.read()
    except OSError as error:
        raise ModelMissingError(f"{path} cannot be read ({error.strerror}): {fix}") from error
    if hashlib.sha256(content).hexdigest() != sha256:
        raise ModelMissingError(f"{path} is damaged: {fix}")
    return content


def _batches(asked: Sequence[int], passages: Sequence[Sequence[int]]) -> Iterator[list[tuple[int, Sequence[int]]]]:
    """Places and windows to read at once: the best window of the first passages first, second windows last."""
    windows = [choose_windows(asked, passage, PAIR_TOKENS - 3 - len(asked)) for passage in passages]
    for number in range(MOST_WINDOWS):
        jobs = [(place, found[number]) for place, found in enumerate(windows) if number < len(found)]
        for at in range(0, len(jobs), CHUNK):
            chunk = sorted(jobs[at : at + CHUNK], key=lambda job: len(job[1]))
            for start in range(0, len(chunk), BATCH):
                yield chunk[start : start + BATCH]


def choose_windows(asked: Sequence[int], passage: Sequence[int], room: int) -> list[Sequence[int]]:
    """The stretches that have most of the question's tokens; the first ones if they are equal."""
    if len(passage) <= room:
        return [passage]
    # BERT numbers its tokens from frequent to rare
    rarity = {token: log(token) - 6 for token in asked if token > 999}
    sums = [0.0]
    for token in passage:
        sums.append(sums[-1] + rarity.get(token, 0.0))
    starts = range(0, len(passage) - room // 2, room // 2)
    matches = sorted(starts, key=lambda start: (sums[start] - sums[min(start + room, len(passage))], start))
    return [passage[start : start + room] for start in matches[:MOST_WINDOWS]]


class Table:
    """The embeddings of words, places and kinds, summed. Words stay packed: most are never read."""

    def __init__(self, arrays: dict[str, Any]) -> None:
        self._words, self._places, self._types = (arrays[name] for name in ("w.weight", "p.weight", "t.weight"))

    def sums(self, asked: Sequence[int], windows: Sequence[Sequence[int]]) -> tuple[Numbers, NDArray[np.bool_]]:
        """What a runtime reads: [CLS] question [SEP] window [SEP] for each window, filled up to the longest."""
        import numpy as np

        pairs = [[START, *asked, END, *window, END] for window in windows]
        width = max(map(len, pairs))
        tokens = np.array([pair + [0] * (width - len(pair)) for pair in pairs])
        real = np.arange(width) < np.array([[len(pair)] for pair in pairs])
        types = (np.arange(width) >= len(asked) + 2) & real
        return self._words.rows(tokens) + self._places[:width] + self._types[types.astype(int)], real


class PackedRows(NamedTuple):
    """A matrix with four bits a value and a scale for each group of 32."""

    scales: NDArray[np.float16]
    values: NDArray[np.uint8]

    def rows(self, numbers: NDArray[Any]) -> Numbers:
        import numpy as np

        packed, scales = self.values[numbers], self.scales[numbers].astype(np.float32)
        values = np.stack([packed & 15, packed >> 4], axis=-1).astype(np.float32) - 8
        return (values.reshape(*scales.shape, GROUP) * scales[..., None]).reshape(*numbers.shape, -1)


class NumpyRuntime:
    """The model as plain matrix products."""

    def __init__(self, layers: int, heads: int, arrays: dict[str, Any]) -> None:
        self._layers, self._heads, self._arrays = layers, heads, arrays

    def __call__(self, states: Numbers, real: NDArray[np.bool_], /) -> Numbers:
        import numpy as np

        states = self._norm("ln", states)
        hidden = np.where(real, 0, -1e4).astype(np.float32)[:, None, None, :]
        for layer in range(self._layers):
            name = f"L.{layer}."
            states = self._norm(f"{name}l1", states + self._attention(name, states, hidden))
            inner = self._linear(f"{name}f2", _gelu(self._linear(f"{name}f1", states)))
            states = self._norm(f"{name}l2", states + inner)
        means = (states * real[..., None]).sum(1) / real.sum(1, keepdims=True)
        both = np.concatenate([states[:, 0], means.astype(np.float32)], axis=1)
        scores: Numbers = self._linear("h2", np.tanh(self._linear("h1", both)))[:, 0]
        return scores

    def _linear(self, name: str, inputs: Numbers) -> Numbers:
        outputs: Numbers = inputs @ self._arrays[f"{name}.weight"]
        outputs += self._arrays[f"{name}.bias"]
        return outputs

    def _attention(self, name: str, states: Numbers, hidden: Numbers) -> Numbers:
        import numpy as np

        pairs, width, dim = states.shape
        parts = self._linear(f"{name}qkv", states).reshape(pairs, width, 3, self._heads, -1)
        queries, keys, values = parts.transpose(2, 0, 3, 1, 4)
        shares = queries @ keys.swapaxes(2, 3)
        shares *= np.float32((dim // self._heads) ** -0.5)
        shares += hidden
        shares -= shares.max(-1, keepdims=True)
        np.exp(shares, out=shares)
        shares /= shares.sum(-1, keepdims=True)
        return self._linear(f"{name}o", (shares @ values).swapaxes(1, 2).reshape(pairs, width, dim))

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
    """The header, and the matrices in float32; the word table stays packed."""
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
            arrays[name] = np.frombuffer(data, np.int8, offset=2 * shape[1]).reshape(shape) * scales
        else:
            scales = np.frombuffer(data, np.float16, shape[0] * shape[1] // GROUP).reshape(shape[0], -1)
            values = np.frombuffer(data, np.uint8, offset=2 * scales.size).reshape(shape[0], -1)
            arrays[name] = PackedRows(scales, values)
    return header, arrays
