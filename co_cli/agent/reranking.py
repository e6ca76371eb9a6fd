"""A language model as the last step of a search: it reads the first candidates and says which answer best.

kb.search("who decides what ships", reranker=ModelReranker("ollama:qwen3"))
"""

from __future__ import annotations

from collections.abc import Sequence

from pydantic_ai import Agent
from pydantic_ai.models import Model

from co_cli.ground.event_loop import run_async
from co_cli.tools.fencing import GUIDE, clean, fence_note

LONGEST_TEXT = 1_500
"""Characters of each candidate that the model reads."""
INSTRUCTIONS = (
    "You order search results. Answer with the numbers of the notes that help to answer the query, the most helpful "
    f"first, each once, and leave out those that do not help. {GUIDE}"
)


class ModelReranker:
    """A reranker over any model of pydantic-ai. A wrong answer is an error, and the search keeps its own order."""

    def __init__(self, model: Model | str) -> None:
        self._agent: Agent[None, list[int]] = Agent(model, output_type=list[int], instructions=INSTRUCTIONS)

    def __call__(self, query: str, texts: Sequence[str], /) -> list[float]:
        notes = [fence_note(str(number), "", "", text[:LONGEST_TEXT]) for number, text in enumerate(texts, 1)]
        prompt = "\n".join([*notes, f"Query: {clean(query)}"])
        order = run_async(self._agent.run(prompt)).output
        if not order or len(set(order)) != len(order) or not set(order) <= set(range(1, len(texts) + 1)):
            raise ValueError(f"the model's order is not one of the notes 1 to {len(texts)}: {order[:10]}")
        scores = [0.0] * len(texts)  # those that were left out stay behind, in their own order
        for place, number in enumerate(order):
            scores[number - 1] = float(len(texts) - place)
        return scores
