"""Runs a probe: sends the requests of `providers.probe.runner` one at a time, and waits when the probe asks for it."""

from __future__ import annotations

import asyncio
import time
from typing import TYPE_CHECKING, Any, Final

import msgspec

from xenoglot.backends.http.client import Deadlines, Transport, TransportError
from xenoglot.backends.http.http1 import prepare
from xenoglot.backends.redaction import MASK, SHORTEST, Redactor
from xenoglot.backends.remote.operator_messages import OperatorMessages
from xenoglot.backends.remote.sign_in.signed_transport import SignedTransport
from xenoglot.backends.remote.upstream_errors import cause_of, unreachable
from xenoglot.backends.retry_after import retry_after
from xenoglot.backends.urls import endpoint
from xenoglot.codec.json.json_io import encode_json
from xenoglot.dialect_registry import get
from xenoglot.errors import failure_error
from xenoglot.model.failure import Failure, kind_of_status
from xenoglot.policy.failure_policy import judge
from xenoglot.providers.probe.exchange import ProbeResponse
from xenoglot.providers.probe.findings import Report
from xenoglot.providers.probe.runner import probe
from xenoglot.providers.provider import authorizer

if TYPE_CHECKING:
    from collections.abc import Callable

    from xenoglot.backends.http.client import UpstreamResponse as Transported
    from xenoglot.backends.remote.sign_in.signed_transport import RequestTransport
    from xenoglot.backends.remote.sign_in.strategy import SignIn
    from xenoglot.providers.probe.exchange import ProbeRequest
    from xenoglot.providers.probe.runner import ProbeOptions

CONNECT: Final = 10.0
"""Seconds for a connection."""

MOST_BYTES: Final = 1024 * 1024
"""Limit of one answer: a few tokens, or a list of models."""

TRIES: Final = 3
"""Attempts of a request that the server answers with a rate limit."""

_BUSY: Final = frozenset({"rate_limit", "overloaded"})
"""Kinds of failures after which a request is retried, if the failure policy allows that for the status."""

_PAUSE: Final = 2.0
"""Seconds to wait if the server sends no `retry-after`."""


async def run_probe(  # noqa: PLR0913  one argument per thing that it needs
    options: ProbeOptions,
    *,
    key: str | None = None,
    patience: float,
    say: Callable[[str], None] = lambda _: None,
    socket_path: str | None = None,
    sign_in: SignIn[Any] | None = None,
) -> Report:
    """Return what the server at `options.base_url` supports; `say` is called for each request, never with the key.

    `patience` is in seconds and for one question; with `socket_path` the server is at that unix socket. Requests are
    signed in by `sign_in`, which is closed at the end.

    Raises:
        FailureError: it could not be reached at all.
    """
    shell = _Shell(options.base_url, key, patience, say, socket_path)
    redact = Redactor((key,))
    try:
        if sign_in is not None:
            shell.sign_in(sign_in, redact)
        report = await shell.drive(options)
    finally:
        await shell.transport.aclose()
        if sign_in is not None:
            await sign_in.aclose()
    plain = redact.json(msgspec.json.decode(msgspec.json.encode(report)))
    return msgspec.convert(plain, Report)


def _is_busy(status: int) -> bool:
    """Return whether a request that was answered with `status` is retried."""
    failure = Failure(kind=kind_of_status(status), message="", status=status)
    return failure.kind in _BUSY and judge(failure).retry_same


class _Shell:
    """What a conversation needs of the world."""

    def __init__(
        self, base_url: str, key: str | None, patience: float, say: Callable[[str], None], socket_path: str | None
    ) -> None:
        deadlines = Deadlines(connect=min(patience, CONNECT), first_byte=patience, idle=patience, total=patience)
        self.transport = Transport(deadlines=deadlines)
        self._sending: RequestTransport = self.transport
        self._base_url = base_url
        self._key = key
        self._say = say
        self._socket_path = socket_path
        self._reached = False
        self._messages = OperatorMessages(base_url, base_url, Redactor((key,)))

    def sign_in(self, sign_in: SignIn[Any], redact: Redactor) -> None:
        """Sign requests in, and have the credentials removed from texts."""
        self._sending = SignedTransport(self.transport, sign_in)
        self._messages = OperatorMessages(self._base_url, self._base_url, redact)
        sign_in.redacted_by(redact)

    async def drive(self, options: ProbeOptions) -> Report:
        """Hold the conversation."""
        questions = probe(options)
        ask = next(questions)
        while True:
            self._say(f"{ask.dialect}: {ask.description}")
            try:
                ask = questions.send(await self._send_with_retries(ask))
            except StopIteration as end:
                report: Report = end.value
                return report

    async def _send_with_retries(self, ask: ProbeRequest) -> ProbeResponse:
        """Return the reply, or the last one of a server that stays busy."""
        reply = await self._sent(ask)
        for tried in range(1, TRIES):
            if not _is_busy(reply.status):
                break
            told = retry_after(dict(reply.headers), time.time())
            pause = _PAUSE * tried if told is None else told
            self._say(f"status {reply.status}: waiting {pause:.0f} s")
            await asyncio.sleep(pause)
            reply = await self._sent(ask)
        return reply

    async def _sent(self, ask: ProbeRequest) -> ProbeResponse:
        url = endpoint(self._base_url, ask.path, ask.query)
        data = b"" if ask.body is None else encode_json(ask.body)
        pieces: list[bytes] = []
        status, headers = 0, tuple[tuple[str, str], ...]()
        try:
            async with await self._post(ask, url, data) as reply:
                self._reached = True
                status, headers = reply.status, reply.headers
                async for piece in reply:
                    pieces.append(piece)
                    if sum(map(len, pieces)) > MOST_BYTES:
                        return ProbeResponse(status=status, headers=headers, problem="an answer without end")
        except TransportError as error:
            if not self._reached:
                raise failure_error(self._messages.unanswered(unreachable(error))) from cause_of(error)
            return ProbeResponse(
                status=status, headers=headers, body=self._without_key(b"".join(pieces)), problem=str(error)
            )
        return ProbeResponse(status=status, headers=headers, body=self._without_key(b"".join(pieces)))

    def _without_key(self, body: bytes) -> bytes:
        """Return a server's body without the key, before it is cut in the middle of one."""
        long = self._key is not None and len(self._key) >= SHORTEST
        return body.replace(self._key.encode(), MASK.encode()) if self._key is not None and long else body

    async def _post(self, ask: ProbeRequest, url: str, data: bytes) -> Transported:
        prepared = prepare(ask.method, url, self._headers(ask), self._socket_path)
        return await self._sending.send_prepared(prepared.request(data))

    def _headers(self, ask: ProbeRequest) -> list[tuple[str, str]]:
        accept = get(ask.dialect).framing.media_type if ask.stream else "application/json"
        sent = {"accept": accept, **dict(authorizer(ask.auth, get(ask.dialect))(self._key))}
        return [*sent.items(), *((("content-type", "application/json"),) if ask.body is not None else ())]
