"""The framings of a stream: server-sent events, JSON lines, or one JSON array."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import TYPE_CHECKING, Final, Protocol

from msgspec import Struct

from xenoglot.codec.framing.sse import (
    MAX_EVENT_BYTES,
    EventDecoder,
    ServerSentEvent,
    SSEDecoder,
    SSEEncoder,
    tolerant_decoder,
)
from xenoglot.codec.stage import Stage
from xenoglot.errors import WireError

if TYPE_CHECKING:
    from collections.abc import Sequence


_BLANKS = b" \t\r"

_ELEMENT = re.compile(rb"[^ \t\r\n,\]]")
_OUTSIDE = re.compile(rb'["{}\[\]]')
_IN_STRING = re.compile(rb'"|\\.?', re.DOTALL)
"""The marks that count: before an element, in it, and in a string; a backslash alone is the end of a chunk."""


class LineDecoder(EventDecoder):
    """Decodes bytes, split anywhere, to events: each line that is not empty is the data of one event.

    Raises `WireError` where a line is larger than `max_event_bytes`.
    """

    __slots__ = ("_held", "_max", "_pending")

    def __init__(self, max_event_bytes: int = MAX_EVENT_BYTES) -> None:
        super().__init__()
        self._max = max_event_bytes
        self._pending: list[bytes] = []  # pieces of a line that has no end yet
        self._held = 0  # bytes of that line

    def _decode(self, chunk: bytes, events: list[ServerSentEvent]) -> None:
        first, *rest = chunk.split(b"\n")
        if not rest:
            self._hold(first)
            return
        lines = (self._whole(first), *rest[:-1])
        events.extend(self._event(stripped) for line in lines if (stripped := line.strip(_BLANKS)))
        self._hold(rest[-1])

    def _last(self) -> Sequence[ServerSentEvent]:
        """Return the event of a last line without line end. Raises `WireError`."""
        last = self._whole(b"").strip(_BLANKS)
        return (self._event(last),) if last else ()

    @property
    def _is_between(self) -> bool:
        return not self._pending

    @property
    def held(self) -> int:
        """Bytes of that line."""
        return self._held

    def _event(self, line: bytes) -> ServerSentEvent:
        if len(line) > self._max:
            raise self._too_large()
        return ServerSentEvent(line)

    def _hold(self, piece: bytes) -> None:
        if piece:
            self._pending.append(piece)
            self._held += len(piece)
            if self._held > self._max:
                raise self._too_large()

    def _whole(self, last: bytes) -> bytes:
        """Return the line that `last` ends."""
        if not self._pending:
            return last
        line = b"".join((*self._pending, last))
        self._pending.clear()
        self._held = 0
        return line

    def _too_large(self) -> WireError:
        return WireError("$", f"a line is larger than {self._max} bytes")


class LineEncoder:
    """Encodes events, one a line. A comment is an empty line; data is JSON, which contains no line end."""

    __slots__ = ()

    def feed(self, event: ServerSentEvent, /) -> Sequence[bytes]:
        """Return the line of one event."""
        return (b"\n" if event.comment is not None else event.data + b"\n",)

    def close(self) -> Sequence[bytes]:
        """Return nothing: nothing is buffered."""
        return ()


class ArrayDecoder(EventDecoder):
    """Decodes bytes, split anywhere, to events: each element of the JSON array is the data of one event.

    Raises `WireError` where it is no array, or an element is larger than `max_event_bytes`. An incomplete element is
    no event.
    """

    __slots__ = ("_depth", "_escaped", "_held", "_max", "_opened", "_pending", "_quoted")

    def __init__(self, max_event_bytes: int = MAX_EVENT_BYTES) -> None:
        super().__init__()
        self._max = max_event_bytes
        self._opened = False
        self._depth = 0  # of the brackets that are open in an element
        self._quoted = False
        self._escaped = False  # the last byte was a backslash
        self._pending: list[bytes] = []  # pieces of an element that has no end yet
        self._held = 0  # bytes of that element

    def _decode(self, chunk: bytes, events: list[ServerSentEvent]) -> None:
        at = 0 if self._opened else self._open(chunk)
        while at < len(chunk):
            if not self._depth and (at := self._next(chunk, at)) == len(chunk):
                break
            end = self._end(chunk, at)
            self._hold(chunk[at:end])
            if not self._depth:
                events.append(ServerSentEvent(b"".join(self._pending)))
                self._pending.clear()
                self._held = 0
            at = end

    @property
    def _is_between(self) -> bool:
        return False  # bytes around an element depend on its neighbours, and the array ends with its bracket

    @property
    def held(self) -> int:
        """Bytes of an element that is open."""
        return self._held

    def _open(self, chunk: bytes) -> int:
        """Return where the elements begin."""
        left = chunk.lstrip(b" \t\r\n")
        if left and not left.startswith(b"["):
            raise WireError("$", "expected a JSON array")
        self._opened = bool(left)
        return len(chunk) - len(left) + 1

    @staticmethod
    def _next(chunk: bytes, at: int) -> int:
        """Return where the next element begins, or the end of the chunk."""
        found = _ELEMENT.search(chunk, at)
        if found is None:
            return len(chunk)
        if found[0] != b"{":
            raise WireError("$", "an element of the array is no object")
        return found.start()

    def _end(self, chunk: bytes, at: int) -> int:
        """Return where the element ends, or the end of the chunk: then brackets are open."""
        if self._escaped:
            at += 1
            self._escaped = False
        while (found := (_IN_STRING if self._quoted else _OUTSIDE).search(chunk, at)) is not None:
            at, mark = found.end(), found[0]
            if mark == b'"':
                self._quoted = not self._quoted
            elif self._quoted:
                self._escaped = mark == b"\\"
            else:
                self._depth += 1 if mark in b"{[" else -1
                if not self._depth:
                    return at
        return len(chunk)

    def _hold(self, piece: bytes) -> None:
        self._pending.append(piece)
        self._held += len(piece)
        if self._held > self._max:
            raise WireError("$", f"an element is larger than {self._max} bytes")


class ArrayEncoder:
    """Encodes events as the elements of one array, each on its own line. A comment is an empty line."""

    __slots__ = ("_opened",)

    def __init__(self) -> None:
        self._opened = False

    def feed(self, event: ServerSentEvent, /) -> Sequence[bytes]:
        """Return what one event adds to the array."""
        if event.comment is not None:
            return (b"\n",)
        lead, self._opened = b"," if self._opened else b"[", True
        return (lead + event.data + b"\n",)

    def close(self) -> Sequence[bytes]:
        """Return the end of the array."""
        return (b"]" if self._opened else b"[]",)


class FrameDecoder(Stage[bytes, ServerSentEvent], Protocol):
    """A stage from bytes, split anywhere, to framed events."""

    @property
    def rests(self) -> bool:
        """Whether nothing is buffered, and the next byte begins a frame that means the same at any position."""
        ...

    @property
    def is_open(self) -> bool:
        """Whether the bytes, if they end here, cut a frame."""
        ...

    @property
    def held(self) -> int:
        """Bytes of the frame that is open."""
        ...


class Framing(Struct, frozen=True, kw_only=True):
    """A framing: its encoder, its decoder, and how its frames end.

    A frame ends in one of `ends`: only after one may anything be added to a stream; there are none if only the
    decoder knows where a frame ends. `resume` ends whatever was written before it, whole or cut, and is nothing by
    itself; it is empty if there is no such thing.
    `tolerant_decoder` also reads what a client that is given the same bytes need not; `None` if there is none.
    """

    media_type: str
    decoder: Callable[[], FrameDecoder]
    encoder: Callable[[], Stage[ServerSentEvent, bytes]]
    ends: tuple[bytes, ...]
    resume: bytes = b""
    tolerant_decoder: Callable[[], FrameDecoder] | None = None


EVENT_STREAM: Final = Framing(
    media_type="text/event-stream",
    decoder=SSEDecoder,
    encoder=SSEEncoder,
    ends=(b"\n\n", b"\r\n\r\n", b"\r\r"),
    resume=b"\n\n",
    tolerant_decoder=tolerant_decoder,
)
"""https://html.spec.whatwg.org/multipage/server-sent-events.html"""

JSON_LINES: Final = Framing(
    media_type="application/x-ndjson", decoder=LineDecoder, encoder=LineEncoder, ends=(b"\n",), resume=b"\n"
)
"""One JSON value a line (https://github.com/ndjson/ndjson-spec); empty lines mean nothing."""

JSON_ARRAY: Final = Framing(media_type="application/json", decoder=ArrayDecoder, encoder=ArrayEncoder, ends=(b"\n",))
"""One array, an element for each event: how Google's servers stream to clients that do not set `alt=sse`."""
