"""The name of a model into one that can be asked, and what went wrong with it into one line with the cure."""

from __future__ import annotations

import os
import re
from typing import TYPE_CHECKING, Any

from co_cli.embedding.remote_keys import key_variables
from co_cli.errors import KnowledgeError

if TYPE_CHECKING:
    from pydantic_ai.models import Model

HOW_TO_GET_ONE = """\
No model is configured. `ollama pull qwen3` gets one that runs on this machine.
Then set CO_MODEL=ollama:qwen3, or model = "ollama:qwen3" in your settings.toml,
or run `co chat --model ollama:qwen3`. openai:gpt-5 and others work as well.
"""
OLLAMA = "http://127.0.0.1:11434"
ELSEWHERE = {"gpt-4": "openai", "gpt-5": "openai", "claude-": "anthropic", "gemini-": "google"}
OTHER = "choose another model (/model or --model)"
LONGEST = 300


ASIDE = re.compile(r" or pass it via `[^`]*`|\. To try .*")
"""What a library tells programmers, and a person in a chat cannot do."""


class UnusableModelError(KnowledgeError):
    """A model that was not named, is not known, or lacks its package or its key."""


class NoAnswerError(KnowledgeError):
    """A model that did not answer."""

    exit_code = 3


def full_name(name: str) -> str:
    """`qwen3` and `qwen3:8b` are Ollama's; a name with a provider stays as it is."""
    from pydantic_ai.providers import infer_provider_class

    provider, colon, rest = name.partition(":")
    if not colon or not rest:
        return f"ollama:{name.rstrip(':')}" if name != "test" else name
    try:
        infer_provider_class(provider)
    except ValueError:
        return f"ollama:{name}"
    except ImportError:
        return name  # a provider whose package is missing: asking it says which
    return name


def load_model(name: str) -> Model:
    """The model of that name. Raises UnusableModelError with the cure."""
    from pydantic_ai.exceptions import UserError
    from pydantic_ai.models import infer_model
    from pydantic_ai.providers import infer_provider

    def provide(provider: str) -> Any:
        if provider == "ollama" and not os.environ.get("OLLAMA_BASE_URL"):
            from pydantic_ai.providers.ollama import OllamaProvider

            return OllamaProvider(base_url=ollama_address())
        return infer_provider(provider)

    try:
        return infer_model(full_name(name), provide)
    except (UserError, ImportError, ValueError) as error:
        raise UnusableModelError(f"{name} cannot be used: {_one_line(ASIDE.sub('', str(error)))}") from None
    except Exception as error:
        keys = [key for key in key_variables(full_name(name).partition(":")[0]) if os.environ.get(key) == ""]
        if not keys:
            raise
        raise UnusableModelError(f"{name} cannot be used: {keys[0]} is set, but empty: give it a key") from error


def ollama_address() -> str:
    """Where pydantic-ai finds Ollama: OLLAMA_BASE_URL, else OLLAMA_HOST, else this machine."""
    given = os.environ.get("OLLAMA_BASE_URL")
    if given:
        return given
    host = os.environ.get("OLLAMA_HOST", "").strip().rstrip("/") or OLLAMA
    scheme, marks, rest = host.partition("://")
    if not marks:
        scheme, rest = "http", host
    name, colon, port = rest.rpartition(":")
    if not colon or not port.isdigit():
        name, port = rest, "11434" if scheme == "http" else "443"
    if name in ("", "0.0.0.0"):  # where the server listens is not where a client asks
        name = "127.0.0.1"
    return f"{scheme}://{name}:{port}/v1"


def problem_of(error: Exception, name: str, begun: bool = False) -> str:
    """What went wrong, and the cure, on one line. `begun`: in the middle of an answer."""
    from pydantic_ai.exceptions import ModelAPIError, ModelHTTPError, UnexpectedModelBehavior, UsageLimitExceeded

    provider, _, model = name.partition(":")
    if isinstance(error, KnowledgeError):
        return _one_line(str(error))
    if isinstance(error, ModelHTTPError):
        return _refused(error, provider, model)
    if isinstance(error, ModelAPIError) and begun:
        return f"the connection to {name} broke off in the middle of the answer: ask again"
    if isinstance(error, ModelAPIError):
        return _unreachable(error, provider, name)
    if isinstance(error, UsageLimitExceeded):
        return f"{name} went on for too long ({_one_line(str(error))}): ask for less at once"
    if isinstance(error, UnexpectedModelBehavior):
        return f"{name} gave no answer that can be used ({_one_line(str(error))}): ask again, or {OTHER}"
    return f"{name}: {type(error).__name__}: {_one_line(str(error))}"


def is_unexpected(error: Exception) -> bool:
    """Is it neither a mistake with a cure nor the model's or its service's doing?"""
    from pydantic_ai.exceptions import ModelAPIError, UnexpectedModelBehavior, UsageLimitExceeded

    return not isinstance(error, (KnowledgeError, ModelAPIError, UnexpectedModelBehavior, UsageLimitExceeded))


def _refused(error: Any, provider: str, model: str) -> str:
    said = _said(error.body)
    match error.status_code:
        case 401 | 403:
            key = " or ".join(key_variables(provider))
            return f"{provider} did not accept the key ({error.status_code}): check {key}"
        case 404 if provider == "ollama":
            return f"Ollama does not have {model}: `ollama pull {model}`, or {OTHER}{_elsewhere(model)}{said}"
        case 404:
            return f"{provider} does not know the model {model}: {OTHER}{said}"
        case 429:
            wait = getattr(error, "retry_after", None)
            when = f"in {wait:g} s" if wait else "in a while"
            return f"{provider} says that it is too much at once (429): ask again {when}, or {OTHER}{said}"
        case 400 | 413 | 422:
            long = "if the conversation grew too long, /clear begins anew"
            return f"{provider}:{model} refused the request ({error.status_code}); {long}{said}"
        case status if status >= 500:
            return f"{provider} is in trouble ({status}): ask again in a while{said}"
        case status:
            return f"{provider}:{model} answered with status {status}{said}"


def _unreachable(error: Any, provider: str, name: str) -> str:
    if provider == "ollama":
        cure = "start Ollama (`ollama serve`), or set OLLAMA_BASE_URL"
        return f"nobody answers at {ollama_address()} for {name}: {cure}{_elsewhere(name)}"
    return f"{name} cannot be reached ({_one_line(str(error))}): check the network, and ask again"


def _elsewhere(name: str) -> str:
    """A bare name is Ollama's. Whose it is known to be instead."""
    model = name.removeprefix("ollama:")
    whose = next((provider for start, provider in ELSEWHERE.items() if model.startswith(start)), None)
    return f"; or did you mean {whose}:{model}?" if whose else ""


def _said(body: object) -> str:
    """The server's own words, where it has some: they are quoted last."""
    message: Any = body
    for key in ("error", "message"):
        if isinstance(message, dict) and key in message:
            message = message[key]  # pyright: ignore[reportUnknownVariableType]
    return f" (it said: {_one_line(message)})" if isinstance(message, str) and message.strip() else ""


def _one_line(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= LONGEST else line[: LONGEST - 1] + "…"
