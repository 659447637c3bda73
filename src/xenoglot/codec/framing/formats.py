"""The framings of a stream: server-sent events, JSON lines, or one JSON array."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, Protocol

from msgspec import Struct

from xenoglot.codec.framing.lines import ArrayDecoder, ArrayEncoder, LineDecoder, LineEncoder
from xenoglot.codec.framing.sse import ServerSentEvent, SSEDecoder, SSEEncoder, tolerant_decoder
from xenoglot.codec.stage import Stage


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

    A frame ends in one of `ends`: only after one may anything be added to a stream. `resume` ends whatever was
    written before it, whole or cut, and is nothing by itself; it is empty if there is no such thing.
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
