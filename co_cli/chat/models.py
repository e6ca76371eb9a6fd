"""Turn a model's name into a model, and a model's error into one line that says how to fix it."""

from __future__ import annotations

import os
import re
from typing import TYPE_CHECKING, Any, cast
from urllib.parse import urlsplit

from co_cli.embedding.remote import key_variables
from co_cli.errors import KnowledgeError
from co_cli.logbook import in_log, logger

if TYPE_CHECKING:
    from pydantic_ai.models import Model

HOW_TO_GET_ONE = """\
No model is configured. `ollama pull qwen3` gets one that runs on this machine.
Then set CO_MODEL=ollama:qwen3, or model = "ollama:qwen3" in your settings.toml,
or run `co chat --model ollama:qwen3`. openai:gpt-5 and others work as well.
"""
OTHER = "choose another model (/model or --model)"
FOR_PROGRAMMERS = re.compile(r" or pass it via `[^`]*`|\. To try .*")
MAX_LENGTH = 300


class UnusableModelError(KnowledgeError):
    """A model that was not named, is not known, or lacks its package or its key."""


class NoAnswerError(KnowledgeError):
    """A model that did not answer."""

    exit_code = 3


def full_name(name: str) -> str:
    """Add `ollama:` to a name without a provider, such as `qwen3` or `qwen3:8b`."""
    from pydantic_ai.providers import infer_provider_class

    provider, colon, rest = name.partition(":")
    if not colon or not rest:
        return f"ollama:{name.rstrip(':')}" if name != "test" else name
    try:
        infer_provider_class(provider)
    except ValueError:
        return f"ollama:{name}"
    except ImportError:
        pass  # load_model says which package is missing
    return name


def load_model(name: str) -> Model:
    """The model of that name. Raises UnusableModelError with the fix."""
    from pydantic_ai.models import infer_model
    from pydantic_ai.profiles import merge_profile
    from pydantic_ai.profiles.openai import OpenAIModelProfile
    from pydantic_ai.providers import infer_provider
    from pydantic_ai.providers.ollama import OllamaProvider

    def provide(provider: str) -> Any:
        return OllamaProvider(base_url=ollama_address()) if provider == "ollama" else infer_provider(provider)

    try:
        model = infer_model(full_name(name), provide)
    except Exception as error:  # every provider has its own way to say that a package or a key is missing
        raise UnusableModelError(f"{name} cannot be used: {_one_line(FOR_PROGRAMMERS.sub('', str(error)))}") from error
    # without this, an answer that breaks off counts as complete
    complete = OpenAIModelProfile(openai_chat_streaming_requires_finish_reason=True)
    model.profile = merge_profile(model.profile, complete)
    return model


def ollama_address() -> str:
    """OLLAMA_BASE_URL, else OLLAMA_HOST as Ollama's own tools read it, else this machine."""
    if given := os.environ.get("OLLAMA_BASE_URL"):
        return given
    host = os.environ.get("OLLAMA_HOST", "").strip()
    url = urlsplit(host if "://" in host else f"http://{host}")
    name = url.netloc.removesuffix(f":{url.port}")
    name = "127.0.0.1" if name in ("", "0.0.0.0") else name  # a server can listen at 0.0.0.0, a client cannot ask there
    return f"{url.scheme}://{name}:{url.port or (443 if url.scheme == 'https' else 11434)}/v1"


def problem_of(error: Exception, name: str, begun: bool = False) -> str:
    """What went wrong and how to fix it, on one line. `begun`: a part of the answer was there already."""
    from pydantic_ai.exceptions import ModelAPIError, ModelHTTPError, UnexpectedModelBehavior, UsageLimitExceeded

    provider, _, model = name.partition(":")
    ollama = provider == "ollama"
    said = _one_line(str(error))
    match error:
        case KnowledgeError():
            return said
        case ModelHTTPError(status_code=401 | 403 as status):
            return f"{provider} did not accept the key ({status}): check {' or '.join(key_variables(provider))}"
        case ModelHTTPError(status_code=404) if ollama:
            return f"Ollama does not have {model}: `ollama pull {model}`, or name its provider, as in openai:gpt-5"
        case ModelHTTPError(status_code=status, body=body):
            retry = status == 429 or status >= 500
            fix = f"ask again later, or {OTHER}" if retry else f"{OTHER}, or shorten the conversation with /clear"
            return f"{name} answered with status {status}: {fix}{_quoted(body)}"
        case ModelAPIError() if begun:
            return f"the connection to {name} broke off in the middle of the answer: ask again"
        case ModelAPIError() if ollama:
            return f"cannot reach {name} at {ollama_address()}: start it with `ollama serve`, or set OLLAMA_BASE_URL"
        case ModelAPIError():
            return f"cannot reach {name} ({said}): check the network, and ask again"
        case UsageLimitExceeded() | UnexpectedModelBehavior():
            return f"{name} gave no usable answer ({said}): ask again, or {OTHER}"
        case _:
            logger("chat").error("a question failed", exc_info=error)
            return f"{name}: {type(error).__name__}: {said}{in_log()}"


def _quoted(body: Any) -> str:
    """What the server said, if it said something."""
    for key in ("error", "message"):
        body = cast("dict[str, Any]", body).get(key, body) if isinstance(body, dict) else body
    return f" (it said: {_one_line(body)})" if isinstance(body, str) and body.strip() else ""


def _one_line(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= MAX_LENGTH else line[: MAX_LENGTH - 1] + "…"
