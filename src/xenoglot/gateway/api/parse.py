"""`POST /v1/parse`: text in, structure out; no model is called."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from msgspec import Struct

from xenoglot.codec.invalid_request import invalid
from xenoglot.codec.json.json_io import decode_json
from xenoglot.codec.loss import Losses
from xenoglot.errors import ConfigurationError, FailureError, WireError
from xenoglot.gateway.endpoint.request_context import BodyReader
from xenoglot.gateway.endpoint.responses import send_json
from xenoglot.model.failure import Failure

if TYPE_CHECKING:
    from xenoglot.gateway.endpoint.request_context import RequestContext
    from xenoglot.model.json import JSONObject
    from xenoglot.text.payloads.repaired import Repair

PARSE = "/v1/parse"


class ParseEndpoint(Struct, frozen=True):
    """Parses texts."""

    bodies: BodyReader

    async def serve(self, ctx: RequestContext) -> None:
        """Parse a text.

        Raises:
            FailureError: the request is not valid.
        """
        body = await self.bodies.read(ctx.exchange)
        try:
            parsed = await asyncio.to_thread(_parsed, body, self.bodies.most_values)  # a long text takes its time
        except WireError as error:
            raise FailureError(invalid(error)) from None
        except ConfigurationError as error:
            raise FailureError(Failure(kind="invalid_request", message=str(error), param="$.syntax")) from None
        await send_json(ctx, parsed)


def _parsed(body: bytes, most: int) -> JSONObject:
    from xenoglot.text.parse_api import decode_parse, encode_parsed, parse  # noqa: PLC0415  few gateways are asked

    asked, losses = decode_parse(decode_json(body, most=most)), Losses()
    for name in asked.unknown:
        losses.dropped("$", name, "the endpoint has no such field")
    made = parse(
        asked.text,
        losses,
        syntax=asked.syntax,
        model=asked.model,
        tools=asked.tools,
        thinking=asked.thinking,
        repair=_repair() if asked.repair else None,
    )
    return encode_parsed(made, losses)


def _repair() -> Repair:
    """Return the function that repairs JSON.

    Raises:
        FailureError: the extra for it is not installed.
    """
    from xenoglot.text.json.repair import repaired, require  # noqa: PLC0415  as above

    try:
        require()
    except ConfigurationError as error:
        raise FailureError(Failure(kind="unsupported", message=str(error), param="$.repair")) from None
    return repaired
