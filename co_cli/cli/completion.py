"""`co config completion SHELL`: a script that asks `co config completion --words` what may follow."""

from __future__ import annotations

import argparse
from collections.abc import Iterable
from itertools import pairwise

from co_cli.cli.app import COMMANDS, GROUPS, command_place
from co_cli.cli.parsing import make_parser
from co_cli.errors import KnowledgeError
from co_cli.knowledge_base import KnowledgeBase
from co_cli.settings import SETTINGS
from co_cli.values import OWN_SOURCES

SOURCE = "SOURCE"
"""The metavar of a source in the parsers: which there are depends on the vault."""
SCRIPTS = {
    "bash": """\
_co() {
    local word
    COMPREPLY=()
    while IFS= read -r word; do
        COMPREPLY+=("$word")
    done < <(co config completion --words "${COMP_WORDS[@]:1:COMP_CWORD}" 2>/dev/null)
}
COMP_WORDBREAKS=${COMP_WORDBREAKS//:}
complete -o default -F _co co
""",
    "zsh": """\
#compdef co
_co() {
    local -a found
    found=("${(@f)$(co config completion --words "${words[@]:1:$((CURRENT - 1))}" 2>/dev/null)}")
    compadd -a found
    _files
}
compdef _co co
""",
    "fish": """\
complete -c co -a '(co config completion --words (commandline -opc)[2..] (commandline -ct) 2>/dev/null)'
""",
}
PLAIN = "_-./:@%+=,"
SETUP = """\
bash:  echo 'eval "$(co config completion bash)"' >> ~/.bashrc
zsh:   echo 'eval "$(co config completion zsh)"' >> ~/.zshrc   (after compinit)
fish:  co config completion fish > ~/.config/fish/completions/co.fish
"""


def add_completion(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("shell", nargs="?", choices=tuple(SCRIPTS), help="which shell")
    parser.add_argument("--words", nargs=argparse.REMAINDER, help=argparse.SUPPRESS)
    parser.epilog = SETUP


def run_completion(options: argparse.Namespace) -> int:
    if options.words is not None:
        for word in filter(_is_plain, suggestions(options.words)):
            print(word)
    elif options.shell:
        print(SCRIPTS[options.shell], end="")
    else:
        print(SETUP, end="")
    return 0


def _is_plain(word: str) -> bool:
    """Whether a shell takes it literally. A file of a clone may be called `$(...)`, which a shell would run."""
    return all(letter.isalnum() or letter in PLAIN for letter in word)


def suggestions(words: list[str]) -> list[str]:
    """What the last word may become, given the words before it."""
    typed, before = (words[-1], words[:-1]) if words else ("", [])
    place = command_place(before)
    if place is None:
        alone = [name for name in COMMANDS if " " not in name]
        return _starting(typed, (*alone, *GROUPS, "--help", "--version", "--vault", "--data-dir"))
    name = before[place]
    if name in GROUPS:
        verb = command_place(before[place + 1 :])
        if verb is None:
            return _starting(typed, [one.partition(" ")[2] for one in COMMANDS if one.startswith(f"{name} ")])
        name = f"{name} {before[place + 1 + verb]}"
    if name not in COMMANDS:
        return []
    actions = make_parser(name)._actions  # pyright: ignore[reportPrivateUsage]
    chosen = next(
        (action for action in actions if place < len(before) - 1 and before[-1] in action.option_strings), None
    )
    if chosen is not None and chosen.nargs != 0:
        return _starting(typed, _sources(before) if chosen.metavar == SOURCE else chosen.choices or ())
    if typed.startswith("-"):
        known = (option for action in actions for option in action.option_strings if option.startswith("--"))
        return _starting(typed, sorted(known))
    if name in ("show", "edit", "forget", "note restore", "note history"):
        return _starting(typed, _refs(before, trashed=name == "note restore"))
    if name == "config show":
        return _starting(typed, [setting.name for setting in SETTINGS])
    words = [word for action in actions if not action.option_strings for word in action.choices or ()]
    if any(action.metavar == SOURCE and not action.option_strings for action in actions):
        words += _sources(before)
    return _starting(typed, words)


def _starting(typed: str, words: Iterable[str]) -> list[str]:
    return [word for word in words if word.startswith(typed)]


def _sources(words: list[str]) -> list[str]:
    """The sources of the vault, and those that were added to it."""
    try:
        with KnowledgeBase.open(_value_of("--vault", words), _value_of("--data-dir", words)) as kb:
            return [*OWN_SOURCES, *(origin.label for origin in kb.index.linked)]
    except KnowledgeError:
        return list(OWN_SOURCES)


def _refs(words: list[str], trashed: bool) -> list[str]:
    """The refs of the vault that the words before name."""
    try:
        with KnowledgeBase.open(_value_of("--vault", words), _value_of("--data-dir", words)) as kb:
            if trashed:
                return sorted({one.ref for one in kb.lookup.trashed()})
            return sorted(kb.index.titles())
    except KnowledgeError:
        return []  # completion must never get in the way of typing


def _value_of(option: str, words: list[str]) -> str | None:
    return next((after for word, after in pairwise(words) if word == option), None)
