"""Ollama's native API (https://docs.ollama.com/api): chat, and generation from one prompt."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from msgspec.structs import replace

from xenoglot.codec.dialect import Dialect
from xenoglot.codec.framing.formats import JSON_LINES
from xenoglot.dialects.ollama.embeddings import FORMS
from xenoglot.dialects.ollama.errors import decode_error, encode_error
from xenoglot.dialects.ollama.extras import CHAT, GENERATE
from xenoglot.dialects.ollama.models import (
    INQUIRIES,
    LATEST,
    answer_of_loading,
    decode_models,
    encode_model,
    encode_models,
)
from xenoglot.dialects.ollama.reasoning_effort import reasoning_requested
from xenoglot.dialects.ollama.request import chat, generate
from xenoglot.dialects.ollama.response import decode_response, encode_response
from xenoglot.dialects.ollama.stream.decoder import StreamDecoder
from xenoglot.dialects.ollama.stream.encoder import StreamEncoder
from xenoglot.dialects.ollama.tools import NAME_LIMIT

if TYPE_CHECKING:
    from collections.abc import Mapping

    from xenoglot.codec.dialect import Headers
    from xenoglot.model.limits import RateLimits

_MODELS = "/api/tags"


def authorize(key: str | None) -> Headers:
    """Return the header that carries the key, if there is one: a server of one's own wants none."""
    return () if key is None else (("authorization", f"Bearer {key}"),)


def decode_limits(_: Mapping[str, str], __: float) -> RateLimits | None:
    """Return nothing: the wire has no headers for limits."""
    return None


def encode_limits(_: RateLimits, __: float) -> Headers:
    """Return nothing, for the same reason."""
    return ()


OLLAMA = Dialect(
    name=CHAT.name,
    path="/api/chat",
    also=(GENERATE.name,),
    models_path=_MODELS,
    default_tag=LATEST,
    tells_unfinished=True,
    inquiries=INQUIRIES,
    framing=JSON_LINES,
    tool_name_limit=NAME_LIMIT,
    decode_request=chat.decode_request,
    encode_request=chat.encode_request,
    decode_response=partial(decode_response, endpoint=CHAT),
    encode_response=partial(encode_response, endpoint=CHAT),
    stream_decoder=partial(StreamDecoder, CHAT),
    stream_encoder=partial(StreamEncoder, endpoint=CHAT),
    decode_error=decode_error,
    encode_error=encode_error,
    decode_limits=decode_limits,
    limits_prefix=None,
    encode_limits=encode_limits,
    authorize=authorize,
    decode_models=decode_models,
    encode_models=encode_models,
    encode_model=encode_model,
    reasoning_requested=reasoning_requested,
    answer_at_once=answer_of_loading,
    operations=FORMS,
)
"""The dialect `ollama`: `POST /api/chat`."""

OLLAMA_GENERATE = replace(
    OLLAMA,
    name=GENERATE.name,
    path="/api/generate",
    also=(),
    turns=False,
    inquiries=(),
    decode_request=generate.decode_request,
    encode_request=generate.encode_request,
    decode_response=partial(decode_response, endpoint=GENERATE),
    encode_response=partial(encode_response, endpoint=GENERATE),
    stream_decoder=partial(StreamDecoder, GENERATE),
    stream_encoder=partial(StreamEncoder, endpoint=GENERATE),
)
"""The dialect `ollama_generate`: `POST /api/generate`. What else its clients ask is the other's."""
