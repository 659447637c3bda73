"""Bodies of requests: read and decoded within the limits of `[server]`, large ones in a thread."""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec import Struct

from xenoglot.backends.offload import LARGE, offload
from xenoglot.codec.json.json_io import decode_json
from xenoglot.codec.requests.checks import check_lists

if TYPE_CHECKING:
    from xenoglot.gateway.http.exchange import Exchange
    from xenoglot.model.json import JSON


class BodyReader(Struct, frozen=True):
    """Reads bodies of at most `limit` bytes, whose JSON holds at most `most_values` values."""

    limit: int
    most_values: int

    async def read(self, exchange: Exchange) -> bytes:
        """Return the body of a request.

        Raises:
            BodyTooLargeError: it is longer than `limit` bytes.
            BodyBrokenError: it is malformed, or comes too slowly.
            ClientGoneError: the client disconnected before it was complete.
        """
        return await exchange.read_body(self.limit)

    async def json(self, data: bytes) -> JSON:
        """Return the JSON of a body.

        Raises:
            FailureError: too many large bodies are ahead of it.
            WireError: it is no JSON, or holds too many values.
        """
        return await offload(len(data), lambda: decode_json(data, most=self.most_values))

    async def request(self, data: bytes) -> JSON:
        """Return the JSON of a request for a model: as above, and with no more turns than are taken.

        Raises:
            FailureError: too many large bodies are ahead of it.
            WireError: it is no JSON, holds too many values, or too many turns.
        """
        return await offload(len(data), lambda: self.small_request(data))

    def small_request(self, data: bytes) -> JSON:
        """Return the same, at once.

        Raises:
            WireError: as above.
        """
        value = decode_json(data, most=self.most_values)
        if len(data) >= LARGE:  # a small one has no room for them
            check_lists(value)
        return value
