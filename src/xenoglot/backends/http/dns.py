"""Name resolution: a slow lookup of one name does not delay lookups of other names."""

from __future__ import annotations

import asyncio
import contextlib
import ipaddress
import socket
import threading
from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from typing import TypeAlias

Resolve: TypeAlias = Callable[[str], Awaitable[Sequence[str]]]
"""Gives the addresses of a host, the best first, at least one; raises `OSError` where there is none."""


def addresses_of(host: str) -> tuple[str, ...]:
    """Ask the system for the addresses of `host`, and wait for them. Raises `OSError`."""
    found = socket.getaddrinfo(host, None, type=socket.SOCK_STREAM)
    return tuple(dict.fromkeys(str(address[0]) for *_, address in found))


class AddressLookup:
    """The lookups of one event loop.

    The system's own function blocks, for as long as the name servers make it, and cannot be stopped: whoever waits
    may give up, and the lookup goes on. So each name has one thread at most, which all who ask for the name wait for;
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
        """In the thread: ask, and tell the loop, if it is still there."""
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
