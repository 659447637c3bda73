"""Values that the records of OpenAI's dialects share: API key header, lists of models, marks and headers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from xenoglot.codec.reader import Reader
from xenoglot.model.catalog import ModelInfo

if TYPE_CHECKING:
    from collections.abc import Sequence

    from xenoglot.codec.dialect import Headers
    from xenoglot.model.json import JSON, JSONObject

MARKS = ("openai-organization", "openai-project", "openai-beta")
FORWARD = ("openai-beta", "x-client-request-id", "http-referer", "x-title")


def authorize(key: str | None) -> Headers:
    """Return the header that carries the key, if there is one."""
    return () if key is None else (("authorization", f"Bearer {key}"),)


_WINDOWS: Final = ("context_length", "max_model_len", "context_window", "max_context_length")
"""What servers call the context window: OpenRouter and Together, vLLM and SGLang, Groq, Mistral and LM Studio."""


def decode_models(body: JSON) -> tuple[ModelInfo, ...]:
    """Return the models of a list; see `encode_model` for its fields.

    Raises:
        WireError: it is no list of objects.
    """
    return tuple(
        ModelInfo(
            id=name,
            display_name=item.take_if("name", str),
            created=item.count("created") or None,
            owned_by=item.take_if("owned_by", str) or None,
            max_input_tokens=next(filter(None, map(item.count, _WINDOWS)), None),
        )
        for item in Reader(body).objects("data")
        if (name := item.take_if("id", str)) is not None
    )


def encode_model(model: ModelInfo) -> JSONObject:
    """Return one entry of the list of models; the wire requires `created` and `owned_by`, so unknown is 0 and empty.

    `name` and `context_length` are OpenRouter's (https://openrouter.ai/docs/api-reference/list-available-models).
    """
    known = {"name": model.display_name, "context_length": model.max_input_tokens}
    return {
        "id": model.id,
        "object": "model",
        "created": model.created or 0,
        "owned_by": model.owned_by or "",
    } | {key: value for key, value in known.items() if value is not None}


def encode_models(models: Sequence[ModelInfo]) -> JSONObject:
    """Return the list of models."""
    return {"object": "list", "data": [encode_model(model) for model in models]}
