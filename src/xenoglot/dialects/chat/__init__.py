"""OpenAI Chat Completions, with the extensions of servers that implement it.

The wire is that of `POST /v1/chat/completions` (https://developers.openai.com/api/docs/api-reference/chat); in addition
the fields of vLLM, llama.cpp, Ollama, SGLang, OpenRouter, DeepSeek and Mistral are understood.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from xenoglot.codec.dialect import Dialect
from xenoglot.dialects.chat.extras import NAME
from xenoglot.dialects.chat.fast.usage_scan import glimpse
from xenoglot.dialects.chat.request.decoder import decode_request
from xenoglot.dialects.chat.request.encoder import encode_request
from xenoglot.dialects.chat.request.fields import NAME_LIMIT
from xenoglot.dialects.chat.response import decode_response, encode_response
from xenoglot.dialects.chat.stored import STATE
from xenoglot.dialects.chat.stream.decoder import StreamDecoder
from xenoglot.dialects.chat.stream.encoder import StreamEncoder
from xenoglot.dialects.chat.tokenize import TOKENIZER
from xenoglot.dialects.openai.batch_paths import BATCHING, FILES
from xenoglot.dialects.openai.errors import decode_error, encode_error
from xenoglot.dialects.openai.forwarded_paths import FORWARDED_PATHS
from xenoglot.dialects.openai.models import decode_models, encode_model, encode_models
from xenoglot.dialects.openai.rate_limits import PREFIX, decode_limits, encode_limits
from xenoglot.dialects.openai.shared import (
    FORWARD,
    MARKS,
    OPERATIONS,
    authorize,
)
from xenoglot.dialects.openai.stream_usage import STREAM_USAGE

if TYPE_CHECKING:
    from xenoglot.model.json import JSONObject


def encode_count(input_tokens: int) -> JSONObject:
    """Return a count as llama-server gives it (`tools/server/server-context.cpp`): in the form of Responses."""
    return {"object": "response.input_tokens", "input_tokens": input_tokens}


CHAT = Dialect(
    name=NAME,
    other_names=("openai",),
    path="/v1/chat/completions",
    count_aliases=("/v1/chat/completions/input_tokens",),
    marks=MARKS,
    forward=FORWARD,
    tool_name_limit=NAME_LIMIT,
    terminator=b"data: [DONE]\n\n",
    id_prefix="chatcmpl-",
    stop_limit=4,
    fingerprint_field="system_fingerprint",
    timings_field="timings",
    decode_request=decode_request,
    glimpse=glimpse,
    encode_request=encode_request,
    decode_response=decode_response,
    encode_response=encode_response,
    stream_decoder=StreamDecoder,
    stream_encoder=StreamEncoder,
    decode_error=decode_error,
    encode_error=encode_error,
    decode_limits=decode_limits,
    limits_prefix=PREFIX,
    encode_limits=encode_limits,
    authorize=authorize,
    usage_expected="requested",
    stream_usage=STREAM_USAGE,
    decode_models=decode_models,
    encode_models=encode_models,
    encode_model=encode_model,
    decode_count=decode_request,
    encode_count=encode_count,
    state=STATE,
    operations=(*OPERATIONS, *TOKENIZER),
    forwarded_paths=FORWARDED_PATHS,
    batching=BATCHING,
    files=(FILES,),
)
"""The dialect `chat`."""
