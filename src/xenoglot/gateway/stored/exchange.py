"""Exchanges between the relay and a client: one whose body was read before, and one whose answer is kept."""

from __future__ import annotations

from typing import TYPE_CHECKING

from xenoglot.codec.json.json_io import decode_answer, encode_json
from xenoglot.gateway.http.application import ExchangeWrapper

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Sequence

    from xenoglot.codec.features.stored_responses import StoredAnswer, StoredResponseCodec
    from xenoglot.codec.framing.formats import Framing
    from xenoglot.codec.framing.sse import ServerSentEvent
    from xenoglot.gateway.http.application import Exchange
    from xenoglot.model.json import JSONObject

    Headers = list[tuple[str, str]]
    Store = Callable[[JSONObject | None], Awaitable[Headers]]


class BufferedExchange(ExchangeWrapper):
    """An exchange whose request has another body than was read from it, or the same again."""

    def __init__(self, exchange: Exchange, body: bytes) -> None:
        super().__init__(exchange)
        self._body = body

    async def read_body(self, limit: int) -> bytes:  # noqa: ARG002  it has been read
        """Return the body."""
        return self._body


class StoredResponseExchange(BufferedExchange):
    """Makes the answer one of a kept request, and has it stored before its end leaves.

    A whole answer is held until it is stored. Each piece of a stream leaves as it comes, apart from the one with the
    end. `store` reports whether that can be done before a stream's head leaves; it gives headers where it cannot.
    """

    def __init__(
        self, exchange: Exchange, body: bytes, framing: Framing, state: StoredResponseCodec, kept: StoredAnswer
    ) -> None:
        super().__init__(exchange, body)
        self.store: Store | None = None
        """What stores the answer, where that is wanted."""
        self._framing = framing
        self._state = state
        self._kept = kept
        self._stored = False
        self._head: tuple[int, Headers] | None = None
        self._decoder = framing.decoder()
        self._encoder = framing.encoder()
        self._showing = state.showing(kept)
        self._between_frames = True

    async def start(self, status: int, headers: Sequence[tuple[str, str]]) -> None:
        """Send the head of a stream; hold that of a whole answer."""
        if dict(headers).get("content-type") != self._framing.media_type:
            self._head = (status, [header for header in headers if header[0] != "content-length"])
            return
        await self._exchange.start(status, [*headers, *(await self.store(None) if self.store is not None else ())])

    async def write(self, data: bytes) -> None:
        """Send what the client gets for a piece of the stream."""
        if shown := await self._show(data):
            await self._exchange.write(shown)

    async def end(self, data: bytes = b"") -> None:
        """Send what is left, or a whole answer."""
        if self._head is None:
            shown = await self._show(data)
            self._showing.close()
            await self._keep()
            await self._exchange.end(shown)
            return
        status, headers = self._head
        answer = self._state.show(decode_answer(data), self._kept)
        more = await self.store(answer) if self.store is not None else ()
        body = encode_json(answer)
        await self._exchange.start(status, [*headers, ("content-length", str(len(body))), *more])
        await self._exchange.end(body)

    def decoded(self, data: bytes) -> Sequence[ServerSentEvent]:
        """Return the events in a piece of the stream."""
        return self._decoder.feed(data)

    async def _show(self, data: bytes) -> bytes:
        shown = [made for event in self.decoded(data) for made in self._showing.feed(event)]
        await self._keep()
        comments = _comments(data, first=self._between_frames)
        self._between_frames = data.endswith(self._framing.ends) or (self._between_frames and not data)
        return b"".join([*(piece for event in shown for piece in self._encoder.feed(event)), *comments])

    async def _keep(self) -> None:
        """Store the answer once it is whole."""
        answer = self._showing.answer
        if answer is not None and not self._stored and self.store is not None:
            self._stored = True
            await self.store(answer)


def _comments(data: bytes, *, first: bool) -> list[bytes]:
    """Return the comments that the gateway wrote: no events, but signs of life, and what was lost."""
    *frames, _ = data.split(b"\n\n")
    return [frame + b"\n\n" for place, frame in enumerate(frames) if frame.startswith(b":") and (place or first)]
