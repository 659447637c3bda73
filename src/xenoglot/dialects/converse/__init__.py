"""The Converse API of Amazon Bedrock: `POST /model/{modelId}/converse`.

Source: the published model of the API, `bedrock-runtime/2023-09-30/service-2.json` in botocore, and
https://docs.aws.amazon.com/bedrock/latest/APIReference/API_runtime_Converse.html.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from xenoglot.codec.dialect import Dialect
from xenoglot.codec.framing.binary_events import BINARY_EVENTS
from xenoglot.codec.reader import Reader
from xenoglot.dialects.converse.errors import decode_error, encode_error
from xenoglot.dialects.converse.extras import NAME
from xenoglot.dialects.converse.invoke.anthropic_body import ANTHROPIC
from xenoglot.dialects.converse.models import PATH, decode_models, encode_model, encode_models
from xenoglot.dialects.converse.parts.encoder import NAME_LIMIT
from xenoglot.dialects.converse.request.decoder import decode_count, decode_request
from xenoglot.dialects.converse.request.encoder import encode_count_request, encode_request
from xenoglot.dialects.converse.response import decode_response, encode_response
from xenoglot.dialects.converse.stream.decoder import StreamDecoder
from xenoglot.dialects.converse.stream.encoder import StreamEncoder

if TYPE_CHECKING:
    from collections.abc import Mapping

    from xenoglot.codec.dialect import Headers
    from xenoglot.model.json import JSON, JSONObject
    from xenoglot.model.limits import RateLimits

STOP_LIMIT = 2500
"""`stopSequences` in the published model; the models themselves take fewer."""


def authorize(key: str | None) -> Headers:
    """Return the header that carries an API key of Bedrock, if there is one."""
    return () if key is None else (("authorization", f"Bearer {key}"),)


def decode_limits(headers: Mapping[str, str], now: float) -> RateLimits | None:  # noqa: ARG001  the record's form
    """Return nothing: servers of the dialect do not report their limits."""
    return None


def encode_limits(limits: RateLimits, now: float) -> Headers:  # noqa: ARG001  the record's form
    """Return no headers: clients of the dialect know none."""
    return ()


def encode_count(input_tokens: int) -> JSONObject:
    """Return the answer of `count-tokens`."""
    return {"inputTokens": input_tokens}


def decode_counted(body: JSON) -> int | None:
    """Return the tokens that `count-tokens` counted.

    Raises:
        WireError: the answer is no object.
    """
    return Reader(body).count("inputTokens")


def answer_headers(request_id: str) -> Headers:
    """Return the id of a request as the SDKs of AWS read it (`ResponseMetadata.RequestId`)."""
    return (("x-amzn-requestid", request_id),)


def error_headers(body: JSONObject) -> Headers:
    """Return the name of an exception as its header, which SDKs read before the body.

    An upstream may name an error in any characters: what is no name stands in the body alone.
    """
    name = str(body["__type"])
    return (("x-amzn-errortype", name),) if name.isascii() and name.isalnum() else ()


CONVERSE = Dialect(
    name=NAME,
    path="/model/{model}/converse",
    stream_path="/model/{model}/converse-stream",
    aliases=("/model/{model}/converse-stream",),
    count_path="/model/{model}/count-tokens",
    models_path=PATH,
    framing=BINARY_EVENTS,
    comments=False,  # the format has none
    marks=("amz-sdk-invocation-id",),
    tool_name_limit=NAME_LIMIT,
    stop_limit=STOP_LIMIT,
    tells_unfinished=True,
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
    usage_expected="always",
    hosts=(ANTHROPIC,),
    answer_headers=answer_headers,
    error_headers=error_headers,
)
"""The dialect `converse`."""
