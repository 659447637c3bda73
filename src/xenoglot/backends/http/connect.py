"""Connecting to a server: name resolution, and messages for connections that fail."""

from __future__ import annotations

import asyncio
import contextlib
import errno
import ipaddress
import os
import socket
import ssl
import threading
from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING, TypeAlias

if TYPE_CHECKING:
    from xenoglot.backends.http.timeouts import Kind


Resolve: TypeAlias = Callable[[str], Awaitable[Sequence[str]]]
"""Gives the addresses of a host, the best first, at least one; raises `OSError` where there is none."""


def addresses_of(host: str) -> tuple[str, ...]:
    """Ask the system for the addresses of `host`, and wait for them. Raises `OSError`."""
    found = socket.getaddrinfo(host, None, type=socket.SOCK_STREAM)
    return tuple(dict.fromkeys(str(address[0]) for *_, address in found))


class AddressLookup:
    """The lookups of one event loop.

    The system's own function blocks, for as long as the name servers make it, and cannot be stopped: callers may give
    up, and the lookup continues. So each name has one thread at most, for which all requests for the name wait;
    and it is a thread of its own, since those of the loop's executor are few, and would be waited for at the end.
    """

    def __init__(self, ask: Callable[[str], Sequence[str]] = addresses_of) -> None:
        self._resolve = ask
        self._running: dict[str, asyncio.Future[Sequence[str]]] = {}

    async def __call__(self, host: str) -> Sequence[str]:
        """Return the addresses of `host`; an address is its own."""
        if is_address(host):
            return (host,)
        answer = self._running.get(host)
        if answer is None:
            answer = self._running[host] = asyncio.get_running_loop().create_future()
            answer.add_done_callback(partial(self._on_done, host))
            threading.Thread(target=self._look_up, args=(host, answer), name="name lookup", daemon=True).start()
        return await asyncio.shield(answer)

    def _on_done(self, host: str, answer: asyncio.Future[Sequence[str]]) -> None:
        self._running.pop(host, None)
        if not answer.cancelled():
            answer.exception()  # nobody may be waiting any more, and then nobody need hear of it

    def _look_up(self, host: str, answer: asyncio.Future[Sequence[str]]) -> None:
        """In the thread: look up, and call the loop, if it is not closed."""
        told: Callable[[], None]
        try:
            told = partial(_settle, answer, self._resolve(host), None)
        except (OSError, UnicodeError) as error:  # a name that cannot be written for the name server is none
            told = partial(_settle, answer, (), error if isinstance(error, OSError) else socket.gaierror())
        with contextlib.suppress(RuntimeError):
            answer.get_loop().call_soon_threadsafe(told)


def _settle(answer: asyncio.Future[Sequence[str]], found: Sequence[str], error: OSError | None) -> None:
    if answer.done():
        return
    if error is None:
        answer.set_result(found)
    else:
        answer.set_exception(error)


def is_address(host: str) -> bool:
    """Whether `host` is an address already."""
    try:
        ipaddress.ip_address(host)
    except ValueError:
        return False
    return True


NAME_MISMATCH = frozenset((62, 64))
"""X509_V_ERR_HOSTNAME_MISMATCH and X509_V_ERR_IP_ADDRESS_MISMATCH: the two whose OpenSSL message quotes the host."""


EXHAUSTED = frozenset((errno.EMFILE, errno.ENFILE))
"""What a system call fails with when this process, or the system, can open no more files."""


class ProxyError(OSError):
    """No connection through the proxy; the text has the reason, but not the proxy's address."""

    def __init__(self, kind: Kind, problem: str) -> None:
        super().__init__(problem)
        self.kind: Kind = kind


def connect_problem(failure: OSError, *, secure: bool, who: str = "upstream") -> tuple[Kind, str]:
    """Return why there is no connection to `who`, to which TLS was wanted or not."""
    kind: Kind = "tls"
    match failure:
        case _ if is_exhausted(failure):
            kind, problem = "exhausted", f"no descriptor is left for a connection: {os.strerror(failure.errno or 0)}"
        case ProxyError():
            kind, problem = failure.kind, str(failure)
        case ssl.SSLCertVerificationError():
            named = failure.verify_code in NAME_MISMATCH
            reason = "it is for another host" if named else failure.verify_message
            problem = f"the {who}'s certificate is not accepted: {reason}"
        case ssl.SSLError():
            problem = f"no TLS with the {who}: {failure.reason}"
        case ConnectionResetError() | ConnectionAbortedError() | BrokenPipeError() if secure:
            problem = f"the {who} broke off the TLS handshake"
        case socket.gaierror():
            kind, problem = "connect", f"the {who}'s host name cannot be resolved"
        case _:
            reason = os.strerror(failure.errno) if failure.errno else "every address of it failed"
            kind, problem = "connect", f"no connection to the {who}: {reason}"
    return kind, problem


def is_exhausted(failure: OSError) -> bool:
    """Return whether this machine is out of descriptors, so that no upstream or name server could be reached.

    The system's name lookup does not report that: without a descriptor, it reports a temporary failure. So
    after a failed lookup one is opened, to see.
    """
    if isinstance(failure, socket.gaierror):
        try:
            socket.socket().close()
        except OSError as error:
            return error.errno in EXHAUSTED
        return False
    return failure.errno in EXHAUSTED
