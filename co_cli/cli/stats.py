"""`co feedback stats`."""

from __future__ import annotations

import argparse
import sys
import time

from co_cli.activity import Activity
from co_cli.cli.opening import open_knowledge_base, print_json
from co_cli.cli.plots import plot
from co_cli.cli.terminal import ProgressBar, Screen, age, columns, count_of, printable
from co_cli.errors import InvalidInputError
from co_cli.service.usage import NoteUse, Usage, clear_log, usage_of
from co_cli.values import moment_text

DAY = 86_400
MOST_DAYS = 365
NARROW = 78


def add_stats(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--days", type=int, default=30, metavar="N", help="of the last N days (default 30)")
    parser.add_argument("-n", "--limit", type=int, default=10, metavar="N", help="rows in each list (default 10)")
    parser.add_argument("--clear", action="store_true", help="delete the query log of this vault; asks first")
    parser.add_argument("-y", "--yes", action="store_true", help="do not ask")
    parser.epilog = (
        "What was asked, what found nothing, what took long, and which notes are found\n"
        "again and again or never. Searches in `co`, by agents, over MCP and in chats\n"
        "count; those of `co eval` do not. Nothing of this leaves your machine:\n"
        "the setting query_log turns it off, or leaves the words out (no-text).\n\n"
        "examples:\n  co feedback stats --days 7\n  co feedback stats --json\n  co feedback stats --clear\n"
    )
    parser.set_defaults(run=stats)


def stats(options: argparse.Namespace) -> int:
    if not 1 <= options.days <= MOST_DAYS:
        raise InvalidInputError(f"--days is between 1 and {MOST_DAYS}, not {options.days}")
    if options.limit < 1:
        raise InvalidInputError(f"--limit is at least 1, not {options.limit}")
    if options.yes and not options.clear:
        raise InvalidInputError("--yes is for --clear")
    with open_knowledge_base(options) as kb:
        if options.clear:
            return _clear(options, kb.activity)
        now = time.time()
        indexes = [kb.index, *(kb.index.of(origin) for origin in kb.index.beside)]
        found = usage_of(kb.activity, indexes, now, options.days, options.limit)
        query_log = kb.settings.query_log
    if options.json:
        print_json(as_object(found))
    else:
        _show(Screen(), found, now, query_log)
    return 0 if found.asking.logged or found.recalled else 1


def _clear(options: argparse.Namespace, activity: Activity) -> int:
    if not options.yes:
        if sys.stdin is None or not sys.stdin.isatty():
            raise InvalidInputError("--clear asks before it deletes, and nobody is there: say --yes")
        print("Delete what was searched for in this vault? Notes and their history stay. [y/N] ", end="", flush=True)
        if sys.stdin.readline().strip().lower() not in ("y", "yes"):
            print("nothing was deleted")
            return 1
    bar = ProgressBar("deleting")
    cleared = clear_log(activity, lambda done: bar(done, done))
    bar.done()
    if options.json:
        print_json({"cleared": cleared})
    else:
        print(f"deleted: {count_of(cleared, 'search').replace('searchs', 'searches')} of the query log")
    return 0


def as_object(found: Usage) -> dict[str, object]:
    asking = found.asking
    days = [
        {
            "date": moment_text(day.day * DAY)[:10],
            "searches": day.searches,
            "unanswered": day.unanswered,
            "degraded": day.degraded,
            "half_ms": day.half_ms,
            "most_ms": day.most_ms,
        }
        for day in asking.days
    ]
    return {
        "searches": sum(day.searches for day in asking.days),
        "unanswered": sum(day.unanswered for day in asking.days),
        "degraded": sum(day.degraded for day in asking.days),
        "half_ms": asking.half_ms,
        "most_ms": asking.most_ms,
        "doors": asking.doors,
        "logged": asking.logged,
        "common": [asked._asdict() for asked in asking.common],
        "found_nothing": [asked._asdict() for asked in asking.unanswered],
        "slow": [{**slow._asdict(), "at": moment_text(slow.at)} for slow in asking.slow],
        "most_recalled": [_use(note) for note in found.recalled],
        "never_recalled": {"count": found.never, "notes": [_use(note) for note in found.never_recalled]},
        "notes": found.notes,
        "days": days,
    }


def _use(note: NoteUse) -> dict[str, object]:
    moments = {
        name: None if moment is None else moment_text(moment)
        for name, moment in (("recalled", note.recalled), ("opened", note.opened))
    }
    return {**note._asdict(), **moments}


def _show(screen: Screen, found: Usage, now: float, query_log: str) -> None:
    asking = found.asking
    searches, unanswered = (sum(getattr(day, name) for day in asking.days) for name in ("searches", "unanswered"))
    span = f"in the last {count_of(len(asking.days), 'day')}" if len(asking.days) > 1 else "today"
    doors = ", ".join(f"{door} {number:,}" for door, number in asking.doors.items())
    plural = "search" if searches == 1 else "searches"
    screen.wrapped(f"{searches:,} {plural} {span}{f' ({doors})' if len(asking.doors) > 1 else ''}.")
    if query_log != "on":
        told = "off: nothing more is written down" if query_log == "off" else "no-text: the words are left out"
        screen.wrapped(f"The query log is {told}.", style="dim")
    if searches:
        screen.wrapped(
            f"{unanswered:,} found nothing. Half took {_ms(asking.half_ms)} or less, "
            f"19 of 20 took {_ms(asking.most_ms)} or less."
        )
        ends = tuple(moment_text(day.day * DAY)[5:10] for day in (asking.days[0], asking.days[-1]))
        width = min(screen.width, NARROW)
        if len(asking.days) > 1:
            labels = (ends[0], ends[1])
            _plot(screen, "Searches a day", plot([day.searches for day in asking.days], width, labels))
            _plot(
                screen,
                "Milliseconds that 19 of 20 searches stay within",
                plot([day.most_ms for day in asking.days], width, labels),
            )
    _table(screen, "Asked most often", [(f"{one.times:,}", one.text) for one in asking.common])
    _table(screen, "Found nothing", [(f"{one.times:,}", one.text) for one in asking.unanswered])
    _table(
        screen,
        "Took longest",
        [
            (_ms(one.took_ms), f"{one.text or '(no text)'} · {one.door}, {moment_text(one.at)[:10]}")
            for one in asking.slow
        ],
    )
    _table(
        screen,
        "Notes recalled most often",
        [
            (f"{one.recalls:,}", f"{one.ref}  {one.title} · {age(moment_text(one.recalled or now), now)}")
            for one in found.recalled
        ],
    )
    if found.never and found.recalled:
        _table(
            screen,
            f"Never recalled: {found.never:,} of {count_of(found.notes, 'note')}",
            [("", f"{one.ref}  {one.title}") for one in found.never_recalled],
        )


def _plot(screen: Screen, title: str, lines: list[str]) -> None:
    screen.line()
    screen.line(screen.paint(title, "bold"))
    for line in lines:
        screen.line(line)


def _table(screen: Screen, title: str, rows: list[tuple[str, str]]) -> None:
    if not rows:
        return
    screen.line()
    screen.line(screen.paint(title, "bold"))
    wide = max(max(len(number) for number, _ in rows), 1)
    for number, text in rows:
        screen.line(f"  {number:>{wide}}  {_short(text, min(screen.width, NARROW) - wide - 4)}")


def _short(text: str, room: int) -> str:
    """On one line that fits."""
    text = printable(" ".join(text.split()))
    if columns(text) <= room:
        return text
    while text and columns(text) > room - 2:
        text = text[:-1]
    return f"{text.rstrip()} …"


def _ms(value: float | None) -> str:
    if value is None:
        return "-"
    return f"{value / 1000:,.1f} s" if value >= 1000 else f"{value:,.0f} ms" if value >= 10 else f"{value:.1f} ms"
