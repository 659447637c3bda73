"""JSON bodies of requests: decoded within the bounds of `[server]`, large ones in a thread."""

from __future__ import annotations

from typing import TYPE_CHECKING

from xenoglot.backends.offload import LARGE, offload
from xenoglot.codec.ranges import check_lists
from xenoglot.codec.wire import decode_json

if TYPE_CHECKING:
    from xenoglot.gateway.gateway import Gateway
    from xenoglot.model.json import JSON


async def json_in(data: bytes, gateway: Gateway) -> JSON:
    """Return the JSON of a body.

    Raises:
        FailureError: too many large bodies are ahead of it.
        WireError: it is no JSON, or holds too many values.
    """
    most = gateway.config.server.body_values
    return await offload(len(data), lambda: decode_json(data, most=most))


async def request_in(data: bytes, gateway: Gateway) -> JSON:
    """Return the JSON of a request for a model: as above, and with no more turns than are taken.

    Raises:
        FailureError: too many large bodies are ahead of it.
        WireError: it is no JSON, holds too many values, or too many turns.
    """
    most = gateway.config.server.body_values
    return await offload(len(data), lambda: read_request(data, most))


def read_request(data: bytes, most: int) -> JSON:
    """Return the same, at once.

    Raises:
        WireError: as above.
    """
    value = decode_json(data, most=most)
    if len(data) >= LARGE:  # a small one has no room for them
        check_lists(value)
    return value
