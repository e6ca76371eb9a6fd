"""`co feedback stats`."""

from __future__ import annotations

import argparse
import math
import time
from collections.abc import Sequence

from co_cli.activity.query_log import DAY, MOST_DAYS, clear_log
from co_cli.activity.statistics import Day, NotesUse, NoteUse, Searches, count_notes, count_searches
from co_cli.cli.opening import add_limit, confirm_clear, open_knowledge_base, print_result
from co_cli.cli.terminal import Screen, age, columns, count_of, printable
from co_cli.errors import InvalidInputError
from co_cli.knowledge_base import KnowledgeBase
from co_cli.values import moment_text

WIDEST = 78
BARS = " ▁▂▃▄▅▆▇█"


def add_stats(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--days", type=int, default=30, metavar="N", help="of the last N days (default 30)")
    add_limit(parser, 10, "rows in each list")
    parser.add_argument("--clear", action="store_true", help="delete the query log of this vault; asks first")
    parser.add_argument("-y", "--yes", action="store_true", help="do not ask")


def run_stats(options: argparse.Namespace) -> int:
    """
    Shows what was searched, what found nothing, what took long, and which notes
    are found often or never. Searches with `co`, by agents, over MCP and in chats
    count; those of `co eval` do not. Nothing of this leaves your machine. The
    setting query_log turns it off, or leaves out the words (no-text).

    examples:
      co feedback stats --days 7
      co feedback stats --json
      co feedback stats --clear
    """
    if not 1 <= options.days <= MOST_DAYS:
        raise InvalidInputError(f"--days is between 1 and {MOST_DAYS}, not {options.days}")
    if options.yes and not options.clear:
        raise InvalidInputError("--yes is for --clear")
    with open_knowledge_base(options) as kb:
        if options.clear:
            return _clear(options, kb)
        today = int(time.time() // DAY)
        indexes = [kb.index, *(kb.index.of(origin) for origin in kb.index.linked)]
        with kb.activity.written().reading() as connection:
            searches = count_searches(connection, kb.root, today - options.days + 1, today, options.limit)
            notes = count_notes(connection, {index.root: index.notes_here() for index in indexes})
        query_log = kb.settings.query_log
    notes = notes._replace(recalled=notes.recalled[: options.limit])
    never, code = notes.never_recalled[: options.limit], 0 if searches.logged or notes.recalled else 1
    shown = as_object(searches, notes, never)
    return print_result(options, shown, lambda screen: _show(screen, searches, notes, never, query_log), code)


def _clear(options: argparse.Namespace, kb: KnowledgeBase) -> int:
    if not confirm_clear(options, "Delete what was searched for in this vault? Notes and their history stay."):
        return 1
    database = kb.activity.written()
    with database.writing() as connection:
        cleared = clear_log(connection, kb.root)
    database.shrink()
    return print_result(options, {"cleared": cleared}, [f"deleted from the query log: {count_of(cleared, 'search')}"])


def as_object(searches: Searches, notes: NotesUse, never: Sequence[NoteUse]) -> dict[str, object]:
    days = [{"date": _date(day), **day._asdict()} for day in searches.days]
    for day in days:
        del day["day"]
    return {
        **{name: _total(searches, name) for name in ("searches", "unanswered", "degraded")},
        "median_ms": searches.median_ms,
        "p95_ms": searches.p95_ms,
        "front_ends": searches.front_ends,
        "logged": searches.logged,
        "common": searches.common,
        "found_nothing": searches.unanswered,
        "slow": [{**slow._asdict(), "at": moment_text(slow.at)} for slow in searches.slow],
        "most_recalled": [_use(note) for note in notes.recalled],
        "never_recalled": {"count": len(notes.never_recalled), "notes": [_use(note) for note in never]},
        "notes": notes.notes,
        "days": days,
    }


def _total(searches: Searches, name: str) -> int:
    return sum(getattr(day, name) for day in searches.days)


def _date(day: Day) -> str:
    return moment_text(day.day * DAY)[:10]


def _use(note: NoteUse) -> dict[str, object]:
    moments = (("recalled", note.recalled), ("opened", note.opened))
    return {**note._asdict(), **{name: None if at is None else moment_text(at) for name, at in moments}}


def _show(screen: Screen, searches: Searches, notes: NotesUse, never: Sequence[NoteUse], query_log: str) -> None:
    days, total = searches.days, _total(searches, "searches")
    span = f"in the last {count_of(len(days), 'day')}" if len(days) > 1 else "today"
    by = ", ".join(f"{name} {number:,}" for name, number in searches.front_ends.items())
    screen.wrapped(f"{count_of(total, 'search')} {span}{f' ({by})' if ', ' in by else ''}.")
    if query_log != "on":
        meaning = "nothing more is recorded" if query_log == "off" else "the words are left out"
        screen.wrapped(f"The query log is {query_log}: {meaning}.", style="dim")
    if total:
        took = f"Median {_ms(searches.median_ms)}, 95 % within {_ms(searches.p95_ms)}."
        screen.wrapped(f"{_total(searches, 'unanswered'):,} found nothing. {took}")
    if total and len(days) > 1:
        ends = f"{_date(days[0])} to {_date(days[-1])}"
        most, slowest = max(day.searches for day in days), max(day.p95_ms or 0.0 for day in days)
        _table(screen, f"Searches a day, {ends}, at most {most:,}", [("", bars([day.searches for day in days]))])
        took = bars([day.p95_ms or 0.0 for day in days])
        _table(screen, f"Time within which 95 % were answered, at most {_ms(slowest)}", [("", took)])
    _table(screen, "Asked most often", [(f"{one.times:,}", one.text) for one in searches.common])
    _table(screen, "Found nothing", [(f"{one.times:,}", one.text) for one in searches.unanswered])
    slow = ((one, f"{one.front_end}, {moment_text(one.at)[:10]}") for one in searches.slow)
    _table(screen, "Took longest", [(_ms(one.took_ms), f"{one.text or '(no text)'} · {by}") for one, by in slow])
    often = ((one, age(moment_text(one.recalled or 0.0), time.time())) for one in notes.recalled)
    rows = [(f"{one.recalls:,}", f"{one.ref}  {one.title} · {last}") for one, last in often]
    _table(screen, "Notes recalled most often", rows)
    if notes.recalled:
        title = f"Never recalled: {len(notes.never_recalled):,} of {count_of(notes.notes, 'note')}"
        _table(screen, title, [("", f"{one.ref}  {one.title}") for one in never])


def bars(values: list[float] | list[int]) -> str:
    """One character for each value; if they do not fit, neighbours share one, for the largest of them."""
    share = math.ceil(len(values) / (WIDEST - 4))
    shared = [max(values[place : place + share]) for place in range(0, len(values), share)]
    top = max(shared) or 1
    return "".join(BARS[math.ceil(value / top * (len(BARS) - 1))] for value in shared)


def _table(screen: Screen, title: str, rows: list[tuple[str, str]]) -> None:
    if not rows:
        return
    screen.line()
    screen.line(screen.paint(title, "bold"))
    wide = max(len(number) for number, _ in rows)
    for number, text in rows:
        screen.line(f"  {number:>{wide}}  {_short(text, min(screen.width, WIDEST) - wide - 4)}")


def _short(text: str, room: int) -> str:
    """Shorten a text to one line that fits."""
    text = printable(text.replace("\n", " "))
    if columns(text) <= room:
        return text
    while text and columns(text) > room - 2:
        text = text[:-1]
    return f"{text.rstrip()} …"


def _ms(value: float | None) -> str:
    if value is None:
        return "-"
    return f"{value / 1000:,.1f} s" if value >= 1000 else f"{value:,.0f} ms" if value >= 10 else f"{value:.1f} ms"
