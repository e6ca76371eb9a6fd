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
    "no model is configured: run `ollama pull qwen3` and `co config set model ollama:qwen3`, "
    "or choose another, such as openai:gpt-5"
)
FOR_PROGRAMMERS = re.compile(r" or pass it via `[^`]*`|\. To try .*")
MAX_LENGTH = 300


class UnusableModelError(KnowledgeError):
    """A model that is not configured, is unknown, or lacks its package or key."""


def load_model(name: str) -> Model:
    """The model of that name; without a known provider, as in `qwen3:8b`, Ollama's. Raises UnusableModelError."""
    from openai import AsyncOpenAI
    from pydantic_ai.models import infer_model
    from pydantic_ai.profiles import merge_profile
    from pydantic_ai.profiles.openai import OpenAIModelProfile
    from pydantic_ai.providers import infer_provider, infer_provider_class
    from pydantic_ai.providers.ollama import OllamaProvider

    def provide(provider: str) -> Any:
        if provider != "ollama":
            return infer_provider(provider)
        key = os.environ.get("OLLAMA_API_KEY") or "none"
        # without retries: a server that does not run does not start within a second either
        return OllamaProvider(openai_client=AsyncOpenAI(base_url=ollama_address(), api_key=key, max_retries=0))

    provider, _, rest = name.partition(":")
    try:
        try:
            infer_provider_class(provider if rest else "")
        except ValueError:
            name = f"ollama:{name}"
        model = infer_model(name, provide)
    except Exception as error:  # each provider reports a missing package or key in its own way
        reason = textwrap.shorten(FOR_PROGRAMMERS.sub("", str(error)), MAX_LENGTH, placeholder="…")
        raise UnusableModelError(f"{name} cannot be used: {reason}") from error
    # without this, an answer that breaks off counts as complete
    complete = OpenAIModelProfile(openai_chat_streaming_requires_finish_reason=True)
    model.profile = merge_profile(model.profile, complete)
    return model


def ollama_address() -> str:
    """OLLAMA_BASE_URL, else OLLAMA_HOST as Ollama's own tools read it, else this machine."""
    host = os.environ.get("OLLAMA_HOST", "").strip()
    url = urlsplit(host if "://" in host else f"http://{host}")
    name = url.hostname if url.hostname not in (None, "0.0.0.0") else "127.0.0.1"  # nobody can connect to 0.0.0.0
    port = url.port or (443 if url.scheme == "https" else 11434)
    return os.environ.get("OLLAMA_BASE_URL") or f"{url.scheme}://{name}:{port}/v1"


def problem_of(error: Exception, name: str, begun: bool) -> str:
    """What went wrong and how to fix it, on one line. `begun`: part of the answer had arrived."""
    from pydantic_ai.exceptions import AgentRunError, ModelAPIError, ModelHTTPError

    provider, _, model = name.partition(":")
    reason = textwrap.shorten(str(error), MAX_LENGTH, placeholder="…")
    match error:
        case ModelHTTPError(status_code=401 | 403 as status):
            return f"{provider} did not accept the key ({status}): check {provider.upper()}_API_KEY"
        case ModelHTTPError(status_code=404) if provider == "ollama":
            return f"Ollama does not have {model}: `ollama pull {model}`, or name its provider, as in openai:gpt-5"
        case ModelAPIError() if provider == "ollama" and not (begun or isinstance(error, ModelHTTPError)):
            return f"cannot reach Ollama at {ollama_address()}: start it with `ollama serve`, or set OLLAMA_BASE_URL"
        case AgentRunError():
            return f"{name} gave no complete answer: ask again, or choose another model ({reason})"
        case _:
            logger("chat").error("a question failed", exc_info=error)
            return f"{name}: {type(error).__name__}: {reason}{in_log()}"
