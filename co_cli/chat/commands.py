"""Slash commands: they act on the knowledge base directly, so they work while no model does."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import NamedTuple, Protocol

from co_cli.chat.turn import Turn
from co_cli.chat.why import explain
from co_cli.cli.search import show_result
from co_cli.cli.terminal import Screen, age, printable
from co_cli.errors import InvalidInputError, KnowledgeError
from co_cli.knowledge_base import KnowledgeBase
from co_cli.notes.excerpt import excerpt
from co_cli.service.freshness import Freshener
from co_cli.service.state import trash_of

FRESH_SECONDS = 2.0
MOST_RECALLED = 5
MOST_LISTED = 15


class Chat(Protocol):
    """What the commands need to know of the chat around them."""

    kb: KnowledgeBase
    freshener: Freshener
    last: Turn | None

    @property
    def model_name(self) -> str | None: ...
    def use_model(self, name: str) -> str: ...
    def clear(self) -> None: ...


class Command(NamedTuple):
    """A slash command: what it takes, what it does, and whether the chat goes on afterwards."""

    name: str
    takes: str
    summary: str
    run: Callable[[Chat, str], None] | None
    """None ends the chat."""
    words: str = ""
    """What completes its argument: `refs`, `trashed` or `tags`."""


def recall(chat: Chat, query: str) -> None:
    behind = chat.freshener.ensure(FRESH_SECONDS)
    found = chat.kb.search(_given(query, "/recall what do I know about deploys"), limit=MOST_RECALLED, track=True)
    show_result(found)
    for problem in behind:
        Screen().wrapped(f"note: {problem}", style="yellow")


def remember(chat: Chat, text: str) -> None:
    chat.freshener.ensure(FRESH_SECONDS)
    saved = chat.kb.remember(_given(text, "/remember Blue takes traffic first. #deploy"))
    _say(saved.told)


def forget(chat: Chat, refs: str) -> None:
    gone = [chat.kb.forget(ref) for ref in _known(chat, refs, "/forget memory:blue-first")]
    for one in gone:
        _say(f"forgotten {one.ref}; /restore {one.ref} brings it back")


def restore(chat: Chat, refs: str) -> None:
    for ref in _given(refs, "/restore memory:blue-first").split():
        _say(f"restored {chat.kb.restore(ref).ref}")


def show(chat: Chat, ref: str) -> None:
    screen = Screen()
    ref = _given(ref, "/show memory:blue-first")
    note = chat.kb.note(_known(chat, ref, "")[0])
    screen.titled(note.title, note.ref)
    for line in excerpt(ref.split()[0], note):
        screen.wrapped(line) if line else screen.line()


def notes(chat: Chat, tags: str) -> None:
    chat.freshener.ensure(FRESH_SECONDS)
    wanted = [tag.lstrip("#") for tag in tags.split()]
    found = chat.kb.notes(tags=wanted or None, limit=MOST_LISTED + 1)
    screen = Screen()
    for note in found[:MOST_LISTED]:
        screen.titled(note.title, note.ref)
        about = [age(note.created, time.time()), " ".join(f"#{tag}" for tag in note.tags)]
        screen.wrapped(" · ".join(part for part in about if part), "  ", style="dim")
    if not found:
        said = " ".join(f"#{tag}" for tag in wanted)
        screen.line(f"No notes with {printable(said)}." if wanted else "No notes yet.")
    elif len(found) > MOST_LISTED:
        screen.line(screen.paint("… and older ones; /notes TAG narrows it, /recall finds.", "dim"))


def why(chat: Chat, _: str) -> None:
    if chat.last is None:
        _say("Nothing was answered yet.")
    else:
        explain(chat.last, Screen())


def model(chat: Chat, name: str) -> None:
    if name:
        _say(f"{chat.use_model(name)} answers from now on")
    else:
        _say(chat.model_name or "no model; /model ollama:qwen3 chooses one")


def clear(chat: Chat, _: str) -> None:
    chat.clear()
    _say("a new conversation; what was saved stays")


def help_(chat: Chat, _: str) -> None:
    screen = Screen()
    wide = max(len(command.name) + len(command.takes) for command in COMMANDS) + 3
    for command in COMMANDS:
        asked = f"{command.name} {command.takes}".rstrip()
        screen.line(f"{screen.paint(asked.ljust(wide), 'cyan')}{command.summary}")
    screen.line(screen.paint("Anything else is a question. Alt-Enter or a trailing \\ begins another line.", "dim"))
    screen.line(screen.paint("Ctrl-C stops an answer. A line that begins with a space is not kept.", "dim"))


COMMANDS = (
    Command("/recall", "QUESTION", "search your notes", recall),
    Command("/remember", "TEXT", "save a memory", remember),
    Command("/forget", "REF", "move a note to the trash", forget, "refs"),
    Command("/restore", "REF", "bring a forgotten note back", restore, "trashed"),
    Command("/notes", "[TAG]", "list the newest notes", notes, "tags"),
    Command("/show", "REF", "show one note", show, "refs"),
    Command("/why", "", "what the last answer stood on", why),
    Command("/model", "[NAME]", "which model answers, or choose another", model),
    Command("/clear", "", "begin a new conversation", clear),
    Command("/help", "", "this list", help_),
    Command("/quit", "", "end the chat (also Ctrl-D)", None),
)
ALIASES = {"/exit": "/quit", "/bye": "/quit", "/q": "/quit", "/?": "/help", "/new": "/clear", "/list": "/notes"}


def is_command(line: str) -> bool:
    """`/recall x` is one; `/usr/bin is full` is a question."""
    name = line.split(maxsplit=1)[0] if line.strip() else ""
    return name.startswith("/") and "/" not in name[1:]


def run_command(chat: Chat, line: str) -> bool:
    """Do what a line that begins with a slash says; False ends the chat. Raises KnowledgeError with the cure."""
    name, _, rest = line.strip().partition(" ")
    command = find_command(name)
    if command.run is None:
        return False
    command.run(chat, rest.strip())
    return True


def find_command(name: str) -> Command:
    name = ALIASES.get(name.lower(), name.lower())
    exact = [command for command in COMMANDS if command.name == name]
    alike = exact or [command for command in COMMANDS if len(name) > 1 and command.name.startswith(name)]
    if len(alike) == 1:
        return alike[0]
    if alike:
        raise InvalidInputError(f"{name} may be {' or '.join(command.name for command in alike)}")
    from difflib import get_close_matches

    close = get_close_matches(name, [command.name for command in COMMANDS], n=1)
    raise InvalidInputError(f"no command {name}: " + (f"did you mean {close[0]}?" if close else "/help lists them"))


def words_for(kb: KnowledgeBase, name: str) -> Sequence[str]:
    """What may follow a command; nothing if the vault cannot say, because completion must not get in the way."""
    try:
        match find_command(name).words:
            case "refs":
                return sorted(kb.index.titles())
            case "trashed":
                return sorted({one.ref for one in trash_of(kb)})
            case "tags":
                return sorted({tag for note in kb.notes() for tag in note.tags})
            case _:
                return ()
    except KnowledgeError:
        return ()


def _known(chat: Chat, refs: str, example: str) -> list[str]:
    """Refs that all name a note, if need be after a sync: all are there, or none is touched."""
    asked = _given(refs, example).split()
    try:
        return [chat.kb.note(ref).ref for ref in asked]
    except KnowledgeError:
        chat.freshener.ensure(FRESH_SECONDS)
        return [chat.kb.note(ref).ref for ref in asked]


def _given(text: str, example: str) -> str:
    if not text.strip():
        raise InvalidInputError(f"say what, as in: {example}")
    return text


def _say(text: str) -> None:
    print(printable(text))
