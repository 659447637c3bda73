"""The stream of InvokeModel: binary messages, each with one event of the model's own API in base64.

A message of the event `chunk` has the payload `{"bytes": "<base64>"}`; servers pad it with a field `p`. Errors are
exceptions, as in Converse (`ResponseStream` and `PayloadPart` in `bedrock-runtime/2023-09-30/service-2.json` of
botocore). The last event has the counts of tokens in `amazon-bedrock-invocationMetrics`
(https://docs.aws.amazon.com/bedrock/latest/userguide/model-parameters-anthropic-claude-messages-request-response.html).
"""

from __future__ import annotations

from base64 import b64decode, b64encode
from typing import TYPE_CHECKING, Final

from xenoglot.codec.framing.binary_events import BINARY_EVENTS, BinaryEventDecoder, encode_message
from xenoglot.codec.framing.formats import Framing
from xenoglot.codec.framing.sse import ServerSentEvent
from xenoglot.codec.json.json_io import decode_answer, decode_json, encode_json
from xenoglot.errors import WireError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from xenoglot.model.json import JSON, JSONObject

CHUNK: Final = "chunk"
METRICS: Final = "amazon-bedrock-invocationMetrics"
_COUNTS: Final = {"input_tokens": "inputTokenCount", "output_tokens": "outputTokenCount"}
_CACHE: Final = {
    "cache_read_input_tokens": "cacheReadInputTokenCount",
    "cache_creation_input_tokens": "cacheWriteInputTokenCount",
}
_START, _DELTA, _STOP = (f'{{"type":"message_{word}"'.encode() for word in ("start", "delta", "stop"))
"""How the events with counts begin, as they are written here."""


class ChunkDecoder(BinaryEventDecoder):
    """Decodes bytes, split anywhere, to the events inside the chunks; exceptions keep their id.

    Raises `WireError` from `feed` as for binary events, and where a chunk has no base64.
    """

    __slots__ = ()

    def _read(self, message: bytes) -> ServerSentEvent:
        """Return the event inside a chunk; an exception as it is."""
        return _opened(super()._read(message))


def _opened(event: ServerSentEvent) -> ServerSentEvent:
    if event.id is not None or event.event != CHUNK:
        return event
    payload = decode_answer(event.data)
    encoded = payload.get("bytes") if isinstance(payload, dict) else None
    try:
        return ServerSentEvent(b64decode(encoded or "", validate=True))
    except (TypeError, ValueError) as error:
        raise WireError("$.chunk.bytes", "expected base64") from error


class ChunkEncoder:
    """Encodes each event as one chunk, and an exception as it is; the last event has the counts of those before it."""

    __slots__ = ("_usage",)

    def __init__(self) -> None:
        self._usage: JSONObject = {}

    def feed(self, event: ServerSentEvent, /) -> Sequence[bytes]:
        """Return the message of one event; there are no comments in the format."""
        if event.comment is not None:
            return ()
        if event.id is not None:
            return (encode_message(event),)
        payload = encode_json({"bytes": b64encode(self._counted(event.data)).decode()})
        return (encode_message(ServerSentEvent(payload, CHUNK)),)

    def close(self) -> Sequence[bytes]:
        """Return nothing: nothing is buffered."""
        return ()

    def _counted(self, data: bytes) -> bytes:
        """Return an event, with the counts if it is the last; note those that it has."""
        if data.startswith((_START, _DELTA)):
            self._note(decode_json(data))
        elif data.startswith(_STOP) and self._usage:
            counts = {name: self._usage[field] for field, name in (_COUNTS | _CACHE).items() if self._usage.get(field)}
            zeros = {name: 0 for field, name in _COUNTS.items() if self._usage.get(field) == 0}
            event = decode_json(data)
            return encode_json({**event, METRICS: zeros | counts}) if isinstance(event, dict) else data
        return data

    def _note(self, event: JSON) -> None:
        if not isinstance(event, dict):
            return
        for holder in (event, event.get("message")):
            usage = holder.get("usage") if isinstance(holder, dict) else None
            if isinstance(usage, dict):
                self._usage |= {field: usage[field] for field in (*_COUNTS, *_CACHE) if field in usage}


CHUNK_EVENTS: Final = Framing(media_type=BINARY_EVENTS.media_type, decoder=ChunkDecoder, encoder=ChunkEncoder, ends=())
"""`application/vnd.amazon.eventstream` with chunks in it."""
