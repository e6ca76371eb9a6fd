"""Teach a trained reader to judge: a list of runs in a JSON file into model files (WORK/NAME.bin).

Run `python -m benchmarks.reader.judge CONFIG WORK`. Ordering leaves the level of the scores open: a question that
nothing answers has a best passage, too. Here each batch is a vault: the notes of some lives, or passages of some
sources. Half of its questions are about it, half about something else, and each is scored with the first candidates of
a plain search. One more candidate has the score 0 and means that nothing answers; it is the right one for questions
about something else. The loss is the softmax over all of these, plus the distance to the order of a guide. So a score
of 0 means even odds. The word table stays as it is.

With `small`, small vaults are asked, too, where it is known of each note whether it answers: the loss is the binary
cross entropy of all notes of a vault.
"""

from __future__ import annotations

import argparse
import json
import math
import random
import time
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional

from benchmarks.reader.export import write_model
from benchmarks.reader.model import DEVICE, Reader, Store, half_precision, read_state
from benchmarks.reader.packed import Texts, load
from benchmarks.reader.train import WARM_UP, make_pairs
from co_cli.embedding.space import VOCABULARY
from co_cli.embedding.static import FILE, StaticModel

MEANING, WORDS = 0.7, 0.3
"""Weights of the search whose candidates are read, as in the product."""
FIRST, DRAWN_FROM = 6, 20
"""So many of the first candidates are always read; the others are drawn from so many."""
SAME_TEXT = 0.93
"""Passages that are this near to an answer may say the same."""
LIVES, SOURCES, PASSAGES = (1, 6), (1, 4), (60, 3_000)
"""How many lives, or sources and passages, make a vault."""
FROZEN = ("w.weight", "p.weight", "t.weight")
NOTHING = -1e4
OTHERS = 16
"""So many notes of other vaults are read, too: the nearest by the static model."""
LEVEL_BATCHES = 20
LEAST, NEAR = -1.386, 4.0
"""The scores that notes need to be given to an agent, as in `co_cli.retrieval.results`."""


@dataclass(frozen=True, slots=True)
class Run:
    """The settings of one run."""

    name: str
    start: str  # a model file, or an earlier run
    guide: str  # whose order to keep
    judged: bool = False  # whether the guide's scores say how sure it is, too
    order: float = 1.0  # weight of the distance to the guide
    label: float = 0.5  # weight of the softmax
    notes: float = 0.5  # share of vaults that are made of lives
    hidden: float = 0.1  # share of the questions about a vault whose answer is taken out of it
    candidates: int = 12
    batch: int = 128
    rate: float = 5e-5
    dropout: float = 0.0
    small: str = ""  # a file of small vaults, whose questions name every note that answers
    guided: float = 0.0  # how much what the guide says of their notes counts, beside these answers
    others: float = 0.0  # ... and of the nearest notes of other vaults
    asked: int = 96  # questions about them in a step
    steps: int = 800
    seconds: float = math.inf
    seed: int = 1


class Batch(NamedTuple):
    """Questions with candidates (-1: none), the answer first where there is one, and whether it is there."""

    questions: Tensor
    candidates: Tensor
    answered: Tensor
    weights: Tensor


