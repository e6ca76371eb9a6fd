"""Turn a model's name into a model, and a model's error into one line that says how to fix it."""

from __future__ import annotations

import os
import re
import textwrap
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from co_cli.errors import KnowledgeError
from co_cli.logbook import in_log, logger

if TYPE_CHECKING:
    from pydantic_ai.models import Model

NO_MODEL = (
    "no model is configured: run `ollama pull qwen3`, then use --model ollama:qwen3, /model ollama:qwen3 or "
    "CO_MODEL=ollama:qwen3 (openai:gpt-5 and others work as well)"
)
OTHER = "choose another model (/model or --model)"
FOR_PROGRAMMERS = re.compile(r" or pass it via `[^`]*`|\. To try .*")
MAX_LENGTH = 300


class UnusableModelError(KnowledgeError):
    """A model that is not configured, is unknown, or lacks its package or key."""


def full_name(name: str) -> str:
    """Add `ollama:` to a name without a known provider, such as `qwen3` or `qwen3:8b`."""
    from pydantic_ai.providers import infer_provider_class

    provider, _, model = name.partition(":")
    try:
        infer_provider_class(provider if model else "")
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
    except Exception as error:  # each provider reports a missing package or key in its own way
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
    name = url.hostname if url.hostname not in (None, "0.0.0.0") else "127.0.0.1"  # nobody can connect to 0.0.0.0
    return f"{url.scheme}://{name}:{url.port or (443 if url.scheme == 'https' else 11434)}/v1"


def problem_of(error: Exception, name: str, begun: bool = False) -> str:
    """What went wrong and how to fix it, on one line. `begun`: part of the answer had arrived."""
    from pydantic_ai.exceptions import ModelAPIError, ModelHTTPError, UnexpectedModelBehavior, UsageLimitExceeded

    provider, _, model = name.partition(":")
    reason = _one_line(str(error))
    match error:
        case ModelHTTPError(status_code=401 | 403 as status):
            return f"{provider} did not accept the key ({status}): check {provider.upper()}_API_KEY"
        case ModelHTTPError(status_code=404) if provider == "ollama":
            return f"Ollama does not have {model}: `ollama pull {model}`, or name its provider, as in openai:gpt-5"
        case ModelHTTPError(status_code=status):
            return f"{name} answered with status {status}: ask again later, /clear, or {OTHER} ({reason})"
        case ModelAPIError() if begun:
            return f"the connection to {name} broke off in the middle of the answer: ask again"
        case ModelAPIError() if provider == "ollama":
            return f"cannot reach {name} at {ollama_address()}: start it with `ollama serve`, or set OLLAMA_BASE_URL"
        case ModelAPIError() | UsageLimitExceeded() | UnexpectedModelBehavior():
            return f"{name} gave no usable answer ({reason}): ask again, or {OTHER}"
        case _:
            logger("chat").error("a question failed", exc_info=error)
            return f"{name}: {type(error).__name__}: {reason}{in_log()}"


def _one_line(text: str) -> str:
    return textwrap.shorten(text, MAX_LENGTH, placeholder="…")
