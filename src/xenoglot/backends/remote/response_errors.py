"""Reads a server's bodies, errors and rate limits in its dialect, and redacts what clients may see of them."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from msgspec.structs import replace

from xenoglot.backends.http.client import TransportError
from xenoglot.backends.remote.upstream_errors import for_client, invalid_answer, redacted, unreachable
from xenoglot.backends.retry_after import headers_in, retry_after
from xenoglot.codec.json.json_io import MOST_VALUES, decode_answer
from xenoglot.codec.json.slices import count_values
from xenoglot.errors import FailureError, WireError
from xenoglot.model.failure import Failure

if TYPE_CHECKING:
    from xenoglot.backends.http.client import UpstreamResponse
    from xenoglot.backends.redaction import Redactor
    from xenoglot.codec.dialect import Dialect
    from xenoglot.model.json import JSON
    from xenoglot.model.limits import RateLimits

REFUSED = 400

MOST_QUOTED = 500
"""Characters of an error body without a known error that are kept for the caller."""
_READ_OF_BODY = 16 * 1024
"""Bytes of it in which secrets are looked for."""

_IDS = ("x-request-id", "request-id", "x-amzn-requestid", "apim-request-id")
"""In which of its headers a server says what it calls a request: OpenAI and most others, Anthropic, AWS, Azure."""


class ResponseErrors:
    """Reads the replies of one server; of what it says in its own words, `redact` takes the secrets out.

    Where it is `candid`, nothing else is: whoever asks is the one whose key the server knows.
    """

    def __init__(
        self, dialect: Dialect, redact: Redactor, *, candid: bool = False, most_values: int = MOST_VALUES
    ) -> None:
        self._dialect = dialect
        self._redact = redact
        self._candid = candid
        self._most = most_values

    async def body(self, reply: UpstreamResponse) -> bytes:
        """Return the whole body. Raises `FailureError` where it does not all come."""
        try:
            return await reply.read()
        except TransportError as error:
            raise FailureError(unreachable(error)) from None
        finally:
            reply.close()

    async def json(self, reply: UpstreamResponse) -> JSON:
        """Return the whole body as JSON. Raises `FailureError` where it does not all come, or is none."""
        return self.parsed(await self.body(reply))

    def parsed(self, data: bytes, most: int = 0) -> JSON:
        """Return JSON. Raises `FailureError` for what is none, or holds too many values; `most` are never too many."""
        try:
            return decode_answer(data, most=max(most, self._most))
        except WireError as error:
            raise FailureError(invalid_answer(error)) from None

    def is_lines(self, data: bytes) -> bool:
        """Return whether a body is several JSON values, one a line, and no more values than a body may hold."""
        first, _, rest = data.strip().partition(b"\n")
        if not rest or count_values(data, self._most) > self._most:
            return False
        try:
            decode_answer(first, most=self._most)
        except WireError:
            return False
        return True

    async def refusal(self, reply: UpstreamResponse) -> FailureError:
        """Return what a status other than 200 says. No redirect is followed, least of all with our key (U42)."""
        if reply.status < REFUSED:
            reply.close()
            told = f"the upstream gave no answer (status {reply.status})"
            return FailureError(Failure(kind="upstream", message=told, cause="protocol"), self.limits(reply))
        data = await self.body(reply)
        try:
            body: JSON = decode_answer(data, most=self._most)
        except WireError:
            body = None  # an HTML page of some proxy: nothing in it is for the client
        error = self.failure(body, reply)
        return self._with_body(error, data, reply) if self._candid else error

    def _with_body(self, error: FailureError, data: bytes, reply: UpstreamResponse) -> FailureError:
        """Return the error with the beginning of its body, where its dialect found no message in that."""
        failure, unread = error.failure, self._dialect.decode_error(reply.status, None)
        if failure.details is not None or failure.message != unread.message:
            return error
        text = self._redact(data[:_READ_OF_BODY].decode("utf-8", "replace")).strip()[:MOST_QUOTED]
        return FailureError(replace(failure, details=text), error.limits) if text else error

    def failure(self, body: JSON, reply: UpstreamResponse) -> FailureError:
        """Return what an error says whose body this is."""
        failure = self.for_client(self._dialect.decode_error(reply.status, body))
        headers, now = headers_in(body) | dict(reply.headers), time.time()
        limits = self._dialect.decode_limits(headers, now) if failure.kind == "rate_limit" else None
        wait = retry_after(headers, now, said=failure.retry_after, limits=limits)
        named = failure.request_id or (request_id(reply) if self._candid else None)
        return FailureError(replace(failure, retry_after=wait, request_id=named), self.limits(reply))

    def for_client(self, failure: Failure) -> Failure:
        """Return what a client may know of a failure."""
        return redacted(failure, self._redact) if self._candid else for_client(failure, self._redact)

    def limits(self, reply: UpstreamResponse) -> RateLimits | None:
        """Return what the headers say of the server's limits."""
        prefix = self._dialect.limits_prefix
        said = None if prefix is None else reply.with_prefix(prefix)
        return self._dialect.decode_limits(said, time.time()) if said else None


def request_id(reply: UpstreamResponse) -> str | None:
    """Return what the server calls the request that it replies to; `None` where it does not say."""
    return next((said for name in _IDS if (said := reply.header(name))), None)
