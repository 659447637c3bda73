"""The event stream encoding of AWS, `application/vnd.amazon.eventstream`: binary messages with checksums.

A message is a prelude (the length of the message, the length of its headers, the CRC-32 of both), typed headers, a
payload, and the CRC-32 of all before it. Integers are big-endian
(https://smithy.io/2.0/aws/amazon-eventstream.html; `botocore/eventstream.py`).

A message becomes a `ServerSentEvent`: its payload is `data`, the name of its event, exception or error code is `event`.
`id` is the message type if that is not `event`: `EXCEPTION` or `ERROR`. The text of an error is in a header; it is read
into a JSON object with a `message`.
"""

from __future__ import annotations

from binascii import crc32
from functools import lru_cache
from struct import Struct as Packing
from typing import TYPE_CHECKING, Final

from xenoglot.codec.framing.formats import Framing
from xenoglot.codec.framing.sse import MAX_EVENT_BYTES, EventDecoder, ServerSentEvent
from xenoglot.codec.json.json_io import decode_json, encode_json
from xenoglot.errors import WireError

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

EXCEPTION: Final = "exception"
ERROR: Final = "error"

_PRELUDE: Final = Packing("!III")
_CHECKSUM: Final = Packing("!I")
_SHORT: Final = Packing("!H")
_AROUND: Final = _PRELUDE.size + _CHECKSUM.size
"""Bytes of a message apart from its headers and payload."""

_BYTES, _STRING = 6, 7
_WIDTHS: Final = {0: 0, 1: 0, 2: 1, 3: 2, 4: 4, 5: 8, 8: 8, 9: 16}
"""Type of a header -> bytes of its value; the other types have their length before the value."""

_MAX_HEADERS: Final = 128 * 1024
"""The most bytes of headers (`_MAX_HEADERS_LENGTH` of botocore)."""

_NAMES: Final = {"event": ":event-type", EXCEPTION: ":exception-type", ERROR: ":error-code"}
"""Message type -> the header with the name of the event, exception or error."""


class BinaryEventDecoder(EventDecoder):
    """Decodes bytes, split anywhere, to events.

    Raises `WireError` where a checksum or a length is wrong, or a message is larger than `max_event_bytes`. An
    incomplete message is no event.
    """

    __slots__ = ("_held", "_max", "_needed", "_pending")

    def __init__(self, max_event_bytes: int = MAX_EVENT_BYTES) -> None:
        super().__init__()
        self._max = max_event_bytes
        self._pending: list[bytes] = []  # pieces of a message that has no end yet
        self._held = 0  # bytes of that message
        self._needed = _PRELUDE.size  # how many must be held before more of it can be read

    def _decode(self, chunk: bytes, events: list[ServerSentEvent]) -> None:
        if not chunk:
            return
        self._pending.append(chunk)
        self._held += len(chunk)
        if self._held < self._needed:
            return
        data = self._pending[0] if len(self._pending) == 1 else b"".join(self._pending)
        at, self._needed = 0, _PRELUDE.size
        while len(data) - at >= self._needed:
            size = _size(data[at : at + _PRELUDE.size], self._max)
            if len(data) - at < size:
                self._needed = size
                break
            events.append(self._read(data[at : at + size]))
            at += size
        self._held = len(data) - at
        self._pending = [data[at:] if at else data] if self._held else []

    def _read(self, message: bytes) -> ServerSentEvent:
        """Return the event of a whole message. Raises `WireError` where it is damaged."""
        return _read_message(message)

    @property
    def _is_between(self) -> bool:
        return not self._pending

    @property
    def held(self) -> int:
        """Bytes of that message."""
        return self._held


def _size(prelude: bytes, limit: int) -> int:
    """Return the length of a message, as its prelude has it."""
    size, headers, checksum = _PRELUDE.unpack(prelude)
    if crc32(prelude[:8]) != checksum:
        raise WireError("$", "the checksum of an event's prelude is wrong; the bytes are no event stream, or damaged")
    if size > limit:
        raise WireError("$", f"an event is larger than {limit} bytes")
    if headers > _MAX_HEADERS or headers + _AROUND > size:
        raise WireError("$", "an event's headers are longer than allowed, or than the event")
    return int(size)


