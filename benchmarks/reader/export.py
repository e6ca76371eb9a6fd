"""Model files: named matrices into the file that `co_cli.embedding.model_file` describes, and back; and the ONNX graph.

Run `python -m benchmarks.reader.export WORK/NAME.pt reader.bin` (this part needs onnx, and torch for such a
file; a model file is read without). Next to the file it writes `reader.onnx`: the graph alone, which takes its
weights from the file.
"""

from __future__ import annotations

import argparse
import json
import struct
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from co_cli.embedding.model_file import GROUP, PackedRows, checksum, read_arrays

MAGIC = b"RDR3"
HEADS, DIMENSIONS = 12, 256
"""Attention heads of MiniLM and of MPNet; numbers of a vector."""
MOST_TOKENS = 256
"""Positions that are kept: no input is longer."""
TABLE, POSITIONS = "w.weight", "p.weight"
OPSET = 20
PLAIN = ("p.", "t.", "r.", "h2.", "h.")
"""Small matrices that keep 16 bits."""
HEADS_OUT = ("h2.weight", "h.weight")
"""The last product of the reader and of the encoder."""

Arrays = Mapping[str, np.ndarray]


def write_model(path: Path, arrays: Arrays, packed: bool = False) -> str:
    """Write matrices as torch has them and return the file's checksum. `packed`: the word table has four bits."""
    parts: list[tuple[str, tuple[int, ...], str, bytes]] = []
    for name, array in arrays.items():
        kept = array[:MOST_TOKENS] if name == POSITIONS else array
        if kept.ndim < 2 or name.startswith(PLAIN):
            kept = kept.T if name in HEADS_OUT else kept
            parts.append((name, kept.shape, "f16", kept.astype(np.float16).tobytes()))
        elif name == TABLE and packed:
            parts.append((name, kept.shape, "rows", _four_bits(kept)))
        else:
            parts.append((name, kept.T.shape, "columns", _eight_bits(kept.T)))
    ends = np.cumsum([0, *(len(data) for *_, data in parts)]).tolist()
    header = {
        "layers": 1 + max(int(name.split(".")[1]) for name in arrays if name.startswith("L.")),
        "heads": HEADS,
        "tensors": [
            [name, list(shape), kind, ends[at], len(data)] for at, (name, shape, kind, data) in enumerate(parts)
        ],
    }
    head = json.dumps(header).encode()
    content = b"".join([MAGIC, struct.pack("<I", len(head)), head, *(data for *_, data in parts)])
    path.write_bytes(content)
    return checksum(content)


def read_model(path: Path) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
    """The header, and the matrices in float32 as torch has them."""
    content = path.read_bytes()
    if content[:4] != MAGIC:
        raise ValueError(f"{path} is not a model file")
    (length,) = struct.unpack_from("<I", content, 4)
    names = [name for name, *_ in json.loads(content[8 : 8 + length])["tensors"]]
    header, found = read_arrays(content, names)
    arrays: dict[str, np.ndarray] = {}
    for name, shape, kind, *_ in header["tensors"]:
        array = found[name]
        if isinstance(array, PackedRows):
            array = array.rows(np.arange(shape[0]))
        arrays[name] = np.ascontiguousarray(array.T) if kind == "columns" or name in HEADS_OUT else array
    return header, arrays


def _eight_bits(matrix: np.ndarray) -> bytes:
    scales = (np.maximum(np.abs(matrix).max(0), 1e-4) / 127).astype(np.float16)
    values = np.rint(matrix / scales.astype(np.float32)).clip(-127, 127) + 128
    return scales.tobytes() + values.astype(np.uint8).tobytes()


def _four_bits(matrix: np.ndarray) -> bytes:
    groups = matrix.reshape(-1, GROUP)
    scales = (np.maximum(np.abs(groups).max(1), 1e-4) / 7).astype(np.float16)
    values = np.rint(groups / scales.astype(np.float32)[:, None]).clip(-7, 7).astype(np.int8) + 8
    pairs = values.astype(np.uint8).reshape(-1, 2)
    return scales.tobytes() + (pairs[:, 0] | (pairs[:, 1] << 4)).tobytes()


