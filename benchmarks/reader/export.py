"""Model files: named matrices into one file of whole numbers with scales, and back. Needs only numpy.

Run `python -m benchmarks.reader.export WORK/NAME.pt reader.bin --table 4` (this part needs torch).

Layout: b"RDR1", the header's length (uint32), a JSON header {layers, dim, heads, max, tensors: [name, shape, type,
offset, bytes]}, then the data. Types: f16; q8 (a float16 scale per row, then int8 rows); q4 (a float16 scale for each
32 values of a row, then two values a byte, the low half first, each plus 8); raw (the vocabulary, one token a line).
"""

from __future__ import annotations

import argparse
import hashlib
import json
import struct
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

MAGIC = b"RDR1"
HEADS = 12
"""Attention heads of MiniLM and of MPNet."""
GROUP = 32
MOST_TOKENS = 192
"""Positions that are kept: no input is longer."""
TABLE, POSITIONS = "w.weight", "p.weight"
VOCABULARY = Path(__file__).parents[2] / "co_cli" / "embedding" / "model" / "minilm-vocab.txt"

Arrays = Mapping[str, np.ndarray]


def write_model(path: Path, arrays: Arrays, table_bits: int = 8, vocabulary: bytes | None = None) -> str:
    """Write the file and return its sha256. Matrices become int8 by row; the word table may have 4 bits."""
    parts: list[tuple[str, tuple[int, ...], str, bytes]] = []
    for name, array in arrays.items():
        kept = array[:MOST_TOKENS] if name == POSITIONS else array
        if kept.ndim < 2 or len(kept) == 1:
            parts.append((name, kept.shape, "f16", kept.astype(np.float16).tobytes()))
        elif name == TABLE and table_bits == 4:
            parts.append((name, kept.shape, "q4", _four_bits(kept)))
        else:
            parts.append((name, kept.shape, "q8", _eight_bits(kept)))
    if vocabulary:
        parts.append(("vocab", (len(vocabulary),), "raw", vocabulary))
    ends = np.cumsum([0, *(len(data) for *_, data in parts)]).tolist()
    dim = arrays[TABLE].shape[1]
    header = {
        "layers": 1 + max(int(name.split(".")[1]) for name in arrays if name.startswith("L.")),
        "dim": dim,
        "heads": HEADS,
        "max": MOST_TOKENS,
        "tensors": [
            [name, list(shape), kind, ends[at], len(data)] for at, (name, shape, kind, data) in enumerate(parts)
        ],
    }
    head = json.dumps(header).encode()
    content = b"".join([MAGIC, struct.pack("<I", len(head)), head, *(data for *_, data in parts)])
    path.write_bytes(content)
    return hashlib.sha256(content).hexdigest()


def read_model(path: Path) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
    """The header and the matrices in float32."""
    content = path.read_bytes()
    if content[:4] != MAGIC:
        raise ValueError(f"{path} is not a model file")
    start = 8 + struct.unpack("<I", content[4:8])[0]
    header: dict[str, Any] = json.loads(content[8:start])
    arrays: dict[str, np.ndarray] = {}
    for name, shape, kind, offset, size in header["tensors"]:
        data = content[start + offset : start + offset + size]
        if kind == "f16":
            arrays[name] = np.frombuffer(data, np.float16).reshape(shape).astype(np.float32)
        elif kind == "q8":
            scales = np.frombuffer(data, np.float16, shape[0]).astype(np.float32)
            arrays[name] = np.frombuffer(data, np.int8, offset=2 * shape[0]).reshape(shape) * scales[:, None]
        elif kind == "q4":
            groups = shape[0] * shape[1] // GROUP
            scales = np.frombuffer(data, np.float16, groups).astype(np.float32)
            pairs = np.frombuffer(data, np.uint8, offset=2 * groups)
            values = np.stack([pairs & 15, pairs >> 4], axis=-1).astype(np.float32) - 8
            arrays[name] = (values.reshape(groups, GROUP) * scales[:, None]).reshape(shape)
    return header, arrays


def _eight_bits(matrix: np.ndarray) -> bytes:
    scales = (np.maximum(np.abs(matrix).max(1), 1e-4) / 127).astype(np.float16)
    values = np.rint(matrix / scales.astype(np.float32)[:, None]).clip(-127, 127)
    return scales.tobytes() + values.astype(np.int8).tobytes()


def _four_bits(matrix: np.ndarray) -> bytes:
    groups = matrix.reshape(-1, GROUP)
    scales = (np.maximum(np.abs(groups).max(1), 1e-4) / 7).astype(np.float16)
    values = np.rint(groups / scales.astype(np.float32)[:, None]).clip(-7, 7).astype(np.int8) + 8
    pairs = values.astype(np.uint8).reshape(-1, 2)
    return scales.tobytes() + (pairs[:, 0] | (pairs[:, 1] << 4)).tobytes()


def main(arguments: list[str] | None = None) -> None:
    import torch  # only needed to read what training saved

    parser = argparse.ArgumentParser(prog="benchmarks.reader.export", description="Write a trained model as one file.")
    parser.add_argument("trained", type=Path, help="NAME.pt, as saved by training")
    parser.add_argument("file", type=Path, help="the model file to write")
    parser.add_argument("--table", type=int, choices=(4, 8), default=8, help="bits of the word table (default 8)")
    options = parser.parse_args(arguments)
    state = torch.load(options.trained, map_location="cpu", weights_only=True)
    arrays = {name: value.float().numpy() for name, value in state.items()}
    digest = write_model(options.file, arrays, options.table, VOCABULARY.read_bytes().rstrip(b"\n"))
    print(f"{options.file}: {options.file.stat().st_size:,} bytes, sha256 {digest}")


if __name__ == "__main__":
    main()
