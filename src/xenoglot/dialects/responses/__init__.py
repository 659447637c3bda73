"""OpenAI Responses (https://developers.openai.com/api/docs/api-reference/responses), and Open Responses.

The decoders also accept the variants that the servers of vLLM, Ollama, LM Studio and OpenRouter send.
"""

from __future__ import annotations

from xenoglot.codec.dialect import Dialect
from xenoglot.dialects.openai.errors import encode_error
from xenoglot.dialects.openai.forwarded_paths import FORWARDED_PATHS
from xenoglot.dialects.openai.models import decode_models, encode_model, encode_models
from xenoglot.dialects.openai.rate_limits import PREFIX, decode_limits, encode_limits
from xenoglot.dialects.openai.shared import FORWARD, OPERATIONS, authorize
from xenoglot.dialects.responses.errors import decode_error
from xenoglot.dialects.responses.extras import NAME
from xenoglot.dialects.responses.fast.frequent_shapes import ID_LIMIT
from xenoglot.dialects.responses.hosted.tools import KINDS as HOSTED
from xenoglot.dialects.responses.request.count_tokens import decode_counted, encode_count, encode_count_request
from xenoglot.dialects.responses.request.decoder import decode_count, decode_request
from xenoglot.dialects.responses.request.encoder import encode_request
from xenoglot.dialects.responses.response import decode_response, encode_response
from xenoglot.dialects.responses.stored.compact import COMPACTION_FORM
from xenoglot.dialects.responses.stored.responses import STATE
from xenoglot.dialects.responses.stream.decoder import StreamDecoder
from xenoglot.dialects.responses.stream.encoder import StreamEncoder
from xenoglot.dialects.responses.web_socket.events import WEB_SOCKET

AFFINITY = (
    "session-id",
    "session_id",
    "thread-id",
    "x-codex-beta-features",
    "x-codex-installation-id",
    "x-codex-parent-thread-id",
    "x-codex-turn-metadata",
    "x-codex-turn-state",
    "x-codex-window-id",
    "x-openai-subagent",
)
"""Headers by which Codex identifies related requests; servers find their caches by them."""

RESPONSES = Dialect(
    name=NAME,
    path="/v1/responses",
    count_path="/v1/responses/input_tokens",
    begins_early=True,  # Codex gives up after 300 s without an event, and comments are none (pitfall-108)
    alive=b'event: keepalive\ndata: {"type":"keepalive"}\n\n',  # as OpenAI's own server says it
    forward=(*FORWARD, *AFFINITY),
    tool_name_limit=ID_LIMIT,
    tells_unfinished=True,
    id_prefix="resp_",
    stop_limit=0,
    hosted_tools=HOSTED,
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
    usage_expected="always",
    decode_models=decode_models,
    encode_models=encode_models,
    encode_model=encode_model,
    decode_count=decode_count,
    encode_count=encode_count,
    encode_count_request=encode_count_request,
    decode_counted=decode_counted,
    compaction=COMPACTION_FORM,
    state=STATE,
    web_socket=WEB_SOCKET,
    operations=OPERATIONS,
    forwarded_paths=FORWARDED_PATHS,
)
"""The dialect `responses`."""
