"""How much a reader improves co-cli's own order of candidates: nDCG@10 of public sets, recall@5 of vaults.

Run `python -m benchmarks.reader.measure WORK MODEL...` for model files. The final score is hybrid + a * logit. For each
family of public sets, `a` is the best on all the other families; for vaults, the best on all public sets.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

from benchmarks.reader.model import DEVICE, Reader, Store, half_precision, join, read_state
from benchmarks.reader.packed import Texts, load

WEIGHTS = (0.0, 0.02, 0.03, 0.05, 0.07, 0.1, 0.15, 0.2, 0.3, 0.5)
DISCOUNTS = 1 / np.log2(np.arange(10) + 2)
BATCH = 2_048


class Lists(NamedTuple):
    """One set: for each question the candidates' texts (-1: none), scores and grades, and the best possible DCG."""

    questions: Store
    texts: Store
    candidates: np.ndarray
    scores: np.ndarray
    grades: np.ndarray
    ideal: np.ndarray


class Window(NamedTuple):
    """What is read of a candidate: `most` stretches of such a length, question included, that match best."""

    tokens: int = 128
    most: int = 2


def read_lists(work: Path) -> dict[str, Lists]:
    arrays = load(work / "lists.npz.xz")
    found: dict[str, Lists] = {}
    for name in dict.fromkeys(key.partition("/")[0] for key in arrays):
        stores = [
            Store(Texts(arrays[f"{name}/{part}.tokens"], arrays[f"{name}/{part}.ends"]))
            for part in ("questions", "texts")
        ]
        rest = [arrays[f"{name}/{part}"] for part in ("candidates", "scores", "grades", "ideal")]
        found[name] = Lists(*stores, *rest)
    return found


@torch.inference_mode()
def read_all(model: Reader, lists: Lists, window: Window) -> np.ndarray:
    """The logit of every question and candidate."""
    candidates = torch.from_numpy(lists.candidates.astype("int64")).to(DEVICE)
    rows, columns = torch.nonzero(candidates >= 0, as_tuple=True)
    texts = candidates[rows, columns]
    frequency = torch.bincount(lists.texts.tokens.long(), minlength=model.w.num_embeddings).float()
    rarity = torch.log(frequency.sum() / (frequency + 1))
    found = torch.full(candidates.shape, -1e4, device=DEVICE)
    order = torch.argsort(lists.texts.lengths[texts])
    for part in order.split(BATCH):
        asked, read = (lists.questions, rows[part]), (lists.texts, texts[part])
        best = torch.full((len(part),), -1e4, device=DEVICE)
        for start in _starts(asked, read, rarity, window):
            left = lists.texts.lengths[read[1]] - start
            width = int((lists.questions.lengths[asked[1]].clamp(max=48) + left).max()) + 3
            with half_precision():
                best = torch.maximum(best, model(*join(asked, read, min(window.tokens, width), start)))
        found[rows[part], columns[part]] = best
    return found.cpu().numpy()


