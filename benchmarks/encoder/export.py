"""Write the trained encoder as its model file: `python -m benchmarks.encoder.export WORK/L6.pt FILE`.

The file's products take their inputs in eight bits, with one scale for each token. A few numbers of a state are ten
times as large as the others, which leaves these few bits. So states are multiplied number by number before such a
product, and its weights divided by the same, which shares the range between both (SmoothQuant, arXiv 2211.10438).
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path

import numpy as np
import torch
from torch import Tensor, nn

from benchmarks.encoder.train import Encoder
from benchmarks.reader.export import Graph, write_model
from benchmarks.reader.model import State
from co_cli.embedding.encoder import MOST_TOKENS
from co_cli.embedding.space import VOCABULARY
from co_cli.embedding.word_pieces import END, START, WordPieces

NOTES = Path(__file__).parents[1] / "reader" / "data" / "part-01.jsonl"
TEXTS = 150
"""Notes, and as many questions, that show how large the numbers become."""
SHARE = 0.75
"""Of the range, what goes to the weights. Cosines to the trained model's vectors, median of 300 texts: 0 .9963,
.5 .9987, .75 .9990, .95 .9990."""


def ranges(state: State) -> dict[str, Tensor]:
    """The largest size of each number that goes into the products after a normalization."""
    model = Encoder(state).eval()
    found: dict[str, Tensor] = {}

    def watch(name: str, layer: nn.Module) -> None:
        def note(_layer: nn.Module, inputs: tuple[Tensor, ...], _output: Tensor) -> None:
            sizes = inputs[0].abs().flatten(0, -2).amax(0)
            found[name] = torch.maximum(found.get(name, sizes), sizes)

        layer.register_forward_hook(note)

    for name, layer in model.named_modules():
        if name.endswith((".qkv", ".f1")):
            watch(name, layer)
    pieces = WordPieces(Path(VOCABULARY).read_text("utf-8").splitlines())
    with torch.no_grad(), NOTES.open(encoding="utf-8") as lines:
        for _, line in zip(range(TEXTS), map(json.loads, lines), strict=False):
            for text in (line["text"], line["questions"][0]):
                tokens = torch.tensor([[START, *pieces.pieces(text, MOST_TOKENS - 2), END]])
                model.vectors(tokens, torch.ones_like(tokens, dtype=torch.bool))
    return found


def smoothed(state: State) -> dict[str, np.ndarray]:
    """The weights, with those of the inputs where they are shared."""
    arrays = {name: value.numpy() for name, value in state.items()}
    for name, sizes in ranges(state).items():
        weights = arrays[f"{name}.weight"]
        shares = sizes.numpy().clip(1e-3) ** SHARE / np.abs(weights).max(0).clip(1e-5) ** (1 - SHARE)
        factors = (np.exp(np.log(shares).mean()) / shares).astype(np.float16).astype(np.float32)
        arrays |= {f"{name}.inputs": factors, f"{name}.weight": weights / factors}
    return arrays


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(prog="benchmarks.encoder.export", description=__doc__.partition("\n")[0])
    parser.add_argument("trained", type=Path, help="NAME.pt, as saved by training")
    parser.add_argument("file", type=Path, help="the model file to write, such as encoder.bin")
    options = parser.parse_args(arguments)
    trained = torch.load(options.trained, "cpu", weights_only=True)
    digest = write_model(options.file, smoothed({name: value.float() for name, value in trained.items()}), packed=True)
    print(f"checksum {digest}, graph {Graph(options.file).write()}")


if __name__ == "__main__":
    main()
