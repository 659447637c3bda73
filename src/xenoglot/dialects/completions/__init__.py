"""OpenAI's legacy Completions for text that continues a prompt, with the extensions of local model servers.

The wire is that of `POST /v1/completions` (https://developers.openai.com/api/docs/api-reference/completions); in
addition to it the fields of vLLM, llama.cpp and SGLang are understood.
"""

from __future__ import annotations

from xenoglot.codec.dialect import Dialect
from xenoglot.dialects.completions.extras import NAME
from xenoglot.dialects.completions.request.decoder import decode_request
from xenoglot.dialects.completions.request.encoder import encode_request
from xenoglot.dialects.completions.response import decode_response, encode_response
from xenoglot.dialects.completions.stream.decoder import StreamDecoder
from xenoglot.dialects.completions.stream.encoder import StreamEncoder
from xenoglot.dialects.openai.errors import decode_error, encode_error
from xenoglot.dialects.openai.models import decode_models, encode_model, encode_models
from xenoglot.dialects.openai.rate_limits import PREFIX, decode_limits, encode_limits
from xenoglot.dialects.openai.shared import FORWARD, OPERATIONS, authorize
from xenoglot.dialects.openai.stream_usage import STREAM_USAGE

COMPLETIONS = Dialect(
    name=NAME,
    path="/v1/completions",
    turns=False,
    forward=FORWARD,
    terminator=b"data: [DONE]\n\n",
    id_prefix="cmpl-",
    many_texts=True,
    fingerprint_field="system_fingerprint",
    timings_field="timings",
    stop_limit=4,
    decode_request=decode_request,
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
    operations=OPERATIONS,
)
"""The dialect `completions`."""
