"""Failures of upstreams: connections that fail or break, and error responses."""

from __future__ import annotations

import re
import time
from copy import copy
from typing import TYPE_CHECKING

from msgspec.structs import replace

from xenoglot.backends.http.client import TransportError
from xenoglot.backends.redaction import Redactor
from xenoglot.backends.remote.operator_messages import ServerAnswer
from xenoglot.backends.retry_after import headers_in, retry_after
from xenoglot.codec.json.json_io import MOST_VALUES, decode_answer
from xenoglot.codec.json.slices import count_values
from xenoglot.errors import FailureError, HTTPStatusError, WireError
from xenoglot.model.failure import Failure, FailureCause, FailureKind

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from xenoglot.backends.http.client import UpstreamResponse
    from xenoglot.backends.remote.operator_messages import OperatorMessages
    from xenoglot.codec.dialect import Dialect
    from xenoglot.model.json import JSON
    from xenoglot.model.limits import RateLimits


FORBIDDEN = 403
SERVER_ERROR = 500

_CREDENTIALS = ("authentication", "permission")
_REFUSING = (401, FORBIDDEN)
_SERVER_FAULTS = ("upstream", "internal", "timeout")
_TEXT_FIELDS = ("message", "raw_type", "code", "param", "details")

_PLACE = re.compile(r"[/\\@]|[0-9]\.[0-9]|localhost")

_KINDS: Mapping[str, FailureKind] = {
    "connect": "upstream",
    "tls": "upstream",
    "timeout": "timeout",
    "protocol": "upstream",
    "closed": "upstream",
    "too_large": "upstream",
    "exhausted": "internal",
    "credentials": "upstream",
}
_MESSAGES: Mapping[str, str] = {
    "connect": "connection error: the upstream cannot be reached",
    "tls": "the upstream's certificate or TLS handshake was refused",
    "timeout": "connection timed out: the upstream did not answer in time",
    "protocol": "the upstream's answer is not lawful HTTP",
    "closed": "connection lost: the upstream closed it",
    "too_large": "the upstream's answer is larger than allowed",
    "exhausted": "server error: too many files are open here to connect to the upstream; retry later",
    "credentials": "the gateway could not sign in to the upstream; retry later",
}


def unreachable(error: TransportError) -> Failure:
    """Return the failure of a request to which no whole answer came; its `operator_message` is the cause alone.

    A server to which no connection comes up in time is as absent as one that refuses it (U02).
    """
    kind = "connect" if error.stage == "connect" and error.kind == "timeout" else error.kind
    return Failure(
        kind=_KINDS[kind],
        message=_MESSAGES[kind],
        cause=kind,
        not_sent=not error.sent,
        operator_message=str(error),
    )


def invalid_answer(error: WireError) -> Failure:
    """Return the failure of an answer that is not what its dialect allows; `operator_message` has the reason."""
    return Failure(
        kind="upstream",
        message=f"server error: the upstream's answer was not understood: {error}",
        cause="garbled",
        operator_message=str(error),
    )


def has_no_endpoint(failure: Failure) -> bool:
    """Return whether this failure means that a server without the requested endpoint has answered."""
    if failure.kind == "upstream":
        return failure.cause in (None, "protocol", "garbled")
    return failure.kind in ("not_found", "unsupported")


def for_client(failure: Failure, redact: Redactor) -> Failure:
    """Return a failure with a server's own text in the form for clients."""
    if failure.dialect is None:
        return failure
    if failure.kind in _CREDENTIALS or failure.status in _REFUSING:
        # The client's own key is fine: it must not be told otherwise (U40).
        forbidden = failure.kind == "permission" or failure.status == FORBIDDEN
        cause: FailureCause = "forbidden" if forbidden else "credentials"
        return Failure(kind="upstream", message="the upstream refused the gateway's credentials", cause=cause)
    told = redacted(failure, redact)
    crowded = failure.kind == "overloaded" and not all(map(_is_plain, _texts([told.message, told.details])))
    if failure.kind in _SERVER_FAULTS or crowded:  # their texts can hold anything: paths, hosts, traces (R32)
        said = "" if failure.status in (None, SERVER_ERROR) else f" (status {failure.status})"
        return replace(told, message=f"server error: the upstream failed{said}", details=None)
    return told


def redacted(failure: Failure, redact: Redactor) -> Failure:
    """Return the failure without the secrets that its words may repeat."""
    return replace(failure, **{name: redact.json(getattr(failure, name)) for name in _TEXT_FIELDS})


def _texts(value: JSON) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, list):
        for item in value:
            yield from _texts(item)
    elif isinstance(value, dict):
        yield from _texts([*value, *value.values()])


def _is_plain(text: str) -> bool:
    """Whether a text has nothing in it that could be a path or an address."""
    return _PLACE.search(text) is None


REFUSED = 400

MOST_QUOTED = 500
"""Characters of an error body without a known error that are kept for the caller."""
_READ_OF_BODY = 16 * 1024
"""Bytes of it in which secrets are looked for."""

_IDS = ("x-request-id", "request-id", "x-amzn-requestid", "apim-request-id")
"""Header fields with the server's id of a request: OpenAI and most others, Anthropic, AWS, Azure."""


