"""`co search`, `co note recall`, `co note why` and `co note tags`."""

from __future__ import annotations

import argparse
import os
import sys
import time
from dataclasses import replace
from typing import Any

from co_cli.cli.opening import (
    add_filters,
    add_limit,
    add_no_sync,
    at_least_1,
    filters_of,
    filters_text,
    find_note,
    keep_results,
    log_info,
    open_anywhere_synced,
    open_synced,
    print_json,
    print_result,
    read_stdin,
)
from co_cli.cli.search_lines import show_lines
from co_cli.cli.terminal import Screen, age, count_of, is_title, printable, spinner
from co_cli.entrance.knowledge_base import KnowledgeBase
from co_cli.entrance.local import LocalKnowledgeBase
from co_cli.ground.errors import InvalidInputError, UnknownRefError
from co_cli.ground.hits import Hit, SearchResult, older_remark, worth_showing
from co_cli.ground.paths import shell_line
from co_cli.ground.values import OWN_SOURCES
from co_cli.ground.weights import read_weights
from co_cli.index.tokens import tokens
from co_cli.notes.language import guess_language
from co_cli.notes.refs import without_lines
from co_cli.retrieval.profiles import PROFILES
from co_cli.retrieval.query import Query, parse
from co_cli.retrieval.results import make_snippet
from co_cli.sources.origin import VAULT
from co_cli.vault.ranking import learned_in_use

SIGNALS = {
    "name": "the query is its title, an alias, its file name, its ref or its number, or words of one",
    "meaning": "the cosine between the query and the passage",
    "words": "bm25 divided by the best bm25, less if only a few of the words occur",
    "reader": "the score of a model that read query and passage",
    "recency": "how new it is, or how far into its validity window",
    "importance": "its importance field, or how many notes mention it; and ratings",
    "severity": "its severity field",
    "tags": "tags that the query and the note share",
    "domain": "the query names its domain",
    "links": "how near it is to the best hits over links",
    "use": "how often it was found and opened",
    "tier": "which vault it is in",
}
REASONS = {
    "name": "its name matches",
    "meaning": "similar meaning",
    "reader": "ranked up after reading",
    "recency": "recent",
    "importance": "important",
    "severity": "severe",
    "tags": "shared tags",
    "domain": "same domain",
    "links": "linked with other hits",
    "use": "used often",
}
REASON_SHARE, READER_SHARE = 0.2, 0.5
"""Minimum share of a score for a signal to be shown as a reason; the reader says something of every hit."""
LIMIT, SHOWN = 10, 5
"""Results for programs and pipes, and on a terminal."""
MERELY_NEAR = "── merely near ──"
MOST_WORDS = 6
NO_NOTES_YET = (
    "Nothing found: there are no notes here yet. `co remember TEXT` saves one, `co add DIR` makes a folder searchable, "
    "`co demo` searches a sample."
)
NO_WORDS = "Nothing found: the query has no letters or digits. `--backend grep` finds single signs, such as `-`."


