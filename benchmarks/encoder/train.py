"""Train the encoder: texts to 256 numbers, as near to the teacher's as a model of six or three layers can bring them.

Run `python -m benchmarks.encoder.train CONFIG WORK`. First the teacher, all-mpnet-base-v2, is tuned with the questions
of the data: an answer shall be nearer than the other passages of a batch and than passages that look like it. Then the
encoder learns the teacher's vectors on their 256 main directions, and the order that they give to the passages of a
batch.
"""

from __future__ import annotations

import argparse
import json
import math
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import torch
from torch import Tensor, nn
from torch.nn import functional

from benchmarks.reader.export import GROUP
from benchmarks.reader.model import DEVICE, State, Store, Trunk, embed, half_precision, pick_layers, read_state, single
from benchmarks.reader.packed import Texts, load

DIMENSIONS = 256
TEMPERATURE = 0.05
WIDTH_STEP = 64
SLICE = 256
"""Texts of about the same length that the model gets together."""
NEAREST = range(4, 64)
"""Places among the teacher's nearest passages that hard negatives are drawn from; the first may be answers, too."""
TRUSTED = 0.95
"""A passage that is nearer to the question than this share of its answer's cosine may be an answer, too."""
WARM_UP = 200


@dataclass(frozen=True, slots=True)
class Run:
    """The settings of one training run."""

    name: str
    layers: tuple[int, ...] = ()  # of MiniLM; none: tune the teacher
    seconds: float = 300
    rate: float = 4e-4
    batch: int = 512
    own: float = 0.15  # share of questions about our own notes
    labels: float = 0.0  # weight of the answers that the data names
    dropout: float = 0.0
    teacher: str = "mpnet"
    start: str = "start"
    seed: int = 1


class Encoder(Trunk):
    """A trunk with a head of 256 numbers. Its word table is used as the model file will have it, in four bits."""

    def __init__(self, state: State) -> None:
        super().__init__(state, h=nn.Linear(state["w.weight"].shape[1], DIMENSIONS, bias=False))

    def words(self, tokens: Tensor) -> Tensor:
        groups = self.w(tokens).unflatten(-1, (-1, GROUP))
        scales = (groups.detach().abs().amax(-1, keepdim=True).clamp(min=1e-4) / 7).half().float()
        packed = (groups.detach() / scales).round().clamp(-7, 7) * scales
        return (groups + (packed - groups.detach())).flatten(-2)

    def vectors(self, tokens: Tensor, mask: Tensor) -> Tensor:
        return functional.normalize(functional.linear(self.means(tokens, mask), self.h.weight.float()), dim=1)


class Data:
    """Passages, questions and what answers them, on the device."""

    def __init__(self, work: Path) -> None:
        arrays = load(work / "texts.npz.xz")
        self.passages = Store(Texts(arrays["passages.tokens"], arrays["passages.ends"]))
        self.questions = Store(Texts(arrays["questions.tokens"], arrays["questions.ends"]))
        self.positives, self.given = (
            torch.from_numpy(arrays[name].astype("int64")).to(DEVICE) for name in ("positives", "negatives")
        )
        self.own = int(arrays["own"])
        self.nearest = torch.zeros(0)

    def mine(self, teacher: tuple[Tensor, Tensor]) -> None:
        """The teacher's nearest passages to every question."""
        questions, passages = teacher
        most = min(NEAREST.stop, len(passages))
        rows = [(part @ passages.T).topk(most, dim=1).indices[:, NEAREST.start :] for part in questions.split(1024)]
        self.nearest = torch.cat(rows).int()

    def draw(self, count: int, own: float) -> tuple[Tensor, Tensor, Tensor]:
        """Questions, an answer of each, and a passage that looks like one: half are those that the data names."""
        total, ours = len(self.questions), round(count * own)
        asked = torch.cat(
            [
                torch.randint(total - self.own, (count - ours,), device=DEVICE),
                torch.randint(total - self.own, total, (ours,), device=DEVICE),
            ]
        )
        right, wrong, near = pick(self.positives[asked]), pick(self.given[asked]), pick(self.nearest[asked].long())
        use = (wrong >= 0) & (torch.rand(count, device=DEVICE) < 0.5)
        return asked, right, torch.where(use, wrong, near)


def pick(rows: Tensor) -> Tensor:
    """One of each row's numbers that are not -1, which all stand first; -1 if there is none."""
    counts = (rows >= 0).sum(1)
    place = (torch.rand(len(rows), device=DEVICE) * counts).long()
    return rows.gather(1, place[:, None])[:, 0]