class ResponseErrors:
    """Reads the errors of one server; `redact` removes the secrets from its texts.

    With `candid` nothing else is removed, because the caller owns the key. `messages` words failures
    for the operator. With `clients_key` the key is the client's, who gets what the server answers about it.
    """

    def __init__(  # noqa: PLR0913  one argument per setting
        self,
        dialect: Dialect,
        redact: Redactor,
        messages: OperatorMessages,
        *,
        candid: bool = False,
        most_values: int = MOST_VALUES,
        clients_key: bool = False,
    ) -> None:
        self._clients_key = clients_key
        self._dialect = dialect
        self._redact = redact
        self._messages = messages
        self._candid = candid
        self._most = most_values

    def without(self, secrets: Sequence[str]) -> ResponseErrors:
        """Return what reads the same errors and removes `secrets` from their texts, which are those of one request."""
        other = copy(self)
        other._redact = Redactor(secrets)  # noqa: SLF001  of this class
        other._messages = self._messages.without(other._redact)  # noqa: SLF001
        return other

    async def body(self, reply: UpstreamResponse) -> bytes:
        """Return the whole body. Raises `FailureError` where it does not all come."""
        try:
            return await reply.read()
        except TransportError as error:
            raise self.unreachable(error) from cause_of(error)
        finally:
            reply.close()

    async def json(self, reply: UpstreamResponse, url: str | None = None) -> JSON:
        """Return the whole body as JSON. Raises `FailureError` where it does not all come, or is none."""
        return self.parsed(await self.body(reply), reply, url)

    def parsed(self, data: bytes, reply: UpstreamResponse | None = None, url: str | None = None, most: int = 0) -> JSON:
        """Return JSON. Raises `FailureError` for what is none, or holds too many values; `most` are never too many."""
        try:
            return decode_answer(data, most=max(most, self._most))
        except WireError as error:
            raise self.unreadable(error, data, reply, url) from error

    def unreachable(self, error: TransportError) -> FailureError:
        """Return the error of a request to which no whole answer came."""
        return FailureError(self._messages.unanswered(unreachable(error)))

    def unreadable(
        self, error: WireError, data: bytes, reply: UpstreamResponse | None, url: str | None = None
    ) -> FailureError:
        """Return the error of an answer that is not what the dialect allows."""
        return FailureError(self._messages.unreadable(invalid_answer(error), self._answer(data, reply, url)))

    def _answer(self, data: bytes, reply: UpstreamResponse | None, url: str | None) -> ServerAnswer:
        status, kind = (0, "") if reply is None else (reply.status, reply.header("content-type") or "")
        return ServerAnswer(url or self._messages.url, status, kind, data)

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

    async def refusal(self, reply: UpstreamResponse, url: str | None = None) -> FailureError:
        """Return the failure for a status other than 200. No redirect is followed, least of all with our key (U42)."""
        if reply.status < REFUSED:
            reply.close()
            told = f"the upstream gave no answer (status {reply.status})"
            failure = Failure(kind="upstream", message=told, cause="protocol")
            return self._refused(failure, self._answer(b"", reply, url), "", self.limits(reply))
        data = await self.body(reply)
        try:
            body: JSON = decode_answer(data, most=self._most)
        except WireError:
            body = None  # an HTML page of some proxy: nothing in it is for the client
        error = self.failure(body, reply, data, url)
        return self._with_body(error, data, reply) if self._candid else error

    def _with_body(self, error: FailureError, data: bytes, reply: UpstreamResponse) -> FailureError:
        """Return the error with the beginning of its body, where its dialect found no message in that."""
        failure, unread = error.failure, self._dialect.decode_error(reply.status, None)
        if failure.details is not None or failure.message != unread.message:
            return error
        text = self._redact(data[:_READ_OF_BODY].decode("utf-8", "replace")).strip()[:MOST_QUOTED]
        error.failure = replace(failure, details=text or failure.details)
        return error

    def failure(self, body: JSON, reply: UpstreamResponse, data: bytes = b"", url: str | None = None) -> FailureError:
        """Return the failure for an error with this body; `data` is the body as it came."""
        told = self._dialect.decode_error(reply.status, body)
        failure = self.for_client(told)
        headers, now = headers_in(body) | dict(reply.headers), time.time()
        limits = self._dialect.decode_limits(headers, now) if failure.kind == "rate_limit" else None
        wait = retry_after(headers, now, said=failure.retry_after, limits=limits)
        named = failure.request_id or (request_id(reply) if self._candid else None)
        failure = replace(failure, retry_after=wait, request_id=named)
        answer = self._answer(data, reply, url)
        unread = told.message == self._dialect.decode_error(reply.status, None).message
        words = self._messages.first_words(answer) if unread else told.message
        return self._refused(failure, answer, words, self.limits(reply))

    def _refused(self, failure: Failure, answer: ServerAnswer, words: str, limits: RateLimits | None) -> FailureError:
        error = FailureError(self._messages.refused(failure, answer, words), limits)
        error.__cause__ = HTTPStatusError(answer.status, self._messages.shown(answer.url))
        return error

    def for_client(self, failure: Failure) -> Failure:
        """Return what a client may know of a failure."""
        if self._candid or (self._clients_key and failure.kind in _CREDENTIALS):
            return redacted(failure, self._redact)
        return for_client(failure, self._redact)

    def in_stream(self, failure: Failure) -> Failure:
        """Return what a client may know of a failure within a stream, with the server's URL for the operator."""
        if failure.dialect is None:
            return self._messages.unanswered(failure)
        return self._messages.broken(self.for_client(failure), failure.message)

    def limits(self, reply: UpstreamResponse) -> RateLimits | None:
        """Return the rate limits in the header fields."""
        prefix = self._dialect.limits_prefix
        said = None if prefix is None else reply.with_prefix(prefix)
        return self._dialect.decode_limits(said, time.time()) if said else None


def request_id(reply: UpstreamResponse) -> str | None:
    """Return the server's id of the request; `None` if it sent none."""
    return next((said for name in _IDS if (said := reply.header(name))), None)


def cause_of(error: TransportError) -> BaseException:
    """Return the error of the system that `error` comes from, or itself."""
    return error.__cause__ or error