def _read_message(message: bytes) -> ServerSentEvent:
    _, length, _ = _PRELUDE.unpack_from(message)
    end = len(message) - _CHECKSUM.size
    if crc32(message[:end]) != _CHECKSUM.unpack_from(message, end)[0]:
        raise WireError("$", "the checksum of an event is wrong; its bytes are damaged")
    begin = _PRELUDE.size + length
    headers = _read_headers(message[_PRELUDE.size : begin])
    kind = headers.get(":message-type", "event")
    name = headers.get(_NAMES.get(kind, ":event-type"))
    data = message[begin:end]
    if kind == ERROR and not data:
        data = encode_json({"message": headers.get(":error-message", "")})
    return ServerSentEvent(data, name, None if kind == "event" else kind)


@lru_cache(maxsize=256)
def _read_headers(data: bytes) -> dict[str, str]:
    """Return the headers that are text; events of one kind have the same ones."""
    try:
        return {name: value.decode() for name, kind, value in _each_header(data) if kind == _STRING}
    except (IndexError, UnicodeDecodeError) as error:
        raise WireError("$", "the headers of an event are malformed") from error


def _each_header(data: bytes) -> Iterator[tuple[str, int, bytes]]:
    at = 0
    while at < len(data):
        named = at + 1 + data[at]
        name, kind, at = data[at + 1 : named].decode(), data[named], named + 1
        if kind in (_BYTES, _STRING):
            width = data[at] << 8 | data[at + 1]
            at += _SHORT.size
        elif kind in _WIDTHS:
            width = _WIDTHS[kind]
        else:
            raise IndexError(kind)
        if at + width > len(data):
            raise IndexError(at)
        yield name, kind, data[at : at + width]
        at += width


class BinaryEventEncoder:
    """Encodes each event as one message. There are no comments in the format: one is not written."""

    __slots__ = ()

    def feed(self, event: ServerSentEvent, /) -> Sequence[bytes]:
        """Return the message of one event."""
        return () if event.comment is not None else (encode_message(event),)

    def close(self) -> Sequence[bytes]:
        """Return nothing: nothing is buffered."""
        return ()


def encode_message(event: ServerSentEvent) -> bytes:
    """Return the bytes of one event."""
    if event.id == ERROR:
        value = decode_json(event.data)
        text = str(value.get("message", "")) if isinstance(value, dict) else ""
        return _message(_header(":error-message", text[:_LONGEST]) + _write_headers(ERROR, event.event or ""), b"")
    return _message(_write_headers(event.id or "event", event.event or ""), event.data)


_LONGEST = 4096
"""Characters of an error's text in a header, whose length has 16 bits."""


def _message(headers: bytes, payload: bytes) -> bytes:
    size, length = _AROUND + len(headers) + len(payload), len(headers)
    prelude = _PRELUDE.pack(size, length, 0)[:8]
    message = b"".join((prelude, _CHECKSUM.pack(crc32(prelude)), headers, payload))
    return message + _CHECKSUM.pack(crc32(message))


@lru_cache(maxsize=256)
def _write_headers(kind: str, name: str) -> bytes:
    """Return the headers of a message, in the order in which servers write them."""
    content = b"" if kind == ERROR else _header(":content-type", "application/json")
    return _header(_NAMES.get(kind, ":event-type"), name) + content + _header(":message-type", kind)


def _header(name: str, value: str) -> bytes:
    raw = value.encode("utf-8", "replace")
    return bytes((len(name),)) + name.encode() + bytes((_STRING,)) + _SHORT.pack(len(raw)) + raw


BINARY_EVENTS: Final = Framing(
    media_type="application/vnd.amazon.eventstream", decoder=BinaryEventDecoder, encoder=BinaryEventEncoder, ends=()
)
"""https://smithy.io/2.0/aws/amazon-eventstream.html; a frame begins with its length, and nothing marks its end."""
