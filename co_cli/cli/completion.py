"""`co completion SHELL`: a script that asks `co completion --words` what may follow."""

from __future__ import annotations

import argparse

from co_cli.cli.app import COMMANDS, make_parser
from co_cli.errors import KnowledgeError

SCRIPTS = {
    "bash": """\
_co() {
    local IFS=$'\\n'
    COMPREPLY=($(compgen -W "$(co completion --words "${COMP_WORDS[@]:1:COMP_CWORD}" 2>/dev/null)" -- "${COMP_WORDS[COMP_CWORD]}"))
}
COMP_WORDBREAKS=${COMP_WORDBREAKS//:}
complete -o default -F _co co
""",
    "zsh": """\
#compdef co
_co() {
    local -a found
    found=("${(@f)$(co completion --words "${words[@]:1:$((CURRENT - 1))}" 2>/dev/null)}")
    compadd -a found
    _files
}
compdef _co co
""",
    "fish": """\
complete -c co -a '(co completion --words (commandline -opc)[2..] (commandline -ct) 2>/dev/null)'
""",
}
SETUP = """\
bash:  echo 'eval "$(co completion bash)"' >> ~/.bashrc
zsh:   echo 'eval "$(co completion zsh)"' >> ~/.zshrc      (after compinit)
fish:  co completion fish > ~/.config/fish/completions/co.fish
"""
WANT_REFS = ("show", "edit", "forget")


def add_completion(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("shell", nargs="?", choices=tuple(SCRIPTS), help="which shell")
    parser.add_argument("--words", nargs=argparse.REMAINDER, help=argparse.SUPPRESS)
    parser.epilog = SETUP
    parser.set_defaults(run=completion)


def completion(options: argparse.Namespace) -> int:
    if options.words is not None:
        for word in suggestions(options.words):
            print(word)
    elif options.shell:
        print(SCRIPTS[options.shell], end="")
    else:
        print(SETUP, end="")
    return 0


def suggestions(words: list[str]) -> list[str]:
    """What may stand in place of the last word, given those before it."""
    typed = words[-1] if words else ""
    before = [word for word in words[:-1] if not word.startswith("-")]
    if not before or before[0] not in COMMANDS:
        return [name for name in (*COMMANDS, "--help", "--version", "--vault", "--data-dir") if name.startswith(typed)]
    if typed.startswith("-"):
        parser = make_parser(before[0])
        known = [option for action in parser._actions for option in action.option_strings]  # pyright: ignore[reportPrivateUsage]
        return sorted(option for option in known if option.startswith(typed) and option.startswith("--"))
    if before[0] in WANT_REFS:
        return [ref for ref in _refs() if ref.startswith(typed)]
    return []


def _refs() -> list[str]:
    from co_cli.knowledge_base import KnowledgeBase

    try:
        with KnowledgeBase.open() as kb:
            return sorted(kb.index.titles())
    except KnowledgeError:
        return []  # completion must never get in the way of typing
