"""Passages that look like the answer and are not, for every training question; and which questions are worth keeping.

Candidates are the nearest passages by cosine (of MPNet, or of MiniLM without it) and by bm25, both exact over all
passages. A written question is kept if it finds its own passage again (the round trip).
"""

from __future__ import annotations

from pathlib import Path

import torch
from torch import Tensor

from benchmarks.reader.model import DEVICE, Reader, Store, embed, read_state
from benchmarks.reader.packed import Texts, load

BY_COSINE, BY_WORDS = 24, 16
"""Negatives kept of each kind."""
LOOKED_AT = 64
MARGIN, WEAK_MARGIN = 0.06, 0.0
"""A passage may be nearer to the question than the answer by this much; nearer still, it may be an answer too."""
SAME_TEXT = 0.94
"""Passages that are this near to the answer say the same."""
LOST = 2_000
K1, B = 1.2, 0.75
COMMON = 0.2
"""Tokens that more than this share of the passages have do not count."""
BATCH = 256
SPOKEN = ("sgd", "qmsum", "molweni", "dstc9", "taskmaster", "memories", "notes")
"""Short turns and memories."""
SEQUENCES = ("sgd", "qmsum", "molweni", "taskmaster", "fm2")
"""Sources whose groups are one conversation or page: another passage of it is a good negative."""


class Questions:
    """The training questions on the device: answers, negatives of three kinds, and which are kept."""

    def __init__(self, work: Path) -> None:
        arrays = load(work / "train.npz.xz")
        self.passages = Store(Texts(arrays["passages.tokens"], arrays["passages.ends"]))
        self.questions = Store(Texts(arrays["questions.tokens"], arrays["questions.ends"]))
        self.positives, self.given, self.groups, sources = (
            torch.from_numpy(arrays[name].astype("int64")).to(DEVICE)
            for name in ("positives", "negatives", "groups", "sources")
        )
        self.weak = torch.from_numpy(arrays["weak"]).to(DEVICE)
        names = [str(name) for name in arrays["source_names"]]
        plain = [name.removeprefix("written:") for name in names]
        self.own, self.written, self.spoken, sequences = (
            torch.tensor(mask, device=DEVICE)[sources]
            for mask in (
                [name == "notes" for name in names],
                [name.startswith("written:") for name in names],
                [name in SPOKEN for name in plain],
                [name in SEQUENCES for name in plain],
            )
        )
        bare = sequences & (self.given < 0).all(1)
        self.given = torch.where(bare[:, None], self._neighbours(), self.given)
        self._mine(work)
        self.negatives = torch.cat([self.by_cosine, self.by_words, self.given], dim=1)

    def _neighbours(self) -> Tensor:
        """For each question some other passages of the answer's group, drawn at random; -1 where there are none."""
        torch.manual_seed(1)
        order = torch.argsort(self.groups)
        group = self.groups[self.positives[:, :1]]
        first, last = (torch.searchsorted(self.groups[order], group, right=right) for right in (False, True))
        drawn = order[first + (torch.rand(self.given.shape, device=DEVICE) * (last - first)).long()]
        return torch.where((drawn == self.positives[:, :1]) | (group < 0), -1, drawn)

    def _mine(self, work: Path) -> None:
        """From a file of an earlier run on this machine, if there is one."""
        file, names = work / "mined.pt", ("vectors", "question_vectors", "by_cosine", "by_words", "keep")
        if file.exists():
            found = torch.load(file, map_location=DEVICE, weights_only=True)
        else:
            model = "mpnet.bin" if (work / "mpnet.bin").exists() else "start.bin"
            embedder = Reader(read_state(work / model)).to(DEVICE).eval()
            vectors, asked = embed(embedder, self.passages), embed(embedder, self.questions)
            found = dict(zip(names, (vectors, asked, *mine(self, vectors, asked)), strict=True))
            torch.save(found, file)
        self.vectors, self.question_vectors, self.by_cosine, self.by_words, self.keep = (found[name] for name in names)


