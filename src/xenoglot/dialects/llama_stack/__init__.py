"""The inference API of Llama Stack (version 0.2): chat completion, and text completion.

Source: https://github.com/llamastack/llama-stack (MIT) at commit b8f1561956,
`llama_stack/apis/inference/inference.py` and `docs/_static/llama-stack-spec.yaml`; the client is
llama-stack-client 0.2 on PyPI.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec.structs import replace

from xenoglot.codec.dialect import Dialect, ModelEndpoint
from xenoglot.dialects.llama_stack import completions
from xenoglot.dialects.llama_stack.embeddings import FORM
from xenoglot.dialects.llama_stack.errors import decode_error, encode_error
from xenoglot.dialects.llama_stack.extras import (
    COMPLETION,
    MARKS,
    NAME,
    authorize,
    decode_limits,
    decode_models,
    encode_limits,
    encode_model,
    encode_models,
)
from xenoglot.dialects.llama_stack.request.decoder import decode_request
from xenoglot.dialects.llama_stack.request.encoder import encode_request
from xenoglot.dialects.llama_stack.response import decode_response, encode_response
from xenoglot.dialects.llama_stack.stream import completion_stream
from xenoglot.dialects.llama_stack.stream.decoder import StreamDecoder
from xenoglot.dialects.llama_stack.stream.encoder import stream_encoder
from xenoglot.dialects.llama_stack.tools import NAME_LIMIT

if TYPE_CHECKING:
    from collections.abc import Sequence

    from xenoglot.model.catalog import ModelInfo
    from xenoglot.model.json import JSON, JSONObject

VERSION = "0.2.12"
"""The newest version of Llama Stack whose API is known here."""


def tell_health(asked: JSONObject, models: Sequence[ModelInfo]) -> JSON:  # noqa: ARG001  the shape of an inquiry
    """Return what `client.inspect.health()` reads (`types/health_info.py` of the SDK)."""
    return {"status": "OK"}


def tell_version(asked: JSONObject, models: Sequence[ModelInfo]) -> JSON:  # noqa: ARG001  the shape of an inquiry
    """Return what `client.inspect.version()` reads: the version whose API is served (`types/version_info.py`)."""
    return {"version": VERSION}


LLAMA_STACK = Dialect(
    name=NAME,
    path="/v1/inference/chat-completion",
    also=(COMPLETION,),
    model_field="model_id",
    inquiries=(
        ModelEndpoint(method="GET", path="/v1/health", answer=tell_health, policy="open"),
        ModelEndpoint(method="GET", path="/v1/version", answer=tell_version, policy="open"),
    ),
    marks=MARKS,
    mirrors=("/v1/openai/v1",),
    tool_name_limit=NAME_LIMIT,
    stop_limit=4,
    decode_request=decode_request,
    encode_request=encode_request,
    decode_response=decode_response,
    encode_response=encode_response,
    stream_decoder=StreamDecoder,
    stream_encoder=stream_encoder,
    decode_error=decode_error,
    encode_error=encode_error,
    decode_limits=decode_limits,
    limits_prefix=None,
    encode_limits=encode_limits,
    authorize=authorize,
    decode_models=decode_models,
    encode_models=encode_models,
    encode_model=encode_model,
    operations=(FORM,),
)
"""The dialect `llama_stack`."""

LLAMA_STACK_COMPLETION = replace(
    LLAMA_STACK,
    name=COMPLETION,
    path="/v1/inference/completion",
    also=(),
    turns=False,
    inquiries=(),
    mirrors=(),
    decode_request=completions.decode_request,
    encode_request=completions.encode_request,
    decode_response=completions.decode_response,
    encode_response=completions.encode_response,
    stream_decoder=completion_stream.StreamDecoder,
    stream_encoder=completion_stream.stream_encoder,
)
"""The dialect `llama_stack_completion`."""