def _starts(asked: tuple[Store, Tensor], read: tuple[Store, Tensor], rarity: Tensor, window: Window) -> list[Tensor]:
    """Where to read: the stretches with most of the question's tokens, rare ones counting more; the first if equal."""
    room = window.tokens - 3 - int(asked[0].lengths[asked[1]].clamp(max=48).float().mean())
    longest = int(read[0].lengths[read[1]].max())
    if longest <= room:
        return [torch.zeros_like(read[1])]
    tokens, lengths = read[0].rows(read[1], longest)
    questions, _ = asked[0].rows(asked[1], 48)
    shared = torch.zeros(tokens.shape, device=DEVICE)
    for column in range(questions.shape[1]):
        token = questions[:, column : column + 1]
        shared += ((tokens == token) & (token > 0)) * rarity[token]
    summed = torch.nn.functional.pad(shared.cumsum(1), (1, 0))
    starts = torch.arange(0, longest, room // 2, device=DEVICE)
    matches = summed[:, (starts + room).clamp(max=longest)] - summed[:, starts] - starts * 1e-4
    matches = matches.masked_fill((starts > 0) & (starts + room // 2 >= lengths[:, None]), -1e4)
    places = matches.topk(min(window.most, len(starts)), dim=1).indices
    picked = torch.where(matches.gather(1, places) <= -1e3, 0, starts[places])
    return list(picked.T)


def order(lists: Lists, logits: np.ndarray, weight: float, depth: int) -> np.ndarray:
    """The first ten places of each question. What is not among the first `depth` candidates follows those."""
    fused = lists.scores + weight * logits
    fused[:, depth:] = lists.scores[:, depth:] - 1e4
    return np.argsort(-np.where(lists.candidates < 0, -np.inf, fused), axis=1, kind="stable")[:, :10]


def ndcg10(lists: Lists, places: np.ndarray) -> float:
    gains = np.take_along_axis(lists.grades, places, axis=1)
    return float(((gains * DISCOUNTS).sum(1) / lists.ideal).mean())


def recall5(lists: Lists, places: np.ndarray) -> float:
    return float((np.take_along_axis(lists.grades, places[:, :5], axis=1) > 0).any(1).mean())


def measure(model: Reader, sets: dict[str, Lists], window: Window, depth: int = 50) -> dict[str, Any]:
    """The figures of one model: hybrid alone and with the reader, for each set, and their means."""
    started = time.time()
    model.eval()
    logits = {name: read_all(model, lists, window) for name, lists in sets.items()}
    public = [name for name in sets if not name.startswith("vault:")]
    table = {
        name: [
            (ndcg10 if name in public else recall5)(sets[name], order(sets[name], logits[name], weight, depth))
            for weight in WEIGHTS
        ]
        for name in sets
    }
    families = {name: name.partition("_")[0] for name in public}
    chosen = {
        name: _best(table, [one for one in public if families[one] != families[name]], families) for name in public
    }
    overall = _best(table, public, families)
    chosen |= {name: overall for name in sets if name not in public}
    figures = {name: (round(row[0], 4), round(row[chosen[name]], 4)) for name, row in table.items()}
    vaults = [name for name in sets if name not in public]
    return {
        "window": list(window),
        "depth": depth,
        "hybrid": _mean([figures[name][0] for name in public]),
        "mean": _mean([figures[name][1] for name in public]),
        "weight": WEIGHTS[overall],
        "sets": figures,
        "vaults_by_weight": {name: [round(value, 3) for value in table[name]] for name in vaults},
        "mean_by_weight": [_mean([table[name][at] for name in public]) for at in range(len(WEIGHTS))],
        "seconds": round(time.time() - started, 1),
    }


def _best(table: dict[str, list[float]], names: Sequence[str], families: dict[str, str]) -> int:
    """The place of the best weight; each family counts the same. Without any sets, a middle one."""
    if not names:
        return WEIGHTS.index(0.1)
    rows = {family: [table[name] for name in names if families[name] == family] for family in map(families.get, names)}
    return int(np.mean([np.mean(group, axis=0) for group in rows.values()], axis=0).argmax())


def _mean(values: Sequence[float]) -> float:
    return round(sum(values) / max(len(values), 1), 4)


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(prog="benchmarks.reader.measure", description=__doc__.partition("\n")[0])
    parser.add_argument("work", type=Path, help="the folder that `prepare` wrote")
    parser.add_argument("models", type=Path, nargs="+", help="model files")
    parser.add_argument("--window", type=int, nargs=2, default=Window(), help="tokens and number of windows (128 2)")
    parser.add_argument("--depth", type=int, default=50, help="candidates that are read (default 50)")
    options = parser.parse_args(arguments)
    sets = read_lists(options.work)
    for file in options.models:
        figures = measure(Reader(read_state(file)).to(DEVICE), sets, Window(*options.window), options.depth)
        print(json.dumps({"model": file.name, **figures}), flush=True)


if __name__ == "__main__":
    main()
