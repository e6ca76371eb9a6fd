"""The reader in torch: tokens of a question and a passage into one score. Also the part that the encoder shares.

Input: [CLS] question [SEP] passage [SEP], with token type 1 from the passage on. The score comes from the state of
[CLS] and the mean of all states. The names of the weights are those of the model file.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path

import torch
from torch import Tensor, nn
from torch.nn import functional

from benchmarks.reader.export import HEADS, read_model
from benchmarks.reader.packed import Texts

CLS, SEP = 101, 102
DEVICE = "cuda" if torch.cuda.is_available() else "cpu"
EPSILON = 1e-12

State = dict[str, Tensor]


def half_precision() -> torch.autocast:
    return torch.autocast(DEVICE, dtype=torch.bfloat16, enabled=DEVICE == "cuda")


class Layer(nn.Module):
    """One BERT layer: attention, then two dense steps, each added to its input and normalised."""

    def __init__(self, dim: int, inner: int) -> None:
        super().__init__()
        self.qkv, self.o, self.l1 = nn.Linear(dim, 3 * dim), nn.Linear(dim, dim), nn.LayerNorm(dim, EPSILON)
        self.f1, self.f2, self.l2 = nn.Linear(dim, inner), nn.Linear(inner, dim), nn.LayerNorm(dim, EPSILON)

    def forward(self, states: Tensor, mask: Tensor, dropout: float) -> Tensor:
        rows, width, dim = states.shape
        queries, keys, values = self.qkv(states).view(rows, width, 3, HEADS, -1).permute(2, 0, 3, 1, 4)
        mixed = functional.scaled_dot_product_attention(queries, keys, values, attn_mask=mask)
        mixed = self.o(mixed.transpose(1, 2).reshape(rows, width, dim))
        states = self.l1(states + functional.dropout(mixed, dropout, self.training))
        inner = self.f2(functional.gelu(self.f1(states), approximate="tanh"))
        return self.l2(states + functional.dropout(inner, dropout, self.training))


class Trunk(nn.Module):
    """What reader and encoder share: tokens to states. `state` decides its size; heads that it lacks are random."""

    def __init__(self, state: State, dropout: float = 0.0, **heads: nn.Module) -> None:
        super().__init__()
        words, dim = state["w.weight"].shape
        inner, layers = len(state["L.0.f1.weight"]), 1 + max(int(name.split(".")[1]) for name in state if "L." in name)
        self.w, self.p, self.t = (
            nn.Embedding(words, dim),
            nn.Embedding(len(state["p.weight"]), dim),
            nn.Embedding(2, dim),
        )
        self.ln, self.L = nn.LayerNorm(dim, EPSILON), nn.ModuleList(Layer(dim, inner) for _ in range(layers))
        self.r = nn.Embedding(*state["r.weight"].shape) if "r.weight" in state else None
        self.dropout = dropout
        for name, head in heads.items():
            self.add_module(name, head)
        missing, unexpected = self.load_state_dict(state, strict=False)
        if unexpected or any(name.partition(".")[0] not in heads for name in missing):
            raise ValueError(f"these weights do not fit: {missing} are missing, {unexpected} are unknown")

    def words(self, tokens: Tensor) -> Tensor:
        return self.w(tokens)

    def states(self, tokens: Tensor, types: Tensor, mask: Tensor) -> list[Tensor]:
        """What each layer gives."""
        states = self.ln(self.words(tokens) + self.p.weight[: tokens.shape[1]] + self.t(types))
        seen = mask[:, None, None, :]
        if self.r:
            self.r.requires_grad_(False)  # attention is much faster then
            bias = self.r(_distances(tokens.shape[1], self.r.num_embeddings)).permute(2, 0, 1)[None]
            seen = torch.where(seen, bias, -1e4).to(torch.bfloat16 if DEVICE == "cuda" else torch.float32)
        found: list[Tensor] = []
        for layer in self.L:
            states = layer(states, seen, self.dropout)
            found.append(states)
        return found

    def compile_layers(self) -> None:
        torch._dynamo.config.recompile_limit = 64  # one for each width, with and without gradients
        torch._dynamo.config.suppress_errors = True
        for layer in self.L:
            layer.compile(dynamic=False)

    def vectors(self, tokens: Tensor, mask: Tensor) -> Tensor:
        """Unit vectors of texts. Of a reader, only before any training of ours."""
        return functional.normalize(self.means(tokens, mask), dim=1)

    def means(self, tokens: Tensor, mask: Tensor) -> Tensor:
        return _mean(self.states(tokens, torch.zeros_like(tokens), mask)[-1].float(), mask)


class Reader(Trunk):
    """A cross-encoder."""

    def __init__(self, state: State, dropout: float = 0.0) -> None:
        dim = state["w.weight"].shape[1]
        super().__init__(state, dropout, h1=nn.Linear(2 * dim, dim), h2=nn.Linear(dim, 1))

    def forward(self, tokens: Tensor, types: Tensor, mask: Tensor) -> Tensor:
        return self.score(self.states(tokens, types, mask)[-1], mask)

    def score(self, states: Tensor, mask: Tensor) -> Tensor:
        both = torch.cat([states[:, 0], _mean(states, mask)], dim=1)
        hidden = functional.dropout(torch.tanh(self.h1(both)), self.dropout, self.training)
        return self.h2(hidden).squeeze(-1).float()


def _distances(width: int, buckets: int) -> Tensor:
    """MPNet's number for the distance of each two places: exact up to 7, then in steps that grow, by direction."""
    half, exact, longest = buckets // 2, buckets // 4, 128
    places = torch.arange(width, device=DEVICE)
    behind = places[:, None] - places[None]
    far = behind.abs().clamp(min=1)
    steps = (torch.log(far / exact) / math.log(longest / exact) * (half - exact)).long()
    number = torch.where(far < exact, behind.abs(), exact + steps.clamp(max=half - exact - 1))
    return torch.where(behind < 0, half, 0) + number


