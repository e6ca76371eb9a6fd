"""Slash commands. They use the knowledge base directly, so they work without a model."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from difflib import get_close_matches
from typing import TYPE_CHECKING, NamedTuple

from co_cli.chat.screen import explain
from co_cli.cli.search import show_result
from co_cli.cli.terminal import Screen, age, printable
from co_cli.errors import InvalidInputError, KnowledgeError
from co_cli.knowledge_base import KnowledgeBase
from co_cli.notes.note import excerpt

if TYPE_CHECKING:
    from co_cli.chat.session import Session

FRESH_SECONDS = 2.0
MAX_RECALLED = 5
MAX_LISTED = 15


class Command(NamedTuple):
    """A slash command. `run` is None for the one that ends the chat."""

    name: str
    argument: str
    summary: str
    run: Callable[[Session, str], None] | None
    completes: str = ""
    """What the argument is completed from: `refs`, `trashed` or `tags`."""


def recall(chat: Session, query: str) -> None:
    behind = chat.freshener.ensure(FRESH_SECONDS)
    show_result(chat.kb.search(_required(query, "/recall what do I know about deploys"), MAX_RECALLED, track=True))
    for problem in behind:
        Screen().wrapped(f"note: {problem}", style="yellow")


def remember(chat: Session, text: str) -> None:
    chat.freshener.ensure(FRESH_SECONDS)
    _say(chat.kb.remember(_required(text, "/remember Blue takes traffic first. #deploy")).told)


def forget(chat: Session, refs: str) -> None:
    for ref in _known(chat, _required(refs, "/forget memory:blue-first")):
        gone = chat.kb.forget(ref)
        _say(f"forgotten {gone.ref}; /restore {gone.ref} brings it back")


def restore(chat: Session, refs: str) -> None:
    for ref in _required(refs, "/restore memory:blue-first").split():
        _say(f"restored {chat.kb.restore(ref).ref}")


def show(chat: Session, ref: str) -> None:
    screen = Screen()
    note = chat.kb.note(_known(chat, _required(ref, "/show memory:blue-first"))[0])
    screen.titled(note.title, note.ref)
    for line in excerpt(ref.split()[0], note):
        screen.wrapped(line) if line else screen.line()


def notes(chat: Session, tags: str) -> None:
    chat.freshener.ensure(FRESH_SECONDS)
    wanted = [tag.lstrip("#") for tag in tags.split()]
    found = chat.kb.notes(tags=wanted or None, limit=MAX_LISTED + 1)
    screen = Screen()
    for note in found[:MAX_LISTED]:
        screen.titled(note.title, note.ref)
        about = [age(note.created, time.time()), *(f"#{tag}" for tag in note.tags)]
        screen.wrapped(" ".join(filter(None, about)), "  ", style="dim")
    if not found:
        _say(f"No notes with {' '.join(f'#{tag}' for tag in wanted)}." if wanted else "No notes yet.")
    elif len(found) > MAX_LISTED:
        screen.wrapped("… and older ones. /notes TAG lists fewer, /recall searches.", style="dim")


def why(chat: Session, _: str) -> None:
    if chat.last is None:
        _say("There is no answer yet.")
    else:
        explain(chat.last)


def model(chat: Session, name: str) -> None:
    if name:
        chat.use_model(name)
        _say(f"{chat.model} answers from now on")
    else:
        _say(chat.model or "no model; /model ollama:qwen3 chooses one")


def clear(chat: Session, _: str) -> None:
    chat.clear()
    _say("Started a new conversation. Saved notes stay.")


def print_help(chat: Session, _: str) -> None:
    screen = Screen()
    for command in COMMANDS:
        usage = f"{command.name} {command.argument}".rstrip()
        screen.line(f"{screen.paint(usage.ljust(19), 'cyan')}{command.summary}")
    screen.wrapped("Anything else is a question. Alt-Enter starts another line.", style="dim")
    screen.wrapped("Ctrl-C stops an answer. A line that begins with a space is not kept.", style="dim")


COMMANDS = (
    Command("/recall", "QUESTION", "search your notes", recall),
    Command("/remember", "TEXT", "save a memory", remember),
    Command("/forget", "REF", "move a note to the trash", forget, "refs"),
    Command("/restore", "REF", "bring a forgotten note back", restore, "trashed"),
    Command("/notes", "[TAG]", "list the newest notes", notes, "tags"),
    Command("/show", "REF", "show a note", show, "refs"),
    Command("/why", "", "show what the last answer is based on", why),
    Command("/model", "[NAME]", "show or change the model", model),
    Command("/clear", "", "start a new conversation", clear),
    Command("/help", "", "show this list", print_help),
    Command("/quit", "", "end the chat (also Ctrl-D)", None),
)


def is_command(line: str) -> bool:
    """`/recall x` is one; `/usr/bin is full` is a question."""
    name = line.partition(" ")[0]
    return name.startswith("/") and "/" not in name[1:]


def run_command(chat: Session, line: str) -> bool:
    """Run a slash command; False ends the chat. Raises KnowledgeError with the fix."""
    name, argument = [*line.split(maxsplit=1), ""][:2]
    command = find_command(name)
    if command.run is None:
        return False
    command.run(chat, argument.strip())
    return True


def find_command(name: str) -> Command:
    """The command of this name, or the only one that begins with it."""
    name = name.lower()
    found = [command for command in COMMANDS if command.name.startswith(name)]
    if len(found) == 1:
        return found[0]
    close = [command.name for command in found] or get_close_matches(name, [command.name for command in COMMANDS], 1)
    raise InvalidInputError(f"no command {name}: " + (f"did you mean {' or '.join(close)}?" if close else "see /help"))


def arguments_for(kb: KnowledgeBase, name: str) -> Sequence[str]:
    """What can follow a command. Nothing after an error, so that completion never gets in the way."""
    try:
        match find_command(name).completes:
            case "refs":
                return sorted(kb.index.titles())
            case "trashed":
                return sorted({one.ref for one in kb.lookup.trashed()})
            case "tags":
                return sorted({tag for note in kb.notes() for tag in note.tags})
            case _:
                return ()
    except KnowledgeError:
        return ()


def _known(chat: Session, refs: str) -> list[str]:
    """The refs of existing notes, after a sync if one is missing. Raises before anything is changed."""
    try:
        return [chat.kb.note(ref).ref for ref in refs.split()]
    except KnowledgeError:
        chat.freshener.ensure(FRESH_SECONDS)
        return [chat.kb.note(ref).ref for ref in refs.split()]


def _required(text: str, example: str) -> str:
    if not text:
        raise InvalidInputError(f"say what, as in: {example}")
    return text


def _say(text: str) -> None:
    print(printable(text))
