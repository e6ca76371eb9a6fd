"""Ask a knowledge base every question of a set and score the answers, through the same door that everybody uses."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Sequence

from co_cli.evaluation.scoring import Scores, mean_scores, score_ranking
from co_cli.evaluation.sets import Document, Question, read_documents, read_public_questions
from co_cli.knowledge_base import KnowledgeBase
from co_cli.notes.editing import render_note
from co_cli.notes.refs import FOLDERS, without_lines
from co_cli.service.saving import title_from
from co_cli.settings import Settings
from co_cli.sources.passages import LONGEST

Progress = Callable[[int, int], None]


def evaluate(
    kb: KnowledgeBase, questions: Sequence[Question], backend: str | None, progress: Progress | None = None
) -> dict[str, Scores]:
    """Scores by kind of question, and over `all`."""
    rows: dict[str, list[tuple[float, float, float, float]]] = {"all": []}
    for number, question in enumerate(questions):
        found = kb.search(question.text, limit=10, backend=backend)
        ranked = [without_lines(hit.ref) for hit in found.hits]
        ndcg, _, _, mrr = score_ranking(ranked, question.answers)
        # one right note is enough, so recall asks whether there is one
        in_five, in_ten = (float(any(ref in question.answers for ref in ranked[:depth])) for depth in (5, 10))
        row = (ndcg, in_five, in_ten, mrr)
        rows["all"].append(row)
        if question.kind:
            rows.setdefault(question.kind, []).append(row)
        if progress:
            progress(number + 1, len(questions))
    return {kind: mean_scores(scored) for kind, scored in rows.items()}


def evaluate_public(
    folder: str, work: str, settings: Settings, backend: str | None, progress: Progress | None = None
) -> Scores:
    """Write a public set as vaults of notes under `work`, one for each group, and ask its questions there."""
    questions = read_public_questions(folder)
    bases: dict[str, KnowledgeBase] = {}
    names: dict[tuple[str, str], Document] = {}
    by_group: dict[str, list[Document]] = {}
    for document in read_documents(folder):
        by_group.setdefault(document.group, []).append(document)
    for place, (group, documents) in enumerate(by_group.items()):
        vault = os.path.join(work, f"vault-{place}")
        for number, document in enumerate(documents):
            names[group, _write(vault, number, document)] = document
        bases[group] = KnowledgeBase.open(
            # a search.db of its own: how rare a word is must not depend on the other groups
            settings=settings._replace(vault=vault, data_dir=f"{vault}-data", exclude=())
        )
        bases[group].sync(progress)
    rows: list[tuple[float, float, float, float]] = []
    for number, question in enumerate(questions):
        depth = 10 if question.before is None else 200
        found = bases[question.group].search(question.text, limit=depth, backend=backend)
        documents = [names[question.group, without_lines(hit.ref)] for hit in found.hits]
        if question.before is not None:
            documents = [document for document in documents if document.seq < question.before]
        rows.append(score_ranking([document.id for document in documents], question.answers))
        if progress:
            progress(number + 1, len(questions))
    for base in bases.values():
        base.close()
    return mean_scores(rows)


def _write(vault: str, number: int, document: Document) -> str:
    """As a person would keep it: a short text as a memory, a long one as an article. Returns its ref."""
    source = "memory" if len(document.text) <= LONGEST else "article"
    folder = os.path.join(vault, FOLDERS[source])
    os.makedirs(folder, exist_ok=True)
    body = re.sub(r"^---", "\\---", document.text)
    title = document.title or (title_from(body) if body.strip() else "untitled")
    with open(os.path.join(folder, f"{number}.md"), "w", encoding="utf-8") as stream:
        stream.write(render_note({"title": title}, body))
    return f"{source}:{number}"
