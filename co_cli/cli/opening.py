"""What the commands share: opening the vault that the options name, syncing first, filters, JSON."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from co_cli.cli.terminal import CONTROL, ProgressBar, printable
from co_cli.errors import IndexUnavailableError, InvalidInputError, UnknownRefError
from co_cli.knowledge_base import KnowledgeBase
from co_cli.settings import load_settings, this_process
from co_cli.values import SyncReport

if TYPE_CHECKING:
    import argparse
    from typing import Any

    from co_cli.notes.note import Note

SLOW_SECONDS = 2.0
"""How long a command may build vectors with a slow provider; `co index sync` finishes the work."""
FILTERS = ("source", "tag", "category", "since", "until", "where")


def open_knowledge_base(options: Any, front_end: str = "cli") -> KnowledgeBase:
    """Open the vault that the options name. Front ends other than commands are long-lived."""
    kb = KnowledgeBase.open(settings=load_settings({"vault": options.vault, "data_dir": options.data_dir}))
    kb.front_end, kb.short_lived = front_end, front_end == "cli"
    kb.engine.database.on_set_aside = _say if front_end == "cli" else None  # servers log it
    this_process.chatty = this_process.verbose or kb.settings.log_level in ("info", "debug")
    if this_process.chatty:
        mention("vault %s, index %s", kb.root, kb.engine.path)
    return kb


def _say(text: str) -> None:
    """What a person should know once, beside the answer. With --verbose the log says it there."""
    if this_process.verbose:
        return
    print(f"co: {printable(text)}", file=sys.stderr)


def mention(text: str, *values: object) -> None:
    """For the log and for `--verbose`: nothing that was asked or written. Ask first whether anybody hears it."""
    from co_cli.logbook import logger

    logger("cli").info(text, *values)


def sync_first(kb: KnowledgeBase, backend: str | None = None) -> SyncReport | None:
    """So that a file saved in an editor a second ago is found. Without a usable index the files answer themselves."""
    if (backend or kb.settings.knowledge_search_backend) == "grep":
        return None
    bar = ProgressBar("indexing")
    try:
        report = kb.sync(bar, seconds=SLOW_SECONDS)
        if this_process.chatty:
            mention("synced: %d files changed, %d as they were", report.touched, report.unchanged)
    except IndexUnavailableError:
        return None  # the search that follows meets the same error, answers from the files and says so
    finally:
        bar.done()
    if report.kept:
        print(f"co: {kept_text(len(report.kept))}", file=sys.stderr)
    return report


def kept_text(count: int) -> str:
    """What to say of notes that are kept though their files are gone."""
    what = "the file of 1 note is" if count == 1 else f"the files of {count:,} notes are"
    return (
        f"{what} gone from the vault; is its drive mounted? They are kept, and called missing, until they are back: "
        "`co index sync --drop-missing` forgets them"
    )


def find_note(kb: KnowledgeBase, ref: str, track: bool = False) -> Note:
    """The note a ref names, if need be after a sync: it may be new, and else the closest ones are suggested."""
    try:
        return kb.note(ref, track)
    except UnknownRefError:
        sync_first(kb)
        return kb.note(ref, track)


def add_filters(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("filters")
    group.add_argument("-t", "--tag", action="append", metavar="TAG", help="has this tag (repeatable: all of them)")
    group.add_argument("--any-tag", action="store_true", help="one of the tags is enough")
    group.add_argument("--category", help="has this category: preference, fact, decision, ...")
    group.add_argument("--since", metavar="WHEN", help="created since: 2026-03-01, last week, 7d, 3w")
    group.add_argument("--until", metavar="WHEN", help="created until, that day included")
    group.add_argument("--where", action="append", metavar="KEY=VALUE", help="any other frontmatter key (repeatable)")


def add_moment(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("time")
    group.add_argument(
        "--as-of", metavar="WHEN", help="search the notes that existed and were valid then: 2026-03-01, 3w"
    )
    group.add_argument("--outdated", action="store_true", help="also what was superseded or no longer holds")


def moment_of(options: Any) -> dict[str, Any]:
    """What `add_moment` added, as a search takes it."""
    return {"as_of": options.as_of, "outdated": options.outdated}


def filters_of(options: Any) -> dict[str, Any]:
    """What `add_filters` added, as a KnowledgeBase takes it."""
    return {
        "tags": options.tag,
        "any_tag": options.any_tag,
        "category": options.category,
        "since": options.since,
        "until": options.until,
        "fields": fields_of(options),
    }


def fields_of(options: Any) -> dict[str, str]:
    return dict(_pair("--where", text) for text in options.where or ())


def _pair(option: str, text: str) -> tuple[str, str]:
    key, equals, value = text.partition("=")
    if not equals or not key.strip():
        raise InvalidInputError(f"{option} takes KEY=VALUE, not {text!r}")
    return key.strip(), value.strip()


def assignments(option: str, texts: list[str] | None) -> dict[str, object]:
    """`--set key=value` pairs, typed as frontmatter would read them; an empty value takes the key away."""
    from co_cli.notes.editing import require_field_name
    from co_cli.notes.frontmatter import read_frontmatter

    found: dict[str, object] = {}
    for text in texts or ():
        key, value = _pair(option, text)
        require_field_name(key)
        found[key] = read_frontmatter(f"---\n{key}: {value}\n---\n").metadata.get(key) if value else None
    return found


def print_json(value: Any) -> None:
    import json  # slow to import, and people do not read JSON

    unicode = (sys.stdout.encoding or "").lower().replace("-", "") == "utf8"
    text = json.dumps(value, ensure_ascii=not unicode, indent=2, default=list)
    if not text.isascii():  # JSON itself escapes only some of what a terminal obeys
        import re

        text = re.sub(CONTROL.replace("\x0a-\x1f", ""), lambda found: f"\\u{ord(found[0]):04x}", text)
    sys.stdout.write(text + "\n")


def narrowed_by(options: Any) -> str:
    """The filters that were given, as they are typed; nothing if there are none."""
    said = {name: getattr(options, name, None) for name in FILTERS}
    if isinstance(said["source"], str):  # `co list memory`: not a filter but what is listed
        said["source"] = None
    given = [f"--{name}" for name in FILTERS if said[name]]
    return " and ".join(given)
