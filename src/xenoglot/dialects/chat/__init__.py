"""OpenAI Chat Completions, and what the servers that speak it have added to it.

The wire is that of `POST /v1/chat/completions` (https://developers.openai.com/api/docs/api-reference/chat); besides it
the fields of vLLM, llama.cpp, Ollama, SGLang, OpenRouter, DeepSeek and Mistral are understood.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from xenoglot.codec.dialect import Dialect
from xenoglot.codec.reader import Reader
from xenoglot.dialects.chat.decoder import StreamDecoder
from xenoglot.dialects.chat.encoder import StreamEncoder
from xenoglot.dialects.chat.error import decode_error, encode_error
from xenoglot.dialects.chat.leftovers import NAME
from xenoglot.dialects.chat.limits import decode_limits, encode_limits
from xenoglot.dialects.chat.request_decoder import decode_request
from xenoglot.dialects.chat.request_encoder import encode_request
from xenoglot.dialects.chat.response import decode_response, encode_response
from xenoglot.dialects.chat.tools import NAME_LIMIT
from xenoglot.model.catalog import ModelInfo

if TYPE_CHECKING:
    from collections.abc import Sequence

    from xenoglot.codec.dialect import Headers
    from xenoglot.model.json import JSON, JSONObject


def authorize(key: str | None) -> Headers:
    """Return the header that carries the key, if there is one."""
    return () if key is None else (("authorization", f"Bearer {key}"),)


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
            max_input_tokens=item.count("context_length"),
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


CHAT = Dialect(
    name=NAME,
    path="/v1/chat/completions",
    marks=("openai-organization", "openai-project", "openai-beta"),
    forward=("openai-beta", "x-client-request-id", "http-referer", "x-title"),
    tool_name_limit=NAME_LIMIT,
    id_prefix="chatcmpl-",
    decode_request=decode_request,
    encode_request=encode_request,
    decode_response=decode_response,
    encode_response=encode_response,
    stream_decoder=StreamDecoder,
    stream_encoder=StreamEncoder,
    decode_error=decode_error,
    encode_error=encode_error,
    decode_limits=decode_limits,
    encode_limits=encode_limits,
    authorize=authorize,
    decode_models=decode_models,
    encode_models=encode_models,
    encode_model=encode_model,
)
"""The dialect `chat`."""