@torch.inference_mode()
def mine(data: Questions, vectors: Tensor, asked: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Negatives by cosine and by words for each question (-1: none), and whether the question is kept."""
    count, pool = len(asked), len(vectors)
    by_cosine = torch.full((count, BY_COSINE), -1, device=DEVICE)
    by_words = torch.full((count, BY_WORDS), -1, device=DEVICE)
    ranks = torch.zeros(2, count, dtype=torch.long, device=DEVICE)
    index = word_index(data.passages, int(data.passages.tokens.max()) + 1)
    vectors = vectors if DEVICE == "cuda" else vectors.float()
    margins = torch.where(data.weak, WEAK_MARGIN, MARGIN).masked_fill(data.own, 2.0)  # ours were chosen by hand
    for start in range(0, count, BATCH):
        part = torch.arange(start, min(start + BATCH, count), device=DEVICE)
        positives, main = data.positives[part], data.positives[part, :1]
        cosines = (asked[part].to(vectors.dtype) @ vectors.T).float()
        words = word_scores(index, data.questions, part)
        ranks[0, part] = (cosines > cosines.gather(1, main)).sum(1)
        ranks[1, part] = (words > words.gather(1, main)).sum(1)
        nearest = cosines.gather(1, positives.clamp(min=0)).masked_fill(positives < 0, -1).max(1).values
        groups = torch.where(positives >= 0, data.groups[positives.clamp(min=0)], -2)
        excluded = torch.cat([positives, data.given[part]], dim=1)
        for table, scores in ((by_cosine, cosines), (by_words, words)):
            found = scores.topk(min(LOOKED_AT, pool), dim=1).indices
            bad = (found[:, :, None] == excluded[:, None]).any(2)
            bad |= ((data.groups[found][:, :, None] == groups[:, None]) & (data.groups[found] >= 0)[:, :, None]).any(2)
            bad |= cosines.gather(1, found) > (nearest + margins[part])[:, None]
            bad |= torch.einsum("qcd,qd->qc", vectors[found].float(), vectors[main[:, 0]].float()) > SAME_TEXT
            first = torch.argsort(bad.long(), dim=1, stable=True)[:, : table.shape[1]]
            kept = torch.where(bad.gather(1, first), -1, found.gather(1, first))
            table[part, : kept.shape[1]] = kept
            excluded = torch.cat([excluded, kept], dim=1)
    return by_cosine, by_words, _kept(data, *ranks)


def _kept(data: Questions, cosine_rank: Tensor, word_rank: Tensor) -> Tensor:
    lengths = data.questions.lengths
    found_again = (cosine_rank <= 3) | ((word_rank <= 2) & (cosine_rank < 30))
    lost = data.weak & (cosine_rank > LOST) & (word_rank > LOST)
    written = found_again & (lengths >= 2) & (lengths <= 40)
    return torch.where(data.written, written, ~lost) | data.own


def word_index(store: Store, vocabulary: int) -> Tensor:
    """bm25's weight of each token in each passage, as a sparse matrix."""
    count = len(store)
    owners = torch.repeat_interleave(torch.arange(count, device=DEVICE), store.lengths)
    keys, times = torch.unique(owners * vocabulary + store.tokens.long(), return_counts=True)
    passages, tokens = keys // vocabulary, keys % vocabulary
    frequency = torch.bincount(tokens, minlength=vocabulary).float()
    rarity = torch.log(1 + (count - frequency + 0.5) / (frequency + 0.5)).masked_fill(frequency > COMMON * count, 0)
    length = store.lengths.float() / store.lengths.float().mean()
    weights = rarity[tokens] * times * (K1 + 1) / (times + K1 * (1 - B + B * length[passages]))
    ends = torch.bincount(passages, minlength=count).cumsum(0)
    return torch.sparse_csr_tensor(torch.cat([ends.new_zeros(1), ends]), tokens, weights, (count, vocabulary))


def word_scores(index: Tensor, questions: Store, part: Tensor) -> Tensor:
    rows, lengths = questions.rows(part, int(questions.lengths[part].max()))
    real = torch.arange(rows.shape[1], device=DEVICE) < lengths[:, None]
    wanted = torch.zeros(index.shape[1], len(part), device=DEVICE)
    columns = torch.arange(len(part), device=DEVICE)[:, None].expand_as(rows)
    wanted[rows[real].clamp(max=index.shape[1] - 1), columns[real]] = 1
    return torch.sparse.mm(index, wanted).T