def _mean(states: Tensor, mask: Tensor) -> Tensor:
    weights = mask[..., None].to(states.dtype)
    return (states * weights).sum(1) / weights.sum(1)


def read_state(path: Path) -> State:
    """The weights of a model file."""
    return {name: torch.from_numpy(array) for name, array in read_model(path)[1].items()}


def pick_layers(state: State, layers: Sequence[int]) -> State:
    """The same weights with some of the layers, numbered anew."""
    picked: State = {}
    for name, value in state.items():
        if not name.startswith("L."):
            picked[name] = value
            continue
        _, number, rest = name.split(".", 2)
        if int(number) in layers:
            picked[f"L.{layers.index(int(number))}.{rest}"] = value
    return picked


class Store:
    """Packed texts on the device."""

    def __init__(self, texts: Texts) -> None:
        self.tokens = torch.from_numpy(texts.tokens.astype("int32")).to(DEVICE)
        self.ends = torch.from_numpy(texts.ends.astype("int64")).to(DEVICE)
        self.lengths = self.ends[1:] - self.ends[:-1]

    def __len__(self) -> int:
        return len(self.lengths)

    def rows(self, numbers: Tensor, width: int, start: Tensor | int = 0) -> tuple[Tensor, Tensor]:
        """Tokens from `start` on, filled with 0 to `width`, and how many are tokens."""
        first = self.ends[numbers] + start
        lengths = (self.ends[numbers + 1] - first).clamp(0, width)
        columns = torch.arange(width, device=DEVICE)
        places = (first[:, None] + columns).clamp(max=max(len(self.tokens) - 1, 0))
        return torch.where(columns < lengths[:, None], self.tokens[places].long(), 0), lengths


def join(
    questions: tuple[Store, Tensor], passages: tuple[Store, Tensor], width: int, start: Tensor | int = 0
) -> tuple[Tensor, Tensor, Tensor]:
    """Tokens, types and mask of pairs; a passage is cut where the pair would be longer than `width`."""
    asked, asked_lengths = questions[0].rows(questions[1], min(width, 48))
    read, read_lengths = passages[0].rows(passages[1], width, start)
    asked_lengths, columns = asked_lengths[:, None], torch.arange(width, device=DEVICE)[None]
    last = asked_lengths + 2 + torch.minimum(read_lengths[:, None], width - 3 - asked_lengths)
    place = (columns - asked_lengths - 2).clamp(0, width - 1)
    tokens = read.gather(1, place)
    tokens = torch.where(
        columns <= asked_lengths, asked.gather(1, (columns - 1).clamp(0, asked.shape[1] - 1).expand_as(tokens)), tokens
    )
    tokens = torch.where(columns == 0, CLS, tokens)
    tokens = torch.where((columns == asked_lengths + 1) | (columns == last), SEP, tokens)
    mask = columns <= last
    return torch.where(mask, tokens, 0), ((columns >= asked_lengths + 2) & mask).long(), mask


def single(store: Store, numbers: Tensor, width: int) -> tuple[Tensor, Tensor]:
    """Tokens and mask of texts that stand alone: [CLS] text [SEP]."""
    rows, sizes = store.rows(numbers, width - 2)
    rows = functional.pad(rows, (1, 1))
    rows[:, 0] = CLS
    rows.scatter_(1, sizes[:, None] + 1, SEP)
    return rows, torch.arange(width, device=DEVICE) < sizes[:, None] + 2


@torch.inference_mode()
def embed(model: Trunk, store: Store, batch_tokens: int = 300_000) -> Tensor:
    """The vector of every text."""
    found: Tensor | None = None
    order = torch.argsort(store.lengths, descending=True)
    lengths, at = store.lengths[order].tolist(), 0
    while at < len(order):
        width = lengths[at] + 2
        batch = order[at : at + max(1, batch_tokens // width)]
        at += len(batch)
        with half_precision():
            vectors = model.vectors(*single(store, batch, width)).half()
        found = (
            torch.zeros(len(store), vectors.shape[1], dtype=torch.float16, device=DEVICE) if found is None else found
        )
        found[batch] = vectors
    assert found is not None
    return found
