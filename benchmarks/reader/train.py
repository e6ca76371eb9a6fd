"""Train readers: a list of runs in a JSON file into weights (WORK/NAME.pt) and one line of figures for each run.

Run `python -m benchmarks.reader.train CONFIG WORK --results FILE`. Each question is scored with one answer and
`negatives` passages that are none. The loss is the softmax over them, plus the distance to the cosines of the model
that mined them, plus the distance to the scores of a larger reader that teaches. A teacher that is too slow to read
every pair gives lessons once, before the training; a guide has the same width, reads along, and shows the states of its
layers, too. A run ends after `steps` or `seconds`,
whichever comes first; the learning rate follows that.
"""

from __future__ import annotations

import argparse
import json
import math
import random
import time
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import torch
from torch import Tensor
from torch.nn import functional

from benchmarks.reader.measure import Window, measure, read_lists
from benchmarks.reader.mining import BY_COSINE, BY_WORDS, Questions
from benchmarks.reader.model import DEVICE, Reader, half_precision, join, pick_layers, read_state

SORTED_BATCHES = 40
"""Batches whose questions are sorted by length together, so that little of a batch is padding."""
WIDTH_STEP = 32
WARM_UP = 0.06
LESSON = 12
"""Candidates of each question that a teacher scores."""
COSINE_TEMPERATURE = 0.05
KIND_WEIGHTS = (0.0, -0.4, 0.7)
"""How much likelier negatives by cosine, by words and given ones are drawn, as logarithms."""


@dataclass(frozen=True, slots=True)
class Run:
    """The settings of one training run."""

    name: str
    layers: tuple[int, ...] = (0, 1, 2, 3, 4, 5)
    start: str = "start"  # an earlier run or a model file whose layers to take; `start` is MiniLM
    teacher: str = ""  # an earlier run to learn from
    guide: str = ""  # an earlier run to learn from at every step, with the states of the layers that `layers` names
    states: float = 1.0  # weight of the distance to these states
    distill: float = 0.8  # share of the teacher or the guide in the loss
    filtered: bool = True  # leave out written questions that do not find their passage again
    cosine: float = 0.8  # weight of the distance to the cosines
    cosine_of_speech: bool = True  # also for short turns and notes
    written: bool = True
    notes: int = 4  # how often each question about our own notes is asked in an epoch; 0: never
    negatives: int = 11
    tokens: int = 128
    batch: int = 96
    rate: float = 1.5e-4
    dropout: float = 0.05
    steps: int = 3_000
    seconds: float = math.inf
    seed: int = 1
    windows: tuple[tuple[int, int], ...] = ((128, 2),)  # how to measure
    compiled: bool = DEVICE == "cuda"


def draw_batches(data: Questions, run: Run) -> Iterator[Tensor]:
    """Batches of question numbers without end: every question that is kept once an epoch, ours more often."""
    keep = (data.keep | ~torch.tensor(run.filtered, device=DEVICE)) & ~data.own & (~data.written | run.written)
    numbers = torch.cat([torch.nonzero(keep)[:, 0], torch.nonzero(data.own)[:, 0].repeat(run.notes)])
    lengths = data.questions.lengths + data.passages.lengths[data.positives[:, 0]]
    chance = random.Random(run.seed)
    while True:
        numbers = numbers[torch.randperm(len(numbers), device=DEVICE)]
        batches: list[Tensor] = []
        for group in numbers.split(run.batch * SORTED_BATCHES):
            group = group[torch.argsort(lengths[group])]
            batches += [batch for batch in group.split(run.batch) if len(batch) == min(run.batch, len(numbers))]
        chance.shuffle(batches)
        yield from batches


def draw_candidates(data: Questions, batch: Tensor, negatives: int) -> Tensor:
    """One answer first, then negatives of all kinds, the last one random. Too few are filled up with random ones."""
    positives = data.positives[batch]
    place = (torch.rand(len(batch), device=DEVICE) * (positives >= 0).sum(1)).long()
    found = data.negatives[batch]
    counts = (BY_COSINE, BY_WORDS, found.shape[1] - BY_COSINE - BY_WORDS)
    kinds = torch.tensor(KIND_WEIGHTS).repeat_interleave(torch.tensor(counts)).to(DEVICE)
    noise = -torch.log(-torch.log(torch.rand(found.shape, device=DEVICE).clamp(1e-6, 1 - 1e-6)))
    likely = (kinds + noise).masked_fill(found < 0, -1e9)
    drawn = found.gather(1, likely.topk(negatives - 1, dim=1).indices)
    drawn = functional.pad(drawn, (0, 1), value=-1)
    drawn = torch.where(drawn < 0, torch.randint(len(data.passages), drawn.shape, device=DEVICE), drawn)
    return torch.cat([positives.gather(1, place[:, None]), drawn], dim=1)


