"""Anthropic's Messages (https://docs.claude.com/en/api/messages), with the fields of its betas."""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec.structs import replace

from xenoglot.codec.dialect import Dialect
from xenoglot.codec.features.batch import BatchFeature, FileFeature
from xenoglot.codec.reader import Reader
from xenoglot.dialects.messages.context_management import applied_edits
from xenoglot.dialects.messages.errors import decode_error, encode_error
from xenoglot.dialects.messages.extras import NAME
from xenoglot.dialects.messages.fast.frequent_shapes import NAME_LIMIT
from xenoglot.dialects.messages.fast.usage_scan import glimpse
from xenoglot.dialects.messages.hosted.tools import KINDS
from xenoglot.dialects.messages.rate_limits import PREFIX, decode_limits, encode_limits, moment, timestamp
from xenoglot.dialects.messages.reasoning_effort import reasoning_requested
from xenoglot.dialects.messages.request.decoder import decode_count, decode_request
from xenoglot.dialects.messages.request.encoder import encode_request
from xenoglot.dialects.messages.response import decode_response, encode_response
from xenoglot.dialects.messages.stream.decoder import StreamDecoder
from xenoglot.dialects.messages.stream.encoder import StreamEncoder
from xenoglot.dialects.messages.usage import extra_usage
from xenoglot.model.catalog import ModelInfo, modalities_of
from xenoglot.model.content import Extra

if TYPE_CHECKING:
    from collections.abc import Sequence

    from xenoglot.codec.features.batch import BatchCodec, FileCodec
    from xenoglot.codec.loss import Losses
    from xenoglot.codec.target import Target
    from xenoglot.model.catalog import Modality
    from xenoglot.model.json import JSON, JSONObject
    from xenoglot.model.request import Request

VERSION = "2023-06-01"
"""What requests from other dialects are written in: the next version, of 2026-10-21, has no `temperature`, `top_p` and
`top_k` any more (https://platform.claude.com/docs/en/api/versioning). A client of this dialect brings its own."""


def authorize(key: str | None) -> list[tuple[str, str]]:
    """Return the headers that a server of this dialect wants: its key, if it has one, and the version."""
    version = ("anthropic-version", VERSION)
    return [version] if key is None else [("x-api-key", key), version]


def decode_models(body: JSON) -> tuple[ModelInfo, ...]:
    """Return the models of one page (`anthropic/types/model_info.py`).

    Raises:
        WireError: it is no page of objects.
    """
    return tuple(
        ModelInfo(
            id=name,
            display_name=item.take_if("display_name", str),
            created=moment(item.take_if("created_at", str)),
            max_input_tokens=item.count("max_input_tokens"),
            max_output_tokens=item.count("max_tokens"),
            lifecycle=item.take_if("lifecycle", str),
            input_modalities=_modalities(Reader(capabilities := item.take_if("capabilities", dict) or {})),
            reasoning=_supported(Reader(capabilities), "thinking"),
            extra=_listed(item, capabilities),
        )
        for item in Reader(body).objects("data")
        if (name := item.take_if("id", str)) is not None
    )


_LISTED = ("deprecated_at", "line", "retires_at")
"""Fields of a model that only this dialect lists, apart from its capabilities."""


def _listed(item: Reader, capabilities: JSONObject) -> Extra | None:
    known = {name: item.peek(name) for name in _LISTED if name in item}
    fields = known | ({"capabilities": capabilities} if capabilities else {})
    return Extra(dialect=NAME, fields=fields) if fields else None


def _supported(capabilities: Reader, name: str) -> bool | None:
    """Return whether a model has a capability (`anthropic/types/model_capabilities.py`); `None` if it is not listed."""
    found = capabilities.take_if(name, dict)
    return None if found is None else found.get("supported") is True


def _modalities(capabilities: Reader) -> tuple[Modality, ...] | None:
    takes = {"image": _supported(capabilities, "image_input"), "file": _supported(capabilities, "pdf_input")}
    if None in takes.values():
        return None
    return modalities_of(("text", *(name for name, taken in takes.items() if taken)))


def encode_model(model: ModelInfo) -> JSONObject:
    """Return one model; an unknown date is the epoch, an unknown lifecycle active (`anthropic/types/model_info.py`).

    `capabilities` are those that a server of this dialect lists: all of their keys are required, and the list of
    another dialect does not have them.
    """
    body: JSONObject = {
        "type": "model",
        "id": model.id,
        "display_name": model.display_name or model.id,
        "created_at": timestamp(model.created or 0),
        "lifecycle": model.lifecycle or "active",
    }
    if model.max_input_tokens is not None:
        body["max_input_tokens"] = model.max_input_tokens
    if model.max_output_tokens is not None:
        body["max_tokens"] = model.max_output_tokens
    if model.extra is not None and model.extra.dialect == NAME:
        body |= model.extra.fields
    return body


def encode_models(models: Sequence[ModelInfo]) -> JSONObject:
    """Return all models as one page."""
    data = [encode_model(model) for model in models]
    first, last = (data[0]["id"], data[-1]["id"]) if data else (None, None)
    return {"data": data, "has_more": False, "first_id": first, "last_id": last}


def encode_count(input_tokens: int) -> JSONObject:
    """Return the answer of `count_tokens`."""
    return {"input_tokens": input_tokens}


def encode_count_request(request: Request, losses: Losses, target: Target) -> JSONObject:
    """Return the question for a request's tokens: the request, without what only an answer needs."""
    limit = request.sampling.max_tokens or target.default_max_tokens  # one that nobody gave is not missed here
    asked = replace(request, sampling=replace(request.sampling, max_tokens=limit))
    body = encode_request(asked, losses, target)
    return {key: value for key, value in body.items() if key not in ("max_tokens", "stream")}


def decode_counted(body: JSON) -> int | None:
    """Return the answer to that question; `None` if there is no number in it.

    Raises:
        WireError: it is no object.
    """
    return Reader(body).count("input_tokens")


def _batch_words() -> BatchCodec:
    from xenoglot.dialects.messages.batches import WORDS  # noqa: PLC0415  most gateways are never asked for a batch

    return WORDS


def _file_codec() -> FileCodec:
    from xenoglot.dialects.messages.files import FILES  # noqa: PLC0415  as above

    return FILES


MESSAGES = Dialect(
    name=NAME,
    other_names=("anthropic", "claude"),
    path="/v1/messages",
    count_path="/v1/messages/count_tokens",
    models_query="limit=1000",
    marks=("anthropic-version",),
    forward=("anthropic-version", "anthropic-beta"),
    marked_caches=True,
    hosted_tools=KINDS,
    tool_name_limit=NAME_LIMIT,
    terminator=b'event: message_stop\ndata: {"type":"message_stop"}\n\n',
    id_prefix="msg_",
    blank_stops=False,
    decode_request=decode_request,
    applied_edits=applied_edits,
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
    decode_models=decode_models,
    encode_models=encode_models,
    encode_model=encode_model,
    decode_count=decode_count,
    encode_count=encode_count,
    encode_count_request=encode_count_request,
    decode_counted=decode_counted,
    reasoning_requested=reasoning_requested,
    usage_expected="always",
    extra_usage=extra_usage,
    batching=BatchFeature(path="/v1/messages/batches", words=_batch_words),
    files=(FileFeature(path="/v1/files", codec=_file_codec, marked=True),),  # OpenAI's clients have files there too
)
