"""One blocking HTTP request to a token endpoint, by the transport for upstreams: bounded, without redirects.

It is called in the thread of an attempt, which has no event loop; so one is made for it. Where the environment names a
proxy, it is used, as the libraries of the clouds do.
"""

from __future__ import annotations

import asyncio
import os
from contextlib import aclosing
from typing import TYPE_CHECKING, Final, NamedTuple
from urllib.parse import urlsplit

from xenoglot.backends.http.client import Deadlines, Transport, TransportError, TransportLimits
from xenoglot.backends.http.proxies import ENVIRONMENT, proxy_for
from xenoglot.backends.remote.sign_in.credential import SignInError

if TYPE_CHECKING:
    from collections.abc import Mapping

TIMEOUT: Final = 20.0
MOST_BYTES: Final = 1024 * 1024
"""Limit of a token endpoint's answer: real ones are a few kilobytes."""


class TokenResponse(NamedTuple):
    """The answer of a token endpoint, whatever its status; names of headers are in lower case."""

    status: int
    headers: Mapping[str, str]
    data: bytes


def send_token_request(
    url: str,
    method: str = "GET",
    body: bytes | None = None,
    headers: Mapping[str, str] | None = None,
    timeout: float | None = None,
) -> TokenResponse:
    """Send one request and return its answer.

    Raises:
        SignInError: there is no answer, or a larger one than is allowed.
    """
    host = urlsplit(url).netloc
    try:
        return asyncio.run(_sent(url, method, body or b"", dict(headers or {}), timeout or TIMEOUT))
    except TransportError as error:
        problem = str(error)
    raise SignInError(f"no answer from {host}: {problem}", "is the host reachable from this machine?")


async def _sent(url: str, method: str, body: bytes, headers: Mapping[str, str], timeout: float) -> TokenResponse:  # noqa: ASYNC109  a deadline of the transport
    deadlines = Deadlines(connect=timeout, first_byte=timeout, idle=timeout, total=timeout)
    limits = TransportLimits(body_bytes=MOST_BYTES, decoded_bytes=MOST_BYTES)
    proxy = proxy_for(url, ENVIRONMENT, os.environ)
    async with aclosing(Transport(deadlines=deadlines, limits=limits, proxy=proxy)) as transport:
        fields = [(name, value) for name, value in headers.items() if name.lower() != "content-length"]
        reply = await transport.send(method, url, fields, body)
        return TokenResponse(reply.status, dict(reply.headers), await reply.read())