class Library:
    """The training data on the device, with what a plain search needs."""

    def __init__(self, work: Path) -> None:
        arrays = load(work / "train.npz.xz")
        self.passages = Store(Texts(arrays["passages.tokens"], arrays["passages.ends"]))
        self.questions = Store(Texts(arrays["questions.tokens"], arrays["questions.ends"]))
        self.positives, self.groups, self.sources, self.lives = (
            torch.from_numpy(arrays[name].astype("int64")).to(DEVICE)
            for name in ("positives", "groups", "sources", "lives")
        )
        names = [str(name) for name in arrays["source_names"]]
        self.doubtful = torch.from_numpy(arrays["weak"]).to(DEVICE)
        plain = [name.removeprefix("written:").partition("-")[0] for name in names]
        alike = {name: number for number, name in enumerate(dict.fromkeys(plain))}
        self.sources = torch.tensor([alike[name] for name in plain], device=DEVICE)[self.sources]
        self.notes = alike["notes"]
        self.source_of = torch.full((len(self.passages),), -1, device=DEVICE)
        negatives = torch.from_numpy(arrays["negatives"].astype("int64")).to(DEVICE)
        for table in (negatives, self.positives):
            rows, columns = torch.nonzero(table >= 0, as_tuple=True)
            self.source_of[table[rows, columns]] = self.sources[rows]
        self.life = self.lives[self.positives[:, 0]]  # of each question
        table, power = _static_table()
        self.vectors = _static_vectors(self.passages, table, power)
        self.asked = _static_vectors(self.questions, table, power)
        found = torch.bincount(_pairs(self.passages)[1], minlength=len(table)).float()
        rarity = torch.log(len(self.passages) / (found + 1)).clamp(min=0)
        self.rarity = rarity.masked_fill(found > 0.1 * len(self.passages), 0)

    def words(self, store: Store, numbers: Tensor) -> Tensor:
        """Which words each text has: [text, token], 1 or 0."""
        tokens, _ = store.rows(numbers, int(store.lengths[numbers].max()))
        found = torch.zeros(len(numbers), len(self.rarity), device=DEVICE)
        found.scatter_(1, tokens, 1.0)
        found[:, 0] = 0
        return found

    def search(self, questions: Tensor, pool: Tensor) -> tuple[Tensor, Tensor]:
        """The score of each passage of a vault for each question, and the cosine."""
        cosines = self.asked[questions] @ self.vectors[pool].T
        damped = (1 + self.passages.lengths[pool] / 60.0).log()
        shared = (self.words(self.questions, questions) * self.rarity) @ self.words(self.passages, pool).T
        shared = shared / (1 + damped)
        return MEANING * cosines + WORDS * shared / shared.amax(1, keepdim=True).clamp(min=1e-6), cosines


def _static_table() -> tuple[Tensor, float]:
    """The rows of the product's static model in the order of BERT's tokens."""
    model = StaticModel(FILE)
    size, dim = model._size, model._dimensions
    scales = np.frombuffer(model._data, np.float16, size, model._scales_at).astype(np.float32)
    values = np.frombuffer(model._data, np.int8, size * dim, model._table_at).reshape(size, dim)
    places = {piece: number for number, piece in enumerate(model.tokens())}
    tokens = Path(VOCABULARY).read_text("utf-8").splitlines()
    table = np.zeros((len(tokens), dim), np.float32)
    for number, token in enumerate(tokens):
        if token in places:
            table[number] = scales[places[token]] * values[places[token]]
    return torch.from_numpy(table).to(DEVICE), model._power


def _pairs(store: Store) -> tuple[Tensor, Tensor, Tensor]:
    """Each text with each of its tokens, and how often it has it."""
    owners = torch.repeat_interleave(torch.arange(len(store), device=DEVICE), store.lengths)
    keys, times = torch.unique(owners * 65_536 + store.tokens.long(), return_counts=True)
    return keys // 65_536, keys % 65_536, times


def _static_vectors(store: Store, table: Tensor, power: float) -> Tensor:
    found = torch.zeros(len(store), table.shape[1], device=DEVICE)
    for owners, tokens, times in zip(*(part.split(1_000_000) for part in _pairs(store)), strict=True):
        found.index_add_(0, owners, table[tokens] * (times.float() ** power)[:, None])
    return functional.normalize(found, dim=1)


