"""Writes the events of a stream, each with its name, type and sequence number."""

from __future__ import annotations

from typing import TYPE_CHECKING

from xenoglot.codec.framing.sse import ServerSentEvent, around
from xenoglot.codec.json.json_io import encode_json

if TYPE_CHECKING:
    from xenoglot.model.json import JSON, JSONObject


class EventWriter:
    """Writes the events of one stream, numbered from 0 without a gap (pitfall-111)."""

    __slots__ = ("_count",)

    def __init__(self) -> None:
        self._count = 0

    def event(self, kind: str, /, **fields: JSON) -> ServerSentEvent:
        """Return the next event."""
        return self.again(kind, fields)

    def again(self, kind: str, data: JSONObject) -> ServerSentEvent:
        """Return an event of another stream as the next of this one."""
        numbered = {"type": kind, "sequence_number": self._count, **_without(data)}
        self._count += 1
        return ServerSentEvent(encode_json(numbered), kind)

    def piece(self, shape: DeltaTemplate, text: str) -> ServerSentEvent:
        """Return the next event, one that differs from others in its text alone."""
        data = b"%b%d%b%b%b" % (shape.before, self._count, shape.between, encode_json(text), shape.after)
        self._count += 1
        return ServerSentEvent(data, shape.kind)

    def frame(self, shape: DeltaTemplate, text: str) -> bytes:
        """Return the same in its frame."""
        framed = b"%b%d%b%b%b" % (shape.framed, self._count, shape.between, encode_json(text), shape.end)
        self._count += 1
        return framed


class DeltaTemplate:
    """The constant bytes around the sequence number and text of the most common events, deltas of one content."""

    __slots__ = ("after", "before", "between", "end", "framed", "kind")

    def __init__(self, kind: str, **place: JSON) -> None:
        self.kind = kind
        self.before = b'{"type":"%b","sequence_number":' % kind.encode()
        self.between = b"," + encode_json(place)[1:-1] + b',"delta":'
        self.after = b',"logprobs":[]}' if kind == "response.output_text.delta" else b"}"
        begin, end = around(kind)
        self.framed, self.end = begin + self.before, self.after + end


def _without(data: JSONObject) -> JSONObject:
    return {key: value for key, value in data.items() if key not in ("type", "sequence_number")}
