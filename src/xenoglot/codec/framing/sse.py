"""Server-sent events, after the WHATWG rules (https://html.spec.whatwg.org/multipage/server-sent-events.html).

Lines end in LF, CRLF or CR; a leading byte order mark is dropped; a comment starts with a colon; one space after the
colon of a field is dropped; several `data` lines are joined by LF; a blank line dispatches. Data stays bytes: it is
not decoded before its JSON is read.

Three departures, all harmless to valid streams: an event that the end of the stream cuts off is given out if it has
data (the standard drops it; a server that forgets the last blank line is commoner than one that dies inside a line, and
a cut JSON is noticed anyway); a line that begins with a brace or a bracket, where the name of a field should be, begins
an event of bare JSON (pitfall-105: some servers fail in a stream as they would have before it); and the size of one
event is bounded.

A tolerant decoder also accepts spaces and tabs before the name of a field, and lines of nothing else as blank lines:
some servers indent their events. It is for bytes that are translated: a client that is given them unchanged reads them
by the standard, which ignores such lines.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import TYPE_CHECKING

from msgspec import Struct

from xenoglot.errors import WireError

if TYPE_CHECKING:
    from collections.abc import Sequence

MAX_EVENT_BYTES = 32 * 1024 * 1024
"""An event larger than this is an attack or a mistake."""

_RETRY_DIGITS = 10
"""A longer reconnection time (above a hundred days) is ignored."""

_LINE_END = re.compile(rb"\r\n|\n|\r")
_BOM = b"\xef\xbb\xbf"
_BARE = (b"{", b"[")
_BLANKS = (b" ", b"\t")


class ServerSentEvent(Struct, frozen=True, gc=False):
    """One event: its data, and the name, id and reconnection time (milliseconds) if the stream has them.

    With a `comment` it is a proof of life without data, which readers skip; the decoder gives none out.
    """

    data: bytes
    event: str | None = None
    id: str | None = None
    retry: int | None = None
    comment: str | None = None


class EventDecoder:
    """Decodes bytes, split anywhere, to events; what the decoders of all framings share.

    `feed` raises `WireError` where the bytes are invalid, or an event is larger than allowed. Events before it in the
    same chunk are returned; then the next `feed` or `close` raises it. After it was raised, every call raises it.
    """

    __slots__ = ("_problem",)

    def __init__(self) -> None:
        self._problem: WireError | None = None

    def feed(self, chunk: bytes, /) -> Sequence[ServerSentEvent]:
        """Take bytes as they came from the wire; return the events they completed. Raises `WireError`."""
        if self._problem is not None:
            raise self._problem
        events: list[ServerSentEvent] = []
        try:
            self._decode(chunk, events)
        except WireError as problem:
            self._problem = problem
            if not events:
                raise
        return events

    def close(self) -> Sequence[ServerSentEvent]:
        """End the input; return the event that lacked its end, if the framing accepts it. Raises `WireError`."""
        if self._problem is not None:
            raise self._problem
        return self._last()

    @property
    def rests(self) -> bool:
        """Whether nothing is buffered: the next byte begins an event."""
        return self._problem is None and self._is_between

    @property
    def is_open(self) -> bool:
        """Whether the bytes, if they end here, cut an event; nothing can be added to invalid ones."""
        return self._problem is not None or self._is_inside

    def _decode(self, chunk: bytes, events: list[ServerSentEvent]) -> None:
        """Add the events that `chunk` completes to `events`. Raises `WireError`."""
        raise NotImplementedError

    def _last(self) -> Sequence[ServerSentEvent]:
        """Return the event that the end of the input completes."""
        return ()

    @property
    def _is_between(self) -> bool:
        """Whether nothing is buffered, and the next byte begins an event that means the same at any position."""
        raise NotImplementedError

    @property
    def _is_inside(self) -> bool:
        """Whether an event has begun."""
        return not self._is_between


class SSEDecoder(EventDecoder):
    """Decodes bytes, split anywhere, to events. Linear time: each byte is read once.

    Raises `WireError` where an event, or a line, is larger than `max_event_bytes`.
    """

    __slots__ = (
        "_after_cr",
        "_bare",
        "_data",
        "_event",
        "_head",
        "_held",
        "_id",
        "_max",
        "_pending",
        "_retry",
        "_size",
        "_started",
        "_tolerant",
    )

    def __init__(self, max_event_bytes: int = MAX_EVENT_BYTES, *, tolerant: bool = False) -> None:
        super().__init__()
        self._max = max_event_bytes
        self._tolerant = tolerant
        self._started = False
        self._pending: list[bytes] = []  # pieces of a line that has no end yet
        self._held = 0  # bytes of that line
        self._size = 0  # bytes of the data lines of the event so far
        self._after_cr = False  # the last read ended in CR: an LF that follows belongs to it
        self._head = b""  # what may become a byte order mark
        self._data: list[bytes] = []
        self._bare = False  # the event is JSON without a field's name before its lines
        self._event: str | None = None
        self._id: str | None = None
        self._retry: int | None = None

    def _decode(self, chunk: bytes, events: list[ServerSentEvent]) -> None:
        if not self._started:
            chunk = self._skip_bom(chunk)
        if self._after_cr and chunk:
            chunk, self._after_cr = chunk.removeprefix(b"\n"), False
        if chunk.endswith(b"\r"):
            self._after_cr = True
        lines = chunk.split(b"\n") if b"\r" not in chunk else _LINE_END.split(chunk)
        held = lines.pop()
        if lines and self._pending:
            lines[0] = self._whole(lines[0])
        for line in lines:
            self._line(line, events)
        if held:
            self._hold(held)

    def _last(self) -> Sequence[ServerSentEvent]:
        """Return the event that lacked its blank line, if it has data. Raises `WireError`."""
        events: list[ServerSentEvent] = []
        if self._pending:
            self._line(self._whole(b""), events)
        self._line(b"", events)
        return events

    @property
    def _is_between(self) -> bool:
        return self._started and not self._after_cr and not self._has_fields

    @property
    def _is_inside(self) -> bool:
        return not self._started or self._has_fields  # a CR that ended a blank line is no beginning

    @property
    def held(self) -> int:
        """Bytes of an event that is open."""
        return self._size + self._held

    @property
    def _has_fields(self) -> bool:
        return bool(self._pending or self._data or self._bare or self._event is not None or self._retry is not None)

    def _skip_bom(self, chunk: bytes) -> bytes:
        head = self._head + chunk
        if len(head) < len(_BOM) and _BOM.startswith(head):
            self._head = head
            return b""
        self._started = True
        return head.removeprefix(_BOM)

    def _hold(self, piece: bytes) -> None:
        self._pending.append(piece)
        self._held += len(piece)
        if self._size + self._held > self._max:
            raise self._too_large()

    def _whole(self, last: bytes) -> bytes:
        """Return the line that has begun and that `last` ends."""
        line = b"".join((*self._pending, last))
        self._pending.clear()
        self._held = 0
        return line

    def _too_large(self) -> WireError:
        return WireError("$", f"a server-sent event is larger than {self._max} bytes")

    def _line(self, line: bytes, events: list[ServerSentEvent]) -> None:
        if not line:
            self._dispatch(events)
            return
        if self._size + len(line) > self._max:
            raise self._too_large()
        if line.startswith(b"data: "):
            self._append(line[6:])
        elif line.startswith(b"data:"):
            self._append(line[5:])
        elif line[:1] != b":":
            self._field(line, events)

    def _append(self, value: bytes) -> None:
        self._data.append(value)
        self._size += len(value) + len(b"data:")  # an empty line is no smaller than that, here or on the wire

    def _field(self, line: bytes, events: list[ServerSentEvent]) -> None:
        if self._bare or line[:1] in _BARE:
            self._bare = True
            self._append(line)
            return
        if self._tolerant and line[:1] in _BLANKS:
            self._indented(line.lstrip(b" \t"), events)
            return
        name, _, value = line.partition(b":")
        text = value.removeprefix(b" ").decode("utf-8", "replace")
        if name == b"event":
            self._event = text or None
        elif name == b"data":
            self._append(b"")
        elif name == b"id" and "\0" not in text:
            self._id = text
        elif name == b"retry" and text.isascii() and text.isdigit() and len(text) <= _RETRY_DIGITS:
            self._retry = int(text)

    def _indented(self, line: bytes, events: list[ServerSentEvent]) -> None:
        """Take a line that begins with spaces: they are not part of a field's name and have no other meaning."""
        if line[:1] not in _BARE:
            self._line(line, events)

    def _dispatch(self, events: list[ServerSentEvent]) -> None:
        if self._data:
            data = self._data[0] if len(self._data) == 1 else b"\n".join(self._data)
            events.append(ServerSentEvent(data, self._event, self._id, self._retry))
            self._data.clear()
        self._event = self._retry = None
        self._bare = False
        self._size = 0


