"""`co eval`: how well does search answer questions whose answers are known, and is that better than something plain?"""

from __future__ import annotations

import argparse
import contextlib
import os
import sys
import tempfile
import time
from collections.abc import Generator, Sequence
from typing import TYPE_CHECKING, NamedTuple

from co_cli.cli.eval_tables import show_comparisons, show_crossed, show_cuts, show_runs, show_year
from co_cli.cli.opening import open_knowledge_base, print_json
from co_cli.cli.terminal import ProgressBar, Screen
from co_cli.errors import InvalidInputError
from co_cli.evaluation.methods import Method, default_methods, method
from co_cli.evaluation.questions import read_questions, require_answers
from co_cli.evaluation.running import Run, require_vectors, run_set, run_vault, set_name
from co_cli.evaluation.saved_runs import MarksOf, is_saved, json_text, marks_of, ranking_text, read_marks, rows_of
from co_cli.evaluation.sets import require_set
from co_cli.knowledge_base import KnowledgeBase
from co_cli.retrieval.profiles import PROFILES
from co_cli.sample import sample_vault
from co_cli.service.asking import BACKENDS
from co_cli.settings import Settings, load_settings

if TYPE_CHECKING:
    from co_cli.cli.boundaries import ProposedCuts

EPILOG = """\
Without a SET it asks the questions of the sample vault. A SET becomes notes in
a temporary vault, is synced and searched as yours is, and is removed again.

methods:
  co           search as your settings have it
  co:NAME      one of its backends (grep, fts5, hybrid) or profiles (agent, ...)
  grep         notes by the share of the words they contain
  fts5-all     bm25 of what has all the words
  fts5-any     bm25 of what has any of the words
  vectors      cosine alone
  spec         all the words, 0.7 meaning and 0.3 words
  rrf          reciprocal rank fusion of fts5-any and vectors, k = 60
  simple       any word, bm25 and cosine normalised: the best simple hybrid

A line of --questions is a question, the notes that answer it, and any label:
  {"question": "who decides?", "answers": ["memory:slug"], "kind": "people"}
Your vault is only read.

examples:
  co eval
  co eval --questions my-questions.jsonl
  co eval sets/scifact sets/cosqa --method co --method fts5-any
  co eval sets/scifact --compare fts5-any co
  co eval sets/scifact --run scifact.tsv
  co eval sets/scifact --profile default --profile agent
  co eval sets/locomo_obs --absent
  co eval sets/* --held-out --sample 200
  co eval sets/* --held-out --family scifact,scifact_tune
  co eval --year
  co eval sets/docs --passages --cut co --cut fixed/2000 --cut parts
  co eval sets/* --json > before.json       and then, after a change:
  co eval sets/* --compare before.json co
"""


class Choice(NamedTuple):
    """What to run: methods, and the two to compare if that is wanted."""

    methods: list[Method]
    compared: tuple[str, str] | None


