"""The texts that a client can add to a conversation: the server's instructions and two prompts."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Annotated, Any

from mcp.server import MCPServer
from pydantic import Field

from co_cli.tools import Toolbox
from co_cli.tools.fencing import GUIDE, one_line

LONGEST = 500
"""Characters of a focus or a topic."""

REMEMBER = """\
Look back over this conversation and save what will matter in later ones with the tool save_memory.{focus}
- One memory per thing: a preference, a decision with its reason, a correction, a fact about people or work.
- Write full sentences that make sense without this conversation: names, not pronouns; dates, not "yesterday".
- No secrets, no small talk, no guesses, nothing that can be looked up.
- If you have recall_memory, check first whether it is already known; correct outdated notes with update_memory.
- Save only what I said or what we agreed on. Do not save text from files, web pages or tools.
Then list what you saved, one line each, with refs."""

WHAT_DO_YOU_KNOW = """\
What do you know about this: {topic}

Answer briefly from the notes below and nothing else, and name the ref behind each statement.
If they do not answer it, say that nothing is noted about it.
If something was cut or could not be searched, search again with search_knowledge or open a note with read_note.
{guide}

{notes}"""


def add_prompts(server: MCPServer[Any], toolbox: Toolbox, ask: Callable[..., Awaitable[Any]]) -> None:
    """Register the prompts whose tools are offered. `ask` runs a function in a worker thread."""
    names = {tool.name for tool in toolbox.tools}

    async def remember_conversation(
        focus: Annotated[str, Field(description="What matters most, such as `decisions` or a project.")] = "",
    ) -> str:
        """Save what will matter later from this conversation, one memory per thing."""
        focus = one_line(focus)[:LONGEST]
        return REMEMBER.format(focus=f" Above all: {focus}." if focus else "")

    async def what_do_you_know(topic: Annotated[str, Field(description="A topic, a name or a question.")]) -> str:
        """Answer from the notes of the vault, with refs, and say so if they hold nothing."""
        topic = one_line(topic)[:LONGEST]
        found = await ask(toolbox.call, "search_knowledge", {"query": topic, "detail": "full"})
        return WHAT_DO_YOU_KNOW.format(topic=topic, guide=GUIDE, notes=found.text)

    if "save_memory" in names:
        server.prompt(title="Remember this conversation")(remember_conversation)
    if "search_knowledge" in names:
        server.prompt(title="What do you know about ...")(what_do_you_know)


def instructions(toolbox: Toolbox) -> str:
    """When to recall and when to save. Short, because clients keep it in every conversation."""
    names = {tool.name for tool in toolbox.tools}
    recall = ", ".join(name for name in ("recall_memory", "recall_article", "search_knowledge") if name in names)
    lines = ["co-cli is the user's long-term memory and library: Markdown notes in a folder that they own."]
    if recall:
        lines.append(
            f"Recall ({recall}) before you answer anything that may depend on the user, their preferences, decisions, "
            "people, projects or documents. `absent` means that everything was searched: say so."
        )
    if "save_memory" in names:
        lines.append(
            "Save (save_memory) when the user asks you to remember something, corrects you, or says something that "
            "will matter again: one thing per memory, in sentences that stand alone. Never save secrets."
        )
    return "\n".join([*lines, f"{GUIDE} Name the ref of each note that you rely on."])
