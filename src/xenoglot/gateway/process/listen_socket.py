"""The address at which several processes answer: it is reserved once, and each of them has a line of its own there.

Theory of operation. Where processes take clients from one line, whoever is awake takes nearly all: of 64 connections to
two workers, 49 to 64 went to one of them. Linux shares them out among all sockets that listen at one address
(`SO_REUSEPORT` in socket(7)), and leaves out those that do not listen: one of these holds the address for as long as
the gateway runs. Other systems allow such sockets and share nothing out, so there all take from one line.
"""

from __future__ import annotations

import socket
import sys
from typing import Final

from xenoglot.gateway.process.serve import BACKLOG, bind

APART: Final = sys.platform == "linux"
"""Whether each process has a line of its own."""


def reserve(host: str, port: int) -> socket.socket:
    """Return a socket that holds the address for processes to come; port 0 takes a free one.

    Raises:
        ConfigurationError: it cannot be had.
    """
    listener = bind(host, port)  # fails where others listen, even if they would share it
    if not APART:
        return listener
    with listener:
        name, family = listener.getsockname()[:2], listener.family
    return _held(family, name)


def line_at(reserved: socket.socket) -> socket.socket:
    """Return a socket that listens at the address, in place of the one that reserves it."""
    if not APART:
        return reserved
    with reserved:
        name, family = reserved.getsockname()[:2], reserved.family
        return socket.create_server(name, family=family, backlog=BACKLOG, reuse_port=True)


def _held(family: socket.AddressFamily, name: tuple[str, int]) -> socket.socket:
    """Return a socket that is bound as those of `create_server` are, and does not listen."""
    held = socket.socket(family, socket.SOCK_STREAM)
    held.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    held.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
    if family == socket.AF_INET6:
        held.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
    held.bind(name)
    return held
