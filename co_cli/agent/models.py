"""Turn a model's name into a model, and a model's error into one line that says how to fix it."""

from __future__ import annotations

import os
import re
import textwrap
from difflib import get_close_matches
from functools import partial
from typing import TYPE_CHECKING, Any, get_args
from urllib.parse import urlsplit

from co_cli.embedding.remote_embedders import NEXT_KEY, keys_of
from co_cli.ground.errors import KnowledgeError
from co_cli.notes.logbook import in_log, logger

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pydantic_ai.models import Model

NO_MODEL = (
    "no model is configured: with Ollama, run `ollama pull qwen3` and `co config set model ollama:qwen3`; "
    "or choose another, such as openai:gpt-5"
)
FOR_PROGRAMMERS = re.compile(r" or pass it via `[^`]*`|\. To try .*")
MAX_LENGTH = 300
OLLAMA_TAG = re.compile(r"latest$|\d")
"""What follows the name of one of Ollama's models, as in `qwen3:8b`."""


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

    def provide(provider: str, key: str | None = None) -> Any:
        if provider != "ollama":
            kind: Any = infer_provider_class(provider)
            return kind(api_key=key) if key else infer_provider(provider)
        key = os.environ.get("OLLAMA_API_KEY") or "none"
        # without retries: a server that does not run does not start within a second either
        return OllamaProvider(openai_client=AsyncOpenAI(base_url=ollama_address(), api_key=key, max_retries=0))

    provider, _, rest = name.partition(":")
    try:
        try:
            infer_provider_class(provider if rest else "")
        except ValueError:
            _refuse_misspelled(provider, rest)
            name = f"ollama:{name}"
        several = keys_of(name.partition(":")[0])
        keys = several if len(several) > 1 and not name.startswith("ollama:") else [None]
        models = [infer_model(name, partial(provide, key=key)) for key in keys]
    except UnusableModelError:
        raise
    except Exception as error:  # each provider reports a missing package or key in its own way
        reason = textwrap.shorten(FOR_PROGRAMMERS.sub("", str(error)), MAX_LENGTH, placeholder="…")
        raise UnusableModelError(f"{name} cannot be used: {reason}") from error
    # without this, an answer that breaks off counts as complete
    complete = OpenAIModelProfile(openai_chat_streaming_requires_finish_reason=True)
    for model in models:
        model.profile = merge_profile(model.profile, complete)
    return models[0] if len(models) == 1 else _with_several_keys(models)


def _with_several_keys(models: Sequence[Model]) -> Model:
    """One model with each of its keys in turn: the next after a status that says that one cannot be used now."""
    from pydantic_ai.models.fallback import FallbackModel

    class KeyedModel(FallbackModel):
        """Is called what the model is called."""

        @property
        def model_name(self) -> str:
            return models[0].model_name

        @property
        def system(self) -> str:
            return models[0].system

    return KeyedModel(*models, fallback_on=lambda error: getattr(error, "status_code", None) in NEXT_KEY)


def _refuse_misspelled(provider: str, model: str) -> None:
    """Raise UnusableModelError for `opanai:gpt-5`. What has a tag, as `mixtral:8x7b` does, is a model of Ollama's."""
    from pydantic_ai.models import KnownModelName

    if not model or OLLAMA_TAG.match(model):
        return
    known: tuple[str, ...] = get_args(getattr(KnownModelName, "__value__", KnownModelName))
    close = get_close_matches(provider, {name.partition(":")[0] for name in known}, n=1, cutoff=0.8)
    if close:
        fix = f"did you mean {close[0]}:{model}? If it is one of Ollama's models, it is ollama:{provider}:{model}"
        raise UnusableModelError(f"there is no provider {provider!r}: {fix}")


def ollama_address() -> str:
    """OLLAMA_BASE_URL, else OLLAMA_HOST as Ollama's own tools read it, else this machine."""
    host = os.environ.get("OLLAMA_HOST", "").strip()
    url = urlsplit(host if "://" in host else f"http://{host}")
    name = url.hostname if url.hostname not in (None, "0.0.0.0") else "127.0.0.1"  # nobody can connect to 0.0.0.0
    port = url.port or (443 if url.scheme == "https" else 11434)
    return os.environ.get("OLLAMA_BASE_URL") or f"{url.scheme}://{name}:{port}/v1"


def problem_of(error: Exception, name: str, begun: bool) -> str:
    """What went wrong and how to fix it, on one line. `begun`: part of the answer had arrived."""
    from pydantic_ai.exceptions import AgentRunError, FallbackExceptionGroup, ModelAPIError, ModelHTTPError

    if isinstance(error, FallbackExceptionGroup):  # of several keys
        error = error.exceptions[-1]
    provider, _, model = name.partition(":")
    reason = textwrap.shorten(str(error), MAX_LENGTH, placeholder="…")
    match error:
        case ModelHTTPError(status_code=401 | 403 as status):
            return f"{provider} did not accept the key ({status}): check {provider.upper()}_API_KEY"
        case ModelHTTPError(status_code=404) if provider == "ollama":
            return f"Ollama does not have {model}: `ollama pull {model}`, or name its provider, as in openai:gpt-5"
        case ModelHTTPError(status_code=404) if provider == "openai" and os.environ.get("OPENAI_BASE_URL"):
            address = os.environ["OPENAI_BASE_URL"]
            return (
                f"{address} does not have {model}: check its name, and for other servers than OpenAI's use openai-chat:"
            )
        case ModelAPIError() if provider == "ollama" and not (begun or isinstance(error, ModelHTTPError)):
            where = f"cannot reach Ollama at {ollama_address()}"
            return f"{where} for {model}: start it with `ollama serve`, set OLLAMA_BASE_URL, or name another provider"
        case ModelAPIError() if not (begun or isinstance(error, ModelHTTPError)):
            variable = f"{provider.partition('-')[0].upper()}_BASE_URL"
            address = os.environ.get(variable)
            at, fix = (f" at {address}", f", or correct {variable}") if address else ("", "")
            return f"cannot reach {provider}{at}: check the network{fix} ({reason})"
        case AgentRunError():
            return f"{name} gave no complete answer: ask again, or choose another model ({reason})"
        case _:
            logger("chat").error("a question failed", exc_info=error)
            return f"{name}: {type(error).__name__}: {reason}{in_log()}"