def add_search(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("query", nargs="*", help="what to look for (default: standard input)")
    _add_source(parser)
    output = _add_common(parser)
    output.add_argument("--lines", action="store_true", help="print every matching line with its number, file by file")
    output.add_argument("--vimgrep", action="store_true", help="the same as path:line:column:text, for editors")
    around = "--lines with N lines before and after each"
    output.add_argument("-C", "--context", dest="around", type=at_least_1, metavar="N", help=around)


def run_search(options: argparse.Namespace) -> int:
    """
    query syntax:
      any words               notes with any of them, and notes close in meaning
      "a phrase"              exactly these words
      -word, -"2222", -tag:x  without this word, phrase, number or tag
      blue OR green           one of them; (parentheses) group
      tag:ops or #ops         only notes with this tag
      path:guides file:2026   only notes whose path or file name contains this
      [status:done] [status]  only notes with this property
      /INC-\\d+/               only notes that match a regular expression
      line:(a b) section:(a)  in one line, or below one heading
      task-todo:call          in a task: also task: and task-done:
      last week, since May    only notes of that time

    examples:
      co search "how do we deploy"
      co search '"blue pool" -green' --tag deploy --since 30d
      co search latency --source article --where domain=billing --json
      co search deploy -0 | xargs -0 grep -n rollback
      co search '"blue pool"' --lines -C 2

    `co show 2`, `co open 2` and `co edit 2` take the second result.
    """
    if options.lines or options.vimgrep or options.around is not None:
        return show_lines(options, query_of(options.query), _ranking_of(options))
    return _answer(options, options.source)


def add_recall(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("query", nargs="*", help="what to look for (default: standard input)")
    _add_common(parser)


def run_recall(options: argparse.Namespace) -> int:
    """
    examples:
      co note recall "what does Mara prefer"
      co note recall deploy --tag ops --limit 3
    """
    return _answer(options, ["memory", "entity"], full=True)


def _add_common(parser: argparse.ArgumentParser) -> Any:
    """Returns the group of options for output."""
    limit = f"maximum number of results (default {LIMIT}; on a terminal the best {SHOWN} at most)"
    parser.add_argument("-n", "--limit", type=at_least_1, metavar="N", help=limit)
    parser.add_argument("--explain", action="store_true", help="show every part of each score, and what it means")
    output = parser.add_argument_group("output")
    output.add_argument("--paths", action="store_true", help="print only the paths of files, one per line")
    output.add_argument("-0", "--null", action="store_true", help="the same, with a NUL after each, for xargs -0")
    _add_ranking(parser, ("grep", "fts5", "hybrid"))
    add_no_sync(parser)
    return output


def _add_source(parser: argparse.ArgumentParser) -> None:
    help = f"only this: {', '.join(OWN_SOURCES)}, or one that `co source list` lists (repeatable)"
    parser.add_argument("--source", action="append", metavar="SOURCE", help=help)
    parser.add_argument("--kind", dest="source", action="append", metavar="SOURCE", help=argparse.SUPPRESS)


def _add_ranking(parser: argparse.ArgumentParser, backends: tuple[str, ...]) -> None:
    add_filters(parser)
    add_filters(parser, "time")
    ranking = parser.add_argument_group("ranking")
    ranking.add_argument("--backend", choices=backends, help="how to search (setting knowledge_search_backend)")
    ranking.add_argument(
        "--profile", choices=tuple(PROFILES), metavar="NAME", help=f"how to rank: {', '.join(PROFILES)}"
    )
    weights = "weights that replace the profile's: words=0.5,meaning=0.5,recency=0.2"
    ranking.add_argument("--weights", type=read_weights, metavar="W", help=weights)
    ranking.add_argument("--min-score", type=float, metavar="S", help="leave out hits with a lower score")
    ranking.add_argument("--no-words", action="store_true", help="search by meaning alone")
    ranking.add_argument("--no-meaning", action="store_true", help="search by words alone")
    ranking.add_argument(
        "--read",
        action=argparse.BooleanOptionalAction,
        default=None,
        help="let a small model read and reorder the first results (default: unless a note has every word)",
    )
    ranking.add_argument("--case", action="store_true", help="words must be exactly as typed, upper and lower case too")
    ranking.add_argument("--prefix", action="store_true", help="the last word may be the beginning of a word")


def _ranking_of(options: argparse.Namespace) -> dict[str, Any]:
    """What `_add_ranking` added, except the filters on notes, as a search takes it."""
    given = {name: getattr(options, name) for name in ("backend", "profile", "weights", "min_score", "prefix", "case")}
    sides = {"words": not options.no_words, "meaning": not options.no_meaning}
    return {**given, **sides, "read": options.read, **filters_of(options, "time")}


def query_of(words: list[str]) -> str:
    query = " ".join(words) if words else " ".join(read_stdin("say what to look for").split())
    if not query.strip():
        raise InvalidInputError("the query is empty: say what to look for")
    return query


def _answer(options: argparse.Namespace, sources: list[str] | None, full: bool = False) -> int:
    query, ranking = query_of(options.query), _ranking_of(options)
    if options.server and (options.paths or options.null):
        raise InvalidInputError("--paths: the files are on the server; `co show REF` prints a note of it")
    with open_anywhere_synced(options, options.backend) as kb:
        with spinner("reading the hits"):
            found = kb.search(query, limit=options.limit or LIMIT, sources=sources, **ranking, **filters_of(options))
        if options.json:
            print_json(found)
        elif options.paths or options.null:
            _print_paths(found, "\0" if options.null else "\n")
        else:
            filters, total = filters_text(options), len(worth_showing(found))
            if options.limit is None and Screen().interactive:
                found = replace(found, hits=worth_showing(found)[:SHOWN])
            whole = full and options.as_of is None  # notes are opened as they are now
            show_result(found, kb if whole else None, options.explain, bool(filters), numbered=True)
            if not (found.searched.notes or filters or kb.server) and (used := _used_last(kb.local)):
                elsewhere = f"`co --vault {shell_line(used)} search {shell_line(query)}`"
                Screen().wrapped(f"The vault that was used last is {used}: {elsewhere} searches there.")
            if len(found.hits) < total:
                Screen().wrapped(f"{count_of(total - len(found.hits), 'more hit')}: -n {LIMIT} shows all", style="dim")
            if found.state == "absent" and filters:
                wider = kb.search(query, limit=1, sources=sources if full else None, **ranking)
                if wider.state == "found":
                    Screen().wrapped(f"Without {filters} there is {wider.hits[0].title} ({wider.hits[0].ref}).")
            learned = None
            if options.explain and kb.server is None:
                learned = learned_in_use(kb.local.vault.ranking, ranking["profile"], ranking["weights"])
            if learned is not None:
                weights = f"meaning {learned['meaning']:.2f}, words {learned['words']:.2f}"
                Screen().wrapped(f"weights   {weights}: learned from feedback (`co feedback tune`)", style="dim")
        sys.stdout.flush()
        numbers = (found.backend, found.state, len(found.hits), found.searched.notes, found.took_ms)
        log_info("searched by %s: %s, %d hits of %d notes, %s ms", *numbers)
        kb.track(found)  # after the answer is shown, so that nobody waits for it
        if not (options.json or options.paths or options.null):
            keep_results(kb, [without_lines(hit.ref) for hit in worth_showing(found)])
    return 0 if found.state == "found" else 1


def _used_last(kb: LocalKnowledgeBase) -> str | None:
    """The vault with notes that was searched or changed last."""
    if kb.working_index() is None:
        return None
    with kb.engine.reading() as snapshot:
        vaults = [vault for vault in snapshot.origins() if vault.origin.source == VAULT and vault.notes]
    used = sorted(vaults, key=lambda vault: vault.synced_at or 0.0)
    return next((vault.origin.root for vault in reversed(used) if os.path.isdir(vault.origin.root)), None)


def _print_paths(found: SearchResult, end: str) -> None:
    for path in dict.fromkeys(hit.path for hit in found.hits if found.state == "found"):
        print(printable(path) if sys.stdout.isatty() else path, end=end)


def show_result(
    found: SearchResult,
    full_from: KnowledgeBase | None = None,
    explain: bool = False,
    more: bool = False,
    numbered: bool = False,
) -> None:
    """Print hits; with a knowledge base, full notes. `more`: whether there may be notes that were not searched."""
    screen, now, hits, asked = Screen(), time.time(), worth_showing(found), parse(found.query)
    indent = "   " if numbered else "  "
    bodies = full_from.bodies([hit.ref for hit in hits]) if full_from else {}
    if found.state != "found":
        screen.wrapped(_nothing_found(found, more))
        if hits:
            screen.line()
    for number, hit in enumerate(hits, 1):
        if number > 1:
            screen.line()
            if found.state == "found" and hit.weak and not hits[number - 2].weak:
                screen.line(screen.paint(MERELY_NEAR, "dim"))
                screen.line()
        title = f"{hit.title} > {hit.heading}" if hit.heading else hit.title
        screen.titled(f"{number}. {title}" if numbered else title, hit.ref, hit.path, indent)
        text = bodies.get(hit.ref, hit.snippet).strip()
        if hit.ref in bodies and not is_title(text, hit.title):
            screen.text(text, indent)
        elif not is_title(text, hit.title):
            screen.snippet(hit.snippet, indent, hit.marks)
        screen.wrapped(_about(hit, asked, now, explain), indent, style="dim")
    if explain and hits:
        screen.line()
        for name, meaning in SIGNALS.items():
            if any(name in hit.signals for hit in hits):
                screen.wrapped(f"{name:<9} {meaning}", style="dim")
    for what in found.understood:
        screen.wrapped(what, style="dim")
    if explain and hits and found.confidence is not None:
        screen.wrapped(f"confidence {found.confidence:.2f} that something here is about it", style="dim")
    if found.suggestions and found.state != "found":
        screen.wrapped(f"Words that occur here: {', '.join(found.suggestions)}?")
    for reason in found.degraded:
        screen.wrapped(f"note: {reason}", style="yellow")


def _nothing_found(found: SearchResult, more: bool) -> str:
    searched = f"{count_of(found.searched.notes, 'note')} searched"
    if found.state == "inconclusive":
        return f"{'The nearest' if found.hits else 'Nothing found'}, but not everything could be searched ({searched})."
    fresh = f", index fresh as of {found.searched.fresh_as_of}" if found.searched.fresh_as_of else ""
    if not found.searched.notes and not more:
        return NO_NOTES_YET
    if not any(map(str.isalnum, found.query)):
        return NO_WORDS
    if worth_showing(found):
        return f"Nothing here clearly answers that: {searched}{fresh}. The nearest:"
    return f"Nothing found: {searched}{fresh}."


def _about(hit: Hit, asked: Query, now: float, explain: bool) -> str:
    tags = " ".join(f"#{tag}" for tag in hit.tags)
    parts = sorted(hit.signals.items(), key=lambda part: -part[1])
    score = f"{hit.score:.4f} = " + " + ".join(f"{name} {value:.4f}" for name, value in parts)
    gone = "file missing" if hit.missing else ""
    about = (
        older_remark(hit.newer),
        *_reasons(hit, asked),
        tags,
        age(hit.created, now),
        gone,
        score if explain and parts else "",
    )
    return " · ".join(part for part in about if part)


def _reasons(hit: Hit, asked: Query) -> list[str]:
    """Why it was found: `matches: deploy, tuesday` and `similar meaning`."""
    language = guess_language(f"{hit.title}\n{hit.snippet}")
    words = asked.in_languages([language]).words
    named = make_snippet(" ".join((hit.title, hit.heading, *hit.tags)), words, asked.condition, language)
    marked = [text[first:last].lower() for text, marks in (named, (hit.snippet, hit.marks)) for first, last in marks]
    shown = list({" ".join(tokens(word)): word for word in reversed(marked)}.values())[::-1][:MOST_WORDS]
    found = [f"matches: {', '.join(shown)}"] if shown and not hit.part_of else []
    found += [f"a part of: {', '.join(hit.part_of)}"] if hit.part_of else []
    shares = {name: part / hit.score for name, part in hit.signals.items() if hit.score > 0}
    least = {"reader": READER_SHARE}
    return found + [text for name, text in REASONS.items() if shares.get(name, 0.0) >= least.get(name, REASON_SHARE)]


def add_why(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("query", nargs="+", help="the query of the search")
    parser.add_argument("ref", help="the note to explain")
    add_limit(parser, 10, "the limit of the search")
    _add_source(parser)
    _add_ranking(parser, ("fts5", "hybrid"))


def run_why(options: argparse.Namespace) -> int:
    """
    Follows one note through a search: its rank after each step, the step in which
    it was lost if it is not in the answer, and what would rank it higher.

    examples:
      co note why "how do we deploy" memory:blue-pool-first
      co note why deploy article:runbooks/deploy --tag ops --json
    """
    query = query_of(options.query)
    with open_synced(options) as kb:
        try:
            ref = find_note(kb, options.ref).ref
        except UnknownRefError as error:
            raise InvalidInputError(f"{error} (the query comes first, then the note)") from None
        limits = {"limit": options.limit, "sources": options.source}
        found = kb.why(query, ref, **limits, **_ranking_of(options), **filters_of(options))

    def show(screen: Screen) -> None:
        screen.titled(found.title, found.ref)
        lost = f"Not in the answer: lost in the step `{found.lost_in}`."
        screen.wrapped(f"Rank {found.rank} (limit {found.limit})." if found.rank else lost, "  ")
        for step in found.steps:
            missed = f"not among {step.of}" if step.of else "none found"
            place = f"rank {step.rank} of {step.of}" if step.rank else missed
            screen.wrapped(f"{step.name:<8} {place}: {step.text}", "  ")
        for hint in found.hints:
            screen.wrapped(f"hint     {hint}", "  ", style="dim")

    return print_result(options, found, show, 0 if found.rank else 1)


def add_tags(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "source", nargs="?", metavar="SOURCE", help="memory, article, or a source that `co source list` lists"
    )
    add_no_sync(parser)


def run_tags(options: argparse.Namespace) -> int:
    """
    Tags of all notes, from frontmatter and from #words in the text, with the number
    of notes that have each, most used first.

    examples:
      co note tags
      co note tags memory --json
    """
    with open_anywhere_synced(options) as kb:
        counted = kb.tags(options.source)
        synced = bool(counted or kb.server) or kb.local.index.notes.state().synced_at is not None

    def show(screen: Screen) -> None:
        for tag, count in counted.items():
            screen.entry(f"#{tag}", screen.paint(count_of(count, "note"), "dim"))
        if not counted and not synced:
            screen.line("The vault was never indexed: run `co index sync`, or leave out --no-sync.")
        elif not counted:
            screen.line("No tags: `co remember TEXT --tag TAG` gives one, and so does #tag in a text.")

    return print_result(options, counted, show, 1 if options.source and not counted else 0)