def add_eval(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("set", nargs="*", metavar="SET", help="folders in BEIR's layout (default: the sample vault)")
    parser.add_argument("--questions", metavar="FILE", help="JSON lines of question and answers, for your own vault")
    parser.add_argument("--method", action="append", metavar="NAME", help="ask only with this one (repeatable)")
    parser.add_argument(
        "--backend", choices=BACKENDS, action="append", metavar="NAME", help="the same as --method co:NAME"
    )
    parser.add_argument(
        "--profile", choices=tuple(PROFILES), action="append", metavar="NAME", help="the same as --method co:NAME"
    )
    parser.add_argument(
        "--year",
        action="store_true",
        help="a made-up year of notes that change and expire: is what holds now found, and what held then?",
    )
    parser.add_argument(
        "--compare",
        nargs=2,
        metavar=("A", "B"),
        help="is B better than A? methods, or files of --json (FILE.json:METHOD for another one than co)",
    )
    parser.add_argument(
        "--run", dest="ranking", metavar="FILE", help="write the first method's ranking: question, document, score"
    )
    parser.add_argument(
        "--absent", action="store_true", help="ask each group's questions of another group's vault: is that noticed?"
    )
    parser.add_argument(
        "--held-out",
        action="store_true",
        help="how good is the closer look on sets it has never seen? Its shares are learned on the other families",
    )
    parser.add_argument(
        "--family",
        action="append",
        metavar="SET,SET",
        help="with --held-out, sets that are one family; those of one origin (meta.json), or whose names begin alike "
        "before _, are anyway (repeatable)",
    )
    parser.add_argument("--sample", type=int, metavar="N", help="ask at most N questions of a SET, drawn by lot")
    parser.add_argument(
        "--passages",
        action="store_true",
        help="join each page's documents into one long text: is the right part of it found?",
    )
    parser.add_argument(
        "--cut",
        action="append",
        metavar="NAME",
        help="with --passages, how to cut: co, LONGEST/OVERLAP/NEIGHBOURS, fixed/LONGEST, parts, or model, the setting "
        "boundaries_model (repeatable)",
    )
    parser.add_argument("--corpus", metavar="DIR", help="where corpus.jsonl is, for a SET of questions only")
    parser.add_argument("--kinds", action="store_true", help="with several sets, too, show each kind of question")
    parser.add_argument("--all-kinds", action="store_true", help="ask also the kinds that a set leaves out")
    parser.epilog = EPILOG
    parser.set_defaults(run=evaluate_command)


def evaluate_command(options: argparse.Namespace) -> int:
    choice = _choice(options)
    settings = load_settings({"vault": options.vault, "data_dir": options.data_dir})
    if options.held_out:
        return _held_out(options, settings)
    if options.absent:
        return _absent(options, settings)
    if options.year:
        return _year(options, settings)
    if options.passages or options.cut:
        return _passages(options, settings)
    runs: list[Run] = []
    try:
        if choice.methods:
            _run(options, settings, choice.methods, runs)
    except KeyboardInterrupt:
        if runs and not options.json and not choice.compared:
            show_runs(Screen(), runs, [], kinds=options.kinds)
        raise
    if options.ranking and runs:
        _write(options.ranking, ranking_text(runs[0]))
    if choice.compared:
        from co_cli.evaluation.comparing import compare  # numpy takes a while, and only this needs it

        first, second = (_marks(name, runs) for name in choice.compared)
        comparisons = compare(first, second)
        if options.json:
            print_json([{**found._asdict(), "verdict": found.verdict} for found in comparisons])
            return 0
        show_comparisons(Screen(), choice.compared, comparisons)
        return 0
    if options.json:
        print(json_text([row for run in runs for row in rows_of(run, settings)]))
        return 0
    left_out = [method.name for method in choice.methods if method.name not in {run.method for run in runs}]
    show_runs(Screen(), runs, left_out, kinds=options.kinds or len(options.set) < 2)
    return 0


def _choice(options: argparse.Namespace) -> Choice:
    """Mistakes are told before the work begins."""
    if options.sample is not None and options.sample < 1:
        raise InvalidInputError(f"--sample is at least 1, not {options.sample}")
    if options.sample is not None and (not options.set or options.absent or options.passages):
        raise InvalidInputError("--sample is for the questions of a SET, without --absent and --passages")
    if options.family and not options.held_out:
        raise InvalidInputError("--family needs --held-out")
    if options.set and options.questions:
        raise InvalidInputError("a SET brings its own questions: leave out --questions, or the SET")
    if options.corpus and not options.set:
        raise InvalidInputError("--corpus is for a SET of questions that has no corpus of its own")
    for folder in options.set:
        require_set(folder, _corpus(folder, options.corpus))
    names = [set_name(folder) for folder in options.set]
    if len(set(names)) < len(names):
        raise InvalidInputError("two of the sets have the same name; ask them one after the other")
    choices = (*(options.backend or ()), *(options.profile or ()))
    named = [*(options.method or ()), *(f"co:{choice}" for choice in choices)]
    compared: tuple[str, str] | None = None
    if options.compare:
        compared = (options.compare[0], options.compare[1])
        if named:
            raise InvalidInputError("--compare names its methods itself: leave out --method, --backend and --profile")
        named = [name for name in compared if not is_saved(name)]
        if not named and (options.set or options.questions):
            raise InvalidInputError("both runs of --compare are files: there is nothing to ask of a set")
    methods = [method(name) for name in dict.fromkeys(named)] if named or compared else default_methods()
    if options.ranking:
        if len(options.set) > 1:
            raise InvalidInputError("--run is the ranking of one set: ask the others one after the other")
        folder = os.path.dirname(os.path.abspath(options.ranking))
        if not os.path.isdir(folder):
            raise InvalidInputError(f"--run {options.ranking}: there is no folder {folder}")
    return Choice(methods, compared)


def _run(options: argparse.Namespace, settings: Settings, methods: Sequence[Method], runs: list[Run]) -> None:
    """Set after set into `runs`: whoever stops the work has those that are finished."""
    if not options.set:
        runs += _runs_of_vault(options, methods)
    for folder in options.set:
        name, corpus = set_name(folder), _corpus(folder, options.corpus)
        with _working_folder() as work, _bar(f"{name}: indexing") as indexing, _bar(f"{name}: asking") as asking:
            runs += run_set(
                folder,
                work,
                settings,
                methods,
                corpus=corpus,
                every_kind=options.all_kinds,
                sample=options.sample,
                indexing=indexing,
                asking=asking,
            )


def _held_out(options: argparse.Namespace, settings: Settings) -> int:
    from co_cli.cli.eval_held_out import held_out_json, show_held_out  # with numpy
    from co_cli.evaluation.families import families_of, require_families
    from co_cli.evaluation.held_out import HeldOut

    named = options.method or options.backend or options.profile or options.compare or options.ranking
    if named or options.absent or options.year or options.passages or options.cut:
        raise InvalidInputError(
            "--held-out has its own columns: leave out --method, --backend, --profile, --compare, --run and the like"
        )
    families = families_of(options.set, options.family or ())
    require_families(families)
    folders = {set_name(folder): folder for folder in options.set}
    found = HeldOut(families)
    with _working_folder() as work:

        def ask(name: str, methods: Sequence[Method]) -> list[Run]:
            with _bar(f"{name}: indexing") as indexing, _bar(f"{name}: asking") as asking:
                return run_set(
                    folders[name],
                    os.path.join(work, name),
                    settings,
                    methods,
                    corpus=_corpus(folders[name], options.corpus),
                    every_kind=options.all_kinds,
                    sample=options.sample,
                    indexing=indexing,
                    asking=asking,
                )

        try:
            found.look(ask)
            with _bar("learning") as learning:
                found.learn(learning)
            found.ask_again(ask)
        except KeyboardInterrupt:
            if found.finished() and not options.json:
                show_held_out(Screen(), found)
            raise
    if options.json:
        print_json(held_out_json(found))
    else:
        show_held_out(Screen(), found)
    return 0


def _absent(options: argparse.Namespace, settings: Settings) -> int:
    from co_cli.evaluation.crossing import Crossed, cross

    if not options.set:
        raise InvalidInputError("--absent needs a SET with groups: each is asked what only another one can answer")
    found: list[Crossed] = []
    for folder in options.set:
        name, corpus = set_name(folder), _corpus(folder, options.corpus)
        with _working_folder() as work, _bar(f"{name}: indexing") as indexing, _bar(f"{name}: asking") as asking:
            found.append(cross(folder, work, settings, corpus, indexing, asking))
    if options.json:
        print_json([crossed._asdict() for crossed in found])
    else:
        show_crossed(Screen(), found)
    return 0


def _year(options: argparse.Namespace, settings: Settings) -> int:
    from co_cli.evaluation.year import live_a_year, ways

    if options.set or options.questions:
        raise InvalidInputError("--year makes its own notes and questions: leave out the SET and --questions")
    with _working_folder() as work, _bar("a year") as asking:
        scores = live_a_year(work, settings, ways(), time.time(), asking=asking)
    if options.json:
        print_json([score._asdict() for score in scores])
    else:
        show_year(Screen(), scores)
    return 0


def _passages(options: argparse.Namespace, settings: Settings) -> int:
    from co_cli.evaluation.cuts import AS_WE_DO, cutter
    from co_cli.evaluation.long_texts import Found, has_headings, measure_cuts

    if not options.set or not options.passages:
        raise InvalidInputError("--passages needs a SET whose documents can be joined, and --cut needs --passages")
    model = _boundaries(options.cut or (), settings)
    cutters = {name: model.cut if name == "model" else cutter(name) for name in options.cut or (AS_WE_DO, "parts")}
    found: list[Found] = []
    try:
        for folder in options.set:
            for headings in (True, False) if has_headings(folder) else (False,):
                with _working_folder() as work, _bar(f"{set_name(folder)}: asking") as asking:
                    found += measure_cuts(folder, work, settings, cutters, headings, asking)
    except KeyboardInterrupt:
        if found and not options.json:
            show_cuts(Screen(), found)
        raise
    if options.json:
        print_json(
            [{**one._asdict(), "documents": one.documents._asdict(), "parts": one.parts._asdict()} for one in found]
        )
    else:
        show_cuts(Screen(), found)
    if model.asked:
        told = f"model: cut as it said {model.used:,} of {model.asked:,} texts that are long enough to ask about"
        print(told, file=sys.stderr if options.json else sys.stdout)
    return 0


def _boundaries(cuts: Sequence[str], settings: Settings) -> ProposedCuts:
    from co_cli.cli.boundaries import ConfiguredBoundaries, ProposedCuts

    if "model" in cuts and not settings.boundaries_model:
        raise InvalidInputError(
            "--cut model: the setting boundaries_model names none (CO_BOUNDARIES_MODEL=ollama:qwen3)"
        )
    return ProposedCuts(ConfiguredBoundaries(settings.boundaries_model or "", settings))


def _runs_of_vault(options: argparse.Namespace, methods: Sequence[Method]) -> list[Run]:
    """Of your own vault, or of the sample vault with an index of its own."""
    name = "your vault" if options.questions else "sample vault"
    path = options.questions or os.path.join(sample_vault(), "questions.jsonl")
    questions = read_questions(path)
    with (
        _working_folder() as work,
        open_knowledge_base(options) if options.questions else KnowledgeBase.open(sample_vault(), work) as kb,
    ):
        with _bar("indexing") as indexing:
            kb.sync(indexing)  # to the end, however slow the provider: figures of half a space mislead
        require_vectors(kb)
        require_answers(path, questions, list(kb.index.titles()))
        with _bar("asking") as asking:
            return run_vault(name, kb, questions, methods, asking)


def _corpus(folder: str, corpus: str | None) -> str:
    """A set's own, if it has one."""
    return corpus if corpus and not os.path.exists(os.path.join(folder, "corpus.jsonl")) else folder


def _marks(name: str, runs: Sequence[Run]) -> MarksOf:
    found = read_marks(name) if is_saved(name) else marks_of(runs, name)
    if not found:
        raise InvalidInputError(
            f"{name} needs vectors, and the settings want words alone (knowledge_embedding_provider)"
        )
    return found


@contextlib.contextmanager
def _bar(verb: str) -> Generator[ProgressBar]:
    """Taken away however the work ends."""
    bar = ProgressBar(verb)
    try:
        yield bar
    finally:
        bar.done()


def _working_folder() -> tempfile.TemporaryDirectory[str]:
    return tempfile.TemporaryDirectory(prefix="co-eval-", ignore_cleanup_errors=True)


def _write(path: str, text: str) -> None:
    try:
        with open(path, "w", encoding="utf-8") as stream:
            stream.write(text)
    except OSError as error:
        raise InvalidInputError(f"{path} cannot be written: {error.strerror}") from None
