"""Rewrite the draft of an article with the configured model, when somebody asks for it. Nothing is saved here."""

from __future__ import annotations

from co_cli.agent.facet_model import FacetModel
from co_cli.agent.models import NO_MODEL, UnusableModelError, load_model
from co_cli.tools.fencing import GUIDE, fence_note

REWRITING = (
    "The draft of an article has the texts of short notes under headings. Rewrite it so that it reads as one article. "
    "Keep every fact, name, number and date, and the reason for each decision, and add nothing. Say once what several "
    "notes say. If two contradict each other, keep both with their dates. Keep the headings, and the sources in "
    f"parentheses, with their dates, after what they are the source of. Answer with the Markdown text alone. {GUIDE}"
)


def rewrite(model: str | None, title: str, draft: str) -> str:
    """The text as the model writes it. Raises UnusableModelError if there is no model, or if it does not answer."""
    if model is None:
        raise UnusableModelError(NO_MODEL)
    reply = FacetModel(load_model(model)).ask(fence_note("draft", title, "memory", draft), str, REWRITING)
    return str(reply.value).strip()