class Lessons:
    """What a teacher says: candidates that are drawn once for every question that is kept, and their scores."""

    def __init__(self, data: Questions, teacher: Reader) -> None:
        count = len(data.keep)
        self.candidates = torch.full((count, LESSON), -1, device=DEVICE)
        self.scores = torch.zeros(count, LESSON, dtype=torch.float16, device=DEVICE)
        numbers = torch.nonzero(data.keep)[:, 0]
        lengths = data.questions.lengths + data.passages.lengths[data.positives[:, 0]]
        for batch in numbers[torch.argsort(lengths[numbers])].split(128):
            candidates = draw_candidates(data, batch, LESSON - 1)
            with torch.no_grad(), half_precision():
                self.scores[batch] = teacher(*make_pairs(data, batch, candidates, 128)).view(candidates.shape).half()
            self.candidates[batch] = candidates

    def draw(self, batch: Tensor, negatives: int) -> tuple[Tensor, Tensor]:
        """The answer first and some of the other candidates, with the teacher's scores."""
        chance = torch.rand(len(batch), LESSON, device=DEVICE)
        chance[:, 0] = 2
        places = chance.topk(negatives + 1, dim=1).indices
        return self.candidates[batch].gather(1, places), self.scores[batch].gather(1, places).float()


def make_pairs(data: Questions, batch: Tensor, candidates: Tensor, most: int) -> tuple[Tensor, Tensor, Tensor]:
    """Tokens, types and mask of each question with each of its candidates, no wider than needed."""
    longest = int((data.questions.lengths[batch][:, None] + data.passages.lengths[candidates]).max()) + 3
    asked = batch[:, None].expand_as(candidates).reshape(-1)
    width = min(most, -(-longest // WIDTH_STEP) * WIDTH_STEP)
    return join((data.questions, asked), (data.passages, candidates.reshape(-1)), width)


def distance(scores: Tensor, wanted: Tensor) -> Tensor:
    """KL divergence from the wanted distribution over the candidates, for each question."""
    logs = functional.log_softmax(scores, 1), functional.log_softmax(wanted, 1)
    return functional.kl_div(*logs, log_target=True, reduction="none").sum(1)


def state_distance(states: Sequence[Tensor], wanted: Sequence[Tensor], mask: Tensor) -> Tensor:
    """Mean square of the difference, over all layers and all places that have a token."""
    squares = [(one.float() - other.float()).square().mean(2) for one, other in zip(states, wanted, strict=True)]
    return (torch.stack(squares) * mask).sum() / (len(squares) * mask.sum())


def train(
    run: Run, data: Questions, start: dict[str, Tensor], lessons: Lessons | None, guide: Reader | None = None
) -> tuple[Reader, dict[str, float]]:
    torch.manual_seed(run.seed)
    model = Reader(pick_layers(start, run.layers), run.dropout).to(DEVICE).train()
    if run.compiled:
        model.compile_layers()
    matrices = [value for name, value in model.named_parameters() if value.ndim > 1 and name[0] not in "wpt"]
    others = [value for name, value in model.named_parameters() if value.ndim == 1 or name[0] in "wpt"]
    groups = [{"params": matrices, "weight_decay": 0.01}, {"params": others, "weight_decay": 0.0}]
    optimizer = torch.optim.AdamW(groups, lr=run.rate, betas=(0.9, 0.98), fused=DEVICE == "cuda")
    step, right, started = 0, torch.zeros((), device=DEVICE), time.time()
    for step, batch in enumerate(draw_batches(data, run)):
        done = max(step / run.steps, (time.time() - started) / run.seconds)
        if done >= 1:
            break
        rate = run.rate * min(1.0, (step + 1) / (WARM_UP * run.steps)) * max(0.02, (1 + math.cos(math.pi * done)) / 2)
        for group in optimizer.param_groups:
            group["lr"] = rate
        if lessons:
            candidates, wanted = lessons.draw(batch, run.negatives)
        else:
            candidates, wanted = draw_candidates(data, batch, run.negatives), None
        pairs = make_pairs(data, batch, candidates, run.tokens)
        with half_precision():
            states = model.states(*pairs)
            scores = model.score(states[-1], pairs[-1]).view(candidates.shape)
        if guide:
            with torch.no_grad(), half_precision():
                shown = guide.states(*pairs)
                wanted = guide.score(shown[-1], pairs[-1]).view(candidates.shape)
        loss = functional.cross_entropy(scores, torch.zeros(len(batch), dtype=torch.long, device=DEVICE))
        if wanted is not None:
            loss = (1 - run.distill) * loss + run.distill * distance(scores, wanted).mean()
        if guide and run.states:
            loss = loss + run.states * state_distance(states, [shown[layer] for layer in run.layers], pairs[-1])
        if run.cosine:
            vectors = data.question_vectors[batch].float(), data.vectors[candidates].float()
            cosines = torch.einsum("qd,qcd->qc", *vectors) / COSINE_TEMPERATURE
            taught = ~data.spoken[batch] | run.cosine_of_speech
            loss = loss + run.cosine * (distance(scores, cosines) * taught).mean()
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        right = 0.99 * right + 0.01 * (scores.argmax(1) == 0).float().mean()
        if step % 200 == 0:
            print(f"{run.name} {step} {time.time() - started:.0f} s, first {float(right):.3f}", flush=True)
    figures = {"steps": step, "train_seconds": round(time.time() - started, 1), "first": round(float(right), 3)}
    return Reader(model.state_dict()).to(DEVICE).eval(), figures


def train_all(runs: Sequence[Run], work: Path, results: Path) -> None:
    torch.set_float32_matmul_precision("high")
    started = time.time()
    data, sets = Questions(work), read_lists(work)
    kept = {name: int((data.keep & mask).sum()) for name, mask in (("written", data.written), ("own", data.own))}
    print(
        f"{len(data.keep):,} questions, {int(data.keep.sum()):,} kept, {kept}, {time.time() - started:.0f} s",
        flush=True,
    )
    lessons: dict[str, Lessons] = {}
    for run in runs:
        if run.teacher and run.teacher not in lessons:
            lessons[run.teacher] = _lessons(work, run.teacher, data)
        guide = _compiled(Reader(_state(work, run.guide))) if run.guide else None
        model, figures = train(run, data, _state(work, run.start), lessons.get(run.teacher), guide)
        torch.save(model.state_dict(), work / f"{run.name}.pt")
        for window in run.windows:
            measured = measure(model, sets, Window(*window))
            line = json.dumps(
                {"run": run.name, **figures, **measured, "settings": asdict(run) | {"seconds": str(run.seconds)}}
            )
            with results.open("a", encoding="utf-8") as file:
                file.write(line + "\n")
            print(line[: line.index('"settings"')], flush=True)


def _state(work: Path, name: str) -> dict[str, Tensor]:
    if (work / f"{name}.bin").exists():
        return read_state(work / f"{name}.bin")
    return torch.load(work / f"{name}.pt", map_location="cpu", weights_only=True)


def _compiled(model: Reader) -> Reader:
    model = model.to(DEVICE).eval()
    if DEVICE == "cuda":
        model.compile_layers()
    return model


def _lessons(work: Path, name: str, data: Questions) -> Lessons:
    """From a file of an earlier run on this machine, if there is one."""
    file, started = work / f"{name}.lessons.pt", time.time()
    if file.exists():
        lessons = Lessons.__new__(Lessons)
        lessons.candidates, lessons.scores = torch.load(file, map_location=DEVICE, weights_only=True)
        return lessons
    lessons = Lessons(data, _compiled(Reader(_state(work, name))))
    torch.save((lessons.candidates, lessons.scores), file)
    print(f"lessons of {name}: {time.time() - started:.0f} s", flush=True)
    return lessons


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(prog="benchmarks.reader.train", description=__doc__.partition("\n")[0])
    parser.add_argument("config", help="a JSON file with a list of runs, or the list itself")
    parser.add_argument("work", type=Path, help="the folder that `prepare` wrote")
    parser.add_argument("--results", type=Path, help="lines of figures are added here (default WORK/results.jsonl)")
    options = parser.parse_args(arguments)
    text = options.config if options.config.startswith("[") else Path(options.config).read_text("utf-8")
    runs = [Run(**{"windows": ((128, 2),), **settings}) for settings in json.loads(text)]
    train_all(runs, options.work, options.results or options.work / "results.jsonl")


if __name__ == "__main__":
    main()
