"""`co config completion SHELL`: a script that asks `co config completion --words` what may follow."""

from __future__ import annotations

import argparse
import re
from collections.abc import Callable, Iterable
from contextlib import suppress
from itertools import pairwise

from co_cli.cli.parsing import COMMANDS, GROUPS, make_parser, split_command
from co_cli.embedding.embedders import LOCAL_SPACES
from co_cli.embedding.remote_embedders import DEFAULT_MODELS, OTHER_NAMES
from co_cli.entrance.local import LocalKnowledgeBase, open_local
from co_cli.ground.errors import KnowledgeError
from co_cli.ground.settings import BY_NAME, SETTINGS
from co_cli.ground.values import OWN_SOURCES
from co_cli.index.links import aliases_of

SCRIPTS = {
    "bash": """\
_co() {
    local word
    COMPREPLY=()
    while IFS= read -r word; do
        case ${COMP_WORDS[COMP_CWORD]} in
            [\\"\\']*) COMPREPLY+=("$word") ;;
            *) COMPREPLY+=("${word// /\\\\ }") ;;
        esac
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
PLAIN = "_-./:@%+=, "
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
        for word in filter(_is_plain, suggestions(list(map(_unquoted, options.words)))):
            print(word)
    elif options.shell:
        print(SCRIPTS[options.shell], end="")
    else:
        print(SETUP, end="")
    return 0


def _unquoted(word: str) -> str:
    """A word as the shell reads it. It may be unfinished, as `"Blue po` or `Blue\\ po`."""
    return word[1:].removesuffix(word[0]) if word[:1] in ("'", '"') else re.sub(r"\\(.)", r"\1", word)


def _is_plain(word: str) -> bool:
    """Whether a shell takes it literally, but for blanks. A clone may have a file called `$(...)`, which runs."""
    return all(letter.isalnum() or letter in PLAIN for letter in word)


def suggestions(words: list[str]) -> list[str]:
    """What the last word may become, given the words before it."""
    typed, before = (words[-1], words[:-1]) if words else ("", [])
    return [word for word in _possible(typed, before) if word.startswith(typed)]


def _possible(typed: str, before: list[str]) -> Iterable[str]:
    name, rest = split_command(before)
    named = [word for word in rest if not word.startswith("-")]
    if not name:
        alone = [name for name in COMMANDS if " " not in name]
        return (*alone, *GROUPS, "--help", "--version", "--vault", "--data-dir")
    if name in GROUPS:
        return [command.partition(" ")[2] for command in COMMANDS if command.startswith(f"{name} ")]
    if name not in COMMANDS:
        return ()
    actions = make_parser(name)._actions  # pyright: ignore[reportPrivateUsage]
    chosen = next((action for action in actions if before[-1] in action.option_strings), None)
    if chosen is not None and chosen.nargs != 0:
        return _values(chosen, typed, before)
    if typed.startswith("-"):
        return sorted(option for action in actions for option in action.option_strings if option.startswith("--"))
    if name == "note restore":
        return _ask(before, lambda kb: _trashed(kb, typed))
    if name in ("config show", "config set", "config unset"):
        return [setting.name for setting in SETTINGS] if not named else _setting_values(name, named)
    if name == "skill" and named[:1] == ["show"]:
        return _ask(before, lambda kb: sorted({skill.name for skill in kb.skills.all()}))
    return [word for action in actions if not action.option_strings for word in _values(action, typed, before)]


def _values(action: argparse.Action, typed: str, before: list[str]) -> Iterable[str]:
    """What an argument may be. Which refs, tags and sources there are depends on the vault."""
    if action.dest == "ref" or action.metavar == "REF":
        return _ask(before, lambda kb: _refs(kb, typed))
    if action.dest == "tag" or action.metavar == "TAG":
        return _ask(before, lambda kb: list(kb.tags()))
    if action.metavar == "SOURCE":
        return _ask(before, lambda kb: [*OWN_SOURCES, *(origin.label for origin in kb.index.linked)])
    if action.dest == "category":
        return _ask(before, lambda kb: sorted({note.category for note in kb.notes() if note.category}))
    return action.choices or ()


def _setting_values(name: str, named: list[str]) -> Iterable[str]:
    """The values that a setting may have, as far as they can be listed."""
    setting = BY_NAME.get(named[0])
    if name != "config set" or setting is None or len(named) > 1:
        return ()
    if setting.name == "knowledge_embedding_provider":
        return (*LOCAL_SPACES, *DEFAULT_MODELS, *OTHER_NAMES, "none")
    return setting.choices


def _refs(kb: LocalKnowledgeBase, typed: str) -> list[str]:
    """The refs of the vault, and those of a source whose name is typed already; titles and paths for what is typed."""
    notes = kb.index.notes.all()
    found = [note.ref for note in notes]
    for origin in kb.index.linked:
        prefix, linked = f"{origin.tier}:" if origin.tier else "", kb.index.of(origin).notes.all() if typed else []
        found += [prefix + note.ref for note in linked] if typed.startswith(origin.label) else []
        notes += linked
    if typed:
        found += [name for note in notes for name in (note.title, note.path, *aliases_of(note))]
    return sorted({*found, *(origin.label for origin in kb.index.linked if not origin.tier)})


def _trashed(kb: LocalKnowledgeBase, typed: str) -> list[str]:
    trashed = kb.lookup().trashed()
    return sorted({note.ref for note in trashed} | {note.title for note in trashed if typed and not note.tier})


def _ask(words: list[str], question: Callable[[LocalKnowledgeBase], list[str]]) -> list[str]:
    """An answer from the vault that the words name; nothing if there is none."""
    named = dict(pairwise(words))
    with suppress(KnowledgeError), open_local(named.get("--vault"), named.get("--data-dir")) as kb:
        return question(kb)
    return []