class Vaults:
    """Draws batches."""

    def __init__(self, data: Library, run: Run) -> None:
        self.data, self.run, self.chance = data, run, random.Random(run.seed)
        self.public = [int(n) for n in torch.unique(data.sources) if int(n) != data.notes]

    def draw(self) -> Batch:
        data, run, half = self.data, self.run, self.run.batch // 2
        lives = self.chance.random() < run.notes
        if lives:
            count = int(data.lives.max()) + 1
            chosen = self.chance.sample(range(count), min(self.chance.randint(*LIVES), count - 1))
            inside = torch.tensor(chosen, device=DEVICE)
            pool = torch.nonzero(torch.isin(data.lives, inside))[:, 0]
            about = torch.isin(data.life, inside)
            other = (data.life >= 0) & ~about
        else:
            chosen = self.chance.sample(self.public, min(self.chance.randint(*SOURCES), len(self.public)))
            inside = torch.tensor(chosen, device=DEVICE)
            about = other = torch.isin(data.sources, inside)
            pool = torch.nonzero(torch.isin(data.source_of, inside))[:, 0]
            size = int(math.exp(self.chance.uniform(*map(math.log, PASSAGES))))
            pool = pool[torch.randperm(len(pool), device=DEVICE)[:size]]
        own, foreign = self._some(about, half), self._some(other, half * 7 // 8 if lives else half // 2)
        strangers = self._some(data.sources != data.notes if lives else torch.ones_like(about), half - len(foreign))
        foreign = torch.cat([foreign, strangers])
        if not lives:
            pool = torch.unique(torch.cat([pool, data.positives[own, 0]]))
        return self._candidates(own, foreign, pool)

    def _some(self, mask: Tensor, count: int) -> Tensor:
        numbers = torch.nonzero(mask)[:, 0]
        return numbers[torch.randperm(len(numbers), device=DEVICE)[:count]]

    def _candidates(self, own: Tensor, foreign: Tensor, pool: Tensor) -> Batch:
        data, run = self.data, self.run
        questions = torch.cat([own, foreign])
        scores, cosines = data.search(questions, pool)
        positives = data.positives[questions]
        is_answer = (pool[None, :, None] == positives[:, None]).any(2)
        answer = positives[:, 0]
        near = (data.asked[questions] * data.vectors[answer]).sum(1)
        group, life = data.groups[answer], data.life[questions]
        same_group = (data.groups[pool][None] == group[:, None]) & (group >= 0)[:, None]
        same_life = (data.lives[pool][None] == life[:, None]) & (life >= 0)[:, None]
        alike = data.vectors[answer] @ data.vectors[pool].T > SAME_TEXT
        nearer = (cosines > near[:, None]) & data.doubtful[questions][:, None]
        is_foreign = torch.arange(len(questions), device=DEVICE) >= len(own)
        # where nothing shall answer, nothing may be there that perhaps does
        left_out = is_answer | alike | nearer | (is_foreign[:, None] & (same_group | same_life))
        place = (scores > (scores.masked_fill(~is_answer, NOTHING)).amax(1, keepdim=True)).sum(1)
        lost = data.doubtful[questions] & (place >= DRAWN_FROM)
        scores = scores.masked_fill(left_out, NOTHING)
        top = scores.topk(min(DRAWN_FROM, len(pool)), dim=1)
        chance = torch.rand(top.values.shape, device=DEVICE)
        chance[:, :FIRST] += 1
        chance = chance.masked_fill(top.values <= NOTHING / 2, -1)
        picked = chance.topk(min(run.candidates - 1, chance.shape[1]), dim=1)
        found = pool[top.indices.gather(1, picked.indices)].masked_fill(picked.values < 0, -1)
        found = functional.pad(found, (0, run.candidates - 1 - found.shape[1]), value=-1)
        hidden = torch.rand(len(questions), device=DEVICE) < run.hidden
        answered = ~is_foreign & ~hidden
        first = torch.where(answered, answer, -1)
        weights = torch.where(~is_foreign & lost, 0.0, 1.0)
        return Batch(questions, torch.cat([first[:, None], found], dim=1), answered, weights)


class SmallVaults:
    """Vaults of a few notes, where it is known of each note whether it answers a question."""

    def __init__(self, file: Path) -> None:
        arrays = load(file)
        self.passages = Store(Texts(arrays["passages.tokens"], arrays["passages.ends"]))
        self.questions = Store(Texts(arrays["questions.tokens"], arrays["questions.ends"]))
        self.vaults, self.asked, right, doubtful = (
            torch.from_numpy(arrays[name].astype("int64")).to(DEVICE)
            for name in ("vaults", "asked", "right", "doubtful")
        )
        self.kinds = [str(kind) for kind in arrays["kinds"]]
        notes = [torch.nonzero(self.vaults == vault)[:, 0] for vault in range(int(self.asked.max()) + 1)]
        self.candidates = torch.nn.utils.rnn.pad_sequence(notes, batch_first=True, padding_value=-1)[self.asked]
        is_right, is_doubtful = ((self.candidates[:, :, None] == table[:, None]).any(2) for table in (right, doubtful))
        self.wanted = torch.where(is_doubtful | (self.candidates < 0), -1, is_right.long())
        """Of each question all notes of its vault (-1: none), and whether they answer: 1, 0, or -1 for doubtful."""
        self.lessons: Tensor | None = None

    def learn_from(self, guide: Reader) -> None:
        """Add the nearest notes of other vaults, of which nobody wrote down what they answer, and the guide's odds."""
        table = _static_table()
        vectors, asked = _static_vectors(self.passages, *table), _static_vectors(self.questions, *table)
        others = [
            (asked[part] @ vectors.T).masked_fill(self.vaults == self.asked[part, None], NOTHING).topk(OTHERS).indices
            for part in torch.arange(len(asked), device=DEVICE).split(1_000)
        ]
        self.candidates = torch.cat([self.candidates, torch.cat(others)], dim=1)
        self.wanted = functional.pad(self.wanted, (0, OTHERS), value=-1)
        numbers = torch.arange(len(asked), device=DEVICE)
        with torch.no_grad():
            lessons = [self.scores(guide, part, self.candidates[part]).sigmoid() for part in numbers.split(48)]
        self.lessons = torch.cat(lessons)

    def loss(self, model: Reader, run: Run) -> Tensor:
        """How wrong the odds of each note are, summed over the notes of a vault."""
        questions = torch.randperm(len(self.asked), device=DEVICE)[: run.asked]
        candidates, wanted = self.candidates[questions], self.wanted[questions]
        scores = self.scores(model, questions, candidates)
        known = wanted >= 0
        found = functional.binary_cross_entropy_with_logits(scores[known], wanted[known].float(), reduction="sum")
        if self.lessons is not None:
            odds, real = self.lessons[questions], candidates >= 0
            weights = torch.full_like(odds, run.guided)
            weights[:, -OTHERS:] = run.others
            taught = functional.binary_cross_entropy_with_logits(scores, odds, weights, reduction="none")
            found = found + taught[real].sum()
        return found / run.asked

    def scores(self, model: Reader, questions: Tensor, candidates: Tensor) -> Tensor:
        unknown = torch.zeros(len(questions), dtype=torch.bool, device=DEVICE)
        return score(model, self, Batch(questions, candidates, unknown, unknown.float()))[:, :-1]

    @torch.no_grad()
    def measure(self, model: Reader) -> dict[str, tuple[float, ...]]:
        """By kind of question: precision, recall and exactly right where notes answer; nothing given where none does.

        As an agent would be given them, if a search had found all notes of a vault.
        """
        found: dict[str, list[tuple[float, ...]]] = {}
        for questions in torch.arange(len(self.asked), device=DEVICE).split(96):
            candidates, wanted = self.candidates[questions], self.wanted[questions]
            scores = self.scores(model, questions, candidates)
            given = scores >= (scores.amax(1, keepdim=True) - NEAR).clamp(min=LEAST)
            right, wrong = (given & (wanted == 1)).sum(1), (given & (wanted == 0)).sum(1)
            rows = torch.stack([right, wrong, (wanted == 1).sum(1)], 1).tolist()
            for question, (hits, misses, answers) in zip(questions.tolist(), rows, strict=True):
                exact = hits == answers and not misses
                row = (hits / max(hits + misses, 1), hits / answers, exact) if answers else (exact,)
                kind = self.kinds[question]
                for name in ("all", kind) if kind != "turn" else (kind,):
                    found.setdefault(name if answers else f"{name}, nothing", []).append(row)
        return {
            name: tuple(round(sum(column) / len(rows), 3) for column in zip(*rows, strict=False))
            for name, rows in found.items()
        }


def score(model: Reader, data: Library | SmallVaults, batch: Batch) -> Tensor:
    """The scores of the candidates, and last the 0 of nothing."""
    real = batch.candidates >= 0
    pairs = make_pairs(data, batch.questions, batch.candidates.clamp(min=0), 128)  # type: ignore[arg-type]
    keep = real.reshape(-1)
    with half_precision():
        found = model(*(part[keep] for part in pairs))
    scores = torch.full(real.shape, NOTHING, device=DEVICE).masked_scatter(real, found.float())
    return functional.pad(scores, (0, 1))


def losses(run: Run, batch: Batch, scores: Tensor, wanted: Tensor) -> Tensor:
    right = torch.where(batch.answered, 0, scores.shape[1] - 1)
    label = functional.cross_entropy(scores, right, reduction="none")
    if not run.judged:  # the guide's level means nothing
        scores, wanted = scores[:, :-1], wanted[:, :-1]
    logs = functional.log_softmax(scores, 1), functional.log_softmax(wanted, 1)
    order = functional.kl_div(*logs, log_target=True, reduction="none").sum(1)
    return (batch.weights * (run.label * label + run.order * order)).mean()


@torch.no_grad()
def level(model: Reader, vaults: Vaults) -> float:
    """The score that tells best whether a question is answered, before any training."""
    scores, answered = [], []
    for _ in range(LEVEL_BATCHES):
        batch = vaults.draw()
        scores.append(score(model, vaults.data, batch)[:, :-1])
        answered.append(batch.answered)
    everything, right = torch.cat(scores), torch.cat(answered)
    shifts = torch.linspace(-12, 12, 97, device=DEVICE)
    wanted = torch.where(right, 0, everything.shape[1])
    found = [functional.cross_entropy(functional.pad(everything - shift, (0, 1)), wanted) for shift in shifts]
    return float(shifts[torch.stack(found).argmin()])


def train(run: Run, data: Library, small: SmallVaults | None, start: dict[str, Tensor], guide: Reader) -> Reader:
    torch.manual_seed(run.seed)
    model, vaults = Reader(start, run.dropout).to(DEVICE).eval(), Vaults(data, run)
    if not run.judged:
        with torch.no_grad():
            model.h2.bias -= level(model, vaults)
    for name, value in model.named_parameters():
        value.requires_grad_(name not in FROZEN)
    learned = [value for value in model.parameters() if value.requires_grad]
    optimizer = torch.optim.AdamW(learned, lr=run.rate, betas=(0.9, 0.98), weight_decay=0.01, fused=DEVICE == "cuda")
    if small and run.guided:
        small.learn_from(guide)
    started, smooth = time.time(), 0.0
    model.train()
    for step in range(run.steps):
        done = max(step / run.steps, (time.time() - started) / run.seconds)
        if done >= 1:
            break
        rate = run.rate * min(1.0, (step + 1) / (WARM_UP * run.steps)) * max(0.02, (1 + math.cos(math.pi * done)) / 2)
        for group in optimizer.param_groups:
            group["lr"] = rate
        batch = vaults.draw()
        with torch.no_grad():
            wanted = score(guide, data, batch)
        loss = losses(run, batch, score(model, data, batch), wanted)
        if small:
            loss = loss + small.loss(model, run)
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(learned, 1.0)
        optimizer.step()
        if step % 20 == 0:
            smooth = loss.item() if not step else 0.8 * smooth + 0.2 * loss.item()
            if step % 400 == 0:
                print(f"{run.name} {step} {time.time() - started:.0f} s, loss {smooth:.3f}", flush=True)
    print(f"{run.name}: {time.time() - started:.0f} s, bias {model.h2.bias.item():.2f}, loss {smooth:.3f}", flush=True)
    return model.eval()


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(prog="benchmarks.reader.judge", description=__doc__.partition("\n")[0])
    parser.add_argument("config", type=Path, help="a JSON file with a list of runs")
    parser.add_argument("work", type=Path, help="the folder with train.npz.xz, and the model files that runs name")
    options = parser.parse_args(arguments)
    torch.set_float32_matmul_precision("high")
    data = Library(options.work)
    print(f"{len(data.questions):,} questions, {len(data.passages):,} passages", flush=True)
    kept = SmallVaults(options.work / "kept.npz.xz") if (options.work / "kept.npz.xz").exists() else None
    for run in (Run(**settings) for settings in json.loads(options.config.read_text("utf-8"))):
        print(json.dumps(asdict(run)), flush=True)
        small = SmallVaults(options.work / f"{run.small}.npz.xz") if run.small else None
        guide = Reader(read_state(options.work / f"{run.guide}.bin")).to(DEVICE).eval()
        model = train(run, data, small, read_state(options.work / f"{run.start}.bin"), guide)
        arrays = {name: value.float().cpu().numpy() for name, value in model.state_dict().items()}
        print(write_model(options.work / f"{run.name}.bin", arrays, packed=True), flush=True)
        if kept:
            print(json.dumps({"run": run.name, **kept.measure(model)}), flush=True)


if __name__ == "__main__":
    main()