class Graph:
    """The reader or the encoder as an ONNX graph. Its large weights are stretches of the model file."""

    def __init__(self, model: Path) -> None:
        import onnx  # a tool of this step alone

        self.onnx, self.model = onnx, model
        content = model.read_bytes()
        self.start = 8 + struct.unpack_from("<I", content, 4)[0]
        self.header: dict[str, Any] = json.loads(content[8 : self.start])
        self.tensors = {name: rest for name, *rest in self.header["tensors"]}
        self.nodes: list[Any] = []
        self.weights: list[Any] = []

    def add(self, kind: str, *inputs: str, outputs: int = 1, **settings: Any) -> Any:
        names = [f"{kind}_{len(self.nodes)}_{number}" for number in range(outputs)]
        self.nodes.append(self.onnx.helper.make_node(kind, inputs, names, **settings))
        return names[0] if outputs == 1 else names

    def constant(self, values: Any, dtype: Any = np.int64) -> str:
        name = f"constant_{len(self.weights)}"
        self.weights.append(self.onnx.numpy_helper.from_array(np.array(values, dtype), name))
        return name

    def stretch(self, name: str, shape: list[int], kind: int, offset: int) -> str:
        """A weight of the graph that is read from the model file."""
        tensor = self.onnx.TensorProto(name=name, data_type=kind, dims=shape)
        tensor.data_location = self.onnx.TensorProto.EXTERNAL
        size = int(np.prod(shape)) * (2 if kind == self.onnx.TensorProto.FLOAT16 else 1)
        for key, value in (("location", self.model.name), ("offset", self.start + offset), ("length", size)):
            tensor.external_data.add(key=key, value=str(value))
        self.weights.append(tensor)
        return name

    def small(self, name: str) -> str:
        shape, _, offset, _ = self.tensors[name]
        halves = self.stretch(name, shape, self.onnx.TensorProto.FLOAT16, offset)
        return str(self.add("Cast", halves, to=self.onnx.TensorProto.FLOAT))

    def linear(self, name: str, states: str) -> str:
        """A product in eight bits, with a scale for each token and for each column of the weights.

        Both sides are unsigned around 128: onnxruntime has fast kernels for that on every processor. For two signed
        sides it has none on x86-64 (five times as slow), and with signed weights alone sums overflow without VNNI.
        """
        if f"{name}.inputs" in self.tensors:
            states = self.add("Mul", states, self.small(f"{name}.inputs"))
        shape, _, offset, _ = self.tensors[f"{name}.weight"]
        types = self.onnx.TensorProto
        scales = self.stretch(f"{name}.scales", shape[1:], types.FLOAT16, offset)
        matrix = self.stretch(f"{name}.weight", shape, types.UINT8, offset + 2 * shape[1])
        middle = self.constant(128, np.uint8)
        largest = self.add("ReduceMax", self.add("Abs", states), self.constant([-1]))
        step = self.add(
            "Max", self.add("Div", largest, self.constant(127, np.float32)), self.constant(1e-9, np.float32)
        )
        values = self.add("Add", self.add("Round", self.add("Div", states, step)), self.constant(128, np.float32))
        values = self.add("Cast", values, to=types.UINT8)
        product = self.add("Cast", self.add("MatMulInteger", values, matrix, middle, middle), to=types.FLOAT)
        scaled = self.add("Mul", self.add("Mul", product, step), self.add("Cast", scales, to=types.FLOAT))
        return str(self.add("Add", scaled, self.small(f"{name}.bias")))

    def norm(self, name: str, states: str) -> str:
        parts = self.small(f"{name}.weight"), self.small(f"{name}.bias")
        return str(self.add("LayerNormalization", states, *parts, epsilon=1e-12))

    def attention(self, name: str, states: str) -> str:
        heads = self.header["heads"]
        dim = self.tensors[f"{name}o.weight"][0][0]
        shape = self.constant([0, 3 * heads, dim // heads])
        parts = self.add("Transpose", self.add("Reshape", self.linear(f"{name}qkv", states), shape), perm=[1, 0, 2])
        queries, keys, values = self.add("Split", parts, axis=0, num_outputs=3, outputs=3)
        scale = self.constant((dim // heads) ** -0.5, np.float32)
        shares = self.add("MatMul", self.add("Mul", queries, scale), self.add("Transpose", keys, perm=[0, 2, 1]))
        mixed = self.add("MatMul", self.add("Softmax", shares, axis=-1), values)
        mixed = self.add("Reshape", self.add("Transpose", mixed, perm=[1, 0, 2]), self.constant([0, dim]))
        return self.linear(f"{name}o", mixed)

    def score(self, states: str) -> str:
        """The reader's head: one number of the state of [CLS] and the mean of all states."""
        means = self.add("ReduceMean", states, self.constant([0]))
        both = self.add("Concat", self.add("Gather", states, self.constant([0]), axis=0), means, axis=1)
        score = self.add("MatMul", self.add("Tanh", self.linear("h1", both)), self.small("h2.weight"))
        score = self.add("Add", score, self.small("h2.bias"))
        self.nodes.append(self.onnx.helper.make_node("Squeeze", [score], ["score"]))
        return "score"

    def vector(self, states: str) -> str:
        """The encoder's head: the mean of all states, in 256 numbers of length 1."""
        means = self.add("ReduceMean", states, self.constant([0]))
        numbers = self.add("Squeeze", self.add("MatMul", means, self.small("h.weight")), self.constant([0]))
        self.nodes.append(self.onnx.helper.make_node("LpNormalization", [numbers], ["vector"], axis=0))
        return "vector"

    def write(self) -> str:
        """Write the graph next to the model file and return its checksum."""
        types, helper = self.onnx.TensorProto, self.onnx.helper
        states = self.norm("ln", "states")
        for layer in range(self.header["layers"]):
            name = f"L.{layer}."
            states = self.norm(f"{name}l1", self.add("Add", states, self.attention(name, states)))
            inner = self.add("Gelu", self.linear(f"{name}f1", states), approximate="tanh")
            states = self.norm(f"{name}l2", self.add("Add", states, self.linear(f"{name}f2", inner)))
        result = self.vector(states) if "h.weight" in self.tensors else self.score(states)
        shape = [DIMENSIONS] if result == "vector" else []
        dim = self.tensors["ln.weight"][0][0]
        graph = helper.make_graph(
            self.nodes,
            self.model.stem,
            [helper.make_tensor_value_info("states", types.FLOAT, ["tokens", dim])],
            [helper.make_tensor_value_info(result, types.FLOAT, shape)],
            self.weights,
        )
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", OPSET)], ir_version=9)
        content: bytes = model.SerializeToString(deterministic=True)
        self.model.with_suffix(".onnx").write_bytes(content)
        return checksum(content)


def _read_trained(path: Path) -> dict[str, np.ndarray]:
    if path.suffix == ".bin":
        return read_model(path)[1]
    import torch  # only needed to read what training saved

    return {name: value.float().numpy() for name, value in torch.load(path, "cpu", weights_only=True).items()}


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(prog="benchmarks.reader.export", description="Write a trained model as one file.")
    parser.add_argument("trained", type=Path, help="NAME.pt, as saved by training, or a model file")
    parser.add_argument("file", type=Path, help="the model file to write, such as reader.bin")
    level = "multiply scores by A and add B, as `python -m benchmarks absence` fits them"
    parser.add_argument("--level", type=float, nargs=2, default=(1.0, 0.0), metavar=("A", "B"), help=level)
    options = parser.parse_args(arguments)
    arrays = _read_trained(options.trained)
    slope, constant = options.level
    if "h2.weight" in arrays:
        arrays |= {"h2.weight": slope * arrays["h2.weight"], "h2.bias": slope * arrays["h2.bias"] + constant}
    digest = write_model(options.file, arrays, packed=True)
    print(
        f"{options.file}: {options.file.stat().st_size:,} bytes, checksum {digest}, graph {Graph(options.file).write()}"
    )


if __name__ == "__main__":
    main()