def tolerant_decoder() -> SSEDecoder:
    """Return a decoder that accepts spaces before fields."""
    return SSEDecoder(tolerant=True)


class SSEEncoder:
    """Encodes each event as one frame. Line ends in data make several `data` lines; in a name, spaces."""

    __slots__ = ()

    def feed(self, event: ServerSentEvent, /) -> Sequence[bytes]:
        """Return the frame of one event."""
        return (encode_event(event),)

    def close(self) -> Sequence[bytes]:
        """Return nothing: nothing is buffered."""
        return ()


def encode_event(event: ServerSentEvent) -> bytes:
    """Return the bytes of one event, blank line included."""
    data = event.data
    if event.comment is not None:
        return b": " + _single_line(event.comment) + b"\n\n"
    if b"\n" in data or b"\r" in data:
        data = b"\ndata: ".join(_LINE_END.split(data))
    if event.event is None and event.id is None and event.retry is None:
        return b"data: " + data + b"\n\n"
    head = b""
    if event.event is not None:
        head = b"event: " + _single_line(event.event) + b"\n"
    if event.id is not None:
        head += b"id: " + _single_line(event.id) + b"\n"
    if event.retry is not None:
        head += b"retry: %d\n" % event.retry
    return head + b"data: " + data + b"\n\n"


def around(event: str | None = None) -> tuple[bytes, bytes]:
    """Return what precedes and follows data of one line in a frame."""
    before, _, after = encode_event(ServerSentEvent(b"data", event)).rpartition(b"data")
    return before, after


@lru_cache(maxsize=256)
def _single_line(text: str) -> bytes:
    return text.replace("\r", " ").replace("\n", " ").encode("utf-8", "replace")