def vectors(model: Trunk, store: Store, numbers: Tensor) -> Tensor:
    """Vectors of some texts, in slices of texts of about the same length."""
    order = torch.argsort(store.lengths[numbers])
    parts: list[Tensor] = []
    for places in order.split(SLICE):
        longest = int(store.lengths[numbers[places[-1]]]) + 2
        with half_precision():
            parts.append(model.vectors(*single(store, numbers[places], -(-longest // WIDTH_STEP) * WIDTH_STEP)))
    return torch.cat(parts)[torch.argsort(order)]


def divergence(found: Tensor, wanted: Tensor) -> Tensor:
    logs = functional.log_softmax(found / TEMPERATURE, 1), functional.log_softmax(wanted / TEMPERATURE, 1)
    return functional.kl_div(*logs, log_target=True, reduction="batchmean")


def label_loss(found: Tensor, taught: Tensor) -> Tensor:
    """Softmax with the answers on the diagonal, without passages that may be answers, too."""
    answers = taught.diagonal()[:, None]
    doubtful = taught > TRUSTED * answers
    doubtful.fill_diagonal_(False)
    places = torch.arange(len(found), device=DEVICE)
    return functional.cross_entropy((found / TEMPERATURE).masked_fill(doubtful, -1e4), places)


def train(run: Run, data: Data, model: Trunk, wanted: tuple[Tensor, Tensor], target: Tensor | None) -> int:
    """Steps until the time is over. `wanted`: a teacher's vectors of questions and passages; `target`: directions."""
    torch.manual_seed(run.seed)
    model.dropout = run.dropout
    if DEVICE == "cuda":
        model.compile_layers()
    matrices = [value for name, value in model.named_parameters() if value.ndim > 1 and name[0] not in "wpt"]
    others = [value for name, value in model.named_parameters() if value.ndim == 1 or name[0] in "wpt"]
    groups = [{"params": matrices, "weight_decay": 0.01}, {"params": others, "weight_decay": 0.0}]
    optimizer = torch.optim.AdamW(groups, lr=run.rate, betas=(0.9, 0.98), fused=DEVICE == "cuda")
    started, step, done = time.time(), 0, 0.0
    model.train()
    while (done := (time.time() - started) / run.seconds) < 1:
        for group in optimizer.param_groups:
            group["lr"] = run.rate * min(1, (step + 1) / WARM_UP) * max(0.01, (1 + math.cos(math.pi * done)) / 2)
        asked, right, wrong = data.draw(run.batch, run.own)
        rest = torch.randint(len(data.passages), (run.batch,), device=DEVICE)
        numbers = torch.cat([right, wrong, rest])
        questions, passages = vectors(model, data.questions, asked), vectors(model, data.passages, numbers)
        taught_q, taught_p = wanted[0][asked].float(), wanted[1][numbers].float()
        scores, taught = questions @ passages.T, taught_q @ taught_p.T
        loss = divergence(scores, taught) + divergence(passages @ passages.T, taught_p @ taught_p.T)
        parts = [float(loss.detach())] if step % 200 == 0 else []
        if target is not None:
            for mine, theirs in ((questions, taught_q), (passages, taught_p)):
                loss = loss + 1 - (mine * functional.normalize(theirs @ target, dim=1)).sum(1).mean()
        if run.labels:
            loss = loss + run.labels * label_loss(scores, taught)
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        if parts:
            print(
                f"{run.name} {step} {time.time() - started:.0f} s, order {parts[0]:.3f}, all {loss.item():.3f}",
                flush=True,
            )
        step += 1
    model.eval()
    return step


def directions(teacher: tuple[Tensor, Tensor]) -> Tensor:
    """The 256 main directions of the teacher's vectors."""
    some = torch.cat([part[torch.randperm(len(part), device=DEVICE)[:150_000]] for part in teacher]).float()
    return torch.linalg.eigh(some.T @ some)[1][:, -DIMENSIONS:].flip(1)


Project = Callable[[Tensor], Tensor]
Sets = dict[str, tuple[Store, Store, Tensor]]


def measure(model: Trunk, sets: Sets, project: Project | None = None) -> dict[str, float]:
    """nDCG@10 and recall at 20 of every set by vectors alone, and two means: questions in other words, public sets."""
    figures: dict[str, float] = {}
    for name, (documents, questions, answers) in sets.items():
        texts, asked = embed(model, documents).float(), embed(model, questions).float()
        if project:
            texts, asked = project(texts), project(asked)
        found = (asked @ texts.T).topk(20, dim=1).indices
        hits = (found[:, :, None] == answers[:, None, :]).any(2).float()
        wanted = (answers >= 0).sum(1)
        gains = 1 / torch.log2(torch.arange(10, device=DEVICE) + 2.0)
        ideal = gains.cumsum(0)[wanted.clamp(1, 10) - 1]
        figures[name] = round(float(((hits[:, :10] * gains).sum(1) / ideal).mean()), 4)
        figures[f"{name}@20"] = round(float((hits.sum(1) / wanted.clamp(min=1)).mean()), 4)
    own = [value for name, value in figures.items() if "@" not in name and name in VAULTS]
    public = [value for name, value in figures.items() if "@" not in name and name not in VAULTS]
    return {"vaults": round(sum(own) / len(own), 4), "public": round(sum(public) / max(1, len(public)), 4)} | figures


VAULTS = ("lives", "knowledge", "short_notes")


def read_sets(work: Path) -> Sets:
    arrays = load(work / "sets.npz.xz")
    found: Sets = {}
    for name in dict.fromkeys(key.partition("/")[0] for key in arrays):
        documents, questions = (
            Store(Texts(arrays[f"{name}/{part}.tokens"], arrays[f"{name}/{part}.ends"]))
            for part in ("documents", "questions")
        )
        answers = torch.from_numpy(arrays[f"{name}/answers"].astype("int64")).to(DEVICE)
        if not name.startswith("xquad_") or name == "xquad_en":
            found[name] = documents, questions, answers
    return found


class Training:
    """The runs of a file, one after the other, with the teacher's vectors of the last one that asked for them."""

    def __init__(self, work: Path) -> None:
        torch.set_float32_matmul_precision("high")
        self.work, self.data, self.sets = work, Data(work), read_sets(work)
        self.taught: dict[str, tuple[Tensor, Tensor]] = {}

    def report(self, name: str, **figures: object) -> None:
        line = json.dumps({"run": name, **figures})
        with (self.work / "results.jsonl").open("a", encoding="utf-8") as file:
            file.write(line + "\n")
        print(line, flush=True)

    def lessons(self, name: str) -> tuple[Tensor, Tensor]:
        """The teacher's vectors of all questions and passages."""
        if name not in self.taught:
            started, model = time.time(), Trunk(self.state(name)).to(DEVICE).eval()
            lessons = embed(model, self.data.questions), embed(model, self.data.passages)
            target = directions(lessons)
            self.report(name, lesson_seconds=round(time.time() - started), **measure(model, self.sets))
            self.report(
                f"{name}-256", **measure(model, self.sets, lambda rows: functional.normalize(rows @ target, dim=1))
            )
            self.taught = {name: lessons}
            self.data.mine(lessons)
            print(f"mined: {time.time() - started:.0f} s", flush=True)
        return self.taught[name]

    def state(self, name: str) -> State:
        if (self.work / f"{name}.pt").exists():
            return {
                key: value.float() for key, value in torch.load(self.work / f"{name}.pt", weights_only=True).items()
            }
        return read_state(self.work / f"{name}.bin")

    def run(self, run: Run) -> None:
        lessons = self.lessons(run.teacher)
        if run.layers:
            model: Trunk = Encoder(pick_layers(self.state(run.start), run.layers)).to(DEVICE)
            steps = train(run, self.data, model, lessons, directions(lessons))
        else:
            model = Trunk(self.state(run.teacher)).to(DEVICE)
            steps = train(run, self.data, model, lessons, None)
        model = type(model)(model.state_dict()).to(DEVICE).eval()  # with nothing compiled for the widths of training
        torch.save(
            {name: value.half().cpu() for name, value in model.state_dict().items()}, self.work / f"{run.name}.pt"
        )
        self.report(run.name, steps=steps, **measure(model, self.sets))


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(prog="benchmarks.encoder.train", description=__doc__.partition("\n")[0])
    parser.add_argument("config", help="a JSON file with a list of runs, or the list itself")
    parser.add_argument("work", type=Path, help="the folder that `prepare` wrote")
    options = parser.parse_args(arguments)
    text = options.config if options.config.startswith("[") else Path(options.config).read_text("utf-8")
    training = Training(options.work)
    for settings in json.loads(text):
        training.run(Run(**settings))


if __name__ == "__main__":
    main()
