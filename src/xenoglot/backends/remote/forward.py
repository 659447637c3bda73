"""Forwards requests to an endpoint of the same path, untranslated; bodies of requests and answers go as they come."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Final

from msgspec import Struct

from xenoglot.backends.http.client import TransportError
from xenoglot.backends.http.http1 import LAST_CHUNK, chunk
from xenoglot.backends.operation import AnyCall, OperationAnswer
from xenoglot.backends.remote.request_heads import RequestHeads
from xenoglot.backends.remote.sign_in.signed_transport import RequestTransport
from xenoglot.backends.remote.upstream_errors import ResponseErrors, cause_of, unreachable
from xenoglot.backends.urls import endpoint
from xenoglot.codec.dialect import Dialect
from xenoglot.codec.features.forward import FORWARD, ForwardedAnswer
from xenoglot.errors import FailureError

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from xenoglot.backends.http.client import UpstreamResponse
    from xenoglot.backends.operation import OperationCall
    from xenoglot.codec.features.forward import ForwardedRequest

    ForwardCall = OperationCall[ForwardedRequest, ForwardedAnswer]

OK: Final = 200
UNTYPED: Final = "application/octet-stream"


class ForwardedCalls(Struct, frozen=True, kw_only=True):
    """Forwards requests to one server. It gets those headers of a client's trace that `trace` names."""

    dialect: Dialect
    base_url: str
    transport: RequestTransport
    heads: RequestHeads
    errors: Callable[[AnyCall], ResponseErrors]
    """Returns what reads the errors for a call: they do not repeat the credential of its client."""
    trace: frozenset[str]
    credential: Callable[[AnyCall], tuple[tuple[str, str], ...]] | None = None
    """Returns the client's own sign-in, for a server that wants it."""

    async def forward(self, call: ForwardCall) -> OperationAnswer[ForwardedAnswer]:
        """Send the request, and return the answer once it has begun.

        Raises:
            FailureError: there is none, or the server refuses the request. What the request's body raises is raised.
        """
        if all(known.path != call.form.path for known in self.dialect.forwarded_paths):
            raise FailureError(FORWARD.unsupported(call.request.model))
        url = endpoint(self.base_url, call.form.path)
        try:
            reply = await self._sent(url, call)
        except TransportError as error:
            raise self.errors(call).unreachable(error) from cause_of(error)
        if reply.status != OK:
            raise await self.errors(call).refusal(reply, url)
        media_type = reply.header("content-type") or UNTYPED
        answer = ForwardedAnswer(media_type=media_type, pieces=_pieces(reply), aclose=reply.aclose)
        return OperationAnswer(result=answer)

    async def _sent(self, url: str, call: ForwardCall) -> UpstreamResponse:
        """Return the response. Raises `TransportError`, and what the body raises."""
        body, model = call.request.body, call.request.model
        passed = call.headers if call.dialect == self.dialect.name else ()
        head = self.heads.post_body(url, call.key, body.media_type, passed)
        if trace := [field for field in call.trace if field[0] in self.trace]:
            head = head.with_fields(trace)
        if self.credential is not None:
            head = head.with_fields(self.credential(call))
        first, rest = body.first(model), body.rest()
        if rest is None:
            return await self.transport.send_prepared(head.request(first))
        length = body.length(model)
        following = _in_chunks(rest) if length is None else rest
        return await self.transport.send_streamed(head.streamed(first, length), following)


async def _in_chunks(pieces: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
    """Yield `pieces` as chunks, and the last one."""
    async for piece in pieces:
        yield chunk(piece)
    yield LAST_CHUNK


async def _pieces(reply: UpstreamResponse) -> AsyncIterator[bytes]:
    """Yield the body as it comes. Raises `FailureError` where it breaks off."""
    try:
        async for piece in reply:
            yield piece
    except TransportError as error:
        raise FailureError(unreachable(error)) from cause_of(error)
    finally:
        await reply.aclose()
