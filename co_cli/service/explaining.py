"""Why a note is where it is in an answer: the search is run once more, and the note followed through its trace."""

from __future__ import annotations

from co_cli.index.tokens import tokens
from co_cli.knowledge_index import KnowledgeIndex
from co_cli.retrieval.explain import Explanation, Step, Subject, explain
from co_cli.retrieval.pipeline import SearchRequest, Trace
from co_cli.values import Filters


def explain_note(index: KnowledgeIndex, request: SearchRequest, ref: str, title: str) -> Explanation:
    _, trace = index.find(request)
    subject = _subject(index, trace, ref, title)
    if subject is None:
        text = "it is not indexed yet: `co index sync` updates the index from your files"
        step = Step("index", None, 0, text)
        return Explanation(request.query, ref, title, None, request.limit, None, {}, "index", [step], [text])
    return explain(trace, subject, request.query)


def _subject(index: KnowledgeIndex, trace: Trace, ref: str, title: str) -> Subject | None:
    with index.engine.reading() as reader:
        query, view = trace.attempt.query, index.view(reader, trace.attempt.filters)
        everywhere = index.view(reader, Filters())
        for vault in everywhere.scope.vaults:
            prefix = everywhere.prefixes.get(vault, "")
            if prefix and not ref.startswith(prefix):
                continue
            notes = [one.id for one in reader.find_notes(vault, "ref", [ref.removeprefix(prefix)])]
            ids = list(reader.passages(notes=notes))
            if not ids:
                continue
            note = notes[0]
            found = {term for terms in reader.terms_in(ids, query.words.terms).values() for term in terms}
            spelled = {word for word in query.spelled if set(tokens(word)) & found}
            near = reader.cosines(view.space, trace.vector, ids) if view.space and trace.vector else {}
            inside = any(one.id == note for one in reader.list_notes(view.scope))
            return Subject(note, ref, title, frozenset(spelled), max(near.values(), default=None), inside)
    return None
