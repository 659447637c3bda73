"""Google's Gemini API: `POST /v1beta/models/{model}:generateContent` (https://ai.google.dev/api/generate-content)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from xenoglot.codec.dialect import Dialect, ModelEndpoint
from xenoglot.codec.features.batch import FileFeature
from xenoglot.codec.framing.formats import JSON_ARRAY
from xenoglot.codec.reader import Reader
from xenoglot.dialects.gemini.embeddings import FORMS
from xenoglot.dialects.gemini.errors import decode_error, encode_error
from xenoglot.dialects.gemini.extras import NAME
from xenoglot.dialects.gemini.parts.encoder import NAME_LIMIT
from xenoglot.dialects.gemini.reasoning_effort import reasoning_requested
from xenoglot.dialects.gemini.request.decoder import decode_count, decode_request
from xenoglot.dialects.gemini.request.encoder import encode_count_request, encode_request
from xenoglot.dialects.gemini.request.hosted_tools import KINDS
from xenoglot.dialects.gemini.response import decode_response, encode_response
from xenoglot.dialects.gemini.stream.decoder import StreamDecoder
from xenoglot.dialects.gemini.stream.encoder import StreamEncoder
from xenoglot.dialects.google.models import decode_models, describe, encode_model, encode_models
from xenoglot.dialects.google.request_fields import STOP_LIMIT
from xenoglot.dialects.google.shared import MARKS, authorize, decode_limits, encode_limits

if TYPE_CHECKING:
    from xenoglot.codec.features.batch import FileCodec, ResumableCodec
    from xenoglot.model.json import JSON, JSONObject

_MODELS = "/v1beta/models"
_PUBLISHED = "publishers/google/models"
_PLACES = (
    "/v1/models",
    "/v1beta/tunedModels",
    *(f"/{version}/{_PUBLISHED}" for version in ("v1", "v1beta1")),
    *(f"/{version}/projects/{{project}}/locations/{{location}}/{_PUBLISHED}" for version in ("v1", "v1beta1")),
)
"""Where else servers of the dialect answer: the stable version, models of one's own, Google's enterprise platform."""


def encode_count(input_tokens: int) -> JSONObject:
    """Return the answer of `countTokens`."""
    return {"totalTokens": input_tokens}


def decode_counted(body: JSON) -> int | None:
    """Return the tokens that `countTokens` counted.

    Raises:
        WireError: the answer is no object.
    """
    return Reader(body).count("totalTokens")


def _file_codec() -> FileCodec:
    from xenoglot.dialects.gemini.files import FILES as CODEC  # noqa: PLC0415  most gateways are never sent a file

    return CODEC


def _resumable_codec() -> ResumableCodec:
    from xenoglot.dialects.gemini.files import RESUMABLE  # noqa: PLC0415  as above

    return RESUMABLE


FILES = tuple(
    FileFeature(
        path=f"/{version}/files",
        codec=_file_codec,
        content="/{id}:download",
        resumable_path=f"/upload/{version}/files",
        resumable=_resumable_codec,
        marked=version == "v1",  # OpenAI's clients have files there too
    )
    for version in ("v1beta", "v1")
)

GEMINI = Dialect(
    name=NAME,
    other_names=("google",),
    path=_MODELS + "/{model}:generateContent",
    stream_path=_MODELS + "/{model}:streamGenerateContent",
    stream_query="alt=sse",
    hosted_tools=KINDS,
    aliases=tuple(
        f"{place}/{{model}}:{operation}"
        for place in _PLACES
        for operation in ("generateContent", "streamGenerateContent")
    ),
    count_path=_MODELS + "/{model}:countTokens",
    count_aliases=tuple(f"{place}/{{model}}:countTokens" for place in _PLACES),
    models_path=_MODELS,
    models_query="pageSize=1000",
    inquiries=(ModelEndpoint(method="GET", path=_MODELS + "/{model}", answer=describe),),
    bare_framing=JSON_ARRAY,
    comments=False,  # google-genai takes each line of a stream for a piece of an event
    marks=MARKS,
    tool_name_limit=NAME_LIMIT,
    stop_limit=STOP_LIMIT,
    decode_request=decode_request,
    encode_request=encode_request,
    decode_response=decode_response,
    encode_response=encode_response,
    stream_decoder=StreamDecoder,
    stream_encoder=StreamEncoder,
    decode_error=decode_error,
    encode_error=encode_error,
    decode_limits=decode_limits,
    limits_prefix=None,
    encode_limits=encode_limits,
    authorize=authorize,
    decode_models=decode_models,
    encode_models=encode_models,
    encode_model=encode_model,
    decode_count=decode_count,
    encode_count=encode_count,
    encode_count_request=encode_count_request,
    decode_counted=decode_counted,
    reasoning_requested=reasoning_requested,
    usage_expected="always",
    operations=FORMS,
    files=FILES,
)
"""The dialect `gemini`."""
