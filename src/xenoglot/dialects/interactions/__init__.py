"""Google's Interactions API: `POST /v1beta/interactions` (https://ai.google.dev/gemini-api/docs/interactions).

Source: `google/genai/_gaos/types/interactions` of google-genai 3.4 (revision 2026-05-20 of the API, with steps).
"""

from __future__ import annotations

from xenoglot.codec.dialect import Dialect
from xenoglot.dialects.google.models import decode_models, encode_model, encode_models
from xenoglot.dialects.google.request_fields import STOP_LIMIT
from xenoglot.dialects.google.shared import MARKS, authorize, decode_limits, encode_limits
from xenoglot.dialects.interactions.errors import decode_error, encode_error
from xenoglot.dialects.interactions.extras import NAME, NAME_LIMIT
from xenoglot.dialects.interactions.request.decoder import decode_request
from xenoglot.dialects.interactions.request.encoder import encode_request
from xenoglot.dialects.interactions.response import decode_response, encode_response
from xenoglot.dialects.interactions.stored import ALIASES, PATH, STATE
from xenoglot.dialects.interactions.stream.decoder import StreamDecoder
from xenoglot.dialects.interactions.stream.encoder import StreamEncoder
from xenoglot.dialects.interactions.tools import KINDS

INTERACTIONS = Dialect(
    name=NAME,
    path=PATH,
    aliases=ALIASES,
    shares_paths=True,
    models_path="/v1beta/models",
    models_query="pageSize=1000",
    marks=MARKS,
    forward=("api-revision",),
    hosted_tools=KINDS,
    tool_name_limit=NAME_LIMIT,
    tells_unfinished=True,
    id_prefix="v1_",
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
    usage_expected="always",
    decode_models=decode_models,
    encode_models=encode_models,
    encode_model=encode_model,
    state=STATE,
)
"""The dialect `interactions`."""
